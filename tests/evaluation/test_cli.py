"""What the commands share."""

import sys
from types import ModuleType

from evaluation import cli


def test_work_of_several_seconds_prints_its_progress_and_short_work_does_not(monkeypatch, capsys):
    """A clock that goes on by two seconds whenever it is read; a line is due every three."""
    assert list(cli.track(range(4), "steps", 4)) == [0, 1, 2, 3]
    assert capsys.readouterr().err == ""
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(cli.time, "monotonic", lambda: next(clock))
    assert list(cli.track("abcd", "letters", 1_000)) == ["a", "b", "c", "d"]
    assert capsys.readouterr().err.splitlines() == ["letters: 1 of 1,000", "letters: 3 of 1,000"]


def test_another_package_of_the_same_name_is_refused(tmp_path, monkeypatch, capsys):
    """With an editable installation, Python takes modules that the other package lacks from this one."""
    assert cli.run_command(lambda: 0) == 0
    other = ModuleType("evaluation")
    other.__file__ = str(tmp_path / "evaluation/__init__.py")
    monkeypatch.setitem(sys.modules, "evaluation", other)
    assert cli.run_command(lambda: 0) == cli.WRONG_INPUT
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path}/evaluation: is another package") and error.count("\n") == 1
    assert "aprec-like" in error
