"""The simulator equals plain loops over types, items and histories that follow the definition of the distribution."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from aprec_like.datasets import Lengths, Mixture, Simulated
from aprec_like.datasets.simulated.next_item_distribution import (
    SUCCESSOR_PROBABILITIES,
    Contexts,
    NextItemDistribution,
)
from aprec_like.errors import InputError
from aprec_like.interactions import Histories

TINY_LENGTHS = Lengths(median=3, spread=0.3, minimum=2, maximum=4)
TINY = Simulated(num_users=50, num_items=8, num_types=3, lengths=TINY_LENGTHS, seed=5)


def histories_of(*sequences):
    lengths = [len(sequence) for sequence in sequences]
    return Histories(np.array([i for s in sequences for i in s], np.int32), np.concatenate([[0], np.cumsum(lengths)]))


def next_given_type(dataset, history, user_type):
    """P(next item | history, type), item by item, as the docstrings define it."""
    distribution, mixture, items = dataset.next_item_distribution, dataset.mixture, range(dataset.num_items)
    components = [
        np.array([distribution.popularity[item] for item in items]),
        np.array([distribution.preference[item] * (distribution.item_types[item] == user_type) for item in items]),
    ]
    weights = [mixture.popularity, mixture.preference]
    for order, weight in ((1, mixture.first_order), (2, mixture.second_order)):
        if len(history) >= order:
            second_last = history[-2] if len(history) >= 2 else 0
            contexts = Contexts(last=np.array([history[-1]]), second_last=np.array([second_last]))
            component = np.zeros(dataset.num_items)
            for item, probability in zip(
                distribution.successors(contexts)[order - 1][0], SUCCESSOR_PROBABILITIES, strict=True
            ):
                component[item] += probability
            components.append(component)
            weights.append(weight)
    result = sum(weight * component for weight, component in zip(weights, components, strict=True)) / sum(weights)
    if not dataset.has_repeats:
        result[list(history)] = 0
        result /= result.sum()
    return result


def next_given_history(dataset, history):
    """Bayes' rule over the types, one factor after the other."""
    joint = []
    for user_type in range(dataset.num_types):
        weight = 1 / dataset.num_types
        for position, item in enumerate(history):
            weight *= next_given_type(dataset, history[:position], user_type)[item]
        joint.append(weight * next_given_type(dataset, history, user_type))
    return sum(joint) / np.sum(joint)


@pytest.mark.parametrize("has_repeats", [False, True])
@pytest.mark.parametrize("seed", [1, 5, 23])
def test_the_posterior_predictive_equals_brute_force(has_repeats, seed):
    dataset = replace(TINY, has_repeats=has_repeats, seed=seed)
    choose = itertools.product if has_repeats else itertools.permutations
    sequences = [()]
    for length in (1, 2, 3):
        every = choose(range(8), repeat=length) if has_repeats else choose(range(8), length)
        sequences += list(every)[:: 1 if length < 3 else 7]
    ours = dataset.true_probabilities().probabilities(histories_of(*sequences))
    for row, sequence in zip(ours, sequences, strict=True):
        np.testing.assert_allclose(row, next_given_history(dataset, sequence), atol=1e-10, rtol=0)


def test_long_histories_equal_brute_force_too():
    lengths = Lengths(median=20, spread=0.2, minimum=10, maximum=30)
    dataset = Simulated(num_users=5, num_items=60, num_types=4, lengths=lengths, seed=3)
    interactions = dataset.load(Path())
    users = np.arange(5)
    ours = dataset.true_probabilities().probabilities(interactions.histories(users))
    for user in users:
        sequence = tuple(interactions.histories(np.array([user])).items.tolist())
        np.testing.assert_allclose(ours[user], next_given_history(dataset, sequence), atol=1e-10, rtol=0)


def test_probabilities_sum_to_one_and_seen_items_have_none():
    lengths = Lengths(median=10, spread=0.5, minimum=2, maximum=40)
    dataset = Simulated(num_users=200, num_items=100, num_types=8, lengths=lengths)
    histories = dataset.load(Path()).histories(np.arange(200))
    probabilities = dataset.true_probabilities().probabilities(histories)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert probabilities[histories.rows, histories.items].max() == 0
    assert probabilities.min() >= 0


def test_sampled_items_have_the_frequencies_of_the_distribution():
    """Third items after the most frequent first two, compared with their true probabilities."""
    dataset = replace(TINY, num_users=200_000, lengths=Lengths(median=3, spread=0.0, minimum=3, maximum=3))
    sequences = dataset.load(Path()).items.reshape(-1, 3)
    first = np.bincount(sequences[:, 0], minlength=8)
    assert stats.chisquare(first, len(sequences) * next_given_history(dataset, ())).pvalue > 1e-3
    start = np.bincount(sequences[:, 0] * 8 + sequences[:, 1]).argmax()
    third = sequences[(sequences[:, 0] * 8 + sequences[:, 1]) == start, 2]
    truth = next_given_history(dataset, (start // 8, start % 8))
    counts = np.bincount(third, minlength=8)
    assert len(third) > 5_000
    assert counts[truth == 0].sum() == 0
    assert stats.chisquare(counts[truth > 0], len(third) * truth[truth > 0]).pvalue > 1e-3


def test_no_user_has_an_item_twice_unless_repeats_are_allowed():
    settings = {"num_users": 300, "num_items": 50, "lengths": Lengths(median=15, spread=0.3, minimum=5, maximum=25)}
    without = Simulated(**settings).load(Path())
    assert len(without.distinct_items()[0]) == without.num_interactions
    with_repeats = Simulated(**settings, has_repeats=True).load(Path())
    assert len(with_repeats.distinct_items()[0]) < with_repeats.num_interactions


def test_the_seed_determines_the_data():
    settings = {"num_users": 100, "num_items": 50, "lengths": Lengths(median=8, spread=0.5, minimum=3, maximum=20)}
    digests = [Simulated(**settings, seed=seed).load(Path()).digest() for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_lengths_follow_their_settings():
    settings = Lengths(median=20, spread=0.5, minimum=10, maximum=60)
    lengths = Simulated(num_users=5_000, num_items=500, lengths=settings).load(Path()).lengths
    assert lengths.min() == 10 and lengths.max() == 60
    assert abs(np.median(lengths) - 20) <= 1


def test_the_data_of_the_quickstart_does_not_change():
    dataset = Simulated(
        num_users=6_000, num_items=2_000, lengths=Lengths(median=25, spread=0.5, minimum=8, maximum=100)
    )
    assert dataset.load(Path()).digest() == "08303849c0fbfa9c8d1aef8045c32361df518164db26a7ca71254ab0161da3e8"


def test_the_catalogue_is_as_large_as_declared_and_may_be_a_million_items():
    lengths = Lengths(median=30, spread=1.0, minimum=5, maximum=200)
    interactions = Simulated(num_users=500, num_items=1_271_638, lengths=lengths, has_repeats=True).load(Path())
    assert interactions.num_items == 1_271_638
    assert interactions.items.max() < 1_271_638
    assert 5_000 < len(np.unique(interactions.items)) < interactions.num_interactions


def test_large_data_is_simulated_once_and_then_read_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("aprec_like.datasets.simulated.dataset.MIN_CACHED_INTERACTIONS", 500)
    TINY.load(Path())
    assert not list(tmp_path.rglob("*.npz"))  # small: about 150
    large = replace(TINY, num_users=200)
    simulated = large.load(Path())
    monkeypatch.setattr(NextItemDistribution, "sample", lambda *_: pytest.fail("simulated again"))
    cached = large.load(Path())
    assert cached.digest() == simulated.digest()
    assert cached.item_ids.tolist() == simulated.item_ids.tolist()


def test_true_probabilities_of_a_million_items_are_refused():
    with pytest.raises(InputError, match="remove the Oracle"):
        Simulated(num_items=1_271_638).true_probabilities()


def test_users_are_simulated_in_chunks_of_any_size(monkeypatch):
    lengths = Lengths(median=8, spread=0.5, minimum=3, maximum=20)
    dataset = Simulated(num_users=100, num_items=50, lengths=lengths)
    monkeypatch.setattr("aprec_like.datasets.simulated.dataset.CHUNK_CELLS", 50 * 30)
    interactions = dataset.load(Path())
    assert interactions.num_users == 100
    assert interactions.lengths.min() >= 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Simulated(num_users=0),
        lambda: Simulated(num_items=5, num_types=6),
        lambda: Simulated(num_items=100, lengths=Lengths(median=10, spread=1, minimum=5, maximum=51)),
        lambda: Simulated(seed=-1),
        lambda: Mixture(popularity=0.5, preference=0.5, first_order=0.5, second_order=0.5),
        lambda: Mixture(popularity=0.0, preference=0.5, first_order=0.25, second_order=0.25),
        lambda: Lengths(median=10, spread=1, minimum=5, maximum=4),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ValueError, match="needs"):
        make()
