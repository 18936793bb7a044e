import itertools
import math
import time
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import STATIC, BatchSettings, make_batches
from aprec_like.calibration import optimal_sigmoid, prior_logit
from aprec_like.errors import NotFiniteError
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import ORIGINAL_FLAVOUR, BERT4Rec, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.ranking.rank_catalogue import NetworkScorer, rank
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Trained, Training, TrainingControl, make_step, train
from aprec_like.training.objective import make_objective
from tests.conftest import NUM_ITEMS

SMALL = SASRec(max_length=8, embedding_dim=16, num_blocks=1, dropout_rate=0.1)
SMALL_BERT = BERT4Rec(
    max_length=8, embedding_dim=16, num_layers=1, num_heads=2, feed_forward_dim=32, is_padding_attended=False
)
SHORT = Training(
    batch_size=32, max_epochs=40, early_stopping=EarlyStopping(patience=40), optimizer=Adam(learning_rate=0.01)
)


@pytest.fixture
def split(circle):
    return LeaveOneOut(num_validation_users=50).split(circle)


def recall_at_1(outcome, split):
    return np.mean(rank(outcome.scorer, split.test, exclude_seen=True).ranks == 1)


@pytest.mark.parametrize(
    ("model", "loss", "negatives"),
    [
        (SMALL, Softmax(), Negatives()),
        (SMALL, BCE(1), Negatives()),
        (SMALL, GBCE(8, 0.75), Negatives()),
        (SMALL, GBCE(8, 0.5), Negatives(reject_positive=True)),
        (replace(SMALL, flavour=ORIGINAL_FLAVOUR), BCE(1, is_averaged=False), Negatives(reject_history=True)),
    ],
)
def test_the_next_item_on_a_circle_is_learned(split, model, loss, negatives):
    outcome = train(Trained(model, loss, SHORT, negatives), split, seed=1)
    assert recall_at_1(outcome, split) > 0.9  # by chance 0.05


@pytest.mark.parametrize("jit_compile", [False, True])
def test_mixed_precision_computes_in_16_bits_and_learns_as_well(split, jit_compile):
    training = replace(SHORT, mixed_precision=True, jit_compile=jit_compile)
    outcome = train(Trained(SMALL, GBCE(8, 0.75), training), split, seed=1)
    network = outcome.scorer.network
    assert network(tf.zeros([1, 8], tf.int32)).dtype == tf.bfloat16
    assert {weight.dtype for weight in network.get_weights()} == {np.dtype(np.float32)}
    assert recall_at_1(outcome, split) > 0.9
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.parametrize("shared_by", ["sequence", "batch"])
@pytest.mark.parametrize(
    "model",
    [
        SMALL,
        BERT4Rec(
            max_length=8, embedding_dim=16, num_layers=1, num_heads=2, feed_forward_dim=32, is_padding_attended=False
        ),
    ],
    ids=["SASRec", "BERT"],
)
def test_mixed_precision_works_with_shared_negatives(split, model, shared_by):
    training = replace(SHORT, max_epochs=1, mixed_precision=True)
    outcome = train(Trained(model, GBCE(8, 0.75), training, Negatives(shared_by)), split, seed=1)
    assert np.isfinite(outcome.history[0].loss)


@pytest.mark.parametrize("has_head", [False, True])
def test_every_network_gives_states_in_32_bits_whatever_it_computes_in(split, has_head):
    model = BERT4Rec(
        max_length=8,
        embedding_dim=16,
        num_layers=1,
        num_heads=2,
        feed_forward_dim=32,
        is_padding_attended=False,
        has_head=has_head,
    )
    outcome = train(Trained(model, Softmax(), replace(SHORT, max_epochs=1, mixed_precision=True)), split, seed=1)
    network = outcome.scorer.network
    assert network(tf.zeros([1, 8], tf.int32)).dtype == tf.bfloat16
    assert network.last_states(split.test.histories(np.arange(3))).dtype == tf.float32


def test_a_compiled_step_is_compiled_once(split):
    """The first step compiles for seconds, the others take milliseconds."""
    network = SMALL.build(split.train.num_items)
    batches = make_batches(split.train, SMALL.examples(), BatchSettings(32, 256, num_pieces=STATIC), seed=1)
    objective = make_objective(GBCE(8), Negatives(), split.train)
    step = make_step(network, objective, Adam().build(), 1, batches.element_spec, jit_compile=True)
    seconds = []
    for number, batch in enumerate(itertools.islice(batches, 4)):
        started = time.monotonic()
        float(step(batch, tf.constant(number, tf.int64)))
        seconds.append(time.monotonic() - started)
    assert sum(seconds[1:]) < seconds[0] / 2


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(split):
    training = replace(SHORT, max_epochs=2)
    first, again, other = (train(Trained(SMALL, GBCE(8), training), split, seed=seed) for seed in (1, 1, 2))
    assert [record.loss for record in first.history] == [record.loss for record in again.history]
    for ours, theirs in zip(first.scorer.network.get_weights(), again.scorer.network.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert first.history[0].loss != other.history[0].loss


def test_prior_start_changes_no_ranking_of_a_fresh_network_and_starts_near_the_optimum(split):
    fresh, started = (replace(SMALL).build(split.train.num_items, logit_bias=offset) for offset in (None, -2.5))
    started.set_weights([np.float32(-2.5), *fresh.get_weights()])
    plain, offset = (rank(NetworkScorer(network), split.test, exclude_seen=True) for network in (fresh, started))
    np.testing.assert_array_equal(plain.ranks, offset.ranks)
    np.testing.assert_allclose(offset.target_scores, plain.target_scores - 2.5, atol=1e-6)
    assert started.count_params() == fresh.count_params() + 1


def test_prior_start_spares_gbce_its_first_epochs(split):
    """The loss of a network that knows nothing but the prior is where training without it has yet to arrive."""
    training = replace(SHORT, max_epochs=1, optimizer=Adam(learning_rate=1e-6))
    loss = GBCE(8, 0.9)
    from_zero, from_prior = (
        train(Trained(SMALL, loss, training, prior_start=prior_start), split, seed=1).history[0].loss
        for prior_start in (False, True)
    )
    sigmoid = float(optimal_sigmoid(1 / NUM_ITEMS, loss, NUM_ITEMS))
    power = loss.power(NUM_ITEMS)
    assert from_zero == pytest.approx((power + 8) * math.log(2) / 9, rel=0.02)
    assert from_prior == pytest.approx(-(power * math.log(sigmoid) + 8 * math.log(1 - sigmoid)) / 9, rel=0.02)


def test_the_prior_is_learned_with_the_rest(split):
    outcome = train(Trained(SMALL, GBCE(8, 0.9), replace(SHORT, max_epochs=3), prior_start=True), split, seed=1)
    first = prior_logit(GBCE(8, 0.9), NUM_ITEMS)
    assert abs(float(outcome.scorer.network.logit_bias) - first) > 1e-3


def test_the_best_epochs_weights_are_restored(split):
    """With an absurd learning rate later epochs are worse; the outcome must score like its best epoch."""
    training = replace(SHORT, max_epochs=6, optimizer=Adam(learning_rate=0.3))
    outcome = train(Trained(SMALL, Softmax(), training), split, seed=1)
    validation = np.mean(
        training.early_stopping.metric.per_user(rank(outcome.scorer, split.validation, exclude_seen=True).ranks)
    )
    assert validation == pytest.approx(max(record.validation for record in outcome.history), abs=1e-12)
    assert outcome.best.validation == max(record.validation for record in outcome.history)


def test_training_stops_early_when_nothing_improves(split):
    training = replace(
        SHORT, max_epochs=50, early_stopping=EarlyStopping(patience=3), optimizer=Adam(learning_rate=1e-12)
    )
    outcome = train(Trained(SMALL, Softmax(), training), split, seed=1)
    assert outcome.stopped_by == "early_stopping"
    assert len(outcome.history) == outcome.best.epoch + 3


def test_a_time_limit_ends_training_within_the_epoch(split):
    outcome = train(Trained(SMALL, Softmax(), SHORT), split, seed=1, control=TrainingControl(time_limit=0.0))
    assert outcome.stopped_by == "time_limit"
    assert len(outcome.history) == 1


def test_a_loss_that_is_not_finite_stops_training(split):
    training = replace(SHORT, optimizer=Adam(learning_rate=1e30))
    with pytest.raises(NotFiniteError, match="not finite"):
        train(Trained(SMALL, Softmax(), training), split, seed=1)


def one_step(split, loss, jit_compile=False, strategy=None, negatives=None, num_pieces=STATIC):
    negatives = negatives or Negatives()
    with (strategy or tf.distribute.get_strategy()).scope():
        keras.utils.set_random_seed(1)
        network = replace(SMALL, dropout_rate=0.0).build(split.train.num_items)
        objective = make_objective(loss, negatives, split.train)
        batches = make_batches(split.train, SMALL.examples(), BatchSettings(32, 256, num_pieces=num_pieces), seed=1)
        optimizer = keras.optimizers.SGD(1.0)
        step = make_step(network, objective, optimizer, 1, batches.element_spec, jit_compile=jit_compile)
    batch, number = next(iter(batches)), tf.constant(0, tf.int64)
    value = strategy.run(step, args=(batch, number)) if strategy else step(batch, number)
    return float(value), network.get_weights()


@pytest.mark.parametrize("loss", [Softmax(), BCE(1), GBCE(8, 0.75)])
def test_the_step_compiles_with_xla_to_the_same_update(split, loss):
    value, weights = one_step(split, loss)
    compiled_value, compiled_weights = one_step(split, loss, jit_compile=True)
    assert compiled_value == pytest.approx(value, rel=1e-4)
    for ours, theirs in zip(weights, compiled_weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_the_step_that_rejects_the_history_compiles_with_xla(split):
    negatives = Negatives(reject_history=True)
    value, _ = one_step(split, BCE(4), negatives=negatives)
    assert one_step(split, BCE(4), jit_compile=True, negatives=negatives)[0] == pytest.approx(value, rel=1e-4)


def test_the_step_runs_under_a_distribution_strategy(split):
    value, weights = one_step(split, GBCE(8, 0.75))
    distributed, distributed_weights = one_step(
        split, GBCE(8, 0.75), strategy=tf.distribute.OneDeviceStrategy("/cpu:0")
    )
    assert distributed == pytest.approx(value, rel=1e-6)
    for ours, theirs in zip(weights, distributed_weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_rows_that_a_batch_does_not_touch_move_by_their_momentum():
    """Keras' dense Adam, as in the originals: a lazy optimiser would leave them where they are."""
    variable = tf.Variable([[1.0], [1.0]])
    optimizer = Adam(learning_rate=0.1).build()
    for rows in ([0, 1], [0]):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(tf.gather(variable, rows))
        optimizer.apply([tf.convert_to_tensor(tape.gradient(value, variable))], [variable])
        moved = 1 - float(variable[1, 0])
    assert moved > 0.1 + 0.03


@pytest.mark.parametrize(
    "make", [lambda: Training(batch_size=0), lambda: EarlyStopping(patience=0), lambda: Adam(learning_rate=math.nan)]
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ValueError, match="needs"):
        make()


def test_a_step_is_traced_once_whatever_the_lengths(split):
    traces = []

    def objective(network, batch, seed):
        traces.append(1)
        return make_objective(Softmax(), Negatives(), split.train)(network, batch, seed)

    network = SMALL.build(split.train.num_items)
    batches = make_batches(split.train, SMALL.examples(), BatchSettings(16, 256, num_pieces=4), seed=1)
    step = make_step(network, objective, keras.optimizers.Adam(), 1, batches.element_spec)
    for number, batch in enumerate(itertools.islice(batches, 20)):
        step(batch, tf.constant(number, tf.int64))
    assert len(traces) == 1
