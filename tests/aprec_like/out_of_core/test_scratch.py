import os
import signal
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

from aprec_like.errors import InputError
from aprec_like.files import StorageError
from aprec_like.out_of_core import (
    MEMORY_VARIABLE,
    SCRATCH_VARIABLE,
    known_digests,
    known_sha256,
    memory_budget,
    parse_bytes,
    scratch,
    scratch_folder,
    share_tensor,
    tensors,
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv(SCRATCH_VARIABLE, str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def folders(root):
    return list(root.glob("aprec_like-*"))


def test_a_scratch_folder_is_gone_after_its_block_also_after_an_error(root):
    with pytest.raises(KeyboardInterrupt), scratch_folder(0) as folder:
        (folder / "spill").write_text("rows")
        assert folders(root) == [folder]
        raise KeyboardInterrupt
    assert folders(root) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_and_one_in_use_is_not(root):
    code = """
from aprec_like.out_of_core import scratch_folder
with scratch_folder(0) as folder:
    print(folder, flush=True)
    input()
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    held = holder.stdout.readline().strip()
    with scratch_folder(0):
        assert held in map(str, folders(root))
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert held in map(str, folders(root))
    with scratch_folder(0):
        assert held not in map(str, folders(root))


def test_a_full_disk_is_reported_in_one_line_before_anything_is_written(root, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda folder: usage(2**30))
    expected = r"needs about 3\.0 GiB of scratch space, and 1\.0 GiB are free"
    with pytest.raises(StorageError, match=expected), scratch_folder(3 * 2**30):
        pytest.fail("there is no room")
    assert folders(root) == []


def test_a_scratch_folder_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(SCRATCH_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(StorageError, match=f"cannot be written: .*{SCRATCH_VARIABLE}"), scratch_folder(0):
        pytest.fail("there is no folder")


def test_sizes_are_parsed():
    expected = {"4GiB": 2**32, "512 MiB": 2**29, "1.5g": 1_500_000_000, "100": 100, "2kB": 2000}
    assert {text: parse_bytes(text) for text in expected} == expected
    for text in ("", "GiB", "-1GiB", "4 XiB", "nan"):
        with pytest.raises(InputError, match="a size must be a number with a unit"):
            parse_bytes(text)


def test_the_budget_is_that_of_the_variable_and_not_less_than_the_least(monkeypatch):
    monkeypatch.setenv(MEMORY_VARIABLE, "2GiB")
    assert memory_budget() == 2**31
    monkeypatch.setenv(MEMORY_VARIABLE, "1MiB")
    with pytest.raises(InputError, match=r"at least 512MiB\. Received: 1MiB"):
        memory_budget()


def test_a_large_file_is_read_again_only_after_it_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(known_digests, "MIN_BYTES", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, read = tmp_path / "data", []
    digest = known_digests.sha256_of
    monkeypatch.setattr(known_digests, "sha256_of", lambda path: read.append(path) or digest(path))
    path.write_text("one")
    first = known_sha256(path)
    assert known_sha256(path) == first and len(read) == 1
    times = path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # the time of the last change can't be set back
    assert known_sha256(path) != first and len(read) == 2


def test_a_tensor_shares_the_memory_of_a_large_array(monkeypatch):
    monkeypatch.setattr(tensors, "MIN_SHARED_BYTES", 1)
    aligned = np.zeros(1024, np.int32)[-(np.zeros(1).ctypes.data) % 16 :]
    array = aligned[(-aligned.ctypes.data % 64) // 4 :][:100]
    array[:] = np.arange(100)
    tensor = share_tensor(array)
    array[3] = 7
    assert tensor.numpy()[:5].tolist() == [0, 1, 2, 7, 4]
    unaligned = share_tensor(array[1:])
    array[4] = 9
    assert unaligned.numpy()[3] == 4
