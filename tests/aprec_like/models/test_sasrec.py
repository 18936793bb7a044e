import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.interactions import Histories
from aprec_like.models import ORIGINAL_FLAVOUR, SASRec

SMALL = SASRec(max_length=6, embedding_dim=8, num_blocks=2, num_heads=2, dropout_rate=0.5)


def random_network(settings=SMALL, num_items=15, seed=0):
    """All weights random, so that no part of the network is idle."""
    network = settings.build(num_items)
    random = np.random.default_rng(seed)
    network.set_weights([random.normal(size=weight.shape) for weight in network.get_weights()])
    return network


def items(*rows):
    return tf.constant(rows, tf.int32)


@pytest.mark.parametrize("flavour", [SMALL.flavour, ORIGINAL_FLAVOUR])
def test_the_number_of_parameters_is_known_without_building(flavour):
    settings = SASRec(max_length=6, embedding_dim=8, num_heads=2, flavour=flavour)
    assert settings.build(15).count_params() == settings.num_parameters(15)


def test_the_papers_network_has_the_papers_size():
    assert SASRec().num_parameters(3_416) == 1_067_008
    assert SASRec().num_parameters(13_044) == 3_531_776


def test_padding_changes_no_state():
    network = random_network()
    short, padded = network(items([3, 1, 4])), network(items([-1, -1, -1, 3, 1, 4]))
    np.testing.assert_allclose(short[0], padded[0, 3:], atol=1e-5)


def test_a_position_does_not_see_later_items():
    network = random_network()
    first, second = network(items([-1, 3, 1, 4, 1, 5])), network(items([-1, 3, 1, 9, 2, 6]))
    np.testing.assert_allclose(first[0, 1:3], second[0, 1:3], atol=1e-6)
    assert np.abs(first[0, 3:] - second[0, 3:]).max() > 0.1


def test_a_batch_is_the_same_as_one_by_one():
    network = random_network()
    rows = items([-1, -1, 3, 1, 4, 1], [5, 9, 2, 6, 5, 3], [-1, -1, -1, -1, -1, 7])
    together = network(rows)
    for index in range(3):
        np.testing.assert_allclose(network(rows[index : index + 1])[0], together[index], atol=1e-5)


def test_the_value_of_the_padding_row_does_not_matter():
    network = random_network()
    before = network(items([-1, -1, 3, 1, 4, 1]))[0, 2:].numpy()
    table = network.item_embedding.embeddings
    table.assign(tf.tensor_scatter_nd_update(table, [[15]], tf.fill([1, 8], 100.0)))
    np.testing.assert_array_equal(before, network(items([-1, -1, 3, 1, 4, 1]))[0, 2:])


def test_only_the_last_items_of_a_history_count_and_an_empty_one_is_finite():
    network = random_network()
    histories = Histories(np.array([9, 9, 3, 1, 4, 1, 5, 2, 3, 1, 4, 1, 5, 2], np.int32), np.array([0, 8, 14, 14]))
    states = network.last_states(histories)
    np.testing.assert_allclose(states[0], states[1], atol=1e-6)
    assert np.isfinite(states).all()


def test_dropout_is_a_function_of_its_seed():
    network = random_network()
    rows = items([3, 1, 4, 1, 5, 9])
    seeds = [tf.constant(seed, tf.int64) for seed in ([1, 1], [1, 1], [1, 2])]
    first, again, other = (network(rows, dropout_seed=seed).numpy() for seed in seeds)
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    assert np.abs(first - network(rows)).max() > 0.01


def test_fresh_tables_are_drawn_as_in_the_originals():
    keras.utils.set_random_seed(1)
    ours, original = SASRec(embedding_dim=50).build(400), SASRec(embedding_dim=50, flavour=ORIGINAL_FLAVOUR).build(400)
    assert np.abs(ours.item_embedding.embeddings).max() == pytest.approx(0.05, rel=1e-2)
    glorot = np.sqrt(6 / (402 + 50))
    assert np.abs(original.item_embedding.embeddings).max() == pytest.approx(glorot, rel=1e-2)
    assert np.abs(ours.blocks[0].query.kernel).max() == pytest.approx(np.sqrt(6 / 100), rel=1e-2)


def test_the_original_scores_with_its_input_table():
    network = random_network(SASRec(max_length=6, embedding_dim=8, flavour=ORIGINAL_FLAVOUR))
    np.testing.assert_array_equal(network.item_table, network.item_embedding.embeddings[:15])


def test_weights_survive_saving(tmp_path):
    network, other = random_network(seed=1), random_network(seed=2)
    network.save_weights(tmp_path / "best.weights.h5")
    other.load_weights(tmp_path / "best.weights.h5")
    rows = items([3, 1, 4, 1, 5, 9])
    np.testing.assert_array_equal(network(rows), other(rows))


@pytest.mark.parametrize(
    "settings", [{"max_length": 0}, {"num_heads": 3}, {"dropout_rate": 1.0}, {"num_blocks": 0}, {"embedding_dim": -8}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match="SASRec needs"):
        SASRec(**settings)
