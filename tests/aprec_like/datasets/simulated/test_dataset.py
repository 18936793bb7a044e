"""The simulator against brute force: plain loops over types, items and histories, from the definition of the law."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from aprec_like.datasets import Lengths, Mixture, Simulated
from aprec_like.datasets.simulated.next_item_law import SUCCESSOR_SHARES, Contexts, NextItemLaw
from aprec_like.errors import InputError
from aprec_like.interactions import Histories

TINY = Simulated(num_users=50, num_items=8, num_types=3, lengths=Lengths(3, 0.3, 2, 4), seed=5)


def histories_of(*sequences):
    lengths = [len(sequence) for sequence in sequences]
    return Histories(np.array([i for s in sequences for i in s], np.int32), np.concatenate([[0], np.cumsum(lengths)]))


def next_given_type(dataset, history, kind):
    """P(next item | history, type), item by item, as the docstrings define it."""
    law, mixture = dataset.law, dataset.mixture
    parts = [np.array([law.popularity[item] for item in range(law.num_items)])]
    shares = [mixture.popularity]
    parts.append(np.array([law.preference[item] * (law.item_types[item] == kind) for item in range(law.num_items)]))
    shares.append(mixture.preference)
    for order, share in ((1, mixture.first_order), (2, mixture.second_order)):
        if len(history) >= order:
            second_last = history[-2] if len(history) >= 2 else 0
            successors = law.successors(Contexts(np.array([history[-1]]), np.array([second_last])))[order - 1][0]
            part = np.zeros(law.num_items)
            for item, portion in zip(successors, SUCCESSOR_SHARES, strict=True):
                part[item] += portion
            parts.append(part)
            shares.append(share)
    result = sum(share * part for share, part in zip(shares, parts, strict=True)) / sum(shares)
    if not dataset.has_repeats:
        result[list(history)] = 0
        result /= result.sum()
    return result


def next_given_history(dataset, history):
    """Bayes' rule over the types, one factor after the other."""
    joint = []
    for kind in range(dataset.num_types):
        weight = 1 / dataset.num_types
        for position, item in enumerate(history):
            weight *= next_given_type(dataset, history[:position], kind)[item]
        joint.append(weight * next_given_type(dataset, history, kind))
    return sum(joint) / np.sum(joint)


@pytest.mark.parametrize("has_repeats", [False, True])
@pytest.mark.parametrize("seed", [1, 5, 23])
def test_the_posterior_predictive_equals_brute_force(has_repeats, seed):
    dataset = Simulated(50, 8, 3, lengths=Lengths(3, 0.3, 2, 4), has_repeats=has_repeats, seed=seed)
    choose = itertools.product if has_repeats else itertools.permutations
    sequences = [()]
    for length in (1, 2, 3):
        every = choose(range(8), repeat=length) if has_repeats else choose(range(8), length)
        sequences += list(every)[:: 1 if length < 3 else 7]
    ours = dataset.truth().probabilities(histories_of(*sequences))
    for row, sequence in zip(ours, sequences, strict=True):
        np.testing.assert_allclose(row, next_given_history(dataset, sequence), atol=1e-10, rtol=0)


def test_long_histories_equal_brute_force_too():
    dataset = Simulated(5, 60, 4, lengths=Lengths(20, 0.2, 10, 30), seed=3)
    interactions = dataset.load(Path())
    users = np.arange(5)
    ours = dataset.truth().probabilities(interactions.histories(users))
    for user in users:
        sequence = tuple(interactions.histories(np.array([user])).items.tolist())
        np.testing.assert_allclose(ours[user], next_given_history(dataset, sequence), atol=1e-10, rtol=0)


def test_probabilities_sum_to_one_and_seen_items_have_none():
    dataset = Simulated(200, 100, 8, lengths=Lengths(10, 0.5, 2, 40))
    histories = dataset.load(Path()).histories(np.arange(200))
    probabilities = dataset.truth().probabilities(histories)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert probabilities[histories.rows, histories.items].max() == 0
    assert probabilities.min() >= 0


def test_drawn_items_have_the_frequencies_of_the_law():
    """Third items after the most frequent start, against the truth for that start."""
    dataset = Simulated(200_000, 8, 3, lengths=Lengths(3, 0.0, 3, 3), seed=5)
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
    without = Simulated(300, 50, lengths=Lengths(15, 0.3, 5, 25)).load(Path())
    assert len(without.distinct_items()[0]) == without.num_interactions
    with_repeats = Simulated(300, 50, lengths=Lengths(15, 0.3, 5, 25), has_repeats=True).load(Path())
    assert len(with_repeats.distinct_items()[0]) < with_repeats.num_interactions


def test_the_seed_decides_everything():
    settings = {"num_users": 100, "num_items": 50, "lengths": Lengths(8, 0.5, 3, 20)}
    digests = [Simulated(**settings, seed=seed).load(Path()).digest() for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


def test_lengths_follow_their_settings():
    lengths = Simulated(5_000, 500, lengths=Lengths(20, 0.5, 10, 60)).load(Path()).lengths
    assert lengths.min() == 10 and lengths.max() == 60
    assert abs(np.median(lengths) - 20) <= 1


def test_the_data_of_the_quickstart_stays_as_it_is():
    dataset = Simulated(
        num_users=6_000, num_items=2_000, lengths=Lengths(median=25, spread=0.5, minimum=8, maximum=100)
    )
    assert dataset.load(Path()).digest() == "08303849c0fbfa9c8d1aef8045c32361df518164db26a7ca71254ab0161da3e8"


def test_the_catalogue_is_as_large_as_declared_and_may_be_a_million_items():
    interactions = Simulated(500, 1_271_638, lengths=Lengths(30, 1.0, 5, 200), has_repeats=True).load(Path())
    assert interactions.num_items == 1_271_638
    assert interactions.items.max() < 1_271_638
    assert 5_000 < len(np.unique(interactions.items)) < interactions.num_interactions


def test_large_data_is_drawn_once_and_then_found_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("aprec_like.datasets.simulated.dataset.MIN_CACHED_INTERACTIONS", 500)
    TINY.load(Path())
    assert not list(tmp_path.rglob("*.npz"))  # small: about 150
    large = Simulated(200, 8, 3, lengths=Lengths(3, 0.3, 2, 4), seed=5)
    drawn = large.load(Path())
    monkeypatch.setattr(NextItemLaw, "draw", lambda *_: pytest.fail("drawn again"))
    found = large.load(Path())
    assert found.digest() == drawn.digest()
    assert found.item_ids.tolist() == drawn.item_ids.tolist()


def test_the_truth_of_a_million_items_is_refused():
    with pytest.raises(InputError, match="leave the Oracle out"):
        Simulated(num_items=1_271_638).truth()


def test_users_are_drawn_in_chunks_of_any_size(monkeypatch):
    dataset = Simulated(100, 50, lengths=Lengths(8, 0.5, 3, 20))
    monkeypatch.setattr("aprec_like.datasets.simulated.dataset.CHUNK_CELLS", 50 * 30)
    interactions = dataset.load(Path())
    assert interactions.num_users == 100
    assert interactions.lengths.min() >= 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Simulated(num_users=0),
        lambda: Simulated(num_items=5, num_types=6),
        lambda: Simulated(num_items=100, lengths=Lengths(10, 1, 5, 51)),
        lambda: Simulated(seed=-1),
        lambda: Mixture(0.5, 0.5, 0.5, 0.5),
        lambda: Mixture(0.0, 0.5, 0.25, 0.25),
        lambda: Lengths(10, 1, 5, 4),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ValueError, match="needs"):
        make()
