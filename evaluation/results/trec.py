"""Exports the rankings of loaded runs as TREC runs, and their targets as qrels."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from aprec_like.errors import InputError
from evaluation.results.files import write_text
from evaluation.results.load import LoadedRuns
from evaluation.results.store import encode_name


def export_results(runs: LoadedRuns, folder: Path) -> list[Path]:
    """Write the top items as TREC runs, one per model and seed, and the targets as qrels; returns the paths."""
    written = []
    cases = runs.cases
    qrels = pd.DataFrame(
        {
            "user": _as_ids(cases["user"]),
            "zero": 0,
            "item": _as_ids(cases["target"]),
            "relevance": 1,
        }
    )
    written.append(_write_trec(folder / "qrels.txt", qrels))
    for model in runs.models:
        for seed, results in zip(model.seeds, model.folders, strict=True):
            tag = encode_name(model.name if len(model.seeds) == 1 else f"{model.name}-{seed}")
            top = results.read_top_items()
            run = pd.DataFrame(
                {
                    "user": _as_ids(top["user"]),
                    "q0": "Q0",
                    "item": _as_ids(top["item"]),
                    "rank": top["position"],
                    "score": top["score"].map("{:.9g}".format),
                    "tag": tag.replace(" ", "%20"),
                }
            )
            written.append(_write_trec(folder / f"{tag}.run", run))
    return written


def _as_ids(ids: pd.Series) -> pd.Series:
    texts = ids.astype(str)
    if texts.str.contains(r"\s").any() or (texts == "").any():
        example = texts[texts.str.contains(r"\s") | (texts == "")].iloc[0]
        raise InputError(f"ids in a TREC file must not contain white space. Received: {example!r}")
    return texts


def _write_trec(path: Path, frame: pd.DataFrame) -> Path:
    write_text(path, frame.to_csv(sep=" ", header=False, index=False, lineterminator="\n", quoting=3))
    return path
