"""Runs one model of a recipe with one seed: load, split, train, rank, measure, store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

import tensorflow as tf

from aprec_like.models import Scorer
from aprec_like.ranking import Rankings, rank
from aprec_like.recipe import Evaluation, Trained
from aprec_like.settings import describe
from aprec_like.splits import Split, counted_interactions
from aprec_like.training.cost import NOT_MEASURED, Cost
from evaluation.caveats.training import training_caveats
from evaluation.results.environment import peak_gpu_memory_gib, peak_memory_gib
from evaluation.results.identity import check_unchanged_data
from evaluation.running.beside_popularity import compare_with_popularity, loss_change
from evaluation.running.fit_model import ModelRun, fit_model, load_fitted, remove_states, stop_if_requested
from evaluation.running.progress import Display, format_duration
from evaluation.running.result_tables import (
    metric_columns,
    summarise,
    tabulate_history,
    tabulate_top_items,
    tabulate_users,
)


def run_model(
    run: ModelRun,
    display: Display,
    is_stopping: Callable[[], bool] = lambda: False,
    read_cost: Callable[[], Cost] = lambda: NOT_MEASURED,
) -> None:
    """Load, split, train, rank, measure, store; resumes a run that was stopped or killed.

    A model that is finished already is not trained again: it is ranked with its stored weights.

    Args:
        run: the model.
        display: shows the progress.
        is_stopping: `StoppedError` is raised soon after it returns True.
        read_cost: returns what this process has used for this model so far.
    """
    started = time.monotonic()
    evaluation, folder = run.recipe.evaluation, run.folder
    interactions = run.recipe.load(run.data_dir)
    split = run.recipe.split_interactions(interactions)
    if run.identity:
        check_unchanged_data(interactions.digest(), split.digest(), run.identity)
    fitted = load_fitted(run, split, display) or fit_model(run, interactions, split, display, is_stopping, read_cost)
    rankings = _rank(fitted.scorer, split, evaluation, display, is_stopping)
    if fitted.history is not None:
        folder.write_history(tabulate_history(fitted.history))
    folder.write_per_user(tabulate_users(rankings, split, evaluation))
    folder.write_top_items(tabulate_top_items(rankings, split))
    folder.write_metrics(summarise(metric_columns(rankings, evaluation), evaluation))
    seconds = time.monotonic() - started + fitted.seconds_before
    devices = [device.device_type for device in tf.config.list_logical_devices()]
    memory = {"peak_memory_gib": peak_memory_gib(), "peak_gpu_memory_gib": peak_gpu_memory_gib()}
    cost = {"seconds_total": seconds, "cost": asdict(read_cost() + fitted.cost_before)}
    status = memory | cost | {"devices": devices} | fitted.status | {"depth": evaluation.depth}
    if isinstance(run.model, Trained):
        counted = counted_interactions(split, run.recipe.fit_on)
        beside = compare_with_popularity(rankings, counted, split.test, exclude_seen=evaluation.exclude_seen)
        status |= {"beside_popularity": beside}
        status |= {"loss_change": loss_change(fitted.history)} if fitted.history is not None else {}
    folder.finish(identity=run.identity, **status)
    remove_states(folder, is_last_kept=bool(status.get("is_checkpoint_kept")))
    display.print_line(f"finished in {format_duration(seconds)}")
    for caveat in training_caveats(describe(run.model), [status]):
        display.print_line(f"{caveat.mark}: {caveat.advice}")


def _rank(
    scorer: Scorer, split: Split, evaluation: Evaluation, display: Display, is_stopping: Callable[[], bool]
) -> Rankings:
    """Rank the catalogue for all test users."""

    def on_progress(num_ranked: int) -> None:
        display.on_rank(num_ranked, len(split.test))
        stop_if_requested(is_stopping)

    stop_if_requested(is_stopping)
    return rank(
        scorer,
        split.test,
        exclude_seen=evaluation.exclude_seen,
        depth=evaluation.depth,
        candidates=evaluation.candidates.draw(split.train, split.test) if evaluation.candidates else None,
        on_progress=on_progress,
    )
