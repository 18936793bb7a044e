"""Adam in one operation, and of some rows alone, against Keras' own and against the formula."""

import keras
import numpy as np
import tensorflow as tf

from aprec_like.optimizers import Adam


def moved(optimizer, gradients, start):
    """A variable after steps with these gradients, compiled as in training."""
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


def test_adam_in_one_operation_moves_as_keras_does():
    random = np.random.default_rng(0)
    gradients = [tf.constant(random.normal(size=(6, 3)), tf.float32) for _ in range(20)]
    start = random.normal(size=(6, 3)).astype(np.float32)
    for settings in ((0.01, 0.8, 0.98, 1e-5), (0.01,)):
        expected = moved(keras.optimizers.Adam(*settings), gradients, start)
        found = moved(Adam(*settings).build(), gradients, start)
        # 1 - 0.999 is rounded differently: 1e-5 of a step.
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0.01 * 1e-5 * len(gradients))


def test_lazy_adam_leaves_unused_rows_alone_and_sums_a_row_that_comes_twice():
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 3)).astype(np.float32)
    start = random.normal(size=(6, 3)).astype(np.float32)
    steps = [slices([4, 1, 4], values), slices([1, 1, 1], values), slices([5, 2, 4], values)]
    found = moved(Adam(0.1, lazy=True).build(), steps, start)
    mean, square, expected = np.zeros((6, 3)), np.zeros((6, 3)), start.astype(np.float64)
    for number, step in enumerate(steps, start=1):
        gradient = np.zeros((6, 3))
        np.add.at(gradient, step.indices.numpy(), values)
        for row in set(step.indices.numpy().tolist()):
            mean[row] = 0.9 * mean[row] + 0.1 * gradient[row]
            square[row] = 0.999 * square[row] + 0.001 * gradient[row] ** 2
            rate = 0.1 * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
            expected[row] -= rate * mean[row] / (np.sqrt(square[row]) + 1e-7)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_array_equal(found[[0, 3]], start[[0, 3]])


def test_lazy_adam_is_adam_while_every_row_is_used():
    random = np.random.default_rng(0)
    start = random.normal(size=(6, 3)).astype(np.float32)
    dense = [tf.constant(random.normal(size=(6, 3)), tf.float32) for _ in range(5)]
    lazy = moved(Adam(0.1, lazy=True).build(), [slices(range(6), gradient) for gradient in dense], start)
    np.testing.assert_allclose(lazy, moved(Adam(0.1).build(), dense, start), atol=1e-5)
