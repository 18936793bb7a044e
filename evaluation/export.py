"""Command: export a finished model of a results folder, for use without this package.

python -m evaluation.export results/ml1m_gsasrec --model gSASRec --to exported/gsasrec
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import EXIT_CODES, import_tensorflow, program, run_command

FORMATS = ("saved_model", "onnx", "keras", "safetensors")


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("export"),
        description="Export a finished model. A SavedModel takes histories in the data's own ids and returns the best "
        "ids with titles, scores and probabilities; TensorFlow and TF Serving load it without this package. An ONNX "
        "model (extra `onnx`) takes item numbers, whose ids are in items.csv. `keras` writes a model that needs "
        "this package to load; `safetensors` (extra `safetensors`) writes the weights as plain arrays. Every export is "
        "loaded again and must recommend what `evaluation.recommend` does, to 200 test users.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder")
    parser.add_argument("--model", required=True, metavar="NAME", help="a finished model of the run")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="the folder to write, a new one")
    parser.add_argument("--format", choices=FORMATS, default="saved_model", help="default: saved_model")
    parser.add_argument("--seed", type=int, metavar="N", help="training seed (default: the first finished)")
    parser.add_argument(
        "-k", type=int, default=10, metavar="N", help="items recommended unless a request says otherwise (default: 10)"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder, to fit counting models again (default: as in run)"
    )
    parser.add_argument(
        "--recipe",
        type=Path,
        metavar="FILE",
        help="recipe file that defines the model's own classes; the file is executed (nothing of RUN is, unless named)",
    )
    arguments = parser.parse_args()
    if arguments.k < 1:
        parser.error("-k must be at least 1")
    return arguments


def main() -> int:
    """Export the model that the command line names; returns the exit code."""
    arguments = parse_arguments()
    import_tensorflow()
    from evaluation.inference.export_model import ExportOptions, export_model

    return export_model(ExportOptions(**vars(arguments)))


if __name__ == "__main__":
    sys.exit(run_command(main))
