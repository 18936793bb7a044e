"""The harness from Python: the same folders, tables and recommendations as by the commands."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aprec_like.datasets import TextFile
from aprec_like.errors import InputError
from aprec_like.losses import Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import MarkovChain, Popularity, SASRec
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training
from evaluation import compare
from evaluation.notebook import load_results, run, run_here
from evaluation.results.store import RunFolder
from tests.conftest import circle_sequences, write_pairs

NOTEBOOK = Path(__file__).parents[3] / "docs/notebooks/tutorial.ipynb"
SASREC = Trained(
    SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.0),
    Softmax(),
    Training(batch_size=64, max_epochs=2, early_stopping=EarlyStopping(NDCG(10), patience=5)),
)
RECIPE = Recipe(
    TextFile("circle.txt"),
    {"Popularity": Popularity(), "Markov <b>": MarkovChain(), "SASRec": SASREC},
    split=LeaveOneOut(num_validation_users=50),
    evaluation=Evaluation(metrics=(Recall(1), NDCG(10)), depth=5),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    write_pairs(folder / "circle.txt", circle_sequences(200))
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return run(RECIPE, folder / "results", data=folder)


def test_a_table_is_shown_with_everything_escaped_and_the_best_in_bold(results):
    html = results._repr_html_()
    assert results.models == ["Popularity", "Markov <b>", "SASRec"]
    assert "Markov &lt;b&gt;" in html and "Markov <b>" not in html
    markov = next(row for row in html.split("<tr>") if "Markov" in row)
    assert markov.count("<b>") == 2  # the circle is no riddle to a Markov chain
    assert html.count("<tr>") == 4 and "Means over 200 users" in html


def test_the_comparison_is_that_of_the_command(results, monkeypatch, capsys):
    monkeypatch.setattr(
        "sys.argv", ["compare", str(results.folders[0].path), "--baseline", "SASRec", "--format", "json"]
    )
    assert compare.main() == 0
    models = json.loads(capsys.readouterr().out)["models"]
    comparison = results.compare(baseline="SASRec")
    for row in comparison.rows:
        assert row.cells["NDCG@10"].value.mean == models[row.name]["metrics"]["NDCG@10"]["value"]["mean"]
    assert results.compare(metrics=["NDCG@5"]).metrics == ("NDCG@5",)


def test_values_are_frames(results):
    per_user, metrics, history = results.per_user(), results.metrics(), results.history()
    assert len(per_user) == 3 * 200 and {"model", "seed", "user", "target", "rank", "NDCG@10"} <= set(per_user)
    means = per_user.groupby("model")["NDCG@10"].mean()
    ndcg = metrics[metrics["metric"] == "NDCG@10"].set_index("model")
    np.testing.assert_allclose(ndcg["mean"], means[ndcg.index])
    assert (ndcg["low"] <= ndcg["mean"]).all() and (ndcg["mean"] <= ndcg["high"]).all()
    assert history["epoch"].tolist() == [1, 2] and set(history["model"]) == {"SASRec"}


def test_figures_and_recommendations_are_shown(results, folder):
    figure = results.figures()["learning"]
    assert figure._repr_html_().startswith("<figure><svg")
    found = results.recommend("Markov <b>", [3, 4], k=2, data=folder)
    assert found["item"].iloc[0] == 5 and list(found) == ["item", "score"]
    assert "probability" in results.recommend("SASRec", [3, 4])


def test_a_finished_run_is_not_trained_again_and_another_recipe_is_refused(results, folder, capsys):
    path = results.folders[0].path
    before = (path / "SASRec/seed_1/status.json").read_bytes()
    run(RECIPE, path, data=folder)
    assert (path / "SASRec/seed_1/status.json").read_bytes() == before
    assert "epoch" not in capsys.readouterr().out
    with pytest.raises(InputError, match="SASRec"):
        run(
            replace(RECIPE, models={"SASRec": replace(SASREC, model=SASRec(max_length=4, embedding_dim=8))}),
            path,
            data=folder,
        )
    with pytest.raises(InputError, match="not a results folder"):
        load_results(folder)


def test_an_interrupted_run_goes_on_to_the_same_weights(results, folder, monkeypatch, capsys):
    """The stop is requested at the first progress of the first epoch."""
    on_step = run_here.ProgressBar.on_step

    def interrupt(display, progress):
        on_step(display, progress)
        import signal

        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run_here.ProgressBar, "on_step", interrupt)
    path = folder / "interrupted"
    with pytest.raises(KeyboardInterrupt):
        run(RECIPE, path, only=["SASRec"], data=folder)
    assert RunFolder(path).model("SASRec", 1).status()["state"] == "interrupted"
    monkeypatch.setattr(run_here.ProgressBar, "on_step", on_step)
    run(RECIPE, path, only=["SASRec"], data=folder)
    assert "resumes from epoch 1" in capsys.readouterr().out
    ours, theirs = (load_results(each).per_user() for each in (path, results.folders[0].path))
    assert ours["target_score"].tolist() == theirs.query("model == 'SASRec'")["target_score"].tolist()


def test_the_notebook_has_outputs_and_no_path_of_a_machine():
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(line.strip() for cell in code for line in cell["source"][:1])
    assert sum(bool(cell["outputs"]) for cell in code) >= 6
    assert "/root" not in NOTEBOOK.read_text() and "/home" not in NOTEBOOK.read_text()


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    code = f"""
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read({str(NOTEBOOK)!r}, 4)
NotebookClient(notebook, timeout=600, resources={{"metadata": {{"path": {str(tmp_path)!r}}}}}).execute()
nbformat.write(notebook, {str(tmp_path / "executed.ipynb")!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    executed = (tmp_path / "executed.ipynb").read_text()
    assert "gSASRec: trained" in executed and "epoch 1," not in executed  # progress is replaced
    assert '"name": "stderr"' not in executed
    assert load_results(tmp_path / "results/notebook").models == ["Markov chain", "gSASRec"]
