import numpy as np
import tensorflow as tf

from aprec_like.devices import has_gpu, pretend_gpu
from aprec_like.gathers import gather_distinct, gather_rows, slices_as_gradients


def gradient(gather, table, weights):
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(gather(table) * weights)
    return tape.gradient(value, table)


def test_rows_that_repeat_add_up_as_in_a_plain_gather():
    table = tf.Variable(np.arange(12.0).reshape(4, 3), dtype=tf.float32)
    ids, weights = tf.constant([[1, 1], [3, 1]]), tf.reshape(tf.range(12.0), [2, 2, 3])
    expected = tf.convert_to_tensor(gradient(lambda values: tf.gather(values, ids), table, weights))
    with pretend_gpu():
        np.testing.assert_array_equal(gather_rows(table, ids), tf.gather(table, ids))
        found = gradient(lambda values: gather_rows(values, ids), table, weights)
    assert not isinstance(found, tf.IndexedSlices)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_optimiser_of_single_rows_gets_slices():
    table, ids = tf.Variable(tf.ones([4, 3])), tf.constant([1, 1])
    with pretend_gpu(), slices_as_gradients():
        assert isinstance(gradient(lambda values: gather_rows(values, ids), table, 1.0), tf.IndexedSlices)


def test_rows_at_distinct_positions_give_their_gradients_back():
    values = tf.Variable(tf.reshape(tf.range(12.0), [4, 3]))
    positions, weights = tf.constant([2, 0], tf.int64), tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pretend_gpu():
        found = gradient(lambda values: gather_distinct(tf.convert_to_tensor(values), positions), values, weights)
    np.testing.assert_array_equal(found, [[4, 5, 6], [0, 0, 0], [1, 2, 3], [0, 0, 0]])


def test_a_gpu_is_pretended_only_within_the_block():
    before = has_gpu()
    with pretend_gpu():
        assert has_gpu()
    assert has_gpu() == before
