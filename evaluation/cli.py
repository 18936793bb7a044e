"""Shared parts of the commands: exit codes, errors as one line, progress on standard error, import of TensorFlow."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar, cast

from aprec_like.errors import InputError, first_line
from aprec_like.out_of_core import MEMORY_VARIABLE, SCRATCH_VARIABLE, memory_budget
from evaluation.printable import PrintableStream, printable

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 3.0
"""Work that takes less prints no progress."""

DONE, FAILED, WRONG_INPUT, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

EXIT_CODES = (
    "exit codes: 0 done, 1 a model or a check failed, 2 the input is wrong, or results are in use or can't "
    "be written, 130 interrupted by Ctrl-C, 143 by SIGTERM"
)


class Interrupted(BaseException):
    """Raised when a signal requests an exit, with the exit code and a line for standard error."""

    def __init__(self, code: int = INTERRUPTED, message: str = "interrupted") -> None:
        super().__init__(message)
        self.code = code


def program(name: str) -> str:
    """Return how a command was called, for its help."""
    return sys.argv[0] if sys.argv[0].startswith("aprec-like") else f"python -m evaluation.{name}"


def run_command(main: Callable[[], int]) -> int:
    """Run a command and return its exit code; wrong input prints one line on standard error.

    All that the command prints goes through `PrintableStream`.
    """
    with (
        contextlib.redirect_stdout(cast(TextIO, PrintableStream(sys.stdout))),
        contextlib.redirect_stderr(cast(TextIO, PrintableStream(sys.stderr))),
    ):
        return _run(main)


def _run(main: Callable[[], int]) -> int:
    try:
        _check_package()
        return main()
    except InputError as error:
        print(f"error: {printable(error)}", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Interrupted as request:
        print(request, file=sys.stderr)
        return request.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _check_package() -> None:
    """Refuse to run beside another package `evaluation`, whose modules would be mixed with those of this one."""
    folder = Path(__file__).parent
    found = Path(sys.modules["evaluation"].__file__ or folder / "__init__.py").parent
    if found.resolve() != folder.resolve():
        raise InputError(
            f"{found}: is another package named evaluation, which Python finds before this one; use the command "
            "aprec-like, or python -P -m, which do not look into the current folder"
        )


def import_extra(module: str, extra: str) -> Any:
    """Import a module of an optional dependency; raises `InputError` that names the extra if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise InputError(f'this needs {package}: pip install "aprec_like[{extra}]" ({first_line(error)})') from error


def track(steps: Iterable[T], title: str, num_steps: int) -> Iterator[T]:
    """Yield the steps of some work, and print its progress on standard error once it takes several seconds.

    Args:
        steps: the steps.
        title: what is done, as in "bootstrap".
        num_steps: their number.
    """
    next_line = time.monotonic() + SECONDS_BETWEEN_LINES
    for done, step in enumerate(steps):
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + SECONDS_BETWEEN_LINES
            print(f"{title}: {done:,} of {num_steps:,}", file=sys.stderr)
        yield step


def add_memory_option(parser: argparse.ArgumentParser) -> None:
    """Add the option --memory."""
    parser.add_argument(
        "--memory",
        type=set_memory_budget,
        metavar="SIZE",
        help="memory for reading CSV and Parquet files, which are sorted on disk beyond it (default: "
        f"${MEMORY_VARIABLE}, else 4GiB); ${SCRATCH_VARIABLE} names the folder",
    )


def set_memory_budget(size: str) -> str:
    """Set the memory budget of this process and those that it starts; the type of --memory."""
    previous = os.environ.get(MEMORY_VARIABLE)
    os.environ[MEMORY_VARIABLE] = size
    try:
        memory_budget()
    except InputError as error:
        os.environ.pop(MEMORY_VARIABLE)
        os.environ.update({MEMORY_VARIABLE: previous} if previous is not None else {})
        raise argparse.ArgumentTypeError(str(error)) from error
    return size


def import_tensorflow(is_exact: bool = False) -> None:
    """Import TensorFlow without the messages of its C++ core about the machine, and prepare its devices.

    Args:
        is_exact: whether products are exact even if the user asks for TF32.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    stderr, devnull = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(devnull)
    from aprec_like.devices import prepare_devices

    prepare_devices(is_exact)


def parse_num_jobs(parser: argparse.ArgumentParser, text: str) -> int | Literal["auto"]:
    """Return the value of --jobs; anything but a positive number or `auto` is an error of the parser."""
    if text == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        parser.error("--jobs must be a number of at least 1, or auto")
    return int(text)
