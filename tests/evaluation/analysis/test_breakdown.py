import numpy as np
import pytest

from aprec_like.errors import InputError
from evaluation.analysis.breakdown import (
    _quantile_bins,
    beyond_accuracy_table,
    effects_table,
    measure_beyond_accuracy,
    stratify,
)
from evaluation.analysis.comparison import Rules
from evaluation.results.load import load_runs
from tests.evaluation.analysis.small_runs import MODELS, NUM_USERS, texts


def test_effects_across_and_down(crossed_run):
    runs = load_runs([crossed_run])
    table = effects_table(runs, "NDCG@10", Rules())
    assert table.header == ["NDCG@10", "BCE(k=1)", "Softmax", "BCE(k=1) to Softmax"]
    means = {name: runs.find(name).per_user("NDCG@10").mean() for name in MODELS}
    (sasrec, bert), (down,) = (list(map(texts, block)) for block in table.blocks)
    assert sasrec[3] == f"{means['SA'] / means['S1'] - 1:+.1%}*"
    assert bert[3] == f"{means['BA'] / means['B1'] - 1:+.1%}*"
    assert down[2] == f"{means['BA'] / means['SA'] - 1:+.1%}*"
    assert down[1] == f"{means['B1'] / means['S1'] - 1:+.1%}"  # no effect was planted there
    assert "4 steps" in table.caption


def test_a_learning_rate_that_is_crossed_with_both_is_a_third_factor(crossed_run):
    """Every model again with another learning rate, 0.05 better: architectures are compared at the same rate."""
    settings = crossed_run.read_recipe()
    trainings = [{"optimizer": {"class": "Adam", "learning_rate": rate}} for rate in (1e-3, 1e-4)]
    models = {name: model | {"training": trainings[0]} for name, model in settings["models"].items()}
    slow = {f"{name}, slow": model | {"training": trainings[1]} for name, model in models.items()}
    crossed_run.write_recipe(b"", settings | {"models": models | slow})
    for name in models:
        values = crossed_run.model(name, 1).read_per_user()
        crossed_run.model(f"{name}, slow", 1).write_per_user(values.assign(**{"NDCG@10": values["NDCG@10"] + 0.05}))
        crossed_run.model(f"{name}, slow", 1).finish(seconds_to_best=1.0)
    runs = load_runs([crossed_run])
    table = effects_table(runs, "NDCG@10", Rules())
    means = {name: runs.find(name).per_user("NDCG@10").mean() for name in (*models, *slow)}
    values, steps = (list(map(texts, block)) for block in table.blocks)
    fast_rate, slow_rate = "learning rate 0.001", "learning rate 0.0001"
    names, rates = ("SASRec", "BERT4Rec"), (fast_rate, slow_rate)
    assert [line[0] for line in values] == [f"{name}, {rate}" for rate in rates for name in names]
    assert values[2][3] == f"{means['SA, slow'] / means['S1, slow'] - 1:+.1%}*"
    assert [line[0] for line in steps] == [
        *(f"SASRec, {rate} to BERT4Rec, {rate}" for rate in rates),
        *(f"{name}, {fast_rate} to {name}, {slow_rate}" for name in names),
    ]
    assert steps[1][2] == f"{means['BA, slow'] / means['SA, slow'] - 1:+.1%}*"
    assert steps[3][1] == f"{0.05 / means['B1']:+.1%}*"
    assert "12 steps" in table.caption and "not in this grid" not in table.caption


def test_learning_rates_that_are_not_crossed_are_no_factor(crossed_run):
    expected = effects_table(load_runs([crossed_run]), "NDCG@10", Rules())
    settings = crossed_run.read_recipe()
    rates = dict(zip(settings["models"], (1e-3, 1e-4, 1e-3, 1e-3), strict=True))
    models = {
        name: model | {"training": {"optimizer": {"class": "Adam", "learning_rate": rates[name]}}}
        for name, model in settings["models"].items()
    }
    crossed_run.write_recipe(b"", settings | {"models": models})
    assert effects_table(load_runs([crossed_run]), "NDCG@10", Rules()).blocks == expected.blocks


def test_effects_use_the_crossed_part_and_name_the_other_models(crossed_run):
    expected = effects_table(load_runs([crossed_run]), "NDCG@10", Rules())
    settings = crossed_run.read_recipe()
    models = settings["models"]
    gbce = {"class": "GBCE", "num_negatives": 16, "calibration": 0.75}
    added = {"gSASRec": models["S1"] | {"loss": gbce}, "S1 again": models["S1"]}
    crossed_run.write_recipe(b"", settings | {"models": models | added})
    values = crossed_run.model("S1", 1).read_per_user()
    for name in added:
        crossed_run.model(name, 1).write_per_user(values)
        crossed_run.model(name, 1).finish(seconds_to_best=1.0)
    table = effects_table(load_runs([crossed_run]), "NDCG@10", Rules())
    assert table.header == expected.header and table.blocks == expected.blocks
    assert table.caption.endswith("not in this grid: gSASRec, S1 again.")


def test_effects_need_a_whole_grid(crossed_run):
    crossed_run.model("BA", 1).write_status("failed", reason="x")
    with pytest.raises(InputError, match="every architecture with every loss"):
        effects_table(load_runs([crossed_run]), "NDCG@10", Rules())


def test_beyond_accuracy_by_hand(crossed_run):
    """Everyone is shown the ten most popular of forty items: a quarter of the catalogue, places 1 to 10."""
    runs = load_runs([crossed_run])
    block = beyond_accuracy_table(runs, measure_beyond_accuracy(runs)).blocks[0]
    assert [line[1:] for line in block] == [["25.0%", "5.5"]] * 4


def test_strata_find_where_the_difference_lies(crossed_run):
    strata = stratify(load_runs([crossed_run]), "NDCG@10", "BA", "B1")
    by_length = [stratum for stratum in strata if stratum.by == "history length"]
    assert [stratum.bounds for stratum in by_length] == [(5, 5), (10, 10), (50, 50), (100, 100)]
    assert sum(stratum.num_users for stratum in by_length) == NUM_USERS
    for stratum in by_length[:2]:
        assert stratum.difference.low < 0 < stratum.difference.high or abs(stratum.difference.mean) < 0.01
    for stratum in by_length[2:]:
        assert stratum.difference.low > 0.3


def test_equal_values_stay_together():
    bins = _quantile_bins(np.array([1, 1, 1, 1, 1, 1, 1, 2, 3]))
    values = np.array([1, 1, 1, 1, 1, 1, 1, 2, 3])
    assert sum(map(len, bins)) == 9
    assert [set(values[rows]) & {1} for rows in bins].count({1}) == 1


def test_a_folder_says_what_it_lacks(crossed_run):
    (crossed_run.path / "cases.parquet").unlink()
    (crossed_run.path / "items.parquet").unlink()
    with pytest.raises(InputError, match="published folders may leave it out"):
        stratify(load_runs([crossed_run]), "NDCG@10", "BA", "B1")
    with pytest.raises(InputError, match="published folders may leave it out"):
        measure_beyond_accuracy(load_runs([crossed_run]))
