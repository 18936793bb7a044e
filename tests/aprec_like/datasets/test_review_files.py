"""Published datasets. Their files are not part of the project; a small file replaces them."""

import gzip
import hashlib
import subprocess
import sys

import numpy as np
import pytest

from aprec_like.datasets import PUBLISHED, Gowalla, MovieLens, Publication, Sizes, download, gowalla
from aprec_like.datasets.download import has_checksum
from aprec_like.datasets.review_files import ReviewFile
from aprec_like.errors import InputError

CONTENT = b"1 1\n1 2\n2 1\n"


class SmallFile(ReviewFile):
    FILES = ("small.txt", "small.txt.gz")
    URLS = ("http://127.0.0.1:9/small.txt",)
    CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
    PUBLICATION = Publication(Sizes(users=2, items=2, interactions=3), source="test", licence="free", terms="none")


def test_a_file_is_read_plain_or_gzipped_and_verified(tmp_path):
    (tmp_path / "small.txt.gz").write_bytes(gzip.compress(CONTENT))
    assert SmallFile().is_on_disk(tmp_path)
    assert SmallFile().load(tmp_path).num_interactions == 3
    (tmp_path / "small.txt").write_bytes(CONTENT + b"2 2\n")
    with pytest.raises(InputError, match="is not the published file"):
        SmallFile().load(tmp_path)


def test_a_truncated_gzip_is_refused(tmp_path):
    (tmp_path / "small.txt.gz").write_bytes(gzip.compress(CONTENT * 1000)[:-20])
    with pytest.raises(InputError, match="cannot be read"):
        SmallFile().load(tmp_path)


def test_without_file_or_network_the_error_says_which_file_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"SmallFile is not on disk.*put small\.txt or small\.txt\.gz in "):
        SmallFile().load(tmp_path)
    assert [path.name for path in (tmp_path / "cache/aprec_like").iterdir()] == []


def test_a_git_blob_id_is_a_checksum(tmp_path):
    path = tmp_path / "hello.txt"
    path.write_bytes(b"hello\n")
    # `printf 'hello\n' | git hash-object --stdin`
    assert has_checksum(path, "git-blob:ce013625030ba8dba906f756967f9e9ca394464a")
    path.write_bytes(b"hello")
    assert not has_checksum(path, "git-blob:ce013625030ba8dba906f756967f9e9ca394464a")


def test_concurrent_downloads_leave_one_correct_file(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    (served / "file.bin").write_bytes(CONTENT * 100_000)
    checksum = f"sha256:{hashlib.sha256(CONTENT * 100_000).hexdigest()}"
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(served)], stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip()
        code = (
            "import sys; from pathlib import Path; from aprec_like.datasets.download import fetch_url; "
            "fetch_url(sys.argv[1], sys.argv[2], Path(sys.argv[3]))"
        )
        target = tmp_path / "cache" / "file.bin"
        command = [sys.executable, "-c", code, f"http://127.0.0.1:{port}/file.bin", checksum, str(target)]
        fetches = [subprocess.Popen(command) for _ in range(3)]
        assert [fetch.wait(60) for fetch in fetches] == [0, 0, 0]
    finally:
        server.kill()
        server.wait()
    assert has_checksum(target, checksum)
    assert [path.name for path in target.parent.iterdir()] == ["file.bin"]


SERVER = """
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def test_an_interrupted_transfer_is_retried(tmp_path, monkeypatch):
    attempts = []

    def interrupted(url, part):
        attempts.append(url)
        part.write_bytes(CONTENT[: 4 * len(attempts)])
        if len(attempts) < 3:
            raise ConnectionResetError("reset by peer")

    monkeypatch.setattr(download, "_download", interrupted)
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    assert download.fetch_url("http://somewhere", SmallFile.CHECKSUM, tmp_path / "small.txt").read_bytes() == CONTENT
    assert len(attempts) == 3


CHECK_INS = [  # newest first, as in SNAP's file; user 2 has too few
    *[("1", f"2010-10-1{day}T23:55:27Z", str(place)) for day, place in ((9, 5), (8, 7), (8, 6), (7, 5), (6, 5))],
    ("2", "2010-10-19T23:55:27Z", "5"),
]


def write_check_ins(path, rows):
    lines = [f"{user}\t{time}\t30.2\t-97.7\t{place}\n" for user, time, place in rows]
    path.write_bytes(gzip.compress("".join(lines).encode()))


def test_gowalla_keeps_users_with_five_check_ins_repeats_and_utc(tmp_path):
    path = tmp_path / gowalla.FILE
    write_check_ins(path, CHECK_INS)
    loaded = gowalla.read_check_ins(path)
    assert loaded.user_ids.tolist() == [1]
    # The two check-ins of the same second keep the order of the file.
    assert loaded.item_ids[loaded.items].tolist() == [5, 5, 7, 6, 5]
    assert loaded.timestamps[0] == np.datetime64("2010-10-16T23:55:27").astype("int64")
    with pytest.raises(InputError, match="must have Sizes"):
        Gowalla().load(tmp_path)


def test_a_damaged_file_of_check_ins_is_refused(tmp_path):
    path = tmp_path / gowalla.FILE
    write_check_ins(path, [("x", "yesterday", "5")])
    with pytest.raises(InputError, match="not SNAP's file"):
        gowalla.read_check_ins(path)


def test_movielens_through_tensorflow_datasets_with_its_mock_data(tmp_path):
    import tensorflow_datasets as tfds

    with tfds.testing.mock_data(num_examples=50):
        loaded = MovieLens("100k").load(tmp_path)
    assert loaded.num_interactions == 50
    assert len(loaded.item_columns["title"]) == loaded.num_items
    assert loaded.ratings is not None and loaded.timestamps is not None
    starts = loaded.positions == 0
    assert (np.diff(loaded.timestamps)[~starts[1:]] >= 0).all()
    assert "timestamp" in MovieLens("100k").notes[0]


def test_an_unknown_size_of_movielens_is_refused():
    with pytest.raises(ValueError, match=r"100k, 1m, 20m, 25m, latest-small\. Received: '2m'"):
        MovieLens("2m")


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_dataset_has_numbers_source_and_terms(name):
    publication = PUBLISHED[name].publication
    assert publication.sizes.users > 0 and publication.source and publication.licence and publication.terms
