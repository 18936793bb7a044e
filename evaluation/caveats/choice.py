"""Which of several variants of a model validation chooses, so that no one has to choose on the test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aprec_like.types import Json
from evaluation.results.load import ModelResults


def choice_sentences(models: Sequence[ModelResults], metrics: Sequence[str]) -> tuple[str, ...]:
    """Return for every architecture and loss with several variants the one that is best on validation.

    Args:
        models: the models of a table.
        metrics: the metrics of the table; the test value is of the one that validation used, if it is there.
    """
    groups: dict[tuple[str, str, str], list[ModelResults]] = {}
    for model in models:
        if (key := _variants(model.settings)) and model.best_validation is not None:
            groups.setdefault(key, []).append(model)
    return tuple(_sentence(*key, group, metrics) for key, group in groups.items() if len(group) > 1)


def _variants(settings: Json) -> tuple[str, str, str] | None:
    """Return architecture, loss and validation metric, which variants of a model have in common."""
    stopping = (settings.get("training") or {}).get("early_stopping") or {}
    if settings.get("class") != "Trained" or "metric" not in stopping:
        return None
    return settings["model"]["class"], settings["loss"]["class"], stopping["metric"]


def _sentence(architecture: str, loss: str, metric: str, models: list[ModelResults], metrics: Sequence[str]) -> str:
    values = {model.name: model.best_validation or 0.0 for model in models}
    shown = metric if metric in metrics else metrics[-1]
    tested = {model.name: float(np.mean(model.per_user(shown))) for model in models}
    chosen, best = max(values, key=values.__getitem__), max(tested, key=tested.__getitem__)
    text = (
        f"of the {len(models)} variants of {architecture} with {loss}, validation chooses {chosen} ({metric} "
        f"{values[chosen]:.4f}); its test {shown} is {tested[chosen]:.4f}"
    )
    if best == chosen:
        return text
    return f"{text} (the best on the test, {best} with {tested[best]:.4f}, would be chosen on the test)"
