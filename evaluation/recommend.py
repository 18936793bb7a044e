"""Ask a finished model: what comes after these items?

python -m evaluation.recommend results/ml1m_gsasrec --model gSASRec --items "Toy Story (1995)" "Bug's Life, A (1998)"
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from aprec_like.errors import InputError
from aprec_like.interactions import Histories
from aprec_like.types import Array
from evaluation.cli import DONE, EXIT_CODES, import_tensorflow, run_command
from evaluation.results.store import RunFolder

if TYPE_CHECKING:
    from aprec_like.models import Scorer

NUM_SUGGESTIONS = 5
YEAR = re.compile(r"\s*\(\d{4}\)$")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.recommend",
        description="The best next items after a history, with their predicted probabilities where the model's scores "
        "mean some. Any finished model of a results folder can be asked, but those that know only their own users.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="a results folder")
    parser.add_argument("--model", required=True, metavar="NAME", help="a finished model of it")
    parser.add_argument(
        "--items",
        nargs="+",
        required=True,
        metavar="ID",
        help="the history, oldest first: the data's own ids, or titles",
    )
    parser.add_argument("-k", type=int, default=10, metavar="N", help="how many items to recommend (default: 10)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the training (default: the first finished)")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data folder, for models that have to count again (default: as in run)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if arguments.k < 1:
        parser.error("-k must be at least 1")
    return arguments


def main() -> int:
    """Print the recommendations that the command line asks for."""
    arguments = parse_arguments()
    from aprec_like.datasets.download import default_data_dir

    run = RunFolder(arguments.run)
    settings = run.read_recipe()
    catalogue = run.read_items()
    history = find_items(catalogue, arguments.items)
    import_tensorflow()
    from evaluation.analysis.calibration import probability_of
    from evaluation.results.scorer import finished_folder, load_scorer

    folder = finished_folder(run, arguments.model, arguments.seed)
    scorer = load_scorer(run, arguments.model, arguments.seed, arguments.data or default_data_dir())
    excluded = history if settings["evaluation"]["exclude_seen"] else history[:0]
    items, scores, logsumexp = best_items(scorer, history, excluded, arguments.k)
    probability = probability_of(settings["models"][arguments.model], len(catalogue))
    chances = None if probability is None else probability(scores[None], np.array([logsumexp]))[0]
    found = describe(catalogue, items, scores, chances)
    known = describe(catalogue, history)
    if arguments.json:
        answer = {"run": run.path.name, "model": arguments.model, "seed": int(folder.path.name.removeprefix("seed_"))}
        print(json.dumps(answer | {"history": known, "recommendations": found}, indent=2, ensure_ascii=False))
    else:
        print(as_text(arguments.model, known, found))
    return DONE


def find_items(catalogue: pd.DataFrame, words: Sequence[str]) -> Array:
    """(n,) places in the catalogue of items that are called by their id or title; raises `InputError` on a miss.

    A title may be in any case, and without its year if that leaves one item only.
    """
    ids = {str(item): place for place, item in enumerate(catalogue["item"])}
    titles: dict[str, list[int]] = {}
    if "title" in catalogue:
        for place, title in enumerate(catalogue["title"].astype(str)):
            for name in {title.casefold(), YEAR.sub("", title.casefold())}:
                titles.setdefault(name, []).append(place)

    def find(word: str) -> int:
        if word in ids:
            return ids[word]
        places = titles.get(word.strip().casefold(), [])
        if len(places) == 1:
            return places[0]
        if places:
            raise InputError(f"several items are called {word!r}: {_named(catalogue, places)}; say which by its id")
        raise InputError(f"there is no item {word!r}; {_suggestion(catalogue, word.strip().casefold(), titles)}")

    return np.array([find(word) for word in words], np.int32)


def _suggestion(catalogue: pd.DataFrame, word: str, titles: dict[str, list[int]]) -> str:
    """What may have been meant: titles with the word in them, then titles like it."""
    names = [name for name in titles if word in name] + difflib.get_close_matches(word, titles, NUM_SUGGESTIONS)
    places = list(dict.fromkeys(place for name in names for place in titles[name]))[:NUM_SUGGESTIONS]
    if places:
        return f"did you mean {_named(catalogue, places)}?"
    return f"ids are such as {', '.join(str(item) for item in catalogue['item'].head(NUM_SUGGESTIONS))}"


def _named(catalogue: pd.DataFrame, places: list[int]) -> str:
    return "; ".join("{item} {title}".format(**item) for item in describe(catalogue, np.array(places)))


def best_items(scorer: Scorer, history: Array, excluded: Array, k: int) -> tuple[Array, Array, float]:
    """The best items after a history, their scores, and the logarithm of the sum of exp(score) over the catalogue."""
    scores = np.asarray(scorer.score(Histories(history, np.array([0, len(history)]))), np.float64)[0]
    if not np.isfinite(scores).all():
        raise InputError("the model gives no finite scores for this history")
    ranked = scores.copy()
    ranked[excluded] = -np.inf
    best = np.argsort(-ranked, kind="stable")[:k]
    best = best[np.isfinite(ranked[best])]
    return best, scores[best], float(np.logaddexp.reduce(scores))


def describe(
    catalogue: pd.DataFrame, places: Array, scores: Array | None = None, probabilities: Array | None = None
) -> list[dict[str, Any]]:
    """Items as plain values: id, title where known, score and probability where given."""
    items = []
    for number, place in enumerate(places):
        row = catalogue.iloc[int(place)]
        item: dict[str, Any] = {"item": row["item"].item() if hasattr(row["item"], "item") else row["item"]}
        if "title" in catalogue:
            item["title"] = str(row["title"])
        if scores is not None:
            item["score"] = float(scores[number])
        if probabilities is not None:
            item["probability"] = float(probabilities[number])
        items.append(item)
    return items


def as_text(model: str, history: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]]) -> str:
    """For the terminal."""
    names = ["{item} {title}".format(**item) if "title" in item else str(item["item"]) for item in history]
    has_chances = bool(found) and "probability" in found[0]
    lines = [
        f"{model}, after {'; '.join(names)}",
        "place  " + ("probability" if has_chances else "      score") + "  item",
    ]
    for place, item in enumerate(found, start=1):
        value = f"{item['probability']:11.6f}" if has_chances else f"{item['score']:11.4f}"
        lines.append(f"{place:5}  {value}  {item['item']}  {item.get('title', '')}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_command(main))
