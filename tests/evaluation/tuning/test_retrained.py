"""Trainings of the winner with other seeds are those of the search and of the tuned recipe's run."""

import pytest

from evaluation.results.store import RunFolder
from evaluation.tuning.retrained import retrained_values
from tests.evaluation.tuning.small_studies import FakeTrials, make_search, make_study, write_recipe, write_tuned_run


@pytest.fixture
def study(tmp_path):
    path = write_recipe(tmp_path / "recipes")
    study = make_study(tmp_path / "study", path)
    make_search(study, path, 3).run_trials(FakeTrials())
    return study


def test_a_run_of_the_winner_counts_with_its_finished_trainings_of_other_seeds(study, tmp_path):
    assert retrained_values(study, RunFolder(tmp_path / "no run"), ()) == {}
    assert retrained_values(study, write_tuned_run(tmp_path / "run", study, study.best().number), ()) == {
        2: 0.25,
        3: 0.75,
    }


def test_a_run_of_other_settings_or_data_does_not_count(study, tmp_path):
    best = study.best().number
    other = next(trial.number for trial in study.trials() if trial.number != best)
    assert retrained_values(study, write_tuned_run(tmp_path / "settings", study, other), ()) == {}
    assert retrained_values(study, write_tuned_run(tmp_path / "data", study, best, data="2" * 64), ()) == {}


def test_trainings_of_the_search_and_of_the_run_are_counted_once_a_seed(study, tmp_path):
    path = tmp_path / "recipes/circle.py"
    make_search(study, path, 3).run_winner(FakeTrials(), (3, 5))
    chosen = study.best().value
    run = write_tuned_run(tmp_path / "run", study, study.best().number)
    assert retrained_values(study, run, (3, 5)) == {2: 0.25, 3: chosen, 5: chosen}
