import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import Batch
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.objective import make_objective, own_logits, sampled_losses
from tests.conftest import interactions_from


def small_network(num_items=12):
    return SASRec(max_length=4, embedding_dim=8, dropout_rate=0.0).build(num_items)


def batch_of(items, targets):
    positions = tf.broadcast_to(tf.range(len(items[0])), [len(items), len(items[0])])
    return Batch(tf.range(len(items), dtype=tf.int64), tf.constant(items), positions, tf.constant(targets))


def loss_of(network, loss, batch, seed=(1, 2), negatives=None):
    train = interactions_from([[1], [2]], network.num_items)
    objective = make_objective(loss, negatives or Negatives(), train)
    return float(objective(network, batch, tf.constant(seed, tf.int64)))


def test_picking_from_all_logits_equals_gathering_rows(monkeypatch):
    random = np.random.default_rng(0)
    states, table = tf.constant(random.normal(size=(2, 3, 4))), tf.Variable(random.normal(size=(50, 4)))
    candidates = tf.constant(random.integers(50, size=(2, 3, 5)))
    results = []
    for limit in (0, 1000):
        monkeypatch.setattr("aprec_like.objective.MAX_GEMM_ITEMS_PER_CANDIDATE", limit)
        with tf.GradientTape() as tape:
            tape.watch(states)
            positive, negative = own_logits(states, table, candidates[..., 0], candidates[..., 1:])
            logits = tf.concat([positive[..., None], negative], axis=-1)
            total = tf.reduce_sum(logits**2)
        gradients = tape.gradient(total, [states, table])
        results.append([logits.numpy(), *(tf.convert_to_tensor(gradient).numpy() for gradient in gradients)])
    expected = np.einsum("bld,blcd->blc", states, table.numpy()[candidates])
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-12)
    for gathered, picked in zip(*results, strict=True):
        np.testing.assert_allclose(gathered, picked, rtol=1e-10)


def test_the_mean_is_over_positions_with_a_target_not_over_users():
    """One user with three targets, one with one: the loss is a quarter of the four position losses."""
    network = small_network()
    items, targets = [[-1, 1, 2, 3], [-1, -1, -1, 5]], [[-1, 2, 3, 4], [-1, -1, -1, 6]]
    value = loss_of(network, Softmax(), batch_of(items, targets))
    states = network(tf.constant(items)).numpy()
    logits = states @ network.item_table.numpy().T
    losses = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, np.maximum(targets, 0)[..., None], -1)[..., 0]
    assert value == pytest.approx(losses[np.array(targets) >= 0].mean(), rel=1e-5)


@pytest.mark.parametrize("loss", [BCE(3), GBCE(3, 0.5), Softmax()])
def test_padding_on_the_left_changes_nothing(loss):
    """Without dropout, and with the negatives drawn from a catalogue whose logits are all equal."""
    network = small_network()
    if not isinstance(loss, Softmax):
        network.output_embedding.embeddings.assign(tf.ones_like(network.output_embedding.embeddings))
    short = loss_of(network, loss, batch_of([[1, 2]], [[2, 3]]))
    padded = loss_of(network, loss, batch_of([[-1, -1, 1, 2]], [[-1, -1, 2, 3]]))
    assert short == pytest.approx(padded, rel=1e-5)


def test_the_same_seed_gives_the_same_loss_and_another_seed_another():
    network = SASRec(max_length=4, embedding_dim=8, dropout_rate=0.5).build(12)
    batch = batch_of([[1, 2, 3, 4]], [[2, 3, 4, 5]])
    values = [loss_of(network, BCE(2), batch, seed) for seed in ([1, 1], [1, 1], [1, 2])]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("shape", [(2, 1, 5), (1, 1, 5)])
def test_shared_negatives_give_the_loss_of_the_same_items_drawn_for_every_position(shape):
    random = np.random.default_rng(0)
    states, table = tf.constant(random.normal(size=(2, 3, 4))), tf.constant(random.normal(size=(50, 4)))
    targets, drawn = tf.constant(random.integers(50, size=(2, 3))), tf.constant(random.integers(50, size=shape))
    shared = sampled_losses(GBCE(5, 0.5), states, table, targets, drawn)
    own = sampled_losses(GBCE(5, 0.5), states, table, targets, tf.broadcast_to(drawn, [2, 3, 5]))
    np.testing.assert_allclose(shared, own, rtol=1e-12)


def test_sharing_does_not_change_the_expected_loss():
    network = small_network()
    network.output_embedding.embeddings.assign(tf.random.stateless_normal([14, 8], [1, 2]))
    batch = batch_of([[1, 2, 3, 4], [5, 6, 7, 8]], [[2, 3, 4, 5], [6, 7, 8, 9]])
    means = {}
    for shared_by in ("position", "sequence", "batch"):
        train = interactions_from([[1], [2]], 12)
        objective = tf.function(make_objective(GBCE(4, 0.5), Negatives(shared_by=shared_by), train))
        values = [float(objective(network, batch, tf.constant([seed, 1], tf.int64))) for seed in range(600)]
        means[shared_by] = (np.mean(values), np.std(values) / np.sqrt(len(values)))
    for shared_by in ("sequence", "batch"):
        difference = abs(means[shared_by][0] - means["position"][0])
        assert difference < 4 * np.hypot(means[shared_by][1], means["position"][1])
