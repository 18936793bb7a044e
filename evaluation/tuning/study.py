"""A study: the search for one model's settings, shared by any number of processes through its folder.

Trials are chosen under the lock of the folder. The command that runs a trial holds the trial's lock, which the
operating system releases when the command ends in whatever way: a trial that is running in the journal while its lock
is free was left by a killed command, and the next one that asks for work resumes it from its checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from aprec_like.errors import InputError
from aprec_like.recipe import Recipe, Trained, TuningBudget
from aprec_like.recipe.space import SearchSpace, current_settings, num_combinations, with_settings
from aprec_like.settings import describe
from aprec_like.types import Json
from evaluation.running.changed_recipe import show_changes
from evaluation.tuning.file_locks import exclusive, try_lock
from evaluation.tuning.folders import StudyFolder, TrialFolder
from evaluation.tuning.optuna_parts import from_labels, open_optuna_study, suggest, to_labels

ENDED = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
"""Optuna's states by those of trial.json."""
SECONDS = "seconds"
"""Attribute of a running trial in the journal: its seconds of training up to the last epoch."""


@dataclass(frozen=True)
class Limits:
    """The budget of a study.

    Args:
        trials: number of trials, those that end early or fail included; `None` for no limit.
        hours: hours of training and validation of all trials; `None` for no limit.
    """

    trials: int | None
    hours: float | None


@dataclass(frozen=True)
class Claim:
    """A training that this process is to run.

    Args:
        folder: of the trial.
        number: of the trial whose settings are trained.
        seeds: training seeds.
        descriptor: of the locked lock file.
        seconds_left: seconds until the budget is spent; infinity for no limit.
        is_trial: whether it is a trial of the study; False for a further training of the best settings.
    """

    folder: TrialFolder
    number: int
    seeds: tuple[int, ...]
    descriptor: int
    seconds_left: float = float("inf")
    is_trial: bool = True

    def release(self) -> None:
        """Release the lock."""
        os.close(self.descriptor)


class Study:
    """The search for the settings of one model.

    Args:
        folder: of the study.
        definition: content of study.json.
        trained: the model with the recipe's settings.
        space: ranges of the searched settings.
    """

    def __init__(self, folder: StudyFolder, definition: Json, trained: Trained, space: SearchSpace) -> None:
        self.folder, self.definition, self.trained, self.space = folder, definition, trained, space
        self.optuna = open_optuna_study(
            folder.journal_path, definition["seed"], is_pruned=bool(definition.get("is_pruned", True))
        )

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.definition["model"])

    @property
    def metric(self) -> str:
        """Name of the validation metric."""
        return str(self.definition["metric"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """Training seeds of every trial."""
        return tuple(self.definition["seeds"])

    def trials(self) -> list[FrozenTrial]:
        """Return the trials that were started, by number."""
        started = [trial for trial in self.optuna.get_trials(deepcopy=False) if trial.state != TrialState.WAITING]
        return sorted(started, key=lambda trial: trial.number)

    def values(self, number: int) -> dict[str, Any]:
        """Return the settings of a trial by name."""
        return from_labels(self._trial(number).params, self.space)

    def model_of(self, number: int) -> Trained:
        """Return the model with the settings of a trial."""
        return with_settings(self.trained, self.values(number))

    def _trial(self, number: int) -> FrozenTrial:
        return next(trial for trial in self.optuna.get_trials(deepcopy=False) if trial.number == number)

    def optuna_trial(self, number: int) -> optuna.Trial:
        """Return a running trial, to report its validation values."""
        return optuna.Trial(self.optuna, self._trial(number)._trial_id)

    def claim(self, limits: Limits, num_jobs: int = 1) -> Claim | None:
        """Return the next trial for this process: one that a killed process left, or a new one.

        Returns `None` if the budget is spent, or if other processes run the last trials.

        Args:
            limits: the budget.
            num_jobs: number of trials that this process runs at once, among which the hours that are left are divided.
        """
        with exclusive(self.folder.lock_path):
            trials = self.trials()
            for trial in trials:
                if trial.state == TrialState.RUNNING:
                    descriptor = try_lock(self.folder.trial(trial.number).lock_path)
                    if descriptor is not None:
                        suggest(self.optuna_trial(trial.number), self.space)
                        return self._claim(trial.number, descriptor, limits, num_jobs)
            if (limits.trials is not None and len(trials) >= limits.trials) or self.seconds_left(limits) <= 0:
                return None
            if not trials:
                self._enqueue_own_settings()
            new = self.optuna.ask()
            descriptor = try_lock(self.folder.trial(new.number).lock_path)
            if descriptor is None:
                raise InputError(f"{self.folder.path}: trial {new.number} is in use by another process")
            suggest(new, self.space)
            return self._claim(new.number, descriptor, limits, num_jobs)

    def _claim(self, number: int, descriptor: int, limits: Limits, num_jobs: int) -> Claim:
        seconds_left = max(1.0, self.seconds_left(limits) / num_jobs)
        return Claim(self.folder.trial(number), number, self.seeds, descriptor, seconds_left)

    def _enqueue_own_settings(self) -> None:
        """Make the recipe's own settings the first trial, if they lie in the space."""
        own = current_settings(self.trained, self.space)
        if all(self.space[name].holds(value) for name, value in own.items()):
            self.optuna.enqueue_trial(to_labels(own, self.space), skip_if_exists=True)

    def claim_winner(self, seeds: Sequence[int]) -> Claim | None:
        """Return the next further training of the best settings; `None` if none is left for this process."""
        best = self.best()
        if best is None:
            return None
        for seed in seeds:
            folder = self.folder.winner(best.number, seed)
            if not folder.is_finished and (descriptor := try_lock(folder.lock_path)) is not None:
                return Claim(folder, best.number, (seed,), descriptor, is_trial=False)
        return None

    def settle(self, number: int) -> None:
        """Tell Optuna how a trial ended, from the trial's folder."""
        if self._trial(number).state == TrialState.RUNNING:
            result = self.folder.trial(number).result()
            state = ENDED[result["state"]]
            value = result["value"] if state == TrialState.COMPLETE else None
            self.optuna.tell(number, value, state)

    def copy_of(self, number: int) -> int | None:
        """Return an earlier trial with the same settings, whose training would be the same; `None` if there is none."""
        params = self._trial(number).params
        equal = [trial for trial in self.trials() if trial.params == params and trial.number < number]
        ended = [trial.number for trial in equal if trial.state.is_finished()]
        results = {each: self.folder.trial(each).result() for each in ended}
        return next((each for each, result in results.items() if result.get("stopped_by") != "time_limit"), None)

    def best(self) -> FrozenTrial | None:
        """Return the best complete trial, the first of equals; `None` if there is none."""
        complete = [trial for trial in self.trials() if trial.state == TrialState.COMPLETE]
        return max(complete, key=lambda trial: trial.value or 0.0, default=None)

    def own_settings(self) -> FrozenTrial | None:
        """Return the trial with the recipe's own settings; `None` if they do not lie in the space."""
        own = to_labels(current_settings(self.trained, self.space), self.space)
        return next((trial for trial in self.trials() if trial.params == own), None)

    def num_running(self) -> int:
        """Return the number of running trials, of all processes."""
        return sum(trial.state == TrialState.RUNNING for trial in self.trials())

    def results(self) -> dict[int, Json]:
        """Return the content of trial.json of every finished trial, by number."""
        ended = [trial.number for trial in self.trials() if trial.state.is_finished()]
        return {number: self.folder.trial(number).result() for number in ended}

    def seconds_left(self, limits: Limits) -> float:
        """Return the seconds of training until the budget of hours is spent, running trials included."""
        if limits.hours is None:
            return float("inf")
        spent = sum(float(result["seconds"]) for result in self.results().values())
        running = [trial for trial in self.trials() if trial.state == TrialState.RUNNING]
        spent += sum(float(trial.user_attrs.get(SECONDS, 0.0)) for trial in running)
        return limits.hours * 3600 - spent

    def budget(self, limits: Limits) -> TuningBudget:
        """Return what the finished trials cost."""
        results = self.results()
        return TuningBudget(
            trials=len(results),
            hours=round(sum(float(result["seconds"]) for result in results.values()) / 3600, 4),
            epochs=sum(int(result["epochs"]) for result in results.values()),
            num_settings=len(self.space),
            num_combinations=num_combinations(self.space),
            max_trials=limits.trials,
            max_hours=limits.hours,
        )


def define_study(
    recipe: Recipe, model: str, *, seeds: Sequence[int], seed: int, is_pruned: bool, data: str, split: str
) -> Json:
    """Return the content of study.json: all that the values of trials depend on.

    Args:
        recipe: the recipe.
        model: name of the model.
        seeds: training seeds of every trial.
        seed: of the sampler.
        is_pruned: whether trials may end early.
        data: sha256 of the interactions.
        split: sha256 of the split.
    """
    trained = recipe.models[model]
    if not isinstance(trained, Trained) or trained.training.early_stopping is None:
        raise InputError(f"{model} has no validation that could choose its settings")
    return {
        "model": model,
        "settings": describe(trained),
        "space": describe(recipe.spaces[model]),
        "metric": str(trained.training.early_stopping.metric),
        "split_rule": describe(recipe.split),
        "exclude_seen": recipe.evaluation.exclude_seen,
        "fit_on": recipe.fit_on,
        "data": data,
        "split": split,
        "seeds": list(seeds),
        "seed": seed,
        "is_pruned": is_pruned,
    }


def open_study(folder: StudyFolder, definition: Json, recipe: Recipe) -> Study:
    """Open a study, or create it; raises `InputError` if its folder holds a study of other settings or data."""
    with exclusive(folder.lock_path):
        if not folder.exists:
            folder.write_definition(definition)
        stored = folder.read_definition()
        if stored != definition:
            raise InputError(
                f"{folder.path}: has a study of another recipe or of other options; changed: "
                f"{show_changes(stored, definition)}; --fresh begins again, --results DIR keeps both"
            )
    return load_study(folder, recipe)


def load_study(folder: StudyFolder, recipe: Recipe) -> Study:
    """Open a study that exists."""
    definition = folder.read_definition()
    trained = recipe.models.get(definition["model"])
    if not isinstance(trained, Trained):
        raise InputError(f"{folder.path}: the recipe has no network {definition['model']!r}")
    return Study(folder, definition, trained, recipe.spaces[definition["model"]])
