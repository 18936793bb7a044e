"""One model of a recipe from data to stored results; `run_model` is the table of contents."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf

from aprec_like.interactions import PADDING, Interactions
from aprec_like.models import CountingModel, Scorer
from aprec_like.ranking import Rankings, rank
from aprec_like.recipe import Evaluation, Recipe, Trained, sampled_name
from aprec_like.splits import Split
from aprec_like.training import train
from aprec_like.training_state import EpochRecord
from evaluation.progress import Display, as_duration
from evaluation.significance import mean_interval
from evaluation.store import Json, ModelFolder


def run_model(
    recipe: Recipe,
    name: str,
    seed: int,
    data_dir: Path,
    folder: ModelFolder,
    display: Display,
    time_limit: float,
) -> None:
    """Load, split, train, rank, measure, store."""
    started = time.monotonic()
    interactions = recipe.load(data_dir)
    split = recipe.split.split(interactions)
    scorer, history, training_status = _train(recipe, name, seed, split, folder, display, time_limit)
    candidates = recipe.evaluation.candidates
    rankings = rank(
        scorer,
        split.test,
        exclude_seen=recipe.evaluation.exclude_seen,
        depth=recipe.evaluation.depth,
        candidates=candidates.draw(split.train, split.test) if candidates else None,
        on_progress=lambda done: display.on_rank(done, len(split.test)),
    )
    per_user = tabulate_users(rankings, split, recipe.evaluation)
    folder.write_history(history)
    folder.write_per_user(per_user)
    folder.write_top_items(tabulate_top_items(rankings, split, interactions))
    folder.write_metrics(summarise(per_user, recipe.evaluation))
    folder.finish(
        **training_status,
        seconds_total=time.monotonic() - started,
        peak_memory_gib=_peak_memory_gib(),
        devices=[device.device_type for device in tf.config.list_logical_devices()],
    )
    display.say(f"finished in {as_duration(time.monotonic() - started)}")


def _train(
    recipe: Recipe,
    name: str,
    seed: int,
    split: Split,
    folder: ModelFolder,
    display: Display,
    time_limit: float,
) -> tuple[Scorer, pd.DataFrame, Json]:
    """A scorer, the history of its training, and what status.json says of it."""
    model = recipe.models[name]
    started = time.monotonic()
    if isinstance(model, CountingModel):
        scorer = model.fit(split.test.known)
        return scorer, as_frame([]), {"seconds_to_best": time.monotonic() - started}
    outcome = train(
        model.model,
        model.loss,
        model.training,
        split,
        seed=seed,
        negatives=model.negatives,
        prior_start=model.prior_start,
        exclude_seen=recipe.evaluation.exclude_seen,
        time_limit=time_limit,
        on_step=display.on_step,
        on_epoch=display.on_epoch,
    )
    folder.weights_path.parent.mkdir(parents=True, exist_ok=True)
    outcome.scorer.network.save_weights(folder.weights_path)
    best = outcome.best
    display.say(f"trained {len(outcome.history)} epochs, best {best.epoch}, stopped by {outcome.stopped_by}")
    return (
        outcome.scorer,
        as_frame(outcome.history),
        {
            "seconds_to_best": best.seconds,
            "best_epoch": best.epoch,
            "best_validation": best.validation,
            "epochs": len(outcome.history),
            "stopped_by": outcome.stopped_by,
        },
    )


def as_frame(history: list[EpochRecord]) -> pd.DataFrame:
    """One row per epoch."""
    columns = list(EpochRecord.__dataclass_fields__)
    return pd.DataFrame([asdict(record) for record in history], columns=columns)


def tabulate_users(rankings: Rankings, split: Split, evaluation: Evaluation) -> pd.DataFrame:
    """One row per test user, with the source's ids and one column per metric."""
    test = split.test
    columns = {
        "user": test.known.user_ids[test.users],
        "target": test.known.item_ids[test.targets],
        "rank": rankings.ranks,
        "target_score": rankings.target_scores,
        "sigmoid_sum": rankings.sigmoid_sums,
        "logsumexp": rankings.logsumexps,
    }
    columns |= {str(metric): metric.per_user(rankings.ranks) for metric in evaluation.metrics}
    if (ranks := rankings.candidate_ranks) is not None:
        columns |= {sampled_name(str(metric)): metric.per_user(ranks) for metric in evaluation.metrics}
    return pd.DataFrame(columns)


def tabulate_top_items(rankings: Rankings, split: Split, interactions: Interactions) -> pd.DataFrame:
    """One row per test user and place in the ranking, with the source's ids."""
    case, place = np.nonzero(rankings.top_items != PADDING)
    return pd.DataFrame(
        {
            "user": interactions.user_ids[split.test.users[case]],
            "position": (place + 1).astype(np.int32),
            "item": interactions.item_ids[rankings.top_items[case, place]],
            "score": rankings.top_scores[case, place],
        }
    )


def summarise(per_user: pd.DataFrame, evaluation: Evaluation) -> Json:
    """Means with 95 % intervals over users."""
    metrics = {name: asdict(mean_interval(per_user[name].to_numpy())) for name in evaluation.columns}
    return {"metrics": metrics, "users": len(per_user)}


def _peak_memory_gib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)


def make_display(recipe: Recipe, name: str, seed: int, folder: ModelFolder, time_limit: float) -> Display:
    """The display of one model."""
    model = recipe.models[name]
    title = name if len(recipe.seeds) == 1 else f"{name}, seed {seed}"
    if not isinstance(model, Trained):
        return Display(title, folder.log_path, "", 1, time_limit)
    training = model.training
    metric = str(training.early_stopping.metric) if training.early_stopping else ""
    return Display(title, folder.log_path, metric, training.max_epochs, time_limit)


def prepare_devices() -> None:
    """Deterministic operations, and graphics memory taken as needed instead of all at once."""
    tf.config.experimental.enable_op_determinism()
    for device in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(device, True)
