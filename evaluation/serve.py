"""Command: serve an exported SavedModel on this machine, with a page to try it.

python -m evaluation.serve exported/gsasrec
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from evaluation.cli import EXIT_CODES, import_tensorflow, program, run_command


def parse_arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog=program("serve"),
        description="Serve a SavedModel that `evaluation.export` wrote: a page to search items, build a history and "
        "see recommendations, and requests in TF Serving's REST form. A demo; TF Serving is the way to production. A "
        "SavedModel is a program: serve only what you trust.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("export", type=Path, metavar="EXPORT", help="a folder that `evaluation.export` wrote")
    parser.add_argument("--port", type=int, default=8501, metavar="N", help="default: 8501; 0 for any free port")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="default: 127.0.0.1, for this machine alone"
    )
    arguments = parser.parse_args()
    if not 0 <= arguments.port < 2**16:
        parser.error("--port must lie between 0 and 65535")
    return arguments


def main() -> int:
    """Serve until Ctrl-C; returns the exit code."""
    arguments = parse_arguments()
    import_tensorflow()
    from evaluation.serving.server import serve

    return serve(arguments.export, arguments.host, arguments.port)


if __name__ == "__main__":
    sys.exit(run_command(main))
