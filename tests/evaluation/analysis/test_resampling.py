import itertools

import numpy as np
import pytest

from evaluation.analysis import resampling
from evaluation.analysis.resampling import bootstrap, bootstrap_tests, randomisation, randomisation_tests
from evaluation.analysis.significance import TESTS, paired_t


def exact_randomisation(differences) -> float:
    """All sign patterns, by a plain loop."""
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=len(differences))]
    return float(np.mean(np.array(sums) >= abs(differences.sum()) - 1e-12))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["continuous", "few values", "ties"])
def test_randomisation_is_exact_enumeration_within_monte_carlo_error(seed, kind):
    random = np.random.default_rng(seed)
    differences = {
        "continuous": random.normal(0.4, 1, size=10),
        "few values": random.choice([-1.0, -0.5, 0.5, 1.0, 1.0], size=10),
        "ties": random.choice([-1.0, 0.0, 0.0, 1.0, 0.63], size=10),
    }[kind]
    exact = exact_randomisation(differences)
    estimate = randomisation(differences, num_resamples=20_000)
    assert estimate == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_the_smallest_p_value_of_resampling_is_one_in_m_plus_one():
    differences = np.ones(200) + np.linspace(0, 1, 200)
    assert randomisation(differences, num_resamples=999) == pytest.approx(1 / 1000)
    assert bootstrap(differences, num_resamples=999) == pytest.approx(1 / 1000)


@pytest.mark.parametrize("kind", ["continuous", "few values"])
def test_with_many_users_all_tests_of_the_mean_agree(kind):
    random = np.random.default_rng(4)
    if kind == "continuous":
        differences = random.normal(0.0, 1, size=2_000)
    else:
        differences = random.choice([-1.0, 0.0, 0.0, 0.63, 1.0], size=2_000, p=[0.2, 0.3, 0.3, 0.05, 0.15])
    expected = paired_t(differences)
    assert 0.001 < expected < 0.9
    for name in ("randomisation", "bootstrap"):
        assert TESTS[name](differences) == pytest.approx(expected, abs=4 * np.sqrt(expected / 10_000) + 0.005)


def test_resampling_is_seeded():
    differences = np.random.default_rng(0).normal(size=100)
    assert randomisation(differences) == randomisation(differences)
    assert bootstrap(differences) == bootstrap(differences)


def test_several_tests_at_once_have_the_p_values_of_each_alone_in_chunks_of_any_size(monkeypatch):
    columns = list(np.random.default_rng(0).normal(0.1, 1, size=(3, 100)))
    alone = [bootstrap(column, 500) for column in columns], [randomisation(column, 500) for column in columns]
    assert bootstrap_tests(columns, [(), (), ()], 500) == alone[0]
    assert randomisation_tests(columns, 500) == alone[1]
    monkeypatch.setattr(resampling, "MAX_CHUNK_WEIGHTS", 704)
    assert bootstrap_tests(columns, [(), (), ()], 500) == alone[0]


def test_a_resample_draws_as_many_users_as_there_are_with_replacement():
    """A user is drawn with mean and variance 1 - 1 / n, and left out with probability (1 - 1 / n) ** n."""
    counts = resampling._draw_counts(5_000, 50, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 50).all()
    assert counts.var() == pytest.approx(1 - 1 / 50, rel=0.02)
    assert np.mean(counts == 0) == pytest.approx((1 - 1 / 50) ** 50, rel=0.02)
    signs = resampling._draw_signs(1_000, 51, np.random.default_rng(0))
    assert set(np.unique(signs)) == {-1.0, 1.0} and abs(signs.mean()) < 0.02
