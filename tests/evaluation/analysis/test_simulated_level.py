"""Tests and intervals hold their level and coverage on simulated runs: `python -m pytest -m slow`, about 3 minutes."""

import itertools

import pytest

from tests.evaluation.analysis.simulation import family_rates, pair_rates, seeds_of_run, tail_rates

STDS = (0.0, 0.002, 0.006)


@pytest.mark.slow
@pytest.mark.parametrize(("training_std", "num_seeds"), list(itertools.product(STDS, (1, 3, 5))))
def test_methods_that_do_not_differ_are_called_different_in_at_most_six_of_a_hundred_runs(training_std, num_seeds):
    """At least three where trainings vary; within 2 percentage points with 1,000 runs, 3 standard errors.

    With one seed, two other models of the run have three.
    """
    rates = pair_rates(1_000, seeds_of_run(num_seeds), training_std)
    assert rates.users_and_trainings < 0.06 + 0.02
    assert training_std == 0 or rates.users_and_trainings > 0.03 - 0.02
    assert 0.93 - 0.02 < rates.coverage < 0.97 + 0.02
    assert training_std < 0.006 or rates.users > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("num_models", "num_seeds", "training_std"), [(3, 1, 0.0), (8, 3, 0.002), (25, 3, 0.002)])
def test_a_default_table_of_models_that_do_not_differ_seldom_has_a_star(num_models, num_seeds, training_std):
    table, alone = family_rates(300, num_models, num_seeds, training_std)
    assert table < 0.06 + 0.02
    assert alone >= table


@pytest.mark.slow
@pytest.mark.parametrize("num_models", [2, 8])
def test_small_p_values_are_not_too_frequent_with_few_trainings(num_models):
    """Within 3 standard errors of 50,000 runs."""
    shares = tail_rates(50_000, num_models, 3, 0.006, user_variance=0.02)
    for share, level in zip(shares, (0.05, 0.01, 0.001), strict=True):
        assert share < level + 3 * (level / 50_000) ** 0.5


@pytest.mark.slow
def test_a_difference_of_several_standard_errors_is_found():
    assert pair_rates(200, [3, 3], 0.002, difference=0.02).users_and_trainings > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("training_std", STDS)
def test_the_bootstrap_of_users_and_trainings_holds_its_level(training_std):
    rates = pair_rates(300, [3, 3, 3], training_std, with_bootstrap=True)
    assert rates.bootstrap < 0.06 + 0.03


def test_a_simulated_run_ends_in_rates():
    rates = pair_rates(3, [2, 2], 0.1, difference=0.0)
    assert 0 <= rates.users_and_trainings <= rates.users <= 1
    table, alone = family_rates(2, 3, 2, 0.0)
    assert 0 <= table <= alone <= 1
