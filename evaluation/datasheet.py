"""What a dataset looks like: sizes, lengths, ties, popularity, and what training on it would take."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from aprec_like.datasets import PUBLISHED, AtomicFile, CSVFile, Dataset, ParquetFile, Sizes, TextFile
from aprec_like.datasets.movielens import ZIP_NAME, MovieLens1M, read_as_published
from aprec_like.errors import InputError
from aprec_like.filters import is_repeat
from aprec_like.interactions import Interactions
from aprec_like.splits import leave_one_out_leakage
from aprec_like.types import Array

QUANTILES = (0, 0.25, 0.5, 0.75, 0.95, 1)
NUM_POPULAR = 5
USUAL_NAMES = {
    "user": ("user", "user_id", "userId", "userid", "uid"),
    "item": ("item", "item_id", "itemId", "movieId", "movie_id", "iid"),
    "timestamp": ("timestamp", "time", "ts"),
    "rating": ("rating", "ratings", "score"),
}


def find_readings(name: str, data_dir: Path, columns: dict[str, str | None]) -> list[tuple[str, Interactions]]:
    """Everything that a published name or a file can be read as: titles and interactions."""
    if name in PUBLISHED:
        return [(name, PUBLISHED[name].load(data_dir))]
    path = Path(name)
    if not path.is_file():
        known = ", ".join(PUBLISHED)
        raise InputError(f"{name} is neither a file nor one of {known}")
    if path.name == ZIP_NAME:
        mine = MovieLens1M().load(path.parent)
        return [(f"{ZIP_NAME} as published", read_as_published(path)), ("MovieLens1M", mine)]
    dataset = _dataset_of(path.absolute(), columns)
    return [(path.name.removesuffix(".gz"), dataset.load(path.parent))]


def describe_interactions(title: str, interactions: Interactions) -> str:
    """The sheet of one dataset."""
    users, items, count = interactions.num_users, interactions.num_items, interactions.num_interactions
    occurrences = interactions.item_counts()
    occurring = int(np.count_nonzero(occurrences))
    repeats = int(is_repeat(interactions).sum())
    lines = {
        "users": f"{users:,}",
        "items": f"{items:,}" + (f", of which {occurring:,} occur" if occurring < items else ""),
        "interactions": f"{count:,}",
        "density": f"{(count - repeats) / (users * items):.4%}",
        "per user": _spread(interactions.lengths),
        "per item": _spread(occurrences),
        "repeats": f"{repeats:,} interactions with an item that the user has had before ({repeats / count:.1%})",
        "time": _time(interactions),
        "most popular": _popular(interactions, occurrences),
        "memory": _memory(Sizes(users, items, count)),
        "LaTeX": latex_row(title, interactions),
    }
    width = max(map(len, lines))
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in lines.items())])


def latex_row(title: str, interactions: Interactions) -> str:
    """A row of a paper's dataset table: name, users, items, interactions, mean length, density."""
    escaped = title.replace("_", r"\_").replace("&", r"\&").replace("%", r"\%")
    users, items, count = interactions.num_users, interactions.num_items, interactions.num_interactions
    density = f"{count / (users * items):.2%}".replace("%", r"\%")
    return rf"{escaped} & {users:,} & {items:,} & {count:,} & {count / users:.1f} & {density} \\"


def _dataset_of(path: Path, columns: dict[str, str | None]) -> Dataset:
    """The dataset that reads a file with this ending."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending == "inter":
        return AtomicFile(str(path))
    if ending in ("csv", "tsv"):
        separator = "\t" if ending == "tsv" else ","
        return CSVFile(str(path), **_named(path, columns, separator), separator=separator)  # type: ignore[arg-type]
    if ending == "parquet":
        import pyarrow.parquet

        try:
            names = pyarrow.parquet.read_schema(path).names
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: is not a Parquet file, or damaged: {error}") from error
        return ParquetFile(str(path), **_guessed(path, columns, names))  # type: ignore[arg-type]
    return TextFile(str(path))


def _named(path: Path, columns: dict[str, str | None], separator: str) -> dict[str, str | None]:
    from aprec_like.datasets.table_files import read_header

    return _guessed(path, columns, read_header(path, separator))


def _guessed(path: Path, columns: dict[str, str | None], names: list[str]) -> dict[str, str | None]:
    """The columns that the user named, else those of a usual name."""
    guessed = {
        purpose: columns.get(purpose) or next((name for name in usual if name in names), None)
        for purpose, usual in USUAL_NAMES.items()
    }
    for purpose in ("user", "item"):
        if guessed[purpose] is None:
            raise InputError(f"{path}: say which column holds the {purpose}s: --{purpose} NAME, of {', '.join(names)}")
    return guessed


def _spread(counts: Array) -> str:
    values = np.quantile(counts, QUANTILES, method="nearest")
    names = ("least", "25 %", "median", "75 %", "95 %", "most")
    return ", ".join(f"{name} {int(value):,}" for name, value in zip(names, values, strict=True)) + (
        f", mean {counts.mean():,.1f}"
    )


def _time(interactions: Interactions) -> str:
    ties, leakage = interactions.tied_share(), leave_one_out_leakage(interactions)
    if ties is None or interactions.timestamps is None:
        return "no timestamps: the order of the file counts"
    timestamps = interactions.timestamps
    days = [str(np.datetime64(int(moment), "s"))[:10] for moment in (timestamps.min(), timestamps.max())]
    text = f"{days[0]} to {days[1]}; {ties:.1%} of neighbouring interactions of a user share their timestamp"
    if leakage:
        text += (
            f"; under leave-one-out {leakage.mean_share_after:.1%} of the training interactions are later than a test "
            "target, on average"
        )
    return text


def _popular(interactions: Interactions, counts: Array) -> str:
    top = np.argsort(-counts, kind="stable")[:NUM_POPULAR]
    titles = interactions.item_columns.get("title")
    names = [f"{interactions.item_ids[item]}" + ("" if titles is None else f" {titles[item]}") for item in top]
    return "; ".join(f"{name} ({counts[item]:,})" for name, item in zip(names, top, strict=True))


def _memory(sizes: Sizes) -> str:
    """What a training step would need at the paper's settings."""
    from aprec_like.losses import GBCE, Softmax
    from aprec_like.models import BERT4Rec, SASRec
    from aprec_like.recipe import Trained
    from aprec_like.training.settings import Training
    from evaluation.running.plan import predict_memory

    paper = {
        "gSASRec": Trained(SASRec(), GBCE(num_negatives=256, calibration=0.75), Training(batch_size=128)),
        "SASRec-Softmax": Trained(SASRec(), Softmax(), Training(batch_size=64)),
        "BERT4Rec": Trained(BERT4Rec(), Softmax(), Training(batch_size=128)),
    }
    needs = [f"{name} {predict_memory(trained, sizes) / 2**30:.1f} GiB" for name, trained in paper.items()]
    return "about " + ", ".join(needs) + " at the paper's settings, beside TensorFlow"
