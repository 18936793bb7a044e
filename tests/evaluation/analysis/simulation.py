"""Simulated runs in which methods do not differ, or differ by a known amount: level, coverage and power of the tests.

Values are like NDCG@10 of 6,040 users: 72 % are zero, the others 1 / log2(rank + 1) of a rank from 1 to 10. In every
training a user keeps a value that all models share or, with probability 0.46, gets a new one, which makes the standard
deviation of the interaction 0.2. A training adds a normal shift to all its values.

python -m tests.evaluation.analysis.simulation prints the tables of docs/statistics.md.
"""

import gc
import itertools
from dataclasses import dataclass

import numpy as np

from evaluation.analysis.comparison import Rules, compare_models
from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.resampling import bootstrap_tests
from evaluation.analysis.significance import correct, paired_t
from evaluation.analysis.variance import Trainings, TrainingVariance, standard_error
from evaluation.results.load import LoadedRuns, ModelResults

METRIC = "NDCG@10"
NUM_USERS = 6_040
HIT_RATE, REDRAW_RATE = 0.28, 0.46
GAINS = 1 / np.log2(np.arange(2, 12))
VALUES = np.concatenate([np.zeros(720), np.repeat(GAINS, 28)])
"""A thousand equally likely values."""
ALPHA = 0.05


def simulate(random, num_seeds, training_std, differences=None) -> list[ModelResults]:
    """Return models with these numbers of seeds, whose expected means differ by `differences` (none by default)."""
    base = VALUES[random.integers(len(VALUES), size=NUM_USERS, dtype=np.uint16)]
    models = []
    for number, (seeds, difference) in enumerate(zip(num_seeds, differences or [0.0] * len(num_seeds), strict=True)):
        new = VALUES[random.integers(len(VALUES), size=(seeds, NUM_USERS), dtype=np.uint16)]
        is_new = random.random((seeds, NUM_USERS), dtype=np.float32) < REDRAW_RATE
        values = np.where(is_new, new, base) + random.normal(difference, training_std, (seeds, 1))
        name = f"model {number}"
        models.append(ModelResults(name, tuple(range(seeds)), {METRIC: values}, 1.0, {"class": "Trained"}))
    return models


@dataclass(frozen=True)
class Rates:
    """Shares of simulated runs in which the first two models were called different, and the mean was covered.

    Args:
        users_and_trainings: rejections by the test of `MetricTests`.
        bootstrap: rejections by its bootstrap with 999 resamples; NaN if it was not made.
        users: rejections by the paired t-test over users of means over seeds, which ignores the chance in training.
        coverage: 95 % intervals of the first model's mean that hold the expected mean.
    """

    users_and_trainings: float
    bootstrap: float
    users: float
    coverage: float


def pair_rates(num_runs, num_seeds, training_std, difference=0.0, seed=0, with_bootstrap=False) -> Rates:
    """Return the rates of the first two of models with these numbers of seeds; the first is better by `difference`."""
    random = np.random.default_rng(seed)
    expected = VALUES.mean() + difference
    found = []
    for _ in range(num_runs):
        models = simulate(random, num_seeds, training_std, [difference] + [0.0] * (len(num_seeds) - 1))
        tests = MetricTests(models, METRIC)
        interval, trainings = tests.interval(models[0]), tests.trainings(*models[:2])
        differences = models[0].per_user(METRIC) - models[1].per_user(METRIC)
        found.append(
            (
                tests.test(*models[:2]).p_value < ALPHA,
                bootstrap_tests([differences], [trainings], 999)[0] < ALPHA if with_bootstrap else np.nan,
                paired_t(differences) < ALPHA,
                interval.low <= expected <= interval.high,
            )
        )
    return Rates(*map(float, np.mean(found, axis=0)))


def family_rates(num_runs, num_models, num_seeds, training_std, seed=0) -> tuple[float, float]:
    """Return the shares of tables with a star though no models differ: the default table, and the best against each.

    The second corrects by Holm for the tests of the best model alone, over users, as if it had been named before.
    """
    random = np.random.default_rng(seed)
    has_star = []
    gc.freeze()  # statsmodels collects garbage in every correction, which takes longer than the simulation
    for _ in range(num_runs):
        models = simulate(random, [num_seeds] * num_models, training_std)
        runs = LoadedRuns("null", models, (METRIC,), NUM_USERS, "", {"evaluation": {"exclude_seen": True}}, [], ())
        comparison = compare_models(runs, Rules(alpha=ALPHA))
        values = {model.name: model.per_user(METRIC) for model in models}
        best = comparison.ranked(METRIC)[0]
        alone = [paired_t(values[best] - values[name]) for name in values if name != best]
        is_starred = [comparison.is_significant(row.cells[METRIC]) for row in comparison.rows]
        has_star.append((any(is_starred), min(correct(alone, "holm")) < ALPHA))
    gc.unfreeze()
    table, alone_rate = np.mean(has_star, axis=0)
    return float(table), float(alone_rate)


def tail_rates(num_runs, num_models, num_seeds, training_std, user_variance, seed=0) -> tuple[float, float, float]:
    """Return the shares of p-values below 0.05, 0.01 and 0.001 of two models that do not differ.

    Means of trainings are drawn as normal numbers instead of users one by one, which allows many more runs.

    Args:
        num_runs, num_models, num_seeds, training_std: as above.
        user_variance: of the users' expected differences between the two models, beside the interaction.
        seed: random seed.
    """
    random = np.random.default_rng(seed)
    interaction = 0.04 / NUM_USERS
    means = random.normal(0, np.sqrt(training_std**2 + interaction), (num_runs, num_models, num_seeds))
    shifts = random.normal(0, np.sqrt(user_variance / NUM_USERS), num_runs)
    differences = means[:, 0].mean(axis=1) - means[:, 1].mean(axis=1) + shifts
    variances = means.var(axis=2, ddof=1).mean(axis=1)
    effects = {str(number): np.zeros(num_seeds) for number in range(num_models)}
    of_users = user_variance + 2 * 0.04 / num_seeds
    p_values = np.empty(num_runs)
    for number, (difference, variance) in enumerate(zip(differences, variances, strict=True)):
        pooled = TrainingVariance(float(variance), interaction, NUM_USERS, effects)
        trainings = [Trainings(name, num_seeds, pooled) for name in ("0", "1")]
        error = standard_error(of_users, NUM_USERS, trainings)
        p_values[number] = error.p_value(float(difference))
    return tuple(float(np.mean(p_values < level)) for level in (0.05, 0.01, 0.001))


def seeds_of_run(num_seeds: int) -> list[int]:
    """Return the seeds of two compared models; two with one seed stand beside two others that have three."""
    return [1, 1, 3, 3] if num_seeds == 1 else [num_seeds] * 2


def main(num_runs: int = 2_000, num_families: int = 400) -> None:
    """Print the tables of docs/statistics.md."""
    print("| SD between trainings | seeds | users and trainings | users alone | coverage of a mean |")
    for training_std, num_seeds in itertools.product((0.0, 0.002, 0.006), (1, 3, 5)):
        rates = pair_rates(num_runs, seeds_of_run(num_seeds), training_std)
        print(f"| {training_std:g} | {num_seeds} | {rates.users_and_trainings:.1%} | {rates.users:.1%} | "
              f"{rates.coverage:.1%} |", flush=True)  # fmt: skip
    print("| models | seeds | SD between trainings | default table | best against each |")
    for (num_seeds, training_std), num_models in itertools.product(((1, 0.0), (3, 0.0), (3, 0.002)), (3, 8, 25)):
        table, alone = family_rates(num_families, num_models, num_seeds, training_std)
        print(f"| {num_models} | {num_seeds} | {training_std:g} | {table:.1%} | {alone:.1%} |", flush=True)
    print("| true difference | SD between trainings | seeds | users and trainings | users alone |")
    for difference, training_std, num_seeds in itertools.product((0.005, 0.01, 0.02), (0.0, 0.002, 0.006), (3, 5)):
        rates = pair_rates(num_runs // 4, [num_seeds] * 2, training_std, difference)
        print(f"| {difference:g} | {training_std:g} | {num_seeds} | {rates.users_and_trainings:.1%} | "
              f"{rates.users:.1%} |", flush=True)  # fmt: skip
    print("| models | seeds | SD between trainings | p < 0.05 | p < 0.01 | p < 0.001 |")
    for num_models, num_seeds, training_std in itertools.product((2, 8), (2, 3, 5), (0.0, 0.002, 0.006)):
        shares = tail_rates(100_000, num_models, num_seeds, training_std, user_variance=0.02)
        texts = " | ".join(f"{share:.2%}" for share in shares)
        print(f"| {num_models} | {num_seeds} | {training_std:g} | {texts} |", flush=True)
    for training_std in (0.0, 0.002, 0.006):
        rates = pair_rates(num_families, [3, 3, 3], training_std, with_bootstrap=True)
        print(
            f"bootstrap, SD {training_std:g}, 3 models: {rates.bootstrap:.1%}, t-test {rates.users_and_trainings:.1%}"
        )


if __name__ == "__main__":
    main()
