import itertools
import math
import time
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import BatchSettings, make_batches
from aprec_like.batches.layouts import STATIC
from aprec_like.errors import NotFiniteError
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import ORIGINAL_FLAVOUR, BERT4Rec, GRU4Rec, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.ranking.rank_catalogue import NetworkScorer, rank
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Trained, Training, TrainingControl, make_step, train
from aprec_like.training.objective import make_objective
from tests.conftest import NUM_ITEMS

SMALL = SASRec(max_length=8, embedding_dim=16, num_blocks=1, dropout_rate=0.1)
SMALL_GRU = GRU4Rec(max_length=8, embedding_dim=16, dropout_rate=0.1)
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


@pytest.mark.parametrize(
    ("model", "loss", "jit_compile"),
    [(SMALL, GBCE(8, 0.75), False), (SMALL, GBCE(8, 0.75), True), (SMALL_GRU, Softmax(), True)],
    ids=["SASRec", "SASRec, compiled", "GRU4Rec, compiled"],
)
def test_mixed_precision_computes_in_bfloat16_and_learns_as_well(split, model, loss, jit_compile):
    training = replace(SHORT, mixed_precision=True, jit_compile=jit_compile)
    outcome = train(Trained(model, loss, training), split, seed=1)
    network = outcome.scorer.network
    assert network(tf.zeros([1, 8], tf.int32)).dtype == tf.bfloat16
    assert {weight.dtype for weight in network.get_weights()} == {np.dtype(np.float32)}
    assert recall_at_1(outcome, split) > 0.9
    assert keras.config.dtype_policy().name == "float32"


@pytest.mark.parametrize("shared_by", ["position", "sequence", "batch"])
@pytest.mark.parametrize("model", [SMALL, SMALL_GRU, SMALL_BERT], ids=["SASRec", "GRU4Rec", "BERT4Rec"])
def test_a_step_in_mixed_precision_has_the_loss_and_gradient_of_one_in_float32(split, model, shared_by):
    """Up to the rounding of bfloat16, which has 8 significant bits: 2 ** -9 = 0.2 % per value."""
    losses, gradients = [], []
    for mixed_precision in (False, True):
        trained = Trained(model, GBCE(8, 0.75), replace(SHORT, mixed_precision=mixed_precision), Negatives(shared_by))
        network, random = trained.build_network(split.train), np.random.default_rng(0)
        network.set_weights([random.normal(scale=0.3, size=weight.shape) for weight in network.get_weights()])
        batch = next(iter(make_batches(split.train, model.examples(), trained.training.batch_settings, seed=1)))
        objective = make_objective(trained.loss, trained.negatives, split.train)
        with tf.GradientTape() as tape:
            loss = objective(network, batch, tf.constant([1, 0], tf.int64))
        found = tape.gradient(loss, [variable.value for variable in network.trainable_variables], None, "zero")
        losses.append(float(loss))
        gradients.append(np.concatenate([np.ravel(tf.convert_to_tensor(gradient)) for gradient in found]))
    assert losses[1] == pytest.approx(losses[0], rel=0.01) and losses[1] != losses[0]
    assert np.linalg.norm(gradients[1] - gradients[0]) < 0.03 * np.linalg.norm(gradients[0])


@pytest.mark.parametrize("has_head", [False, True])
def test_last_states_are_float32_in_mixed_precision(split, has_head):
    model = replace(SMALL_BERT, has_head=has_head)
    outcome = train(Trained(model, Softmax(), replace(SHORT, max_epochs=1, mixed_precision=True)), split, seed=1)
    network = outcome.scorer.network
    assert network(tf.zeros([1, 8], tf.int32)).dtype == tf.bfloat16
    assert network.last_states(split.test.histories(np.arange(3))).dtype == tf.float32


@pytest.mark.parametrize("model", [SMALL, SMALL_GRU], ids=["SASRec", "GRU4Rec"])
def test_a_compiled_step_is_compiled_once(split, model):
    """The first step compiles for seconds, the others take milliseconds."""
    network = model.build(split.train.num_items)
    batches = make_batches(split.train, model.examples(), BatchSettings(32, 256, layout=STATIC), seed=1)
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


def test_a_logit_bias_is_one_parameter_and_changes_no_ranking(split):
    without, with_bias = (SMALL.build(split.train.num_items, logit_bias=bias) for bias in (None, -2.5))
    with_bias.set_weights([np.float32(-2.5), *without.get_weights()])
    plain, biased = (rank(NetworkScorer(network), split.test, exclude_seen=True) for network in (without, with_bias))
    np.testing.assert_array_equal(plain.ranks, biased.ranks)
    np.testing.assert_allclose(biased.target_scores, plain.target_scores - 2.5, atol=1e-6)
    assert with_bias.count_params() == without.count_params() + 1


def test_prior_start_spares_gbce_its_first_epochs(split):
    """Its first loss is that of the prior probabilities, which training without it has to reach first."""
    training = replace(SHORT, max_epochs=1, optimizer=Adam(learning_rate=1e-6))
    loss = GBCE(8, 0.9)
    from_zero, from_prior = (
        train(Trained(SMALL, loss, training, prior_start=prior_start), split, seed=1).history[0].loss
        for prior_start in (False, True)
    )
    sigmoid = float(loss.optimal_sigmoid(NUM_ITEMS, Negatives())(1 / NUM_ITEMS))
    power = loss.power(NUM_ITEMS)
    assert from_zero == pytest.approx((power + 8) * math.log(2) / 9, rel=0.02)
    assert from_prior == pytest.approx(-(power * math.log(sigmoid) + 8 * math.log(1 - sigmoid)) / 9, rel=0.02)


def test_the_logit_bias_is_trained(split):
    outcome = train(Trained(SMALL, GBCE(8, 0.9), replace(SHORT, max_epochs=3), prior_start=True), split, seed=1)
    first = GBCE(8, 0.9).prior_logit(NUM_ITEMS, Negatives())
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
    steps = []
    control = TrainingControl(time_limit=0.0, on_step=lambda progress: steps.append((progress.epoch, progress.step)))
    outcome = train(Trained(SMALL, Softmax(), SHORT), split, seed=1, control=control)
    assert steps == [(1, 1)]
    assert outcome.stopped_by == "time_limit" and len(outcome.history) == 1


def test_a_loss_that_is_not_finite_stops_training(split):
    training = replace(SHORT, optimizer=Adam(learning_rate=1e30))
    with pytest.raises(NotFiniteError, match="not finite"):
        train(Trained(SMALL, Softmax(), training), split, seed=1)


def one_step(split, loss, jit_compile=False, strategy=None, negatives=None, layout=STATIC):
    negatives = negatives or Negatives()
    with (strategy or tf.distribute.get_strategy()).scope():
        keras.utils.set_random_seed(1)
        network = replace(SMALL, dropout_rate=0.0).build(split.train.num_items)
        objective = make_objective(loss, negatives, split.train)
        batches = make_batches(split.train, SMALL.examples(), BatchSettings(32, 256, layout=layout), seed=1)
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
    batches = make_batches(split.train, SMALL.examples(), BatchSettings(16, 256, layout=4), seed=1)
    step = make_step(network, objective, keras.optimizers.Adam(), 1, batches.element_spec)
    for number, batch in enumerate(itertools.islice(batches, 20)):
        step(batch, tf.constant(number, tf.int64))
    assert len(traces) == 1
