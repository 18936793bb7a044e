"""Damaged files of a finished results folder: every command gives the right answer or one clear line, no wrong table.

Models run in the test process, so that hundreds of damaged folders take seconds.
"""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation import compare, run
from evaluation.running import run_recipe, worker
from evaluation.running.lock import RunLock
from evaluation.running.signals import StopFlag
from tests.conftest import circle_sequences, write_pairs

RECIPE = """
from aprec_like.datasets import TextFile
from aprec_like.models import MarkovChain, Popularity
from aprec_like.recipe import Evaluation, Recipe
from aprec_like.splits import LeaveOneOut

recipe = Recipe(
    dataset=TextFile("circle.txt"),
    split=LeaveOneOut(num_validation_users=50),
    models={"Popularity": Popularity(), "Markov": MarkovChain(), "Again": MarkovChain()},
    evaluation=Evaluation(depth=5),
    published={"Markov": {"NDCG@10": 0.9}},
)
"""
COMPARISONS = (
    ("--format", "latex", "--baseline", "Popularity"),
    ("--format", "json", "--pairwise", "--beyond-accuracy", "--check", "--explain", "Markov", "Popularity"),
)
UNREAD = ("recipe.py", "environment.json", "log.txt", ".lock", "table.md", "table.tex", "table.csv", "significance.csv")
"""Files that `compare` does not read."""


class Workspace:
    """A folder with a recipe, data and results, and the commands."""

    def __init__(self, folder: Path, monkeypatch, capsys=None) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        self.results = folder / "damage"
        monkeypatch.setattr(run_recipe, "run_process", self._run_here)
        monkeypatch.setattr(StopFlag, "listen", lambda self: None)
        monkeypatch.setattr("evaluation.running.run_job.prepare_devices", lambda: None)
        monkeypatch.setattr("gc.collect", lambda: 0)  # statsmodels does it for every family of tests

    def _run_here(self, command, environment, descriptors) -> int:
        return self._called(worker, command[-1])

    def _called(self, command, *options: str) -> int:
        self.monkeypatch.setattr("sys.argv", [command.__name__, *options])
        return command.run_command(command.main)

    def run(self, *options: str, recipe: str = "damage.py") -> int:
        where = ("--data", str(self.folder), "--results", str(self.folder))
        return self._read(self._called(run, str(self.folder / recipe), *where, *options))

    def compare(self, *options: str) -> int:
        return self._read(self._called(compare, str(self.results), *options))

    def _read(self, code: int) -> int:
        self.out, self.err = self.capsys.readouterr() if self.capsys else ("", "")
        return code

    def copy(self, folder: Path) -> "Workspace":
        shutil.copytree(self.folder, folder)
        return Workspace(folder, self.monkeypatch, self.capsys)


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


def flip(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def overwrite(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + chance.randbytes(16) + data[start + 16 :]


def change_digit(data: bytes, chance: random.Random) -> bytes:
    """Still a valid file, with another number in it."""
    places = [place for place, byte in enumerate(data) if byte in b"0123456789"]
    if not places:
        return flip(data, chance)
    place = chance.choice(places)
    return data[:place] + str((int(chr(data[place])) + 1) % 10).encode() + data[place + 1 :]


DAMAGES = {
    "flipped": flip,
    "a digit changed": change_digit,
    "overwritten": overwrite,
    "truncated": lambda data, chance: data[: chance.randrange(len(data))],
    "emptied": lambda data, chance: b"",
}


def check_commands(workspace: Workspace, answers: dict, name: str) -> None:
    """Every command on a damaged folder: what it said before the damage, or one line and exit code 1 or 2."""
    for options, answer in answers.items():
        code = workspace.compare(*options)
        if (code, workspace.out) != answer:
            assert code == 2 and workspace.out == "", (options, workspace.out)
            assert workspace.err.startswith("error: ") and workspace.err.count("\n") == 1, workspace.err
            assert not name.endswith(UNREAD)


@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_damage_gives_the_right_answer_or_one_clear_line(whole, tmp_path, count):
    answers = {}
    for options in COMPARISONS:
        code = whole.compare(*options)
        answers[options] = (code, whole.out)
    table = (whole.results / "significance.csv").read_text()
    files = sorted(path.relative_to(whole.folder) for path in whole.results.rglob("*") if path.is_file())
    files = [path for path in files if (whole.folder / path).stat().st_size]
    noticed = 0
    for number in range(count):
        chance = random.Random(number)
        name = files[number % len(files)]
        damage = chance.choice(list(DAMAGES))
        workspace = whole.copy(tmp_path / f"copy-{number}")
        path = workspace.folder / name
        path.write_bytes(DAMAGES[damage](path.read_bytes(), chance))
        check_commands(workspace, answers, str(name))

        # The run repairs what it can; --fresh repairs the rest.
        code = workspace.run()
        assert "Traceback" not in workspace.err
        if code != 0:
            assert code == 2 and workspace.err.splitlines()[-1].startswith("error: "), (name, damage, workspace.err)
            noticed += 1
            of_model = ("--only", name.parts[1]) if len(name.parts) > 2 else ()
            assert workspace.run("--fresh", *of_model) == 0, (name, damage, workspace.err)
        assert (workspace.results / "significance.csv").read_text() == table, (name, damage)
        shutil.rmtree(workspace.folder)
    assert noticed >= count // 10  # most files that hold numbers of a model can only be made again


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
    patches = {
        "write": ("os.fsync", lambda descriptor: (_ for _ in ()).throw(FULL)),
        "move": ("pathlib.Path.replace", lambda part, path: (_ for _ in ()).throw(FULL)),
        "log": ("evaluation.running.progress.Log.write", None),
    }
    name, fail = patches[refused]
    if refused == "log":
        (whole.results / "Markov/seed_1/status.json").unlink()
        (whole.results / "Markov/seed_1/log.txt").unlink()
        (whole.results / "Markov/seed_1/log.txt").symlink_to("/dev/full")
        assert whole.run() == 2
    else:
        with monkeypatch.context() as patch:
            patch.setattr(name, fail)
            assert whole.run() == 2
    errors = [line for line in whole.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and "cannot be written: No space left on device" in errors[0]
    assert "Traceback" not in whole.err and not list(whole.results.rglob(".part-*"))
    if refused == "log":
        (whole.results / "Markov/seed_1/log.txt").unlink()
    assert whole.run() == 0
    assert (whole.results / "significance.csv").read_text() == table


def test_too_little_disk_space_is_reported_before_training(whole, monkeypatch):
    monkeypatch.setattr("evaluation.running.preflight.predict_disk", lambda *_: 2**62)
    before = {path: path.read_bytes() for path in whole.results.rglob("*") if path.is_file() and path.name != ".lock"}
    assert whole.run("--fresh") == 2
    assert "GiB are free" in whole.err
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
