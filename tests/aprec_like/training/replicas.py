"""Trains small models on one device and on two replicas in one process; prints losses as JSON. See `test_replicas`."""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import keras
import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.devices import make_strategy, prepare_devices
from aprec_like.errors import StoppedError
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import BERT4Rec, GRU4Rec, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Trained, Training, TrainingControl, train
from aprec_like.training.checkpoints import Checkpoints
from aprec_like.training.objective import make_objective
from aprec_like.training.step import make_step
from tests.conftest import circle_sequences, interactions_from

NUM_STEPS = 20
data = interactions_from(circle_sequences(200), 20)
# 33 sequences: two replicas have 17 rows each, one of them padding.
training = Training(batch_size=33, optimizer=Adam(0.01))
small = SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.2)
masked = BERT4Rec(max_length=8, embedding_dim=8, num_layers=1, feed_forward_dim=16, dropout_rate=0.1)
recurrent = GRU4Rec(max_length=8, embedding_dim=8, dropout_rate=0.2)
lazy = replace(training, optimizer=Adam(0.01, lazy=True))
MODELS = {
    "gSASRec": Trained(small, GBCE(8, 0.75), training),
    "SASRec-Softmax": Trained(small, Softmax(), training),
    "GRU4Rec": Trained(recurrent, GBCE(8, 0.75), training),
    "BERT4Rec": Trained(masked, Softmax(), training),
    "lazy": Trained(small, GBCE(8, 0.75), lazy, Negatives(shared_by="batch")),
    "sequence": Trained(small, BCE(2), training, Negatives(shared_by="sequence", reject_history=True)),
    "compiled": Trained(small, GBCE(8, 0.75), replace(training, jit_compile=True)),
    "mixed": Trained(small, GBCE(8, 0.75), replace(training, mixed_precision=True)),
}


def losses(trained: Trained, strategy: tf.distribute.Strategy) -> list[float]:
    """Losses of the first steps."""
    with strategy.scope():
        keras.utils.set_random_seed(1)
        network, optimizer = trained.build_network(data), trained.training.optimizer.build()
        objective = make_objective(trained.loss, trained.negatives, data)
        batches = make_batches(data, trained.model.examples(), trained.batch_settings, seed=1)
        step = make_step(network, objective, optimizer, 1, batches.element_spec, trained.training.jit_compile)
        return [
            float(step(batch, tf.constant(number, tf.int64))) for number, batch in enumerate(batches.take(NUM_STEPS))
        ]


def resumed(strategies: list[tf.distribute.Strategy]) -> list[list[float]]:
    """Loss and validation of three epochs, each on the next of the strategies."""
    split = LeaveOneOut(num_validation_users=50).split(data)
    early = replace(training, max_epochs=3, early_stopping=EarlyStopping(patience=3))
    trained = replace(MODELS["gSASRec"], training=early)
    with tempfile.TemporaryDirectory() as folder:
        for number, strategy in enumerate(strategies, start=1):
            ended: list[int] = []
            control = TrainingControl(
                checkpoints=Checkpoints(Path(folder), fingerprint={}),
                is_stopping=lambda last=number, ended=ended: bool(ended) and ended[-1] == last < len(strategies),
                on_epoch=lambda record, ended=ended: ended.append(record.epoch),
            )
            try:
                with strategy.scope():
                    outcome = train(trained, split, seed=1, control=control)
            except StoppedError:
                continue
    return [[record.loss, record.validation] for record in outcome.history]


if __name__ == "__main__" and sys.argv[1] == "host":
    strategy = make_strategy(1)
    prepare_devices()
    print(json.dumps({name: losses(MODELS[name], strategy) for name in sys.argv[2:]}))
elif __name__ == "__main__":
    two = make_strategy(2)
    prepare_devices()
    one = tf.distribute.get_strategy()
    found = {name: [losses(MODELS[name], each) for each in (one, two)] for name in sys.argv[2:]}
    if not sys.argv[2:]:
        found = {"resumed": [resumed([one]), resumed([two, one, two])]}
    print(json.dumps(found))
