"""Tunes the models of a recipe: a study for each, further trainings of the winners, a new recipe, a page."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from aprec_like.datasets import Sizes
from aprec_like.datasets.download import default_data_dir
from aprec_like.devices import device_line, has_gpu, visible_gpus
from aprec_like.errors import InputError
from aprec_like.files import read_regular
from aprec_like.recipe import Recipe, Trained, load_recipe
from evaluation.cli import DONE, FAILED, INTERRUPTED, WRONG_INPUT, Interrupted
from evaluation.results.environment import available_memory
from evaluation.results.store import RunFolder, encode_name
from evaluation.running.jobs import Executor
from evaluation.running.jobs.local_processes import LocalProcesses
from evaluation.running.jobs.local_slots import NumJobs, num_slots
from evaluation.running.jobs.ray_tasks import RayTasks
from evaluation.running.plan import describe_plan, predict_peak_memory
from evaluation.running.preflight import RunData, load_data
from evaluation.running.run_recipe import select_models
from evaluation.running.signals import raise_when_terminated
from evaluation.table import Table, as_text
from evaluation.tuning.board import StudyBoard
from evaluation.tuning.file_locks import try_lock
from evaluation.tuning.folders import StudyFolder, TuningFolder
from evaluation.tuning.outcome import StudyOutcome, read_outcome
from evaluation.tuning.retrained import retrained_values, values_of_run
from evaluation.tuning.search import Search, WrongInputError
from evaluation.tuning.study import Limits, Study, define_study, open_study
from evaluation.tuning.tuned_file import ORIGIN, ChosenModel, tuned_source

KEPT = "stopped; finished trials and progress are kept; the same command (without --fresh) resumes"

MAX_JOBS = 64
"""Maximum number of trials at once with `--jobs auto`."""


@dataclass(frozen=True)
class TuneOptions:
    """The command line of `evaluation.tune`.

    Args:
        recipe: path of the recipe file.
        only: names of the models to tune; `None` for all that have a search space.
        limits: budget of each model.
        fair: whether every network of the recipe must be tuned with the same budget.
        seeds: training seeds of every trial.
        seed: of the sampler.
        is_pruned: whether trials end early whose validation stays below the median.
        num_retrainings: number of other seeds with which the winner is trained again.
        data: folder of data files; `None` for the default.
        results: parent of the results folder.
        output: file of the tuned recipe; `None` for one beside the recipe.
        jobs: number of trials at once, or `auto`.
        ray: address of the Ray cluster that runs the trials; `None` for this machine.
        dry_run: whether to print the plan and train nothing.
        fresh: whether to begin again.
    """

    recipe: Path
    only: list[str] | None
    limits: Limits
    fair: bool = False
    seeds: tuple[int, ...] = (1,)
    seed: int = 1
    is_pruned: bool = True
    num_retrainings: int = 3
    data: Path | None = None
    results: Path = Path("results")
    output: Path | None = None
    jobs: NumJobs = 1
    ray: str | None = None
    dry_run: bool = False
    fresh: bool = False

    @property
    def data_dir(self) -> Path:
        """Folder of data files."""
        return self.data or default_data_dir()

    @property
    def folder(self) -> TuningFolder:
        """Results folder of the studies, named after the recipe file."""
        return TuningFolder(self.results / encode_name(f"{self.recipe.stem}-tuning"))

    @property
    def tuned_path(self) -> Path:
        """File of the tuned recipe."""
        return self.output or self.recipe.with_name(f"{self.recipe.stem}_tuned.py")

    @property
    def tuned_run(self) -> RunFolder:
        """Results folder of the tuned recipe; its trainings with other seeds count as trainings of the winner."""
        return RunFolder(self.results / encode_name(self.tuned_path.stem))

    @property
    def retrained_seeds(self) -> list[int]:
        """Seeds with which the winner is trained again."""
        first = max(self.seeds) + 1
        return list(range(first, first + self.num_retrainings))


def tune_recipe(options: TuneOptions) -> int:
    """Search the settings of a recipe's models until their budgets are spent; returns the exit code."""
    raise_when_terminated()
    recipe = load_recipe(options.recipe)
    names = models_to_tune(recipe, options.only, is_fair=options.fair)
    if options.dry_run:
        print(describe_plan(recipe, names, options.data_dir))
        print(f"each: {_describe_limits(options.limits)}, seeds {', '.join(map(str, options.seeds))} in every trial")
        return DONE
    _check_output(options.tuned_path)
    data = load_data(recipe, options.data_dir)
    print(device_line(), file=sys.stderr)
    options.folder.check()
    if options.fresh:
        for name in names:
            _remove(options.folder.study(name))
    studies = [_open(recipe, name, data, options) for name in names]
    if options.fair:
        _check_spent(studies, options.limits)
    memories = {name: _memory(recipe, name, data) for name in names}
    del data  # the workers need the memory
    try:
        for study in studies:
            _search(study, options, memories[study.model])
    except (KeyboardInterrupt, Interrupted) as request:
        raise Interrupted(getattr(request, "code", INTERRUPTED), KEPT) from None
    except WrongInputError:
        return WRONG_INPUT
    retrained = [retrained_values(study, options.tuned_run, options.retrained_seeds) for study in studies]
    outcomes = [
        read_outcome(study, options.limits, list(values.values()))
        for study, values in zip(studies, retrained, strict=True)
    ]
    return _write_outcomes(recipe, outcomes, options)


def models_to_tune(recipe: Recipe, only: Sequence[str] | None, *, is_fair: bool) -> list[str]:
    """Return the names of the models to tune; raises `InputError` if one has no search space."""
    names = select_models(recipe, only)
    networks = [name for name in names if isinstance(recipe.models[name], Trained)]
    without = [name for name in networks if name not in recipe.spaces]
    if is_fair and without:
        raise InputError(
            f"--fair tunes every network, and {without[0]} has no search space; give it one in spaces={{...}}, or take "
            f"it out of the recipe"
        )
    wanted = [name for name in names if name in recipe.spaces]
    if only and len(wanted) < len(names):
        missing = next(name for name in names if name not in recipe.spaces)
        raise InputError(f"{missing} has no search space; give it one in the recipe: spaces={{{missing!r}: {{...}}}}")
    if not wanted:
        raise InputError("the recipe has no search space; give its models some: Recipe(spaces={NAME: {...}})")
    if without:
        print(f"not tuned, because they have no search space: {', '.join(without)}", file=sys.stderr)
    return wanted


def _describe_limits(limits: Limits) -> str:
    trials = [] if limits.trials is None else [f"{limits.trials} trials"]
    return " or ".join([*trials, *([] if limits.hours is None else [f"{limits.hours:g} hours of training"])])


def _check_output(path: Path) -> None:
    """Check that the tuned recipe overwrites nothing that someone else wrote."""
    if path.exists() and ORIGIN.encode() not in read_regular(path):
        raise InputError(f"{path}: exists and was not written by evaluation.tune; --output FILE names another file")


def _remove(folder: StudyFolder) -> None:
    """Remove a study that no other command works on."""
    for trial in folder.trial_folders():
        if try_lock(trial.lock_path) is None:
            raise InputError(f"{folder.path}: is in use by another command, which runs {trial.name}")
    folder.remove()


def _open(recipe: Recipe, name: str, data: RunData, options: TuneOptions) -> Study:
    definition = define_study(
        recipe,
        name,
        seeds=options.seeds,
        seed=options.seed,
        is_pruned=options.is_pruned,
        data=data.interactions.digest(),
        split=data.split.digest(),
    )
    return open_study(options.folder.study(name), definition, recipe)


def _check_spent(studies: Sequence[Study], limits: Limits) -> None:
    """Check that no study has had more than the budget that all are to have."""
    for study in studies:
        if limits.trials is not None and len(study.trials()) > limits.trials:
            raise InputError(
                f"--fair gives every network the same, and {study.model} has had {len(study.trials())} trials; "
                f"--trials {len(study.trials())} gives the others as many"
            )


def _memory(recipe: Recipe, name: str, data: RunData) -> int:
    model, interactions = recipe.models[name], data.interactions
    sizes = Sizes(interactions.num_users, interactions.num_items, interactions.num_interactions)
    return predict_peak_memory(model, sizes)


def _search(study: Study, options: TuneOptions, memory: int) -> None:
    """Run the trials of a study, then train its winner again."""
    with StudyBoard(study, options.limits) as board:
        executor, slots = make_executor(board, options, memory)
        board.num_jobs = slots
        board.print_line(f"{study.model}: {board.summary()}; in {study.folder.path}")
        search = Search(study, options.limits, options.recipe, options.data_dir, slots, memory, board.on_trial)
        search.run_trials(executor)
        best = study.best()
        known = values_of_run(study, best.number, options.tuned_run) if best else {}
        if seeds := [seed for seed in options.retrained_seeds if seed not in known]:
            search.run_winner(executor, seeds)


def make_executor(board: StudyBoard, options: TuneOptions, memory: int) -> tuple[Executor, int]:
    """Return the executor of trials, which tells the board what happens, and how many it runs at once."""
    if options.ray is not None:
        tasks = RayTasks(options.ray, board.study.folder.path.resolve(), board)
        return tasks, tasks.num_slots()
    slots = num_slots(options.jobs, [memory] * MAX_JOBS)
    available = math.inf if has_gpu() else available_memory()
    return LocalProcesses(slots, board, memory=available, gpus=visible_gpus()), slots


def _write_outcomes(recipe: Recipe, outcomes: Sequence[StudyOutcome], options: TuneOptions) -> int:
    """Write the tuned recipe, the table of all trials and the page; prints the summary and returns the exit code."""
    from evaluation.tuning.page import write_tuning_page  # Matplotlib only when it is needed

    summary = summary_table(options.recipe.stem, outcomes)
    write_tuning_page(options.folder, options.recipe.stem, summary, outcomes)
    print(as_text(summary), end="")
    for outcome in outcomes:
        print(f"{outcome.model}: {'; '.join(outcome.sentences())}.")
    found = [outcome for outcome in outcomes if outcome.best is not None]
    if found:
        today = datetime.now(UTC).date().isoformat()
        source = read_regular(options.recipe).decode()
        chosen = [
            ChosenModel(each.model, recipe.spaces[each.model], each.values, each.budget, each.sentences()[0])
            for each in found
        ]
        path = options.tuned_path
        options.folder.write_recipe(path, tuned_source(source, options.recipe, path, chosen, today))
        print(f"python -m evaluation.run {path}    runs the best settings", file=sys.stderr)
    print(f"all trials: {options.folder.page_path}", file=sys.stderr)
    return DONE if len(found) == len(outcomes) else FAILED


def summary_table(run: str, outcomes: Sequence[StudyOutcome]) -> Table:
    """Return one row per model: its budget, the value that chose its settings, and that of other seeds."""
    header = [
        "Model", "Trials", "Ended early", "Failed", "Epochs", "Hours", "Own settings", "Chosen", "Other seeds",
    ]  # fmt: skip
    rows = []
    for outcome in outcomes:
        budget, retrained = outcome.budget, outcome.retrained
        mean = f"{sum(retrained) / len(retrained):.4f}" if retrained else ""
        values = ["" if value is None else f"{value:.4f}" for value in (outcome.own_value, outcome.chosen_value)]
        counts = [str(budget.trials), str(outcome.counts["pruned"]), str(outcome.counts["failed"])]
        rows.append([outcome.model, *counts, str(budget.epochs), f"{budget.hours:.2f}", *values, mean])
    metrics = ", ".join(dict.fromkeys(outcome.metric for outcome in outcomes))
    caption = (
        f"Search on validation ({metrics}); the test was never ranked. Chosen is the value that chose the settings, "
        "which favours lucky trainings; other seeds train the same settings again."
    )
    return Table(f"{run}-tuning", header, [rows], caption)
