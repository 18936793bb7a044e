import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aprec_like.out_of_core import ArrayWriter, arrays, digest_arrays, empty_array, map_array, release, select_kth, take


@pytest.fixture
def small_memory(monkeypatch):
    """Arrays of more than 64 bytes are in files, and chunks have three elements."""
    monkeypatch.setattr(arrays, "MAX_IN_MEMORY", 64)
    monkeypatch.setattr(arrays.slices, "__defaults__", (3,))


def is_mapped(array) -> bool:
    return isinstance(array.base, np.memmap)


@pytest.mark.parametrize("length", [0, 1, 16, 17, 1000])
def test_a_written_array_is_what_was_appended_and_large_ones_are_mapped(small_memory, length):
    writer = ArrayWriter(np.int32)
    for start in range(0, length, 7):
        writer.append(np.arange(start, min(start + 7, length)))
    array = writer.finish()
    assert array.tolist() == list(range(length)) and array.dtype == np.int32
    assert is_mapped(array) == (length > 16)


def test_released_pages_come_back(small_memory):
    array = empty_array((1000,), np.int64)
    assert is_mapped(array)
    array[:] = np.arange(1000)
    release(array, None, np.arange(3))
    assert array[10:20].tolist() == list(range(10, 20))


def test_functions_are_applied_chunk_by_chunk(small_memory):
    sizes = []

    def double(chunk):
        sizes.append(len(chunk))
        return 2 * chunk

    assert map_array(np.arange(8), double, np.int64).tolist() == list(range(0, 16, 2))
    assert sizes == [3, 3, 2]


def test_elements_are_taken_chunk_by_chunk(small_memory, monkeypatch):
    monkeypatch.setattr(arrays, "CHUNK", 3)
    array = map_array(np.arange(100), lambda chunk: chunk * 3, np.int32)
    positions = np.array([99, 0, 5, 5, 42, 7, 1])
    assert is_mapped(array) and take(array, positions).tolist() == (3 * positions).tolist()
    assert take(array, positions[:2]).dtype == np.int32


def test_digests_do_not_depend_on_chunks(monkeypatch):
    whole = digest_arrays(np.arange(100), np.arange(5))
    monkeypatch.setattr(arrays.slices, "__defaults__", (7,))
    assert digest_arrays(np.arange(100, dtype=np.int32), np.arange(5)) == whole != digest_arrays(np.arange(105))


NUMBERS = st.one_of(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
)


@given(values=NUMBERS, share=st.floats(0, 1))
def test_the_kth_smallest_is_that_of_the_sorted_array(values, share):
    array, k = np.array(values), int(share * (len(values) - 1))
    assert select_kth(array, k) == np.sort(array)[k]
