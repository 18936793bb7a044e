"""Entry point of a worker: the process of one model and seed, so that a crash does not affect other models."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.cli import import_tensorflow, run_command
from evaluation.running.signals import StopFlag

ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_ARENA_MAX": "1"}
"""Settings of glibc's malloc: keep freed memory for the next step instead of returning it to the system. Training steps
free and allocate the same large arrays, and fresh pages cost more than the arithmetic on them (on two CPU cores a step
with all logits of MovieLens-1M took 0.4 s instead of 0.7 s). Results are not affected."""

PACKAGE_FOLDER = Path(__file__).resolve().parents[2]
"""Folder that this package was imported from."""


@dataclass(frozen=True)
class WorkerOptions:
    """The one command line argument of a worker.

    Args:
        recipe: path of the recipe file.
        model: name of the model.
        seed: training seed.
        data_dir: folder of data files.
        run: results folder of the run.
        time_limit: seconds of training, over all restarts; infinity for no limit.
        smoke: whether to shrink the recipe to seconds.
        keep_checkpoints: whether to keep the last state of every training.
        title: name in messages; `None` for the name of the model.
        is_display_shared: whether another process shows the progress.
        tensorboard: whether to write curves for TensorBoard.
        devices: number of devices that train the model together; `None` for all GPUs.
        is_last: whether no other worker follows, which hosts that take part are told.
    """

    recipe: Path
    model: str
    seed: int
    data_dir: Path
    run: Path
    time_limit: float
    smoke: bool
    keep_checkpoints: bool = False
    title: str | None = None
    is_display_shared: bool = False
    tensorboard: bool = False
    devices: int | None = 1
    is_last: bool = True

    def to_json(self) -> str:
        """Return the options as a JSON object."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> WorkerOptions:
        """Return the options that `to_json` wrote."""
        values = json.loads(text)
        return cls(**values | {name: Path(values[name]) for name in ("recipe", "data_dir", "run")})


def import_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables with which `python -P` finds the same modules as this process.

    This package comes first, whatever the current folder holds; the current folder comes last, if this process looks
    into it at all.
    """
    here = str(Path.cwd())
    paths = [] if Path(sysconfig.get_path("purelib")) == PACKAGE_FOLDER else [str(PACKAGE_FOLDER)]
    paths += [environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []
    paths += [here] if {"", here} & set(sys.path) else []
    return dict(environment) | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def worker_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a worker; variables that are already set take precedence."""
    return ALLOCATOR | import_environment(environment)


def main() -> int:
    """Run the model that the command line names."""
    stop = StopFlag()
    stop.listen()
    import_tensorflow()
    from evaluation.running.run_job import run_job

    return run_job(WorkerOptions.from_json(sys.argv[1]), stop)


if __name__ == "__main__":
    code = run_command(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # all files are written; a regular TensorFlow shutdown would keep the folder locked for seconds
