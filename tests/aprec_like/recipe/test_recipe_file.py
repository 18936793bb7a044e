import os
from pathlib import Path

import pytest

from aprec_like.errors import InputError
from aprec_like.recipe import Recipe, load_recipe
from aprec_like.settings import describe

GOOD = '''"""A recipe."""
from aprec_like.datasets import TextFile
from aprec_like.losses import GBCE
from aprec_like.metrics import NDCG
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.training import Training

recipe = Recipe(
    dataset=TextFile("circle.txt"),
    models={
        "Popularity": Popularity(),
        "gSASRec": Trained(SASRec(), GBCE(num_negatives=256, calibration=0.75), Training()),
    },
    evaluation=Evaluation(metrics=(NDCG(10),)),
)
'''


def load(tmp_path: Path, source: str) -> Recipe:
    path = tmp_path / "r.py"
    path.write_text(source)
    return load_recipe(path)


def test_a_module_beside_the_recipe_that_another_one_hides_is_refused(tmp_path):
    (tmp_path / "evaluation.py").write_text("my_metric = 1")
    (tmp_path / "own_part_of_this_test.py").write_text("number = 1")
    load(tmp_path, "import own_part_of_this_test\n" + GOOD)
    with pytest.raises(InputError, match=r"r\.py:1: .*evaluation\.py is hidden by another 'evaluation', .*; rename it"):
        load(tmp_path, "from evaluation import my_metric\n" + GOOD)


def test_a_recipe_file_gives_its_recipe(tmp_path):
    recipe = load(tmp_path, GOOD)
    assert list(recipe.models) == ["Popularity", "gSASRec"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("recipe = Recipe(", "recipe = Recipe((", r"r\.py:9: .*never closed"),
        ("import GBCE", "import NoSuchLoss", r"r\.py:3: ImportError: cannot import name 'NoSuchLoss'"),
        ("from aprec_like.losses", "from no_such_module", r"r\.py:3: ModuleNotFoundError"),
        ("recipe = Recipe(", "other = Recipe(", r"r\.py: must define `recipe = Recipe\(\.\.\.\)`"),
        ("NDCG(10)", "NDCG(0)", r"r\.py:15: NDCG needs an integer k of at least 1. Received: k=0"),
        ("NDCG(10)", "NDCG(cutoff=10)", r"r\.py:15: .*cutoff"),
        (
            "NDCG(10)",
            '"NDCG@10"',
            r"r\.py:15: Evaluation needs metrics to be a Metric, such as Recall\(10\)\. ",
        ),
        ('"gSASRec":', '"Popularity":', r"r\.py:13: the name 'Popularity' is used twice"),
        (
            "calibration=0.75",
            "calibration=1.5",
            r"r\.py:13: GBCE needs a calibration between 0 and 1. Received: calibration=1.5",
        ),
        (
            "Popularity()",
            "Popularity",
            r"r\.py:9: Recipe needs models\['Popularity'\] to be a .*not an instance",
        ),
        ("SASRec()", "SASRec(max_lenght=200)", r"r\.py:13: .*max_lenght"),
        ('"Popularity": Popularity()', '"": Popularity()', r"r\.py:9: Recipe needs printable names"),
        ("models={", "models={} and {", r"r\.py:9: Recipe needs at least one model"),
        ('"""A recipe."""', "1 / 0", r"r\.py:1: ZeroDivisionError"),
    ],
)
def test_a_mistake_is_reported_in_one_line_with_file_and_line_number(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in str(error.value)


def test_a_missing_file_or_a_file_that_is_not_python_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path / "nothing.py")
    (tmp_path / "bytes.py").write_bytes(b"\x00\xff")
    with pytest.raises(InputError, match=r"bytes\.py"):
        load_recipe(tmp_path / "bytes.py")


@pytest.mark.parametrize("first_line", ["", "from __future__ import annotations"])
def test_a_recipe_may_define_a_loss(tmp_path, first_line):
    source = """
from dataclasses import dataclass

from aprec_like.datasets import TextFile
from aprec_like.losses import GBCE
from aprec_like.models import SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training


@dataclass(frozen=True)
class Sharp(GBCE):
    temperature: float = 0.5


recipe = Recipe(TextFile("data.txt"), {"Sharp": Trained(SASRec(), Sharp(num_negatives=4, calibration=0.5), Training())})
"""
    trained = load(tmp_path, first_line + source).models["Sharp"]
    assert describe(trained)["loss"]["temperature"] == 0.5
    # The recipe decides about postponed annotations, not the module that executes it.
    assert type(trained.loss).__annotations__ == {"temperature": "float" if first_line else float}


def test_a_changed_recipe_is_executed_even_with_the_same_size_and_time(tmp_path):
    """An import would load the bytecode of the earlier version."""
    path = tmp_path / "recipe.py"
    for seed in (1, 2):
        path.write_text(SOURCE_WITH_SEED.format(seed=seed))
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert load_recipe(path).seeds == (seed,)
    assert [found.name for found in tmp_path.iterdir()] == ["recipe.py"]


SOURCE_WITH_SEED = """
from aprec_like.datasets import TextFile
from aprec_like.models import Popularity
from aprec_like.recipe import Recipe

recipe = Recipe(dataset=TextFile("x.txt"), models={{"Popularity": Popularity()}}, seeds=({seed},))
"""


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("gSASRec(Training(), calibrations=0.75)", "gSASRec has no setting 'calibrations'; did you mean calibration?"),
        ("gSASRec(Training(), dropout=0.1)", "gSASRec has no setting 'dropout'; did you mean dropout_rate?"),
        ("Training(max_epoch=3)", "Training has no setting 'max_epoch'; did you mean max_epochs?"),
        ("NDCG(size=3)", "NDCG has no setting 'size'; it has k"),
        ("Training(batch_size='128')", "Training needs batch_size to be a whole number. Received: '128'"),
        ("EarlyStopping(NDCG(10), patience='4')", "EarlyStopping needs patience to be a whole number. Received: '4'"),
        ("Evaluation(metrics=('Recall@10',))", "Evaluation needs metrics to be a Metric, such as Recall(10). Received"),
    ],
)
def test_a_mistake_in_a_setting_names_what_was_meant(tmp_path, made, message):
    imports = "recipe import Evaluation, gSASRec", "training import EarlyStopping, Training", "metrics import NDCG"
    path = tmp_path / "typo.py"
    path.write_text("".join(f"from aprec_like.{each}\n" for each in imports) + f"\nrecipe = {made}\n")
    with pytest.raises(InputError) as caught:
        load_recipe(path)
    assert str(caught.value).startswith(f"{path}:5: {message}")
