import gzip
from pathlib import Path

import pytest

from aprec_like.datasets import TextFile
from aprec_like.errors import InputError


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
