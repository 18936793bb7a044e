"""The corpus of the fuzzer, which has what it found, and files of every kind, is read or refused."""

import pytest

from tests.fuzz.readers import CORPUS, KNOWN, READERS, read, save_interactions

FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_file_of_the_corpus_is_read_or_refused(path):
    expected = "refused" if path.name.startswith("refused") else "read"
    assert read(path.parent.name, path.read_bytes()) == expected


def test_every_reader_has_a_corpus_with_files_that_are_read_and_refused():
    for reader in set(READERS) - {"cache"}:
        names = [path.name for path in FILES if path.parent.name == reader]
        assert {name.startswith("refused") for name in names} == {True, False}, reader


def test_a_cache_file_is_the_one_that_was_written(tmp_path):
    save_interactions(KNOWN, tmp_path / "whole.arrays")
    content = (tmp_path / "whole.arrays").read_bytes()
    assert read("cache", content) == "read"
    with pytest.raises(AssertionError):  # whoever can write a checksum can write other data
        save_interactions(KNOWN.select_users([0]), tmp_path / "other.arrays")
        read("cache", (tmp_path / "other.arrays").read_bytes())
