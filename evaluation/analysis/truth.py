"""Distance of predicted probabilities from the true ones of simulated data, over the whole catalogue.

The stored rankings hold only the best items, so the models score again: this module needs TensorFlow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

from aprec_like.calibration import TOP, TruthGap, truth_gap
from aprec_like.datasets import Simulated
from aprec_like.errors import InputError
from aprec_like.settings import restore
from aprec_like.types import Array
from evaluation.analysis.calibration import CHUNK_CELLS, probability_of, read_subjects
from evaluation.results.load import LoadedRuns
from evaluation.results.load_split import load_split
from evaluation.results.scorer import KNOWN, load_scorer


def full_gaps(runs: LoadedRuns) -> dict[str, TruthGap]:
    """How far the probabilities of all items are from the truth of simulated data, by model.

    Unlike the distance over the first items, this takes all scores, so the models are asked again.
    """
    run, settings = runs.folders[0], runs.settings
    dataset = restore(settings["dataset"], KNOWN)
    if not isinstance(dataset, Simulated):
        raise InputError(f"{run.path}: the truth is known of simulated data alone")
    truth = dataset.truth()
    test = load_split(run, Path(), KNOWN).test
    subjects = {subject.name: subject for subject in read_subjects(runs)}
    scorers = {
        model.name: load_scorer(run, model.name, model.seeds[0], Path())
        for model in runs.models
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
