"""Compares our networks with vectors computed by the original code: prints the largest relative error per file.

python -m evaluation.parity tests/golden/*.npz
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aprec_like.errors import InputError
from evaluation.cli import DONE, EXIT_CODES, FAILED, import_tensorflow, program, run_command

TOLERANCE = 1e-5


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog=program("parity"),
        description="Load the weights of each file into our network and compare states, scores, losses and gradients "
        "with those of the original code. An error is relative to the largest expected value and must stay below "
        f"{TOLERANCE:g}.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.npz", help="vectors from the original code")
    return parser.parse_args()


def main() -> int:
    """Compare with the files that the command line names; returns the exit code."""
    arguments = parse_arguments()
    import_tensorflow(is_exact=True)
    from evaluation.parity_vectors import compare_arrays, read_vectors, relative_error

    vectors = [read_vectors(path) for path in arguments.files]
    is_equal = True
    for path, expected in zip(arguments.files, vectors, strict=True):
        try:
            errors = {name: relative_error(ours, theirs) for name, ours, theirs in compare_arrays(expected)}
        except KeyError as error:
            raise InputError(f"{path}: is not a complete file of vectors (it has no {error})") from error
        worst = max(errors, key=lambda name: errors[name])
        passes = all(error <= TOLERANCE for error in errors.values())  # False for a NaN
        is_equal &= passes
        verdict = "equal" if passes else "DIFFERENT"
        print(f"{path.name}: {verdict}, {len(errors)} arrays, largest error {errors[worst]:.1e} ({worst})")
    return DONE if is_equal else FAILED


if __name__ == "__main__":
    sys.exit(run_command(main))
