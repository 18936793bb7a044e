"""Damaged, exchanged and missing files of a finished results folder, and disks that are full."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.running.jobs import one_by_one
from evaluation.running.lock import RunLock
from tests.conftest import circle_sequences, write_pairs
from tests.evaluation.results.workspace import RECIPE, Workspace


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("finished")
    write_pairs(folder / "circle.txt", circle_sequences(60))
    (folder / "damage.py").write_text(RECIPE)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert Workspace(folder, monkeypatch).run() == 0
    return folder


@pytest.fixture
def whole(finished, tmp_path, monkeypatch, capsys) -> Workspace:
    """A private copy of a finished run."""
    shutil.copytree(finished, tmp_path / "whole")
    return Workspace(tmp_path / "whole", monkeypatch, capsys)


def test_a_damaged_status_counts_as_unfinished(whole):
    path = whole.results / "Markov/seed_1/status.json"
    path.write_text(path.read_text().replace('"finished"', '"finishes"'))
    assert whole.run() == 0
    assert whole.err.count("status.json: is damaged") == 1 and "counts as unfinished" in whole.err
    assert "Popularity, seed 1: finished on" in whole.err and "Markov: finished in" in whole.err


def test_a_changed_digit_is_detected(whole):
    path = whole.results / "recipe.json"
    path.write_text(path.read_text().replace("0.9", "0.4", 1))
    assert whole.compare("--check") == 2
    assert "recipe.json: is damaged" in whole.err


def assert_refused(workspace: Workspace, code: int, line: str) -> None:
    """One line on standard error, exit code 2."""
    assert code == 2, workspace.err
    (error,) = [found for found in workspace.err.splitlines() if found.startswith("error: ")]
    assert line in error and "Traceback" not in workspace.err


def exchange(first: Path, second: Path) -> None:
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def test_a_model_in_the_folder_of_another_is_recognised(whole):
    exchange(whole.results / "Popularity/seed_1", whole.results / "Markov/seed_1")
    line = "seed_1: it holds the results of"
    assert_refused(whole, whole.compare(), line)
    assert_refused(whole, whole.run(), line)
    assert_refused(whole, whole.report(), line)
    assert_refused(whole, whole.recommend("--model", "Popularity", "--items", "1"), line)
    assert whole.run("--fresh") == 0 and whole.compare() == 0


def test_results_of_another_run_with_other_settings_are_recognised(whole):
    other = whole.copy(whole.folder.with_name("other"))
    recipe = other.folder / "damage.py"
    recipe.write_text(recipe.read_text().replace("depth=5", "depth=5, exclude_seen=False"))
    assert other.run("--fresh") == 0
    shutil.rmtree(whole.results / "Markov")
    shutil.copytree(other.results / "Markov", whole.results / "Markov")
    assert_refused(whole, whole.compare(), "its results are of other settings than the run has")


@pytest.mark.parametrize("names", [("recipe.json", "environment.json"), ("recipe.json", "dataset.json"),
                                   ("environment.json", "Markov/seed_1/status.json")])  # fmt: skip
def test_exchanged_json_files_are_recognised_by_their_kind(whole, names):
    exchange(*(whole.results / name for name in names))
    assert_refused(whole, whole.compare(), "is damaged: it holds the ")
    assert_refused(whole, whole.report(), "is damaged: it holds the ")


@pytest.mark.parametrize("name", ["metrics.json", "per_user.parquet", "history.csv"])
def test_a_missing_file_of_a_finished_model_is_said(whole, name):
    (whole.results / "Markov/seed_1" / name).unlink()
    assert_refused(whole, whole.run(), f"{name}: is missing; train again with --fresh --only")
    assert_refused(whole, whole.compare(), f"{name}: is missing")


def test_a_published_folder_may_leave_out_the_large_files(whole):
    (whole.results / "Markov/seed_1/top_items.parquet").unlink()
    assert whole.run() == 0
    assert "Markov, seed 1: has no top_items.parquet, as in a published folder" in whole.err
    assert whole.compare() == 0


CHANGES = {
    "evaluation": ("depth=5", "depth=5, exclude_seen=False"),
    "split": ("num_validation_users=50", "num_validation_users=40"),
    "models['Markov']": ('"Markov": MarkovChain()', '"Markov": Popularity()'),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_a_recipe_that_changes_while_a_run_goes_on_stops_it(whole, monkeypatch, changed):
    """It changes after the first model; nothing of another setting gets into the table."""
    recipe = whole.folder / "damage.py"
    source = recipe.read_text()
    table = (whole.results / "significance.csv").read_text()
    shutil.rmtree(whole.results)
    run_here = one_by_one.run_process

    def change_after_first(*arguments):
        code = run_here(*arguments)
        recipe.write_text(source.replace(*CHANGES[changed]))
        return code

    with monkeypatch.context() as patch:
        patch.setattr(one_by_one, "run_process", change_after_first)
        assert_refused(whole, whole.run(), f"damage.py: was changed during the run ({changed})")
    assert [path.parent.parent.name for path in whole.results.rglob("metrics.json")] == ["Popularity"]
    recipe.write_text(source)
    assert whole.run() == 0
    assert (whole.results / "significance.csv").read_text() == table


def test_a_data_file_that_changes_while_a_run_goes_on_stops_it(whole, monkeypatch):
    data = whole.folder / "circle.txt"
    lines = data.read_text()
    shutil.rmtree(whole.results)
    run_here = one_by_one.run_process

    def change_after_first(*arguments):
        code = run_here(*arguments)
        write_pairs(data, circle_sequences(60, seed=1))
        return code

    with monkeypatch.context() as patch:
        patch.setattr(one_by_one, "run_process", change_after_first)
        assert_refused(whole, whole.run(), "the data were changed during the run")
    status = json.loads((whole.results / "Markov/seed_1/status.json").read_text())
    assert status["state"] == "interrupted" and "data were changed" in status["reason"]
    data.write_text(lines)
    assert whole.run() == 0


LINKS = ("Markov/seed_1/log.txt", "Markov/seed_1/status.json", "Markov/seed_1", "Markov", "recipe.json", "figures")


@pytest.mark.parametrize("name", LINKS)
def test_links_inside_a_results_folder_are_refused_and_their_targets_left_alone(whole, name):
    """A write or a removal would go through them."""
    path, target = whole.results / name, whole.folder / "elsewhere"
    if path.exists():
        path.rename(target)
    else:
        target.mkdir()
    path.symlink_to(target)
    before = {found: found.read_bytes() for found in [target, *target.rglob("*")] if found.is_file()}
    for code in (whole.run, lambda: whole.run("--fresh"), whole.report):
        assert_refused(whole, code(), f"{path}: cannot be used: it is a link; a results folder holds its files itself")
    assert {found: found.read_bytes() for found in [target, *target.rglob("*")] if found.is_file()} == before
    if name != "Markov/seed_1/log.txt":  # which compare does not read
        assert_refused(whole, whole.compare(), "it is a link")


def test_a_linked_results_folder_is_used(whole):
    """The folder itself may be a link, to another disk for example."""
    whole.results.rename(whole.folder / "disk")
    whole.results.symlink_to(whole.folder / "disk")
    assert whole.run() == 0 and whole.compare() == 0


def test_one_run_at_a_time_and_readers_at_any_time(whole, monkeypatch):
    monkeypatch.setattr("evaluation.running.lock.SECONDS_TO_WAIT", 0.2)
    with RunLock(whole.results / ".lock"):
        assert whole.run() == 2
        assert whole.err.splitlines()[-1].startswith(f"error: {whole.results}: is in use by another run (process ")
        assert whole.compare() == 0
    assert whole.run() == 0


@pytest.mark.parametrize("name", ["..py", "рецепт \n[x].py", "a%2Fb.py"])
def test_a_recipe_of_any_name_writes_inside_the_results_folder(whole, tmp_path, name):
    source = (whole.folder / "damage.py").read_text()
    (whole.folder / name).write_text(source)
    results = tmp_path / "elsewhere" / "results"
    assert whole.run("--only", "Popularity", "--results", str(results), recipe=name) == 0
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["results"]
    (folder,) = results.iterdir()
    assert (folder / "Popularity/seed_1/metrics.json").is_file()


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize("refused", ["write", "log", "move"])
def test_a_full_disk_is_one_line_exit_code_2_and_all_files_intact(whole, monkeypatch, refused):
    """Whichever kind of write the system refuses, at any time in a run."""
    table = (whole.results / "significance.csv").read_text()
    (whole.results / "Markov/seed_1/status.json").unlink()
    name, fail = {
        "write": ("os.fsync", lambda descriptor: (_ for _ in ()).throw(FULL)),
        "move": ("pathlib.Path.replace", lambda part, path: (_ for _ in ()).throw(FULL)),
        "log": ("evaluation.running.progress.open_without_links", lambda *_: os.open("/dev/full", os.O_WRONLY)),
    }[refused]
    with monkeypatch.context() as patch:
        patch.setattr(name, fail)
        assert whole.run() == 2
    errors = [line for line in whole.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "cannot be written: No space left on device" in errors[0]
    assert "Traceback" not in whole.err and not list(whole.results.rglob(".part-*"))
    assert whole.run() == 0
    assert (whole.results / "significance.csv").read_text() == table


def test_too_little_disk_space_is_reported_before_training(whole, monkeypatch):
    monkeypatch.setattr("evaluation.running.preflight.predict_disk", lambda *_: 2**62)
    before = {path: path.read_bytes() for path in whole.results.rglob("*") if path.is_file() and path.name != ".lock"}
    assert whole.run("--fresh") == 2
    assert "are free" in whole.err
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.fixture
def small_disk(tmp_path):
    """A file system with room for a few of the run's files, where the system lets us mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)]
    if os.name != "posix" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems can't be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_in_the_middle_of_a_run(whole, small_disk, monkeypatch):
    monkeypatch.setattr("evaluation.running.preflight.predict_disk", lambda *_: 0)
    results = small_disk / "damage"
    assert whole.run("--results", str(small_disk)) == 2
    assert "cannot be written: No space left on device" in whole.err
    assert not list(results.rglob(".part-*"))
    for path in results.rglob("*.json"):
        json.loads(path.read_text())
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    assert whole.run("--results", str(small_disk)) == 0
    assert (results / "significance.csv").read_text() == (whole.results / "significance.csv").read_text()
