"""The page of a search, its figures and its table of trials."""

import csv
import json

import pytest

from evaluation.results.store import RunFolder
from evaluation.tuning.folders import TuningFolder
from evaluation.tuning.outcome import read_outcome
from evaluation.tuning.page import make_search_figures, write_tuning_page
from evaluation.tuning.retrained import retrained_values
from evaluation.tuning.study import Limits
from evaluation.tuning.tune_recipe import summary_table
from tests.evaluation.tuning.small_studies import FakeTrials, make_search, make_study, write_recipe

SEEDS = (2, 3)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Two studies of made-up values, the first with further trainings of its best settings."""
    folder = tmp_path_factory.mktemp("studies")
    path = write_recipe(folder / "recipes")
    found = []
    for model, trials, seeds in (("gSASRec", 14, SEEDS), ("SASRec", 2, ())):
        study = make_study(folder / model, path, model)
        search = make_search(study, path, trials)
        search.run_trials(FakeTrials())
        if seeds:
            search.run_winner(FakeTrials(), seeds)
        values = retrained_values(study, RunFolder(folder / "no run"), seeds)
        found.append(read_outcome(study, Limits(trials, None), list(values.values())))
    return found


def test_the_outcome_names_the_winner_its_cost_and_its_lead(outcomes):
    outcome = outcomes[0]
    assert outcome.chosen_value == outcome.trials["value"].max() and outcome.own_value == outcome.trials["value"][0]
    assert outcome.retrained == (outcome.chosen_value, outcome.chosen_value)
    assert outcome.counts == {"complete": 14, "pruned": 0, "failed": 0}
    text = "; ".join(outcome.sentences())
    assert f"chose trial {outcome.best} of 14" in text and "trained again with 2 other seeds" in text
    assert f"of its lead of {outcome.chosen_value - outcome.own_value:.4f}, +0.0000 (0%) is due to choice" in text
    assert sum(outcome.importance.values()) == pytest.approx(1.0)
    assert max(outcome.importance, key=outcome.importance.__getitem__) == "dropout_rate"


def test_the_page_shows_every_study_and_the_csv_every_trial(outcomes, tmp_path):
    folder = TuningFolder(tmp_path)
    write_tuning_page(folder, "circle", summary_table("circle", outcomes), outcomes)
    page = folder.page_path.read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>") and page.count("<section id=") == 3
    assert "http://" not in page.replace("http://www.w3.org", "") and "All trials" in page
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    assert [row["model"] for row in rows] == ["gSASRec"] * 14 + ["SASRec"] * 2
    assert float(rows[3]["value"]) == outcomes[0].trials["value"][3] and rows[-1]["dropout_rate"] == ""
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["gSASRec"]["best_trial"] == outcomes[0].best
    assert {path.name for path in folder.figures_path.glob("gSASRec-*.png")} == {
        "gSASRec-history.png", "gSASRec-importance.png", "gSASRec-parallel.png"
    }  # fmt: skip


def test_a_study_without_a_complete_trial_has_no_figures(tmp_path):
    path = write_recipe(tmp_path / "recipes")
    study = make_study(tmp_path / "study", path)
    make_search(study, path, 1).run_trials(FakeTrials(code=-9))
    outcome = read_outcome(study, Limits(1, None))
    assert list(make_search_figures("study-1", outcome)) == [] and outcome.sentences() == ["no trial is complete"]
    write_tuning_page(TuningFolder(tmp_path), "circle", summary_table("circle", [outcome]), [outcome])
    assert "failed: killed by signal 9" in (tmp_path / "report.html").read_text()
