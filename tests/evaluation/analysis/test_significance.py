import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluation.analysis.significance import (
    TESTS,
    caveat_of_test,
    correct,
    detectable_difference,
    mean_interval,
    paired_t,
    paired_test,
)
from evaluation.analysis.variance import StandardError

RANDOM = np.random.default_rng(0)
FIRST, SECOND = RANDOM.random(100), RANDOM.random(100)


def test_the_interval_of_a_mean_by_hand():
    """Values 1, 2, 3: mean 2, standard error 1/sqrt(3), t of 2 degrees of freedom 4.3027."""
    interval = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert interval.mean == 2.0
    assert interval.high - 2 == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert interval.high - 2 == pytest.approx(2 - interval.low)


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5, 0.5]])
def test_values_without_spread_have_a_point_interval(values):
    interval = mean_interval(np.array(values))
    assert (interval.low, interval.mean, interval.high) == (0.5, 0.5, 0.5)


def test_the_paired_test_is_scipys():
    test = paired_test(FIRST, SECOND)
    assert test.p_value == pytest.approx(stats.ttest_rel(FIRST, SECOND).pvalue, abs=1e-12)
    assert test.p_value == pytest.approx(stats.ttest_1samp(FIRST - SECOND, 0).pvalue, abs=1e-12)
    assert test.difference.mean == pytest.approx(FIRST.mean() - SECOND.mean())


def test_wins_ties_losses_and_effect_size_by_hand():
    test = paired_test(np.array([1.0, 0.0, 0.5, 1.0]), np.array([0.0, 1.0, 0.5, 0.0]))
    assert (test.wins, test.ties, test.losses) == (2, 1, 1)
    assert test.effect_size == pytest.approx(0.25 / np.std([1, -1, 0, 1], ddof=1))


def test_models_that_never_differ_are_not_significant():
    assert paired_test(FIRST, FIRST).p_value == 1.0


@pytest.mark.parametrize("method", ["holm", "bonferroni"])
def test_corrections_are_those_of_statsmodels(method):
    values = [0.01, 0.04, 0.03, 0.6]
    assert correct(values, method) == pytest.approx(multipletests(values, method=method)[1].tolist())


def test_holm_by_hand_and_no_correction():
    assert correct([0.01, 0.04, 0.03], "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert correct([0.01, 0.04], "none") == [0.01, 0.04]
    assert correct([], "holm") == []


def test_tests_of_a_family_that_were_not_made_count_as_not_rejected():
    assert correct([0.01, 0.04, 0.03], "holm", family_size=5) == pytest.approx([0.05, 0.12, 0.12])
    made = correct([0.01, 0.04, 0.03, 0.02, 0.5], "holm")[:3]
    assert all(np.array(correct([0.01, 0.04, 0.03], "holm", family_size=5)) >= np.array(made))


def test_wilcoxon_is_scipys():
    assert TESTS["wilcoxon"](FIRST - SECOND) == pytest.approx(stats.wilcoxon(FIRST, SECOND).pvalue, abs=1e-12)


def zero_inflated(random, shape) -> np.ndarray:
    """NDCG@10-like values: most users miss, the others hit at a random rank."""
    ranks = random.integers(1, 11, size=shape)
    return np.where(random.random(shape) < 0.2, 1 / np.log2(ranks + 1), 0.0)


def test_under_a_true_null_five_per_cent_of_tests_reject():
    random = np.random.default_rng(0)
    experiments, users = 10_000, 500
    differences = zero_inflated(random, (experiments, users)) - zero_inflated(random, (experiments, users))
    rejected = np.mean([paired_t(row) < 0.05 for row in differences])
    assert rejected == pytest.approx(0.05, abs=0.007)


def test_with_a_planted_difference_power_is_that_of_theory():
    random = np.random.default_rng(1)
    experiments, users = 2_000, 500
    spread = np.std(zero_inflated(random, 200_000) - zero_inflated(random, 200_000))
    planted = detectable_difference(StandardError(spread**2 / users, users), alpha=0.05, family_size=1)
    differences = zero_inflated(random, (experiments, users)) - zero_inflated(random, (experiments, users)) + planted
    power = np.mean([paired_t(row) < 0.05 for row in differences])
    assert power == pytest.approx(0.8, abs=0.03)


def test_the_detectable_difference_by_the_normal_approximation():
    """With many users: (1.96 + 0.84) times the standard error; a family of ten needs 2.81 instead of 1.96."""
    assert detectable_difference(StandardError(0.01**2, 10_001), 0.05, 1) == pytest.approx(
        (1.95996 + 0.84162) / 100, rel=1e-3
    )
    assert detectable_difference(StandardError(0.01**2, 10_001), 0.05, 10) == pytest.approx(
        (2.80703 + 0.84162) / 100, rel=1e-3
    )


@pytest.mark.parametrize(("degrees_of_freedom", "family_size"), [(4, 1), (10, 84), (6_039, 900)])
def test_the_detectable_difference_has_its_power_with_few_trainings_too(degrees_of_freedom, family_size):
    random = np.random.default_rng(0)
    multiple = detectable_difference(StandardError(1.0, degrees_of_freedom + 1), 0.05, family_size)
    errors = np.sqrt(random.chisquare(degrees_of_freedom, 100_000) / degrees_of_freedom)
    statistics = (random.normal(size=100_000) + multiple) / errors
    p_values = 2 * stats.t.sf(np.abs(statistics), degrees_of_freedom)
    assert np.mean(p_values < 0.05 / family_size) == pytest.approx(0.8, abs=0.01)


def test_too_few_resamples_for_the_family_are_remarked():
    assert caveat_of_test("randomisation", 0.05, 27, "holm") is None
    assert "can't show" in caveat_of_test("randomisation", 0.05, 600, "holm")
    assert caveat_of_test("randomisation", 0.05, 600, "none") is None
    assert caveat_of_test("paired-t", 0.05, 600, "holm") is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_interval_has_the_bits_of_scipys(dtype):
    """metrics.json holds it unrounded."""
    random = np.random.default_rng(0)
    for num_users in (2, 3, 10, 511, 6_040):
        values = ((random.random(num_users) < 0.5) / np.log2(random.integers(2, 12, num_users))).astype(dtype)
        mean = float(np.mean(values))
        low, high = stats.t.interval(0.95, num_users - 1, loc=mean, scale=stats.sem(values))
        found = mean_interval(values)
        assert np.ptp(values) == 0 or (found.low, found.high) == (float(low), float(high))
