"""BibTeX entries of the works behind a recipe, by the class names of its models, losses and datasets."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from aprec_like.losses import Loss
from aprec_like.recipe_classes import LOSS_CLASSES
from evaluation.page.html import read_asset

REFERENCES = {
    "SASRec": ("kang2018sasrec",),
    "LiGR": ("borisyuk2025features", "tikhonovich2025esasrec"),
    "HSTU": ("zhai2024actions",),
    "GRU4Rec": ("hidasi2016session", "hidasi2018recurrent"),
    "BERT4Rec": ("sun2019bert4rec",),
    "MatrixFactorisation": ("koren2009matrix",),
    "MovieLens1M": ("harper2015movielens", "kang2018sasrec"),
    "MovieLens": ("harper2015movielens",),
    "Steam": ("kang2018sasrec", "sun2019bert4rec"),
    "Beauty": ("mcauley2015image", "sun2019bert4rec"),
    "AmazonVideo": ("mcauley2015image", "kang2018sasrec"),
    "Gowalla": ("cho2011friendship",),
    **{loss.__name__: loss.citations for loss in LOSS_CLASSES.values() if issubclass(loss, Loss)},
}
"""Keys of references.bib by class; for a dataset also the works whose version of it is used."""


@functools.cache
def read_bibliography() -> dict[str, str]:
    """Return the entries of references.bib by key; each ends before the next line that starts with @."""
    entries = re.split(r"\n+(?=@)", read_asset("references.bib").strip())
    return {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}


def find_references(settings: object) -> list[str]:
    """Return the keys of the works behind settings of recipe.json, in the order of references.bib."""
    keys = {key for name in _class_names(settings) for key in REFERENCES.get(name, ())}
    return [key for key in read_bibliography() if key in keys]


def collect_bibtex(settings: object) -> str:
    """Return the BibTeX entries of the works behind settings of recipe.json."""
    return "\n\n".join(read_bibliography()[key] for key in find_references(settings))


def _class_names(settings: object) -> Iterator[str]:
    """Yield the class names in nested settings."""
    if isinstance(settings, dict):
        if isinstance(name := settings.get("class"), str):
            yield name
        for value in settings.values():
            yield from _class_names(value)
    elif isinstance(settings, list):
        for value in settings:
            yield from _class_names(value)
