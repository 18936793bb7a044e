"""Takes part in one training of the first host: the same data, settings and steps, no results."""

from __future__ import annotations

import sys
from collections.abc import Callable

from aprec_like.errors import InputError
from aprec_like.recipe import Trained, load_recipe
from aprec_like.recipe.fitting import refitting, validated_training
from aprec_like.recipe.own_code import describe_code
from aprec_like.settings import describe
from aprec_like.training import TrainingControl, train
from evaluation.results.identity import check_unchanged_data, check_unchanged_settings, identify
from evaluation.results.store import RunFolder
from evaluation.running.fit_model import make_checkpoints
from evaluation.running.hosts.orders import Order
from evaluation.running.smoke import shrink
from evaluation.running.worker import WorkerOptions


def train_along(options: WorkerOptions, order: Order, is_stopping: Callable[[], bool]) -> None:
    """Train the model of an order together with the first host; within the scope of the strategy.

    The recipe and the data of this host must be those that the results folder is of; raises `InputError`.
    """
    results, recipe = RunFolder(options.run), load_recipe(options.recipe)
    if not results.path.is_dir():
        raise InputError(f"{results.path} is not there, and the first host has written it: all need one --results DIR")
    recipe = shrink(recipe, options.data_dir) if options.smoke else recipe
    stored = results.read_recipe()
    check_unchanged_settings(describe(recipe) | {"code": describe_code(recipe)}, stored, order.model, options.recipe)
    interactions = recipe.load(options.data_dir)
    split = recipe.split_interactions(interactions)
    identity = identify(stored, results.read_dataset(), order.model, order.seed)
    check_unchanged_data(interactions.digest(), split.digest(), identity)
    model, folder = recipe.models[order.model], results.model(order.model, order.seed)
    if not isinstance(model, Trained):
        raise InputError(f"{order.model} is no network to train; all hosts need the same recipe")
    trained, path = validated_training(model, recipe.fit_on), folder.checkpoint_path
    if order.refit_epochs is not None:
        trained, path = refitting(model, recipe.fit_on, order.refit_epochs) or trained, folder.refit_path
    print(f"{order.model}, seed {order.seed}: trains with the first host", file=sys.stderr, flush=True)
    checkpoints = make_checkpoints(recipe, trained, order.seed, interactions, split, path, lambda line: None)
    control = TrainingControl(checkpoints=checkpoints, is_stopping=is_stopping)
    train(trained, split, seed=order.seed, exclude_seen=recipe.evaluation.exclude_seen, control=control)
