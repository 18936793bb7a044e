"""Trials are ordinary trainings on validation alone, which end early, fail and resume as they should."""

import optuna
import pytest

from aprec_like.errors import InputError
from aprec_like.recipe import load_recipe
from aprec_like.training import train
from evaluation.cli import DONE, FAILED
from evaluation.running.signals import StopFlag
from evaluation.tuning import trial as trial_module
from evaluation.tuning.options import TrialOptions
from evaluation.tuning.trial import PrunedError, report, run_trial
from tests.conftest import circle_sequences
from tests.evaluation.tuning.small_studies import InProcess, make_search, make_study, write_recipe


@pytest.fixture
def path(tmp_path):
    return write_recipe(tmp_path / "recipes")


def claimed_options(study, path, **changes):
    """Options of the study's next trial."""
    search = make_search(study, path, 9)
    options = TrialOptions.from_json(search._job(study.claim(search.limits)).argument)
    return TrialOptions(**vars(options) | changes)


def test_a_trial_has_the_validation_value_of_an_ordinary_training(tmp_path, path):
    study = make_study(tmp_path / "study", path, seeds=(1, 2))
    make_search(study, path, 1).run_trials(InProcess())
    recipe = load_recipe(path)
    split = recipe.split.split(recipe.load(path.parent))
    outcomes = [train(recipe.models["gSASRec"], split, seed=seed) for seed in (1, 2)]
    expected = [outcome.best.validation for outcome in outcomes]
    result = study.results()[0]
    assert result["values"] == expected and study.best().value == pytest.approx(sum(expected) / 2)
    assert result["epochs"] == sum(len(outcome.history) for outcome in outcomes)
    curve = study.folder.trial(0).read_curve()
    assert list(curve["validation"]) == [record.validation for outcome in outcomes for record in outcome.history]
    assert not (study.folder.trial(0).path / "checkpoint").exists()


def test_the_test_is_never_ranked(tmp_path, path, monkeypatch):
    """Nonsense in place of the test targets leaves every trial as it is, and nobody asks for the test part."""
    sequences = circle_sequences(60)
    nonsense = [[*sequence[:-1], (7 * sequence[-1] + 3) % 20] for sequence in sequences]
    assert nonsense != sequences
    ranked = []
    rank = trial_module.train.__globals__["rank"]
    monkeypatch.setitem(
        trial_module.train.__globals__,
        "rank",
        lambda scorer, cases, **options: ranked.append(cases) or rank(scorer, cases, **options),
    )
    curves = []
    for name, data in (("true", sequences), ("nonsense", nonsense)):
        source = write_recipe(tmp_path / name, sequences=data)
        study = make_study(tmp_path / f"study {name}", source)
        make_search(study, source, 3).run_trials(InProcess())
        curves.append([(trial.params, trial.value, trial.intermediate_values) for trial in study.trials()])
    assert curves[0] == curves[1] and len(curves[0]) == 3
    assert {len(cases) for cases in ranked} == {40}, "only the 40 validation users are ranked"


def test_a_stopped_trial_goes_on_and_ends_as_if_it_had_not_been_stopped(tmp_path, path):
    whole, parts = (make_study(tmp_path / name, path) for name in ("whole", "parts"))
    make_search(whole, path, 1).run_trials(InProcess())
    stop, options = StopFlag(), claimed_options(parts, path)
    reported = []

    def stopping():
        reported.append(parts.trials()[0].last_step)
        return reported[-1] == 2

    monkey = type("Stop", (StopFlag,), {"__call__": lambda self: stopping()})()
    assert run_trial(options, monkey) == stop.exit_code
    assert not parts.folder.trial(0).is_finished and (parts.folder.trial(0).path / "checkpoint").exists()
    assert run_trial(options, StopFlag()) == DONE
    parts.settle(0)
    same = ("value", "values", "best_epoch", "epochs", "state")
    assert [parts.results()[0][name] for name in same] == [whole.results()[0][name] for name in same]
    assert parts.trials()[0].intermediate_values == whole.trials()[0].intermediate_values


def test_a_trial_that_fails_says_why_and_counts(tmp_path, path):
    path.write_text(
        path.read_text().replace("LogUniform(1e-4, 1e-1)", "LogUniform(1e-4, 1e30)").replace("Adam(1e-2)", "Adam(1e29)")
    )
    study = make_study(tmp_path / "study", path)
    assert run_trial(claimed_options(study, path), StopFlag()) == FAILED
    study.settle(0)
    result = study.results()[0]
    assert result["state"] == "failed" and "not finite" in result["reason"]
    assert study.best() is None


def test_changed_data_are_refused(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    options = claimed_options(study, path)
    write_recipe(path.parent, sequences=circle_sequences(60, seed=1))
    with pytest.raises(InputError, match="the data were changed during the study"):
        run_trial(options, StopFlag())
    assert not study.folder.trial(0).is_finished


def test_hours_that_are_spent_end_a_trial_with_its_best_epoch(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    assert run_trial(claimed_options(study, path, seconds_left=0.0), StopFlag()) == DONE
    result = study.folder.trial(0).result()
    assert (result["state"], result["epochs"], result["stopped_by"]) == ("complete", 1, "time_limit")


def test_a_trial_below_the_median_of_the_others_ends_early(tmp_path, path):
    study = make_study(tmp_path / "study", path, is_pruned=True)
    for number in range(5):
        trial = study.optuna.ask()
        for epoch in range(1, 9):
            report(trial, epoch, 0.1 * number + 0.01 * epoch)
        study.optuna.tell(trial, 0.1 * number)
    good, bad = study.optuna.ask(), study.optuna.ask()
    for epoch in range(1, 9):
        report(good, epoch, 0.35)
    for epoch in range(1, 5):
        report(bad, epoch, 0.05)
    with pytest.raises(PrunedError):
        report(bad, 5, 0.05)
    with pytest.raises(PrunedError):  # resumed from the checkpoint of that epoch
        report(optuna.Trial(study.optuna, bad._trial_id), 5, 0.05)
