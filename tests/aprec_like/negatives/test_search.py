import numpy as np
import pytest
import tensorflow as tf

from aprec_like.devices import pretend_gpu
from aprec_like.negatives.search import search_sorted


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9])
def test_the_search_of_a_gpu_finds_what_numpy_finds(side, count):
    random = np.random.default_rng(count)
    values, keys = np.sort(random.integers(10, size=count)), random.integers(-1, 12, size=(4, 5))
    expected = np.searchsorted(values, keys, side=side)
    assert search_sorted(tf.constant(values), tf.constant(keys), side).numpy().tolist() == expected.tolist()
    with pretend_gpu():
        assert search_sorted(tf.constant(values), tf.constant(keys), side).numpy().tolist() == expected.tolist()
