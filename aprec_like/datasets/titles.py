"""Titles of items, from a table beside the interactions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.datasets.local_files import reading
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions

TITLE = "title"


def with_titles(interactions: Interactions, path: Path, item: str) -> Interactions:
    """Return interactions whose items have the titles of a CSV, TSV or Parquet file; items that it lacks have none.

    Args:
        interactions: whose catalogue gets titles.
        path: a table with the columns `item` and "title", one row per item.
        item: name of the column of item ids.

    Raises:
        InputError: for a table without these columns, with several titles of an item, or without any of the items.
    """
    with reading(path):
        table = _read(path)
    if missing := [name for name in (item, TITLE) if name not in table]:
        raise InputError(f"{path}: has no column {missing[0]!r}, but {', '.join(map(str, table.columns))}")
    titles = table[[item, TITLE]].drop_duplicates().set_index(item)[TITLE]
    if not titles.index.is_unique:
        raise InputError(f"{path}: item {titles.index[titles.index.duplicated()][0]} has several titles")
    ids = pd.Index(np.asarray(interactions.item_ids).astype(str))
    found = titles.reindex(ids)
    if found.isna().all():
        other = f", not {titles.index[0]}" if len(titles) else ""
        raise InputError(f"{path}: has none of the items, which have ids such as {ids[0]}{other}")
    columns = {**interactions.item_columns, TITLE: found.fillna("").to_numpy(object)}
    return replace(interactions, item_columns=columns)


def _read(path: Path) -> pd.DataFrame:
    """Return a table whose ids and titles are text."""
    extension = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if extension == "parquet":
        table = pd.read_parquet(path)
        return table.astype(dict.fromkeys(table.columns, str))
    separator = "\t" if extension == "tsv" else ","
    return pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
