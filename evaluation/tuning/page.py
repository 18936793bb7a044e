"""Page stub."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.tuning.folders import TuningFolder
from evaluation.tuning.outcome import StudyOutcome


def write_tuning_page(folder: TuningFolder, title: str, outcomes: Sequence[StudyOutcome]) -> None:
    """Write."""
