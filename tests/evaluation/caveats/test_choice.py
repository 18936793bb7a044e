"""Validation chooses among the variants of a model; the test value stands beside."""

from dataclasses import replace

from evaluation.analysis.comparison import compare_models
from evaluation.analysis.unrounded import table_files
from evaluation.caveats.choice import choice_sentences
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import GRID, LOSSES, MIXED, make_run


def validated(run, values):
    """Return the models of a run with other best validation values."""
    for name, value in values.items():
        folder = run.model(name, 1)
        status = {key: item for key, item in folder.status().items() if key not in ("state", "at")}
        folder.write_status("finished", **status | {"best_validation": value})
    return load_runs([run]).models


def test_the_variant_that_validation_chooses_is_named_with_its_test_value(tmp_path):
    """In the made run later models are better on the test; here validation prefers the first."""
    models = validated(make_run(tmp_path / "run", GRID), {"k=1, t=0": 0.9})
    (sentence,) = choice_sentences(models, ("Recall@1", "NDCG@10"))
    first, last = (float(models[place].per_user("NDCG@10").mean()) for place in (0, -1))
    assert sentence == (
        f"of the 9 variants of SASRec with GBCE, validation chooses k=1, t=0 (NDCG@10 0.9000); its test NDCG@10 is "
        f"{first:.4f} (the best on the test, k=16, t=1 with {last:.4f}, would be chosen on the test)"
    )


def test_the_notes_name_the_choice_in_latex_too(tmp_path):
    comparison = compare_models(load_runs([make_run(tmp_path / "run", GRID)]))
    (sentence,) = comparison.choices
    assert "validation chooses" in sentence
    assert f"{sentence[0].upper()}{sentence[1:]}." in table_files(comparison)["table.tex"].splitlines()
    assert not any("validation chooses" in remark for remark in comparison.remarks)


def test_every_architecture_and_loss_is_a_choice_of_its_own(tmp_path):
    models = load_runs([make_run(tmp_path / "run", LOSSES)]).models
    assert len(choice_sentences(models, ("NDCG@10",))) == 6


def test_different_methods_are_no_choice(tmp_path):
    models = load_runs([make_run(tmp_path / "run", MIXED)]).models
    assert choice_sentences(models, ("NDCG@10",)) == ()
    assert choice_sentences([replace(model, settings={}) for model in models], ("NDCG@10",)) == ()
