"""Variance by source, held to tables whose effects are known and to an independent analysis of variance."""

import numpy as np
import pytest
from scipy import integrate, stats

from evaluation.analysis.variance import (
    StandardError,
    Trainings,
    TrainingVariance,
    mean_squares,
    pool_trainings,
    standard_error,
)


def table(random, num_seeds=3, num_users=2_000, users=0.3, trainings=0.0, interaction=0.2) -> np.ndarray:
    """Return values (seeds, users) with normal effects of these standard deviations."""
    effects = random.normal(0, users, num_users) + random.normal(0, trainings, (num_seeds, 1))
    return effects + random.normal(0, interaction, (num_seeds, num_users))


def test_mean_squares_of_a_table_by_hand():
    """Rows 0 2 and 4 10: means of seeds 1 and 7, of users 2 and 6, residuals all 1 in size, one degree of freedom."""
    squares = mean_squares(np.array([[0.0, 2.0], [4.0, 10.0]]))
    assert (squares.seed_means, squares.user_means, squares.interaction) == pytest.approx((18.0, 8.0, 4.0))
    components = squares.components
    assert (components.trainings, components.users, components.interaction) == pytest.approx((16.0, 6.0, 4.0))
    assert components.shares == pytest.approx((3 / 12, 8 / 12, 1 / 12))


def test_one_seed_has_no_components():
    assert mean_squares(np.ones((1, 10))) is None
    assert pool_trainings({"A": np.ones((1, 10))}) is None


def test_without_an_effect_of_trainings_their_share_is_small_because_the_interaction_counts_once():
    """The variance of seed means, which has a part of the interaction, is 10 % of the sum with that over users."""
    random = np.random.default_rng(0)
    squares = [mean_squares(table(random)) for _ in range(200)]
    counted_twice = [each.seed_means / 3 / (each.seed_means / 3 + each.user_means / 2_000) for each in squares]
    found = [each.components for each in squares]
    assert np.mean(counted_twice) > 0.08
    assert np.median([each.shares[1] for each in found]) < 0.02
    assert np.mean([each.interaction for each in found]) == pytest.approx(0.04, rel=0.01)
    assert np.mean([each.users for each in found]) == pytest.approx(0.09, rel=0.01)


def test_the_variance_between_trainings_is_found_and_pooled_by_degrees_of_freedom():
    random = np.random.default_rng(1)
    tables = {str(number): table(random, num_seeds=5, num_users=300, trainings=0.05) for number in range(200)}
    pooled = pool_trainings(tables)
    assert pooled.value == pytest.approx(0.05**2, rel=0.1)
    assert pooled.degrees_of_freedom == 800
    unequal = {"A": table(random, num_seeds=2), "B": table(random, num_seeds=4)}
    squares = {name: mean_squares(values) for name, values in unequal.items()}
    assert pool_trainings(unequal).seed_means == pytest.approx(
        (squares["A"].seed_means + 3 * squares["B"].seed_means) / 4
    )


def test_without_trainings_the_standard_error_is_that_of_the_users():
    values = np.random.default_rng(0).random(50)
    error = standard_error(np.var(values, ddof=1), 50)
    assert error.value == pytest.approx(stats.sem(values))
    assert error.degrees_of_freedom == 49


def test_models_that_differ_only_by_trainings_are_tested_by_student_on_the_means_of_seeds():
    """Without interaction and without differences among users, all chance is in the seed means."""
    random = np.random.default_rng(3)
    first, second = (np.tile(random.normal(size=(4, 1)), 100) for _ in range(2))
    variance = pool_trainings({"A": first, "B": second})
    error = standard_error(0.0, 1_000_000, [Trainings("A", 4, variance), Trainings("B", 4, variance)])
    expected = stats.ttest_ind(first.mean(axis=1), second.mean(axis=1))
    difference = first.mean() - second.mean()
    assert difference / error.value == pytest.approx(expected.statistic)
    assert error.degrees_of_freedom == pytest.approx(expected.df)
    assert error.p_value(difference) == pytest.approx(expected.pvalue, rel=1e-4)
    interval = expected.confidence_interval(0.95)
    assert error.half_width(0.95) == pytest.approx((interval.high - interval.low) / 2, rel=1e-4)


def known(seed_means, interaction, df) -> TrainingVariance:
    return TrainingVariance(seed_means, interaction, 10_000, {"A": np.zeros(df + 1)})


@pytest.mark.parametrize("df", [1, 2, 4, 16])
@pytest.mark.parametrize("statistic", [0.5, 2.0, 6.0])
def test_a_p_value_is_the_integral_over_the_unknown_training_variance(df, statistic):
    """Users' variance 3 of which 1 is interaction, training variance estimated as 4: by SciPy's adaptive quadrature."""
    error = StandardError(3.0, 10_000_000, ((known(4.0, 1.0, df), 1.0),))

    def integrand(log_chi2):
        chi2 = np.exp(log_chi2)
        return 2 * stats.norm.sf(statistic / np.sqrt(3 - 1 + 4 * df / chi2)) * stats.chi2.pdf(chi2, df) * chi2

    expected = integrate.quad(integrand, -60, 6, epsabs=1e-14, limit=500)[0]
    assert error.p_value(statistic) == pytest.approx(expected, rel=1e-5)
    assert error.p_value(-statistic) == error.p_value(statistic)


def test_a_p_value_is_never_below_that_over_users_and_an_interval_never_narrower():
    """Means of seeds that agree by chance better than their users' values allow are no evidence."""
    users = StandardError(1.0, 500)
    lucky, usual = (StandardError(1.0, 500, ((known(seed_means, 1.0, 4), 1.0),)) for seed_means in (0.01, 3.0))
    for difference in (0.5, 2.0, 5.0):
        assert users.p_value(difference) <= lucky.p_value(difference) < usual.p_value(difference)
    assert lucky.p_value(2.0) == users.p_value(2.0)
    assert lucky.half_width(0.95) == pytest.approx(users.half_width(0.95))
    assert users.half_width(0.95) == pytest.approx(stats.t.ppf(0.975, 499))
    assert usual.p_value(usual.half_width(0.99)) == pytest.approx(0.01)


@pytest.mark.parametrize(("rest", "true_ratio"), [(0.0, 1.0), (0.0, 6.0), (4.0, 6.0)])
def test_the_share_of_small_p_values_is_at_most_their_level(rest, true_ratio):
    """Two models of three seeds that do not differ, interaction 1: exact but for 5,000 draws."""
    random = np.random.default_rng(0)
    seed_means = true_ratio * random.chisquare(4, 5_000) / 4
    differences = random.normal(0, np.sqrt(rest + true_ratio), 5_000)
    p_values = np.array([
        StandardError(rest + 1.0, 10_000, ((known(found, 1.0, 4), 1.0),)).p_value(difference)
        for found, difference in zip(seed_means, differences, strict=True)
    ])  # fmt: skip
    for level in (0.05, 0.01):
        assert np.mean(p_values < level) < level + 3 * np.sqrt(level / 5_000)
    assert np.mean(p_values < 0.05) > 0.015


def test_one_training_with_the_variance_of_others_counts_whole():
    variance = pool_trainings({"B": np.tile([[0.0], [2.0]], 10)})  # variance 2 between trainings
    single, several = Trainings("A", 1, variance), Trainings("B", 2, variance)
    assert standard_error(0.0, 10, [single]).value ** 2 == pytest.approx(2.0)
    assert standard_error(0.0, 10, [single, several]).value ** 2 == pytest.approx(3.0)
