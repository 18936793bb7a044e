"""Statistics over users: intervals of means, paired tests, corrections, power; SciPy and statsmodels do the work.

Metrics of one target take few distinct values, and so do their per-user differences. Flipping the signs of c equal
differences is drawing a binomial number, and resampling users is drawing a multinomial one: the same laws as flipping
and drawing users one by one, at a small fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from aprec_like.types import Array

CORRECTIONS = ("holm", "bonferroni", "none")
NUM_RESAMPLES = 10_000
RESAMPLING_SEED = 20_230_918
POWER = 0.8
COST_OF_A_BINOMIAL = 10
"""Drawing a binomial number takes about as long as drawing this many users."""
CHUNK_CELLS = 1 << 22
"""How many random numbers are held at once."""


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
        effect_size: Cohen's d of the differences: their mean over their standard deviation.
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
    """The mean over users with its Student-t interval; a point where there is no spread."""
    mean = float(np.mean(values))
    if len(values) < 2 or np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    low, high = stats.t.interval(confidence, len(values) - 1, loc=mean, scale=stats.sem(values))
    return Interval(mean, float(low), float(high))


def paired_test(first: Array, second: Array, method: str = "paired-t") -> PairedTest:
    """Compare two models user by user. Models that never differ have a p-value of 1."""
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
    """Of the mean difference against zero. All the same difference is beyond doubt; one user proves nothing."""
    if np.ptp(differences) == 0:
        return 0.0 if len(differences) > 1 else 1.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def wilcoxon(differences: Array) -> float:
    """Wilcoxon's signed ranks: a test of symmetry about zero, ties left out; not a test of the means."""
    return float(stats.wilcoxon(differences).pvalue)


def randomisation(differences: Array, num_resamples: int = NUM_RESAMPLES, seed: int = RESAMPLING_SEED) -> float:
    """Sign-flip randomisation: how often random signs give a sum as far from zero; (b + 1) / (m + 1)."""
    random = np.random.default_rng(seed)
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    is_single = counts == 1
    single, several, counts = sizes[is_single], sizes[~is_single], counts[~is_single]
    # With h of c equal sizes positive, they add (2 h - c) times the size to the sum.
    total = np.full(num_resamples, -(counts @ several) - single.sum())
    for start, stop in _chunks(len(several), num_resamples):
        positive = random.binomial(counts[start:stop], 0.5, size=(num_resamples, stop - start))
        total += 2 * (positive @ several[start:stop])
    for start, stop in _chunks(len(single), num_resamples):
        width = stop - start
        bits = np.frombuffer(random.bytes((num_resamples * width + 7) // 8), np.uint8)
        is_positive = np.unpackbits(bits, count=num_resamples * width).reshape(num_resamples, width)
        total += 2 * (is_positive.astype(np.float64) @ single[start:stop])
    return _share_as_far(total, float(differences.sum()))


def bootstrap(differences: Array, num_resamples: int = NUM_RESAMPLES, seed: int = RESAMPLING_SEED) -> float:
    """Paired bootstrap: how often the mean of resampled users is as far from the mean as that is from zero."""
    random = np.random.default_rng(seed)
    values, counts = np.unique(differences, return_counts=True)
    num_users = len(differences)
    total = np.empty(num_resamples)
    if len(values) * COST_OF_A_BINOMIAL < num_users:
        for start, stop in _chunks(num_resamples, len(values)):
            total[start:stop] = random.multinomial(num_users, counts / num_users, size=stop - start) @ values
    else:
        for start, stop in _chunks(num_resamples, num_users):
            drawn = random.integers(num_users, size=(stop - start, num_users), dtype=np.uint32)
            total[start:stop] = differences[drawn].sum(axis=1)
    return _share_as_far(total - differences.sum(), float(differences.sum()))


TESTS: Mapping[str, Callable[[Array], float]] = {
    "paired-t": paired_t,
    "randomisation": randomisation,
    "bootstrap": bootstrap,
    "wilcoxon": wilcoxon,
}
"""Two-sided p-values of per-user differences, by the name of the test."""

TEST_NAMES = {
    "paired-t": "paired t-test",
    "randomisation": f"paired sign-flip randomisation test with {NUM_RESAMPLES:,} permutations",
    "bootstrap": f"paired bootstrap test with {NUM_RESAMPLES:,} resamples",
    "wilcoxon": "Wilcoxon signed-rank test",
}


def remark_on(method: str, alpha: float, family_size: int, correction: str) -> str | None:
    """What a reader must know of a test, if anything."""
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


def correct(p_values: list[float], correction: str) -> list[float]:
    """P-values corrected for the number of tests in the family."""
    if correction == "none" or not p_values:
        return p_values
    return [float(value) for value in multipletests(p_values, method=correction)[1]]


def detectable_difference(spread: float, num_users: int, alpha: float, family_size: int) -> float:
    """The smallest true difference that a paired t-test finds with 80 % power, at the strictest corrected level."""
    if spread == 0 or num_users < 3:
        return 0.0
    level = alpha / max(1, family_size)
    return spread * float(TTestPower().solve_power(nobs=num_users, alpha=level, power=POWER, alternative="two-sided"))


def _chunks(length: int, width: int) -> list[tuple[int, int]]:
    step = max(1, CHUNK_CELLS // max(1, width))
    return [(start, min(start + step, length)) for start in range(0, length, step)]


def _share_as_far(resampled: Array, observed: float) -> float:
    """(b + 1) / (m + 1), where b of m are at least as far from zero; sums in another order may differ by rounding."""
    tolerance = 1e-9 * max(1.0, abs(observed))
    as_far = int(np.sum(np.abs(resampled) >= abs(observed) - tolerance))
    return (as_far + 1) / (len(resampled) + 1)
