import csv
import io

import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from evaluation import table as layout
from evaluation.analysis import main_table as tables
from evaluation.analysis import unrounded as records
from evaluation.analysis.comparison import Comparison, Rules, compare_models
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder

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


def compare(*runs: RunFolder, metrics=(), **rules) -> Comparison:
    return compare_models(load_runs(runs, metrics), Rules(**rules))


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
    comparison = compare(run)
    assert comparison.ranked("NDCG@10")[0] == "Best"
    cells = {row.name: row.cells["NDCG@10"] for row in comparison.rows}
    assert cells["Best"].test is None
    assert cells["A_B & 50%"].p_corrected < 1e-6 < 0.05 < cells["Second"].p_corrected
    assert comparison.family_size == 4
    assert comparison.remarks[-2:] == ["Never: not run", "Oracle: not run"]


def test_a_baseline_replaces_the_best_as_comparator(run):
    comparison = compare(run, baseline="Second", metrics=("NDCG@10",))
    assert {row.name for row in comparison.rows if row.cells["NDCG@10"].test is None} == {"Second"}
    with pytest.raises(InputError, match="no finished model 'Never'; finished are A_B & 50%, Best, Second"):
        compare(run, baseline="Never")


def test_markdown_marks_best_second_and_significance(run):
    lines = layout.as_markdown(tables.main_table(compare(run))).splitlines()
    assert lines[0].startswith("| Model | NDCG@10 | Recall@10 | NDCG@10 (paper)")
    assert "**0." in next(line for line in lines if line.startswith("| Best"))
    assert "<u>0." in next(line for line in lines if line.startswith("| Second"))
    assert "* |" in next(line for line in lines if line.startswith("| A_B"))
    assert any(line.startswith("| Quoted (quoted) |") and "0.99" in line for line in lines)


def test_the_caption_states_users_test_level_correction_family_and_seen_items(run):
    text = tables.caption(compare(run))
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
    text = layout.as_latex(tables.paper_table(compare(run)))
    assert r"A\_B \& 50\% &" in text
    assert text.startswith(r"\begin{table}") and text.rstrip().endswith(r"\end{table}")
    columns = text.split(r"\begin{tabular}{")[1].split("}")[0]
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    unescaped = body.replace(r"\&", "")
    rows = [row for row in unescaped.split("\n") if row.endswith(r"\\")]
    assert len(rows) == 5
    assert all(row.count("&") == len(columns) - 1 for row in rows)


def test_csv_is_unrounded(run):
    rows = list(csv.DictReader(io.StringIO(records.as_csv(compare(run)))))
    best = next(row for row in rows if row["model"] == "Best" and row["metric"] == "NDCG@10")
    expected = run.model("Best", 1).read_per_user()["NDCG@10"].mean()
    assert float(best["mean"]) == pytest.approx(expected, rel=1e-15)
    tests = list(csv.DictReader(io.StringIO(records.significance_csv(compare(run)))))
    assert {row["comparator"] for row in tests} == {"Best"}


def test_several_seeds_are_averaged_per_user_and_their_spread_is_shown(run):
    one = run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy()
    write_model(run, "Best", 2, one + 0.1)
    cell = next(row for row in compare(run).rows if row.name == "Best").cells["NDCG@10"]
    assert cell.value.mean == pytest.approx(one.mean() + 0.05)
    assert cell.seed_std == pytest.approx(0.1 / np.sqrt(2))


def test_models_tested_on_other_users_are_refused(run):
    write_model(run, "Never", 1, np.zeros(300), users=np.arange(1, 301))
    with pytest.raises(InputError, match="Never, seed 1, was tested on other users"):
        compare(run)


def test_unfinished_models_are_remarks_not_rows(run):
    run.model("Never", 1).write_status("failed", reason="the loss is not finite")
    comparison = compare(run)
    assert "Never" not in {row.name for row in comparison.rows}
    assert "Never, seed 1: failed: the loss is not finite" in comparison.remarks


def test_the_oracle_stands_below_a_rule_and_is_never_best_or_tested(run):
    before = compare(run)
    write_model(run, "Oracle", 1, np.ones(300))
    comparison = compare(run)
    assert comparison.ranked("NDCG@10") == before.ranked("NDCG@10")
    assert comparison.family_size == before.family_size
    assert [row.name for row in comparison.bounds] == ["Oracle"]
    lines = layout.as_text(tables.main_table(comparison)).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("Oracle"))
    assert set(lines[place - 1]) == set(lines[place + 1]) == {"-"}
    assert " 1.0000 " in lines[place]
    assert "Oracle" in records.as_csv(comparison)
    assert "Oracle" not in records.significance_csv(comparison)


def test_the_oracle_is_no_baseline(run):
    write_model(run, "Oracle", 1, np.ones(300))
    with pytest.raises(InputError, match="Oracle is the best possible ranking"):
        compare_models(load_runs([run]), Rules(baseline="Oracle"))


def test_groups_stand_between_rules_and_sampled_metrics_are_marked_as_not_comparable(run):
    evaluation = SETTINGS["evaluation"] | {"candidates": {"num_candidates": 100}}
    run.write_recipe(b"", SETTINGS | {"groups": {"ours": ["Second", "Best"]}, "evaluation": evaluation})
    text = layout.as_text(tables.main_table(compare(run)))
    starts = [line.split("  ")[0] for line in text.splitlines() if line and not line.startswith("Means")]
    rule = next(start for start in starts if set(start) == {"-"})
    assert starts[:8] == ["Model", rule, "A_B & 50%", rule, "Best", "Second", rule, "Quoted (quoted)"]
    assert "(sampled): the target among itself and 100 drawn items, not comparable" in text


def test_a_folder_without_a_run_and_an_unknown_metric_are_refused(run, tmp_path):
    with pytest.raises(InputError, match="is not a results folder"):
        compare(RunFolder(tmp_path / "nothing"))
    with pytest.raises(InputError, match="no metric MAP@3; it has NDCG@10, Recall@10"):
        compare(run, metrics=("MAP@3",))


@pytest.mark.parametrize(("num_users", "digits"), [(30, 2), (1_000, 3), (100_000, 4), (1_000_000, 4)])
def test_digits_follow_the_uncertainty(tmp_path, num_users, digits):
    """Half-widths of uniform values: 0.1 of 30 users, 0.02 of 1,000, 0.002 of 100,000."""
    run = RunFolder(tmp_path / "one")
    run.write_recipe(b"", SETTINGS)
    write_model(run, "Best", 1, np.linspace(0, 1, num_users))
    assert tables.digits_for(compare(run), "NDCG@10") == digits


def test_daggers_mark_differences_from_a_baseline(run):
    comparison = compare(run, baseline="Second")
    assert "†" in layout.as_text(tables.main_table(comparison))
    latex = layout.as_latex(tables.main_table(comparison))
    assert r"$^\dagger$" in latex and "†" not in latex and r"$^\dagger$ differs from Second" in latex


def test_a_difference_that_the_data_could_not_show_is_remarked(run):
    comparison = compare(run)
    cell = next(row for row in comparison.rows if row.name == "Second").cells["NDCG@10"]
    assert abs(cell.test.difference.mean) < cell.detectable
    assert any(remark.startswith("Second and Best, NDCG@10: the difference of 0.0010") for remark in comparison.remarks)


def test_the_test_and_its_weakness_are_named(run):
    assert "sign-flip randomisation test with 10,000 permutations" in tables.caption(compare(run, test="randomisation"))
    assert any("Wilcoxon" in remark for remark in compare(run, test="wilcoxon").remarks)
    tight = compare(run, test="randomisation", alpha=1e-4)
    assert any("can't show p <" in remark for remark in tight.remarks)


def test_seeds_share_the_variance_with_users(run):
    one = run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy()
    write_model(run, "Best", 2, one + 0.2)
    comparison = compare(run)
    cell = next(row for row in comparison.rows if row.name == "Best").cells["NDCG@10"]
    of_seeds, of_users = 0.02 / 2, np.var(one, ddof=1) / 300
    assert cell.seed_share == pytest.approx(of_seeds / (of_seeds + of_users))
    assert "conditional on these seeds" in tables.caption(comparison)
    assert "SD over seeds" in tables.differences_table(comparison).header


def other_run(run, name, **changes):
    """A second run with one model of the first one's values."""
    other = RunFolder(run.path.parent / name)
    other.write_recipe(b"", SETTINGS | {"models": {"Best": {}, "Other": {}}, "published": {}, "literature": {}})
    dataset = {"sha256": "data", "split": {"digest": "split"}}
    run.write_dataset(dataset)
    other.write_dataset(dataset | changes)
    values = run.model("Best", 1).read_per_user()
    write_model(other, "Best", 1, values["NDCG@10"].to_numpy() * 0.9)
    write_model(other, "Other", 1, values["NDCG@10"].to_numpy() * 0.8)
    return other


def test_runs_on_the_same_data_stand_in_one_table(run):
    comparison = compare(run, other_run(run, "later"))
    names = [row.name for row in comparison.rows]
    assert names == ["A_B & 50%", "Best (some_run)", "Second", "Best (later)", "Other"]
    assert comparison.family_size == 8


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"sha256": "other"}, "the data differ"), ({"split": {"digest": "other"}}, "the splits differ")],
)
def test_runs_on_other_data_or_splits_are_refused(run, changes, reason):
    with pytest.raises(InputError, match=reason):
        compare(run, other_run(run, "later", **changes))


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


def test_datasets_stand_side_by_side_under_their_names(run):
    other = other_run(run, "steam", sha256="other")
    comparisons = [compare(run), compare(other)]
    table = tables.side_by_side(comparisons)
    assert [span[0] for span in table.spans] == ["some_run", "steam"]
    assert all(len(line) == len(table.header) for block in table.blocks for line in block)
    latex = layout.as_latex(table)
    assert r"\multicolumn{3}{c}{some\_run} & \multicolumn{3}{c}{steam}" in latex
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in latex
    for render in (layout.as_text, layout.as_markdown):
        assert "steam" in render(table)


def test_json_is_whole_and_unrounded(run):
    value = records.as_json(compare(run))
    expected = run.model("Best", 1).read_per_user()["NDCG@10"].mean()
    assert value["models"]["Best"]["metrics"]["NDCG@10"]["value"]["mean"] == pytest.approx(expected, rel=1e-15)
    assert value["best"] == {"NDCG@10": "Best", "Recall@10": "Best"}
    assert value["models"]["A_B & 50%"]["metrics"]["NDCG@10"]["is_significant"] is True


HOSTILE = "\\input{x} | **b** [l](javascript:x) <script> \x1b[2J & `c`"


def test_names_from_outside_are_text_in_every_format():
    table = layout.Table("t", ["Model"], [[[HOSTILE]]], caption=HOSTILE, remarks=["first\nsecond", HOSTILE])
    text, markdown, latex = (render(table) for render in layout.RENDERERS.values())
    for rendered in (text, markdown, latex):
        assert "\x1b" not in rendered
        assert not any(line.startswith("second") for line in rendered.splitlines())
    assert "<script>" not in markdown and " [l](" not in markdown and "**b**" not in markdown
    body = latex.split("\\toprule")[1]
    assert "\\input" not in body and r"\textbackslash{}input\{x\}" in body
