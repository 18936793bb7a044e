"""GRU4Rec against a GRU in plain NumPy, and sequences that share rows."""

from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches.layouts import Packing
from aprec_like.interactions import Histories
from aprec_like.models import GRU4Rec
from aprec_like.models.gated_recurrence import GRULayer, gated_recurrence

SMALL = GRU4Rec(max_length=8, embedding_dim=6, num_layers=2, dropout_rate=0.5)


def random_network(settings=SMALL, num_items=15, seed=0):
    network = settings.build(num_items)
    random = np.random.default_rng(seed)
    network.set_weights([random.normal(size=weight.shape) for weight in network.get_weights()])
    return network


def items(*rows):
    return tf.constant(rows, tf.int32)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def gru_states(inputs, kernel, bias, is_continued):
    """States of a GRU, one sequence and position after the other, from projected inputs, in float64."""
    states = np.zeros((*inputs.shape[:2], kernel.shape[0]))
    for row in range(inputs.shape[0]):
        state = np.zeros(kernel.shape[0])
        for position in range(inputs.shape[1]):
            state = state if is_continued[row, position] else np.zeros_like(state)
            z, r, n = np.split(inputs[row, position], 3)
            z_state, r_state, n_state = np.split(state @ kernel + bias, 3)
            update = sigmoid(z + z_state)
            candidate = np.tanh(n + sigmoid(r + r_state) * n_state)
            state = update * state + (1 - update) * candidate
            states[row, position] = state
    return states


def numerical_gradient(function, values, step=1e-5):
    gradient = np.zeros_like(values)
    for index in np.ndindex(values.shape):
        shifted = [values.copy(), values.copy()]
        for sign, copy in zip((1, -1), shifted, strict=True):
            copy[index] += sign * step
        gradient[index] = (function(shifted[0]) - function(shifted[1])) / (2 * step)
    return gradient


@pytest.mark.parametrize("is_compiled", [False, True])
def test_values_and_gradients_of_the_recurrence_are_those_of_a_plain_loop(is_compiled):
    random = np.random.default_rng(0)
    arguments = [random.normal(size=shape) for shape in ((3, 5, 12), (4, 12), (12,))]
    is_continued, weights = random.random((3, 5)) > 0.3, random.normal(size=(3, 5, 4))

    @tf.function(jit_compile=is_compiled)
    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            states = gated_recurrence(*tensors, tf.constant(is_continued))
            total = tf.reduce_sum(states * weights.astype(np.float32))
        return states, tape.gradient(total, tensors)

    states, gradients = run(*(tf.constant(argument, tf.float32) for argument in arguments))
    np.testing.assert_allclose(states, gru_states(*arguments, is_continued), atol=1e-5)
    for place, gradient in enumerate(gradients):

        def total(values, place=place):
            changed = [*arguments[:place], values, *arguments[place + 1 :]]
            return float(np.sum(weights * gru_states(*changed, is_continued)))

        np.testing.assert_allclose(gradient, numerical_gradient(total, arguments[place]), atol=1e-5)


def test_the_layer_has_the_weights_and_values_of_keras():
    random = np.random.default_rng(0)
    inputs = tf.constant(random.normal(size=(3, 5, 4)), tf.float32)
    ours, theirs = GRULayer(6, "gru"), keras.layers.GRU(6, return_sequences=True)
    is_continued = tf.constant([[False, True, True, True, True]] * 3)
    ours(inputs, is_continued), theirs(inputs)
    weights = [random.normal(size=weight.shape) for weight in theirs.get_weights()]
    ours.set_weights(weights)
    theirs.set_weights(weights)
    np.testing.assert_allclose(ours(inputs, is_continued), theirs(inputs), atol=1e-5)


def test_padding_other_sequences_and_later_items_change_no_state():
    network = random_network()
    alone, other = network(items([3, 1, 4])), network(items([5, 9, 2, 6]))
    padded = network(items([-1, -1, 3, 1, 4]))[:, 2:]
    np.testing.assert_allclose(padded, alone, atol=1e-6)
    np.testing.assert_allclose(network(items([3, 1, 7]))[:, :2], alone[:, :2], atol=1e-6)
    np.testing.assert_allclose(network(items([3, 1, 4]), is_last_only=True), alone[:, -1:], atol=1e-6)
    packing = Packing(items([5, 6, 7, 4, 5, 6, 7, 0]), items([0, 0, 0, 1, 1, 1, 1, -1]))
    packed = network(items([3, 1, 4, 5, 9, 2, 6, -1]), packing=packing)
    np.testing.assert_allclose(packed[:, :3], alone, atol=1e-6)
    np.testing.assert_allclose(packed[:, 3:7], other, atol=1e-6)
    assert np.abs(network(items([8, 1, 4])) - alone)[:, 1:].max() > 1e-3


def test_the_value_of_the_padding_row_does_not_matter():
    network = random_network()
    before = network(items([-1, -1, 3, 1, 4]))[0, 2:].numpy()
    table = network.item_embedding.embeddings
    table.assign(tf.tensor_scatter_nd_update(table, [[15]], tf.fill([1, 6], 100.0)))
    np.testing.assert_array_equal(before, network(items([-1, -1, 3, 1, 4]))[0, 2:])


def test_an_empty_history_has_the_same_finite_state_in_any_company():
    network = random_network()
    together = network.last_states(Histories(np.array([3, 1, 4, 1, 5], np.int32), np.array([0, 5, 5])))
    alone = network.last_states(Histories(np.array([], np.int32), np.array([0, 0])))
    np.testing.assert_allclose(together[1], alone[0], atol=1e-6)
    assert np.isfinite(together).all()
    np.testing.assert_allclose(network.next_item_states(tf.fill([1, 3], -1)), alone, atol=1e-6)


def test_dropout_is_a_function_of_its_seed():
    network, rows = random_network(), items([3, 1, 4, 1, 5, 9])
    seeds = [tf.constant(seed, tf.int64) for seed in ([1, 1], [1, 1], [1, 2])]
    first, again, other = (network(rows, dropout_seed=seed).numpy() for seed in seeds)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    assert np.abs(first - network(rows)).max() > 0.01


@pytest.mark.parametrize("is_tied", [False, True])
def test_it_scores_with_its_input_table_or_one_of_its_own(is_tied):
    network = random_network(replace(SMALL, is_tied=is_tied))
    assert np.array_equal(network.item_table, network.item_embedding.embeddings[:15]) == is_tied


@pytest.mark.parametrize(
    "settings", [{"max_length": 0}, {"dropout_rate": 1.0}, {"num_layers": 0}, {"embedding_dim": -8}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="GRU4Rec needs"):
        GRU4Rec(**settings)
