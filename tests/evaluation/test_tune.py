"""The command `tune`: what it writes, refuses and resumes; trials run in this process, or in none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aprec_like.recipe import load_recipe
from evaluation import tune
from evaluation.cli import DONE, run_command
from evaluation.tuning import tune_recipe
from evaluation.tuning.folders import StudyFolder
from evaluation.tuning.study import load_study
from tests.evaluation.tuning.small_studies import FakeTrials, InProcess, write_recipe, write_tuned_run

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def path(tmp_path):
    return write_recipe(tmp_path / "recipes")


def run_tune(monkeypatch, path, *arguments, executor=None):
    """Run the command with trials in this process; returns the exit code."""
    command = ["tune", str(path), "--results", str(path.parent / "results"), "--data", str(path.parent), *arguments]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(tune_recipe, "make_executor", lambda *arguments: (executor or FakeTrials(), 1))
    try:
        return run_command(tune.main)
    except SystemExit as leaving:
        return leaving.code


def test_a_search_writes_a_recipe_with_the_best_settings_and_their_budget(monkeypatch, path, capsys):
    assert run_tune(monkeypatch, path, "--trials", "3", "--fair") == DONE
    output = capsys.readouterr()
    assert "the test was never ranked" in output.out and "circle_tuned.py    runs the best settings" in output.err
    tuned = load_recipe(path.with_name("circle_tuned.py"))
    assert {name: budget.trials for name, budget in tuned.tuning.items()} == {"SASRec": 3, "gSASRec": 3}
    assert (path.parent / "results/circle-tuning/report.html").exists()


def test_an_interrupted_search_goes_on(monkeypatch, path, capsys):
    assert run_tune(monkeypatch, path, "--trials", "4", "--only", "gSASRec", executor=FakeTrials(stop_after=2)) == 130
    assert "finished trials and progress are kept; the same command" in capsys.readouterr().err
    executor = FakeTrials()
    assert (
        run_tune(monkeypatch, path, "--trials", "4", "--only", "gSASRec", "--retrain", "0", executor=executor) == DONE
    )
    assert [options.number for options in executor.run_trials] == [2, 3]
    assert (
        run_tune(monkeypatch, path, "--trials", "4", "--only", "gSASRec", "--retrain", "0", executor=executor) == DONE
    )
    assert len(executor.run_trials) == 2


def test_trainings_of_the_tuned_recipe_are_not_repeated(monkeypatch, path, capsys):
    arguments = ("--trials", "3", "--only", "gSASRec")
    assert run_tune(monkeypatch, path, *arguments, "--retrain", "0") == DONE
    study = load_study(StudyFolder(path.parent / "results/circle-tuning/gSASRec"), load_recipe(path))
    write_tuned_run(path.parent / "results/circle_tuned", study, study.best().number)
    executor = FakeTrials()
    assert run_tune(monkeypatch, path, *arguments, executor=executor) == DONE
    assert [options.seeds for options in executor.run_trials] == [(4,)]
    assert "trained again with 3 other seeds" in capsys.readouterr().out


def test_fair_budgets_need_a_space_for_every_network_and_no_larger_study(monkeypatch, path, capsys):
    assert run_tune(monkeypatch, path, "--trials", "3", "--only", "SASRec") == DONE
    assert run_tune(monkeypatch, path, "--trials", "2", "--fair") == 2
    assert "SASRec has had 3 trials; --trials 3 gives the others as many" in capsys.readouterr().err
    lines = [line for line in path.read_text().splitlines() if "optimizer.lazy" not in line]
    path.write_text("\n".join(lines))
    assert run_tune(monkeypatch, path, "--trials", "3", "--fair") == 2
    assert "SASRec has no search space; give it one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a search needs --trials or --hours"),
        (("--trials", "0"), "--trials must be at least 1"),
        (("--trials", "1", "--jobs", "0"), "--jobs must be a number of at least 1, or auto"),
        (("--trials", "1", "--jobs", "2", "--ray"), "use one of --jobs and --ray"),
        (("--hours", "-1"), "--hours must be positive"),
        (("--trials", "1", "--fair", "--only", "SASRec"), "leave out --only"),
        (("--trials", "1", "--only", "Popularity"), "Popularity has no search space"),
        (("--trials", "1", "--only", "GRU4Rec"), "the recipe has no model 'GRU4Rec'"),
        (("--trials", "1", "--output", "{recipe}"), "exists and was not written by evaluation.tune"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(monkeypatch, path, capsys, arguments, message):
    assert run_tune(monkeypatch, path, *(argument.format(recipe=path) for argument in arguments)) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (path.parent / "results").exists() and not path.with_name("circle_tuned.py").exists()


def test_a_wrong_space_is_one_line_and_exit_code_2(monkeypatch, path, capsys):
    path.write_text(path.read_text().replace('"dropout_rate"', '"dropuot_rate"'))
    assert run_tune(monkeypatch, path, "--trials", "1") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "circle.py:15: spaces['gSASRec'] has no setting 'dropuot_rate'; there are" in line


def test_the_plan_shows_the_spaces(monkeypatch, path, capsys):
    assert run_tune(monkeypatch, path, "--trials", "5", "--dry-run") == DONE
    text = capsys.readouterr().out
    assert "search space: learning_rate 0.0001 to 0.1 (log); optimizer.lazy one of False, True; continuous" in text
    assert "each: 5 trials, seeds 1 in every trial" in text


def test_without_optuna_the_extra_is_named(path):
    code = (
        "import sys; sys.modules['optuna'] = None; from evaluation import cli, tune; exit(cli.run_command(tune.main))"
    )
    command = [sys.executable, "-c", code, str(path), "--trials", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'pip install "aprec_like[tune]"' in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_the_tuned_recipe_is_at_least_as_good_on_validation(monkeypatch, path):
    assert run_tune(monkeypatch, path, "--trials", "6", "--only", "gSASRec", executor=InProcess()) == DONE
    found = json.loads((path.parent / "results/circle-tuning/summary.json").read_text())["gSASRec"]
    assert found["validation"] >= found["validation_of_own_settings"] and len(found["validation_retrained"]) == 3
