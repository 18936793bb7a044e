import pytest

from evaluation import compare
from evaluation.analysis.comparison import Rules, compare_models
from evaluation.analysis.published import (
    Verdict,
    compare_marks,
    compare_times,
    compare_with_published,
    is_as_published,
    judge,
    published_table,
)
from evaluation.analysis.significance import Interval
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import small_dataset


@pytest.mark.parametrize(
    ("published", "digits", "expected"),
    [
        (0.151, 3, Verdict.INSIDE),
        (0.16, 2, Verdict.INSIDE),  # the paper's 0.16 may have been 0.155
        (0.16, 3, Verdict.OFF),  # its 0.160 can't
        (0.157, 3, Verdict.CLOSE),
        (0.165, 3, Verdict.OFF),
    ],
)
def test_the_verdict_allows_for_the_rounding_of_the_published_number(published, digits, expected):
    assert judge(Interval(0.15, 0.145, 0.1555), published, digits) is expected


def test_a_zero_at_the_end_of_a_published_number_is_a_digit(crossed_run):
    """0.300 is the float 0.3; other numbers of the metric tell how many digits the paper has."""
    settings = crossed_run.read_recipe()
    published = {"SA": {"NDCG@10": 0.3}, "S1": {"NDCG@10": 0.123}}
    crossed_run.write_recipe(b"", settings | {"published": published})
    table = published_table([compare_models(load_runs([crossed_run]))])
    assert [row[4] for row in table.blocks[0] if row[0] == "SA"] == ["0.300"]


def test_a_published_number_that_is_off_fails_the_check(crossed_run, monkeypatch, capsys):
    numbers = {number.model: number for number in compare_with_published(compare_models(load_runs([crossed_run])))}
    verdicts = {name: number.verdict for name, number in numbers.items()}
    assert verdicts == {"SA": Verdict.INSIDE, "S1": Verdict.CLOSE, "B1": Verdict.OFF}
    assert numbers["B1"].ratio == pytest.approx(numbers["B1"].ours.mean / 0.9)
    monkeypatch.setattr("sys.argv", ["compare", str(crossed_run.path), "--check"])
    assert compare.run_command(compare.main) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-3] for line in lines if line.startswith("B1") and line.endswith("off")] == ["0.90"]


CLAIMS = {
    "published": {
        "SA": {"NDCG@10": 0.5, "Minutes": 9},
        "S1": {"NDCG@10": 0.41, "Minutes": 13},
        "B1": {"NDCG@10": 0.9, "Minutes": 86},
        "BA": {"NDCG@10": 0.1, "Minutes": 0.1},
    },
    "published_stars": {"S1": ["NDCG@10"], "SA": ["NDCG@10"]},
}


def claim(run, **changes):
    """Give a run the claims of a paper; return its comparison."""
    run.write_recipe(b"", run.read_recipe() | CLAIMS | changes)
    return compare_models(load_runs([run]))


def test_marks_of_the_paper_are_compared_with_ours(crossed_run):
    """Every model differs from the best here, BA; the paper marks S1 and SA, not B1; the best itself has no mark."""
    comparison = claim(crossed_run)
    assert {row.name for row in comparison.rows if comparison.is_significant(row.cells["NDCG@10"])} == {
        "S1",
        "B1",
        "SA",
    }
    verdicts = {mark.model: mark.verdict for mark in compare_marks(comparison)}
    assert verdicts == {"S1": Verdict.SAME_MARK, "B1": Verdict.OTHER_MARK, "SA": Verdict.SAME_MARK}
    assert compare_marks(compare_models(load_runs([crossed_run]), Rules(baseline="S1"))) == []


def test_training_times_are_ratios_to_the_model_that_took_the_paper_longest(crossed_run):
    """All models took a second here; times below a minute in the paper are rounded too coarsely to be compared."""
    times = {time.model: time for time in compare_times(claim(crossed_run))}
    assert set(times) == {"SA", "S1"}
    assert (times["S1"].reference, times["S1"].ours) == ("B1", 1.0)
    assert times["S1"].theirs == pytest.approx(13 / 86)


def test_a_known_difference_does_not_fail_the_check_and_its_reason_is_shown(crossed_run):
    assert not is_as_published(claim(crossed_run))
    assert not is_as_published(claim(crossed_run, known_differences={"B1": "smaller"}))  # BA is off too
    comparison = claim(crossed_run, known_differences={"B1": "trained for an hour", "BA": "other users"})
    assert is_as_published(comparison)
    table = published_table([comparison])
    assert [row[-1] for row in table.blocks[0] if row[:2] == ["B1", "NDCG@10"]] == ["off (known)"]
    assert table.remarks[0] == "B1: a known difference: trained for an hour"


def test_several_runs_are_checked_in_one_table_though_their_data_differ(crossed_run, run, monkeypatch, capsys):
    run.write_dataset(small_dataset())
    monkeypatch.setattr("sys.argv", ["compare", str(crossed_run.path), str(run.path), "--check"])
    assert compare.run_command(compare.main) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["Run", "Model"]
    assert {line.split()[0] for line in lines if "interval" in line and "to" in line.split()} == {"crossed"}
