"""Recommendations of a finished model for a new history of items."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from aprec_like.calibration import Probability
from aprec_like.datasets.download import default_data_dir
from aprec_like.errors import InputError
from aprec_like.interactions import Histories
from aprec_like.models import Scorer
from aprec_like.recipe_classes import LOSS_CLASSES
from aprec_like.settings import SettingsClasses
from aprec_like.types import Array, Json
from evaluation.calibration.predictions import find_probability
from evaluation.cli import DONE
from evaluation.printable import printable
from evaluation.results.own_classes import known_classes, load_own_classes
from evaluation.results.scorer import find_finished_model, load_scorer
from evaluation.results.store import RunFolder

NUM_SUGGESTIONS = 5
YEAR = re.compile(r"\s*\(\d{4}\)$")


@dataclass(frozen=True)
class RecommendOptions:
    """The command line of `evaluation.recommend`.

    Args:
        run: results folder.
        model: name of a finished model.
        items: the history, oldest first: ids or titles.
        k: number of items to recommend.
        seed: training seed; `None` for the first finished one.
        data: folder of data files; `None` for the default.
        json: whether to print a JSON object instead of a table.
        recipe: recipe file whose own classes are loaded; `None` for none.
    """

    run: Path
    model: str
    items: list[str]
    k: int
    seed: int | None
    data: Path | None
    json: bool
    recipe: Path | None = None


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A finished model of a run, ready to recommend.

    Args:
        run: the results folder.
        model: name of the model.
        seed: its training seed.
        scorer: the model.
        catalogue: the items: ids, and titles if known.
        probability: how scores become probabilities; `None` if they don't.
        exclude_seen: whether items of the history are excluded.
    """

    run: RunFolder
    model: str
    seed: int
    scorer: Scorer
    catalogue: pd.DataFrame
    probability: Probability | None
    exclude_seen: bool

    def recommend(self, history: Array, k: int) -> list[Json]:
        """Return the k best items after a history of item numbers, with scores and, if defined, probabilities."""
        scores = score_catalogue(self.scorer, history)
        items = top_items(scores, history if self.exclude_seen else history[:0], k)
        probabilities = None if self.probability is None else predict(self.probability, scores, items)
        return describe_items(self.catalogue, items, scores[items], probabilities)


def load_model(
    run: RunFolder, name: str, seed: int | None = None, data: Path | None = None, recipe: Path | None = None
) -> LoadedModel:
    """Load a finished model of a run; raises `InputError` if it is not finished or knows no new histories.

    Args:
        run: the results folder.
        name: name of the model.
        seed: training seed; `None` for the first finished one.
        data: folder of data files, to fit counting models again; `None` for the default.
        recipe: recipe file whose own classes are loaded; `None` for none.
    """
    settings, catalogue = run.read_recipe(), run.read_items()
    seed = find_finished_model(run, name, seed)
    own = load_own_classes(run, recipe)
    scorer = load_scorer(run, name, seed, data or default_data_dir(), own)
    probability = _known_probability(settings, name, len(catalogue), own)
    return LoadedModel(run, name, seed, scorer, catalogue, probability, bool(settings["evaluation"]["exclude_seen"]))


def print_recommendations(options: RecommendOptions) -> int:
    """Print the recommendations of a model; returns the exit code."""
    run = RunFolder(options.run)
    history = find_items(run.read_items(), options.items)  # before the model is loaded, which takes seconds
    loaded = load_model(run, options.model, options.seed, options.data, options.recipe)
    recommended, known = loaded.recommend(history, options.k), describe_items(loaded.catalogue, history)
    if options.json:
        answer: Json = {"run": run.path.name, "model": options.model, "seed": loaded.seed}
        answer |= {"history": known, "recommendations": recommended}
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        has_seeds = [name for name, _, _ in run.models()].count(options.model) > 1
        print(as_text(f"{options.model}, seed {loaded.seed}" if has_seeds else options.model, known, recommended))
    return DONE


def predict(probability: Probability, scores: Array, items: Array) -> Array:
    """Return the predicted probabilities of some items from the (num_items,) scores of all."""
    return probability(scores[None, items], np.array([np.logaddexp.reduce(scores)]))[0]


def _known_probability(
    recipe: Json, model: str, num_items: int, own: SettingsClasses | None = None
) -> Probability | None:
    """Return how scores of a model become probabilities; `None`, with a line on standard error, if that is unknown.

    Args:
        recipe: the content of recipe.json.
        model: name of the model.
        num_items: size of the catalogue.
        own: classes of the recipe's own, as `load_own_classes` returns them.
    """
    try:
        return find_probability(recipe["models"][model], num_items, known_classes(recipe, LOSS_CLASSES, own or {}))
    except InputError as error:
        print(f"no probabilities: {error}; --recipe FILE names the recipe of a loss of your own", file=sys.stderr)
        return None


def find_items(catalogue: pd.DataFrame, names: Sequence[str]) -> Array:
    """Return the catalogue indices of items given by id or title, (n,); raises `InputError` for unknown ones.

    Titles match in any case, and without their year if only one item matches.
    """
    ids = {str(item): index for index, item in enumerate(catalogue["item"])}
    titles: dict[str, list[int]] = {}
    if "title" in catalogue:
        for index, title in enumerate(catalogue["title"].astype(str)):
            for variant in {title.casefold(), YEAR.sub("", title.casefold())}:
                titles.setdefault(variant, []).append(index)

    def find(name: str) -> int:
        if name in ids:
            return ids[name]
        matches = titles.get(name.strip().casefold(), [])
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise InputError(f"several items are called {name!r}: {_list_items(catalogue, matches)}; use the id")
        raise InputError(f"there is no item {name!r}; {_suggest(catalogue, name.strip().casefold(), titles)}")

    return np.array([find(name) for name in names], np.int32)


def _suggest(catalogue: pd.DataFrame, name: str, titles: dict[str, list[int]]) -> str:
    """Suggest titles that contain a name, then similar titles; without titles, examples of ids."""
    similar = [title for title in titles if name in title] + difflib.get_close_matches(name, titles, NUM_SUGGESTIONS)
    indices = list(dict.fromkeys(index for title in similar for index in titles[title]))[:NUM_SUGGESTIONS]
    if indices:
        return f"did you mean {_list_items(catalogue, indices)}?"
    return f"examples of ids: {', '.join(str(item) for item in catalogue['item'].head(NUM_SUGGESTIONS))}"


def _list_items(catalogue: pd.DataFrame, indices: Sequence[int]) -> str:
    return "; ".join(_label(item) for item in describe_items(catalogue, np.array(indices)))


def _label(item: Json) -> str:
    return f"{item['item']} {item['title']}" if "title" in item else str(item["item"])


def score_catalogue(scorer: Scorer, history: Array) -> Array:
    """Return the (num_items,) float64 scores of all items after a history; raises `InputError` if one is not finite."""
    scores = np.asarray(scorer.score(Histories(history, np.array([0, len(history)]))), np.float64)[0]
    if not np.isfinite(scores).all():
        raise InputError("the model's scores for this history are not finite")
    return scores


def top_items(scores: Array, excluded: Array, k: int) -> Array:
    """Return the k items with the highest scores but those excluded, best first; ties go to the smaller number."""
    ranked = scores.copy()
    ranked[excluded] = -np.inf
    k = min(k, len(ranked))
    candidates = np.flatnonzero(ranked >= np.partition(ranked, -k)[-k])  # not all are sorted: there may be millions
    best = candidates[np.argsort(-ranked[candidates], kind="stable")][:k]
    return best[np.isfinite(ranked[best])]


def describe_items(
    catalogue: pd.DataFrame, indices: Array, scores: Array | None = None, probabilities: Array | None = None
) -> list[Json]:
    """Return one JSON object per item: id, title if known, score and probability if given."""
    items = []
    for position, index in enumerate(indices):
        row = catalogue.iloc[int(index)]
        item: Json = {"item": row["item"].item() if hasattr(row["item"], "item") else row["item"]}
        if "title" in catalogue:
            item["title"] = str(row["title"])
        if scores is not None:
            item["score"] = float(scores[position])
        if probabilities is not None:
            item["probability"] = float(probabilities[position])
        items.append(item)
    return items


def as_text(model: str, history: Sequence[Json], recommended: Sequence[Json]) -> str:
    """Return the recommendations as lines of text."""
    has_probability = bool(recommended) and "probability" in recommended[0]
    lines = [
        f"{model}, after {'; '.join(map(_label, history))}",
        "place  " + ("probability" if has_probability else "      score") + "  item",
    ]
    for place, item in enumerate(recommended, start=1):
        value = f"{item['probability']:11.6f}" if has_probability else f"{item['score']:11.4f}"
        lines.append(f"{place:5}  {value}  {item['item']}  {item.get('title', '')}".rstrip())
    return "\n".join(map(printable, lines))
