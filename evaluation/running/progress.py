"""Progress of a model: a live line in a terminal, plain lines elsewhere, or a file for another process; a log file."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

from aprec_like.errors import InputError
from aprec_like.files import open_without_links, read_regular, storage_errors
from aprec_like.training.state import EpochRecord, Progress
from evaluation.printable import printable, unfiltered
from evaluation.results.files import write_text

SECONDS_BETWEEN_LINES = 10
SECONDS_BETWEEN_FILES = 2
PROGRESS_NAME = "progress.json"
"""File in a model's folder with its latest progress, while it runs beside others."""


class Display:
    """Context manager that shows the progress of one model's training and ranking.

    Args:
        title: the model's name (and seed), prefix of every line.
        log_path: log file; gets a line per epoch.
        metric: name of the validation metric.
        max_epochs: maximum number of epochs.
        time_limit: seconds of training, or infinity.
        patience: number of epochs without improvement that end the training, if it can end so.
        is_shared: whether another process shows the progress, which it reads from a file beside the log.
    """

    def __init__(
        self,
        title: str,
        log_path: Path,
        metric: str,
        max_epochs: int,
        time_limit: float,
        *,
        patience: int | None = None,
        is_shared: bool = False,
    ) -> None:
        self.title, self.metric, self.max_epochs, self.time_limit = title, metric, max_epochs, time_limit
        self.patience, self.best_epoch = patience, 0
        self.log = Log(log_path)
        self.is_shared, self.progress_path = is_shared, log_path.with_name(PROGRESS_NAME)
        console = Console(file=unfiltered(sys.stderr))
        self.live = Live(console=console, transient=True, refresh_per_second=4) if console.is_terminal else None
        self.last_line_at = 0.0
        self.first: tuple[float, float] | None = None

    def __enter__(self) -> Display:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()
        self.progress_path.unlink(missing_ok=True)
        self.log.close()

    def print_line(self, text: str) -> None:
        """Print a permanent line, and write it to the log."""
        self.log.write(text)
        line = printable(f"{self.title}: {text}")
        if self.live:
            self.live.console.print(Text(line))
        else:
            print(line, file=sys.stderr, flush=True)

    def on_step(self, progress: Progress) -> None:
        """Show the progress within an epoch."""
        self.best_epoch = progress.best.epoch if progress.best else 0
        epochs = (progress.epoch - 1) + progress.step / progress.steps_per_epoch
        rate = epochs * progress.steps_per_epoch / progress.seconds
        left = self._time_left(epochs, progress.seconds)
        self._update(
            f"epoch {progress.epoch}, step {progress.step}/{progress.steps_per_epoch}, loss {progress.loss:.4f}"
            f"{self._format_best(progress.best)}, {rate:.1f} steps/s, {left.text}",
            left.seconds,
        )

    def on_epoch(self, record: EpochRecord) -> None:
        """Show the result of an epoch, and write it to the log."""
        self.best_epoch = record.epoch if record.is_best else self.best_epoch
        validation = "" if record.validation is None else f", validation {self.metric} {record.validation:.4f}"
        best = ", the best so far" if record.is_best else ""
        left = self._time_left(record.epoch, record.seconds)
        text = f"epoch {record.epoch}, loss {record.loss:.4f}{validation}{best}, {left.text}"
        self.log.write(text)
        self._update(text, left.seconds)

    def on_rank(self, done: int, total: int) -> None:
        """Show how many test users are ranked."""
        self._update(f"ranking, {done:,} of {total:,} users", 0.0)

    def _update(self, text: str, seconds_left: float) -> None:
        """Replace the live line or the file; without a terminal, print a line unless the last one is recent."""
        line = printable(f"{self.title}: {text}")
        if self.is_shared:
            if time.monotonic() - self.last_line_at >= SECONDS_BETWEEN_FILES:
                self.last_line_at = time.monotonic()
                write_text(self.progress_path, json.dumps(TimeLeft(seconds_left, text)))
            return
        if self.live:
            self.live.update(Text(line, no_wrap=True, overflow="ellipsis"))
        elif time.monotonic() - self.last_line_at >= SECONDS_BETWEEN_LINES:
            self.last_line_at = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    def _format_best(self, record: EpochRecord | None) -> str:
        if record is None or record.validation is None:
            return ""
        return f", best {self.metric} {record.validation:.4f} (epoch {record.epoch})"

    def _time_left(self, epochs_done: float, seconds: float) -> TimeLeft:
        """Return the time left at the pace since the first call, before which the step was compiled.

        Where patience can end the training before its limits, it is the time until then; before the first validation,
        which is an improvement at the end of epoch 1, that is the least time left.
        """
        self.first = self.first or (epochs_done, seconds)
        epochs, elapsed = epochs_done - self.first[0], seconds - self.first[1]
        pace = elapsed / epochs if epochs > 0 else math.inf
        at_most = max(0.0, min(pace * (self.max_epochs - epochs_done), self.time_limit - seconds))
        if self.patience is not None:
            until_patience_ends = max(0.0, pace * ((self.best_epoch or 1) + self.patience - epochs_done))
            if until_patience_ends < at_most:
                left = format_duration(until_patience_ends)
                text = f"{left} left unless it improves" if self.best_epoch else f"at least {left} left"
                return TimeLeft(until_patience_ends, text)
        if math.isinf(at_most):
            return TimeLeft(math.inf, "time left not known yet")
        return TimeLeft(at_most, f"at most {format_duration(at_most)} left")


class TimeLeft(NamedTuple):
    """The time that a training still needs; infinity if it is not known.

    seconds: at the present pace.
    text: the same in words, or the whole line of progress.
    """

    seconds: float
    text: str


def read_progress(folder: Path) -> TimeLeft | None:
    """Return the latest progress of a model whose display is shared, if there is any."""
    try:
        seconds, text = json.loads(read_regular(folder / PROGRESS_NAME))
        return TimeLeft(float(seconds), str(text))
    except (InputError, ValueError, TypeError):
        return None


class Log:
    """An unbuffered log file; raises `StorageError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = open_without_links(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self.file = os.fdopen(descriptor, "ab", buffering=0)

    def write(self, text: str) -> None:
        """Append a line with the current time."""
        with storage_errors(self.path):
            self.file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode(errors="replace"))

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def format_duration(seconds: float) -> str:
    """Return a duration as text: 42 s, 3 min 5 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
