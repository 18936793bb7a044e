"""Statistics over users: intervals of means, paired tests, corrections; computed by SciPy and statsmodels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

from aprec_like.interactions import Array

CORRECTIONS = ("holm", "bonferroni", "none")


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class PairedTest:
    """The difference of two models over the same users.

    Args:
        difference: mean of the per-user differences, and its 95 % interval.
        p_value: two-sided, of the paired t-test, not corrected.
        effect_size: Cohen's d of the differences: their mean over their standard deviation.
        wins, ties, losses: users for whom the first model is better, equal, worse.
    """

    difference: Interval
    p_value: float
    effect_size: float
    wins: int
    ties: int
    losses: int


def mean_interval(values: Array, confidence: float = 0.95) -> Interval:
    """The mean over users with its Student-t interval; a point where there is no spread."""
    mean = float(np.mean(values))
    if len(values) < 2 or np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    low, high = stats.t.interval(confidence, len(values) - 1, loc=mean, scale=stats.sem(values))
    return Interval(mean, float(low), float(high))


def paired_t(first: Array, second: Array) -> PairedTest:
    """Compare two models user by user. Models that never differ have a p-value of 1."""
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    has_spread = len(differences) > 1 and np.ptp(differences) > 0
    is_equal = not np.any(differences)
    spread = float(np.std(differences, ddof=1)) if has_spread else 0.0
    return PairedTest(
        difference=mean_interval(differences),
        p_value=float(stats.ttest_rel(first, second).pvalue) if has_spread else (1.0 if is_equal else 0.0),
        effect_size=float(np.mean(differences)) / spread if spread else 0.0,
        wins=int(np.sum(differences > 0)),
        ties=int(np.sum(differences == 0)),
        losses=int(np.sum(differences < 0)),
    )


def correct(p_values: list[float], correction: str) -> list[float]:
    """P-values corrected for the number of tests in the family."""
    if correction == "none" or not p_values:
        return p_values
    return [float(value) for value in multipletests(p_values, method=correction)[1]]
