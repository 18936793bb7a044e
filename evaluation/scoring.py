"""A finished model as a scorer again, from what its folder holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from aprec_like import models
from aprec_like.calibration import TOP, TruthGap, truth_gap
from aprec_like.datasets import Simulated
from aprec_like.errors import InputError, first_line
from aprec_like.interactions import Array
from aprec_like.models import CountingModel, MatrixFactorisation, NeuralModel, Popularity, Scorer
from aprec_like.models.popularity import PopularityScorer
from aprec_like.ranking import NetworkScorer
from evaluation.contestants import Contest
from evaluation.lab import CHUNK_CELLS, probability_of, read_subjects
from evaluation.restore import DATA_CLASSES, classes_of, load_split, restore, settings_of
from evaluation.smoke import FirstUsers
from evaluation.store import WEIGHTS, ModelFolder, RunFolder

KNOWN = {**DATA_CLASSES, **classes_of(models), "FirstUsers": FirstUsers}


def finished_folder(run: RunFolder, name: str, seed: int | None = None) -> ModelFolder:
    """The folder of a finished model; by default that of its first seed."""
    finished = [(found, number) for found, number, folder in run.models() if folder.is_finished()]
    seeds = [number for found, number in finished if found == name]
    if not seeds:
        names = ", ".join(dict.fromkeys(found for found, _ in finished)) or "none"
        raise InputError(f"{run.path}: has no finished model {name!r}; finished are {names}")
    if seed is not None and seed not in seeds:
        raise InputError(f"{run.path}: {name} is finished with the seeds {', '.join(map(str, seeds))}, not with {seed}")
    return run.model(name, seeds[0] if seed is None else seed)


def load_scorer(run: RunFolder, name: str, seed: int | None, data_dir: Path) -> Scorer:
    """The scorer of a finished model for any history; raises `InputError` where the folder does not allow one.

    Networks are built from recipe.json and get their stored weights; Popularity is in items.parquet; other counting
    models are fitted again, for which the data must be on disk.
    """
    folder = finished_folder(run, name, seed)
    settings, items = settings_of(run)["models"][name], run.read_items()
    if settings["class"] == "Trained":
        model = restore(settings["model"], KNOWN)
        if isinstance(model, MatrixFactorisation):
            raise InputError(f"{name} is a matrix factorisation, which knows only its own users: it can't be asked")
        return NetworkScorer(_load_network(model, len(items), settings["prior_start"], folder.verified(WEIGHTS)))
    model = restore(settings, KNOWN)
    if isinstance(model, Popularity):
        return PopularityScorer(items["count"].to_numpy())
    if not isinstance(model, CountingModel):
        raise InputError(f"{run.path}: {name} is neither a network nor a counting model")
    return model.fit(load_split(run, data_dir, KNOWN).test.known)


def _load_network(model: NeuralModel, num_items: int, has_offset: bool, weights: Path) -> models.Network:
    network = model.build(num_items, logit_offset=0.0 if has_offset else None)
    try:
        network.load_weights(weights)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{weights}: are not the weights of {model}: {first_line(error)}") from error
    return network


def full_gaps(contest: Contest) -> dict[str, TruthGap]:
    """How far the probabilities of all items are from the truth of simulated data, by model.

    Unlike the distance over the first items, this takes all scores, so the models are asked again.
    """
    run, settings = contest.runs[0], contest.settings
    dataset = restore(settings["dataset"], KNOWN)
    if not isinstance(dataset, Simulated):
        raise InputError(f"{run.path}: the truth is known of simulated data alone")
    truth = dataset.truth()
    test = load_split(run, Path(), KNOWN).test
    subjects = {subject.name: subject for subject in read_subjects(contest)}
    scorers = {
        model.name: load_scorer(run, model.name, model.seeds[0], Path())
        for model in contest.contestants
        if model.name in subjects
    }
    found: dict[str, list[TruthGap]] = {name: [] for name in scorers}
    chunks = np.array_split(np.arange(len(test)), max(1, len(test) * dataset.num_items // CHUNK_CELLS))
    for cases in chunks:
        histories = test.histories(cases)
        true = truth.probabilities(histories)
        for name, scorer in scorers.items():
            predicted = _probabilities(settings["models"][name], np.asarray(scorer.score(histories)))
            found[name].append(truth_gap(predicted, true, subjects[name].items[cases, :TOP]))
    weights = [len(cases) for cases in chunks]
    return {name: _average(gaps, weights) for name, gaps in found.items()}


def _probabilities(settings: dict[str, object], scores: Array) -> Array:
    probability = probability_of(settings, scores.shape[1])
    assert probability is not None, "only models with probabilities are subjects"
    return probability(scores, tf.reduce_logsumexp(scores, axis=1).numpy())


def _average(gaps: list[TruthGap], weights: list[int]) -> TruthGap:
    columns = np.array([[gap.top, gap.catalogue, gap.divergence] for gap in gaps])
    return TruthGap(*map(float, np.average(columns, axis=0, weights=weights)))
