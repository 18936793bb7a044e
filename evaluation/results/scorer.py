"""Loads a finished model of a results folder as a scorer."""

from __future__ import annotations

from pathlib import Path

from aprec_like import models
from aprec_like.errors import InputError, first_line
from aprec_like.models import CountingModel, MatrixFactorisation, NeuralModel, Popularity, Scorer
from aprec_like.models.popularity import PopularityScorer
from aprec_like.ranking.rank_catalogue import NetworkScorer
from aprec_like.recipe_classes import recipe_classes
from aprec_like.settings import SettingsClasses, restore
from aprec_like.splits import counted_interactions
from evaluation.results.identity import identify
from evaluation.results.load_split import load_split
from evaluation.results.own_classes import known_classes
from evaluation.results.store import WEIGHTS, RunFolder, check_is_finished


def find_finished_model(run: RunFolder, name: str, seed: int | None = None) -> int:
    """Return the seed of a finished model: the given one, or its first; raises `InputError` if it is not finished."""
    finished = [(found, number) for found, number, folder in run.models() if folder.is_finished()]
    seeds = [number for found, number in finished if found == name]
    check_is_finished(name, [found for found, _ in finished], run.path)
    if seed is not None and seed not in seeds:
        raise InputError(f"{run.path}: {name} is finished with the seeds {', '.join(map(str, seeds))}, not with {seed}")
    return seeds[0] if seed is None else seed


def load_scorer(
    run: RunFolder, name: str, seed: int | None, data_dir: Path, own: SettingsClasses | None = None
) -> Scorer:
    """Load a finished model as a scorer of any history; raises `InputError` if files are missing or damaged.

    Networks are built from recipe.json and load the stored weights; Popularity uses the counts in items.parquet; other
    counting models are fitted again, for which the data must be on disk.

    Args:
        run: the results folder.
        name: name of the model.
        seed: training seed; `None` for the first finished one.
        data_dir: folder of data files.
        own: classes of the recipe's own, as `load_own_classes` returns them.
    """
    seed = find_finished_model(run, name, seed)
    folder, recipe, items = run.model(name, seed), run.read_recipe(), run.read_items()
    run.verify(recipe)
    if name not in recipe["models"]:
        raise InputError(f"{run.path}: {name} is not in the recipe that this run had last")
    if "run" in recipe:
        folder.check_identity(identify(recipe, run.read_dataset(), name, seed))
    settings, classes = recipe["models"][name], known_classes(recipe, recipe_classes(), own or {})
    if settings.get("class") == "Trained":
        _check_is_known(run, name, settings.get("model"), classes)
        model = restore(settings.get("model"), classes)
        if isinstance(model, MatrixFactorisation):
            raise InputError(f"{name} is a matrix factorisation, which knows only its own users, no new histories")
        if not isinstance(model, NeuralModel):
            raise InputError(f"{run.path}: {name} is no network that this version knows")
        weights = folder.verified(WEIGHTS)
        return NetworkScorer(_load_network(model, len(items), bool(settings.get("prior_start")), weights))
    _check_is_known(run, name, settings, classes)
    model = restore(settings, classes)
    if type(model) is Popularity:  # not a class of the recipe's own that is derived from it
        return PopularityScorer(items["train_count" if run.fit_on() == "train" else "count"].to_numpy())
    if not isinstance(model, CountingModel):
        raise InputError(f"{run.path}: {name} is neither a network nor a counting model")
    return model.fit(counted_interactions(load_split(run, data_dir, own), run.fit_on()))


def _check_is_known(run: RunFolder, name: str, settings: object, classes: SettingsClasses) -> None:
    """Refuse a model of a class that is not known: no code of a results folder is run unasked."""
    kind = settings.get("class") if isinstance(settings, dict) else None
    if isinstance(kind, str) and kind not in classes:
        raise InputError(
            f"{run.path}: {name} is a {kind}, a class that its recipe defined, and no code of a results folder is run "
            "unasked; --recipe FILE names the recipe with that class, which is executed"
        )


def _load_network(model: NeuralModel, num_items: int, prior_start: bool, weights: Path) -> models.Network:
    network = model.build(num_items, logit_bias=0.0 if prior_start else None)
    try:
        network.load_weights(weights)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{weights}: are not the weights of {model}: {first_line(error)}") from error
    return network
