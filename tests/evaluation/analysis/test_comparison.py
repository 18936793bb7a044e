import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from aprec_like.errors import InputError
from evaluation.analysis.comparison import Rules, compare_models
from evaluation.analysis.significance import paired_test
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from tests.evaluation.analysis.small_runs import SETTINGS, compare, other_run, write_values


def test_the_comparator_is_the_best_and_stars_follow_the_corrected_p_value(run):
    comparison = compare(run)
    assert comparison.ranked("NDCG@10")[0] == "Best"
    cells = {row.name: row.cells["NDCG@10"] for row in comparison.rows}
    assert cells["Best"].test is None
    assert cells["A_B & 50%"].p_corrected < 1e-6 < 0.05 < cells["Second"].p_corrected
    assert comparison.family_size == 6  # three pairs of models under two metrics
    assert comparison.remarks[-2:] == ["Never: not run", "Oracle: not run"]


def test_a_baseline_replaces_the_best_as_comparator(run):
    comparison = compare(run, baseline="Second", metrics=("NDCG@10",))
    assert {row.name for row in comparison.rows if row.cells["NDCG@10"].test is None} == {"Second"}
    assert comparison.family_size == 2
    with pytest.raises(InputError, match="no finished model 'Never'; finished are A_B & 50%, Best, Second"):
        compare(run, baseline="Never")


def test_several_seeds_are_averaged_per_user_and_their_spread_is_shown(run):
    one = run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy()
    write_values(run, "Best", 2, one + 0.1)
    cell = next(row for row in compare(run).rows if row.name == "Best").cells["NDCG@10"]
    assert cell.value.mean == pytest.approx(one.mean() + 0.05)
    assert cell.seed_std == pytest.approx(0.1 / np.sqrt(2))


def test_models_tested_on_other_users_are_refused(run):
    write_values(run, "Never", 1, np.zeros(300), users=np.arange(1, 301))
    with pytest.raises(InputError, match="Never, seed 1, was tested on other users"):
        compare(run)


def test_unfinished_models_are_remarks_not_rows(run):
    run.model("Never", 1).write_status("failed", reason="the loss is not finite")
    comparison = compare(run)
    assert "Never" not in {row.name for row in comparison.rows}
    assert "Never, seed 1: failed: the loss is not finite" in comparison.remarks


def test_the_oracle_is_no_baseline(run):
    write_values(run, "Oracle", 1, np.ones(300))
    with pytest.raises(InputError, match="Oracle is the best possible ranking"):
        compare_models(load_runs([run]), Rules(baseline="Oracle"))


def test_a_folder_without_a_run_and_an_unknown_metric_are_refused(run, tmp_path):
    with pytest.raises(InputError, match="is not a results folder"):
        compare(RunFolder(tmp_path / "nothing"))
    with pytest.raises(InputError, match=r"there is no metric MAP@3; there are MRR, .*; stored are NDCG@10, Recall@10"):
        compare(run, metrics=("MAP@3",))


def test_a_difference_that_the_data_could_not_show_is_remarked(run):
    comparison = compare(run)
    cell = next(row for row in comparison.rows if row.name == "Second").cells["NDCG@10"]
    assert abs(cell.test.difference.mean) < cell.detectable
    small = [remark for remark in comparison.remarks if "smaller than these data could show" in remark]
    start = "differences from the best that are not significant, and smaller than these data could show: "
    assert small == [f"{start}Second"]  # in both metrics, which goes without saying


def test_one_remark_names_all_differences_that_the_data_could_not_show(run):
    write_values(run, "Never", 1, run.model("Second", 1).read_per_user()["NDCG@10"].to_numpy())
    remark = next(remark for remark in compare(run, baseline="Best").remarks if "could show" in remark)
    assert remark.startswith("differences from Best") and remark.endswith(": Second; Never")


def test_runs_on_the_same_data_stand_in_one_table(run):
    comparison = compare(run, other_run(run, "later"))
    names = [row.name for row in comparison.rows]
    assert names == ["A_B & 50%", "Best (some_run)", "Second", "Best (later)", "Other"]
    assert comparison.family_size == 20


@pytest.mark.parametrize("test", ["paired-t", "wilcoxon"])
def test_the_family_without_a_baseline_is_all_pairs_of_models_and_metrics(run, test):
    """Two models differ clearly from the best; Holm over six pairs, of which only the t-test computes the others."""
    comparison = compare(run, test=test)
    p_values = [
        [cell.test.p_value for row in comparison.rows if (cell := row.cells[metric]).test is not None]
        for metric in comparison.metrics
    ]
    worst, second = comparison.rows[0].cells["NDCG@10"], comparison.rows[2].cells["NDCG@10"]
    values = load_runs([run])
    others = paired_test(*(values.find(name).per_user("NDCG@10") for name in ("A_B & 50%", "Second"))).p_value
    family = [*p_values[0], *p_values[1], *([others] * 2 if test == "paired-t" else [1.0] * 2)]
    expected = multipletests(family, method="holm")[1]
    assert (worst.p_corrected, second.p_corrected) == pytest.approx((expected[0], expected[1]), rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sha256": "other"}, "the data differ"),
        ({"split": {"digest": "other"}}, "the splits differ"),
        ({"split": {"digest": "split", "train_interactions": 7}}, "the splits differ"),
    ],
)
def test_runs_on_other_data_or_splits_are_refused(run, changes, reason):
    with pytest.raises(InputError, match=reason):
        compare(run, other_run(run, "later", **changes))


SAMPLED = {"num_candidates": 100, "seed": 1}


@pytest.mark.parametrize(
    ("mine", "theirs", "reason"),
    [
        ({"exclude_seen": True}, {"exclude_seen": False}, "one excludes seen items"),
        ({"candidates": SAMPLED}, {"candidates": SAMPLED | {"num_candidates": 99}}, "sampled candidates differ"),
        ({"candidates": SAMPLED}, {"candidates": SAMPLED | {"seed": 2}}, "sampled candidates differ"),
        ({"depth": 100}, {"depth": 10}, None),
        ({"candidates": SAMPLED}, {"candidates": SAMPLED}, None),
    ],
)
def test_evaluations_in_which_a_metric_means_something_else_are_refused(run, mine, theirs, reason):
    other = other_run(run, "later")
    for folder, changes in ((run, mine), (other, theirs)):
        recipe = folder.read_recipe()
        columns = ["NDCG@10", "NDCG@10 (sampled)"]
        folder.write_recipe(b"", recipe | {"evaluation": recipe["evaluation"] | changes, "columns": columns})
        for _, _, model in list(folder.models()):
            frame = model.read_per_user()
            model.write_per_user(frame.assign(**{"NDCG@10 (sampled)": frame["NDCG@10"]}))
            model.finish(seconds_to_best=1.0)
    if reason is None:
        compare(run, other)
    else:
        with pytest.raises(InputError, match=reason):
            compare(run, other)
    if "candidates" in mine:
        compare(run, other, metrics=("NDCG@10",))  # the ranking of the catalogue needs no candidates


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds": [4]},
        {"groups": {"all": ["Other"]}},
        {"published": {}},
        {"literature": {}},
        {"models": {"Best": {"loss": {}}, "Other": {}}},
    ],
)
def test_runs_whose_recipes_differ_in_what_does_not_change_a_metric_are_compared(run, changes):
    other = other_run(run, "later")
    other.write_recipe(b"", other.read_recipe() | changes)
    assert len(compare(run, other).rows) == 5


@pytest.mark.parametrize("change", ["one more user", "another target", "another order"])
def test_runs_with_other_users_or_targets_are_refused(run, change):
    other = other_run(run, "later")
    for name in ("Best", "Other"):
        folder = other.model(name, 1)
        frame = folder.read_per_user()
        if change == "one more user":
            frame = pd.concat([frame, frame.tail(1).assign(user=10**6)], ignore_index=True)
        elif change == "another target":
            frame.loc[7, "target"] += 1
        else:
            frame = frame.iloc[::-1].reset_index(drop=True)
        folder.write_per_user(frame)
        folder.finish(seconds_to_best=1.0)
    with pytest.raises(InputError, match="users or targets differ"):
        compare(run, other)


def test_the_best_and_the_second_of_several_models_are_emphasised(run, tmp_path):
    write_values(run, "Oracle", 1, np.ones(300))
    comparison = compare(run)
    names = ("Best", "Second", "A_B & 50%", "Oracle")
    assert [comparison.emphasis(name, "NDCG@10") for name in names] == ["best", "second", None, None]
    single = RunFolder(tmp_path / "single")
    single.write_recipe(b"", SETTINGS)
    write_values(single, "Best", 1, np.ones(300))
    assert compare(single).emphasis("Best", "NDCG@10") is None
