"""The parts of Optuna that make a study: its journal on disk, sampler and pruner, and ranges as distributions."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial
from typing_extensions import override

from aprec_like.errors import InputError, first_line
from aprec_like.files import storage_errors
from aprec_like.recipe.ranges import Choice, Integers, LogIntegers, LogUniform, Range
from aprec_like.recipe.space import SearchSpace
from evaluation.tuning.file_locks import exclusive

STUDY_NAME = "search"
NUM_RANDOM_TRIALS = 10
"""Trials before the sampler learns from the others; Optuna's default."""
NUM_UNPRUNED_TRIALS, NUM_UNPRUNED_EPOCHS = 5, 5
"""No trial is ended early before this many have finished, and none before this epoch: some losses start slowly."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Journal(JournalFileBackend):
    """Optuna's journal file, under a lock that ends with its process, and repaired after a write that did not end.

    Optuna's own lock files stay when their process is killed, and keep all others waiting for half a minute.
    """

    def __init__(self, path: Path) -> None:
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(str(path))
        self.path = path

    @override
    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        lock_path = self.path.with_name(f".{self.path.name}.lock")
        with exclusive(lock_path), storage_errors(self.path), self.path.open("r+b") as file:
            _cut_partial_line(file.fileno())
            file.seek(0, os.SEEK_END)
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())


def _cut_partial_line(descriptor: int) -> None:
    """Cut off what follows the last end of a line in a file."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.ftruncate(descriptor, os.pread(descriptor, size, 0).rfind(b"\n") + 1)


class NumberedSampler(BaseSampler):
    """The tree-structured Parzen estimator, with random numbers that are a function of (seed, number of the trial).

    So a study that was interrupted goes on with the trials that it would have had.

    Args:
        seed: of the study.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def _sampler(self, trial: FrozenTrial, name: str = "") -> TPESampler:
        entropy = [self.seed, trial.number, zlib.crc32(name.encode())]
        seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        return TPESampler(seed=seed, n_startup_trials=NUM_RANDOM_TRIALS)

    @override
    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._sampler(trial).infer_relative_search_space(study, trial)

    @override
    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._sampler(trial).sample_relative(study, trial, search_space)

    @override
    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._sampler(trial, param_name).sample_independent(study, trial, param_name, param_distribution)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise `InputError` if what Optuna reads within the block is no journal of it."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise InputError(f"{path}: is damaged: {first_line(error)}; --fresh begins again") from error


def open_optuna_study(path: Path, seed: int, *, is_pruned: bool) -> Study:
    """Open the study in a journal file, or create it; raises `StorageError`.

    Args:
        path: of the journal.
        seed: of the sampler.
        is_pruned: whether trials end early whose validation stays below the median of the others.
    """
    pruner = optuna.pruners.MedianPruner(NUM_UNPRUNED_TRIALS, NUM_UNPRUNED_EPOCHS)
    with exclusive(path.with_name(f".{path.name}.created")), _readable(path):  # two processes would create two studies
        return optuna.create_study(
            storage=JournalStorage(Journal(path)),
            sampler=NumberedSampler(seed),
            pruner=pruner if is_pruned else optuna.pruners.NopPruner(),
            study_name=STUDY_NAME,
            direction="maximize",
            load_if_exists=True,
        )


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return the ranges of a space as Optuna's distributions."""
    return {name: _distribution(each) for name, each in space.items()}


def _distribution(each: Range) -> BaseDistribution:
    if isinstance(each, Choice):
        return CategoricalDistribution([label(value) for value in each.values])
    if isinstance(each, Integers):
        return IntDistribution(each.low, each.examples[1], step=each.step)
    if isinstance(each, LogIntegers):
        return IntDistribution(each.low, each.high, log=True)
    return FloatDistribution(each.low, each.high, log=isinstance(each, LogUniform))


def suggest(trial: Trial, space: SearchSpace) -> None:
    """Choose the values of all settings of a trial that have none yet."""
    for name, distribution in distributions(space).items():
        if isinstance(distribution, CategoricalDistribution):
            trial.suggest_categorical(name, distribution.choices)
        elif isinstance(distribution, IntDistribution):
            trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
        elif isinstance(distribution, FloatDistribution):
            trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)


def label(value: object) -> str | int | float | bool | None:
    """Return how Optuna stores a choice: as it is, or settings as their code."""
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)


def to_labels(values: Mapping[str, Any], space: SearchSpace) -> dict[str, Any]:
    """Return values of settings as Optuna stores them."""
    return {name: label(value) if isinstance(space[name], Choice) else value for name, value in values.items()}


def from_labels(params: Mapping[str, Any], space: SearchSpace) -> dict[str, Any]:
    """Return the values of settings that Optuna has stored, in the order of the space."""
    return {name: _value(params[name], each) for name, each in space.items()}


def _value(stored: Any, each: Range) -> Any:
    if not isinstance(each, Choice):
        return stored
    return next(value for value in each.values if label(value) == stored)
