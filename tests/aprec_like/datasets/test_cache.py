from dataclasses import replace

import numpy as np
import pytest

from aprec_like.datasets import CSVFile, TextFile
from aprec_like.datasets.cache import code_files, load_cached
from aprec_like.datasets.download import cache_dir
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from tests.conftest import interactions_from


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "data.txt"
    path.write_text("1 1\n1 2\n")
    return path


def cache_files():
    return sorted((cache_dir() / "read").iterdir())


class Reader:
    """Counts how often the source is read."""

    def __init__(self, interactions: Interactions) -> None:
        self.interactions, self.count = interactions, 0

    def __call__(self) -> Interactions:
        self.count += 1
        return self.interactions


def test_the_second_load_does_not_read_the_source(source):
    reader = Reader(interactions_from([[0, 1], [1, 2]]))
    first, second = (load_cached(source, "settings", reader) for _ in range(2))
    assert reader.count == 1
    assert first.digest() == second.digest()


def test_the_cache_restores_all_fields(source):
    texts = np.array(["", "Léon: The Professional", "line\nbreak"], object)
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
    load_cached(source, "settings", lambda: stored)
    loaded = load_cached(source, "settings", lambda: pytest.fail("the source is read again"))
    for name in ("items", "offsets", "user_ids", "item_ids", "timestamps", "ratings"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(stored, name), strict=True)
    assert loaded.item_columns["title"].tolist() == texts.tolist()
    assert loaded.user_columns["id"].tolist() == [7, 8]
    assert loaded.item_columns["number"].tolist() == [3, 1, 2]


def test_objects_that_are_not_strings_are_refused(source):
    stored = replace(interactions_from([[0, 1]]), item_columns={"number": np.array([3, 1], object)})
    with pytest.raises(TypeError, match="must contain strings"):
        load_cached(source, "settings", lambda: stored)


def test_an_unreadable_source_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"data\.txt: cannot be read: Is a directory"):
        (tmp_path / "data.txt").mkdir()
        load_cached(tmp_path / "data.txt", "settings", lambda: pytest.fail("there is nothing to read"))


def test_other_sources_and_settings_have_other_cache_files(source):
    reader = Reader(interactions_from([[0, 1]]))
    load_cached(source, "one", reader)
    load_cached(source, "two", reader)
    source.write_text("1 1\n1 3\n")
    load_cached(source, "one", reader)
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
        content[content.index(b"items.npy") + 200] ^= 1
        broken = {"truncated": content[:-100], "flipped": content, "empty": b"", "text": b"not an archive"}[damage]
        path.write_bytes(broken)
    assert TextFile("data.txt").load(source.parent).digest() == expected
    if damage != "folder":
        assert TextFile("data.txt").load(source.parent).digest() == expected
        assert cache_files()[0].stat().st_size == len(content)


def test_an_unwritable_cache_folder_is_ignored(source, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert TextFile("data.txt").load(source.parent).num_interactions == 2


def test_the_cache_restores_ids_that_are_strings(source):
    (source.parent / "data.csv").write_text("u,i\nann,x\nbob,y\n")
    dataset = CSVFile("data.csv", user="u", item="i")
    loads = [dataset.load(source.parent) for _ in range(2)]
    assert [load.user_ids.tolist() for load in loads] == [["ann", "bob"]] * 2


def test_cache_keys_depend_on_the_code_of_all_datasets():
    names = [path.name for path in code_files()]
    assert {"interactions.py", "text.py", "movielens.py", "dataset.py", "next_item_distribution.py"} <= set(names)
