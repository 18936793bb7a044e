import pytest

from evaluation import compare
from tests.evaluation.made_runs import MIXED, make_run


def test_the_command_draws_and_prints_them_all(crossed_run, tmp_path, monkeypatch, capsys):
    options = [
        "--pairwise",
        "--effects",
        "--beyond-accuracy",
        "--explain",
        "BA",
        "S1",
        "--figures",
        str(tmp_path / "f"),
    ]
    for kind in ("text", "markdown", "latex", "json"):
        monkeypatch.setattr("sys.argv", ["compare", str(crossed_run.path), *options, "--format", kind])
        assert compare.run_command(compare.main) == 0
        assert "Coverage@10" in capsys.readouterr().out
    figures = sorted(path.name for path in (tmp_path / "f").iterdir())
    assert figures == [
        f"crossed-{kind}-NDCG@10.{suffix}" for kind in ("pairwise", "strata") for suffix in ("pdf", "png")
    ]
    starts = {"pdf": b"%PDF", "png": b"\x89PNG"}
    assert all((tmp_path / "f" / name).read_bytes().startswith(starts[name[-3:]]) for name in figures)


def test_two_runs_of_the_same_name_are_told_apart(tmp_path, monkeypatch, capsys):
    for parent in ("a", "b"):
        make_run(tmp_path / parent / "made")
    runs = [str(tmp_path / parent / "made") for parent in ("a", "b")]
    monkeypatch.setattr("sys.argv", ["compare", *runs, "--metric", "NDCG@10", "--format", "csv"])
    assert compare.main() == 0
    names = {line.split(",")[0] for line in capsys.readouterr().out.splitlines()[1:]}
    assert names == {f"{name} ({parent}/made)" for name in MIXED for parent in ("a", "b")}
    monkeypatch.setattr("sys.argv", ["compare", runs[0], runs[0]])
    assert compare.run_command(compare.main) == 2
    assert "is named twice" in capsys.readouterr().err


def test_what_was_asked_is_printed_without_the_main_table(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "made")
    for form in ("text", "markdown", "latex", "csv"):
        monkeypatch.setattr("sys.argv", ["compare", str(run.path), "--beyond-accuracy", "--format", form])
        assert compare.run_command(compare.main) == 0
        out = capsys.readouterr().out
        assert "Coverage@10" in out and "NDCG@10" not in out


def test_check_without_published_numbers_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["compare", str(make_run(tmp_path / "made").path), "--check"])
    assert compare.run_command(compare.main) == 2
    assert "--check needs published numbers" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--effects", "--pairwise", "--ladder", "--beyond-accuracy"])
def test_every_table_of_models_says_how_their_trainings_ended(crossed_run, monkeypatch, capsys, option):
    details = {"epochs": 5, "best_epoch": 4, "best_validation": 0.1, "stopped_by": "max_epochs"}
    crossed_run.model("S1", 1).finish(seconds_to_best=1.0, **details)
    monkeypatch.setattr("sys.argv", ["compare", str(crossed_run.path), option, "--format", "latex"])
    assert compare.run_command(compare.main) == 0
    assert "S1: still improving when training ended (best epoch 4 of 5)." in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("asked", "is_told"), [(("BA", "S1"), True), (("BA", "B1"), False)])
def test_where_two_models_differ_is_told_with_their_trainings_alone(crossed_run, monkeypatch, capsys, asked, is_told):
    details = {"epochs": 5, "best_epoch": 5, "best_validation": 0.1, "stopped_by": "time_limit"}
    crossed_run.model("S1", 1).finish(seconds_to_best=1.0, **details)
    monkeypatch.setattr("sys.argv", ["compare", str(crossed_run.path), "--explain", *asked])
    assert compare.run_command(compare.main) == 0
    ending = "training was ended by the time limit in epoch 5"
    told = f"S1: still improving when training ended (best epoch 5 of 5); {ending}."
    assert (told in capsys.readouterr().out.splitlines()) is is_told
