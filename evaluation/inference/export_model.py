"""Exports a finished model of a results folder in one of several formats, each checked against `recommend`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

import aprec_like
from aprec_like.datasets.download import default_data_dir
from aprec_like.errors import InputError
from aprec_like.files import remove_folder, storage_errors
from aprec_like.types import Json
from evaluation.cli import DONE
from evaluation.inference.exported import TOLERANCE, Exported, ExportSource, check_export, checked_histories
from evaluation.inference.onnx_model import load_onnx, write_onnx
from evaluation.inference.recommendations import load_model
from evaluation.inference.saved_model import load_saved_model, write_saved_model
from evaluation.inference.weights_files import load_keras, load_safetensors, write_keras, write_safetensors
from evaluation.printable import unfiltered
from evaluation.results.files import write_json, write_text
from evaluation.results.store import RunFolder

DESCRIPTION, ITEMS = "export.json", "items.csv"


@dataclass(frozen=True)
class ExportOptions:
    """The command line of `evaluation.export`.

    Args:
        run: results folder.
        model: name of a finished model.
        to: folder to write, which must not exist or be empty.
        format: name of the format.
        seed: training seed; `None` for the first finished one.
        k: number of items that are recommended unless a request says otherwise.
        data: folder of data files; `None` for the default.
        recipe: recipe file whose own classes are loaded; `None` for none.
    """

    run: Path
    model: str
    to: Path
    format: str
    seed: int | None
    k: int
    data: Path | None
    recipe: Path | None = None


@dataclass(frozen=True)
class Format:
    """A format of exported models.

    Args:
        write: writes a model to a folder and returns what export.json says about it.
        load: loads it again from the folder, in the way that its users would.
    """

    write: Callable[[ExportSource, Path], Json]
    load: Callable[[ExportSource, Path], Exported]


FORMATS = {
    "saved_model": Format(write_saved_model, load_saved_model),
    "onnx": Format(write_onnx, load_onnx),
    "keras": Format(write_keras, load_keras),
    "safetensors": Format(write_safetensors, load_safetensors),
}


def export_model(options: ExportOptions) -> int:
    """Export the model that the options name; returns the exit code."""
    if os.path.lexists(options.to) and not (options.to.is_dir() and not any(options.to.iterdir())):
        raise InputError(f"{options.to}: exists already; --to needs a new folder")
    source = _load_source(options)
    kind = FORMATS[options.format]
    with storage_errors(options.to):
        options.to.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=options.to.parent))
    try:
        with Progress(console=Console(file=unfiltered(sys.stderr)), transient=True) as progress, storage_errors(part):
            writing = progress.add_task(f"writing {options.format}", total=None)
            details = kind.write(source, part)
            progress.remove_task(writing)
            num_checked = check_export(source, kind.load(source, part), progress)
            write_json(part / DESCRIPTION, _describe(options, source, num_checked) | details)
            write_text(part / ITEMS, _item_table(source))
            part.chmod(0o755)
            part.replace(options.to)
    finally:
        remove_folder(part)
    print(f"{options.to}: {options.model} as {options.format}; same as `recommend` for {num_checked} test users")
    return DONE


def _load_source(options: ExportOptions) -> ExportSource:
    run = RunFolder(options.run)
    loaded = load_model(run, options.model, options.seed, options.data, options.recipe)
    histories = checked_histories(run, options.data or default_data_dir())
    return ExportSource(**vars(loaded), k=options.k, histories=histories)


def _describe(options: ExportOptions, source: ExportSource, num_checked: int) -> Json:
    """Return the content of export.json."""
    return {
        "format": options.format,
        "aprec_like": aprec_like.__version__,
        "run": source.run.path.resolve().name,
        "model": source.model,
        "seed": source.seed,
        "settings": source.run.read_recipe()["models"][source.model],
        "num_items": len(source.catalogue),
        "k": source.k,
        "exclude_seen": source.exclude_seen,
        "checked": {"users": num_checked, "tolerance": TOLERANCE},
    }


def _item_table(source: ExportSource) -> str:
    """Return the content of items.csv: item numbers, from 0, with ids and, if known, titles."""
    columns = [name for name in ("item", "title") if name in source.catalogue]
    return source.catalogue[columns].to_csv(index_label="number", lineterminator="\n")
