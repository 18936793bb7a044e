"""Contracts of losses, metrics, counting models and datasets: a new class is covered by being listed in its package.

Contracts of networks are in models/test_contract.py.
"""

import inspect
from dataclasses import MISSING, FrozenInstanceError, fields, replace

import numpy as np
import pytest
import tensorflow as tf

from aprec_like import datasets, losses, metrics, models
from aprec_like.calibration import Probability
from aprec_like.datasets import Dataset, Simulated, TextFile
from aprec_like.errors import InputError
from aprec_like.losses import BinaryLoss, FullLoss, Loss, SampledLoss
from aprec_like.metrics import METRICS, CutoffMetric, Metric, metric_named
from aprec_like.models import CountingModel
from aprec_like.negatives import Negatives
from aprec_like.recipe_classes import LOSS_CLASSES, recipe_classes
from aprec_like.settings import describe, restore
from tests.conftest import circle_sequences, interactions_from

NUM_ITEMS = 40
RANKS = np.array([1, 1.5, 2, 3, 10, 10.5, 11, 1_000, np.inf])
SAMPLING = [
    Negatives(),
    Negatives(reject_positive=True),
    Negatives(reject_history=True),
    Negatives(by_popularity=True),
    Negatives(shared_by="batch"),
]


def listed(package, base):
    """Concrete subclasses of `base` that a package exports."""
    exported = [getattr(package, name) for name in package.__all__]
    classes = [value for value in exported if inspect.isclass(value) and issubclass(value, base)]
    return [cls for cls in classes if cls is not base and not inspect.isabstract(cls)]


def by_class(classes):
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


def make(cls, **examples):
    """An instance with defaults; a field without one has the example of its name, else its name as a text."""
    required = [field.name for field in fields(cls) if field.default is MISSING and field.default_factory is MISSING]
    return cls(**{name: examples.get(name, name) for name in required})


def assert_is_a_setting(value, classes):
    """Frozen, comparable, and restored from its description."""
    assert restore(describe(value), classes) == value == replace(value)
    with pytest.raises(FrozenInstanceError):
        value.something = 1


LOSSES = listed(losses, Loss)


def test_every_kind_of_loss_is_listed():
    assert {cls.__name__ for cls in LOSSES} >= {"BCE", "BPR", "GBCE", "SampledSoftmax", "Softmax"}
    assert all(issubclass(cls, (SampledLoss, FullLoss)) for cls in LOSSES)


@by_class(LOSSES)
def test_a_loss_is_a_setting_with_an_example(cls):
    assert_is_a_setting(make(cls), LOSS_CLASSES)
    assert ">>> " in cls.__doc__


@by_class([cls for cls in LOSSES if issubclass(cls, SampledLoss)])
@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_a_sampled_loss_has_finite_values_and_gradients_of_the_right_signs(cls, scale):
    loss, random = replace(make(cls), num_negatives=3), np.random.default_rng(0)
    positive, negative = (
        tf.constant(scale * random.normal(size=shape), tf.float32) for shape in ((4, 5), (4, 5, loss.num_negatives))
    )
    with tf.GradientTape() as tape:
        tape.watch([positive, negative])
        values = loss(positive, negative, NUM_ITEMS)
        total = tf.reduce_sum(values)
    grad_positive, grad_negative = tape.gradient(total, [positive, negative])
    assert values.shape == (4, 5) and np.isfinite(values).all()
    assert np.isfinite(grad_positive).all() and (grad_positive.numpy() <= 0).all() and np.any(grad_positive)
    assert np.isfinite(grad_negative).all() and (grad_negative.numpy() >= 0).all() and np.any(grad_negative)


@by_class([cls for cls in LOSSES if issubclass(cls, FullLoss)])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_a_full_loss_has_finite_values_and_gradients(cls, scale):
    random = np.random.default_rng(0)
    states, table = (tf.constant(scale * random.normal(size=shape), tf.float32) for shape in ((6, 3), (NUM_ITEMS, 3)))
    with tf.GradientTape() as tape:
        tape.watch([states, table])
        values = make(cls)(states, table, tf.range(6))
        total = tf.reduce_sum(values)
    assert values.shape == (6,) and np.isfinite(values).all()
    for gradient in tape.gradient(total, [states, table]):
        assert np.isfinite(gradient).all() and np.any(gradient)


@by_class(LOSSES)
@pytest.mark.parametrize("negatives", SAMPLING, ids=str)
def test_a_loss_says_what_its_probabilities_are_or_that_there_are_none(cls, negatives):
    assert cls.probability is not Loss.probability, "a listed loss overrides the default, even if it returns None"
    probability = make(cls).probability(NUM_ITEMS, negatives)
    if probability is None:
        return
    assert isinstance(probability, Probability)
    scores = -np.sort(-np.random.default_rng(0).normal(size=(7, NUM_ITEMS)), axis=1)
    logsumexps, sigmoid_sums = np.log(np.exp(scores).sum(axis=1)), (1 / (1 + np.exp(-scores))).sum(axis=1)
    found = probability(scores, logsumexps)
    assert found.shape == scores.shape and (found > 0).all() and (found < 1).all()
    assert (np.diff(found, axis=1) < 0).all()  # items with higher scores are more probable
    sums = probability.catalogue_sums(scores[:, :20], logsumexps, sigmoid_sums)
    if probability.is_sum_bound:
        assert (sums >= found.sum(axis=1)).all() and probability.note
    else:
        np.testing.assert_allclose(sums, found.sum(axis=1))


@by_class([cls for cls in LOSSES if issubclass(cls, BinaryLoss)])
@pytest.mark.parametrize("excludes_positive", [True, False])
@pytest.mark.parametrize("true_probability", [0.01, 0.3])
def test_the_expected_loss_of_a_binary_loss_has_its_minimum_at_the_optimal_sigmoid(
    cls, excludes_positive, true_probability
):
    """An item is the positive with probability P; as a negative it is sampled k / (|I| - 1) times if it is not the
    positive, or k / |I| times in any case."""
    loss, k = replace(make(cls), num_negatives=3), 3
    sigmoid = loss.optimal_sigmoid(NUM_ITEMS, Negatives(reject_positive=excludes_positive))(true_probability)
    logit = tf.constant(np.log(sigmoid / (1 - sigmoid)), tf.float64)
    negative = tf.zeros([k], tf.float64) + logit
    with tf.GradientTape() as tape:
        tape.watch([logit, negative])
        value = loss(logit, negative, NUM_ITEMS)
    grad_positive, grad_negative = tape.gradient(value, [logit, negative])
    num_sampled = k / (NUM_ITEMS - 1) * (1 - true_probability) if excludes_positive else k / NUM_ITEMS
    expected_gradient = true_probability * grad_positive + num_sampled * grad_negative[0]
    assert float(expected_gradient) == pytest.approx(0, abs=1e-12)


@by_class([cls for cls in LOSSES if issubclass(cls, SampledLoss)])
def test_the_label_of_a_sampled_loss_does_not_name_the_number_of_negatives(cls):
    labels = {replace(make(cls), num_negatives=k).label for k in (2, 3)}
    assert len(labels) == 1 and labels != {""}


METRIC_CLASSES = listed(metrics, Metric)


def test_metrics_of_the_command_line_are_those_that_are_listed():
    assert set(METRICS) == set(METRIC_CLASSES)


def metric_of(cls):
    return cls(10) if issubclass(cls, CutoffMetric) else cls()


@by_class(METRIC_CLASSES)
def test_a_metric_is_between_0_and_1_and_falls_with_the_rank(cls):
    values = metric_of(cls).per_user(RANKS)
    assert values.dtype == np.float64 and values.shape == RANKS.shape
    assert 1 >= values[0] > 0 == values[-1]
    assert (np.diff(values) <= 0).all()


@by_class(METRIC_CLASSES)
def test_the_name_of_a_metric_finds_it(cls):
    metric = metric_of(cls)
    assert metric_named(str(metric)) == metric
    assert describe(metric) == str(metric)
    assert ">>> " in cls.__doc__
    for wrong in (f"{cls.__name__}@0", f"{cls.__name__}@x", f"{cls.__name__}s"):
        with pytest.raises(InputError, match="there is no metric"):
            metric_named(wrong)


@by_class(listed(models, CountingModel))
def test_a_counting_model_is_a_setting_whose_scores_are_finite(cls):
    model = make(cls, dataset=Simulated(num_users=50, num_items=NUM_ITEMS, num_types=2, has_repeats=True))
    assert_is_a_setting(model, recipe_classes())
    known = interactions_from(circle_sequences(50, NUM_ITEMS), NUM_ITEMS)
    scores = np.asarray(model.fit(known).score(known.histories(np.arange(5))))
    assert scores.shape == (5, NUM_ITEMS) and scores.dtype == np.float32 and np.isfinite(scores).all()


@by_class(listed(datasets, Dataset))
def test_a_dataset_is_a_setting_and_knows_whether_it_is_on_disk(cls, tmp_path):
    dataset = make(cls, dataset=TextFile("missing.txt"))
    assert_is_a_setting(dataset, recipe_classes())
    assert dataset.is_on_disk(tmp_path) == isinstance(dataset, Simulated)  # which is computed
