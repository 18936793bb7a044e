"""Caveats about how a training ended: before it started, while it was improving, by a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aprec_like.types import Json
from evaluation.results.load import Caveat

MIN_UNDERFIT_SHARE = 0.8
"""A training without early stopping is underfit if its best epoch lies after this share of its epochs."""

MAX_GAIN = 1.1
"""A model whose metric is at most this many times that of Popularity is hardly better."""

MIN_OVERLAP = 0.5
"""A model with this share of Popularity's first items ranks nearly as Popularity does."""

MAX_GAIN_OF_SIMILAR = 1.25
"""As `MAX_GAIN`, for models that rank nearly as Popularity does."""

MIN_LOSS_FALL = 0.01
"""A loss that fell by this share in the last fifth of the epochs was still falling."""

MORE_TRAINING = {"time_limit": "a longer time limit", "max_epochs": "more max_epochs"}
"""What makes a training longer, by what ended it; more patience after early stopping."""

GOES_ON = {
    limit: f"{more} and the same command: training goes on where it stopped" for limit, more in MORE_TRAINING.items()
}
"""What to do about a training that a limit ended."""


def training_caveats(settings: Json, statuses: Sequence[Json]) -> tuple[Caveat, ...]:
    """Return what a reader must know about the trainings of a model.

    Args:
        settings: the model's entry in recipe.json.
        statuses: contents of status.json, one per seed.
    """
    found: dict[str, list[Caveat]] = {}
    for status in statuses:
        for caveat in _caveats(settings, status):
            found.setdefault(caveat.mark, []).append(caveat)
    if len(statuses) == 1:
        return tuple(first for (first,) in found.values())
    return tuple(
        replace(first, sentence=f"{first.sentence} (in {1 + len(others)} of {len(statuses)} trainings)")
        for first, *others in found.values()
    )


def stopped_while_improving(status: Json) -> bool:
    """Return whether a status.json has its best epoch in the last fifth of a training without early stopping."""
    if status.get("best_validation") is None or status.get("stopped_by") == "early_stopping":
        return False
    return bool(status.get("best_epoch", 0) >= MIN_UNDERFIT_SHARE * status.get("epochs", 1))


def _caveats(settings: Json, status: Json) -> Iterator[Caveat]:
    """Yield the caveats of one training."""
    if "epochs" not in status:  # a counting model
        return
    is_validated = status.get("best_validation") is not None
    yield from _popularity_caveats(settings, status, is_validated)
    epochs, best = status["epochs"], status.get("best_epoch")
    stopped_by, is_improving = status.get("stopped_by"), stopped_while_improving(status)
    if is_improving:
        remedy = GOES_ON["max_epochs"] if stopped_by == "max_epochs" else ""
        yield Caveat("underfit", f"still improving when training ended (best epoch {best} of {epochs})", remedy)
    if stopped_by == "time_limit":
        yield Caveat("time limit", f"training was ended by the time limit in epoch {epochs}", GOES_ON[stopped_by])
    elif stopped_by == "max_epochs" and is_validated and not is_improving:
        sentence = f"max_epochs={epochs} ended training before early stopping did (best epoch {best})"
        yield Caveat("epochs cut", sentence, GOES_ON[stopped_by])


def _popularity_caveats(settings: Json, status: Json, is_validated: bool) -> Iterator[Caveat]:
    """Yield a caveat if the model ranks hardly better than Popularity."""
    beside = status.get("beside_popularity")
    if not beside:
        return
    is_similar = beside["overlap"] >= MIN_OVERLAP
    if beside["model"] > (MAX_GAIN_OF_SIMILAR if is_similar else MAX_GAIN) * beside["popularity"]:
        return
    is_worse = round(beside["model"], 4) < round(beside["popularity"], 4)  # as shown
    comparative = "worse" if is_worse else "hardly better"
    facts = (
        f"{comparative} than Popularity ({beside['metric']} {beside['model']:.4f} against {beside['popularity']:.4f}, "
        f"{beside['overlap']:.0%} of its first items are the most popular ones)"
    )
    is_falling = status.get("loss_change", 0.0) <= -MIN_LOSS_FALL
    if is_validated and is_falling:
        sentence = f"{facts}, and its loss was still falling when training ended"
        yield Caveat("never started", sentence, _remedy(settings, status))
    elif is_validated and is_similar and _lacks_prior(settings):
        sentence = f"{facts}, as while a binary loss lowers all scores"
        yield Caveat("never started", sentence, _remedy(settings, status))
    else:
        yield Caveat("no better than Popularity", facts)


def _remedy(settings: Json, status: Json) -> str:
    """Return what lets a training start: a prior where the loss is binary, else more of what ended it."""
    longer = MORE_TRAINING.get(status.get("stopped_by", ""), "more patience")
    if _lacks_prior(settings):
        return f"prior_start=True, or {longer}, lets it start"
    return f"{longer} or a larger learning rate lets it start"


def _lacks_prior(settings: Json) -> bool:
    """Return whether a model has a binary loss whose prior is not 0, as that of one negative is, and starts at 0."""
    loss = settings.get("loss") or {}
    has_prior = loss.get("class") == "GBCE" or (loss.get("class") == "BCE" and loss.get("num_negatives") != 1)
    return has_prior and not settings.get("prior_start")
