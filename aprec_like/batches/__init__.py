"""Training batches: examples of a model, their layout in a batch, and the dataset of batches."""

from aprec_like.batches.dataset import (
    BatchSettings,
    Examples,
    FlatSequences,
    PaddedExamples,
    ShiftedExamples,
    lay_out,
    make_batches,
    num_steps_per_epoch,
    sorted_batch,
)
from aprec_like.batches.time_gaps import TimeGaps

__all__ = [
    "BatchSettings",
    "Examples",
    "FlatSequences",
    "PaddedExamples",
    "ShiftedExamples",
    "TimeGaps",
    "lay_out",
    "make_batches",
    "num_steps_per_epoch",
    "sorted_batch",
]
