"""What the commands share."""

from evaluation import cli


def test_work_of_several_seconds_prints_its_progress_and_short_work_does_not(monkeypatch, capsys):
    """A clock that goes on by two seconds whenever it is read; a line is due every three."""
    assert list(cli.track(range(4), "steps", 4)) == [0, 1, 2, 3]
    assert capsys.readouterr().err == ""
    clock = iter(range(0, 100, 2))
    monkeypatch.setattr(cli.time, "monotonic", lambda: next(clock))
    assert list(cli.track("abcd", "letters", 1_000)) == ["a", "b", "c", "d"]
    assert capsys.readouterr().err.splitlines() == ["letters: 1 of 1,000", "letters: 3 of 1,000"]
