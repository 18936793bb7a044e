"""One model of a recipe from data to stored results; `run_model` is the table of contents."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import tensorflow as tf

from aprec_like.checkpoints import Checkpoints, remove_checkpoints
from aprec_like.interactions import PADDING, Interactions
from aprec_like.models import CountingModel, Scorer
from aprec_like.ranking import Rankings, rank
from aprec_like.recipe import Evaluation, Recipe, Trained, describe, sampled_name
from aprec_like.session import StoppedError
from aprec_like.splits import Split
from aprec_like.training import train
from aprec_like.training_state import EpochRecord
from evaluation.documents import Json
from evaluation.progress import Display, as_duration
from evaluation.significance import mean_interval
from evaluation.store import ModelFolder


def run_model(
    recipe: Recipe,
    name: str,
    seed: int,
    data_dir: Path,
    folder: ModelFolder,
    display: Display,
    time_limit: float,
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Load, split, train, rank, measure, store.

    Goes on where it was stopped or killed before. Raises `StoppedError` soon after `is_stopping` says so.
    """
    started = time.monotonic()

    def heed() -> None:
        if is_stopping():
            raise StoppedError("before the end")

    def on_rank(done: int) -> None:
        display.on_rank(done, len(split.test))
        heed()

    interactions = recipe.load(data_dir)
    split = recipe.split.split(interactions)
    heed()
    trained = _train(recipe, name, seed, interactions, split, folder, display, time_limit, is_stopping)
    heed()
    candidates = recipe.evaluation.candidates
    rankings = rank(
        trained.scorer,
        split.test,
        exclude_seen=recipe.evaluation.exclude_seen,
        depth=recipe.evaluation.depth,
        candidates=candidates.draw(split.train, split.test) if candidates else None,
        on_progress=on_rank,
    )
    per_user = tabulate_users(rankings, split, recipe.evaluation)
    folder.write_history(as_frame(trained.history))
    folder.write_per_user(per_user)
    folder.write_top_items(tabulate_top_items(rankings, split, interactions))
    folder.write_metrics(summarise(per_user, recipe.evaluation))
    seconds = time.monotonic() - started + trained.seconds_before
    folder.finish(
        **trained.status,
        seconds_total=seconds,
        peak_memory_gib=_peak_memory_gib(),
        devices=[device.device_type for device in tf.config.list_logical_devices()],
    )
    remove_checkpoints(folder.checkpoint_path)
    display.say(f"finished in {as_duration(seconds)}")


@dataclass(frozen=True, eq=False)
class _Trained:
    """A scorer, the history of its training, what status.json says of it, and seconds of training in earlier starts."""

    scorer: Scorer
    history: list[EpochRecord]
    status: Json
    seconds_before: float = 0.0


def _train(
    recipe: Recipe,
    name: str,
    seed: int,
    interactions: Interactions,
    split: Split,
    folder: ModelFolder,
    display: Display,
    time_limit: float,
    is_stopping: Callable[[], bool],
) -> _Trained:
    model = recipe.models[name]
    started = time.monotonic()
    if isinstance(model, CountingModel):
        scorer = model.fit(split.test.known)
        return _Trained(scorer, [], {"seconds_to_best": time.monotonic() - started})
    fingerprint = {
        "model": describe(model),
        "seed": seed,
        "data": interactions.digest(),
        "split": [describe(recipe.split), split.digest()],
        "exclude_seen": recipe.evaluation.exclude_seen,
    }
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
        checkpoints=Checkpoints(folder.checkpoint_path, fingerprint, display.say),
        is_stopping=is_stopping,
        on_step=display.on_step,
        on_epoch=display.on_epoch,
    )
    folder.write_weights(outcome.scorer.network.save_weights)
    best = outcome.best
    display.say(f"trained {len(outcome.history)} epochs, best {best.epoch}, stopped by {outcome.stopped_by}")
    status = {
        "seconds_to_best": best.seconds,
        "best_epoch": best.epoch,
        "best_validation": best.validation,
        "epochs": len(outcome.history),
        "stopped_by": outcome.stopped_by,
    }
    return _Trained(outcome.scorer, outcome.history, status, outcome.seconds_before)


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
