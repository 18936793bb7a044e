"""Every file of a results folder, damaged in every way, before every command.

A command gives the answer that it gave before the damage, or refuses in one line with exit code 2: never a traceback,
never another table. 60 of the cases in the default suite, 600 in the slow one; all are chosen by a fixed seed.
"""

import itertools
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from evaluation.results import store
from tests.conftest import circle_sequences, write_pairs
from tests.evaluation.results.workspace import RECIPE, TRAINED, Workspace

HUGE_BYTES = 1 << 40
"""Size of a file with a hole, larger than any memory; it takes no space."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """Two finished runs on different data, each with counting models and a trained one."""
    folder = tmp_path_factory.mktemp("fuzz")
    for name, seed in (("one", 0), ("two", 1)):
        (folder / name).mkdir()
        write_pairs(folder / name / "circle.txt", circle_sequences(60, seed=seed))
        recipe = RECIPE.replace("        # trained\n", TRAINED if name == "one" else "")
        (folder / name / "damage.py").write_text(recipe)
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert Workspace(folder / name, monkeypatch).run() == 0
    return folder


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def change_digit(path: Path, chance: random.Random) -> None:
    """Still a valid file, with another number in it."""
    data = bytearray(path.read_bytes())
    places = [place for place, byte in enumerate(data) if byte in b"0123456789"]
    if places:
        place = chance.choice(places)
        data[place] = ord("0") + (data[place] - ord("0") + 1) % 10
        path.write_bytes(data)
    else:
        flip(path, chance)


def truncate(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def make_huge(path: Path, chance: random.Random) -> None:
    os.truncate(path, HUGE_BYTES)


def delete(path: Path, chance: random.Random) -> None:
    path.unlink()


def replace_by_folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def replace_by_link(path: Path, chance: random.Random) -> None:
    aside = path.parents[len(path.parts) - path.parts.index("damage") - 1] / "aside"
    shutil.move(path, aside)
    path.symlink_to(aside)


def replace_by_broken_link(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def replace_by_endless_device(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def replace_by_pipe(path: Path, chance: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_another_file(path: Path, chance: random.Random) -> None:
    """By a file of another kind, or of the same kind of another model."""
    root = Path(*path.parts[: path.parts.index("damage") + 1])
    others = sorted(other for other in root.rglob("*") if other.is_file() and other != path)
    path.write_bytes(chance.choice(others).read_bytes())


def replace_by_that_of_another_run(path: Path, chance: random.Random) -> None:
    index = path.parts.index("damage")
    other = Path(*path.parts[:index]).parent / "two" / Path(*path.parts[index:])
    path.write_bytes(other.read_bytes() if other.exists() else b"{}")


def exchange_models(path: Path, chance: random.Random) -> None:
    """Exchange the folders, or the same file, of two models."""
    root = Path(*path.parts[: path.parts.index("damage") + 1])
    first, second = chance.sample(["Popularity", "Markov", "Again", "gSASRec"], 2)
    inside = chance.choice(["", "seed_1", f"seed_1/{path.name}"])
    if not (root / first / inside).exists() or not (root / second / inside).exists():
        inside = "seed_1"
    (root / first / inside).rename(root / "aside")
    (root / second / inside).rename(root / first / inside)
    (root / "aside").rename(root / second / inside)


UNREADABLE: set[str] = set()


def make_unreadable(path: Path, chance: random.Random) -> None:
    """Tests may run as root, who may read everything, so the system's answer is simulated."""
    UNREADABLE.add(str(path))


DAMAGES = (
    flip, change_digit, truncate, empty, make_huge, delete, replace_by_folder, replace_by_link, replace_by_broken_link,
    replace_by_endless_device, replace_by_pipe, replace_by_another_file, replace_by_that_of_another_run,
    exchange_models, make_unreadable,
)  # fmt: skip
COMMANDS = {
    "compare": lambda space: space.compare("--format", "json", "--pairwise", "--beyond-accuracy", "--check"),
    "compare --baseline": lambda space: space.compare("--format", "latex", "--baseline", "Popularity"),
    "run": lambda space: space.run(),
    "report": lambda space: space.report(),
    "recommend": lambda space: space.recommend("--model", "gSASRec", "--items", "3", "--json"),
    "recommend by counting": lambda space: space.recommend("--model", "Popularity", "--items", "3", "--json"),
}


def answer_of(space: Workspace, command: str) -> tuple[int, str, list[str]]:
    """Return exit code, standard output, and after a run its tables but for the last column, the time."""
    code = COMMANDS[command](space)
    tables = []
    if command == "run" and code == 0:
        lines = (space.results / "table.csv").read_text().splitlines()
        tables = [line.rpartition(",")[0] for line in lines] + [(space.results / "significance.csv").read_text()]
    return code, space.out.replace(str(space.folder), ""), tables


def is_one_printable_line(err: str) -> bool:
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    return len(errors) == 1 and err.splitlines()[-1] == errors[0] and errors[0].isprintable()


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_damage_gives_the_right_answer_or_one_clear_line(finished, tmp_path, monkeypatch, capsys, count):
    monkeypatch.setattr("evaluation.page.build.make_figures", lambda *_: [])  # drawing takes seconds and reads nothing
    shutil.copytree(finished, tmp_path / "whole")
    whole = Workspace(tmp_path / "whole" / "one", monkeypatch, capsys)
    answers = {command: answer_of(whole, command) for command in COMMANDS}
    assert [answer[0] for answer in answers.values()] == [1, 0, 0, 0, 0, 0]  # --check finds a number off
    files = sorted(path.relative_to(whole.folder) for path in whole.results.rglob("*") if path.is_file())
    files = [name for name in files if (whole.folder / name).stat().st_size and name.name != "report.html"]
    cases = list(itertools.product(files, DAMAGES, COMMANDS))
    random.Random(0).shuffle(cases)
    open_file, scan = os.open, os.scandir

    def guarded(function):
        def call(path, *arguments, **options):
            if str(path) in UNREADABLE:
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *arguments, **options)

        return call

    monkeypatch.setattr("os.open", guarded(open_file))
    monkeypatch.setattr(store.os, "scandir", guarded(scan))
    outcomes: Counter[str] = Counter()
    for number, (name, damage, command) in enumerate(cases[:count]):
        shutil.copytree(tmp_path / "whole", tmp_path / str(number))
        space = Workspace(tmp_path / str(number) / "one", monkeypatch, capsys)
        UNREADABLE.clear()
        damage(space.folder / name, random.Random(number))
        case = (str(name), damage.__name__, command)
        retrains = command == "run" and damage is not exchange_models and name.name == "status.json"
        if retrains and "gSASRec" in name.parts:
            continue
        found = answer_of(space, command)
        assert "Traceback" not in space.err, (case, space.err)
        assert all(line.isprintable() for line in (space.out + space.err).splitlines()), case
        if found == answers[command]:
            outcomes["right"] += 1
        else:
            assert found[0] == 2 and space.out == "" and is_one_printable_line(space.err), (case, found, space.err)
            outcomes["refused"] += 1
        UNREADABLE.clear()
        shutil.rmtree(tmp_path / str(number))
    print(dict(outcomes))
    assert outcomes["right"] >= count // 10 and outcomes["refused"] >= count // 3
