"""The commands `list`, `fetch` and `describe` of `evaluation.data`."""

import pytest

from aprec_like.datasets import movielens
from evaluation import data
from tests.aprec_like.datasets.small_movielens import write_zip

FILES = {
    "circle.txt": ("1 1\n1 2\n2 1\n", "users         2"),
    "table.csv": ("userId,movieId,timestamp\na,x,10\na,y,10\nb,x,5\n", "100.0% of consecutive"),
    "table.tsv": ("user\titem\n1\t2\n", "interactions  1"),
    "ml.inter": ("user_id:token\titem_id:token\n1\t2\n1\t3\n", "items         2"),
}


@pytest.fixture
def command(monkeypatch, capfd, tmp_path):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["data", *map(str, arguments), "--data", str(tmp_path)])
        code = data.run_command(data.main)
        return code, *capfd.readouterr()

    return call


def test_list_shows_names_sizes_and_which_are_on_disk(command, tmp_path):
    (tmp_path / "ml-1m.txt").write_text("")
    code, out, _ = command("list")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert "999,611" in rows["MovieLens1M"] and " yes " in rows["MovieLens1M"]
    assert "1,271,638" in rows["Gowalla"] and " no " in rows["Gowalla"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_described(command, tmp_path, name):
    content, expected = FILES[name]
    (tmp_path / name).write_text(content)
    code, out, err = command("describe", tmp_path / name)
    assert code == 0, err
    assert expected in out
    assert r"\\" in out and "GiB" in out


def test_columns_with_unusual_names_must_be_named(command, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("who,what\na,x\n")
    code, _, err = command("describe", path)
    assert code == 2 and "--user NAME, of who, what" in err
    code, out, _ = command("describe", path, "--user", "who", "--item", "what")
    assert code == 0 and "users         1" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("describe", "nothing.txt"), "is neither a file, a folder of Parquet files, nor one of MovieLens1M"),
        (("fetch", "Nothing"), "there is no dataset 'Nothing'"),
    ],
)
def test_an_unknown_name_is_reported_in_one_line(command, arguments, message):
    code, _, err = command(*arguments)
    assert code == 2 and message in err
    assert err.startswith("error: ") and err.count("\n") == 1


def test_random_bytes_are_reported_in_one_line(command, tmp_path):
    for name in ("a.txt", "a.csv", "a.inter", "a.parquet", "a.txt.gz"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 3)
        code, _, err = command("describe", tmp_path / name)
        assert code == 2 and err.startswith("error: ") and err.count("\n") == 1, (name, err)


def test_ratings_and_titles_of_movielens_are_described_as_published_and_as_preprocessed(command, tmp_path, monkeypatch):
    write_zip(tmp_path)
    interactions = movielens.preprocess_as_sasrec(movielens.read_ratings(tmp_path / "ml-1m.zip"))
    monkeypatch.setattr(movielens, "SEQUENCES_SHA256", interactions.digest())
    code, out, err = command("describe", tmp_path / "ml-1m.zip")
    assert code == 0, err
    assert [line for line in out.splitlines() if line.startswith("  items ")] == [
        "  items         3",
        "  items         2",
    ]
    assert "2 Amélie (2001) (5)" in out and "1 Amélie (2001) (5)" in out


def test_both_densities_count_a_repeated_pair_once(command, tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1,1\n1,1\n2,2\n2,2\n2,2\n")
    code, out, _ = command("describe", tmp_path / "a.csv")
    assert code == 0 and "50.0000% of all pairs" in out and r"& 50.0000\% \\" in out


def test_lines_of_sequences_are_described(command, tmp_path):
    (tmp_path / "LastFM.txt").write_text("1 10\n2 10 20 30\n")
    code, out, _ = command("describe", tmp_path / "LastFM.txt")
    assert code == 0 and "interactions  4" in out


def test_files_with_other_separators_encodings_and_times_are_described_as_recipes_read_them(command, tmp_path):
    path = tmp_path / "shop.csv"
    path.write_bytes("user;item;time\nzoë;x;1700000000000\nzoë;y;1700000001000\n".encode("latin-1"))
    options = ("--separator", ";", "--encoding", "latin-1", "--time-unit", "ms")
    code, out, err = command("describe", path, *options)
    assert code == 0, err
    assert "interactions  2" in out and "2023-11-14 to 2023-11-14" in out
    (tmp_path / "events.inter").write_text("user_id:token\titem_id:token\ttimestamp:float\na\tx\t1\n")
    code, _, err = command("describe", tmp_path / "events.inter", "--separator", ";")
    assert code == 2 and "is no .csv or .tsv file or text with a --separator, which alone have --separator" in err


def test_the_ratings_dat_of_movielens_is_described_with_a_separator_and_a_header(command, tmp_path):
    path = tmp_path / "ratings.dat"
    path.write_text("01::x::5::1700000000\n01::y::4::1700000001\n")
    assert "CSVFile(..., separator='::') reads such a file" in command("describe", path)[2]
    assert "header=('user', 'item', ...)" in command("describe", path, "--separator", "::")[2]
    code, out, err = command("describe", path, "--separator", "::", "--header", "user,item,stars,time")
    assert code == 0, err
    assert "interactions  2" in out and "2023-11-14 to 2023-11-14" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--user", "user", "--item", "user"), "CSVFile needs different columns. Received: 'user' twice"),
        (("--encoding", "klingon"), "unknown encoding: klingon"),
        (("--time-unit", "weeks"), "CSVFile needs a time_unit of s, ms, us, ns. Received: 'weeks'"),
    ],
)
def test_wrong_settings_of_a_file_are_refused_in_one_line(command, tmp_path, options, message):
    path = tmp_path / "shop.csv"
    path.write_text("user,item\na,x\n")
    code, _, err = command("describe", path, *options)
    assert code == 2 and err == f"error: {path}: {message}\n"
