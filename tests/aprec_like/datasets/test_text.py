import gzip
from pathlib import Path

import pytest

from aprec_like.datasets import SequenceFile, TextFile
from aprec_like.errors import InputError
from aprec_like.recipe import load_recipe


def load(folder: Path, content: bytes, **settings):
    (folder / "data.txt").write_bytes(content)
    return TextFile("data.txt", **settings).load(folder)


def test_lines_become_sequences_in_file_order(tmp_path):
    interactions = load(tmp_path, b"2 30\n1 10\n2 10\n1 20\n")
    assert interactions.user_ids.tolist() == [1, 2]
    assert interactions.item_ids.tolist() == [10, 20, 30]
    assert interactions.items.tolist() == [0, 1, 2, 0]


def test_gzip_is_found_and_read(tmp_path):
    (tmp_path / "data.txt.gz").write_bytes(gzip.compress(b"1 1\n1 2\n"))
    assert TextFile("data.txt").is_on_disk(tmp_path)
    assert TextFile("data.txt").load(tmp_path).num_interactions == 2


@pytest.mark.parametrize("content", [b"1\t1\n1  2\n", b"1 1\r\n1 2\r\n", b"\xef\xbb\xbf1 1\n1 2", b"1 1\n\n1 2\n\n"])
def test_white_space_line_ends_byte_order_mark_and_blank_lines_are_ignored(tmp_path, content):
    assert load(tmp_path, content).num_interactions == 2


@pytest.mark.parametrize(
    "malformed",
    ["5", "5 6 7", "5 6 7 8", "5 x", "5 1.5", "5 99999999999999999999", "5,6", '"5" 6', "5 nan", "5 1.0", "1e3 5"],
)
@pytest.mark.parametrize("number", [1, 17])
def test_a_malformed_line_is_reported(tmp_path, malformed, number):
    lines = ["1 1"] * 30
    lines[number - 1] = malformed
    with pytest.raises(InputError, match=rf"data\.txt:{number}: must be `user item`"):
        load(tmp_path, "\n".join(lines).encode())


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x01\x02\xff\n"])
def test_an_empty_or_binary_file_is_refused(tmp_path, content):
    with pytest.raises(InputError, match=r"data\.txt"):
        load(tmp_path, content)


def test_a_truncated_gzip_is_refused(tmp_path):
    whole = gzip.compress(b"".join(b"%d %d\n" % (user, user * 7919 % 1000) for user in range(5000)))
    (tmp_path / "data.txt.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"data\.txt\.gz: cannot be read"):
        TextFile("data.txt").load(tmp_path)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.txt"):
        TextFile("nothing.txt").load(tmp_path)


def test_a_declared_catalogue_has_ids_from_one(tmp_path):
    interactions = load(tmp_path, b"1 5\n1 2\n", num_items=10)
    assert interactions.num_items == 10
    assert interactions.item_ids[interactions.items].tolist() == [5, 2]


@pytest.mark.parametrize("item", [0, 11])
def test_an_id_outside_the_declared_catalogue_is_refused(tmp_path, item):
    with pytest.raises(InputError, match=rf"between 1 and num_items=10. Received: {item}"):
        load(tmp_path, f"1 5\n1 {item}\n".encode(), num_items=10)


def load_sequences(folder: Path, content: bytes):
    (folder / "lines.txt").write_bytes(content)
    return SequenceFile("lines.txt").load(folder)


@pytest.mark.parametrize("content", [b"2 30 10\n1 10 20 10\n", b"\xef\xbb\xbf2 30 10\r\n\r\n1 10 20 10"])
def test_a_line_per_user_becomes_a_sequence(tmp_path, content):
    interactions = load_sequences(tmp_path, content)
    assert interactions.user_ids.tolist() == [1, 2]
    assert interactions.item_ids[interactions.items].tolist() == [10, 20, 10, 30, 10]
    (tmp_path / "lines.txt").unlink()
    (tmp_path / "lines.txt.gz").write_bytes(gzip.compress(content))
    assert SequenceFile("lines.txt").load(tmp_path).lengths.tolist() == [3, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 10 20\n2\n", "user 2 without items"),
        (b"1 10 20\n1 30\n", "one line per user. Received: user 1 twice"),
        (b"1 10 x\n", "only whole numbers"),
        (b"", "is empty"),
        (b"\n\n", "no numbers"),
        ("1 2 3\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    ],
)
def test_lines_that_are_no_sequences_are_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        load_sequences(tmp_path, content)


def test_pairs_that_are_sequences_name_the_class_that_reads_them(tmp_path):
    with pytest.raises(InputError, match="SequenceFile reads lines of a user and its items"):
        load(tmp_path, b"1 10 20 30\n2 10 20\n")


@pytest.mark.parametrize(("line", "hint"), [(b"1::10::5", "; CSVFile.*separator='::'"), (b"a 10", "'a 10'$")])
def test_columns_with_a_separator_name_the_reader_of_such_files(tmp_path, line, hint):
    with pytest.raises(InputError, match=hint):
        load(tmp_path, line + b"\n")


def test_a_file_is_looked_for_in_the_data_folder_beside_the_recipe_and_in_the_current_folder(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("data", "recipes", "here")]
    for number, folder in enumerate(folders, start=1):
        folder.mkdir()
        (folder / "data.txt").write_text("1 1\n" * number)
    recipe = folders[1] / "mine.py"
    recipe.write_text(
        "from aprec_like.datasets import TextFile\nfrom aprec_like.models import Popularity\n"
        "from aprec_like.recipe import Recipe\n"
        "recipe = Recipe(dataset=TextFile('data.txt'), models={'Popularity': Popularity()})\n"
    )
    monkeypatch.chdir(folders[2])
    dataset = load_recipe(recipe).dataset
    for number, folder in enumerate(folders, start=1):
        assert dataset.is_on_disk(folders[0]) and dataset.load(folders[0]).num_interactions == number
        (folder / "data.txt").unlink()
    assert not dataset.is_on_disk(folders[0])
    with pytest.raises(InputError, match="name its folder with --data DIR") as error:
        dataset.load(folders[0])
    assert all(str(folder / "data.txt") in str(error.value) for folder in folders)
