import re
from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aprec_like.datasets import CSVFile, ParquetFile, TextFile
from aprec_like.datasets.cache import code_files, load_cached
from aprec_like.errors import InputError
from aprec_like.files import cache_dir
from aprec_like.interactions import Interactions
from tests.conftest import interactions_from


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "data.txt"
    path.write_text("1 1\n1 2\n")
    return path


def cache_files():
    return sorted((cache_dir() / "read").glob("*.arrays"))


class Reader:
    """Counts how often the source is read."""

    def __init__(self, interactions: Interactions) -> None:
        self.interactions, self.count = interactions, 0

    def __call__(self) -> Interactions:
        self.count += 1
        return self.interactions


def test_the_second_load_does_not_read_the_source(source):
    reader = Reader(interactions_from([[0, 1], [1, 2]]))
    first, second = (load_cached([source], "settings", reader) for _ in range(2))
    assert reader.count == 1
    assert first.digest() == second.digest()


def test_the_cache_restores_all_fields(source):
    texts = np.array(["", "Léon: The Professional", "line\nbreak and \0 NUL"], object)
    stored = Interactions(
        items=np.array([2, 0, 1], np.int32),
        offsets=np.array([0, 1, 3]),
        user_ids=np.array(["a", "b"], object),
        item_ids=texts,
        timestamps=np.array([1.5, 2.0, 3.0]),
        ratings=np.array([1, 2, 3]),
        user_columns={"id": np.array([7, 8])},
        item_columns={"title": texts, "number": np.array([3, 1, 2])},
    )
    load_cached([source], "settings", lambda: stored)
    loaded = load_cached([source], "settings", lambda: pytest.fail("the source is read again"))
    for name in ("items", "offsets", "user_ids", "item_ids", "timestamps", "ratings"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(stored, name), strict=True)
    assert loaded.item_columns["title"].tolist() == texts.tolist()
    assert loaded.user_columns["id"].tolist() == [7, 8]
    assert loaded.item_columns["number"].tolist() == [3, 1, 2]


def test_objects_that_are_not_strings_are_refused(source):
    stored = replace(interactions_from([[0, 1]]), item_columns={"number": np.array([3, 1], object)})
    with pytest.raises(TypeError, match="must contain strings"):
        load_cached([source], "settings", lambda: stored)


def test_an_unreadable_source_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"data\.txt: cannot be read: Is a directory"):
        (tmp_path / "data.txt").mkdir()
        load_cached([tmp_path / "data.txt"], "settings", lambda: pytest.fail("there is nothing to read"))


def test_other_sources_and_settings_have_other_cache_files(source):
    reader = Reader(interactions_from([[0, 1]]))
    load_cached([source], "one", reader)
    load_cached([source], "two", reader)
    source.write_text("1 1\n1 3\n")
    load_cached([source], "one", reader)
    assert reader.count == 3


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "text", "folder"])
def test_a_damaged_cache_file_is_replaced(source, damage):
    expected = TextFile("data.txt").load(source.parent).digest()
    (path,) = cache_files()
    content = bytearray(path.read_bytes())
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        content[len(content) // 2] ^= 1
        broken = {"truncated": content[:-100], "flipped": content, "empty": b"", "text": b"not an archive"}[damage]
        path.write_bytes(broken)
    assert TextFile("data.txt").load(source.parent).digest() == expected
    if damage != "folder":
        assert TextFile("data.txt").load(source.parent).digest() == expected
        assert cache_files()[0].stat().st_size == len(content)


def test_every_changed_byte_of_a_cache_file_is_noticed(source):
    """The whole file is verified before use, the shapes in its header too."""
    (source.parent / "data.csv").write_text("u,i\nann,x\nbob,y\n")
    dataset = CSVFile("data.csv", user="u", item="i")
    expected = dataset.load(source.parent)
    (path,) = cache_files()
    content = path.read_bytes()
    chance = np.random.default_rng(0)
    places = [
        *chance.integers(len(content), size=150),
        *(match.start() + 9 for match in re.finditer(rb"items", content)),
    ]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(chance.integers(8))
        path.write_bytes(damaged)
        loaded = dataset.load(source.parent)
        assert loaded.user_ids.tolist() == expected.user_ids.tolist() and loaded.digest() == expected.digest()
        assert path.read_bytes() == content


def test_an_unwritable_cache_folder_is_ignored(source, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert TextFile("data.txt").load(source.parent).num_interactions == 2


def test_the_cache_restores_ids_that_are_strings(source):
    (source.parent / "data.csv").write_text("u,i\nann,x\nbob,y\n")
    dataset = CSVFile("data.csv", user="u", item="i")
    loads = [dataset.load(source.parent) for _ in range(2)]
    assert [load.user_ids.tolist() for load in loads] == [["ann", "bob"]] * 2


def test_ids_of_any_kind_come_back_exactly_from_the_file_and_from_the_cache(source):
    """Texts with NUL, whole numbers of 64 bits without sign, and texts that look like numbers."""
    folder = source.parent
    ids = {
        "text": ["a\0b", "a", "\0", "b\n"],
        "unsigned": np.array([2**63 + 5, 1, 2, 2**64 - 1], np.uint64),
        "zeros": ["007", "7", "07", "70"],
        "bytes": [b"x", b"y", b"z", b"w"],
        "whole floats": [1.0, 2.0, 3.0, 4.0],
    }
    expected = {"bytes": ["x", "y", "z", "w"], "whole floats": [1, 2, 3, 4]}
    for name, column in ids.items():
        pd.DataFrame({"user": column, "item": column}).to_parquet(folder / f"{name}.parquet")
        for _ in range(2):
            loaded = ParquetFile(f"{name}.parquet", user="user", item="item").load(folder)
            wanted = sorted(expected.get(name, list(column)))
            assert loaded.user_ids.tolist() == wanted and loaded.item_ids.tolist() == wanted, name


@pytest.mark.parametrize(
    ("column", "line"),
    [
        (pa.array([1.5, float("nan")]), "row 2: user must be an id. Received: nan"),
        (pa.array([1.5, float("inf")]), "row 2: user must be an id. Received: inf"),
        (pa.array([{"a": 1}, {"a": 2}]), "ids must be numbers or texts. Received: a column of the type struct"),
        (pa.array([[1], [2]]), "ids must be numbers or texts. Received: a column of the type list"),
        (pa.array([b"\xff", b"a"]), "ids must be numbers or texts. Received: binary"),
    ],
)
def test_ids_that_can_not_come_back_are_refused_by_name(source, column, line):
    pq.write_table(pa.table({"user": column, "item": column}), source.parent / "x.parquet")
    with pytest.raises(InputError, match=re.escape(line)):
        ParquetFile("x.parquet", user="user", item="item").load(source.parent)


@pytest.mark.parametrize(
    ("column", "seconds"),
    [
        (pa.array([datetime(1, 1, 1), datetime(9999, 12, 31)], pa.timestamp("us")), [-62135596800, 253402214400]),
        (pa.array([date(1, 1, 1), date(9999, 12, 31)]), [-62135596800, 253402214400]),
        (pa.array([datetime(1970, 1, 1), datetime(1970, 1, 2)], pa.timestamp("ns", "UTC")), [0, 86400]),
        (pa.array(["0001-01-01", "9999-12-31T00:00:00"]), [-62135596800, 253402214400]),
        (pa.array([2**63, 2**64 - 1], pa.uint64()), [2.0**63 / 1e9, 2.0**64 / 1e9]),
    ],
)
def test_timestamps_of_any_year_are_seconds(source, column, seconds):
    table = pa.table({"user": [1, 1], "item": [1, 2], "time": column})
    pq.write_table(table, source.parent / "x.parquet")
    unit = "ns" if pa.types.is_integer(column.type) else "s"
    dataset = ParquetFile("x.parquet", user="user", item="item", timestamp="time", time_unit=unit)
    assert dataset.load(source.parent).timestamps.tolist() == seconds


def test_durations_are_no_timestamps(source):
    table = pa.table({"user": [1, 1], "item": [1, 2], "time": pa.array([1, 2], pa.duration("s"))})
    pq.write_table(table, source.parent / "x.parquet")
    with pytest.raises(InputError, match=r"row 1: time: timestamps must be numbers or dates\. Received: .* duration"):
        ParquetFile("x.parquet", user="user", item="item", timestamp="time").load(source.parent)


def test_cache_keys_depend_on_the_code_of_all_datasets():
    names = [path.name for path in code_files()]
    assert {"interactions.py", "text.py", "movielens.py", "dataset.py", "next_item_distribution.py"} <= set(names)
