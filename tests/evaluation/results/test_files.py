"""Parquet files of a results folder: no value changes, and they are small enough to publish."""

import numpy as np
import pandas as pd

from evaluation.results.files import write_parquet


def test_a_table_of_results_is_smaller_than_by_default_and_keeps_every_bit(tmp_path):
    random = np.random.default_rng(0)
    scores = random.normal(size=6_000).astype(np.float32)
    frame = pd.DataFrame({"user": np.arange(1, 6_001), "score": scores, "NDCG@10": np.tile([0.0, 1.0, 0.5], 2_000)})
    write_parquet(tmp_path / "small", frame)
    frame.to_parquet(tmp_path / "default", index=False)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "small"), frame)
    assert (tmp_path / "small").stat().st_size < 0.5 * (tmp_path / "default").stat().st_size


def test_columns_of_every_kind_can_be_written(tmp_path):
    for frame in (
        pd.DataFrame({"user": ["a", "b"], "is_best": [True, False]}),
        pd.DataFrame({"case": np.arange(3, dtype=np.int32), "item": np.arange(3)}),
        pd.DataFrame({"score": np.zeros(0, dtype=np.float32)}),
        pd.DataFrame({"count": pd.array([1, None], dtype="Int64"), "title": ["x", None]}),
    ):
        write_parquet(tmp_path / "table", frame)
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table"), frame)
