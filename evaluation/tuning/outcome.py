"""What a study found: its best settings, what they cost, and how much of their lead is due to choice."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import optuna
import pandas as pd
from optuna.trial import TrialState

from aprec_like.recipe import LogIntegers, LogUniform, TuningBudget
from aprec_like.recipe.space import current_settings
from aprec_like.types import Json
from evaluation.tuning.optuna_parts import to_labels
from evaluation.tuning.study import Limits, Study

MIN_TRIALS_OF_IMPORTANCE = 4
"""With fewer complete trials, nothing is said about the importance of settings."""


@dataclass(frozen=True, eq=False)
class StudyOutcome:
    """The result of a search for the settings of one model.

    Args:
        model: name of the model.
        metric: name of the validation metric.
        budget: what the search cost.
        trials: one row per finished trial: number, state, value, epochs, seconds, and a column per setting.
        best: number of the best trial; `None` if no trial is complete.
        values: the best settings by name.
        own_value: validation value of the recipe's own settings; `None` if they are not in the space or not complete.
        retrained: validation values of the best settings trained again with other seeds.
        importance: of each setting, shares that add up to 1; empty with too few trials.
        curves: validation values by epoch of the first seed, by number of the trial.
        labels: the best settings in words.
        own_labels: the recipe's own settings in words.
        log_settings: settings that are searched on a logarithmic scale.
    """

    model: str
    metric: str
    budget: TuningBudget
    trials: pd.DataFrame
    best: int | None
    values: dict[str, Any]
    own_value: float | None
    retrained: tuple[float, ...]
    importance: dict[str, float]
    curves: dict[int, pd.DataFrame]
    labels: dict[str, Any]
    own_labels: dict[str, Any]
    log_settings: tuple[str, ...]

    @property
    def chosen_value(self) -> float | None:
        """The validation value that chose the best trial."""
        if self.best is None:
            return None
        return float(self.trials["value"].to_numpy()[self.trials["trial"].to_numpy() == self.best][0])

    @property
    def counts(self) -> dict[str, int]:
        """Number of trials by state."""
        return {state: int((self.trials["state"] == state).sum()) for state in ("complete", "pruned", "failed")}

    def sentences(self) -> list[str]:
        """Return the outcome in words: the winner, its value with other seeds, and its lead."""
        if self.chosen_value is None:
            return ["no trial is complete"]
        found = [f"validation {self.metric} {self.chosen_value:.4f} chose trial {self.best} of {self.budget.trials}"]
        if self.own_value is not None:
            found.append(f"the recipe's own settings had {self.own_value:.4f}")
        if self.retrained:
            mean = float(np.mean(self.retrained))
            found.append(
                f"trained again with {len(self.retrained)} other seeds the winner has {mean:.4f} "
                f"({', '.join(f'{value:.4f}' for value in self.retrained)})"
            )
            found += self._choice_sentences(mean)
        return found

    def _choice_sentences(self, mean: float) -> list[str]:
        """Return how much of the winner's lead over the recipe's own settings remains with other seeds."""
        if self.own_value is None or self.chosen_value is None or self.chosen_value <= self.own_value:
            return []
        lead, kept = self.chosen_value - self.own_value, mean - self.own_value
        share = min(1.0, max(0.0, 1 - kept / lead))
        return [f"of its lead of {lead:.4f}, {lead - kept:+.4f} ({share:.0%}) is due to choice"]

    def to_json(self) -> Json:
        """Return the numbers, unrounded."""
        return {
            "metric": self.metric,
            "budget": asdict(self.budget),
            "trials": self.counts,
            "best_trial": self.best,
            "best_settings": self.labels,
            "validation": self.chosen_value,
            "validation_of_own_settings": self.own_value,
            "validation_retrained": list(self.retrained),
            "importance": self.importance,
        }


def read_outcome(study: Study, limits: Limits, retrained: Sequence[float] = ()) -> StudyOutcome:
    """Return what a study has found so far.

    Args:
        study: the study.
        limits: its budget.
        retrained: validation values of the best settings trained with other seeds.
    """
    results, best, own = study.results(), study.best(), study.own_settings()
    is_own_complete = own is not None and own.state == TrialState.COMPLETE
    values = study.values(best.number) if best else {}
    return StudyOutcome(
        model=study.model,
        metric=study.metric,
        budget=study.budget(limits),
        trials=_trial_table(study, results),
        best=best.number if best else None,
        values=values,
        own_value=own.value if own is not None and is_own_complete else None,
        retrained=tuple(retrained),
        importance=_importance(study),
        curves={number: _curve(study, number) for number in results},
        labels=to_labels(values, study.space),
        own_labels=to_labels(current_settings(study.trained, study.space), study.space),
        log_settings=tuple(name for name, each in study.space.items() if isinstance(each, (LogUniform, LogIntegers))),
    )


def _trial_table(study: Study, results: dict[int, Json]) -> pd.DataFrame:
    rows = []
    for trial in study.trials():
        if (result := results.get(trial.number)) is not None:
            row = {"trial": trial.number, "state": result["state"], "value": result.get("value")}
            row |= {name: result.get(name) for name in ("best_epoch", "epochs", "seconds", "stopped_by", "reason")}
            rows.append(row | {name: trial.params.get(name) for name in study.space})
    columns = ["trial", "state", "value", "best_epoch", "epochs", "seconds", "stopped_by", "reason", *study.space]
    return pd.DataFrame(rows, columns=columns)


def _curve(study: Study, number: int) -> pd.DataFrame:
    curve = study.folder.trial(number).read_curve()
    return curve[curve["seed"] == study.seeds[0]].dropna(subset="validation")


def _importance(study: Study) -> dict[str, float]:
    """Return PED-ANOVA's importance of each setting for being among the best trials."""
    complete = [trial for trial in study.trials() if trial.state == TrialState.COMPLETE]
    if len(complete) < MIN_TRIALS_OF_IMPORTANCE or len({trial.value for trial in complete}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few trials, which the caption says
        return dict(optuna.importance.get_param_importances(study.optuna))
