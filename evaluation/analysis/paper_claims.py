"""What a paper reports beside the values of metrics: training times, marks of significance, known differences."""

from __future__ import annotations

from dataclasses import dataclass

from aprec_like.types import Json

MINUTES = "Minutes"
"""Key of a recipe's published training time, and title of the column of ours."""


@dataclass(frozen=True)
class PaperClaims:
    """What a paper reports, by model.

    Args:
        minutes: of training.
        stars: metrics in which the paper marks the model as significantly different from its best one.
        known_differences: why the model is not expected to have its published values.
    """

    minutes: dict[str, float]
    stars: dict[str, list[str]]
    known_differences: dict[str, str]


def read_claims(settings: Json) -> PaperClaims:
    """Return the claims in the settings of a run; old runs have fewer."""
    published: dict[str, dict[str, float]] = settings.get("published", {})
    return PaperClaims(
        minutes={name: values[MINUTES] for name, values in published.items() if MINUTES in values},
        stars=settings.get("published_stars", {}),
        known_differences=settings.get("known_differences", {}),
    )
