"""Rows of top_items.parquet, read in parts and arranged by user."""

import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from evaluation.calibration import reliability as reliability_module
from evaluation.calibration.reliability import Predictions, confidence_curve, reliability
from evaluation.results import top_items, user_columns
from evaluation.results.store import RunFolder

CATALOGUE = pd.Index([f"item {number}" for number in range(9)])
USERS = ["dan", "ann", "eve", "bob", "cat", "fay"]
LISTS = {"ann": [3, 1, 4], "bob": [1, 5], "cat": [8, 2, 6]}
"""Rows of the catalogue; the other users have seen all items."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for module in (top_items, user_columns):
        monkeypatch.setattr(module, "BATCH_ROWS", 2)
    monkeypatch.setattr(top_items, "CHUNK_USERS", 2)
    return RunFolder(tmp_path).model("Model", 1)


def write(folder, rows):
    """Write rows of (user, position, item, score), and all users."""
    folder.write_per_user(pd.DataFrame({"user": USERS, "target": CATALOGUE[:6]}))
    folder.write_top_items(pd.DataFrame(rows, columns=["user", "position", "item", "score"]))
    folder.finish(seconds_to_best=0.0)


def rows_of(lists):
    return [
        (user, position, CATALOGUE[item], -position)
        for user, items in lists.items()
        for position, item in enumerate(items, start=1)
    ]


def read(folder):
    with folder.open_per_user() as users, folder.open_top_items() as top:
        return list(top.chunks(users, CATALOGUE))


def test_lists_are_arranged_by_user_and_users_without_any_are_there(folder):
    write(folder, rows_of(LISTS))
    chunks = read(folder)
    assert [chunk.users for chunk in chunks] == [slice(0, 2), slice(2, 4), slice(4, 6)]
    items, scores = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("items", "scores"))
    expected = [[-1] * 3, [3, 1, 4], [-1] * 3, [1, 5, -1], [8, 2, 6], [-1] * 3]
    assert items.tolist() == expected
    np.testing.assert_array_equal(scores, np.where(items < 0, np.nan, [-1, -2, -3]))
    with folder.open_top_items() as top:
        assert top.first_users(5) == ["ann"] and top.has_user("cat") and not top.has_user("eve")
        found = [np.concatenate(columns).tolist() for columns in zip(*top.items(CATALOGUE), strict=True)]
    assert found == [[1, 2, 3, 1, 2, 1, 2, 3], [3, 1, 4, 1, 5, 8, 2, 6]]
    with folder.open_per_user() as users:
        assert [users.find_user(user) for user in ("dan", "cat", "gil")] == [0, 4, None]
        assert users.find_targets(CATALOGUE[2:]).tolist() == [-1, -1, 0, 1, 2, 3]


def test_a_table_without_rows_gives_lists_without_items(folder):
    write(folder, rows_of({}))
    assert [chunk.items.shape for chunk in read(folder)] == [(2, 0)] * 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (rows_of({"bob": [1, 5], "ann": [3]}), "must have the users of per_user.parquet in their order"),
        (rows_of({"ann": [1], "bob": [5]}) + rows_of({"ann": [3]}), "in their order"),
        (rows_of({"ann": [1], "gil": [5]}), "in their order"),
        ([("ann", 0, "item 1", 1.0)], "positions must count from 1"),
        ([("ann", 1, "item 1", 1.0), ("bob", 1000, "item 1", 1.0)], "positions must count from 1"),
        ([("ann", 1, "item 99", 1.0)], "items that items.parquet does not have"),
        ([("ann", "first", "item 1", 1.0)], "'position' must hold numbers"),
    ],
)
def test_damaged_lists_are_refused(folder, rows, message):
    write(folder, rows)
    with pytest.raises(InputError, match=message):
        read(folder)


def test_calibration_does_not_depend_on_the_size_of_parts(monkeypatch):
    random = np.random.default_rng(0)
    probabilities = random.random((50, 4)).astype(np.float32)
    probabilities[::7, 2:] = np.nan
    predictions = Predictions(probabilities, random.random((50, 4)) < 0.3)
    curves, bins = confidence_curve(predictions), reliability(predictions, 5)
    values = np.sort(probabilities[~np.isnan(probabilities)])
    assert bins.predicted == pytest.approx([part.mean() for part in np.array_split(values, 5)], rel=0.05)
    assert bins.counts.sum() == len(values) and np.ptp(bins.counts) <= 2
    monkeypatch.setattr(reliability_module, "PART_SIZE", 8)
    assert np.allclose(confidence_curve(predictions), curves, rtol=1e-12)
    assert np.allclose(reliability(predictions, 5).observed, bins.observed, rtol=1e-12)
