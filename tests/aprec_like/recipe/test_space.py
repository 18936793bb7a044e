"""Search spaces: what a recipe may search, how settings are named and set, and what is refused at load time."""

import re

import pytest

from aprec_like.datasets import Simulated
from aprec_like.errors import InputError
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import Popularity, SASRec
from aprec_like.optimizers import Adagrad, Adam
from aprec_like.recipe import (
    MFBPR,
    Choice,
    Integers,
    LogIntegers,
    LogUniform,
    Recipe,
    Trained,
    TuningBudget,
    Uniform,
    load_recipe,
    tuned_recipe,
)
from aprec_like.recipe.space import check_space, current_settings, num_combinations, with_settings
from aprec_like.settings import describe
from aprec_like.training import Training

GSASREC = Trained(SASRec(embedding_dim=64), GBCE(num_negatives=16, calibration=0.5), Training())
SOURCE = '''"""A recipe."""
from aprec_like.datasets import Simulated
from aprec_like.recipe import Choice, Integers, LogUniform, Recipe, gSASRec
from aprec_like.training import Training

space = {"learning_rate": LogUniform(1e-4, 1e-2), "num_negatives": Choice((16, 64))}
recipe = Recipe(
    dataset=Simulated(num_users=100, num_items=500),
    models={"gSASRec": gSASRec(Training())},
    spaces={"gSASRec": space},
)
'''


def recipe_of(**fields):
    models = {"gSASRec": GSASREC, "MF-BPR": MFBPR(), "Popularity": Popularity()}
    return Recipe(dataset=Simulated(num_users=100, num_items=500), models=models, **fields)


def test_settings_of_every_part_are_set_by_name():
    values = {
        "max_length": 50, "dropout_rate": 0.2, "num_negatives": 64, "calibration": 1.0, "shared_by": "batch",
        "learning_rate": 3e-3, "batch_size": 256, "patience": 7, "prior_start": True,
    }  # fmt: skip
    changed = with_settings(GSASREC, values)
    assert (changed.model.max_length, changed.model.dropout_rate, changed.model.embedding_dim) == (50, 0.2, 64)
    assert (changed.loss, changed.negatives.shared_by) == (GBCE(num_negatives=64, calibration=1.0), "batch")
    assert (changed.training.optimizer.learning_rate, changed.training.batch_size) == (3e-3, 256)
    assert (changed.training.early_stopping.patience, changed.prior_start) == (7, True)
    assert current_settings(changed, dict.fromkeys(values)) == values


def test_a_whole_part_may_be_chosen():
    space = {"loss": Choice((GBCE(16, 0.5), BCE(1), Softmax())), "optimizer": Choice((Adam(), Adagrad(0.1)))}
    check_space("gSASRec", GSASREC, space)
    changed = with_settings(GSASREC, {"loss": Softmax(), "optimizer": Adagrad(0.1)})
    assert (changed.loss, changed.training.optimizer) == (Softmax(), Adagrad(0.1))


def test_a_space_has_as_many_combinations_as_its_product():
    space = {"max_length": Choice((50, 100)), "num_blocks": Integers(1, 5, step=2), "num_negatives": LogIntegers(1, 4)}
    assert num_combinations(space) == 2 * 3 * 4
    assert num_combinations({**space, "dropout_rate": Uniform(0, 0.5)}) is None


def test_a_range_holds_what_lies_in_it():
    assert Integers(16, 64, step=16).holds(48) and not Integers(16, 64, step=16).holds(40)
    assert Integers(10, 25, step=10).examples == (10, 20)
    assert LogUniform(1e-4, 1e-2).holds(1e-4) and not LogUniform(1e-4, 1e-2).holds(0.1)
    assert not Uniform(0, 1).holds(True) and not Integers(0, 2).holds(1.0)
    assert Choice(("a", None)).holds(None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("learning_rate", "learning_rte", r"r\.py:7: spaces\['gSASRec'\] has no setting 'learning_rte'; there are "),
        ("Choice((16, 64))", "Choice(())", r"r\.py:6: Choice needs at least two .* Received: values=\(\)"),
        ("Choice((16, 64))", "Choice((16, 16))", r"r\.py:6: Choice needs at least two different values"),
        ("Choice((16, 64))", "Choice(16)", r"r\.py:6: Choice needs values to be a tuple"),
        ("1e-4, 1e-2", "1e-2, 1e-4", r"r\.py:6: LogUniform needs low < high. Received: low=0\.01, high=0\.0001"),
        ("1e-4, 1e-2", "0, 1e-2", r"r\.py:6: LogUniform needs positive numbers. Received: low=0"),
        ("1e-4, 1e-2", "1e-4, float('inf')", r"r\.py:6: LogUniform needs finite numbers"),
        ("Choice((16, 64))", "LogUniform(1, 64)", r"r\.py:7: .*\['num_negatives'\] needs Integers"),
        ("Choice((16, 64))", "64", r"r\.py:7: .* to be a SearchRange or Choice. Received: 64"),
        ('"num_negatives"', '"calibration"', r"r\.py:7: spaces\['gSASRec'\]\['calibration'\]: GBCE needs "),
        ('"num_negatives"', '"shared_by"', r"r\.py:7: spaces\['gSASRec'\]\['shared_by'\]: "),
        ('"num_negatives"', '"metric"', r"r\.py:7: spaces\['gSASRec'\] can't search the metric"),
        ('"num_negatives": Choice((16, 64))', '"optimizer": Choice((1, 2))', "both 'optimizer' and 'learning_rate'"),
        ('spaces={"gSASRec": space}', 'spaces={"SASRec": space}', r"r\.py:7: Recipe needs spaces and tuning of its"),
        ('spaces={"gSASRec": space}', 'spaces={"gSASRec": {}}', r"r\.py:7: spaces\['gSASRec'\] needs ranges by name"),
    ],
)  # fmt: skip
def test_a_wrong_space_is_an_error_with_file_and_line(tmp_path, old, new, message):
    assert old in SOURCE
    path = tmp_path / "r.py"
    path.write_text(SOURCE.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        load_recipe(path)
    assert len(str(caught.value).splitlines()) == 1


def test_only_networks_with_validation_can_be_searched():
    for name in ("MF-BPR", "Popularity"):
        with pytest.raises(ValueError, match=re.escape(f"spaces['{name}'] needs a network with early stopping")):
            recipe_of(spaces={name: {"embedding_dim": Choice((32, 64))}})


def test_a_value_may_need_another_one_of_the_space():
    """Three heads do not divide 64 dimensions but do divide 96."""
    recipe_of(spaces={"gSASRec": {"num_heads": Choice((2, 3)), "embedding_dim": Choice((64, 96))}})
    assert with_settings(GSASREC, {"num_heads": 3, "embedding_dim": 96}).model.num_heads == 3
    with pytest.raises(ValueError, match="'num_heads'"):
        recipe_of(spaces={"gSASRec": {"num_heads": Choice((2, 3))}})


def test_spaces_and_budgets_are_stored_only_where_a_recipe_has_them():
    assert not {"spaces", "tuning"} & set(describe(recipe_of()))
    stored = describe(recipe_of(spaces={"gSASRec": {"num_negatives": Choice((1, 2))}}))
    assert stored["spaces"] == {"gSASRec": {"num_negatives": {"class": "Choice", "values": [1, 2]}}}


def test_a_tuned_recipe_has_the_chosen_settings_and_their_budget():
    budget = TuningBudget(trials=20, hours=0.5)
    tuned = tuned_recipe(recipe_of(), {"gSASRec": {"num_negatives": 64}}, {"gSASRec": budget})
    assert tuned.models["gSASRec"].loss.num_negatives == 64
    assert tuned.tuning == {"gSASRec": budget}
    with pytest.raises(ValueError, match="names of networks"):
        tuned_recipe(recipe_of(), {"Popularity": {"num_negatives": 64}}, {})
