"""Studies: the same seed gives the same trials, also after interruptions, and several commands share one study."""

import threading
import time

import pytest

from aprec_like.errors import InputError
from evaluation.cli import WRONG_INPUT
from evaluation.tuning.search import WrongInputError
from evaluation.tuning.study import Limits, Study
from tests.evaluation.tuning.small_studies import FakeTrials, make_search, make_study, write_recipe

NUM_TRIALS = 14
"""More than the ten that are drawn at random."""


def params(study):
    return [trial.params for trial in study.trials()]


@pytest.fixture
def path(tmp_path):
    return write_recipe(tmp_path / "recipes")


def searched(folder, path, executor=None, **options):
    study = make_study(folder, path, **options)
    make_search(study, path, NUM_TRIALS).run_trials(executor or FakeTrials())
    return study


def test_a_seed_determines_the_trials(tmp_path, path):
    first, second, other = (searched(tmp_path / f"{seed}-{i}", path, seed=seed) for i, seed in enumerate((1, 1, 2)))
    assert len(params(first)) == NUM_TRIALS and len(set(map(str, params(first)))) > NUM_TRIALS - 2
    assert params(first) == params(second)
    assert params(first)[1:] != params(other)[1:]


def test_an_interrupted_study_goes_on_with_the_trials_it_would_have_had(tmp_path, path):
    whole = searched(tmp_path / "whole", path)
    for stop_after in (3, 0, 5, 1, 20):
        study = make_study(tmp_path / "parts", path)
        try:
            make_search(study, path, NUM_TRIALS).run_trials(FakeTrials(stop_after))
        except KeyboardInterrupt:
            continue
    assert params(study) == params(whole)
    assert [trial.value for trial in study.trials()] == [trial.value for trial in whole.trials()]


def test_the_first_trial_has_the_recipes_own_settings(tmp_path, path):
    study = searched(tmp_path / "study", path)
    assert study.model_of(0) == study.trained
    assert study.own_settings().number == 0


def test_settings_outside_the_space_are_no_trial(tmp_path):
    source = write_recipe(tmp_path / "recipes")
    source.write_text(source.read_text().replace("Uniform(0.0, 0.5)", "Uniform(0.2, 0.5)"))
    study = searched(tmp_path / "study", source)
    assert study.own_settings() is None and study.model_of(0) != study.trained


def test_the_search_comes_close_to_the_best_settings(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    make_search(study, path, 40).run_trials(FakeTrials())
    best = study.best()
    assert best.value == max(trial.value for trial in study.trials())
    assert best.value > study.own_settings().value and best.params["dropout_rate"] < 0.05


def test_a_trial_that_a_killed_command_left_is_resumed(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    killed, running = (study.claim(make_search(study, path, 3).limits) for _ in range(2))
    assert (killed.number, running.number) == (0, 1)
    killed.release()  # as the operating system does when a process ends
    executor = FakeTrials()
    search = make_search(make_study(tmp_path / "study", path), path, 3)
    search._run(executor, search._trials())
    assert [options.number for options in executor.run_trials] == [0, 2]
    assert study.num_running() == 1


def test_a_trial_whose_command_was_killed_at_its_very_end_is_not_trained_again(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    claim = study.claim(make_search(study, path, 1).limits)
    search = make_search(study, path, 1)
    list(FakeTrials().run([search._job(claim)]))
    claim.release()
    executor = FakeTrials()
    search.run_trials(executor)
    assert executor.run_trials == [] and study.best().number == 0


def test_several_commands_run_every_trial_once(tmp_path, path):
    executors = [FakeTrials() for _ in range(3)]
    searches = [make_search(make_study(tmp_path / "study", path), path, NUM_TRIALS) for _ in executors]
    threads = [
        threading.Thread(target=search.run_trials, args=(executor,))
        for search, executor in zip(searches, executors, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [options.number for executor in executors for options in executor.run_trials]
    study = make_study(tmp_path / "study", path)
    assert sorted(numbers) == list(range(NUM_TRIALS)) == [trial.number for trial in study.trials()]
    assert all(trial.value is not None for trial in study.trials())


def test_commands_that_ask_at_the_same_time_start_no_trial_too_many(tmp_path, path, monkeypatch):
    """Each would count the trials before any other has started one."""
    count = Study.trials
    monkeypatch.setattr(Study, "trials", lambda study: [count(study), time.sleep(0.2)][0])
    studies = [make_study(tmp_path / "study", path) for _ in range(3)]
    claims = []
    threads = [
        threading.Thread(target=lambda study=study: claims.append(study.claim(Limits(1, None)))) for study in studies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([claim for claim in claims if claim]) == 1 and len(count(studies[0])) == 1


def test_hours_of_training_end_a_study(tmp_path, path):
    study, executor = make_study(tmp_path / "study", path), FakeTrials(seconds=600.0)
    make_search(study, path, hours=1.0).run_trials(executor)
    assert [round(options.seconds_left) for options in executor.run_trials] == [3600, 3000, 2400, 1800, 1200, 600]
    budget = study.budget(make_search(study, path, hours=1.0).limits)
    assert (budget.trials, budget.hours, budget.epochs, budget.num_settings) == (6, 1.0, 12, 3)
    assert (budget.num_combinations, budget.max_trials, budget.max_hours) == (None, None, 1.0)


def test_trials_at_once_share_the_hours_that_are_left(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    limits = make_search(study, path, hours=1.0).limits
    assert [study.claim(limits, num_jobs=2).seconds_left for _ in range(2)] == [1800, 1800]


def test_equal_settings_are_trained_once(tmp_path):
    path = write_recipe(tmp_path / "recipes")
    space = '{"learning_rate": LogUniform(1e-4, 1e-1), "optimizer.lazy": Choice((False, True))}'
    path.write_text(path.read_text().replace(space, '{"learning_rate": Choice((1e-2, 1e-3))}'))
    study, executor = make_study(tmp_path / "study", path, model="SASRec"), FakeTrials()
    make_search(study, path, 6).run_trials(executor)
    assert len(executor.run_trials) == 2 and len(study.results()) == 6
    copies = [result for result in study.results().values() if "copy_of" in result]
    assert len(copies) == 4 and all(copy["seconds"] == 0 for copy in copies)
    assert len({trial.value for trial in study.trials()}) == 2


def test_a_trial_whose_process_is_killed_is_resumed_once_and_then_failed(tmp_path, path):
    study, executor = make_study(tmp_path / "study", path), FakeTrials(code=-9)
    make_search(study, path, 2).run_trials(executor)
    assert [options.number for options in executor.run_trials] == [0, 0, 1, 1]
    results = study.results()
    assert [result["state"] for result in results.values()] == ["failed", "failed"]
    assert "killed by signal 9, as when memory runs out" in results[0]["reason"]
    assert study.best() is None and study.budget(make_search(study, path, 2).limits).trials == 2


def test_an_error_that_all_trials_would_meet_ends_the_search(tmp_path, path):
    study = make_study(tmp_path / "study", path)
    with pytest.raises(WrongInputError):
        make_search(study, path, 2).run_trials(FakeTrials(code=WRONG_INPUT))
    assert study.num_running() == 1
    make_search(study, path, 2).run_trials(FakeTrials())
    assert len(study.results()) == 2


def test_a_write_that_did_not_end_is_repaired(tmp_path, path):
    whole = searched(tmp_path / "whole", path)
    study = make_study(tmp_path / "study", path)
    make_search(study, path, 5).run_trials(FakeTrials())
    with study.folder.journal_path.open("ab") as file:
        file.write(b'{"op_code":4,"worker_')
    assert params(searched(tmp_path / "study", path)) == params(whole)


@pytest.mark.parametrize("line", [b"no journal\n", b"{}\n", b"[1]\n", b'{"op_code": 4, "worker_id": "x"}\n'])
def test_a_damaged_journal_is_one_line(tmp_path, path, line):
    study = make_study(tmp_path / "study", path)
    study.folder.journal_path.write_bytes(line + study.folder.journal_path.read_bytes())
    with pytest.raises(InputError, match=r"journal\.jsonl: is damaged: .*--fresh begins again"):
        make_study(tmp_path / "study", path)


def test_other_settings_or_data_are_refused(tmp_path, path):
    make_study(tmp_path / "study", path)
    for change in ({"seed": 2}, {"seeds": (1, 2)}, {"data": "0" * 64}):
        with pytest.raises(InputError, match="has a study of another recipe or of other options; changed"):
            make_study(tmp_path / "study", path, **change)
    path.write_text(path.read_text().replace("Uniform(0.0, 0.5)", "Uniform(0.0, 0.6)"))
    with pytest.raises(InputError, match=r'changed: - "high": 0.5; \+ "high": 0.6'):
        make_study(tmp_path / "study", path)
