"""Cache of loaded interactions as memory-mapped arrays, which makes the second load of a dataset faster.

The name of a cache file is a digest of everything that its content depends on: the bytes of the source files (or the
version of NumPy, for simulated data), the settings of the dataset, and the code that reads or simulates it. Outdated
files are therefore never read. A cache file begins with the sha256 of the rest, which is verified before anything of it
is used; a damaged file is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from aprec_like import filters as filters_module
from aprec_like import interactions as interactions_module
from aprec_like.datasets.local_files import reading
from aprec_like.errors import InputError
from aprec_like.files import StorageError, cache_dir
from aprec_like.filters import Filter, apply_filters
from aprec_like.interactions import Interactions
from aprec_like.out_of_core import Ids, digest_named, known_sha256, load_arrays, save_arrays

COLUMN_FIELDS = ("user_columns", "item_columns")
MIN_CACHED = 1 << 22
"""Interactions whose filtered ones are cached."""


def load_cached(sources: Sequence[Path], settings: object, read: Callable[[], Interactions]) -> Interactions:
    """Return the interactions that `read` reads from `sources` with the dataset's `settings`, cached."""
    digests = [_digest_source(source) for source in sources]
    names = [] if len(sources) == 1 else [str(source) for source in sources]  # their folders may name columns

    def read_safely() -> Interactions:
        with reading(sources[0] if len(sources) == 1 else sources[0].parent):
            return read()

    return _load_or_make(f"{' '.join([*digests, *names])} {settings!r}", read_safely)


def _digest_source(source: Path) -> str:
    try:
        return known_sha256(source)
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror}") from error


def simulate_cached(settings: object, simulate: Callable[[], Interactions]) -> Interactions:
    """Return the interactions that `simulate` samples with the dataset's `settings`, cached.

    The key includes the version of NumPy: another one may sample other numbers from the same seed.
    """
    return _load_or_make(f"NumPy {np.__version__} {settings!r}", simulate)


def filter_cached(interactions: Interactions, filters: Sequence[Filter]) -> Interactions:
    """Return interactions after filters, cached where there are so many that filtering takes longer than a checksum."""
    if not filters or interactions.num_interactions < MIN_CACHED:
        return apply_filters(interactions, filters)
    origin = f"{digest_named(_arrays_of(interactions))} {tuple(filters)!r}"
    return _load_or_make(origin, lambda: apply_filters(interactions, filters))


def _load_or_make(origin: str, make: Callable[[], Interactions]) -> Interactions:
    """Load the interactions of an origin from the cache, or make and store them."""
    key = hashlib.sha256(f"{origin} {_code_digest()}".encode()).hexdigest()
    path = cache_dir() / "read" / f"{key}.arrays"
    with contextlib.suppress(Exception):  # whatever is wrong with a cache file, its content can be made again
        return load_interactions(path)
    interactions = make()
    with contextlib.suppress(StorageError):  # a cache that cannot be written is not needed
        save_interactions(interactions, path)
    return interactions


def save_interactions(interactions: Interactions, path: Path) -> None:
    """Write interactions to a file."""
    save_arrays(path, _arrays_of(interactions))


def _arrays_of(interactions: Interactions) -> dict[str, Ids]:
    arrays: dict[str, Ids] = {}
    for name in Interactions.__dataclass_fields__:
        value = getattr(interactions, name)
        if isinstance(value, Mapping):
            arrays |= {f"{name}/{column}": array for column, array in value.items()}
        elif value is not None:
            arrays[name] = value
    return arrays


def load_interactions(path: Path) -> Interactions:
    """Load interactions from a file; raises an exception of any kind if it is damaged."""
    fields: dict[str, Any] = {name: {} for name in COLUMN_FIELDS}
    for name, array in load_arrays(path).items():
        field, _, column = name.partition("/")
        if column:
            fields[field][column] = array
        else:
            fields[field] = array
    return Interactions(**fields)


def code_files() -> list[Path]:
    """Return the source files that the content of cache files depends on."""
    return [
        Path(interactions_module.__file__),
        Path(filters_module.__file__),
        *sorted(Path(__file__).parent.rglob("*.py")),
    ]


@cache
def _code_digest() -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in code_files())).hexdigest()
