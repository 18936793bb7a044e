"""Tables of many files and of more rows than the memory budget, against plain loops over their rows."""

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aprec_like import interactions as interactions_module
from aprec_like.datasets import AtomicFile, CSVFile, ParquetFolder, TextFile
from aprec_like.datasets.tables import sources, text_source
from aprec_like.errors import InputError
from aprec_like.files import cache_dir
from aprec_like.interactions import Interactions
from aprec_like.out_of_core import arrays


@pytest.fixture
def small_chunks(monkeypatch):
    """Few rows at a time, and arrays in files, so that small tables go the way of large ones."""
    monkeypatch.setattr(sources, "CHUNK_ROWS", 3)
    monkeypatch.setattr(interactions_module, "PART_SIZE", 3)
    monkeypatch.setattr(arrays, "MAX_IN_MEMORY", 16)
    monkeypatch.setattr(arrays.slices, "__defaults__", (3,))


def write_parts(frame: pd.DataFrame, folder: Path, num_parts: int) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), num_parts)):
        pq.write_table(pa.Table.from_pandas(frame.iloc[rows], preserve_index=False), folder / f"{number:02d}.parquet")


def sequences(loaded: Interactions) -> dict:
    """Items, times and ratings of every user."""
    columns = [loaded.item_ids[loaded.items].tolist(), loaded.timestamps.tolist(), loaded.ratings.tolist()]
    rows = list(zip(*columns, strict=True))
    bounds = zip(loaded.user_ids, loaded.offsets[:-1], loaded.offsets[1:], strict=True)
    return {user: rows[start:end] for user, start, end in bounds}


IDS = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=25),
    st.lists(st.sampled_from(["a", "b\0", "b", "é", "007", "7", "Z"]), min_size=1, max_size=25),
    st.lists(st.sampled_from([f"{n:032x}" for n in (1, 255, 2**127)]), min_size=1, max_size=25),
)


@settings(max_examples=60)
@given(data=st.data(), ids=st.tuples(IDS, IDS), num_parts=st.integers(1, 4))
def test_any_table_is_sorted_as_by_a_plain_loop(tmp_path, small_chunks, data, ids, num_parts):
    length = min(map(len, ids))
    times = data.draw(st.lists(st.sampled_from([0, 1, 2, 2.5, -1]), min_size=length, max_size=length))
    frame = pd.DataFrame({"u": ids[0][:length], "i": ids[1][:length], "t": times, "r": np.arange(length) % 5})
    write_parts(frame, tmp_path / "parts", num_parts)
    loaded = ParquetFolder("parts", "u", "i", "t", "r").load(tmp_path)
    for name in "ui":  # texts that are all whole numbers are read as numbers
        frame[name] = frame[name].astype(int) if set(frame[name]) == {"7"} else frame[name]
    expected: dict = {}
    for row in frame.itertuples(index=False):
        expected.setdefault(row.u, []).append((row.i, row.t, row.r))
    assert sequences(loaded) == {user: sorted(rows, key=lambda row: row[1]) for user, rows in expected.items()}
    assert loaded.user_ids.tolist() == sorted(set(frame.u)) and loaded.item_ids.tolist() == sorted(set(frame.i))
    columns = [frame[name].to_numpy(object if frame[name].dtype == "str" else None) for name in "uitr"]
    assert loaded.digest() == Interactions.from_ids(*columns).digest()


def test_files_count_as_one_in_the_order_of_their_paths(tmp_path):
    for name, items in (("b", "34"), ("a", "12")):
        text = "u,i,t\n" + "".join(f"1,{item},5\n" for item in items)
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    for pattern in ("*.csv.gz", str(tmp_path / "[ab].csv.*")):
        loaded = CSVFile(pattern, "u", "i", "t").load(tmp_path)
        assert loaded.item_ids[loaded.items].tolist() == [1, 2, 3, 4]
    with pytest.raises(InputError, match=r"c\*\.csv: there is no such file"):
        CSVFile("c*.csv", "u", "i").load(tmp_path)


def test_folders_of_a_partitioned_table_are_columns(tmp_path):
    for day, item in (("2024-01-02", "y"), ("2024-01-01", "x")):
        folder = tmp_path / "events" / f"day={day}" / "country=a%20b"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"user": [1], "item": [item]}), folder / "part.parquet")
        (folder / "_hidden.parquet").write_text("")
    loaded = ParquetFolder("events", "user", "item", "day").load(tmp_path)
    assert loaded.item_ids[loaded.items].tolist() == ["x", "y"] and np.diff(loaded.timestamps).tolist() == [86400]
    assert ParquetFolder("events", "country", "item", "day").load(tmp_path).user_ids.tolist() == ["a b"]
    assert ParquetFolder("events", "user", "item").is_on_disk(tmp_path)
    assert not ParquetFolder("other", "user", "item").is_on_disk(tmp_path)


def test_files_with_numbers_and_texts_of_the_same_ids_are_one_table(tmp_path):
    (tmp_path / "mixed").mkdir()
    for name, users in (("a", [2, 10]), ("b", ["10", "3"])):
        pq.write_table(pa.table({"user": users, "item": [1, 2]}), tmp_path / "mixed" / f"{name}.parquet")
    assert ParquetFolder("mixed", "user", "item").load(tmp_path).user_ids.tolist() == [2, 3, 10]


def test_a_bad_row_in_one_of_many_files_is_named(tmp_path):
    (tmp_path / "logs").mkdir()
    for number in range(64):
        rows = [f"u{number},{item},{item}" for item in range(5)]
        if number == 37:
            rows[2] = "u37,2,soon"
        (tmp_path / "logs" / f"{number:02d}.csv").write_text("\n".join(["user,item,time", *rows]))
    with pytest.raises(InputError, match=r"37\.csv:4: time must be a number or an ISO 8601 date\. Received: 'soon'"):
        CSVFile("logs/*.csv", "user", "item", "time").load(tmp_path)
    (tmp_path / "logs" / "37.csv").write_text("user,item,time\nu37,2,1\nu37,  ,2")
    with pytest.raises(InputError, match=r"37\.csv:3: item must be an id\. Received: '  '"):
        CSVFile("logs/*.csv", "user", "item", "time").load(tmp_path)
    (tmp_path / "logs" / "37.csv").write_text("user,item\nu37,2")
    with pytest.raises(InputError, match=r"37\.csv: has no column 'time'; it has user, item"):
        CSVFile("logs/*.csv", "user", "item", "time").load(tmp_path)


def test_times_are_of_one_kind_in_all_chunks(tmp_path, monkeypatch, small_chunks):
    (tmp_path / "parts").mkdir()
    for second, line in ((["2020-01-02"], "00"), ([7], "01")):
        pq.write_table(pa.table({"u": [1], "i": [1], "t": [str(second[0])]}), tmp_path / "parts" / f"{line}.parquet")
    with pytest.raises(InputError, match=r"01\.parquet: row 1: t must be a number or an ISO 8601 date"):
        ParquetFolder("parts", "u", "i", "t").load(tmp_path)


def test_blocks_of_a_text_file_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(text_source, "BLOCK_BYTES", 64)
    monkeypatch.setattr(text_source, "MAX_LINE", 64)
    lines = [f"{row % 7}::{row}" for row in range(200)]
    for encoding, separator in (("utf-8", "::"), ("utf-16", ":"), ("utf-8", ":")):
        text = "\n".join(["u::i", *lines]).replace("::", separator)
        (tmp_path / "a.csv").write_bytes(text.encode(encoding))
        loaded = CSVFile("a.csv", "u", "i", separator=separator, encoding=encoding).load(tmp_path)
        expected = [row for user in range(7) for row in range(200) if row % 7 == user]
        assert loaded.item_ids[loaded.items].tolist() == expected


CHILD = r"""
import re, sys
from pathlib import Path
import duckdb, numpy, pandas, pyarrow.parquet
from aprec_like.datasets import ParquetFolder
from aprec_like.datasets.tables import sources
from aprec_like.filters import KCore
from aprec_like.out_of_core import budget
from aprec_like.splits import LeaveOneOut
budget.MIN_BUDGET, sources.CHUNK_ROWS = 0, 1 << 16


def peak():  # in KiB; `getrusage` would include the process that started this one
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


before = peak()
loaded = ParquetFolder("parts", "user", "item", "time").load(Path(sys.argv[1]))
split = LeaveOneOut(10).split(KCore(2, 2).apply(loaded))
print(peak() - before, loaded.digest(), split.digest())
"""


def run_child(folder: Path, memory: str) -> tuple[int, str]:
    """Return the growth of memory in MiB, and the digests."""
    variables = {"APREC_LIKE_MEMORY": memory, "XDG_CACHE_HOME": str(folder / f"cache{memory}")}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)],
        env=os.environ | variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    growth, digests = done.stdout.split(maxsplit=1)
    return int(growth) // 1024, digests


def write_log(folder: Path, num_rows: int, num_parts: int = 8) -> None:
    """Write a log of unsorted rows with ids of 40 characters."""
    folder.mkdir()
    random = np.random.default_rng(0)
    users, items = (
        pa.array([f"{prefix}{number * 7919 % count:039d}" for number in range(count)])
        for prefix, count in (("u", num_rows // 20), ("i", num_rows // 200))
    )
    for part in range(num_parts):
        rows = num_rows // num_parts
        chosen = [pa.array(random.integers(len(ids), size=rows)) for ids in (users, items)]
        table = {
            "user": users.take(chosen[0]),
            "item": items.take(chosen[1]),
            "time": random.integers(10**6, size=rows),
        }
        pq.write_table(pa.table(table), folder / f"{part}.parquet")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_bounded_by_the_budget_and_results_do_not_depend_on_it(tmp_path):
    write_log(tmp_path / "parts", num_rows=1_600_000)
    small, digests = run_child(tmp_path, "160MiB")
    large, expected = run_child(tmp_path, "4GiB")
    print(f"grew by {small} MiB with a budget of 160 MiB, by {large} MiB with 4 GiB")
    assert digests == expected
    assert small < 0.75 * large


def test_a_load_that_was_killed_or_interrupted_leaves_nothing_and_the_next_is_right(tmp_path):
    write_log(tmp_path / "parts", num_rows=1_600_000)
    cache = tmp_path / "cache4GiB"
    for how in (signal.SIGINT, signal.SIGKILL):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path)],
            env=os.environ | {"XDG_CACHE_HOME": str(cache)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the tests may run in the background
        )  # fmt: skip
        while not list(cache.rglob("scratch/aprec_like-*/lock")) and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(how)
        out, _ = child.communicate()
        assert child.returncode != 0 and out == b""
        assert not list(cache.rglob("read/*"))
        assert bool(list(cache.rglob("scratch/aprec_like-*"))) == (how == signal.SIGKILL)
    _, digests = run_child(tmp_path, "4GiB")
    assert not list(cache.rglob("scratch/aprec_like-*"))
    frame = pd.concat(pd.read_parquet(path) for path in sorted((tmp_path / "parts").iterdir()))
    columns = [frame[name].to_numpy(kind) for name, kind in (("user", object), ("item", object), ("time", None))]
    assert digests.split()[0] == Interactions.from_ids(*columns).digest()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ml-1m.txt", "beauty.txt", "Video.txt", "globo-full-catalogue.txt", "bookcrossing-u3.txt"]
)
def test_shared_files_have_the_digest_of_the_reader_in_memory(name):
    data_dir = Path(os.environ.get("APREC_LIKE_DATA", cache_dir()))
    if not (data_dir / f"{name}.gz").exists():
        pytest.skip(f"{name} is not in the data folder")
    table = CSVFile(name, "user", "item", separator=" ", header=("user", "item")).load(data_dir)
    assert table.digest() == TextFile(name).load(data_dir).digest()


@pytest.mark.slow
def test_movielens_100k_has_the_digest_of_a_plain_loop():
    path = Path(os.environ.get("APREC_LIKE_DATA", cache_dir())) / "ml-100k.inter.gz"
    if not path.exists():
        pytest.skip("ml-100k.inter is not in the data folder")
    rows = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:]]
    users, items, _, times = (np.array([float(row[column]) for row in rows]).astype(int) for column in range(4))
    loaded = AtomicFile("ml-100k.inter").load(path.parent)
    assert loaded.digest() == Interactions.from_ids(users, items, times).digest()
    assert loaded.num_interactions == 100_000


@pytest.mark.parametrize("seconds", [0.3, 0.6, 1.0])
def test_ctrl_c_while_the_database_works_is_ctrl_c(tmp_path, seconds):
    """Whichever of its threads works on the query at that moment."""
    code = f"""
import os, signal, threading
from pathlib import Path
from aprec_like.datasets.tables.reading import _connect
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    with _connect(Path({str(tmp_path)!r})) as connection:
        connection.execute("SELECT sum(hash(range)) FROM range(200000000000)").fetchall()
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted\n", done.stderr
