"""Distance of predicted probabilities from the true ones of simulated data, over the whole catalogue.

The stored rankings hold only the top items, so the models compute all scores again, which needs TensorFlow.
"""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np
import tensorflow as tf

from aprec_like.calibration import NUM_TOP_ITEMS, Probability, TruthGap, truth_gap
from aprec_like.datasets import Simulated
from aprec_like.errors import InputError
from aprec_like.recipe_classes import DATA_CLASSES
from aprec_like.settings import SettingsClasses, restore
from aprec_like.types import Array
from evaluation.calibration.predictions import MAX_CHUNK_CELLS, read_calibrated_models
from evaluation.results.load import LoadedRuns
from evaluation.results.load_split import load_split
from evaluation.results.scorer import load_scorer


def full_gaps(runs: LoadedRuns, own: SettingsClasses | None = None) -> dict[str, TruthGap]:
    """Return the distance of the probabilities of all items from the true ones, by model; `own` as in `load_scorer`.

    Raises `InputError` for data that is not simulated.
    """
    run, settings = runs.folders[0], runs.settings
    dataset = restore(settings["dataset"], DATA_CLASSES)
    if not isinstance(dataset, Simulated):
        raise InputError(f"{run.path}: true probabilities are known for simulated data only")
    truth = dataset.true_probabilities()
    test = load_split(run, Path()).test
    models = {model.name: model for model in read_calibrated_models(runs, own=own)}
    scorers = {
        model.name: load_scorer(run, model.name, model.seeds[0], Path(), own)
        for model in runs.models
        if model.name in models
    }
    gaps: dict[str, list[TruthGap]] = {name: [] for name in scorers}
    chunks = np.array_split(np.arange(len(test)), max(1, len(test) * dataset.num_items // MAX_CHUNK_CELLS))
    for cases in chunks:
        histories = test.histories(cases)
        true = truth.probabilities(histories)
        is_seen = np.zeros(true.shape, bool)
        is_seen[histories.rows, histories.items] = True
        for name, scorer in scorers.items():
            predicted = _predict(models[name].probability, np.asarray(scorer.score(histories)))
            gaps[name].append(truth_gap(predicted, true, models[name].items[cases, :NUM_TOP_ITEMS], is_seen))
    weights = [len(cases) for cases in chunks]
    return {name: _average(chunk_gaps, weights) for name, chunk_gaps in gaps.items()}


def _predict(probability: Probability, scores: Array) -> Array:
    return probability(scores, tf.reduce_logsumexp(scores, axis=1).numpy())


def _average(gaps: list[TruthGap], weights: list[int]) -> TruthGap:
    columns = np.array([astuple(gap) for gap in gaps])
    return TruthGap(*map(float, np.average(columns, axis=0, weights=weights)))
