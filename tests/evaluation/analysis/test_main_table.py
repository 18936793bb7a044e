from dataclasses import replace

import numpy as np
import pytest

from aprec_like.errors import InputError
from evaluation.analysis.captions import caption, notes
from evaluation.analysis.main_table import differences_table, main_table, side_by_side
from evaluation.analysis.unrounded import comparison_csv, significance_csv
from evaluation.results.store import RunFolder
from evaluation.table import as_text
from evaluation.table_formats import as_latex, as_markdown
from tests.evaluation.analysis.small_runs import SETTINGS, compare, other_run, write_values


def test_markdown_marks_best_second_and_significance(run):
    lines = as_markdown(main_table(compare(run))).splitlines()
    assert lines[0].startswith("| Model | NDCG@10 | Recall@10 | NDCG@10 (paper)")
    assert "**0." in next(line for line in lines if line.startswith("| Best"))
    assert "<u>0." in next(line for line in lines if line.startswith("| Second"))
    assert "* |" in next(line for line in lines if line.startswith("| A_B"))
    assert any(line.startswith("| Quoted (quoted) |") and "0.99" in line for line in lines)


def test_the_caption_states_users_test_level_correction_family_seen_items_and_trainings(run):
    text = caption(compare(run))
    for part in (
        "300 users",
        "seen items excluded",
        "paired t-test",
        "p < 0.05",
        "Holm-corrected",
        "all 6 pairs of models and metrics, which covers the choice of the best",
        "from the best",
        "one training of each model: intervals and tests cover the chance in users, not in training",
        "about these trained models, not about the methods",
    ):
        assert part in text


def test_latex_escapes_names_and_is_a_whole_table(run):
    text = as_latex(main_table(compare(run), show_published=False))
    assert r"A\_B \& 50\% &" in text
    assert text.startswith(r"\begin{table}") and text.rstrip().endswith(r"\end{table}")
    columns = text.split(r"\begin{tabular}{")[1].split("}")[0]
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    unescaped = body.replace(r"\&", "")
    rows = [row for row in unescaped.split("\n") if row.endswith(r"\\")]
    assert len(rows) == 5
    assert all(row.count("&") == len(columns) - 1 for row in rows)


def test_the_oracle_stands_below_a_rule_and_is_never_best_or_tested(run):
    before = compare(run)
    write_values(run, "Oracle", 1, np.ones(300))
    comparison = compare(run)
    assert comparison.ranked("NDCG@10") == before.ranked("NDCG@10")
    assert comparison.family_size == before.family_size
    assert [row.name for row in comparison.bounds] == ["Oracle"]
    lines = as_text(main_table(comparison)).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("Oracle"))
    assert set(lines[place - 1]) == set(lines[place + 1]) == {"-"}
    assert " 1.0000 " in lines[place]
    assert "Oracle" in comparison_csv(comparison)
    assert "Oracle" not in significance_csv(comparison)


def test_groups_stand_between_rules_and_sampled_metrics_are_marked_as_not_comparable(run):
    evaluation = SETTINGS["evaluation"] | {"candidates": {"num_candidates": 100}}
    run.write_recipe(b"", SETTINGS | {"groups": {"ours": ["Second", "Best"]}, "evaluation": evaluation})
    text = as_text(main_table(compare(run)))
    starts = [line.split("  ")[0] for line in text.splitlines() if line and not line.startswith("Means")]
    rule = next(start for start in starts if set(start) == {"-"})
    assert starts[:8] == ["Model", rule, "A_B & 50%", rule, "Best", "Second", rule, "Quoted (quoted)"]
    assert "(sampled): the target among itself and 100 drawn items, not comparable" in text


@pytest.mark.parametrize(("num_users", "digits"), [(30, 2), (1_000, 3), (100_000, 4), (1_000_000, 4)])
def test_digits_follow_the_uncertainty(tmp_path, num_users, digits):
    """Half-widths of uniform values: 0.1 of 30 users, 0.02 of 1,000, 0.002 of 100,000."""
    run = RunFolder(tmp_path / "one")
    run.write_recipe(b"", SETTINGS)
    write_values(run, "Best", 1, np.linspace(0, 1, num_users))
    assert compare(run).num_digits("NDCG@10") == digits


def test_daggers_mark_differences_from_a_baseline(run):
    comparison = compare(run, baseline="Second")
    assert "†" in as_text(main_table(comparison))
    latex = as_latex(main_table(comparison))
    assert r"$^\dagger$" in latex and "†" not in latex and r"$^\dagger$ differs from Second" in latex


def test_the_test_and_its_weakness_are_named(run):
    assert "sign-flip randomisation test with 10,000 permutations" in caption(compare(run, test="randomisation"))
    assert any("Wilcoxon" in remark for remark in compare(run, test="wilcoxon").remarks)
    tight = compare(run, test="randomisation", alpha=1e-4)
    assert any("can't show p <" in remark for remark in tight.remarks)


def test_different_numbers_of_trainings_are_listed(run):
    one = run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy()
    for name, seeds in (("Best", (2,)), ("Second", (2, 3))):
        for seed in seeds:
            write_values(run, name, seed, one)
    assert "means over 1, 2 or 3 trainings;" in caption(compare(run))


def test_seeds_share_the_variance_with_users(run):
    one = run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy()
    write_values(run, "Best", 2, one + 0.2)
    comparison = compare(run)
    cell = next(row for row in comparison.rows if row.name == "Best").cells["NDCG@10"]
    parts = np.array([np.var(one, ddof=1) / 300, 0.02 / 2, 0.0])  # users, trainings, interaction
    assert cell.variance.shares == pytest.approx(parts / parts.sum())
    text = " ".join([caption(comparison), *notes(comparison)])
    assert "means over 1 or 2 trainings; intervals and tests cover users and trainings" in text
    assert "Standard deviation between trainings: 0.1414 in NDCG@10, 0.1414 in Recall@10, of Best" in text
    assert "One training, taken to vary as those of the other models: A_B & 50%, Second" in text
    assert differences_table(comparison).header[-2:] == ["SD over seeds", "Users/trainings/both"]
    assert "the test users alone: it speaks about these trained models" in caption(compare(run, test="wilcoxon"))


@pytest.mark.parametrize("render", [as_text, as_markdown, as_latex])
def test_every_format_says_what_one_training_means(run, render):
    text = " ".join(render(main_table(compare(run))).split())
    assert "speak about these trained models, not about the methods" in text


def test_datasets_stand_side_by_side_under_their_names(run):
    other = other_run(run, "steam", sha256="other")
    comparisons = [compare(run), compare(other)]
    table = side_by_side(comparisons)
    assert [span[0] for span in table.spans] == ["some_run", "steam"]
    assert all(len(line) == len(table.header) for block in table.blocks for line in block)
    latex = as_latex(table)
    assert r"\multicolumn{3}{c}{some\_run} & \multicolumn{3}{c}{steam}" in latex
    assert r"\cmidrule(lr){2-4}\cmidrule(lr){5-7}" in latex
    for render in (as_text, as_markdown):
        assert "steam" in render(table)


def test_tables_side_by_side_have_a_note_once_if_it_is_true_of_all_and_else_with_its_data(run):
    both, one = "all models learn from the training part alone", "12 targets can't be hit by any model"
    first = replace(compare(run), data_sentences=(both,))
    other = replace(compare(other_run(run, "steam", sha256="other")), data_sentences=(one, both))
    assert side_by_side([first, other]).notes[:2] == [
        "All models learn from the training part alone.",
        "steam: 12 targets can't be hit by any model.",
    ]


def test_equal_places_share_their_emphasis(run):
    """Equal as the table shows them: the means differ in the seventh decimal."""
    for number, name in enumerate(("A_B & 50%", "Second")):
        write_values(run, name, 1, np.linspace(0.2, 0.3, 300) + number * 1e-7)
    comparison = compare(run)
    emphases = {row.name: comparison.emphasis(row.name, "NDCG@10") for row in comparison.rows}
    assert emphases == {"Best": "best", "A_B & 50%": "second", "Second": "second"}


def test_the_caption_names_the_data(run):
    settings = run.read_recipe()
    for added, title in (
        ({"dataset": {"class": "MovieLens1M"}}, "MovieLens1M. Means over"),
        ({"dataset": {"class": "CSVFile", "path": "data/ratings.csv.gz"}}, "ratings. Means over"),
        ({"dataset": {"class": "MovieLens1M"}, "title": "MovieLens & 1M"}, r"MovieLens \& 1M. Means over"),
    ):
        run.write_recipe(b"", settings | added)
        assert rf"\caption{{{title}" in as_latex(main_table(compare(run)))


def test_columns_can_be_left_out(run):
    table = main_table(compare(run), show_published=False, without=["Minutes"])
    assert table.header == ["Model", "NDCG@10", "Recall@10"]
    assert all(len(row) == 3 for block in table.blocks for row in block)
    other = side_by_side([compare(run), compare(other_run(run, "steam", sha256="other"))], without=["Recall@10"])
    assert other.spans == [("some_run", 2), ("steam", 2)] and len(other.header) == 5
    with pytest.raises(InputError, match="there is no column 'Hours'; there are NDCG@10, Recall@10, Minutes"):
        main_table(compare(run), show_published=False, without=["Hours"])


def test_latex_shows_the_spread_over_seeds(run):
    write_values(run, "Best", 2, run.model("Best", 1).read_per_user()["NDCG@10"].to_numpy() + 0.2)
    latex = as_latex(main_table(compare(run), show_published=False))
    assert r"{\scriptsize$\pm$0.14" in latex and r"$\pm$ is the standard deviation over seeds" in latex
    assert "±" not in as_text(main_table(compare(run)))


def test_the_caption_of_a_sample_says_of_how_many_users_and_how_wide_the_intervals_are(run):
    comparison = replace(compare(run), sample=(5_000_000, 7))
    widths = [(cell.value.high - cell.value.low) / 2 for row in comparison.rows for cell in [row.cells["NDCG@10"]]]
    expected = f"a random sample of {comparison.num_users:,} of 5,000,000 users (seed 7; half-widths of 95 % intervals"
    assert f"{expected} up to {max(widths):.2g} in NDCG@10" in caption(comparison)
    assert "sample" not in caption(replace(comparison, sample=None))
