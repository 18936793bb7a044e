"""The budget of tuning stands in every table, and unequal budgets are warned of."""

import pytest

from aprec_like.errors import InputError
from aprec_like.recipe import TuningBudget
from aprec_like.settings import describe
from evaluation.analysis.captions import notes
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.analysis.unrounded import comparison_csv, comparison_json
from evaluation.page.sections import describe_results, summarise
from evaluation.results.load import load_runs
from evaluation.table import as_text
from evaluation.table_formats import as_latex, as_markdown
from tests.evaluation.made_runs import MIXED, make_run

NETWORKS = ("SASRec", "SASRec-Softmax", "gSASRec <t> & $k$", "SSM")
FIFTY = TuningBudget(trials=50, hours=0.75, epochs=812, num_settings=3, num_combinations=24, max_trials=50)
TEN = TuningBudget(trials=10, hours=0.05, num_settings=2)


def tuned_run(path, budgets):
    tuning = {name: describe(budget) for name, budget in budgets.items()}
    return load_runs([make_run(path, MIXED, **({"tuning": tuning} if tuning else {}))])


def test_the_budget_is_a_column_of_every_format(tmp_path):
    runs = tuned_run(tmp_path / "run", {"SASRec": FIFTY, "SSM": TEN})
    comparison = compare_models(runs)
    table = main_table(comparison)
    assert table.header[-1] == "Tuning"
    (rows,) = [block for block in table.blocks if block]
    texts = {row[0].partition(" (")[0]: row[-1].text for row in rows}  # without the marks of caveats
    assert texts["SASRec"] == "50 trials, 0.8 h" and texts["SSM"] == "10 trials, 0.05 h"
    assert (texts["SASRec-Softmax"], texts["Popularity"]) == ("none", "")
    assert "50 trials, 0.8 h" in as_text(table) and "| 50 trials, 0.8 h |" in as_markdown(table)
    assert r"& 50 trials, 0.8 h \\" in as_latex(table)
    html = describe_results(runs, comparison, {}).table
    assert html.header[-1] == "Tuning" and html.blocks[0][1][-1].text == "50 trials, 0.8 h"
    assert comparison_json(comparison)["models"]["SASRec"]["tuning"]["epochs"] == 812
    header, first, *_ = comparison_csv(comparison).splitlines()
    assert header.endswith("seconds_to_best,tuning_trials,tuning_epochs,tuning_hours") and first.endswith(",,,")


def test_the_notes_have_the_whole_budget(tmp_path):
    text = " ".join(notes(compare_models(tuned_run(tmp_path / "run", {"SASRec": FIFTY, "SSM": TEN}))))
    expected = "Tuned on validation: SASRec 50 trials of 3 settings (24 combinations), 812 epochs, 0.8 h, "
    assert expected in text and "SSM 10 trials of 2 settings (continuous), 0.05 h" in text
    assert "SASRec-Softmax and gSASRec <t> & $k$ not at all" in text


def test_a_table_without_tuned_models_is_as_before(tmp_path):
    comparison = compare_models(tuned_run(tmp_path / "run", {}))
    assert "Tuning" not in main_table(comparison).header and "tuned" not in " ".join(notes(comparison)).lower()
    assert not any("tuned" in remark for remark in comparison.remarks)


def warnings_of(path, budgets):
    return [remark for remark in compare_models(tuned_run(path, budgets)).remarks if remark.startswith("warning")]


def test_unequal_budgets_are_warned_of(tmp_path):
    equal = dict.fromkeys(NETWORKS, FIFTY)
    assert warnings_of(tmp_path / "equal", equal) == []
    (warning,) = warnings_of(tmp_path / "other", equal | {"SSM": TEN})
    assert "different budgets" in warning and warning.endswith("SSM 10 trials, 0.05 h")
    hours = {
        name: TuningBudget(trials, 0.75, max_hours=0.75) for name, trials in zip(NETWORKS, (50, 9, 20, 31), strict=True)
    }
    assert warnings_of(tmp_path / "hours", hours) == []


def test_a_tuned_model_beside_an_untuned_one_is_warned_of(tmp_path):
    runs = tuned_run(tmp_path / "run", {"SSM": FIFTY})
    comparison = compare_models(runs)
    names = ", ".join(NETWORKS[:3])
    warning = f"warning: SSM was tuned and {names} were not; the table favours what was tuned"
    assert warning in comparison.remarks
    assert f"W{warning[1:]}." in summarise(runs, comparison)


def test_a_damaged_budget_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"tuning\['SSM'\].trials must be a number of things"):
        load_runs([make_run(tmp_path / "run", MIXED, tuning={"SSM": {"trials": "many", "hours": 1.0}})])
