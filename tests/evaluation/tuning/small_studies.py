"""A small recipe with a search space, and executors without processes."""

import json
import textwrap

from aprec_like.recipe import load_recipe
from evaluation.running.jobs import JobResult
from evaluation.running.signals import StopFlag
from evaluation.tuning.folders import StudyFolder, TrialFolder
from evaluation.tuning.options import TrialOptions
from evaluation.tuning.search import Search
from evaluation.tuning.study import Limits, define_study, open_study
from evaluation.tuning.trial import run_trial
from tests.conftest import circle_sequences, write_pairs

SOURCE = textwrap.dedent(
    '''\
    """Users on a circle of items: the next item is always the last one plus 1."""
    from aprec_like.datasets import TextFile
    from aprec_like.losses import BCE, GBCE
    from aprec_like.metrics import NDCG, Recall
    from aprec_like.models import Popularity, SASRec
    from aprec_like.optimizers import Adam
    from aprec_like.recipe import Choice, Evaluation, LogUniform, Recipe, Trained, Uniform
    from aprec_like.splits import LeaveOneOut
    from aprec_like.training import EarlyStopping, Training

    training = Training(
        batch_size=32, max_epochs=4, early_stopping=EarlyStopping(NDCG(10), patience=2), optimizer=Adam(1e-2)
    )
    network = SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.1)
    recipe = Recipe(
        dataset=TextFile("circle.txt", num_items=20),
        split=LeaveOneOut(num_validation_users=40, seed=1),
        models={
            "Popularity": Popularity(),
            "SASRec": Trained(network, BCE(1), training),
            "gSASRec": Trained(network, GBCE(4, 0.5), training),
        },
        evaluation=Evaluation(metrics=(Recall(1), NDCG(10))),
        spaces={
            "SASRec": {"learning_rate": LogUniform(1e-4, 1e-1), "optimizer.lazy": Choice((False, True))},
            "gSASRec": {
                "learning_rate": LogUniform(1e-4, 1e-1),
                "dropout_rate": Uniform(0.0, 0.5),
                "loss": Choice((GBCE(4, 0.5), BCE(2))),
            },
        },
    )
    '''
)


def write_recipe(folder, source=SOURCE, sequences=None):
    """Write the recipe and its data; returns the path of the recipe."""
    folder.mkdir(exist_ok=True, parents=True)
    write_pairs(folder / "circle.txt", sequences or circle_sequences(60))
    path = folder / "circle.py"
    path.write_text(source)
    return path


def make_study(folder, path, model="gSASRec", **options):
    """Open the study of a model of the recipe."""
    recipe = load_recipe(path)
    interactions = recipe.load(path.parent)
    digests = {"data": interactions.digest(), "split": recipe.split.split(interactions).digest()}
    definition = define_study(recipe, model, **{"seeds": (1,), "seed": 1, "is_pruned": False, **digests, **options})
    return open_study(StudyFolder(folder), definition, recipe)


def make_search(study, path, trials=None, hours=None, **options):
    """Return the search of a study."""
    return Search(study, Limits(trials, hours), path, path.parent, **options)


class FakeTrials:
    """Executor whose trials have a value by formula, without training; `stop_after` raises as Ctrl-C does."""

    def __init__(self, stop_after=None, seconds=60.0, code=0):
        self.stop_after, self.seconds, self.code = stop_after, seconds, code
        self.run_trials = []

    def run(self, jobs):
        for job in jobs:
            if self.stop_after is not None and len(self.run_trials) >= self.stop_after:
                raise KeyboardInterrupt
            options = TrialOptions.from_json(job.argument)
            self.run_trials.append(options)
            if self.code == 0:
                write_result(options, self.seconds)
            yield JobResult(job, self.code)


def write_result(options, seconds):
    """Write the result of a trial: best near a learning rate of 0.01 and without dropout."""
    journal = (options.study / "journal.jsonl").read_text().splitlines()
    params = {}
    for line in map(json.loads, journal):
        if line.get("trial_id") == options.number and "param_name" in line:
            params[line["param_name"]] = line["param_value_internal"]
    value = 1 / (1 + abs(params["learning_rate"] - 0.01) + params.get("dropout_rate", 0.0))
    details = {"value": value, "values": [value], "best_epoch": 1, "epochs": 2, "seconds": seconds}
    TrialFolder(options.study / options.folder).write_result("complete", **details)


class InProcess:
    """Executor that trains in this process."""

    def run(self, jobs):
        for job in jobs:
            yield JobResult(job, run_trial(TrialOptions.from_json(job.argument), StopFlag()))
