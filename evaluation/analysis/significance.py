"""Statistics over users: confidence intervals, paired tests, the Holm and Bonferroni corrections, power."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from aprec_like.types import Array
from evaluation.analysis.resampling import NUM_RESAMPLES, bootstrap, randomisation

Key = TypeVar("Key")

POWER = 0.8
"""Power at which a difference counts as detectable."""


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
        p_value: two-sided, not corrected.
        effect_size: Cohen's d of the paired differences: their mean over their standard deviation.
        wins, ties, losses: users for whom the first model is better, equal, worse.
        spread: standard deviation of the differences.
    """

    difference: Interval
    p_value: float
    effect_size: float
    wins: int
    ties: int
    losses: int
    spread: float


def mean_interval(values: Array, confidence: float = 0.95) -> Interval:
    """Return the mean over users with its Student-t interval, which is a point if all values are equal."""
    mean = float(np.mean(values))
    if len(values) < 2 or np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    low, high = stats.t.interval(confidence, len(values) - 1, loc=mean, scale=stats.sem(values))
    return Interval(mean, float(low), float(high))


def paired_test(first: Array, second: Array, method: str = "paired-t") -> PairedTest:
    """Compare two models user by user; the p-value is 1 if they are equal for every user.

    Args:
        first, second: values of the two models, (users,).
        method: a key of `TESTS`.
    """
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    has_spread = len(differences) > 1 and np.ptp(differences) > 0
    spread = float(np.std(differences, ddof=1)) if has_spread else 0.0
    return PairedTest(
        difference=mean_interval(differences),
        p_value=TESTS[method](differences) if np.any(differences) else 1.0,
        effect_size=float(np.mean(differences)) / spread if spread else 0.0,
        wins=int(np.sum(differences > 0)),
        ties=int(np.sum(differences == 0)),
        losses=int(np.sum(differences < 0)),
        spread=spread,
    )


def paired_t(differences: Array) -> float:
    """Return the p-value of the paired t-test of a zero mean.

    If all differences are equal, and not zero, it is 0, but 1 for a single user.
    """
    if np.ptp(differences) == 0:
        return 0.0 if len(differences) > 1 else 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def wilcoxon(differences: Array) -> float:
    """Return the p-value of Wilcoxon's signed-rank test of symmetry about zero, without ties; no test of means."""
    return float(stats.wilcoxon(differences).pvalue)


TESTS: Mapping[str, Callable[[Array], float]] = {
    "paired-t": paired_t,
    "randomisation": randomisation,
    "bootstrap": bootstrap,
    "wilcoxon": wilcoxon,
}
"""Two-sided p-values of per-user differences, by the value of `--test`."""

TEST_NAMES = {
    "paired-t": "paired t-test",
    "randomisation": f"paired sign-flip randomisation test with {NUM_RESAMPLES:,} permutations",
    "bootstrap": f"paired bootstrap test with {NUM_RESAMPLES:,} resamples",
    "wilcoxon": "Wilcoxon signed-rank test",
}


def correct(p_values: list[float], correction: str) -> list[float]:
    """Return the p-values of a family of tests corrected for their number: "holm", "bonferroni" or "none"."""
    if correction == "none" or not p_values:
        return p_values
    return [float(value) for value in multipletests(p_values, method=correction)[1]]


def correct_tests(tests: Mapping[Key, PairedTest], correction: str) -> dict[Key, float]:
    """Return the corrected p-values of a family of tests, by the tests' keys."""
    p_values = correct([test.p_value for test in tests.values()], correction)
    return dict(zip(tests, p_values, strict=True))


def detectable_difference(spread: float, num_users: int, alpha: float, family_size: int) -> float:
    """Return the smallest true difference that a paired t-test finds with 80 % power at the strictest corrected level.

    Args:
        spread: standard deviation of the per-user differences.
        num_users: number of users.
        alpha: significance level of the family.
        family_size: number of tests that p-values are corrected for.
    """
    if spread == 0 or num_users < 3:
        return 0.0
    level = alpha / max(1, family_size)
    return spread * float(TTestPower().solve_power(nobs=num_users, alpha=level, power=POWER, alternative="two-sided"))


def caveat_of_test(method: str, alpha: float, family_size: int, correction: str) -> str | None:
    """Return a caveat about the test for the reader of a table, or `None`."""
    if method == "wilcoxon":
        return (
            "Wilcoxon's test asks whether differences are symmetric about zero, not whether the means differ, and "
            "leaves out users for whom both models are equal: with many users it finds the slightest asymmetry."
        )
    smallest = 1 / (NUM_RESAMPLES + 1)
    needed = alpha / family_size if correction != "none" and family_size else alpha
    if method in ("randomisation", "bootstrap") and smallest >= needed:
        return (
            f"{NUM_RESAMPLES:,} resamples can't show p < {needed:.2g}, which the smallest of {family_size} corrected "
            "tests needs: no difference can be significant."
        )
    return None
