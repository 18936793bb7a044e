"""What the page shows of files that are too large to publish: the items, every user's top items, and the weights.

`report` measures it once and stores it as report.json. The page is always made from that content, so that a published
folder without the large files gets the same page.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from aprec_like.calibration import TruthGap
from aprec_like.errors import InputError
from aprec_like.settings import SettingsClasses
from aprec_like.types import Array, Json
from evaluation.analysis.breakdown import BeyondAccuracy, ItemCounts, count_items, measure_beyond_accuracy
from evaluation.calibration.predictions import (
    CalibratedModel,
    calibration_remarks,
    is_simulated,
    iterate_calibrated_models,
    models_with_probabilities,
    read_truths,
)
from evaluation.calibration.summary import CalibrationSummary, summarise
from evaluation.cli import import_tensorflow
from evaluation.results.load import LoadedRuns
from evaluation.results.store import TOP_ITEMS, ModelFolder

PAPER_USER = "963"
"""The user of MovieLens-1M whose probabilities the gSASRec paper shows."""
NUM_EXAMPLES = 5
"""Users with predictions whom an error names."""
MAX_ITEM_COUNTS = 500
"""Number of items whose popularity is stored."""
NUM_DIGITS = 8
"""Significant digits of stored numbers."""


@dataclass(frozen=True, eq=False)
class LargeFileData:
    """What the page shows of the large files.

    Args:
        calibration: of the models whose scores are probabilities.
        remarks: on models without predictions.
        beyond_accuracy: coverage and popularity of the top items by model.
        item_counts: popularity of the items.
        truth_gaps: distance of all probabilities from the true ones by model; `None` if it was not measured.
        results: sha256 of the per-user values by model, one of each training: what the data are of.
    """

    calibration: Sequence[CalibrationSummary]
    remarks: Sequence[str]
    beyond_accuracy: Mapping[str, BeyondAccuracy]
    item_counts: ItemCounts
    truth_gaps: Mapping[str, TruthGap] | None
    results: Mapping[str, list[str]]

    def to_json(self) -> Json:
        """Return the content of report.json."""
        gaps = self.truth_gaps
        value = {
            "calibration": {summary.name: summary.to_json() for summary in self.calibration},
            "remarks": list(self.remarks),
            "beyond_accuracy": {name: asdict(each) for name, each in self.beyond_accuracy.items()},
            "item_counts": {name: getattr(self.item_counts, name).tolist() for name in ("places", "counts")},
            "truth_gaps": None if gaps is None else {name: asdict(gap) for name, gap in gaps.items()},
            "results": dict(self.results),
        }
        rounded: Json = _round(value)
        return rounded

    @classmethod
    def from_json(cls, value: Json) -> LargeFileData:
        """Return the data from the content of report.json."""
        counts, gaps = value["item_counts"], value["truth_gaps"]
        return cls(
            calibration=[CalibrationSummary.from_json(*entry) for entry in value["calibration"].items()],
            remarks=value["remarks"],
            beyond_accuracy={name: BeyondAccuracy(**each) for name, each in value["beyond_accuracy"].items()},
            item_counts=ItemCounts(np.array(counts["places"]), np.array(counts["counts"])),
            truth_gaps=None if gaps is None else {name: TruthGap(**gap) for name, gap in gaps.items()},
            results=value["results"],
        )


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{NUM_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _round(each) for key, each in value.items()}
    return [_round(each) for each in value] if isinstance(value, list) else value


def read_large_files(
    runs: LoadedRuns,
    names: Collection[str] | None = None,
    user: str | None = None,
    own: SettingsClasses | None = None,
    *,
    with_truth: bool = False,
) -> LargeFileData:
    """Measure what the page shows of the large files; without these files, return what report.json has of them.

    If models of a published folder were trained again with other seeds, report.json is of their first trainings, and a
    remark says so.

    Args:
        runs: the results of one run.
        names: models whose predictions are read; `None` for all.
        user: ID of the user whose predictions are shown; `None` for the paper's user, or the first one.
        own: classes of the recipe's own, as `load_own_classes` returns them.
        with_truth: whether to compare the probabilities of all items with the true ones.

    Raises `InputError` if large files are missing and what is stored does not do instead.
    """
    folder, digests = runs.folders[0], _digest_results(runs)
    if (missing := _missing_file(runs)) is None:
        return LargeFileData.from_json(_measure(runs, names, user, own, with_truth=with_truth).to_json())
    stored = folder.read_report_data()
    if stored is None:
        raise InputError(
            f"{folder.path}: has no {missing} (published folders may leave it out) and no report.json instead; a new "
            "run writes it"
        )
    if not _are_first(stored["results"], digests):
        raise InputError(f"{folder.path / 'report.json'}: is of other results, and {missing} is missing")
    data_of_page = LargeFileData.from_json(stored)
    if later := [name for name, trainings in digests.items() if stored["results"][name] != trainings]:
        remark = (
            f"Calibration, coverage and popularity of {', '.join(later)} are of their first trainings alone; not all "
            "trainings have their large files here."
        )
        data_of_page = replace(data_of_page, remarks=[*data_of_page.remarks, remark])
    shown = {summary.user.user for summary in data_of_page.calibration}
    if user is not None and shown != {user}:
        raise InputError(f"{folder.path}: has no {missing}; without it the user shown is {', '.join(shown) or 'none'}")
    if with_truth and data_of_page.truth_gaps is None:
        raise InputError(f"{folder.path}: has no {missing}, and no comparison with the truth was stored before")
    return data_of_page


def write_report_data(runs: LoadedRuns, data: LargeFileData) -> None:
    """Write report.json, from which `read_large_files` can read the data when the large files are gone.

    It stays as it is if it is of fewer trainings and the data come from it.
    """
    if data.results == _digest_results(runs):
        runs.folders[0].write_report_data(data.to_json())


def _are_first(stored: Mapping[str, list[str]], digests: Mapping[str, list[str]]) -> bool:
    """Return whether the stored results are the first trainings of every model."""
    return stored.keys() == digests.keys() and all(
        stored[name] and trainings[: len(stored[name])] == stored[name] for name, trainings in digests.items()
    )


def _digest_results(runs: LoadedRuns) -> dict[str, list[str]]:
    """Return the sha256 of the per-user values of every model, by seed: what the stored data are of."""
    return {
        model.name: [folder.status()["sha256"]["per_user.parquet"] for folder in model.folders] for model in runs.models
    }


def _missing_file(runs: LoadedRuns) -> str | None:
    """Return the name of a large file that the page needs and the folder lacks; `None` if all are there."""
    if not runs.folders[0].has_items:
        return "items.parquet"
    is_complete = all(folder.has_top_items for model in runs.models for folder in model.folders)
    return None if is_complete else TOP_ITEMS


def _measure(
    runs: LoadedRuns, names: Collection[str] | None, user: str | None, own: SettingsClasses | None, *, with_truth: bool
) -> LargeFileData:
    summaries = list(_summarise_models(runs, names, user, own))
    return LargeFileData(
        calibration=summaries,
        remarks=calibration_remarks(runs, [summary.name for summary in summaries], names, own),
        beyond_accuracy=measure_beyond_accuracy(runs),
        item_counts=count_items(runs.folders[0].read_items(["count"])).thinned(MAX_ITEM_COUNTS),
        truth_gaps=_measure_truth(runs, own) if with_truth else None,
        results=_digest_results(runs),
    )


def _summarise_models(
    runs: LoadedRuns, names: Collection[str] | None, user: str | None, own: SettingsClasses | None
) -> Iterator[CalibrationSummary]:
    """Yield the calibration of the models whose scores are probabilities, one after another."""
    folders = [model.folders[0] for model, _ in models_with_probabilities(runs, names, own)]
    shown = _find_user(runs, folders, user)
    if shown is None:
        return
    models: Iterable[CalibratedModel] = iterate_calibrated_models(runs, names, own)
    truths = None
    if is_simulated(runs):  # the true probabilities are computed once for all models
        models = list(models)
        truths = _read_truths(runs, models)
    with folders[0].open_per_user() as users:
        case = users.find_user(shown) or 0
    for model in models:
        yield summarise(model, truths, case, shown)


def _read_truths(runs: LoadedRuns, models: Sequence[CalibratedModel]) -> Mapping[str, Array] | None:
    """Return the true probabilities of simulated data; `None` with a message if they can't be computed."""
    try:
        return read_truths(runs, models)
    except InputError as error:
        print(f"not compared with the truth: {error}", file=sys.stderr)
        return None


def _find_user(runs: LoadedRuns, folders: Sequence[ModelFolder], user: str | None) -> str | None:
    """Return the id of the user whose predictions are shown; `None` if no model has predictions.

    If `user` is `None`, it is the paper's user, or the first one with predictions.
    """
    first, is_found = {}, False
    for folder in folders:
        with folder.open_per_user() as users, folder.open_top_items() as top:
            if user is None and runs.settings["dataset"].get("class") == "MovieLens1M":
                user = PAPER_USER if users.find_user(PAPER_USER) is not None else None
            if some := top.first_users(NUM_EXAMPLES):
                first[users.find_user(some[0]) or 0] = some
            is_found = is_found or (user is not None and top.has_user(user))
    if not first:
        return None
    some = first[min(first)]
    if user is not None and not is_found:
        raise InputError(f"{runs.title}: has no test user {user} with predictions; some are {', '.join(some)}")
    return some[0] if user is None else user


def _measure_truth(runs: LoadedRuns, own: SettingsClasses | None) -> dict[str, TruthGap]:
    """Compare predicted with true probabilities of all items; loads the models and TensorFlow."""
    import_tensorflow()
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it warns of one tracing per network
    from evaluation.calibration.truth import full_gaps

    return full_gaps(runs, own)
