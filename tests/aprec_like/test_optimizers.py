"""Fused and lazy Adam against Keras' Adam, and Adagrad against its formula."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.optimizers import Adagrad, Adam
from aprec_like.schedules import CosineDecay, WarmUp


def updated(optimizer, gradients, start):
    """The value of a variable after steps with these gradients, compiled as in training."""
    variable = keras.Variable(start)
    optimizer.build([variable])

    @tf.function
    def step(gradient):
        optimizer.apply([gradient], [variable])

    for gradient in gradients:
        step(gradient)
    return variable.numpy()


def slices(rows, values, num_rows=6):
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(rows), tf.constant([num_rows, 3]))


def test_fused_adam_updates_as_keras_does():
    random = np.random.default_rng(0)
    gradients = [tf.constant(random.normal(size=(6, 3)), tf.float32) for _ in range(20)]
    start = random.normal(size=(6, 3)).astype(np.float32)
    for settings in ((0.01, 0.8, 0.98, 1e-5), (0.01,)):
        expected = updated(keras.optimizers.Adam(*settings), gradients, start)
        found = updated(Adam(*settings).build(), gradients, start)
        # 1 - 0.999 is rounded differently: 1e-5 of a step.
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0.01 * 1e-5 * len(gradients))


def test_adam_computes_the_powers_of_its_decay_rates_once_for_all_variables():
    variables = [keras.Variable(np.zeros(size, np.float32)) for size in (2, 3, 4)]
    optimizer = Adam().build()
    optimizer.build(variables)
    step = tf.function(lambda: optimizer.apply([tf.ones_like(variable) for variable in variables], variables))
    types = [operation.type for operation in step.get_concrete_function().graph.get_operations()]
    assert types.count("ResourceApplyAdam") == 3 and types.count("Pow") == 2


def test_adagrad_adds_no_epsilon_to_a_small_accumulator():
    """As in MF-BPR with a large batch: an epsilon would slow the first steps."""
    start, gradient, accumulator = np.zeros(2, np.float32), np.array([1e-4, -2e-4], np.float32), 1e-8
    found = updated(Adagrad(0.05, accumulator).build(), [tf.constant(gradient)] * 3, start)
    expected = -0.05 * sum(gradient / np.sqrt(accumulator + step * gradient**2) for step in (1, 2, 3))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_lazy_adam_gives_every_row_the_adam_of_the_steps_that_used_it():
    """Row 4 comes twice in one step, and its gradients add up; rows 0 and 3 never come."""
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 3)).astype(np.float32)
    start = random.normal(size=(6, 3)).astype(np.float32)
    steps = [slices([4, 1, 4], values), slices([1, 1, 1], values), slices([5, 2, 4], values), slices([2, 5, 1], values)]
    found = updated(Adam(0.1, lazy=True).build(), steps, start)
    for row in range(6):
        row_gradients = [
            values[step.indices.numpy() == row].sum(axis=0) for step in steps if row in step.indices.numpy()
        ]
        alone = updated(keras.optimizers.Adam(0.1), [tf.constant(gradient) for gradient in row_gradients], start[row])
        np.testing.assert_allclose(found[row], alone, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[[0, 3]], start[[0, 3]])


def test_lazy_adam_is_adam_while_every_row_is_used():
    random = np.random.default_rng(0)
    start = random.normal(size=(6, 3)).astype(np.float32)
    dense = [tf.constant(random.normal(size=(6, 3)), tf.float32) for _ in range(5)]
    lazy = updated(Adam(0.1, lazy=True).build(), [slices(range(6), gradient) for gradient in dense], start)
    np.testing.assert_allclose(lazy, updated(Adam(0.1).build(), dense, start), atol=1e-5)


def test_a_schedule_moves_weights_by_its_learning_rate():
    """With a constant gradient the bias-corrected step of Adam is the learning rate."""
    found = updated(Adam(WarmUp(0.1, 4), epsilon=0.0).build(), [tf.ones([1])] * 6, np.zeros(1, np.float32))
    assert found[0] == pytest.approx(-(0.025 + 0.05 + 0.075 + 0.1 + 0.1 + 0.1), rel=1e-4)


def test_weight_decay_takes_a_share_of_matrices_and_leaves_vectors():
    matrix, vector = keras.Variable(np.full((2, 2), 4.0)), keras.Variable(np.full(2, 4.0))
    optimizer = Adam(0.1, weight_decay=0.5).build()
    optimizer.build([matrix, vector])
    optimizer.apply([tf.zeros([2, 2]), tf.zeros([2])], [matrix, vector])
    np.testing.assert_allclose(matrix, 4 * (1 - 0.1 * 0.5), rtol=1e-6)
    np.testing.assert_allclose(vector, 4.0)


def test_gradients_are_clipped_to_their_common_norm():
    """Norms 3 and 4 together have the norm 5: clipped to 1 they are 0.6 and 0.8. The first moment shows them."""
    variables = [keras.Variable(np.zeros((1, 1))), keras.Variable(np.zeros((1, 1)))]
    optimizer = Adam(0.1, clip_norm=1.0).build()
    optimizer.build(variables)
    optimizer.apply([tf.constant([[3.0]]), tf.constant([[4.0]])], variables)
    moments = [float(optimizer._moments(variable)[0][0, 0]) for variable in variables]
    assert moments == pytest.approx([0.06, 0.08], rel=1e-5)


@pytest.mark.parametrize(
    "settings", [{"weight_decay": -1}, {"clip_norm": 0}, {"learning_rate": 0}, {"lazy": True, "weight_decay": 0.1}]
)
def test_impossible_settings_of_adam_are_refused(settings):
    with pytest.raises(ValueError, match="Adam "):
        Adam(**settings)


@pytest.mark.parametrize("settings", [{"num_steps": 1}, {"warmup_steps": 10}, {"final_share": 2}, {"learning_rate": 0}])
def test_impossible_schedules_are_refused(settings):
    with pytest.raises(ValueError, match="CosineDecay needs"):
        CosineDecay(**{"learning_rate": 0.1, "num_steps": 10, **settings})
