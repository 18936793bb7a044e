import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.interactions import PADDING
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.models.transformer import LayerNorm, attend, attention_mask_bias, dropout, dropout_mask


@pytest.mark.parametrize("rate", [0.5, 0.25, 0.2, 0.1, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(rate):
    values = tf.ones([400, 501])
    dropped = dropout(values, rate, tf.constant([1, 2], tf.int64), index=3).numpy()
    share = np.mean(dropped == 0)
    assert share == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / dropped.size))
    np.testing.assert_allclose(dropped[dropped != 0], 1 / (1 - rate), rtol=1e-4)


def test_dropout_is_a_function_of_seed_and_index_and_neighbours_are_independent():
    values, seed = tf.ones([100_000]), tf.constant([1, 2], tf.int64)
    first, again, other = (dropout(values, 0.5, seed, index).numpy() for index in (0, 0, 1))
    assert (first == again).all() and 0.45 < np.mean(first == other) < 0.55
    for distance in (1, 2, 3, 4, 8, 16):
        assert abs(np.corrcoef(first[distance:], first[:-distance])[0, 1]) < 0.015


def test_dropout_without_a_seed_or_a_rate_changes_nothing():
    values = tf.ones([3])
    assert dropout(values, 0.5, None, 0) is values
    assert dropout(values, 0.0, tf.constant([1, 2], tf.int64), 0) is values


@pytest.mark.parametrize("epsilon", [1e-3, 1e-8, 1e-12])
def test_the_layer_norm_is_that_of_keras(epsilon):
    random = np.random.default_rng(0)
    values = tf.constant(random.normal(2, 3, size=(4, 5, 16)), tf.float32)
    ours, theirs = LayerNorm(epsilon=epsilon), keras.layers.LayerNormalization(epsilon=epsilon)
    results = []
    for layer in (ours, theirs):
        layer.build(values.shape)
        layer.set_weights([np.linspace(0.5, 2, 16), np.linspace(-1, 1, 16)])
        with tf.GradientTape() as tape:
            tape.watch(values)
            total = tf.reduce_sum(layer(values) ** 3)
        results.append([layer(values), *tape.gradient(total, [values, layer.gamma.value, layer.beta.value])])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_attention_has_the_values_and_gradients_of_the_plain_formula(rate):
    random = np.random.default_rng(0)
    shapes = [(3, 2, 4, 5), (3, 2, 6, 5), (3, 2, 6, 5)]
    inputs = [tf.constant(random.normal(size=shape), tf.float32) for shape in shapes]
    is_visible = tf.constant(random.random((3, 4, 6)) < 0.6)
    mask_bias, seed = attention_mask_bias(is_visible, tf.float32), tf.constant([1, 2], tf.int64)

    def plain(queries, keys, values):
        products = tf.einsum("bhqd,bhkd->bhqk", queries, keys) / np.sqrt(5)
        weights = tf.nn.softmax(tf.where(is_visible[:, None], products, -1e30), axis=-1)
        if rate:
            is_kept, scale = dropout_mask(tf.constant([3, 2, 4, 6]), rate, seed, 7)
            weights *= scale * tf.cast(is_kept, tf.float32)
        return tf.einsum("bhqk,bhkd->bhqd", weights, values)

    results = []
    for formula in (plain, lambda *inputs: attend(*inputs, mask_bias, rate, seed, 7)):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            found = formula(*inputs)
            total = tf.reduce_sum(found**3)
        results.append([found, *tape.gradient(total, inputs)])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        SASRec(max_length=9, embedding_dim=8, num_heads=2),
        SASRec(max_length=9, embedding_dim=8, num_blocks=1),
        BERT4Rec(
            max_length=9, embedding_dim=8, num_layers=2, num_heads=2, feed_forward_dim=16, is_padding_attended=False
        ),
        BERT4Rec(max_length=9, embedding_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16),
    ],
)
def test_the_last_state_alone_is_the_last_of_all_states(model):
    network = model.build(30)
    random = np.random.default_rng(0)
    network.set_weights([random.normal(scale=0.3, size=weight.shape) for weight in network.get_weights()])
    items = random.integers(30, size=(5, 9)).astype(np.int32)
    items[1, :4] = items[2, :8] = PADDING
    whole, last = network(items), network(items, is_last_only=True)
    assert last.shape == (5, 1, 8)
    np.testing.assert_allclose(last[:, 0], whole[:, -1], atol=1e-5)
