"""Exports the rankings of loaded runs as TREC runs, and their targets as qrels, in parts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from aprec_like.errors import InputError
from aprec_like.files import atomic_write
from evaluation.results.load import LoadedRuns
from evaluation.results.store import encode_name


def export_results(runs: LoadedRuns, folder: Path) -> list[Path]:
    """Write the top items as TREC runs, one per model and seed, and the targets as qrels; returns the paths."""
    written = []
    if first := next((model.folders[0] for model in runs.models if model.folders), None):
        with first.open_per_user() as users:
            written.append(_write_trec(folder / "qrels.txt", map(_as_qrels, users.cases())))
    for model in runs.models:
        for seed, results in zip(model.seeds, model.folders, strict=True):
            tag = encode_name(model.name if len(model.seeds) == 1 else f"{model.name}-{seed}")
            with results.open_top_items() as top:
                frames = (_as_run(frame, tag.replace(" ", "%20")) for frame in top.frames())
                written.append(_write_trec(folder / f"{tag}.run", frames))
    return written


def _as_qrels(cases: pd.DataFrame) -> pd.DataFrame:
    columns = {"user": _as_ids(cases["user"]), "zero": 0, "item": _as_ids(cases["target"]), "relevance": 1}
    return pd.DataFrame(columns)


def _as_run(top: pd.DataFrame, tag: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "user": _as_ids(top["user"]),
            "q0": "Q0",
            "item": _as_ids(top["item"]),
            "rank": top["position"],
            "score": top["score"].map("{:.9g}".format),
            "tag": tag,
        }
    )


def _as_ids(ids: pd.Series) -> pd.Series:
    texts = ids.astype(str)
    if texts.str.contains(r"\s").any() or (texts == "").any():
        example = texts[texts.str.contains(r"\s") | (texts == "")].iloc[0]
        raise InputError(f"ids in a TREC file must not contain white space. Received: {example!r}")
    return texts


def _write_trec(path: Path, frames: Iterable[pd.DataFrame]) -> Path:
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        for frame in frames:
            frame.to_csv(file, sep=" ", header=False, index=False, lineterminator="\n", quoting=3)
    return path
