"""Data files of every kind, damaged in every way: they are read, or refused in one line with exit code 2.

50 cases in the default suite, 500 in the slow one, chosen by a fixed seed; and the kinds of files that once ended in a
traceback, each on its own.
"""

import gzip
import itertools
import random
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aprec_like.datasets import local_files
from evaluation import data
from tests.conftest import circle_sequences


def rows() -> pd.DataFrame:
    """30 users on a circle, with every kind of column."""
    pairs = [(user, item) for user, items in enumerate(circle_sequences(30), start=1) for item in items]
    frame = pd.DataFrame(pairs, columns=["user_id", "item_id"])
    return frame.assign(rating=4.5, timestamp=1_000_000_000 + np.arange(len(frame)), note='caf\u00e9, "quoted"')


def write_text(path: Path) -> None:
    rows()[["user_id", "item_id"]].to_csv(path, sep=" ", header=False, index=False)


def write_sequences(path: Path) -> None:
    lines = [" ".join(map(str, [user, *items])) for user, items in enumerate(circle_sequences(30), start=1)]
    path.write_text("\n".join(lines))


def write_csv(path: Path) -> None:
    rows().to_csv(path, index=False)


def write_gzipped(path: Path) -> None:
    path.write_bytes(gzip.compress(rows().to_csv(index=False).encode(), mtime=0))


def write_parquet(path: Path) -> None:
    rows().to_parquet(path)


def write_atomic(path: Path) -> None:
    typed = {"user_id": "user_id:token", "item_id": "item_id:token", "timestamp": "timestamp:float"}
    rows().rename(columns=typed).to_csv(path, sep="\t", index=False)


def write_zip(path: Path) -> None:
    ratings = "".join(f"{row.user_id}::{row.item_id}::5::{row.timestamp}\n" for row in rows().itertuples())
    movies = "".join(f"{item}::Title {item}::Drama\n" for item in range(20))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-1m/ratings.dat", ratings)
        archive.writestr("ml-1m/movies.dat", movies.encode("latin-1"))


KINDS = {
    "a.txt": write_text, "b.txt": write_sequences, "a.csv": write_csv, "a.csv.gz": write_gzipped,
    "a.parquet": write_parquet, "a.inter": write_atomic, "ml-1m.zip": write_zip,
}  # fmt: skip


def flip(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]


def insert(*pieces: bytes):
    def damage(content: bytes, chance: random.Random) -> bytes:
        place = chance.randrange(len(content))
        return content[:place] + chance.choice(pieces) + content[place:]

    return damage


def shuffle_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    chance.shuffle(lines)
    return b"\n".join(lines)


DAMAGES = {
    "flipped": flip,
    "truncated": lambda content, chance: content[: chance.randrange(len(content))],
    "emptied": lambda content, chance: b"",
    "overwritten": lambda content, chance: flip(chance.randbytes(64) + content[64:], chance),
    "doubled": lambda content, chance: content + content,
    "shuffled": shuffle_lines,
    "bytes inserted": insert(b"\0", b"\xff\xfe", b"\x1b[2J", b'"', b"\r", b"\n\n", b"\xc3"),
    "a long field": insert(b"x" * 140_000, b"7" * 140_000),
    "a large number": insert(str(2**63).encode(), b"9" * 40, b"-1", b"1e400", b"nan", b"inf"),
    "a strange date": insert(b"0001-01-01", b"9999-12-31", b"2020-13-45"),
    "random": lambda content, chance: chance.randbytes(300),
}


def described(path: Path, monkeypatch, capsys) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["data", "describe", str(path)])
    code = data.run_command(data.main)
    return code, *capsys.readouterr()


def outcome(path: Path, monkeypatch, capsys) -> str:
    """Describe a file; returns whether it was read or refused, and fails for anything else."""
    code, out, err = described(path, monkeypatch, capsys)
    assert all(line.isprintable() for line in (out + err).splitlines())
    if code == 0:
        assert "interactions" in out
        return "read"
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1, err
    return "refused"


@pytest.mark.parametrize("count", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_a_damaged_data_file_is_read_or_refused_in_one_line(tmp_path, monkeypatch, capsys, count):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, write in KINDS.items():
        write(tmp_path / name)
        if name != "ml-1m.zip":  # not the published one
            assert outcome(tmp_path / name, monkeypatch, capsys) == "read", name
    cases = [(*case, number) for number in range(10) for case in itertools.product(KINDS, DAMAGES)]
    random.Random(0).shuffle(cases)
    outcomes: Counter[str] = Counter()
    for name, damage, number in cases[:count]:
        content = (tmp_path / name).read_bytes()
        folder = tmp_path / "damaged"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(DAMAGES[damage](content, random.Random(f"{name} {damage} {number}")))
        outcomes[outcome(folder / name, monkeypatch, capsys)] += 1
    print(dict(outcomes))
    assert outcomes["read"] >= count // 10 and outcomes["refused"] >= count // 4


def make_archive(path: Path, content: str, method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("ml-1m/ratings.dat", content)
        archive.writestr("ml-1m/movies.dat", "1::A::B\n")


def test_archives_that_are_encrypted_unknown_or_bombs_are_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "ml-1m.zip"
    make_archive(path, f"1::1::5::{'9' * 40}\n")
    assert outcome(path, monkeypatch, capsys) == "refused"
    make_archive(path, "1::1::5::1\n")
    content = path.read_bytes()
    for offset, value in ((6, 1), (8, 99)):  # the flag of encryption, the number of the compression's method
        changed = bytearray(content)
        for signature, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
            place = content.index(signature)
            changed[place + offset + shift] = value
        path.write_bytes(changed)
        assert outcome(path, monkeypatch, capsys) == "refused"
    monkeypatch.setattr("aprec_like.datasets.movielens.MAX_MEMBER_BYTES", 1_000)
    make_archive(path, "1::1::5::1\n" * 1_000)
    code, _, err = described(path, monkeypatch, capsys)
    assert code == 2 and "unpacks to more than 1,000 bytes" in err


@pytest.mark.parametrize("name", ["bomb.txt.gz", "bomb.inter.gz"])
def test_gzipped_bombs_are_refused_before_they_are_in_memory(tmp_path, monkeypatch, capsys, name):
    class Memory:
        available = total = 1 << 20

    (tmp_path / name).write_bytes(gzip.compress(b"user_id,item_id\n" + b"1,1\n" * (1 << 20)))
    monkeypatch.setattr(local_files.psutil, "virtual_memory", Memory)
    monkeypatch.setattr("evaluation.datasheets.describe.has_sequences", lambda path: False, raising=False)
    code, _, err = described(tmp_path / name, monkeypatch, capsys)
    assert code == 2 and ("unpacks to more than 0.0 GiB" in err or "has no column" in err)


def test_one_endless_line_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("aprec_like.datasets.tables.text_source.MAX_LINE", 1_000)
    (tmp_path / "a.csv").write_text("user,item," + "x" * 2_000)
    code, _, err = described(tmp_path / "a.csv", monkeypatch, capsys)
    assert code == 2 and "has a line of more than 1,000 characters" in err


def test_a_long_field_and_bad_text_elsewhere_do_not_hide_the_row_of_an_error(tmp_path, monkeypatch, capsys):
    path = tmp_path / "a.csv"
    for other in (b"x" * 140_000, b"\xff"):
        path.write_bytes(b"user,item,note\n" + b"1,1,x\n" * 3_000 + b"1,1," + other + b"\n,2,y\n")
        code, _, err = described(path, monkeypatch, capsys)
        assert code == 2 and "row 3002: user must be an id" in err
