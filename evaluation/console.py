"""The command `aprec-like`: all commands of this package under one name, from any folder.

aprec-like run quickstart
"""

from __future__ import annotations

import importlib
import sys
from importlib import metadata

from aprec_like.shipped_recipes import list_recipes
from evaluation.cli import DONE, EXIT_CODES, WRONG_INPUT, run_command

COMMANDS = {
    "run": "train and test the models of a recipe",
    "tune": "search settings on validation users",
    "compare": "the table of a run, with significance tests",
    "report": "figures and one self-contained HTML page",
    "recommend": "the next items after a history",
    "export": "a model as SavedModel, ONNX or weights",
    "serve": "a page and requests for an exported model",
    "data": "list, fetch and describe datasets",
    "benchmark": "step times and memory of a recipe's models",
    "parity": "our networks against vectors of the original code",
}


def describe_commands() -> str:
    """Return the help: the commands, the recipes of this package, and the exit codes."""
    lines = [f"  {name:10} {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: aprec-like COMMAND [options]      (the same as python -m evaluation.COMMAND)",
            "",
            *lines,
            "",
            "`aprec-like COMMAND --help` explains each. RECIPE is a file, or one of the recipes of this package:",
            f"  {', '.join(list_recipes())}",
            "",
            EXIT_CODES,
        ]
    )


def main() -> int:
    """Run the command that the command line names; returns the exit code."""
    name, *rest = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(describe_commands())
        return DONE
    if name == "--version":
        print(metadata.version("aprec_like"))
        return DONE
    if name not in COMMANDS:
        print(f"error: there is no command {name!r}; there are {', '.join(COMMANDS)}", file=sys.stderr)
        return WRONG_INPUT
    sys.argv = [f"aprec-like {name}", *rest]
    command = importlib.import_module(f"evaluation.{name}")
    return run_command(command.main)


if __name__ == "__main__":
    sys.exit(main())
