"""Every recipe loads, has a plan, and each of its networks trains for a step and ranks."""

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.models import CountingModel
from aprec_like.ranking import rank
from aprec_like.recipe import load_recipe
from aprec_like.training.loop import train
from evaluation.running.plan import describe_plan
from evaluation.running.smoke import shrink

NOWHERE = Path("no such folder")
RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.py"))
GRIDS = {
    "ml1m_grid": ("k=1, t=0", "k=1, t=1", "k=256, t=0", "k=256, t=1"),
    "ml1m_losses": ("SASRec, BCE, k=1", "SASRec, SSM, k=256", "BERT4Rec, BCE, k=1", "BERT4Rec, SSM, k=256"),
}
"""Corners of grids, which are tested instead of all cells."""

pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly`")
every_recipe = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


@pytest.fixture(autouse=True, scope="module")
def eager():
    """Run without compilation, which takes longer than a step; other tests cover compiled steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@every_recipe
def test_the_docstring_has_command_expected_result_and_duration(path):
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert f"Run:       python -m evaluation.run recipes/{path.name}" in text
    assert "\nExpected:  " in text and "\nDuration:  " in text


@every_recipe
def test_the_plan_needs_no_data(path, monkeypatch, tmp_path):
    """The sizes of published data are known; other data is simulated, so the recipe is shrunk."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = load_recipe(path)
    recipe = recipe if recipe.dataset.publication else shrink(recipe, NOWHERE)
    lines = describe_plan(recipe, list(recipe.models), NOWHERE).splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == list(recipe.models)


@cache
def split_of(dataset, rule):
    return rule.split(dataset.load(NOWHERE))


TESTED = set()
"""Models that were tested already: shrunk, models of many recipes are equal."""


@every_recipe
def test_every_network_trains_for_a_step_and_ranks(path, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = shrink(load_recipe(path), NOWHERE)
    split = split_of(recipe.dataset, recipe.split)
    few = replace(split.test, users=split.test.users[:64], targets=split.test.targets[:64])
    for name in GRIDS.get(path.stem, recipe.models):
        model = recipe.models[name]
        if isinstance(model, CountingModel):
            scorer = model.fit(split.test.known)
        else:
            key = (model.model, model.loss, model.negatives, model.prior_start, type(model.training.optimizer))
            if key in TESTED:
                continue
            TESTED.add(key)
            one_step = replace(model.training, max_epochs=1, max_steps_per_epoch=1, early_stopping=None)
            scorer = train(replace(model, training=one_step), split, seed=1).scorer
        ranks = rank(scorer, few, exclude_seen=recipe.evaluation.exclude_seen).ranks
        assert ranks.shape == (64,) and np.all(ranks >= 1), name


def test_the_grids_are_complete():
    grid, losses = (load_recipe(path) for path in RECIPES if path.stem in GRIDS)
    assert (len(grid.models), len(losses.models)) == (25, 30)
    for recipe, corners in zip((grid, losses), GRIDS.values(), strict=True):
        assert set(corners) <= set(recipe.models)
