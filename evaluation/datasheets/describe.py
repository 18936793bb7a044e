"""Description of a dataset: sizes, lengths, ties, popular items, and the memory that training on it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from aprec_like.datasets import (
    PUBLISHED,
    AtomicFile,
    CSVFile,
    Dataset,
    ParquetFile,
    ParquetFolder,
    SequenceFile,
    Sizes,
    TextFile,
)
from aprec_like.datasets.format_hints import header_hint
from aprec_like.datasets.movielens import ZIP_NAME, MovieLens1M, read_as_published
from aprec_like.datasets.tables.columns import Columns
from aprec_like.datasets.tables.sources import ParquetSource, parquet_files, partitions_of
from aprec_like.datasets.tables.text_source import TextFormat, read_header
from aprec_like.datasets.text import has_sequences
from aprec_like.errors import InputError, first_line
from aprec_like.filters import is_repeat
from aprec_like.interactions import Interactions
from aprec_like.losses import GBCE, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.splits import leave_one_out_leakage
from aprec_like.training import Trained, Training
from aprec_like.types import Array
from evaluation.caveats.data import leakage_sentence
from evaluation.printable import printable
from evaluation.running.data_description import density, latex_row
from evaluation.running.plan import predict_memory

QUANTILES = {"least": 0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "most": 1}
NUM_POPULAR = 5
FIRST_SECOND, END_SECOND = -62_135_596_800, 253_402_300_800
"""The years 1 to 9999 in seconds since 1970."""
USUAL_NAMES = {
    "user": ("user", "user_id", "userId", "userid", "uid"),
    "item": ("item", "item_id", "itemId", "movieId", "movie_id", "iid"),
    "timestamp": ("timestamp", "time", "ts"),
    "rating": ("rating", "ratings", "score"),
}
"""Column names that are recognised without an option."""


def describe_data(
    name: str, data_dir: Path, column_names: Mapping[str, str | None], formats: Mapping[str, str] | None = None
) -> str:
    """Return the datasheets of a published dataset or of a file.

    Args:
        name: of the dataset, or path of the file.
        data_dir: the data folder.
        column_names: names of columns by purpose; usual names are found without.
        formats: settings of `CSVFile` on how a file is written; `time_unit` is for other tables too.
    """
    found = _load(name, data_dir, column_names, formats or {})
    return "\n\n".join(describe_interactions(title, interactions) for title, interactions in found.items())


def describe_interactions(title: str, interactions: Interactions) -> str:
    """Return the datasheet of one dataset, as lines of text."""
    users, items, count = interactions.num_users, interactions.num_items, interactions.num_interactions
    item_counts = interactions.item_counts()
    num_occurring = int(np.count_nonzero(item_counts))
    num_repeats = int(is_repeat(interactions).sum())
    lines = {
        "users": f"{users:,}",
        "items": f"{items:,}" + (f", of which {num_occurring:,} occur" if num_occurring < items else ""),
        "interactions": f"{count:,}",
        "density": f"{density(interactions):.4%} of all pairs of a user and an item",
        "per user": _quantiles(interactions.lengths),
        "per item": _quantiles(item_counts),
        "repeats": f"{num_repeats:,} repeated interactions of a user with an item ({num_repeats / count:.1%})",
        "time": _time(interactions),
        "most popular": _popular(interactions, item_counts),
        "memory": _memory(Sizes(users, items, count)),
        "LaTeX": latex_row(title, interactions),
    }
    width = max(map(len, lines))
    return "\n".join([printable(title), *(f"  {name:<{width}}  {printable(text)}" for name, text in lines.items())])


def _load(
    name: str, data_dir: Path, column_names: Mapping[str, str | None], formats: Mapping[str, str]
) -> dict[str, Interactions]:
    """Load all datasets that a published name or a file stands for, by title."""
    if name in PUBLISHED:
        return {name: PUBLISHED[name].load(data_dir)}
    path = Path(name)
    if not path.is_file() and not (path.is_dir() and parquet_files(path)):
        raise InputError(f"{name} is neither a file, a folder of Parquet files, nor one of {', '.join(PUBLISHED)}")
    if path.name == ZIP_NAME:
        return {f"{ZIP_NAME} as published": read_as_published(path), "MovieLens1M": MovieLens1M().load(path.parent)}
    try:
        dataset = _dataset(path.absolute(), column_names, formats)
    except InputError:
        raise
    except (ValueError, LookupError) as error:  # of a setting, as in a recipe
        raise InputError(f"{path}: {first_line(error)}") from error
    return {path.name.removesuffix(".gz"): dataset.load(path.parent)}


def _dataset(path: Path, column_names: Mapping[str, str | None], formats: Mapping[str, str]) -> Dataset:
    """Return the dataset that reads a file, by the extension of its name."""
    extension = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if extension in ("csv", "tsv") or ("separator" in formats and _is_text(path, extension)):
        separator = "\t" if extension == "tsv" else ","
        header = tuple(formats["header"].split(",")) if "header" in formats else ()
        file_format = TextFormat(formats.get("separator", separator), header, encoding=formats.get("encoding", "utf-8"))
        columns = _find_columns(path, column_names, list(header) or read_header(path, file_format))
        return CSVFile(
            str(path),
            columns.user,
            columns.item,
            columns.timestamp,
            columns.rating,
            separator=file_format.separator,
            header=header,
            encoding=file_format.encoding,
            time_unit=formats.get("time_unit", "s"),
        )
    if others := [name for name in formats if name != "time_unit"]:
        raise InputError(f"{path}: is no .csv or .tsv file or text with a --separator, which alone have --{others[0]}")
    if path.is_dir():
        return _parquet(ParquetFolder, path, parquet_files(path)[0], column_names, formats)
    if extension == "parquet":
        return _parquet(ParquetFile, path, path, column_names, formats)
    if extension == "inter":
        return AtomicFile(str(path), **formats)
    if formats:
        raise InputError(f"{path}: has no timestamps, and so no --time-unit")
    return SequenceFile(str(path)) if has_sequences(path) else TextFile(str(path))


def _is_text(path: Path, extension: str) -> bool:
    """Return whether a file may be text of separated columns, as MovieLens' ratings.dat is, whatever its name."""
    return extension not in ("parquet", "inter") and path.is_file()


def _parquet(
    reader: type[ParquetFile],
    path: Path,
    first: Path,
    column_names: Mapping[str, str | None],
    formats: Mapping[str, str],
) -> Dataset:
    """Return the dataset of a Parquet file or of a folder with a first file."""
    try:
        header = ParquetSource(first, partitions_of(first)).column_names()
    except Exception as error:  # a damaged file makes Arrow raise anything
        raise InputError(f"{first}: is not a Parquet file, or damaged: {first_line(error)}") from error
    columns = _find_columns(path, column_names, header)
    return reader(str(path), columns.user, columns.item, columns.timestamp, columns.rating, **formats)


def _find_columns(path: Path, column_names: Mapping[str, str | None], header: list[str]) -> Columns:
    """Return the columns that the user named, else those with usual names; raises `InputError` without ids."""
    user, item, timestamp, rating = (
        column_names.get(purpose) or next((name for name in usual if name in header), None)
        for purpose, usual in USUAL_NAMES.items()
    )
    for purpose, column in (("user", user), ("item", item)):
        if column is None:
            hint = header_hint(path, header)
            names = ", ".join(header)
            raise InputError(f"{path}: say which column has the {purpose}s: --{purpose} NAME, of {names}{hint}")
    return Columns(str(user), str(item), timestamp, rating)


def _quantiles(counts: Array) -> str:
    values = np.quantile(counts, list(QUANTILES.values()), method="nearest")
    texts = [f"{name} {int(value):,}" for name, value in zip(QUANTILES, values, strict=True)]
    return ", ".join([*texts, f"mean {counts.mean():,.1f}"])


def _time(interactions: Interactions) -> str:
    """Return first and last day, share of ties, and the leakage of leave-one-out."""
    tied_share, leakage = interactions.tied_share(), leave_one_out_leakage(interactions)
    timestamps = interactions.timestamps
    if tied_share is None or timestamps is None:
        return "no timestamps: the interactions of a user have the order of the file"
    days = [_day(time) for time in (timestamps.min(), timestamps.max())]
    text = f"{days[0]} to {days[1]}; {tied_share:.1%} of consecutive interactions of a user have equal timestamps"
    sentence = leakage_sentence(asdict(leakage) if leakage else None)
    return f"{text}; {sentence}" if sentence else text


def _day(seconds: float) -> str:
    """Return the day of a timestamp, or the number itself if no calendar has it."""
    is_day = FIRST_SECOND <= seconds < END_SECOND
    return str(np.datetime64(int(seconds), "s"))[:10] if is_day else f"{seconds:g} s"


def _popular(interactions: Interactions, item_counts: Array) -> str:
    """Return the most popular items with their number of interactions, and titles where known."""
    top = np.argsort(-item_counts, kind="stable")[:NUM_POPULAR]
    titles = interactions.item_columns.get("title")
    names = [f"{interactions.item_ids[item]}" + ("" if titles is None else f" {titles[item]}") for item in top]
    return "; ".join(f"{name} ({item_counts[item]:,})" for name, item in zip(names, top, strict=True))


def _memory(sizes: Sizes) -> str:
    """Return the predicted memory of a training step with the settings of the gSASRec paper."""
    models = {
        "gSASRec": Trained(SASRec(), GBCE(num_negatives=256, calibration=0.75), Training(batch_size=128)),
        "SASRec-Softmax": Trained(SASRec(), Softmax(), Training(batch_size=64)),
        "BERT4Rec": Trained(BERT4Rec(), Softmax(), Training(batch_size=128)),
    }
    needs = [f"{name} {predict_memory(trained, sizes) / 2**30:.1f} GiB" for name, trained in models.items()]
    return "about " + ", ".join(needs) + " at the paper's settings, beside TensorFlow"
