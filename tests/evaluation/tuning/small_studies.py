"""A small recipe with a search space, and executors without processes."""

import json
import textwrap

import numpy as np

from aprec_like.recipe import load_recipe
from aprec_like.settings import describe
from evaluation.running.jobs import JobResult
from evaluation.running.signals import StopFlag
from evaluation.tuning.folders import StudyFolder, TrialFolder
from evaluation.tuning.options import TrialOptions
from evaluation.tuning.search import Search
from evaluation.tuning.study import Limits, define_study, open_study
from evaluation.tuning.trial import run_trial
from tests.conftest import circle_sequences, write_pairs
from tests.evaluation.made_runs import NUM_USERS, make_run, small_dataset, write_model

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

RUN_VALUES = {1: 0.5, 2: 0.25, 3: 0.75}
"""Best validation values of `write_tuned_run` by seed."""


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


def write_tuned_run(path, study, trial, data=None):
    """Write a run of the tuned recipe with the settings of a trial: three finished seeds, an interrupted one."""
    settings, random = describe(study.model_of(trial)), np.random.default_rng(0)
    run = make_run(path, {study.model: settings})
    split = small_dataset()["split"] | {"digest": study.definition["split"]}
    run.write_dataset(small_dataset(sha256=data or study.definition["data"], split=split))
    for seed, value in RUN_VALUES.items():
        write_model(run, study.model, settings, random.random(NUM_USERS), random, seed)
        details = {"epochs": 5, "best_epoch": 4, "best_validation": value, "stopped_by": "early_stopping"}
        run.model(study.model, seed).finish(seconds_to_best=1.0, **details)
    run.model(study.model, 4).path.mkdir()
    run.model(study.model, 4).write_status("interrupted")
    return run
