"""A folder with a recipe, its data and its results, and the commands, called in the test process.

Models run in the test process too, so that hundreds of damaged folders take seconds.
"""

import shutil
from pathlib import Path

from evaluation import compare, recommend, report, run
from evaluation.running import worker
from evaluation.running.jobs import one_by_one
from evaluation.running.signals import StopFlag

RECIPE = """
from aprec_like.datasets import TextFile
from aprec_like.losses import GBCE
from aprec_like.models import MarkovChain, Popularity, SASRec
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training

recipe = Recipe(
    dataset=TextFile("circle.txt"),
    split=LeaveOneOut(num_validation_users=50),
    models={
        "Popularity": Popularity(),
        "Markov": MarkovChain(),
        "Again": MarkovChain(),
        # trained
    },
    evaluation=Evaluation(depth=5),
    published={"Markov": {"NDCG@10": 0.9}},
)
"""
TRAINED = """
        "gSASRec": Trained(
            SASRec(max_length=4, embedding_dim=4, num_blocks=1), GBCE(4, 0.75), Training(batch_size=64, max_epochs=1)
        ),
"""


class Workspace:
    """A folder with a recipe, data and results, and the commands."""

    def __init__(self, folder: Path, monkeypatch, capsys=None) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        self.results = folder / "damage"
        monkeypatch.setattr(one_by_one, "run_process", self._run_here)
        monkeypatch.setattr(StopFlag, "listen", lambda self: None)
        monkeypatch.setattr("evaluation.running.run_job.prepare_devices", lambda: None)
        monkeypatch.setattr("gc.collect", lambda: 0)  # statsmodels does it for every family of tests

    def _run_here(self, command, environment, descriptors) -> int:
        return self._called(worker, command[-1])

    def _called(self, command, *options: str) -> int:
        self.monkeypatch.setattr("sys.argv", [command.__name__, *options])
        return command.run_command(command.main)

    def run(self, *options: str, recipe: str = "damage.py") -> int:
        where = ("--data", str(self.folder), "--results", str(self.folder))
        return self._read(self._called(run, str(self.folder / recipe), *where, *options))

    def compare(self, *options: str) -> int:
        return self._read(self._called(compare, str(self.results), *options))

    def report(self, *options: str) -> int:
        return self._read(self._called(report, str(self.results), *options))

    def recommend(self, *options: str) -> int:
        return self._read(self._called(recommend, str(self.results), "--data", str(self.folder), *options))

    def _read(self, code: int) -> int:
        self.out, self.err = self.capsys.readouterr() if self.capsys else ("", "")
        return code

    def copy(self, folder: Path) -> "Workspace":
        shutil.copytree(self.folder, folder)
        return Workspace(folder, self.monkeypatch, self.capsys)
