"""Writes the curves of a training to a file that TensorBoard shows; only looking at them needs TensorBoard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from aprec_like.calibration import Probability
from aprec_like.errors import first_line
from aprec_like.files import StorageError
from aprec_like.ranking import Rankings
from aprec_like.recipe import Trained
from aprec_like.schedules import learning_rate_at
from aprec_like.training import TrainingControl
from aprec_like.training.state import EpochRecord, Progress

EVENTS = "events.out.tfevents.aprec_like"
"""Name of the file in a model's folder; TensorBoard's own would hold the name of the machine."""
FILE_VERSION = "brain.Event:2"
CALIBRATION_DEPTH = 10
"""Number of best items whose predicted probability is compared with their precision."""


class TensorBoardLog:
    """The curves of one training, one value per epoch: loss, validation, learning rate, steps per second, calibration.

    A resumed training continues the file: values of epochs that it will repeat are removed first.

    Args:
        folder: folder of the model and seed, which TensorBoard shows as a run.
        trained: settings of the training.
        num_items: size of the catalogue.
    """

    def __init__(self, folder: Path, trained: Trained, num_items: int) -> None:
        self.path, self.trained = folder / EVENTS, trained
        self.probability: Probability | None = trained.loss.probability(num_items, trained.negatives)
        self._writer: Any = None
        self._values: dict[str, float] = {}
        self._started = (0.0, 0)

    def follow(self, control: TrainingControl) -> TrainingControl:
        """Return the control of a training with this log among its callbacks."""

        def on_step(progress: Progress) -> None:
            control.on_step(progress)
            self.on_step(progress)

        def on_epoch(record: EpochRecord) -> None:
            control.on_epoch(record)
            self.on_epoch(record)

        has_validation = self.trained.training.early_stopping is not None
        return replace(
            control,
            on_start=self.on_start,
            on_step=on_step,
            on_epoch=on_epoch,
            on_validation=self.on_validation,
            validation_depth=CALIBRATION_DEPTH if self.probability and has_validation else 0,
        )

    def on_start(self, history: Sequence[EpochRecord], step: int) -> None:
        """Open the file with the values of the epochs that are complete; `step` steps of the next one are done."""
        kept = [event for event in read_events(self.path) if event.step <= len(history)]
        self._started = (history[-1].seconds if history else 0.0, step)
        with _storage_errors(self.path):
            self._writer = tf.io.TFRecordWriter(str(self.path))
        self._write(tf.compat.v1.Event(wall_time=time.time(), file_version=FILE_VERSION), *kept)

    def on_step(self, progress: Progress) -> None:
        """Remember the pace and the learning rate of the current epoch."""
        num_steps = (progress.epoch - 1) * progress.steps_per_epoch + progress.step
        self._values["learning rate"] = learning_rate_at(self.trained.training.optimizer.learning_rate, num_steps - 1)
        seconds, step = self._started
        if progress.seconds > seconds and progress.step > step:
            self._values["speed/steps per second"] = (progress.step - step) / (progress.seconds - seconds)

    def on_validation(self, rankings: Rankings) -> None:
        """Remember how the predicted probability of the best items compares with how often they came true."""
        if self.probability and rankings.top_scores.size:
            scores = np.where(np.isfinite(rankings.top_scores), rankings.top_scores, np.nan)
            predicted = self.probability(scores, rankings.logsumexps)
            depth = scores.shape[1]
            self._values[f"calibration/predicted@{depth}"] = float(np.nanmean(predicted))
            self._values[f"calibration/precision@{depth}"] = float(np.mean(rankings.ranks <= depth) / depth)

    def on_epoch(self, record: EpochRecord) -> None:
        """Write the values of an epoch."""
        self._values["loss"] = record.loss
        if record.validation is not None and self.trained.training.early_stopping:
            self._values[f"validation/{self.trained.training.early_stopping.metric}"] = record.validation
        self._write(make_event(record.epoch, self._values))
        self._values, self._started = {}, (record.seconds, 0)

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()

    def _write(self, *events: Any) -> None:
        with _storage_errors(self.path):
            for event in events:
                self._writer.write(event.SerializeToString())
            self._writer.flush()


def make_event(epoch: int, values: Mapping[str, float]) -> Any:
    """Return the values of an epoch by name as one event of TensorBoard's format."""
    summary = tf.compat.v1.Summary(
        value=[tf.compat.v1.Summary.Value(tag=name, simple_value=value) for name, value in sorted(values.items())]
    )
    return tf.compat.v1.Event(wall_time=time.time(), step=epoch, summary=summary)


def read_events(path: Path) -> Iterator[Any]:
    """Yield the values that a file holds, without its header and what a killed process left unfinished."""
    if not path.exists():
        return
    records = iter(tf.data.TFRecordDataset(str(path)))
    while True:
        try:
            event = tf.compat.v1.Event.FromString(next(records).numpy())
        except (StopIteration, tf.errors.DataLossError):
            return
        if event.HasField("summary"):
            yield event


@contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    """Raise `StorageError` instead of TensorFlow's errors within the block, which writes `path`."""
    try:
        yield
    except tf.errors.OpError as error:
        raise StorageError(f"{path}: cannot be written: {first_line(error)}") from error
