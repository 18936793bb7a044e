"""Titles of items come from a table beside the interactions."""

import gzip

import pandas as pd
import pytest

from aprec_like.datasets import CSVFile
from aprec_like.errors import InputError

ROWS = "user,film\na,7\na,12\nb,7\nb,3\n"
TITLES = 'film,year,title\n12,1999,"Bug\'s Life, A"\n7,1995,Toy Story\n99,2000,Unseen\n'


def titles(folder, content=TITLES, name="films.csv", rows=ROWS):
    """Return the titles of the films of `rows` by id."""
    (folder / "rows.csv").write_text(rows)
    if content is not None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    loaded = CSVFile("rows.csv", "user", "film", titles=name).load(folder)
    return dict(zip(map(str, loaded.item_ids), loaded.item_columns["title"], strict=True))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("rows", [ROWS, ROWS.replace("12", "x-12")], ids=["numbers", "strings"])
def test_items_have_their_titles_and_those_without_have_none(tmp_path, rows):
    found = titles(tmp_path, TITLES.replace("12,", "x-12,") if "x-12" in rows else TITLES, rows=rows)
    assert sorted(found.values()) == ["", "Bug's Life, A", "Toy Story"] and found["7"] == "Toy Story"


def test_other_formats_and_changed_titles_are_read(tmp_path):
    assert titles(tmp_path, gzip.compress(TITLES.encode()), "films.csv.gz")["7"] == "Toy Story"
    assert titles(tmp_path, "film\ttitle\n7\tA, B\n", "films.tsv")["7"] == "A, B"
    pd.DataFrame({"film": [7], "title": ["Toys"]}).to_parquet(tmp_path / "films.parquet")
    assert titles(tmp_path, None, "films.parquet")["7"] == "Toys"
    assert titles(tmp_path, TITLES.replace("Toy Story", "Other"))["7"] == "Other"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "films.csv: there is no such file; looked for"),
        ("movie,title\n7,Toy Story\n", "has no column 'film', but movie, title"),
        ("film,title\n7,Toy Story\n7,Toys\n", "item 7 has several titles"),
        ("film,title\n007,Toy Story\n", "has none of the items, which have ids such as 3, not 007"),
        ("film,title\n", "has none of the items"),
        ("", "films.csv: cannot be read: EmptyDataError"),
    ],
)
def test_a_wrong_table_of_titles_is_one_line(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        titles(tmp_path, content)
