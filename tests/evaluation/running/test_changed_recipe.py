"""A recipe that changes beside finished results: what needs no training, and what leaves the table."""

import json

import numpy as np
import pandas as pd
import pytest

from evaluation import compare, run

RECIPE = """
from aprec_like.candidates import UniformCandidates
from aprec_like.datasets import TextFile
from aprec_like.metrics import MRR, NDCG, Recall
from aprec_like.models import MarkovChain, Popularity
from aprec_like.recipe import Evaluation, Recipe
from aprec_like.splits import LeaveOneOut

recipe = Recipe(
    dataset=TextFile("circle.txt"),
    split=LeaveOneOut(num_validation_users=50),
    models={"Popularity": Popularity(), "Markov chain": MarkovChain()},
    evaluation=Evaluation(metrics=(Recall(1), NDCG(10)), candidates=UniformCandidates(5)),
)
"""
OTHER = RECIPE.replace("NDCG(10))", "NDCG(3), MRR())").replace(', "Markov chain": MarkovChain()', "")


class CommandLine:
    """Commands in a folder with data; models run in worker processes."""

    def __init__(self, folder, monkeypatch, capfd):
        self.folder, self.monkeypatch, self.capfd = folder, monkeypatch, capfd
        self.results = folder / "results" / "counted"

    def run(self, source, results="results"):
        (self.folder / "counted.py").write_text(source)
        return self._call(
            run, str(self.folder / "counted.py"), "--data", str(self.folder), "--results", str(self.folder / results)
        )

    def compare(self, *options):
        return self._call(compare, str(self.results), *options)

    def _call(self, command, *arguments):
        self.monkeypatch.setattr("sys.argv", [command.__name__, *arguments])
        code = command.run_command(command.main)
        self.out, self.err = self.capfd.readouterr()
        return code


@pytest.fixture
def commands(circle_file, monkeypatch, capfd):
    return CommandLine(circle_file.parent, monkeypatch, capfd)


def test_other_metrics_need_no_training_and_a_model_taken_out_leaves_the_table(commands):
    assert commands.run(RECIPE) == 0
    assert commands.compare("--metric", "NDCG@3", "Precision@5", "--format", "json") == 0
    ranks = pd.read_parquet(commands.results / "Markov chain/seed_1/per_user.parquet")["rank"].to_numpy()
    means = {name: cell["value"]["mean"] for name, cell in models_of(commands)["Markov chain"]["metrics"].items()}
    assert means == pytest.approx(
        {"NDCG@3": np.mean([1 / np.log2(rank + 1) if rank <= 3 else 0 for rank in ranks]),
         "Precision@5": np.mean(ranks <= 5) / 5}
    )  # fmt: skip
    assert commands.compare("--metric", "Accuracy@3") == 2
    assert "has no metric Accuracy@3; it has Recall@1" in commands.err and len(commands.err.splitlines()) == 1

    assert commands.run(OTHER) == 0
    assert "Popularity, seed 1: finished on" in commands.err
    assert "no longer in the recipe and the table, kept in the folder: Markov chain" in commands.err
    assert "NDCG@3" in commands.out and "Markov chain: not in the recipe; its folder stays" in commands.out
    assert commands.compare("--format", "json") == 0
    assert list(models_of(commands)) == ["Popularity"]
    assert (commands.results / "Markov chain/seed_1/per_user.parquet").exists()
    assert commands.run(OTHER, results="fresh") == 0
    fresh = commands.folder / "fresh/counted/Popularity/seed_1/metrics.json"
    assert (commands.results / "Popularity/seed_1/metrics.json").read_bytes() == fresh.read_bytes()

    assert commands.run(RECIPE) == 0
    assert "Markov chain, seed 1: finished on" in commands.err and "no longer" not in commands.err


def models_of(commands):
    return json.loads(commands.out)["models"]
