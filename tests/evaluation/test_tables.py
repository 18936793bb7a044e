import csv
import io

import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from evaluation import tables
from evaluation.comparison import compare_models
from evaluation.store import RunFolder

SETTINGS = {
    "dataset": {},
    "split": {},
    "evaluation": {"metrics": ["NDCG@10", "Recall@10"], "exclude_seen": True},
    "models": {"A_B & 50%": {}, "Best": {}, "Second": {}, "Never": {}, "Oracle": {"class": "Oracle"}},
    "columns": ["NDCG@10", "Recall@10"],
    "published": {"Best": {"NDCG@10": 0.3}},
    "literature": {"Quoted": {"NDCG@10": 0.99}},
}


def write_model(run, name, seed, ndcg, users=None):
    users = np.arange(len(ndcg)) if users is None else users
    folder = run.model(name, seed)
    folder.write_per_user(pd.DataFrame({"user": users, "target": users, "NDCG@10": ndcg, "Recall@10": ndcg}))
    folder.finish(seconds_to_best=90.0)


@pytest.fixture
def run(tmp_path):
    random = np.random.default_rng(0)
    run = RunFolder(tmp_path / "some_run")
    run.write_recipe(b"", SETTINGS)
    base = random.random(300)
    write_model(run, "A_B & 50%", 1, base * 0.2)
    write_model(run, "Best", 1, base)
    noise = random.normal(scale=0.5, size=300)
    write_model(run, "Second", 1, base + noise - noise.mean() - 0.001)
    return run


def test_the_comparator_is_the_best_and_stars_follow_the_corrected_p_value(run):
    comparison = compare_models(run)
    assert comparison.ranked("NDCG@10")[0] == "Best"
    cells = {row.name: row.cells["NDCG@10"] for row in comparison.rows}
    assert cells["Best"].test is None
    assert cells["A_B & 50%"].p_corrected < 1e-6 < 0.05 < cells["Second"].p_corrected
    assert comparison.family_size == 4
    assert comparison.remarks == ["Never: not run", "Oracle: not run"]


def test_a_baseline_replaces_the_best_as_comparator(run):
    comparison = compare_models(run, baseline="Second", metrics=("NDCG@10",))
    assert {row.name for row in comparison.rows if row.cells["NDCG@10"].test is None} == {"Second"}
    with pytest.raises(InputError, match="no finished model Never"):
        compare_models(run, baseline="Never")


def test_markdown_marks_best_second_and_significance(run):
    lines = tables.as_markdown(compare_models(run)).splitlines()
    assert lines[0].startswith("| Model | NDCG@10 | Recall@10 | NDCG@10 (paper)")
    assert "**0." in next(line for line in lines if line.startswith("| Best"))
    assert "<u>0." in next(line for line in lines if line.startswith("| Second"))
    assert "* |" in next(line for line in lines if line.startswith("| A_B"))
    assert any(line.startswith("| Quoted (quoted) |") and "0.99" in line for line in lines)


def test_the_caption_states_users_test_level_correction_family_and_seen_items(run):
    text = tables.caption(compare_models(run))
    for part in (
        "300 users",
        "seen items excluded",
        "paired t-test",
        "p < 0.05",
        "Holm-corrected",
        "4 tests",
        "from the best",
    ):
        assert part in text


def test_latex_escapes_names_and_is_a_whole_table(run):
    text = tables.as_latex(compare_models(run))
    assert r"A\_B \& 50\% &" in text
    assert text.startswith(r"\begin{table}") and text.rstrip().endswith(r"\end{table}")
    columns = text.split(r"\begin{tabular}{")[1].split("}")[0]
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    unescaped = body.replace(r"\&", "")
    rows = [row for row in unescaped.split("\n") if row.endswith(r"\\")]
    assert len(rows) == 5
    assert all(row.count("&") == len(columns) - 1 for row in rows)


def test_csv_is_unrounded(run):
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(compare_models(run)))))
    best = next(row for row in rows if row["model"] == "Best" and row["metric"] == "NDCG@10")
    expected = run.model("Best", 1).read_per_user()["NDCG@10"].mean()
    assert float(best["mean"]) == pytest.approx(expected, rel=1e-15)
    tests = list(csv.DictReader(io.StringIO(tables.significance_csv(compare_models(run)))))
    assert {row["comparator"] for row in tests} == {"Best"}


def test_several_seeds_are_averaged_per_user_and_their_spread_is_shown(run):
    one = run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy()
    write_model(run, "Best", 2, one + 0.1)
    cell = next(row for row in compare_models(run).rows if row.name == "Best").cells["NDCG@10"]
    assert cell.value.mean == pytest.approx(one.mean() + 0.05)
    assert cell.seed_std == pytest.approx(0.1 / np.sqrt(2))


def test_models_tested_on_other_users_are_refused(run):
    write_model(run, "Never", 1, np.zeros(300), users=np.arange(1, 301))
    with pytest.raises(InputError, match="Never, seed 1, was tested on other users"):
        compare_models(run)


def test_unfinished_models_are_remarks_not_rows(run):
    run.model("Never", 1).write_status("failed", reason="the loss is not finite")
    comparison = compare_models(run)
    assert "Never" not in {row.name for row in comparison.rows}
    assert "Never, seed 1: failed: the loss is not finite" in comparison.remarks


def test_the_oracle_stands_below_a_rule_and_is_never_best_or_tested(run):
    before = compare_models(run)
    write_model(run, "Oracle", 1, np.ones(300))
    comparison = compare_models(run)
    assert comparison.ranked("NDCG@10") == before.ranked("NDCG@10")
    assert comparison.family_size == before.family_size
    assert [row.name for row in comparison.bounds] == ["Oracle"]
    lines = tables.as_text(comparison).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("Oracle"))
    assert set(lines[place - 1]) == set(lines[place + 1]) == {"-"}
    assert " 1.0000 " in lines[place]
    assert "Oracle" in tables.as_csv(comparison)
    assert "Oracle" not in tables.significance_csv(comparison)


def test_groups_stand_between_rules_and_sampled_metrics_are_marked_as_not_comparable(run):
    evaluation = SETTINGS["evaluation"] | {"candidates": {"num_candidates": 100}}
    run.write_recipe(b"", SETTINGS | {"groups": {"ours": ["Second", "Best"]}, "evaluation": evaluation})
    text = tables.as_text(compare_models(run))
    starts = [line.split("  ")[0] for line in text.splitlines() if line and not line.startswith("Means")]
    rule = next(start for start in starts if set(start) == {"-"})
    assert starts[:8] == ["Model", rule, "A_B & 50%", rule, "Best", "Second", rule, "Quoted (quoted)"]
    assert "(sampled): the target among itself and 100 drawn items, not comparable" in text


def test_a_folder_without_a_run_and_an_unknown_metric_are_refused(run, tmp_path):
    with pytest.raises(InputError, match="is not a results folder"):
        compare_models(RunFolder(tmp_path / "nothing"))
    with pytest.raises(InputError, match="no metric MAP@3; it has NDCG@10, Recall@10"):
        compare_models(run, metrics=("MAP@3",))
