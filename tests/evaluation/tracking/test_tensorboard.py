"""Curves for TensorBoard: what is written, and that a killed and resumed training continues them."""

import math

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from aprec_like.errors import StoppedError
from aprec_like.files import StorageError
from aprec_like.losses import Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training, TrainingControl, train
from aprec_like.training.checkpoints import Checkpoints
from aprec_like.training.state import EpochRecord
from evaluation.tracking.tensorboard import EVENTS, TensorBoardLog, make_event, read_events

TRAINED = Trained(
    SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.0),
    Softmax(),
    Training(64, max_epochs=4, early_stopping=EarlyStopping(NDCG(10), patience=9), optimizer=Adam(0.02)),
)


def curves(folder):
    """By TensorBoard's own reader: values by epoch, by name."""
    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    names = accumulator.Tags()["scalars"]
    return {name: {each.step: each.value for each in accumulator.Scalars(name)} for name in names}


def train_with_log(folder, split, is_stopping=lambda: False):
    log = TensorBoardLog(folder, TRAINED, split.train.num_items)
    control = TrainingControl(checkpoints=Checkpoints(folder / "checkpoint", fingerprint={}), is_stopping=is_stopping)
    try:
        return train(TRAINED, split, seed=1, control=log.follow(control)).history
    finally:
        log.close()


def test_a_stopped_training_continues_its_curves(circle, tmp_path):
    split = LeaveOneOut(num_validation_users=50).split(circle)
    path = tmp_path / EVENTS

    def has_two_epochs():
        return len(list(read_events(path))) >= 2

    with pytest.raises(StoppedError):
        train_with_log(tmp_path, split, has_two_epochs)
    assert list(curves(tmp_path)["loss"]) == [1, 2]
    with path.open("ab") as file:  # a killed process leaves half of a record
        file.write(b"\x10\x00\x00")
    history = train_with_log(tmp_path, split)
    found = curves(tmp_path)
    assert found["loss"] == pytest.approx({record.epoch: record.loss for record in history})
    assert found["validation/NDCG@10"] == pytest.approx({record.epoch: record.validation for record in history})
    assert set(found["learning rate"].values()) == {np.float32(0.02)}
    assert min(found["speed/steps per second"].values()) > 0
    precision, predicted = found["calibration/precision@10"], found["calibration/predicted@10"]
    assert all(0 < precision[epoch] < 0.1001 and 0 < predicted[epoch] < 1 for epoch in range(1, 5))


def test_epochs_after_the_checkpoint_are_removed(tmp_path):
    log = TensorBoardLog(tmp_path, TRAINED, 20)
    records = [EpochRecord(epoch, 1 / epoch, None, False, float(epoch)) for epoch in (1, 2, 3)]
    log.on_start([], 0)
    for record in records:
        log.on_epoch(record)
    log.close()
    log.on_start(records[:1], 0)
    log.on_epoch(EpochRecord(2, 7.0, None, False, 2.0))
    log.close()
    assert curves(tmp_path)["loss"] == {1: 1.0, 2: 7.0}


def test_an_event_is_read_as_it_was_written_and_a_folder_that_is_gone_is_a_storage_error(tmp_path):
    assert list(read_events(tmp_path / EVENTS)) == []
    assert make_event(3, {"b": 1.0, "a": math.inf}).summary.value[0].tag == "a"
    with pytest.raises(StorageError, match="cannot be written"):
        TensorBoardLog(tmp_path / "gone", TRAINED, 20).on_start([], 0)
