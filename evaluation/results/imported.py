"""Imports results of other tools: rankings, checked against the catalogue and the histories, or per-user metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd

from aprec_like.errors import InputError, first_line
from aprec_like.metrics import metric_named
from aprec_like.types import Array
from evaluation.printable import printable
from evaluation.results.load import Caveat, LoadedRuns, ModelResults

TREC_COLUMNS = ["user", "q0", "item", "rank", "score", "tag"]


def import_results(path: Path, runs: LoadedRuns) -> ModelResults:
    """Import a model's results from a file of rankings or per-user metrics, for the same users as loaded runs.

    TREC run:        user Q0 item rank score tag, separated by white space; `.run`, `.trec` or `.txt`.
    CSV or Parquet of rankings: columns user, item and score (higher is better) or rank (1 is the best).
    CSV or Parquet of metrics:  a column user and one column for every metric.

    Rankings must list items of the run's catalogue, and at least as many as the metrics look at. Where the run excludes
    seen items they are removed from the rankings. What can't be checked becomes a caveat.

    Raises `InputError` if the file has another format, other users or other items.
    """
    frame = _read(path)
    is_tagged = "tag" in frame and frame["tag"].nunique() == 1
    name = printable(unquote(frame["tag"].iloc[0]) if is_tagged else path.name.split(".")[0])
    if "user" not in frame:
        raise InputError(
            f"{path}: must have the columns user, item and score or rank, or user and metrics. "
            f"Received: {', '.join(frame.columns)}"
        )
    _check_users(path, frame["user"], runs.cases["user"].astype(str))
    if "item" in frame:
        values, caveats = _values_of_rankings(path, frame, runs)
    else:
        values, caveats = _given_values(path, frame, runs)
    if name in {model.name for model in runs.models}:
        name = f"{name} (imported)"
    by_seed = {metric: value[None] for metric, value in values.items()}
    return ModelResults(name, (0,), by_seed, seconds_to_best=None, caveats=tuple(caveats))


def _read(path: Path) -> pd.DataFrame:
    """Read rankings or metrics; ids of users and items are strings."""
    try:
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path)
            return frame.astype({column: str for column in ("user", "item") if column in frame})
        if path.suffix in (".csv", ".gz") or path.name.endswith(".csv.gz"):
            return pd.read_csv(path, dtype={"user": str, "item": str}, keep_default_na=False)
        frame = pd.read_csv(path, sep=r"\s+", header=None, dtype=str, keep_default_na=False, quoting=3)
    except (OSError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {first_line(error)}") from error
    if frame.shape[1] != len(TREC_COLUMNS):
        raise InputError(f"{path}: a TREC run has 6 columns: user Q0 item rank score tag. Received: {frame.shape[1]}")
    return frame.set_axis(TREC_COLUMNS, axis=1).drop(columns="rank")


def _check_users(path: Path, received: pd.Series, expected: pd.Series) -> None:
    """Check that the users of a file are exactly the test users."""
    found, wanted = set(received), set(expected)
    for difference, problem in ((wanted - found, "lacks"), (found - wanted, "has others than")):
        if difference:
            example, hint = min(difference), _hint(pd.Index(sorted(found - wanted)), pd.Index(expected))
            raise InputError(f"{path}: {problem} the run's users: {len(difference):,} of them, such as {example}{hint}")


def _given_values(path: Path, frame: pd.DataFrame, runs: LoadedRuns) -> tuple[dict[str, Array], list[Caveat]]:
    """Return (users,) values by metric from a table with one row per user."""
    if missing := [metric for metric in runs.metrics if metric not in frame]:
        raise InputError(f"{path}: has neither rankings (a column item) nor the metric {missing[0]}")
    if frame["user"].duplicated().any():
        user = frame.loc[frame["user"].duplicated(), "user"].iloc[0]
        raise InputError(f"{path}: must have one row per user. Received: user {user} twice")
    by_user, users = frame.set_index("user"), runs.cases["user"].astype(str)
    values = {metric: _numbers(path, by_user[metric]).loc[users].to_numpy() for metric in runs.metrics}
    for metric, column in values.items():
        if not ((column >= 0) & (column <= 1)).all():
            wrong = column[(column < 0) | (column > 1)][0]
            raise InputError(f"{path}: {metric} must lie between 0 and 1. Received: {wrong:g}")
    return values, [
        Caveat("values as given", "values per user as its file gives them, not computed from rankings here")
    ]


def _values_of_rankings(path: Path, frame: pd.DataFrame, runs: LoadedRuns) -> tuple[dict[str, Array], list[Caveat]]:
    """Return (users,) values by metric from lists of items, after the checks of items, seen items and depth."""
    if sampled := [metric for metric in runs.metrics if metric.endswith("(sampled)")]:
        raise InputError(f"{path}: rankings of the catalogue can't give {sampled[0]}; choose others with --metric")
    if (is_repeated := frame.duplicated(["user", "item"])).any():
        row = frame[is_repeated].iloc[0]
        raise InputError(
            f"{path}: must have an item once per user. Received: user {row['user']}, item {row['item']} twice"
        )
    known = _read_known(runs)
    lists = _make_lists(path, frame, runs, known)
    caveats = [] if known.is_complete else [_unchecked(known)]
    removed = lists.without(known.is_seen(lists))
    if num_removed := len(lists.items) - len(removed.items):
        share = num_removed / len(lists.items)
        sentence = f"{num_removed:,} seen items ({share:.1%}) removed from its rankings, as the run excludes them"
        caveats.append(Caveat("seen items removed", sentence))
    ranks = removed.target_ranks()
    return {metric: metric_named(metric).per_user(ranks) for metric in runs.metrics}, [
        *caveats,
        *_check_depth(path, lists.lengths, removed.lengths, known.num_unseen(runs.num_users), runs.metrics),
    ]


@dataclass(frozen=True, eq=False)
class _Known:
    """What a results folder knows: the catalogue and the items that users have seen.

    Args:
        items: ids of the catalogue, as strings; of the targets alone if the folder has no catalogue.
        has_catalogue: whether `items` is the whole catalogue.
        seen: sorted keys case * len(items) + item of seen items that the run excludes; `None` if unknown.
    """

    items: pd.Index
    has_catalogue: bool
    seen: Array | None

    @property
    def is_complete(self) -> bool:
        """Whether items and histories can be checked."""
        return self.has_catalogue and self.seen is not None

    def is_seen(self, lists: _Lists) -> Array:
        """Return a mask of the rows of lists whose items the user has seen."""
        keys = lists.cases * len(self.items) + lists.items
        return np.zeros(len(keys), bool) if self.seen is None else np.isin(keys, self.seen)

    def num_unseen(self, num_cases: int) -> Array:
        """Return the (cases,) number of items that a ranking can list; very large if the folder does not say."""
        if not self.has_catalogue or self.seen is None:
            return np.full(num_cases, np.iinfo(np.int64).max)
        return len(self.items) - np.bincount(self.seen // len(self.items), minlength=num_cases)


def _read_known(runs: LoadedRuns) -> _Known:
    """Read catalogue and histories of the first run, if its folder has them; published folders may leave them out."""
    folder = runs.folders[0]
    if not folder.has_items:
        return _Known(pd.Index(runs.cases["target"].astype(str).unique()), has_catalogue=False, seen=None)
    items = pd.Index(folder.read_items()["item"].astype(str))
    if not runs.settings["evaluation"]["exclude_seen"]:
        return _Known(items, has_catalogue=True, seen=np.zeros(0, np.int64))
    if not folder.has_histories:
        return _Known(items, has_catalogue=True, seen=None)
    histories = folder.read_histories()
    keys = histories["case"].to_numpy(np.int64) * len(items) + histories["item"].to_numpy(np.int64)
    return _Known(items, has_catalogue=True, seen=np.unique(keys))


def _unchecked(known: _Known) -> Caveat:
    missing = "seen items" if known.has_catalogue else "items and seen items"
    return Caveat("not checked", f"{missing} could not be checked, because the results folder does not have them")


@dataclass(frozen=True, eq=False)
class _Lists:
    """The rankings of a file as one row per listed item.

    Args:
        cases: (rows,) number of the user.
        items: (rows,) number of the item in the catalogue.
        keys: (rows,) what orders a list; lower is better.
        is_target: (rows,) whether the item is the user's target.
        num_cases: number of users.
    """

    cases: Array
    items: Array
    keys: Array
    is_target: Array
    num_cases: int

    def without(self, is_removed: Array) -> _Lists:
        """Return the lists without some rows."""
        kept = ~is_removed
        return _Lists(self.cases[kept], self.items[kept], self.keys[kept], self.is_target[kept], self.num_cases)

    @property
    def lengths(self) -> Array:
        """The (users,) number of listed items."""
        return np.bincount(self.cases, minlength=self.num_cases)

    def target_ranks(self) -> Array:
        """Return the target's rank in each list, (users,); ties count half, infinite if it is not in the list."""
        target_keys = np.full(self.num_cases, np.nan)
        target_keys[self.cases[self.is_target]] = self.keys[self.is_target]
        num_better = np.bincount(self.cases, self.keys < target_keys[self.cases], self.num_cases)
        num_equal = np.bincount(self.cases, self.keys == target_keys[self.cases], self.num_cases)
        return np.where(np.isnan(target_keys), np.inf, num_better + (num_equal + 1) / 2)


def _make_lists(path: Path, frame: pd.DataFrame, runs: LoadedRuns, known: _Known) -> _Lists:
    order = "score" if "score" in frame else "rank"
    if order not in frame:
        raise InputError(f"{path}: rankings need a column score or rank. Received: {', '.join(frame.columns)}")
    keys = _numbers(path, frame[order]).to_numpy() * (-1 if order == "score" else 1)
    cases = pd.Index(runs.cases["user"].astype(str)).get_indexer(pd.Index(frame["user"]))
    items = known.items.get_indexer(pd.Index(frame["item"]))
    is_unknown = items < 0
    if is_unknown.all() or (known.has_catalogue and is_unknown.any()):
        received = frame.loc[is_unknown, "item"]
        raise InputError(
            f"{path}: must list items of the run's catalogue, which has {known.items[0]!r}. Received: "
            f"{received.iloc[0]!r}; {len(received):,} of {len(frame):,} rows ({len(received) / len(frame):.1%}) are "
            f"unknown{_hint(pd.Index(received.unique()), known.items)}"
        )
    targets = runs.cases["target"].astype(str).to_numpy()[cases]
    return _Lists(cases, items, keys, frame["item"].to_numpy() == targets, runs.num_users)


def _hint(unknown: pd.Index, known: pd.Index) -> str:
    """Return how unknown ids probably lost their form, if known ids have another one."""
    texts = unknown.str
    if unknown.empty:
        return ""
    if unknown.isin(known.str.lstrip("0")).any():
        return "; leading zeros were lost (pandas: dtype=str)"
    if texts.replace(r"\.0$", "", regex=True).isin(known).any():
        return "; whole numbers became decimals (pandas: dtype=str)"
    return "; white space was added" if texts.strip().isin(known).any() else ""


def _check_depth(path: Path, given: Array, lengths: Array, num_unseen: Array, metrics: tuple[str, ...]) -> list[Caveat]:
    """Check that lists are as long as metrics need; returns caveats about those that are not.

    Args:
        path: of the file.
        given: (users,) length of each list in the file.
        lengths: (users,) length without seen items.
        num_unseen: (users,) number of items that can be listed.
        metrics: names of the metrics.
    """
    cutoffs = {name: int(name.partition("@")[2]) for name in metrics if "@" in name}
    caveats = []
    if cutoffs:
        metric, k = max(cutoffs.items(), key=lambda cutoff: cutoff[1])
        is_short = lengths < np.minimum(k, num_unseen)
        if is_short.any() and (given < k).all():
            raise InputError(
                f"{path}: {metric} needs {k} items per user. Received: at most {given.max()}; export longer "
                f"lists, or choose metrics up to {given.max()} with --metric"
            )
        if (is_short & (given >= k)).any():
            raise InputError(
                f"{path}: lists seen items, which the run excludes; without them {int(is_short.sum()):,} of "
                f"{len(lengths):,} users have fewer than {k} items, too few for {metric}; exclude seen items in "
                "the other tool, or export longer lists"
            )
        if is_short.any():
            sentence = f"{int(is_short.sum()):,} of {len(lengths):,} users have fewer than {k} items listed"
            caveats.append(Caveat("short lists", f"{sentence}, and other targets count as misses"))
    if "MRR" in metrics and (lengths < num_unseen).any():
        sentence = f"MRR counts targets outside its lists of {lengths.min():,} to {lengths.max():,} items as misses"
        caveats.append(Caveat("MRR of lists", sentence))
    return caveats


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    if not np.isfinite(numbers).all():
        wrong = column[~np.isfinite(numbers)].iloc[0]
        raise InputError(f"{path}: {column.name} must be finite numbers. Received: {wrong!r}")
    return numbers.astype(np.float64)
