import numpy as np
import pytest
from scipy import stats

from aprec_like.errors import InputError
from evaluation import compare
from evaluation.analysis.comparison import Rules
from evaluation.analysis.ladder import ladder_table, num_differences
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import MIXED, make_run


def set_validation(run, values):
    """Finish models again with these best validation values, by name."""
    for name, value in values.items():
        run.model(name, 1).finish(seconds_to_best=1.0, best_validation=value)


def test_validation_decides_on_every_step_and_the_test_only_describes(tmp_path):
    run = make_run(tmp_path / "made")
    set_validation(run, {"SASRec": 0.10, "SASRec-Softmax": 0.30, "gSASRec <t> & $k$": 0.31, "SSM": 0.05})
    runs = load_runs([run])
    (lines,) = ladder_table(runs, "NDCG@10", Rules()).blocks
    assert [line[0] for line in lines] == list(MIXED)
    validation = dict(zip(MIXED, (None, 0.10, 0.30, 0.31, 0.05), strict=True))
    assert [line[2] for line in lines] == ["" if value is None else f"{value:.4f}" for value in validation.values()]
    for name, origin, value, step, *_ in lines:
        before = validation[origin] if origin else None
        assert step == ("" if before is None else f"{float(value) - before:+.4f}"), name
    assert lines[2][1] == "SASRec" and lines[2][5] == "yes"
    values = [runs.find(name).per_user("NDCG@10") for name in MIXED]
    spread = np.std(values[2] - values[1], ddof=1)  # made_runs validates 64 users
    assert lines[2][4] == f"{stats.t.ppf(0.975, 63) * spread / np.sqrt(64):.4f}"
    assert [line[7] for line in lines] == [f"{each.mean():.4f}" for each in values]


def test_without_the_number_of_validation_users_no_step_is_judged(tmp_path):
    run = make_run(tmp_path / "made")
    run.write_dataset({key: value for key, value in run.read_dataset().items() if key != "split"})
    (lines,) = ladder_table(load_runs([run]), "NDCG@10", Rules()).blocks
    assert lines[2][3:6] == ["0.0000", "", ""]


def test_settings_that_differ_are_counted_and_a_part_of_another_class_once():
    base = {"class": "SASRec", "dim": 64, "dropout": 0.2}
    gated = {**base, "block": {"class": "LiGR", "feed_forward": {"class": "SwiGLU", "expansion": 4}}}
    assert num_differences(base, base) == 0
    assert num_differences(base, {**base, "dim": 128, "dropout": 0.3}) == 2
    assert num_differences(base, gated) == num_differences(gated, base) == 1
    wider = {**gated, "block": {"class": "LiGR", "feed_forward": {"class": "SwiGLU", "expansion": 1}}}
    assert num_differences(gated, wider) == 1
    assert num_differences(gated, {**base, "block": {"class": "HSTU"}}) == 1


def test_one_model_is_no_ladder(tmp_path):
    run = make_run(tmp_path / "made", {"SASRec": MIXED["SASRec"]})
    with pytest.raises(InputError, match="a ladder needs two finished models"):
        ladder_table(load_runs([run]), "NDCG@10", Rules())


@pytest.mark.parametrize("kind", ["text", "csv"])
def test_the_command_prints_it(tmp_path, monkeypatch, capsys, kind):
    run = make_run(tmp_path / "made")
    monkeypatch.setattr("sys.argv", ["compare", str(run.path), "--ladder", "--metric", "NDCG@10", "--format", kind])
    assert compare.main() == 0
    assert "Half-width" in capsys.readouterr().out
