"""Export as a SavedModel, which TensorFlow and TF Serving load without this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from aprec_like.types import Array, Json
from evaluation.inference.catalogue_scores import catalogue_scores
from evaluation.inference.exported import Answer, Exported, ExportSource
from evaluation.inference.recommender import Recommender, TopItems


def write_saved_model(source: ExportSource, folder: Path) -> Json:
    """Write a SavedModel; returns what export.json says about it."""
    top_items = TopItems(catalogue_scores(source.scorer, len(source.catalogue)), source.probability)
    recommender = Recommender(top_items, source.catalogue, k=source.k, exclude_seen=source.exclude_seen)
    signatures = recommender.signatures()
    tf.saved_model.save(recommender, str(folder), signatures=signatures)
    return {"signatures": list(signatures), "padding": recommender.padding}


def load_saved_model(source: ExportSource, folder: Path) -> Exported:
    """Load the SavedModel with TensorFlow alone, to be checked: ids go in and come out."""
    signature = tf.saved_model.load(str(folder)).signatures["serving_default"]
    (specification,) = signature.structured_input_signature[1].values()
    ids = source.catalogue["item"].to_numpy().astype(np.int64 if specification.dtype == tf.int64 else str)
    number_of = {item: number for number, item in enumerate(ids.tolist())}

    def answer(users: Sequence[Array]) -> Answer:
        histories = tf.ragged.constant([ids[user].tolist() for user in users], specification.dtype, ragged_rank=1)
        padding = -(2**63) if specification.dtype == tf.int64 else ""
        found = signature(items=histories.to_tensor(padding))
        names = [
            [item if isinstance(item, int) else item.decode() for item in row] for row in found["ids"].numpy().tolist()
        ]
        items = np.array([[number_of.get(item, -1) for item in row] for row in names])
        probabilities = found["probabilities"].numpy() if "probabilities" in found else None
        return Answer(items, found["scores"].numpy(), probabilities)

    return answer
