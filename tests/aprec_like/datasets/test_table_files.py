"""Tables of interactions. Property tests compare the reader with the csv module of Python."""

import csv
import gzip
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aprec_like.datasets import AtomicFile, CSVFile, ParquetFile, TextFile
from aprec_like.errors import InputError
from aprec_like.interactions import Interactions
from aprec_like.recipe_classes import DATA_CLASSES
from aprec_like.settings import describe, restore


def events(interactions: Interactions) -> list[tuple]:
    """(user, item) pairs in the order of the sequences, in the source's ids."""
    users = interactions.user_ids[interactions.rows].tolist()
    return list(zip(users, interactions.item_ids[interactions.items].tolist(), strict=True))


def load_csv(folder: Path, content: str | bytes, **options) -> Interactions:
    path = folder / "data.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return CSVFile("data.csv", **({"user": "u", "item": "i"} | options)).load(folder)


def test_ids_of_any_kind_are_unchanged(tmp_path):
    loaded = load_csv(tmp_path, "u,i\nzoë,007\nbob,7\nzoë,x y\n")
    assert events(loaded) == [("bob", "7"), ("zoë", "007"), ("zoë", "x y")]


def test_ids_that_are_whole_numbers_are_numbers(tmp_path):
    loaded = load_csv(tmp_path, "u,i\n10,1\n9,-2\n")
    assert events(loaded) == [(9, -2), (10, 1)]


def test_rows_are_ordered_by_time_and_ties_by_the_file(tmp_path):
    loaded = load_csv(tmp_path, "u,i,t\n1,30,5\n1,10,4\n1,20,5\n", timestamp="t")
    assert events(loaded) == [(1, 10), (1, 30), (1, 20)]
    assert loaded.timestamps.tolist() == [4, 5, 5]


@pytest.mark.parametrize("dates", ["2020-01-01T00:00:10Z", "2020-01-01 00:00:10", "2020-01-01T01:00:10+01:00"])
def test_dates_are_seconds_since_1970(tmp_path, dates):
    loaded = load_csv(tmp_path, f"u,i,t\n1,1,{dates}\n", timestamp="t")
    assert loaded.timestamps.tolist() == [1577836810]


def test_ratings_are_read(tmp_path):
    loaded = load_csv(tmp_path, "i,u,r\n1,1,4.5\n2,1,3\n", rating="r")
    assert loaded.ratings.tolist() == [4.5, 3.0]


def test_quotes_byte_order_mark_crlf_gzip_and_other_separators(tmp_path):
    text = '\ufeffu;i\r\n"a;b";"line\nbreak"\r\n'
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(text.encode()))
    loaded = CSVFile("data.csv", user="u", item="i", separator=";").load(tmp_path)
    assert events(loaded) == [("a;b", "line\nbreak")]


def test_a_file_without_a_header_gets_one(tmp_path):
    assert events(load_csv(tmp_path, "1,2\n1,3\n", header=("u", "i"))) == [(1, 2), (1, 3)]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("u,i\n1,2\n1\n", {}, r"data\.csv:3: must have 2 columns\. Received: 1"),
        ("u,i\n1,2\n\n1,2,3\n", {}, r"data\.csv:4: must have 2 columns\. Received: 3"),
        ("u,i\n1,2\n,3\n", {}, r"data\.csv:3: u must be an id\. Received: ''"),
        ("u,i,t\n1,2,9\n1,2,nan\n", {"timestamp": "t"}, r"data\.csv:3: t must be a number or .*'nan'"),
        ("u,i,t\n1,2,9\n\n1,2,\n", {"timestamp": "t"}, r"data\.csv:4: t must be a number"),
        ("u,i,t\n1,2,never\n", {"timestamp": "t"}, r"data\.csv:2: t must be a number"),
        ("u,i,r\n1,2,inf\n", {"rating": "r"}, r"data\.csv:2: r must be a number"),
        ("user,i\n1,2\n", {}, r"has no column 'u'; it has user, i$"),
        ("u;i\n1;2\n", {}, r"it has u;i; CSVFile\(\.\.\., separator=';'\) reads"),
        ("a1,17\na1,19\n", {}, r"it has a1, 17; CSVFile\(\.\.\., header=\('user', 'item', \.\.\.\)\) reads"),
        ("u,i,i\n1,2,3\n", {}, r"has more than one column 'i'"),
        ("u,i\n", {}, r"has no interactions"),
        ("", {}, r"data\.csv"),
        (b"u,i\n1,\xff\xfe\n", {}, r"data\.csv"),
    ],
)
def test_a_mistake_is_reported_in_one_line(tmp_path, content, options, message):
    with pytest.raises(InputError, match=message) as caught:
        load_csv(tmp_path, content, **options)
    assert "\n" not in str(caught.value)


def test_a_truncated_gzip_is_refused(tmp_path):
    whole = gzip.compress(b"u,i\n" + b"".join(b"%d,%d\n" % (n, n * 7919 % 1000) for n in range(5000)))
    (tmp_path / "data.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        CSVFile("data.csv", user="u", item="i").load(tmp_path)


def test_parquet_is_read_and_errors_name_the_row(tmp_path):
    frame = pd.DataFrame(
        {"u": ["a", "b", "a"], "i": [3, 1, 2], "t": pd.to_datetime(["2020-01-02"] * 2 + ["2020-01-01"])}
    )
    frame.to_parquet(tmp_path / "data.parquet")
    loaded = ParquetFile("data.parquet", user="u", item="i", timestamp="t").load(tmp_path)
    assert events(loaded) == [("a", 2), ("a", 3), ("b", 1)]
    frame.assign(u=["a", None, "b"]).to_parquet(tmp_path / "data.parquet")
    with pytest.raises(InputError, match=r"row 2: u must be an id\. Received: None"):
        ParquetFile("data.parquet", user="u", item="i").load(tmp_path)
    (tmp_path / "data.parquet").write_bytes(b"PAR1 and nothing")
    with pytest.raises(InputError, match="not a Parquet file"):
        ParquetFile("data.parquet", user="u", item="i").load(tmp_path)


def test_an_atomic_file_of_recbole(tmp_path):
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (tmp_path / "ml.inter").write_text(header + '1\t"x\t3\t20\n1\t5\t4\t10\n')
    loaded = AtomicFile("ml.inter").load(tmp_path)
    assert events(loaded) == [(1, "5"), (1, '"x')]
    assert loaded.ratings.tolist() == [4, 3]


def test_an_atomic_file_without_times_keeps_its_order(tmp_path):
    (tmp_path / "ml.inter").write_text("item_id:token\tuser_id:token\n9\t1\n8\t1\n")
    assert events(AtomicFile("ml.inter").load(tmp_path)) == [(1, 9), (1, 8)]


def test_the_order_of_an_atomic_file_is_not_guessed(tmp_path):
    (tmp_path / "ml.inter").write_text("user_id:token\titem_id:token\ttime:float\n1\t9\t20\n1\t8\t10\n")
    with pytest.raises(InputError, match="no column 'timestamp' but time; name it"):
        AtomicFile("ml.inter").load(tmp_path)
    for wrong in ({"timestamp": "tmie"}, {"timestamp": "time", "rating": "stars"}):
        with pytest.raises(InputError, match=r"has no column '(tmie|stars)'"):
            AtomicFile("ml.inter", **wrong).load(tmp_path)
    assert events(AtomicFile("ml.inter", timestamp="time").load(tmp_path)) == [(1, 8), (1, 9)]
    assert events(AtomicFile("ml.inter", timestamp=None).load(tmp_path)) == [(1, 9), (1, 8)]


# Fields that are ids, resemble ids, or are no ids.
FIELDS = st.one_of(
    st.integers(-50, 50).map(str),
    st.sampled_from(["", " ", "007", "1.0", "1e3", "nan", "NA", "+1", "99999999999999999999", "é", '"', "a b", "-"]),
    st.text(max_size=3),
)
SEPARATORS = st.sampled_from([" ", "\t", "  ", ",", ";"])
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\n\n", ""])


@st.composite
def malformed(draw) -> bytes:
    """Lines of two fields that may be valid, malformed, or random bytes."""
    lines = [draw(FIELDS) + draw(SEPARATORS) + draw(FIELDS) + draw(LINE_ENDS) for _ in range(draw(st.integers(0, 6)))]
    content = "".join(lines).encode("utf-8", "surrogatepass")
    junk = draw(st.binary(max_size=4)) if draw(st.booleans()) else b""
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + content + junk


def expected_pairs(content: bytes) -> list[tuple[int, int]] | None:
    """Pairs that `TextFile` should read, by a plain loop; `None` if it should refuse the file."""
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    pairs = []
    for line in text.split(b"\n"):
        fields = line.replace(b"\t", b" ").split(b" ")
        fields = [field for field in fields if field]
        if not fields:
            continue
        digits = [field.lstrip(b"+-") for field in fields]
        if len(fields) != 2 or not all(digit.isdigit() and len(digit) <= 18 for digit in digits):
            return None
        if any(len(field) - len(digit) > 1 for field, digit in zip(fields, digits, strict=True)):
            return None
        pairs.append((int(fields[0]), int(fields[1])))
    return pairs or None


@settings(max_examples=300)
@given(content=malformed())
def test_a_malformed_text_file_is_refused_or_read_without_losing_a_line(tmp_path, content):
    (tmp_path / "data.txt").write_bytes(content)
    expected = expected_pairs(content)
    try:
        loaded = TextFile("data.txt").load(tmp_path)
    except InputError as error:
        assert expected is None, error
        assert "\n" not in str(error)
        return
    assert expected is not None, content
    assert events(loaded) == sorted(expected, key=lambda pair: pair[0])


@settings(max_examples=300)
@given(content=malformed())
def test_a_malformed_csv_is_refused_or_read_without_losing_a_row(tmp_path, content):
    try:
        loaded = load_csv(tmp_path, b"u,i\n" + content)
    except InputError as error:
        assert "\n" not in str(error)
        return
    rows = [row for row in csv.reader(io.StringIO(content.decode(), newline="")) if row]
    assert loaded.num_interactions == len(rows)
    assert all(len(row) == 2 for row in rows)


@pytest.mark.parametrize("text", ["1::10::4\n2::20::5\n", "1::10::4\r\n2::20::5\r\n", '1::10::4\n2::20::"5\n'])
def test_separators_of_several_characters(tmp_path, text):
    loaded = load_csv(tmp_path, text, separator="::", header=("u", "i", "r"))
    assert events(loaded) == [(1, 10), (2, 20)]


def test_a_line_of_a_file_with_a_long_separator_is_named(tmp_path):
    with pytest.raises(InputError, match=r"data.csv:3: must have 3 columns. Received: 2"):
        load_csv(tmp_path, "u::i::r\n1::10::4\n1::10\n", separator="::")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "cp1252"])
def test_other_encodings_are_read(tmp_path, encoding):
    loaded = load_csv(tmp_path, "u,i\nzoë,1\n".encode(encoding), encoding=encoding)
    assert events(loaded) == [("zoë", 1)]


def test_another_encoding_than_utf_8_is_reported_with_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"is UTF-16 text; name it: CSVFile\(.*encoding='utf-16'\)"):
        load_csv(tmp_path, "u,i\n1,1\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"name its encoding, such as CSVFile\(.*encoding='latin-1'\)"):
        load_csv(tmp_path, "u,i\nzoë,1\n".encode("latin-1"))


def test_an_empty_file_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"data\.csv: is empty"):
        load_csv(tmp_path, "")


def test_settings_that_cannot_be_meant_are_refused():
    for settings_, message in (
        ({"user": "u", "item": "u"}, "needs different columns. Received: 'u' twice"),
        ({"user": "u", "item": "i", "time_unit": "h"}, "time_unit of s, ms, us, ns"),
        ({"user": "u", "item": "i", "encoding": "utf-99"}, "encoding that Python knows"),
        ({"user": "u", "item": "i", "separator": ""}, "needs a separator"),
    ):
        with pytest.raises(ValueError, match=message):
            CSVFile("data.csv", **settings_)


@pytest.mark.parametrize(("unit", "factor"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_times_in_a_smaller_unit_are_reported_and_converted_when_it_is_named(tmp_path, unit, factor):
    seconds = [1_577_836_810, 1_577_836_805]
    text = "u,i,t\n" + "".join(f"1,{item},{second * factor}\n" for item, second in enumerate(seconds))
    with pytest.raises(InputError, match=f"t: must be in seconds. Received: .*; name the unit: time_unit='{unit}'"):
        load_csv(tmp_path, text, timestamp="t")
    loaded = load_csv(tmp_path, text, timestamp="t", time_unit=unit)
    assert loaded.timestamps.tolist() == sorted(seconds) and events(loaded) == [(1, 1), (1, 0)]


def test_times_in_two_units_are_refused(tmp_path):
    """Of three times one is in milliseconds, which would put it last."""
    text = "u,i,t\n1,0,1577836810\n1,1,1577836805000\n1,2,1577836800\n"
    with pytest.raises(InputError, match=r"1577836805000 \(about .*\) beside 1577836810: use one unit for all"):
        load_csv(tmp_path, text, timestamp="t")


def test_ids_that_differ_in_white_space_alone_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"data.csv:4: i '10 ' and '10' differ in white space alone"):
        load_csv(tmp_path, "u,i\n1,10\n2,20\n3,10 \n")
    assert events(load_csv(tmp_path, "u,i\n1, 10\n2, 20\n")) == [(1, " 10"), (2, " 20")]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_that_contradict_an_unused_column_of_times_are_refused(tmp_path, suffix):
    frame = pd.DataFrame({"u": [1, 2, 1, 2], "i": [1, 2, 3, 4], "Timestamp": [5, 9, 4, 10]})
    reader = {"csv": CSVFile, "parquet": ParquetFile}[suffix]

    def load(frame: pd.DataFrame) -> Interactions:
        path = tmp_path / f"data.{suffix}"
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
        return reader(path.name, user="u", item="i").load(tmp_path)

    with pytest.raises(InputError, match=r"data.*(:4|row 3): is earlier .*; name it: timestamp='Timestamp'"):
        load(frame)
    assert load(frame.sort_values("Timestamp")).num_interactions == 4
    assert load(frame.assign(Timestamp="morning")).num_interactions == 4


def test_settings_added_later_are_described_only_where_they_are_used():
    described = describe(CSVFile("data.csv", "u", "i"))
    assert "encoding" not in described and "time_unit" not in described
    assert describe(CSVFile("data.csv", "u", "i", time_unit="ms"))["time_unit"] == "ms"
    assert restore(describe(CSVFile("a.csv", "u", "i", encoding="latin-1")), DATA_CLASSES).encoding == "latin-1"
