"""Arrays of strings without Python objects."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aprec_like.out_of_core import StringArray, StringWriter, arrays, load_arrays, save_arrays, strings, to_series

TEXTS = st.lists(st.text(max_size=6), max_size=12)


def from_list(texts):
    return StringArray.from_objects(np.array(texts, object))


@given(texts=TEXTS, data=st.data())
def test_indexing_is_that_of_an_array_of_objects(texts, data):
    array, expected = from_list(texts), np.array(texts, object)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(texts))] * 2)))
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1))) if texts else []
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), bool)
    part = array[start:stop]
    for index in (slice(None), mask, np.array(rows, np.int64)):
        assert array[index].tolist() == expected[index].tolist()
    assert len(part) == stop - start and np.asarray(part).tolist() == list(part) == texts[start:stop]
    assert part[mask[start:stop]].tolist() == expected[start:stop][mask[start:stop]].tolist()
    assert [array[row] for row in rows] == expected[rows].tolist()


@given(texts=TEXTS, sizes=st.lists(st.integers(0, 5), min_size=1))
def test_a_written_array_is_what_was_appended(texts, sizes):
    writer, start = StringWriter(), 0
    for size in [*sizes, len(texts)]:
        writer.append(pa.array(texts, pa.string())[start : start + size])
        start += size
    assert writer.finish().tolist() == texts


def test_many_strings_are_mapped_and_copied_in_chunks(monkeypatch, tmp_path):
    texts = [f"id {number} é" for number in range(100)]
    monkeypatch.setattr(arrays, "MAX_IN_MEMORY", 64)
    monkeypatch.setattr(strings, "CHUNK_STRINGS", 7)
    save_arrays(tmp_path / "stored", {"ids": from_list(texts)[10:], "numbers": np.arange(3)})
    stored = load_arrays(tmp_path / "stored")
    assert isinstance(stored["ids"].data.base, np.memmap) and isinstance(stored["ids"].offsets.base, np.memmap)
    assert stored["ids"].tolist() == texts[10:] and stored["numbers"].tolist() == [0, 1, 2]
    taken = stored["ids"][np.arange(89, -1, -1)]
    assert isinstance(taken.data.base, np.memmap) and taken.tolist() == texts[:9:-1]


def test_a_column_of_a_table_shares_the_memory():
    array = from_list(["ann", "bob", "eve"])
    column = to_series(array[1:])
    assert column.tolist() == ["bob", "eve"] and column.dtype == "str"
    assert pa.Array.from_pandas(column).buffers()[2].address == array.data.ctypes.data


def test_anything_but_strings_is_refused():
    with pytest.raises(TypeError, match="must contain strings"):
        from_list(["a", 1])
    with pytest.raises(IndexError, match="step of 1"):
        from_list(["a", "b"])[::2]
