"""`run`: trains the models of a recipe in this process, with a progress bar, into a results folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path

from typing_extensions import override

from aprec_like.datasets.download import default_data_dir
from aprec_like.recipe import Recipe
from aprec_like.training.state import EpochRecord, Progress
from evaluation.cli import DONE, INTERRUPTED
from evaluation.notebook.live_line import make_live_line
from evaluation.notebook.results_view import Results
from evaluation.printable import printable
from evaluation.results.identity import identify
from evaluation.results.store import RunFolder
from evaluation.running.fit_model import ModelRun
from evaluation.running.lock import RunLock
from evaluation.running.preflight import load_data, prepare
from evaluation.running.progress import Display
from evaluation.running.run_job import run_and_record
from evaluation.running.run_models import write_tables
from evaluation.running.run_recipe import list_jobs, select_models
from evaluation.running.signals import stop_on_interrupt

SOURCE = b"# This recipe was run from Python, not from a file; recipe.json has its settings.\n"
BAR_WIDTH = 20


class ProgressBar(Display):
    """A line with a bar, in notebooks and terminals alike."""

    share = 0.0

    @override
    def __enter__(self) -> ProgressBar:
        self.line = make_live_line()
        super().__enter__()
        return self

    @override
    def on_step(self, progress: Progress) -> None:
        epochs = (progress.epoch - 1) + progress.step / progress.steps_per_epoch
        self.share = epochs / self.max_epochs
        super().on_step(progress)

    @override
    def on_epoch(self, record: EpochRecord) -> None:
        self.share = record.epoch / self.max_epochs
        super().on_epoch(record)

    @override
    def on_rank(self, done: int, total: int) -> None:
        self.share = done / total
        super().on_rank(done, total)

    @override
    def print_line(self, text: str) -> None:
        self.log.write(text)
        self.line.finish(printable(f"{self.title}: {text}"))

    @override
    def _update(self, text: str, seconds_left: float) -> None:
        filled = round(BAR_WIDTH * min(1.0, self.share))
        self.line.replace(printable(f"{self.title} [{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {text}"))


def run(
    recipe: Recipe,
    to: Path | str,
    *,
    only: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    data: Path | str | None = None,
    fresh: bool = False,
    tensorboard: bool = False,
) -> Results:
    """Train, rank and store the models of a recipe that are not finished, and return the results.

    As `python -m evaluation.run`, but in this process: an interrupted run goes on where it stopped, a changed recipe in
    an old folder is refused, a model that fails does not stop the others. Ctrl-C, or interrupting the kernel, saves the
    state first.

    Args:
        recipe: the experiment.
        to: the results folder.
        only: names of the models to run; `None` for all.
        seeds: training seeds; `None` for the recipe's.
        data: folder of data files; `None` for the default.
        fresh: whether to train again what is finished or started.
        tensorboard: whether to write curves for TensorBoard.

    Raises:
        InputError: if the data, the recipe or the folder cannot be used.
        KeyboardInterrupt: after a request to stop.
    """
    folder, data_dir = RunFolder(Path(to)), default_data_dir() if data is None else Path(data)
    jobs = list_jobs(recipe, select_models(recipe, only), seeds or recipe.seeds)
    with redirect_stderr(sys.stdout):  # notebooks show standard error as if it were a failure
        loaded = load_data(recipe, data_dir)
    with RunLock(folder.lock_path), stop_on_interrupt() as stop:
        path = folder.path / "recipe.py"
        source = path.read_bytes() if path.exists() else SOURCE
        pending = prepare(folder, recipe, source, loaded, jobs, is_fresh=fresh)
        settings, dataset = folder.read_recipe(), folder.read_dataset()
        for name, seed in pending:
            identity = identify(settings, dataset, name, seed)
            title = name if len({number for _, number in pending}) == 1 else f"{name}, seed {seed}"
            model_run = ModelRun(
                recipe,
                name,
                seed,
                data_dir,
                folder.model(name, seed),
                identity=identity,
                title=title,
                has_tensorboard=tensorboard,
            )
            code = run_and_record(model_run, model_run.make_display(ProgressBar), stop)
            if code >= INTERRUPTED:
                raise KeyboardInterrupt("progress is kept; the same call goes on")
            if code == DONE:
                write_tables(folder)
        write_tables(folder)
    return Results(folder.path)
