import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches.layouts import Batch, LengthBucket
from aprec_like.models import BERT4Rec, Masking


def test_the_papers_network_has_the_size_of_its_oddity():
    """REFERENCE: about 3.06 million parameters with the width of 3,072 that was run, about 0.8 with the 128 written."""
    assert BERT4Rec().num_parameters(3_416) == pytest.approx(3.06e6, rel=0.002)
    assert BERT4Rec(feed_forward_dim=128).num_parameters(3_416) == pytest.approx(0.8e6, rel=0.03)


def test_only_masked_positions_get_an_output_state():
    network = BERT4Rec(max_length=10, embedding_dim=8, num_layers=1, feed_forward_dim=16, dropout_rate=0.0).build(20)
    items = tf.constant([[-1, -1, 3, -2, 5, 6, -2, 8, 9, 10]])
    batch = Batch(
        (LengthBucket(tf.constant([0]), items),), tf.constant([0, 0]), tf.constant([4, 7]), tf.constant([3, 6])
    )
    states = network.target_states(batch)
    assert states.shape == (2, 8)
    np.testing.assert_allclose(states, tf.gather(network(items)[0], [3, 6]), atol=1e-6)


def test_a_position_sees_what_comes_after_it():
    network = BERT4Rec(max_length=4, embedding_dim=8, num_layers=1, feed_forward_dim=16, dropout_rate=0.0).build(20)
    network.set_weights([np.random.default_rng(0).normal(size=weight.shape) for weight in network.get_weights()])
    first, second = network(tf.constant([[1, -2, 3, 4]])), network(tf.constant([[1, -2, 3, 5]]))
    assert np.abs(first[0, 1] - second[0, 1]).max() > 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: BERT4Rec(num_heads=3),
        lambda: BERT4Rec(max_length=1),
        lambda: BERT4Rec(dropout_rate=1.0),
        lambda: Masking(probability=0.0),
        lambda: Masking(max_masks=0),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ValueError, match="needs"):
        make()
