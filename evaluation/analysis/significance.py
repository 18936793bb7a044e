"""Statistics of two models: confidence intervals, paired tests, the Holm and Bonferroni corrections, power."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy import optimize, special, stats
from statsmodels.stats.multitest import multipletests

from aprec_like.types import Array
from evaluation.analysis.resampling import (
    NUM_RESAMPLES,
    bootstrap,
    bootstrap_tests,
    randomisation,
    randomisation_tests,
)
from evaluation.analysis.variance import StandardError, Trainings, standard_error
from evaluation.cli import track

Key = TypeVar("Key")

POWER = 0.8
"""Power at which a difference counts as detectable."""
NUM_QUANTILES = 200
"""Points of the numerical integral behind the detectable difference."""


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
        standard_error: of the mean difference, over users and, where several seeds are known, trainings.
        degrees_of_freedom: of the standard error.
    """

    difference: Interval
    p_value: float
    effect_size: float
    wins: int
    ties: int
    losses: int
    standard_error: float
    degrees_of_freedom: float


def mean_interval(values: Array, confidence: float = 0.95, trainings: Sequence[Trainings] = ()) -> Interval:
    """Return the mean over users with its Student-t interval, which is a point if there is no variance.

    Args:
        values: means over trainings, (users,).
        confidence: coverage of the interval.
        trainings: behind the values; none for an interval over users alone.
    """
    mean = float(np.mean(values))
    if len(values) < 2 or (np.ptp(values) == 0 and not trainings):
        return Interval(mean, mean, mean)
    if not trainings:
        scale = float(np.std(values, ddof=1) / len(values) ** 0.5)
        low, high = (t_quantile(level, len(values) - 1) for level in ((1 - confidence) / 2, (1 + confidence) / 2))
        return Interval(mean, low * scale + mean, high * scale + mean)
    half_width = standard_error(float(np.var(values, ddof=1)), len(values), trainings).half_width(confidence)
    return Interval(mean, mean - half_width, mean + half_width)


@functools.lru_cache(maxsize=4096)
def t_quantile(level: float, degrees_of_freedom: float) -> float:
    """Return a quantile of Student's t distribution, which most models of a run have in common."""
    return float(stats.t.ppf(level, degrees_of_freedom))


@dataclass(frozen=True)
class PairValues:
    """Values of two models to be compared user by user.

    Args:
        first, second: values of the two models, means over trainings, (users,).
        trainings: of the models that are trained, if several seeds are known; "paired-t" and "bootstrap" and the
            interval then cover users and trainings, the other tests users alone.
    """

    first: Array
    second: Array
    trainings: Sequence[Trainings] = ()

    @property
    def differences(self) -> Array:
        """First minus second, (users,)."""
        return np.asarray(self.first, np.float64) - np.asarray(self.second, np.float64)


def paired_tests(pairs: Sequence[PairValues], method: str = "paired-t") -> list[PairedTest]:
    """Compare pairs of models user by user; a p-value is 1 if the two are equal for every user.

    Args:
        pairs: over the same users.
        method: a key of `TESTS`. Resampling tests draw once for all pairs; each has the p-value of a single one.
    """
    tests = [_t_test(pair) for pair in pairs]
    if method == "paired-t":
        return tests
    found = {number: pair.differences for number, pair in enumerate(pairs)}
    found = {number: differences for number, differences in found.items() if np.any(differences)}
    columns = list(found.values())
    if not columns:
        return tests
    if method == "bootstrap":
        p_values = bootstrap_tests(columns, [pairs[number].trainings for number in found])
    elif method == "randomisation":
        p_values = randomisation_tests(columns)
    else:
        p_values = [TESTS[method](differences) for differences in track(columns, "tests", len(columns))]
    for number, p_value in zip(found, p_values, strict=True):
        tests[number] = replace(tests[number], p_value=p_value)
    return tests


def paired_test(first: Array, second: Array, method: str = "paired-t") -> PairedTest:
    """Compare two models user by user, over users alone: see `paired_tests`."""
    return paired_tests([PairValues(first, second)], method)[0]


def _t_test(pair: PairValues) -> PairedTest:
    differences = pair.differences
    num_users = len(differences)
    has_spread = num_users > 1 and np.ptp(differences) > 0
    variance = float(np.var(differences, ddof=1)) if has_spread else 0.0
    error = standard_error(variance, max(2, num_users), pair.trainings)
    mean = float(np.mean(differences))
    has_p_value = num_users > 1 and np.any(differences)
    return PairedTest(
        difference=mean_interval(differences, trainings=pair.trainings),
        p_value=error.p_value(mean) if has_p_value else 1.0,
        effect_size=mean / math.sqrt(variance) if variance else 0.0,
        wins=int(np.sum(differences > 0)),
        ties=int(np.sum(differences == 0)),
        losses=int(np.sum(differences < 0)),
        standard_error=error.value,
        degrees_of_freedom=error.degrees_of_freedom,
    )


def paired_t(differences: Array) -> float:
    """Return the p-value of the paired t-test of a zero mean.

    If all differences are equal, and not zero, it is 0, but 1 for a single user.
    """
    if np.ptp(differences) == 0:
        return 0.0 if len(differences) > 1 else 1.0
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return StandardError(error**2, len(differences)).p_value(float(np.mean(differences)))


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
TRAINING_TESTS = ("paired-t", "bootstrap")
"""Tests that cover trainings beside users where several seeds are known."""


def correct(p_values: Sequence[float], correction: str, family_size: int = 0) -> list[float]:
    """Return the p-values of a family of tests corrected for their number: "holm", "bonferroni" or "none".

    Args:
        p_values: not corrected.
        correction: the method.
        family_size: size of the family if it has more tests than these; the others count as not rejected (p = 1), which
            makes no corrected p-value smaller than it would be with them.
    """
    if correction == "none" or not p_values:
        return list(p_values)
    family = [*p_values, *[1.0] * (family_size - len(p_values))]
    return [float(value) for value in multipletests(family, method=correction)[1][: len(p_values)]]


def correct_tests(tests: Mapping[Key, PairedTest], correction: str) -> dict[Key, float]:
    """Return the corrected p-values of a family of tests, by the tests' keys."""
    p_values = correct([test.p_value for test in tests.values()], correction)
    return dict(zip(tests, p_values, strict=True))


def detectable_difference(error: StandardError, alpha: float, family_size: int) -> float:
    """Return the smallest true difference that a t-test finds with 80 % power at the strictest corrected level.

    Args:
        error: standard error of the difference.
        alpha: significance level of the family.
        family_size: number of tests that p-values are corrected for.
    """
    if error.value == 0:
        return 0.0
    critical = error.half_width(1 - alpha / max(1, family_size)) / error.value
    return error.value * _detectable_multiple(round(critical, 9), error.degrees_of_freedom)


@functools.lru_cache(maxsize=4096)
def _detectable_multiple(critical: float, degrees_of_freedom: float) -> float:
    """Return the detectable difference in standard errors, which most models of a run have in common.

    Args:
        critical: threshold of the test in standard errors.
        degrees_of_freedom: of the standard error.
    """
    # Power is the mean of Phi(x - critical * w) over w = sqrt(chi2 / degrees of freedom), here over its quantiles;
    # SciPy's non-central t distribution fails to converge for some of the levels that corrections lead to.
    quantiles = (np.arange(NUM_QUANTILES) + 0.5) / NUM_QUANTILES
    thresholds = critical * np.sqrt(2 * special.gammaincinv(degrees_of_freedom / 2, quantiles) / degrees_of_freedom)

    def missing_power(multiple: float) -> float:
        return POWER - float(np.mean(special.ndtr(multiple - thresholds)))

    return float(optimize.brentq(missing_power, 0.0, float(thresholds.max()) + 1 / (1 - POWER)))


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
