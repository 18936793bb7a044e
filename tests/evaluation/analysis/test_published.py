import pytest

from evaluation import compare
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.published import Verdict, compare_with_published, judge, published_table
from evaluation.analysis.significance import Interval
from evaluation.results.load import load_runs


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
    table = published_table(compare_models(load_runs([crossed_run])))
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
