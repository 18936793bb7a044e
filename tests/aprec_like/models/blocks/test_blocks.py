"""Blocks against an independent NumPy implementation: values, and gradients by complex steps."""

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches.layouts import Packing
from aprec_like.models import GELU, HSTU, LiGR, PreNorm, RelativePositionBias, SASRec, SwiGLU
from aprec_like.models.blocks import BlockSizes

SIZES = BlockSizes(max_length=6, dim=4, num_heads=2, dropout_rate=0.0, layer_norm_epsilon=1e-6)
NUM_VISIBLE = [[1, 2, 3, 4, 5], [0, 0, 1, 2, 3]]
"""Of every query the number of visible keys, which end at the query itself: the second sequence is padded."""
IS_VISIBLE = np.array([[[q - n < k <= q for k in range(5)] for q, n in enumerate(row)] for row in NUM_VISIBLE])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def norm(x, gamma, beta):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma + beta


def attention_logits(queries, keys, distances):
    """By loops over users, heads and positions; row 5 of `distances` is distance 0."""
    logits = np.zeros((2, 2, 5, 5), np.complex128)
    for user, head, query, key in np.ndindex(logits.shape):
        columns = slice(2 * head, 2 * head + 2)
        logits[user, head, query, key] = queries[user, query, columns] @ keys[user, key, columns]
        if distances is not None:
            logits[user, head, query, key] += distances[5 + query - key, head]
    return logits


def weighted_sums(weights, values):
    return np.concatenate([weights[:, head] @ values[:, :, 2 * head : 2 * head + 2] for head in range(2)], axis=-1)


def softmax_attention(x, w, distances):
    scaled = attention_logits(x @ w["query"] / np.sqrt(2), x @ w["key"], distances)
    exponentials = np.exp(scaled) * IS_VISIBLE[:, None]
    sums = exponentials.sum(-1, keepdims=True)
    weights = np.where(IS_VISIBLE.any(-1)[:, None, :, None], exponentials / np.where(sums == 0, 1, sums), 0.2)
    return weighted_sums(weights, x @ w["value"]) @ w["output"]


def ligr(x, w):
    attended = softmax_attention(norm(x, w["norm1_gamma"], w["norm1_beta"]), w, w.get("distances"))
    x = x + sigmoid(x @ w["gate1"]) * attended
    normed = norm(x, w["norm2_gamma"], w["norm2_beta"])
    forward = (silu(normed @ w["gate"]) * (normed @ w["inner"])) @ w["outer"]
    return x + sigmoid(x @ w["gate2"]) * forward


def hstu(x, w):
    normed = norm(x, w["norm1_gamma"], w["norm1_beta"])
    gate, values, queries, keys = (silu(normed @ w[name]) for name in ("gate", "value", "query", "key"))
    weights = silu(attention_logits(queries, keys, w["distances"])) * IS_VISIBLE[:, None]
    attended = norm(weighted_sums(weights, values), w["norm2_gamma"], w["norm2_beta"])
    return x + (attended * gate) @ w["output"] + w["output_bias"]


def weight_name(path):
    *_, layer, weight = path.split("/")
    return {"kernel": layer, "distances": weight}.get(weight, f"{layer}_{weight}")


def complex_step_gradients(function, arguments):
    """Exact to rounding: the imaginary part of f(x + ih) / h has no difference in it."""
    gradients = {}
    for name, values in arguments.items():
        gradients[name] = np.zeros(values.shape)
        for index in np.ndindex(values.shape):
            moved = values.astype(np.complex128)
            moved[index] += 1e-30j
            gradients[name][index] = function({**arguments, name: moved}).imag / 1e-30
    return gradients


@pytest.mark.parametrize(
    ("block", "formula"),
    [(LiGR(SwiGLU(3)), ligr), (LiGR(SwiGLU(2), RelativePositionBias()), ligr), (HSTU(), hstu)],
    ids=["LiGR", "LiGR with position bias", "HSTU"],
)
def test_a_block_has_the_values_and_gradients_of_an_independent_implementation(block, formula):
    random = np.random.default_rng(0)
    layer, states = block.build(SIZES, 0), random.normal(size=(2, 5, 4))
    mask_bias = tf.where(IS_VISIBLE, 0.0, tf.float32.min / 2)
    layer(tf.constant(states, tf.float32), mask_bias, None)
    upstream = random.normal(size=states.shape) * IS_VISIBLE.any(-1)[:, :, None]
    weights = {weight_name(weight.path): random.normal(scale=0.6, size=weight.shape) for weight in layer.weights}
    assert len(weights) == len(layer.weights)
    for weight in layer.weights:
        weight.assign(weights[weight_name(weight.path)])

    inputs = tf.constant(states, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        found = layer(inputs, mask_bias, None)
        total = tf.reduce_sum(upstream.astype(np.float32) * found)
    found_gradients = tape.gradient(total, [inputs, *(weight.value for weight in layer.weights)])
    expected = formula(states, weights).real
    is_real = IS_VISIBLE.any(-1)
    np.testing.assert_allclose(found.numpy()[is_real], expected[is_real], atol=1e-5)

    def objective(arguments):
        return np.sum(upstream * formula(arguments["states"], arguments))

    gradients = complex_step_gradients(objective, {"states": states, **weights})
    names = ["states", *(weight_name(weight.path) for weight in layer.weights)]
    for name, gradient in zip(names, found_gradients, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), gradients[name], atol=1e-5, err_msg=name)


BLOCKS = [PreNorm(), PreNorm(SwiGLU(2), RelativePositionBias()), LiGR(), HSTU()]


def random_network(block):
    network = SASRec(max_length=8, embedding_dim=8, num_heads=2, block=block).build(15)
    random = np.random.default_rng(0)
    network.set_weights([random.normal(scale=0.5, size=weight.shape) for weight in network.get_weights()])
    return network


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_position_sees_its_own_sequence_up_to_itself(block):
    network = random_network(block)
    alone, other = tf.constant([[3, 1, 4]]), tf.constant([[5, 9, 2, 6]])
    padded = network(tf.constant([[-1, -1, 3, 1, 4]]))[:, 2:]
    np.testing.assert_allclose(network(alone), padded, atol=1e-5)
    np.testing.assert_allclose(network(tf.constant([[3, 1, 7]]))[:, :2], padded[:, :2], atol=1e-5)
    assert np.abs(network(tf.constant([[8, 1, 4]])) - padded)[:, 1:].max() > 1e-3
    np.testing.assert_allclose(network(alone, is_last_only=True), padded[:, -1:], atol=1e-5)
    packing = Packing(tf.constant([[5, 6, 7, 4, 5, 6, 7, 0]]), tf.constant([[0, 0, 0, 1, 1, 1, 1, -1]]))
    packed = network(tf.constant([[3, 1, 4, 5, 9, 2, 6, -1]]), packing=packing)
    np.testing.assert_allclose(packed[:, :3], padded, atol=1e-5)
    np.testing.assert_allclose(packed[:, 3:7], network(other), atol=1e-5)
    seeds = [tf.constant(seed, tf.int64) for seed in ([1, 1], [1, 1], [1, 2])]
    first, again, different = (network(other, dropout_seed=seed).numpy() for seed in seeds)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - different).max() > 0.01


@pytest.mark.parametrize("feed_forward", [GELU, SwiGLU])
def test_a_feed_forward_needs_a_width(feed_forward):
    with pytest.raises(ValueError, match=f"{feed_forward.__name__} needs expansion of at least 1"):
        feed_forward(0)


def test_a_block_is_an_instance():
    with pytest.raises(TypeError, match="SASRec needs block to be a Block"):
        SASRec(block=LiGR)
