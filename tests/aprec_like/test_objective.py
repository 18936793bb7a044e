import numpy as np
import pytest
import tensorflow as tf

from aprec_like import objective
from aprec_like.batches import Batch
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives

SEED = tf.constant([1, 2], tf.int64)


def small_network(num_items=12):
    return SASRec(max_length=4, embedding_dim=8, dropout_rate=0.0).build(num_items)


def batch_of(items, targets):
    return Batch(tf.range(len(items)), tf.constant(items), tf.constant(targets), tf.zeros([len(items), 0], tf.int32))


def test_picking_from_all_logits_equals_gathering_rows(monkeypatch):
    random = np.random.default_rng(0)
    states, table = tf.constant(random.normal(size=(2, 3, 4))), tf.Variable(random.normal(size=(50, 4)))
    candidates = tf.constant(random.integers(50, size=(2, 3, 5)))
    results = []
    for limit in (0, 1000):
        monkeypatch.setattr(objective, "MAX_GEMM_ITEMS_PER_CANDIDATE", limit)
        with tf.GradientTape() as tape:
            tape.watch(states)
            logits = objective.candidate_logits(states, table, candidates)
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
    value = objective.batch_loss(network, Softmax(), Negatives(), batch_of(items, targets), SEED)
    states = network(tf.constant(items)).numpy()
    logits = states @ network.item_table.numpy().T
    losses = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, np.maximum(targets, 0)[..., None], -1)[..., 0]
    assert float(value) == pytest.approx(losses[np.array(targets) >= 0].mean(), rel=1e-5)


@pytest.mark.parametrize("loss", [BCE(3), GBCE(3, 0.5), Softmax()])
def test_padding_on_the_left_changes_nothing(loss):
    """Without dropout, and with the negatives drawn from a catalogue whose logits are all equal."""
    network = small_network()
    if not isinstance(loss, Softmax):
        network.output_embedding.embeddings.assign(tf.ones_like(network.output_embedding.embeddings))
    short = objective.batch_loss(network, loss, Negatives(), batch_of([[1, 2]], [[2, 3]]), SEED)
    padded = objective.batch_loss(network, loss, Negatives(), batch_of([[-1, -1, 1, 2]], [[-1, -1, 2, 3]]), SEED)
    assert float(short) == pytest.approx(float(padded), rel=1e-5)


def test_the_same_seed_gives_the_same_loss_and_another_seed_another():
    network = SASRec(max_length=4, embedding_dim=8, dropout_rate=0.5).build(12)
    batch = batch_of([[1, 2, 3, 4]], [[2, 3, 4, 5]])
    values = [
        float(objective.batch_loss(network, BCE(2), Negatives(), batch, tf.constant(seed, tf.int64)))
        for seed in ([1, 1], [1, 1], [1, 2])
    ]
    assert values[0] == values[1] != values[2]
