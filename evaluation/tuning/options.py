"""Options of the process of one trial, as the one argument of its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrialOptions:
    """The one command line argument of the process of a trial.

    Args:
        recipe: path of the recipe file.
        study: folder of the study.
        folder: name of the trial's folder in it.
        number: of the trial whose settings are trained.
        seeds: training seeds.
        data_dir: folder of data files.
        seconds_left: seconds of training after which it ends with the epochs so far; infinity for no limit.
        is_trial: whether validation values are reported to the study, which may end the trial early.
    """

    recipe: Path
    study: Path
    folder: str
    number: int
    seeds: tuple[int, ...]
    data_dir: Path
    seconds_left: float
    is_trial: bool

    def to_json(self) -> str:
        """Return the options as a JSON object."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> TrialOptions:
        """Return the options that `to_json` wrote."""
        values = json.loads(text)
        paths = {name: Path(values[name]) for name in ("recipe", "study", "data_dir")}
        return cls(**values | paths | {"seeds": tuple(values["seeds"])})
