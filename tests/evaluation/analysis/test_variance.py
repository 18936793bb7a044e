"""Variance by source, held to tables whose effects are known and to an independent analysis of variance."""

import numpy as np
import pytest
from scipy import stats

from evaluation.analysis.variance import Trainings, mean_squares, pool_trainings, standard_error


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


def test_models_that_differ_only_by_trainings_are_tested_as_by_welch_on_the_means_of_seeds():
    """Without interaction and without differences among users, all chance is in the seed means."""
    random = np.random.default_rng(3)
    first, second = (np.tile(random.normal(size=(4, 1)), 100) for _ in range(2))
    variance = pool_trainings({"A": first, "B": second})
    error = standard_error(0.0, 100, [Trainings("A", 4, variance), Trainings("B", 4, variance)])
    expected = stats.ttest_ind(first.mean(axis=1), second.mean(axis=1))
    assert (first.mean() - second.mean()) / error.value == pytest.approx(expected.statistic)
    assert error.degrees_of_freedom == pytest.approx(expected.df)


def test_one_training_with_the_variance_of_others_counts_whole():
    variance = pool_trainings({"B": np.tile([[0.0], [2.0]], 10)})  # variance 2 between trainings
    single, several = Trainings("A", 1, variance), Trainings("B", 2, variance)
    assert standard_error(0.0, 10, [single]).value ** 2 == pytest.approx(2.0)
    assert standard_error(0.0, 10, [single, several]).value ** 2 == pytest.approx(3.0)
