"""Export of a network's weights: as a Keras model of this package, or as arrays that any program can read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

from aprec_like.errors import InputError
from aprec_like.models import Network, Scorer
from aprec_like.ranking import NetworkScorer
from aprec_like.types import Array, Json
from evaluation.cli import import_extra
from evaluation.inference.exported import Answer, Exported, ExportSource
from evaluation.inference.recommendations import score_catalogue, top_items

KERAS_MODEL, ARRAYS = "model.keras", "weights.safetensors"


def write_keras(source: ExportSource, folder: Path) -> Json:
    """Write model.keras, which `keras.saving.load_model` reads once `aprec_like.models` is imported."""
    _network(source).save(folder / KERAS_MODEL)
    return {"imports": "aprec_like.models"}


def load_keras(source: ExportSource, folder: Path) -> Exported:
    """Load model.keras, to be checked."""
    return _answers(source, NetworkScorer(keras.saving.load_model(folder / KERAS_MODEL)))


def write_safetensors(source: ExportSource, folder: Path) -> Json:
    """Write weights.safetensors: every weight under its path, and the settings of the network as metadata."""
    safetensors = import_extra("safetensors.numpy", "safetensors")
    network = _network(source)
    metadata = {"config": json.dumps(network.get_config())}
    arrays = {variable.path: np.asarray(variable) for variable in network.variables}
    safetensors.save_file(arrays, folder / ARRAYS, metadata)
    return {"weights": sorted(arrays)}


def load_safetensors(source: ExportSource, folder: Path) -> Exported:
    """Load the weights into a new network, to be checked."""
    arrays = import_extra("safetensors.numpy", "safetensors").load_file(folder / ARRAYS)
    network = type(_network(source)).from_config(_network(source).get_config())
    for variable in network.variables:
        variable.assign(arrays[variable.path])
    return _answers(source, NetworkScorer(network))


def _network(source: ExportSource) -> Network:
    if not isinstance(source.scorer, NetworkScorer):
        raise InputError(f"{source.model} is no network and has no weights; export it as a SavedModel")
    return source.scorer.network


def _answers(source: ExportSource, scorer: Scorer) -> Exported:
    """Return the recommendations of a scorer that was loaded from an export."""

    def answer(users: Sequence[Array]) -> Answer:
        found = [score_catalogue(scorer, history) for history in users]
        excluded = [history if source.exclude_seen else history[:0] for history in users]
        items = [top_items(scores, seen, source.k) for scores, seen in zip(found, excluded, strict=True)]
        return Answer(items, [scores[best] for scores, best in zip(found, items, strict=True)])

    return answer
