import os
from dataclasses import replace
from pathlib import Path

import pytest

from aprec_like.datasets import Simulated, TextFile
from aprec_like.errors import InputError
from aprec_like.filters import WithoutRepeats
from aprec_like.losses import GBCE, SampledSoftmax, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import Oracle, Popularity, SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Evaluation, Recipe, Trained, gSASRec, load_recipe
from aprec_like.settings import describe
from aprec_like.training import Training

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
        "gSASRec": Trained(SASRec(), GBCE(256, calibration=0.75), Training()),
    },
    evaluation=Evaluation(metrics=(NDCG(10),)),
)
'''


def load(tmp_path: Path, source: str) -> Recipe:
    path = tmp_path / "r.py"
    path.write_text(source)
    return load_recipe(path)


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
        ("NDCG(10)", "NDCG(0)", r"r\.py:15: NDCG needs a whole number k of at least 1. Received: k=0"),
        ("NDCG(10)", "NDCG(cutoff=10)", r"r\.py:15: TypeError: .*cutoff"),
        ("NDCG(10)", '"NDCG@10"', r"r\.py:15: TypeError: Evaluation needs metrics to be a Metric. Received: 'NDCG@10'"),
        ('"gSASRec":', '"Popularity":', r"r\.py:13: the name 'Popularity' is used twice"),
        (
            "calibration=0.75",
            "calibration=1.5",
            r"r\.py:13: GBCE needs a calibration between 0 and 1. Received: calibration=1.5",
        ),
        (
            "Popularity()",
            "Popularity",
            r"r\.py:9: TypeError: Recipe needs models\['Popularity'\] to be a .*not an instance",
        ),
        ("SASRec()", "SASRec(max_lenght=200)", r"r\.py:13: TypeError: .*max_lenght"),
        ('"Popularity": Popularity()', '"": Popularity()', r"r\.py:9: Recipe needs printable names"),
        ("models={", "models={} and {", r"r\.py:9: Recipe needs at least one model"),
        ('"""A recipe."""', "1 / 0", r"r\.py:1: ZeroDivisionError"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(InputError, match=message) as error:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_or_no_python_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path / "nothing.py")
    (tmp_path / "bytes.py").write_bytes(b"\x00\xff")
    with pytest.raises(InputError, match=r"bytes\.py"):
        load_recipe(tmp_path / "bytes.py")


def test_gsasrec_is_sasrec_with_gbce():
    training = Training()
    assert gSASRec(training, 8, 0.5, max_length=10) == Trained(SASRec(max_length=10), GBCE(8, 0.5), training)


def test_settings_are_described_completely():
    described = describe(Trained(SASRec(), Softmax(), Training()))
    assert described["class"] == "Trained"
    assert described["model"]["flavour"]["layer_norm_epsilon"] == 1e-3
    assert described["training"]["early_stopping"] == {"class": "EarlyStopping", "metric": "NDCG@10", "patience": 200}
    other = describe(Trained(replace(SASRec(), dropout_rate=0.4), Softmax(), Training()))
    assert described != other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": (1, 1)}, "distinct seeds"),
        ({"seeds": ()}, "distinct seeds"),
        ({"seeds": (2**32,)}, "distinct seeds from 0 to"),
        ({"published": {"Other": {"NDCG@10": 0.1}}}, "belong in literature. Received: Other"),
        ({"evaluation": Evaluation}, "evaluation"),
        ({"groups": {"a": ("Other",)}}, "groups of its own models"),
        ({"groups": {"a": ("Popularity",), "b": ("Popularity",)}}, "each in one group"),
    ],
)
def test_inconsistent_recipes_are_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Recipe(dataset=TextFile("x"), models={"Popularity": Popularity()}, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": Softmax(), "prior_start": True}, "binary loss"),
        ({"loss": GBCE(), "prior_start": True, "negatives": Negatives(by_popularity=True)}, "uniform negatives"),
        (
            {"loss": SampledSoftmax(4, is_corrected=True), "negatives": Negatives(by_popularity=True)},
            "uniform negatives",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Trained(model=SASRec(), training=Training(), **settings)


def test_an_oracle_must_be_of_the_recipes_own_data():
    with pytest.raises(ValueError, match="its own dataset"):
        Recipe(dataset=Simulated(seed=1), models={"Oracle": Oracle(Simulated(seed=2))})


def test_there_is_no_oracle_of_filtered_data():
    """Filters number the items anew and drop interactions; the law is that of all of them."""
    with pytest.raises(ValueError, match="filtered data"):
        Recipe(Simulated(seed=1), {"Oracle": Oracle(Simulated(seed=1))}, filters=(WithoutRepeats(),))


@pytest.mark.parametrize("first_line", ["", "from __future__ import annotations"])
def test_a_recipe_may_define_a_loss_of_its_own(tmp_path, first_line):
    own = """
from dataclasses import dataclass

from aprec_like.datasets import TextFile
from aprec_like.losses import GBCE
from aprec_like.models import SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training


@dataclass(frozen=True)
class Sharp(GBCE):
    temperature: float = 0.5


recipe = Recipe(TextFile("data.txt"), {"Sharp": Trained(SASRec(), Sharp(4, 0.5), Training())})
"""
    (tmp_path / "own.py").write_text(first_line + own)
    trained = load_recipe(tmp_path / "own.py").models["Sharp"]
    assert describe(trained)["loss"]["temperature"] == 0.5
    # What annotations are is for the recipe to say, not for the module that runs it.
    assert type(trained.loss).__annotations__ == {"temperature": "float" if first_line else float}


def test_a_metric_stands_once():
    with pytest.raises(ValueError, match="each metric once"):
        Evaluation(metrics=(NDCG(10), NDCG(10)))


@pytest.mark.parametrize("path", sorted(Path("recipes").glob("*.py")), ids=lambda path: path.stem)
def test_every_shipped_recipe_loads_and_says_what_to_expect(path):
    assert load_recipe(path).models
    text = path.read_text()
    for promise in (f"python -m evaluation.run {path}", "Expected:", "Duration:"):
        assert promise in text


def test_a_recipe_is_run_as_it_is_written_now(tmp_path):
    """An import would take the bytecode of a version of the same size and second."""
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
