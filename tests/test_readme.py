"""What the README promises is run."""

import re
from pathlib import Path

import numpy as np

from aprec_like import datasets, filters, losses, metrics, models, recipe, splits
from aprec_like.training import loop as training

MODULES = (datasets, filters, losses, metrics, models, recipe, splits)
README = (Path(__file__).parent.parent / "README.md").read_text()


def test_gbce_trains_a_keras_model_without_the_harness():
    code = next(block for block in re.findall(r"```python\n(.*?)```", README, re.S) if "import keras" in block)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    losses = names["history"].history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    every_item = np.arange(100)
    logits = names["model"].predict([every_item[:50], np.resize(every_item[:17], (50, 17))], verbose=0)
    assert np.isfinite(logits).all()


def test_its_recipes_are_recipes():
    names = {name: value for module in MODULES for name, value in vars(module).items() if not name.startswith("_")}
    found = [block for block in re.findall(r"```python\n(.*?)```", README, re.S) if block.startswith("recipe = ")]
    assert len(found) == 2
    for code in found:
        recipes = {"training": training.Training(), **names}
        exec(compile(code, "README.md", "exec"), recipes)
        assert isinstance(recipes["recipe"], recipe.Recipe)


def test_every_linked_file_exists():
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (Path(__file__).parent.parent / link).exists(), link
