"""Results of other tools, and ours for other tools: TREC runs and qrels, CSV rankings, per-user metrics."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd

from aprec_like.errors import InputError, first_line
from aprec_like.metrics import metric_named
from aprec_like.types import Array
from evaluation.results.files import write_text
from evaluation.results.load import LoadedRuns, ModelResults
from evaluation.results.store import encode_name

TREC_COLUMNS = ["user", "q0", "item", "rank", "score", "tag"]


def import_results(path: Path, runs: LoadedRuns) -> ModelResults:
    """A model's results from a file of rankings or of per-user metrics; raises `InputError` where it does not fit.

    TREC run:        user Q0 item rank score tag, separated by white space; `.run`, `.trec` or `.txt`.
    CSV rankings:    columns user, item and score (higher is better) or rank (1 is the best).
    CSV or Parquet of metrics: a column user and one column for every metric.
    """
    frame = _read(path)
    name = unquote(frame["tag"].iloc[0]) if "tag" in frame and frame["tag"].nunique() == 1 else path.name.split(".")[0]
    if "user" not in frame:
        raise InputError(f"{path}: must have a column user. Received: {', '.join(frame.columns)}")
    users = runs.cases["user"].astype(str)
    _check_users(path, set(frame["user"]), set(users))
    if "item" in frame:
        ranks = _target_ranks(path, frame, users, runs.cases["target"].astype(str))
        values = {metric: metric_named(metric).per_user(ranks) for metric in runs.metrics}
    elif missing := [metric for metric in runs.metrics if metric not in frame]:
        raise InputError(f"{path}: has neither rankings (a column item) nor the metric {missing[0]}")
    else:
        by_user = frame.set_index("user")
        if not by_user.index.is_unique:
            raise InputError(f"{path}: must have one row per user. Received: user {_first_repeated(frame)} twice")
        values = {metric: _numbers(path, by_user[metric]).loc[users].to_numpy() for metric in runs.metrics}
    if name in {model.name for model in runs.models}:
        name = f"{name} (imported)"
    return ModelResults(name, (0,), {metric: value[None] for metric, value in values.items()}, seconds_to_best=None)


def export_results(runs: LoadedRuns, folder: Path) -> list[Path]:
    """Our rankings as TREC runs, one per model and seed, and the targets as qrels."""
    written = []
    cases = runs.cases
    qrels = pd.DataFrame({"user": _words(cases["user"]), "zero": 0, "item": _words(cases["target"]), "relevance": 1})
    written.append(_write_words(folder / "qrels.txt", qrels))
    for model in runs.models:
        for seed, results in zip(model.seeds, model.folders, strict=True):
            tag = encode_name(model.name if len(model.seeds) == 1 else f"{model.name}-{seed}")
            top = results.read_top_items()
            run = pd.DataFrame(
                {
                    "user": _words(top["user"]),
                    "q0": "Q0",
                    "item": _words(top["item"]),
                    "rank": top["position"],
                    "score": top["score"].map("{:.9g}".format),
                    "tag": tag.replace(" ", "%20"),
                }
            )
            written.append(_write_words(folder / f"{tag}.run", run))
    return written


def _read(path: Path) -> pd.DataFrame:
    """A table of texts (rankings) or of metrics; users and items as texts."""
    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path).astype({"user": str})
        if path.suffix in (".csv", ".gz") or path.name.endswith(".csv.gz"):
            return pd.read_csv(path, dtype={"user": str, "item": str}, keep_default_na=False)
        frame = pd.read_csv(path, sep=r"\s+", header=None, dtype=str, keep_default_na=False, quoting=3)
    except (OSError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error
    if frame.shape[1] != len(TREC_COLUMNS):
        raise InputError(f"{path}: a TREC run has 6 columns: user Q0 item rank score tag. Received: {frame.shape[1]}")
    return frame.set_axis(TREC_COLUMNS, axis=1).drop(columns="rank")


def _check_users(path: Path, received: set[str], expected: set[str]) -> None:
    """Everyone who was tested must be there, and nobody else."""
    for difference, problem in ((expected - received, "lacks"), (received - expected, "has others than")):
        if difference:
            example = min(difference)
            raise InputError(f"{path}: {problem} the run's users: {len(difference):,} of them, such as {example}")


def _target_ranks(path: Path, frame: pd.DataFrame, users: pd.Series, targets: pd.Series) -> Array:
    """(users,) the rank of the target in each user's list, ties half-way; infinite where it is not in the list."""
    if frame.duplicated(["user", "item"]).any():
        row = frame[frame.duplicated(["user", "item"])].iloc[0]
        raise InputError(
            f"{path}: must have an item once per user. Received: user {row['user']}, item {row['item']} twice"
        )
    place = "score" if "score" in frame else "rank"
    if place not in frame:
        raise InputError(f"{path}: rankings need a column score or rank. Received: {', '.join(frame.columns)}")
    # Lower is better from here on.
    keys = _numbers(path, frame[place]).to_numpy() * (-1 if place == "score" else 1)
    codes = pd.Index(users).get_indexer(frame["user"])
    is_target = frame["item"].to_numpy() == targets.to_numpy()[codes]
    of_target = np.full(len(users), np.nan)
    of_target[codes[is_target]] = keys[is_target]
    at_target = of_target[codes]
    better = np.bincount(codes, keys < at_target, len(users))
    equal = np.bincount(codes, keys == at_target, len(users))
    return np.where(np.isnan(of_target), np.inf, better + (equal + 1) / 2)


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    if not np.isfinite(numbers).all():
        wrong = column[~np.isfinite(numbers)].iloc[0]
        raise InputError(f"{path}: {column.name} must be finite numbers. Received: {wrong!r}")
    return numbers.astype(np.float64)


def _first_repeated(frame: pd.DataFrame) -> str:
    return str(frame.loc[frame["user"].duplicated(), "user"].iloc[0])


def _words(ids: pd.Series) -> pd.Series:
    texts = ids.astype(str)
    if texts.str.contains(r"\s").any() or (texts == "").any():
        example = texts[texts.str.contains(r"\s") | (texts == "")].iloc[0]
        raise InputError(f"an id with white space can't stand in a TREC file. Received: {example!r}")
    return texts


def _write_words(path: Path, frame: pd.DataFrame) -> Path:
    write_text(path, frame.to_csv(sep=" ", header=False, index=False, lineterminator="\n", quoting=3))
    return path
