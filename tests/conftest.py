"""Small datasets with a known answer, shared by the tests."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # products of a GPU are exact, also where a test prepares no devices
# Some virtual machines announce AMX but do not allow it: bfloat16 products would end with SIGILL.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from aprec_like.interactions import Interactions

# On a busy machine the first example alone may take seconds, so no test has a time limit.
NO_TIME_LIMIT = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("no time limit", deadline=None, suppress_health_check=NO_TIME_LIMIT)
settings.load_profile("no time limit")

NUM_ITEMS = 20


def interactions_from(sequences: list[list[int]], num_items: int | None = None) -> Interactions:
    """Interactions from sequences of item numbers, from 0."""
    users = np.repeat(np.arange(len(sequences)), [len(sequence) for sequence in sequences])
    items = np.array([item for sequence in sequences for item in sequence], np.int64)
    item_ids = None if num_items is None else np.arange(num_items)
    return Interactions.from_ids(users, items, item_ids=item_ids)


def timed_interactions(events: list[tuple[int, int, int]]) -> Interactions:
    """Interactions from (user, item, timestamp) triples."""
    return Interactions.from_ids(*np.array(events).T)


def circle_sequences(num_users: int, num_items: int = NUM_ITEMS, seed: int = 0) -> list[list[int]]:
    """Sequences on a circle of items with a random start: the next item is always the last one plus 1."""
    random = np.random.default_rng(seed)
    starts, lengths = random.integers(num_items, size=num_users), random.integers(4, 10, size=num_users)
    return [
        [int((start + i) % num_items) for i in range(length)] for start, length in zip(starts, lengths, strict=True)
    ]


@pytest.fixture(autouse=True, scope="session")
def temporary_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests from reading or writing the user's cache folder."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def circle() -> Interactions:
    """200 users on a circle of 20 items."""
    return interactions_from(circle_sequences(200), NUM_ITEMS)


@pytest.fixture
def circle_file(tmp_path: Path) -> Path:
    """The circle as a text file of `user item` lines, with ids from 1."""
    path = tmp_path / "circle.txt"
    write_pairs(path, circle_sequences(200))
    return path


def write_pairs(path: Path, sequences: list[list[int]]) -> None:
    """Write sequences as `user item` lines, with ids from 1."""
    lines = [f"{user} {item + 1}" for user, sequence in enumerate(sequences, start=1) for item in sequence]
    path.write_text("\n".join(lines) + "\n")
