import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluation.significance import correct, mean_interval, paired_t

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
    test = paired_t(FIRST, SECOND)
    assert test.p_value == pytest.approx(stats.ttest_rel(FIRST, SECOND).pvalue, abs=1e-12)
    assert test.p_value == pytest.approx(stats.ttest_1samp(FIRST - SECOND, 0).pvalue, abs=1e-12)
    assert test.difference.mean == pytest.approx(FIRST.mean() - SECOND.mean())


def test_wins_ties_losses_and_effect_size_by_hand():
    test = paired_t(np.array([1.0, 0.0, 0.5, 1.0]), np.array([0.0, 1.0, 0.5, 0.0]))
    assert (test.wins, test.ties, test.losses) == (2, 1, 1)
    assert test.effect_size == pytest.approx(0.25 / np.std([1, -1, 0, 1], ddof=1))


def test_models_that_never_differ_are_not_significant():
    assert paired_t(FIRST, FIRST).p_value == 1.0


@pytest.mark.parametrize("method", ["holm", "bonferroni"])
def test_corrections_are_those_of_statsmodels(method):
    values = [0.01, 0.04, 0.03, 0.6]
    assert correct(values, method) == pytest.approx(multipletests(values, method=method)[1].tolist())


def test_holm_by_hand_and_no_correction():
    assert correct([0.01, 0.04, 0.03], "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert correct([0.01, 0.04], "none") == [0.01, 0.04]
    assert correct([], "holm") == []
