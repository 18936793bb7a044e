"""Columns of per_user.parquet, read in row groups."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from aprec_like.errors import InputError
from aprec_like.metrics import NDCG
from aprec_like.out_of_core import arrays
from evaluation.results import user_columns
from evaluation.results.user_columns import open_user_columns, read_metric_values

USERS = ["ann", "bob", "", "eve é", "dan"]
CASES = {"user": USERS, "target": [5, 6, 7, 8, 9]}


def open_table(path, columns, **options):
    """Write columns as Parquet and open them."""
    pa.parquet.write_table(pa.table(columns), path, **options)
    return open_user_columns(path, path.open("rb"))


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(user_columns, "BATCH_ROWS", 2)
    monkeypatch.setattr(arrays, "MAX_IN_MEMORY", 8)


def digest(path, columns, **options):
    with open_table(path, columns, **options) as table:
        return table.digest_cases()


def test_the_digest_of_cases_depends_on_users_and_targets_alone(tmp_path, small_batches):
    expected = digest(tmp_path / "a", CASES)
    assert digest(tmp_path / "a", CASES | {"rank": [1.0] * 5}, row_group_size=3, use_dictionary=False) == expected
    assert digest(tmp_path / "a", CASES | {"user": pa.array(USERS, pa.large_string())}, row_group_size=1) == expected
    others = [
        CASES | {"user": ["ann", "bob", "e", "ve é", "dan"]},
        CASES | {"user": ["annbob", "", "", "eve é", "dan"]},
        CASES | {"user": ["bob", "ann", "", "eve é", "dan"]},
        CASES | {"user": ["ann", "bob", None, "eve é", "dan"]},
        CASES | {"target": [5, 6, 7, 8, 10]},
        CASES | {"target": ["5", "6", "7", "8", "9"]},
        {name: column[:4] for name, column in CASES.items()},
        {"user": CASES["target"], "target": CASES["user"]},
    ]
    digests = [digest(tmp_path / "a", other) for other in others]
    assert len({expected, *digests}) == len(others) + 1


def test_values_are_the_stored_ones_or_follow_from_the_ranks(tmp_path, small_batches):
    ranks = np.array([1.0, 3.0, np.inf, 2.0, 11.0])
    columns = CASES | {"rank": ranks, "Recall@1": np.array([1, 0, 0, 0, 0], np.float32), "Hits": [1, 0, 2, 0, 3]}
    with open_table(tmp_path / "table", columns, row_group_size=2) as table:
        values = read_metric_values(table, ["Recall@1", "NDCG@10", "Hits"])
        assert table.num_users == 5
        pd.testing.assert_frame_equal(table.read_cases(), pd.DataFrame(CASES))
    assert values["Recall@1"].tolist() == [1, 0, 0, 0, 0] and values["Recall@1"].dtype == np.float32
    assert values["Hits"].tolist() == [1, 0, 2, 0, 3] and isinstance(values["Hits"].base, np.memmap)
    assert values["NDCG@10"].tolist() == NDCG(10).per_user(ranks).tolist()


@pytest.mark.parametrize(
    ("columns", "metric", "message"),
    [
        ({"MRR@5": [1.0, np.nan, 0, 0, 0]}, "MRR@5", "its values of MRR@5 must be finite numbers"),
        ({"MRR@5": [1, None, 0, 0, 0]}, "MRR@5", "its values of MRR@5 must be finite numbers"),
        ({"MRR@5": ["1", "2", "3", "4", "5"]}, "MRR@5", "MRR@5 must hold numbers. Received: string"),
        ({}, "NDCG@10", "has no values of NDCG@10, and no rank to compute them from"),
        ({"rank": [1.0, 0.5, 1, 1, 1]}, "NDCG@10", "its column rank must hold numbers of at least 1"),
        ({"rank": [1.0, None, 1, 1, 1]}, "NDCG@10", "its column rank must hold numbers of at least 1"),
    ],
)
def test_values_that_are_no_numbers_are_refused(tmp_path, columns, metric, message):
    with pytest.raises(InputError, match=message), open_table(tmp_path / "table", CASES | columns) as table:
        read_metric_values(table, [metric])


def test_a_table_without_cases_and_a_damaged_one_are_refused(tmp_path):
    with pytest.raises(InputError, match="it has no column 'target'"), open_table(tmp_path / "a", {"user": [1]}):
        pass
    (tmp_path / "b").write_bytes(b"PAR1 and nothing else")
    with (
        pytest.raises(InputError, match="b: is damaged"),
        open_user_columns(tmp_path / "b", (tmp_path / "b").open("rb")),
    ):
        pass
