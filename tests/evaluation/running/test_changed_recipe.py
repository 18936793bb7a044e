"""A recipe that changes beside finished results: what needs no training, and what leaves the table."""

import json

import numpy as np
import pandas as pd
import pytest

from evaluation import compare, recommend, run

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
        return self.call(
            run, str(self.folder / "counted.py"), "--data", str(self.folder), "--results", str(self.folder / results)
        )

    def compare(self, *options):
        return self.call(compare, str(self.results), *options)

    def call(self, command, *arguments):
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
    assert "there is no metric Accuracy@3; there are MRR" in commands.err and len(commands.err.splitlines()) == 1

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


OWN = """
from dataclasses import dataclass
import numpy as np
from aprec_like.calibration import SigmoidProbability
from aprec_like.datasets import TextFile
from aprec_like.losses import SampledLoss
from aprec_like.models import CountingModel
from aprec_like.models.base import CommonScorer
from aprec_like.recipe import Recipe
from aprec_like.splits import LeaveOneOut

class Scores(CommonScorer):
    def __init__(self, counts):
        self.counts = counts

    @property
    def common_scores(self):
        return SIGN * self.counts

SIGN = np.float32(-1)

@dataclass(frozen=True)
class Popularity(CountingModel):
    def fit(self, known):
        return Scores(np.bincount(known.items, minlength=known.num_items).astype(np.float32))

recipe = Recipe(TextFile("circle.txt"), {"Rare first": Popularity()}, split=LeaveOneOut(num_validation_users=50))
"""


def test_a_class_of_the_recipe_is_not_taken_for_another_after_a_change_or_by_its_name(commands):
    """Its name is one of the package's; its code is loaded from a file that the user names, and only if unchanged."""
    assert commands.run(OWN) == 0
    run = str(commands.results)
    ask = ["--data", str(commands.folder), "--model", "Rare first", "--items", "1", "-k", "1", "--json"]
    assert commands.call(recommend, run, *ask) == 2
    assert "a class that its recipe defined" in commands.err and "--recipe FILE" in commands.err
    assert commands.call(recommend, run, *ask, "--recipe", str(commands.folder / "counted.py")) == 0
    counts = pd.read_parquet(commands.results / "items.parquet").set_index("item")["train_count"].drop(1)
    assert counts[json.loads(commands.out)["recommendations"][0]["item"]] == counts.min() < counts.max()

    before = {path: path.read_bytes() for path in commands.results.rglob("*") if path.is_file()}
    assert commands.run(OWN.replace("float32(-1)", "float32(1)")) == 2
    assert "the code of Popularity is not the one that finished or started models were run with" in commands.err
    assert {path: path.read_bytes() for path in before} == before
    assert commands.call(recommend, run, *ask, "--recipe", str(commands.folder / "counted.py")) == 2
    assert "its class Popularity is not the one of" in commands.err and len(commands.err.splitlines()) == 1
    assert commands.call(recommend, run, *ask, "--recipe", str(commands.results / "recipe.py")) == 0
    assert commands.run(OWN + "# a remark\n") == 0 and "Rare first, seed 1: finished on" in commands.err
