"""Imports results of other tools (TREC runs, CSV rankings, per-user metrics); exports TREC runs and qrels."""

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
    """Import a model's results from a file of rankings or per-user metrics, for the same users as loaded runs.

    TREC run:        user Q0 item rank score tag, separated by white space; `.run`, `.trec` or `.txt`.
    CSV rankings:    columns user, item and score (higher is better) or rank (1 is the best).
    CSV or Parquet of metrics: a column user and one column for every metric.

    Raises `InputError` if the file has another format, or other users.
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
    """Write the top items as TREC runs, one per model and seed, and the targets as qrels; returns the paths."""
    written = []
    cases = runs.cases
    qrels = pd.DataFrame(
        {
            "user": _as_ids(cases["user"]),
            "zero": 0,
            "item": _as_ids(cases["target"]),
            "relevance": 1,
        }
    )
    written.append(_write_trec(folder / "qrels.txt", qrels))
    for model in runs.models:
        for seed, results in zip(model.seeds, model.folders, strict=True):
            tag = encode_name(model.name if len(model.seeds) == 1 else f"{model.name}-{seed}")
            top = results.read_top_items()
            run = pd.DataFrame(
                {
                    "user": _as_ids(top["user"]),
                    "q0": "Q0",
                    "item": _as_ids(top["item"]),
                    "rank": top["position"],
                    "score": top["score"].map("{:.9g}".format),
                    "tag": tag.replace(" ", "%20"),
                }
            )
            written.append(_write_trec(folder / f"{tag}.run", run))
    return written


def _read(path: Path) -> pd.DataFrame:
    """Read rankings or metrics; ids of users and items are strings."""
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
    """Check that the users of a file are exactly the test users."""
    for difference, problem in ((expected - received, "lacks"), (received - expected, "has others than")):
        if difference:
            example = min(difference)
            raise InputError(f"{path}: {problem} the run's users: {len(difference):,} of them, such as {example}")


def _target_ranks(path: Path, frame: pd.DataFrame, users: pd.Series, targets: pd.Series) -> Array:
    """Return the target's rank in each user's list, (users,); ties count half, infinite if it is not in the list."""
    if frame.duplicated(["user", "item"]).any():
        row = frame[frame.duplicated(["user", "item"])].iloc[0]
        raise InputError(
            f"{path}: must have an item once per user. Received: user {row['user']}, item {row['item']} twice"
        )
    order = "score" if "score" in frame else "rank"
    if order not in frame:
        raise InputError(f"{path}: rankings need a column score or rank. Received: {', '.join(frame.columns)}")
    keys = _numbers(path, frame[order]).to_numpy() * (-1 if order == "score" else 1)  # lower is better
    codes = pd.Index(users).get_indexer(frame["user"])
    is_target = frame["item"].to_numpy() == targets.to_numpy()[codes]
    target_keys = np.full(len(users), np.nan)
    target_keys[codes[is_target]] = keys[is_target]
    num_better = np.bincount(codes, keys < target_keys[codes], len(users))
    num_equal = np.bincount(codes, keys == target_keys[codes], len(users))
    return np.where(np.isnan(target_keys), np.inf, num_better + (num_equal + 1) / 2)


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    if not np.isfinite(numbers).all():
        wrong = column[~np.isfinite(numbers)].iloc[0]
        raise InputError(f"{path}: {column.name} must be finite numbers. Received: {wrong!r}")
    return numbers.astype(np.float64)


def _first_repeated(frame: pd.DataFrame) -> str:
    return str(frame.loc[frame["user"].duplicated(), "user"].iloc[0])


def _as_ids(ids: pd.Series) -> pd.Series:
    texts = ids.astype(str)
    if texts.str.contains(r"\s").any() or (texts == "").any():
        example = texts[texts.str.contains(r"\s") | (texts == "")].iloc[0]
        raise InputError(f"ids in a TREC file must not contain white space. Received: {example!r}")
    return texts


def _write_trec(path: Path, frame: pd.DataFrame) -> Path:
    write_text(path, frame.to_csv(sep=" ", header=False, index=False, lineterminator="\n", quoting=3))
    return path
