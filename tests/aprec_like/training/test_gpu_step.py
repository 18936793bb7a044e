"""The training step as a GPU gets it, traced on any machine: the same update, and no scatter of floats in it."""

import re
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.batches.layouts import PackedBatch
from aprec_like.datasets import Lengths, Simulated
from aprec_like.devices import pretend_gpu
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.models import HSTU, BERT4Rec, GRU4Rec, LiGR, RelativePositionBias, SASRec, SwiGLU
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.ranking import rank
from aprec_like.recipe import MFBPR
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Trained, Training, make_step, train
from aprec_like.training.objective import make_objective
from aprec_like.training.step import _copy_to_gpu, make_steps
from tests.aprec_like.models.own_gru import GRU

SASREC = SASRec(max_length=32, embedding_dim=8, num_blocks=1, dropout_rate=0.0)
BERT = BERT4Rec(
    max_length=32, embedding_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16, dropout_rate=0.0,
    is_padding_attended=False,
)  # fmt: skip
GRU4REC = GRU4Rec(max_length=32, embedding_dim=8, num_layers=2, dropout_rate=0.0)
TRAINING = Training(batch_size=48)
CASES = {
    "SASRec, gBCE": Trained(SASREC, GBCE(8, 0.75), TRAINING, prior_start=True),
    "SASRec, one negative": Trained(SASREC, BCE(1), TRAINING),
    "SASRec, sampled softmax": Trained(SASREC, SampledSoftmax(8), TRAINING),
    "SASRec, softmax": Trained(SASREC, Softmax(), TRAINING),
    "SASRec, softmax over unseen items": Trained(SASREC, Softmax(excludes_history=True, label_smoothing=0.1), TRAINING),
    "SASRec, unseen negatives": Trained(SASREC, GBCE(8), TRAINING, Negatives(reject_history=True)),
    "LiGR": Trained(replace(SASREC, block=LiGR(SwiGLU(1), RelativePositionBias())), Softmax(), TRAINING),
    "HSTU": Trained(replace(SASREC, block=HSTU()), GBCE(8), TRAINING),
    "SASRec, negatives of the sequence": Trained(SASREC, GBCE(8), TRAINING, Negatives("sequence")),
    "SASRec, distinct negatives": Trained(
        SASREC, SampledSoftmax(8), TRAINING, Negatives("sequence", reject_history=True, without_replacement=True)
    ),
    "SASRec, negatives of the batch": Trained(SASREC, GBCE(8), TRAINING, Negatives("batch")),
    "GRU4Rec, gBCE": Trained(GRU4REC, GBCE(8, 0.75), TRAINING, prior_start=True),
    "GRU4Rec, softmax over unseen items": Trained(GRU4REC, Softmax(excludes_history=True), TRAINING),
    "BERT4Rec, softmax": Trained(BERT, Softmax(), TRAINING),
    "BERT4Rec, gBCE": Trained(BERT, GBCE(8), TRAINING),
    "BERT4Rec that attends to padding": Trained(replace(BERT, is_padding_attended=True), Softmax(), TRAINING),
    "MF-BPR": MFBPR(embedding_dim=8, epochs=1, batch_size=64),
    "own model": Trained(GRU(max_length=32, embedding_dim=8), Softmax(), TRAINING),
}

SEED = 2
"""Of batches: the first one fits into packed rows."""


@pytest.fixture(scope="module")
def split():
    return make_split()


def make_split():
    lengths = Lengths(median=12, spread=0.7, minimum=3, maximum=60)
    return LeaveOneOut(64).split(Simulated(num_users=500, num_items=200, lengths=lengths).load(None))


def made_step(trained, split, optimizer):
    keras.utils.set_random_seed(1)
    data = trained.training_data(split)
    network = trained.build_network(data)
    batches = make_batches(data, trained.model.examples(), trained.batch_settings, SEED)
    objective = make_objective(trained.loss, trained.negatives, data)
    spec, batch = batches.element_spec, next(iter(batches))
    return network, objective, optimizer, spec, batch, trained.is_step_compiled(data)


def one_update(trained, split):
    network, objective, optimizer, spec, batch, is_compiled = made_step(trained, split, keras.optimizers.SGD(1.0))
    step = make_step(network, objective, optimizer, 1, spec, is_compiled)
    return float(step(batch, tf.constant(0, tf.int64))), network.get_weights()


@pytest.mark.parametrize("name", CASES)
def test_a_gpu_makes_the_same_update(name, split):
    loss, weights = one_update(CASES[name], split)
    with pretend_gpu():
        gpu_loss, gpu_weights = one_update(CASES[name], split)
    assert gpu_loss == pytest.approx(loss, rel=1e-5)
    for ours, theirs in zip(gpu_weights, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_batch_that_does_not_fit_takes_the_unpacked_layout_to_the_same_update(split):
    trained = CASES["SASRec, gBCE"]
    with pretend_gpu():
        losses = []
        for fits in (True, False):
            network, objective, optimizer, spec, batch, _ = made_step(trained, split, keras.optimizers.SGD(1.0))
            assert isinstance(batch, PackedBatch) and bool(batch.fits)
            step = make_step(network, objective, optimizer, 1, spec)
            step(batch._replace(fits=tf.constant(int(fits))), tf.constant(0, tf.int64))
            losses.append(float(step(batch._replace(fits=tf.constant(int(fits))), tf.constant(1, tf.int64))))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_several_calls_of_several_steps_take_every_batch_once_and_in_order():
    def step(batch, step_number):
        return tf.cast(batch * step_number, tf.float32)

    steps = make_steps(step, tf.data.Dataset.range(10, 100))
    total = tf.constant(0.0)
    for first, number in ((0, 3), (3, 1), (4, 2)):
        total = steps(tf.constant(first, tf.int64), tf.constant(number, tf.int64), total)
    assert float(total) == sum((10 + number) * number for number in range(6))


def test_the_arrays_of_a_batch_are_copied_to_the_device_and_the_choice_of_its_layout_is_not(split, monkeypatch):
    monkeypatch.setattr("aprec_like.training.step.batch_device", lambda: "/CPU:0")
    with pretend_gpu():
        *_, spec, batch, _ = made_step(CASES["SASRec, gBCE"], split, None)
    assert {part.dtype for part in tf.nest.flatten((batch.packed, batch.unpacked))} == {tf.int64}
    copy = tf.function(_copy_to_gpu, input_signature=[spec]).get_concrete_function()
    operations = [operation for operation in copy.graph.get_operations() if operation.type == "Identity"]
    copied = [operation for operation in operations if "CPU:0" in operation.device]
    assert len(copied) == len(tf.nest.flatten(batch)) - 1
    assert {operation.inputs[0].dtype for operation in copied} == {tf.int64} and batch.fits.dtype == tf.int32


SCATTER = re.compile(r"= (\w+)\[[^=]* scatter\(")


@pytest.mark.parametrize("name", [name for name in CASES if name != "own model"])
def test_the_compiled_step_of_a_gpu_scatters_integers_only(name, split):
    """Sums of integers are the same in any order; XLA would run a deterministic sum of floats one by one.

    An own model with Keras' Embedding scatters floats, which is slow on a GPU and right.
    """
    with pretend_gpu():
        network, objective, _, spec, batch, is_compiled = made_step(CASES[name], split, None)
        assert is_compiled
        layouts = [(spec, batch)]
        if isinstance(batch, PackedBatch):
            layouts = [(spec.packed, batch.packed), (spec.unpacked, batch.unpacked)]
        for layout_spec, layout in layouts:
            optimizer = CASES[name].training.optimizer.build()
            step = make_step(network, objective, optimizer, 1, layout_spec, jit_compile=True)
            text = step.experimental_get_compiler_ir(layout, tf.constant(0, tf.int64))(stage="hlo")
            assert "ENTRY" in text
            assert [dtype for dtype in SCATTER.findall(text) if not dtype.startswith(("s", "u", "pred"))] == []


def test_packing_leaves_little_padding(split):
    with pretend_gpu():
        *_, batch, _ = made_step(CASES["SASRec, gBCE"], split, None)
    cells, real = np.prod(batch.packed.buckets[0].inputs.shape), int(np.sum(batch.packed.targets.numpy() >= 0))
    assert cells <= 1.3 * real


def test_a_gpu_learns_the_next_item_on_a_circle_with_dropout(circle):
    split = LeaveOneOut(num_validation_users=50).split(circle)
    model = SASRec(max_length=8, embedding_dim=16, num_blocks=1, dropout_rate=0.1)
    training = Training(
        batch_size=32, max_epochs=30, early_stopping=EarlyStopping(patience=30), optimizer=Adam(learning_rate=0.01)
    )
    with pretend_gpu():
        outcome = train(Trained(model, GBCE(8, 0.75), training), split, seed=1)
        assert np.mean(rank(outcome.scorer, split.test, exclude_seen=True).ranks == 1) > 0.9  # by chance 0.05
