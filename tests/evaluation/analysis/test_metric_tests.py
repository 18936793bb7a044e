import numpy as np
import pytest

from evaluation.analysis.metric_tests import MetricTests
from evaluation.analysis.significance import TESTS, paired_t
from evaluation.analysis.variance import MIN_SEEDS
from evaluation.results.load import ModelResults

NUM_USERS = 500
COUNTING = {"class": "Popularity"}


def model(name, random, num_seeds=3, level=0.0, trainings=0.01, settings=None):
    """Return a model whose values are noise around its level, shifted in every training."""
    shifts = random.normal(0, trainings, (num_seeds, 1)) if trainings else 0.0
    values = level + shifts + random.normal(0.5, 0.2, (num_seeds, NUM_USERS))
    return ModelResults(
        name, tuple(range(1, num_seeds + 1)), {"NDCG@10": values}, 1.0, settings or {"class": "Trained"}
    )


def test_the_same_method_trained_under_two_names_differs_for_users_but_not_for_trainings():
    random = np.random.default_rng(0)
    first, second = (model(name, random, trainings=0.05) for name in "AB")
    differences = first.per_user("NDCG@10") - second.per_user("NDCG@10")
    tests = MetricTests([first, second], "NDCG@10")
    assert paired_t(differences) < 1e-4
    for method in ("paired-t", "bootstrap"):
        assert tests.test(first, second, method).p_value > 0.05
    assert tests.test(first, second, "randomisation").p_value == TESTS["randomisation"](differences)
    assert tests.scope("paired-t") == "over users and trainings"
    assert tests.scope("wilcoxon") == "over users alone, about these trained models"


def test_a_difference_far_beyond_the_spread_of_trainings_is_found():
    random = np.random.default_rng(0)
    models = [model("A", random, level=0.2), model("B", random)]
    tests = MetricTests(models, "NDCG@10")
    for method in ("paired-t", "bootstrap"):
        assert tests.test(*models, method).p_value < 0.001


def test_intervals_include_trainings_and_those_of_counting_models_do_not():
    random = np.random.default_rng(0)
    trained = model("A", random, trainings=0.05)
    counting = model("Popularity", random, num_seeds=1, settings=COUNTING)
    tests = MetricTests([trained, counting], "NDCG@10")
    alone = MetricTests([counting], "NDCG@10")
    assert tests.interval(counting) == alone.interval(counting)
    width = tests.interval(trained).high - tests.interval(trained).low
    assert width > 2 * 4.30 * 0.8 * np.std(trained.values["NDCG@10"].mean(axis=1), ddof=1) / np.sqrt(3)
    assert not alone.covers_trainings and alone.scope("paired-t") == "over users"


def test_a_model_with_one_seed_is_taken_to_vary_as_the_others():
    random = np.random.default_rng(0)
    single, several = model("A", random, num_seeds=1), model("B", random, trainings=0.05)
    tests = MetricTests([single, several], "NDCG@10")
    assert tests.training_variance(single) is tests.training_variance(several) is tests.pooled
    pair = tests.test(single, several)
    assert pair.standard_error**2 > tests.pooled.value * (1 + 1 / 3)


def test_models_with_many_seeds_have_a_variance_of_their_own():
    random = np.random.default_rng(0)
    steady = model("A", random, num_seeds=MIN_SEEDS, trainings=0.0)
    erratic = model("B", random, num_seeds=MIN_SEEDS, trainings=0.1)
    tests = MetricTests([steady, erratic], "NDCG@10")
    assert tests.training_variance(steady).value < 1e-4 < 5e-3 < tests.training_variance(erratic).value


@pytest.mark.parametrize("num_seeds", [1, 3, MIN_SEEDS])
def test_the_p_values_of_all_pairs_are_those_of_single_tests(num_seeds):
    random = np.random.default_rng(0)
    models = [model(name, random, num_seeds, level) for name, level in {"A": 0, "B": 0.01, "C": 0.02}.items()]
    copy = ModelResults("D", models[0].seeds, models[0].values, 1.0, models[0].settings)
    models = [*models, copy, model("Popularity", random, 1, settings=COUNTING), model("E", random, 1 + num_seeds // 2)]
    tests = MetricTests(models, "NDCG@10")
    p_values = tests.pair_p_values()
    assert len(p_values) == 15
    assert p_values["A", "D"] == 1.0
    by_name = {each.name: each for each in models}
    for (first, second), p_value in p_values.items():
        assert p_value == pytest.approx(tests.test(by_name[first], by_name[second]).p_value, rel=1e-6)


def test_the_bootstrap_of_users_and_trainings_agrees_with_the_t_test():
    random = np.random.default_rng(5)
    models = [model(str(number), random, level=0.01 * number, trainings=0.01) for number in range(6)]
    tests = MetricTests(models, "NDCG@10")
    for second in models[1:]:
        expected = tests.test(models[0], second).p_value
        assert tests.test(models[0], second, "bootstrap").p_value == pytest.approx(expected, abs=0.1 * expected + 0.02)
