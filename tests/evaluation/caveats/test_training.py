"""How a training ended is said beside its numbers."""

from dataclasses import replace

import pytest

from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.recipe import Trained
from aprec_like.settings import describe
from aprec_like.training import Training
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.caveats.training import stopped_while_improving, training_caveats
from evaluation.results.load import Caveat, load_runs
from evaluation.table_formats import as_latex
from tests.evaluation.made_runs import MIXED, make_run

FROM_ZERO = describe(Trained(SASRec(), GBCE(256, 0.75), Training()))
FROM_PRIOR = describe(Trained(SASRec(), GBCE(256, 0.75), Training(), prior_start=True))
ONE_NEGATIVE = describe(Trained(SASRec(), BCE(1), Training()))
SOFTMAX = describe(Trained(SASRec(), Softmax(), Training()))
CONVERGED = {"best_epoch": 20, "epochs": 28, "best_validation": 0.1, "stopped_by": "early_stopping"}


def status_beside(model, popularity, overlap, loss_change=-0.1, **changes):
    beside = {"metric": "NDCG@10", "model": model, "popularity": popularity, "overlap": overlap}
    return CONVERGED | {"beside_popularity": beside, "loss_change": loss_change} | changes


def marks(settings, *statuses):
    return [caveat.mark for caveat in training_caveats(settings, statuses)]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (status_beside(0.0697, 0.0646, 0.9), ["never started"]),
        (status_beside(0.0033, 0.0400, 0.0), ["never started"]),
        (status_beside(0.0800, 0.0646, 0.6), ["never started"]),
        (status_beside(0.0800, 0.0646, 0.2), []),
        (status_beside(0.1348, 0.0646, 0.6), []),
        (status_beside(0.0044, 0.0038, 0.76, loss_change=-0.006), ["never started"]),
        (status_beside(0.0697, 0.0646, 0.2, loss_change=-0.001), ["no better than Popularity"]),
        (status_beside(0.0206, 0.0268, 0.1, best_validation=None, stopped_by="max_epochs"),
         ["no better than Popularity"]),
        (CONVERGED, []),
        ({"seconds_to_best": 0.1}, []),
    ],
    ids=["as Popularity", "worse than Popularity", "better, but much the same lists", "better, with other lists",
         "started", "Popularity's lists of Beauty", "converged",
         "trained without validation", "of an earlier version", "a counting model"],
)  # fmt: skip
def test_a_training_that_never_started_is_recognised(status, expected):
    assert marks(FROM_ZERO, status) == expected


@pytest.mark.parametrize(
    ("changes", "remedies"),
    [
        ({"stopped_by": "max_epochs", "best_epoch": 28}, ["more max_epochs"]),
        ({"stopped_by": "max_epochs"}, ["more max_epochs"]),
        ({"stopped_by": "time_limit", "best_epoch": 28}, ["", "a longer time limit"]),
        ({}, []),
    ],
    ids=["underfit", "epochs cut", "underfit by the time limit", "converged"],
)
def test_a_training_that_a_limit_ended_is_told_how_to_go_on(changes, remedies):
    found = [
        caveat.remedy.partition(" and the same command: ")[0]
        for caveat in training_caveats(SOFTMAX, [CONVERGED | changes])
    ]
    assert found == remedies


@pytest.mark.parametrize("settings", [FROM_PRIOR, SOFTMAX], ids=["gBCE from the prior", "softmax"])
def test_a_training_that_no_prior_holds_back_is_no_better_than_popularity_once_its_loss_rests(settings):
    assert marks(settings, status_beside(0.0044, 0.0038, 0.76, loss_change=-0.006)) == ["no better than Popularity"]


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        (FROM_ZERO, "prior_start=True, or more patience"),
        (FROM_PRIOR, "more patience or a larger learning rate"),
        (SOFTMAX, "more patience or a larger learning rate"),
        (ONE_NEGATIVE, "more patience or a larger learning rate"),
    ],
    ids=["gBCE", "gBCE from the prior", "softmax", "one negative, whose prior is 0"],
)
def test_the_remedy_fits_the_model(settings, remedy):
    (caveat,) = training_caveats(settings, [status_beside(0.0697, 0.0646, 0.9)])
    assert "0.0697 against 0.0646, 90 % of its first items" in caveat.sentence.replace("90%", "90 %")
    assert caveat.remedy.startswith(remedy) and caveat.advice == f"{caveat.sentence}: {caveat.remedy}"


@pytest.mark.parametrize(
    ("stopped_by", "remedy"), [("max_epochs", "more max_epochs"), ("time_limit", "a longer time limit")]
)
def test_the_remedy_names_the_limit_that_ended_training(stopped_by, remedy):
    status = status_beside(0.0417, 0.0436, 0.7, stopped_by=stopped_by)
    for settings, words in ((SOFTMAX, f"{remedy} or a larger"), (FROM_ZERO, f"prior_start=True, or {remedy}, lets")):
        assert words in training_caveats(settings, [status])[0].remedy


def test_several_trainings_are_counted():
    (caveat,) = training_caveats(FROM_ZERO, [status_beside(0.0697, 0.0646, 0.9), CONVERGED, CONVERGED])
    assert caveat.sentence.endswith("(in 1 of 3 trainings)")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"stopped_by": "time_limit"}, ["time limit"]),
        ({"stopped_by": "time_limit", "best_epoch": 28}, ["underfit", "time limit"]),
        ({"stopped_by": "max_epochs"}, ["epochs cut"]),
        ({"stopped_by": "max_epochs", "best_epoch": 28}, ["underfit"]),
        ({"stopped_by": "max_epochs", "best_validation": None}, []),
    ],
)
def test_a_training_that_a_limit_ended_says_so(changes, expected):
    assert marks(SOFTMAX, CONVERGED | changes) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"best_epoch": 30, "epochs": 30, "best_validation": 0.1, "stopped_by": "max_epochs"}, True),
        ({"best_epoch": 23, "epochs": 30, "best_validation": 0.1, "stopped_by": "time_limit"}, False),
        ({"best_epoch": 24, "epochs": 30, "best_validation": 0.1, "stopped_by": "time_limit"}, True),
        ({"best_epoch": 29, "epochs": 30, "best_validation": 0.1, "stopped_by": "early_stopping"}, False),
        ({"best_epoch": 20, "epochs": 20, "best_validation": None, "stopped_by": "max_epochs"}, False),
        ({}, False),
    ],
)
def test_a_model_is_underfit_if_its_budget_ended_while_it_improved(status, expected):
    assert stopped_while_improving(status) is expected


def test_labels_and_notes_of_the_table_carry_the_marks_in_latex_too(tmp_path):
    """The networks of a made run have their best epoch, the fourth, among the last of five."""
    table = main_table(compare_models(load_runs([make_run(tmp_path / "run")])))
    labels = [row[0] for block in table.blocks for row in block]
    assert labels[:2] == ["Popularity", "SASRec (underfit)"]
    assert "SASRec: still improving when training ended (best epoch 4 of 5)." in table.notes
    latex = as_latex(table)
    assert "SASRec (underfit) &" in latex and "SSM: still improving" in latex
    assert set(MIXED) == {name.removesuffix(" (underfit)") for name in labels}


def test_a_remedy_is_told_once_for_all_models_that_it_would_help_and_is_a_comment_in_latex(tmp_path):
    comparison = compare_models(load_runs([make_run(tmp_path / "run")]))
    caveat = Caveat("never started", "worse than Popularity", "more patience lets it start")
    rows = [replace(row, caveats=(caveat,)) for row in comparison.rows[:2]]
    latex = as_latex(main_table(replace(comparison, rows=rows)))
    assert latex.count("more patience") == 1
    assert f"% {rows[0].name}, {rows[1].name}: more patience lets it start" in latex.splitlines()
    assert f"{rows[1].name}: worse than Popularity." in latex
