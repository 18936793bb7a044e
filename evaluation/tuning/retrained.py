"""Trainings of a winner with other seeds than its trials had, by the search itself or the tuned recipe's run."""

from __future__ import annotations

from collections.abc import Sequence

from aprec_like.settings import describe
from evaluation.results.store import RunFolder
from evaluation.tuning.study import Study


def retrained_values(study: Study, run: RunFolder, seeds: Sequence[int]) -> dict[int, float]:
    """Return the validation values of the best settings trained with other seeds, by seed.

    Args:
        study: the study.
        run: results folder of the tuned recipe, which need not exist.
        seeds: with which the search itself trains the winner again.
    """
    best = study.best()
    if best is None:
        return {}
    folders = {seed: study.folder.winner(best.number, seed) for seed in seeds}
    values = {seed: folder.result().get("value") for seed, folder in folders.items() if folder.is_finished}
    found = values_of_run(study, best.number, run)
    found |= {seed: float(value) for seed, value in values.items() if value is not None}
    return dict(sorted(found.items()))


def values_of_run(study: Study, number: int, run: RunFolder) -> dict[int, float]:
    """Return the validation values of a run's trainings with the settings of a trial on the same data, by seed."""
    if not run.has_dataset:
        return {}
    dataset, settings = run.read_dataset(), run.read_recipe()["models"].get(study.model)
    if (dataset["sha256"], dataset["split"]["digest"]) != (study.definition["data"], study.definition["split"]):
        return {}
    if settings != describe(study.model_of(number)):
        return {}
    found = {seed: folder.as_finished() for name, seed, folder in run.models() if name == study.model}
    statuses = {seed: folder.status() for seed, folder in found.items() if folder and seed not in study.seeds}
    values = {seed: status.get("best_validation") for seed, status in statuses.items()}
    return {seed: float(value) for seed, value in values.items() if value is not None}
