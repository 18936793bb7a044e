"""Every recipe loads, has a plan, and each of its networks trains for a step and ranks."""

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from aprec_like.devices import pretend_gpu
from aprec_like.models import CountingModel
from aprec_like.ranking import rank
from aprec_like.recipe import load_recipe
from aprec_like.training.loop import train
from evaluation.running.plan import describe_plan
from evaluation.running.smoke import shrink

NOWHERE = Path("no such folder")
RECIPES = sorted((Path(__file__).parent.parent / "recipes").glob("*.py"))
GRIDS = {
    "ml1m_cpu_grid": ("k=1, t=0", "k=1, t=1", "k=256, t=0", "k=256, t=1"),
    "ml1m_grid": ("k=1, t=0", "k=1, t=1", "k=256, t=0", "k=256, t=1"),
    "ml1m_losses": ("SASRec, BCE, k=1", "SASRec, SSM, k=256", "BERT4Rec, BCE, k=1", "BERT4Rec, SSM, k=256"),
}
"""Corners of grids, which are tested instead of all cells."""

pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly`")
every_recipe = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


@pytest.fixture(autouse=True, scope="module")
def eager():
    """Run without compilation, which takes longer than a step; other tests cover compiled steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@every_recipe
def test_the_docstring_has_command_expected_result_and_duration(path):
    text = ast.get_docstring(ast.parse(path.read_text()))
    assert f"Run:       python -m evaluation.run recipes/{path.name}" in text
    assert "\nExpected:  " in text and "\nDuration:  " in text


@every_recipe
def test_the_plan_needs_no_data(path, monkeypatch, tmp_path):
    """The sizes of published data are known; other data is simulated, so the recipe is shrunk."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = load_recipe(path)
    recipe = recipe if recipe.dataset.publication else shrink(recipe, NOWHERE)
    lines = describe_plan(recipe, list(recipe.models), NOWHERE).splitlines()
    assert [line.split(":")[0] for line in lines[-len(recipe.models) :]] == list(recipe.models)


@cache
def split_of(dataset, rule):
    return rule.split(dataset.load(NOWHERE))


TESTED = {"step": set(), "GPU": set()}
"""Models that a test has seen already: shrunk, models of many recipes are equal."""


def new_networks(path, recipe, test):
    """Names and settings of the recipe's networks that are new to a test, each for a single step of training."""
    for name in GRIDS.get(path.stem, recipe.models):
        model = recipe.models[name]
        if isinstance(model, CountingModel):
            continue
        key = (model.model, model.loss, model.negatives, model.prior_start, type(model.training.optimizer))
        if key not in TESTED[test]:
            TESTED[test].add(key)
            one_step = replace(model.training, max_epochs=1, max_steps_per_epoch=1, early_stopping=None)
            yield name, replace(model, training=one_step)


def shrunk(path, monkeypatch, tmp_path):
    """A shrunk recipe, its split, and 64 test users."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = shrink(load_recipe(path), NOWHERE)
    split = split_of(recipe.dataset, recipe.split)
    return recipe, split, replace(split.test, users=split.test.users[:64], targets=split.test.targets[:64])


@every_recipe
def test_every_network_trains_for_a_step_and_ranks(path, monkeypatch, tmp_path):
    recipe, split, few = shrunk(path, monkeypatch, tmp_path)
    scorers = {name: train(model, split, seed=1).scorer for name, model in new_networks(path, recipe, "step")}
    counting = {name: model for name, model in recipe.models.items() if isinstance(model, CountingModel)}
    scorers |= {name: model.fit(split.test.known) for name, model in counting.items()}
    for name, scorer in scorers.items():
        ranks = rank(scorer, few, exclude_seen=recipe.evaluation.exclude_seen).ranks
        assert ranks.shape == (64,) and np.all(ranks >= 1), name


@pytest.mark.slow
@every_recipe
def test_every_network_learns_on_a_gpu_what_it_learns_on_a_cpu(path, monkeypatch, tmp_path):
    """Without dropout, whose values depend on the layout of a batch."""
    recipe, split, _ = shrunk(path, monkeypatch, tmp_path)
    for name, model in new_networks(path, recipe, "GPU"):
        if hasattr(model.model, "dropout_rate"):
            model = replace(model, model=replace(model.model, dropout_rate=0.0))
        rankings = rank(train(model, split, seed=1).scorer, split.test, exclude_seen=True)
        with pretend_gpu():
            on_gpu = rank(train(model, split, seed=1).scorer, split.test, exclude_seen=True)
        np.testing.assert_allclose(on_gpu.target_scores, rankings.target_scores, atol=1e-5, err_msg=name)
        assert np.mean(on_gpu.ranks == rankings.ranks) > 0.9, name  # scores of an untrained network are close together
        for metric in recipe.evaluation.metrics:
            values, gpu_values = metric.per_user(rankings.ranks), metric.per_user(on_gpu.ranks)
            assert abs(np.mean(gpu_values) - np.mean(values)) <= 1e-4, f"{name}, {metric}"


def test_the_grids_are_complete():
    recipes = [load_recipe(path) for path in RECIPES if path.stem in GRIDS]
    assert [len(recipe.models) for recipe in recipes] == [25, 25, 30]
    for recipe, corners in zip(recipes, GRIDS.values(), strict=True):
        assert set(corners) <= set(recipe.models)
