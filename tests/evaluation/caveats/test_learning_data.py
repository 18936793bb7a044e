"""The notes of a table say what the models learned from."""

from dataclasses import replace

import pytest

from aprec_like.models import MarkovChain, Popularity
from aprec_like.recipe import MFBPR
from aprec_like.settings import describe
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.results.imported import import_results
from evaluation.results.load import load_runs
from evaluation.table_formats import as_latex
from tests.evaluation.made_runs import MIXED, make_run

MODELS = MIXED | {"Markov chain": describe(MarkovChain()), "MF-BPR": describe(MFBPR())}
DIFFERENT = (
    "Not all models learn from the same data: Popularity, Markov chain, MF-BPR also from the validation part "
    "(64 interactions beside 4,000), SASRec"
)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"fit_on": "train"}, "All models learn from the training part alone"),
        ({"fit_on": "train+validation"}, "networks for the epochs that validation chose"),
        ({"fit_on": "mixed"}, DIFFERENT),
        ({}, DIFFERENT),
    ],
    ids=["train", "train+validation", "mixed", "a folder of an earlier version"],
)
def test_every_table_says_what_the_models_learned_from(tmp_path, settings, sentence):
    run = make_run(tmp_path / "run", MODELS, **settings)
    table = main_table(compare_models(load_runs([run])))
    assert any(sentence in note for note in table.notes)
    assert sentence in as_latex(table).replace("\\", "")


def test_networks_alone_never_learn_from_the_validation_part(tmp_path):
    networks = {name: settings for name, settings in MIXED.items() if settings != describe(Popularity())}
    comparison = compare_models(load_runs([make_run(tmp_path / "run", networks, fit_on="mixed")]))
    assert comparison.data_sentences[0] == "all models learn from the training part alone"


def test_nobody_knows_what_an_imported_model_learned_from(tmp_path):
    run = make_run(tmp_path / "run", MODELS, fit_on="train")
    users = run.read_cases()["user"]
    (tmp_path / "theirs.csv").write_text("user,NDCG@10\n" + "".join(f"{user},0.1\n" for user in users))
    runs = load_runs([run], ["NDCG@10"])
    models = [*runs.models, import_results(tmp_path / "theirs.csv", runs)]
    notes = main_table(compare_models(replace(runs, models=models))).notes
    assert "All our models learn from the training part alone; what theirs learned from is not known." in notes
