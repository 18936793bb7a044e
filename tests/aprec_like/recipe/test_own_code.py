"""Digests of the code of a recipe's own classes: they follow what the class does, not how it is written down."""

import sys

import pytest

from aprec_like.recipe import load_recipe
from aprec_like.recipe.own_code import describe_code

FORMULA = """
import weights
from shift import by

FLOOR = 1.0
SPARE = 7
def most(counts):
    return np.maximum(counts * weights.FACTOR + by(0), FLOOR)
"""
RECIPE = (
    """
from dataclasses import dataclass
import numpy as np
from aprec_like.datasets import Simulated
from aprec_like.models import CountingModel, Popularity
from aprec_like.recipe import Recipe
"""
    + FORMULA
    + '''
class Unused: ...

@dataclass(frozen=True)
class Own(CountingModel):
    """A model."""
    def fit(self, known):
        return most(known.counts)

recipe = Recipe(Simulated(num_users=600, num_items=400), {"Own": Own(), "Popularity": Popularity()})
'''
)
FILES = {"recipe.py": RECIPE, "weights.py": "FACTOR = 2\n", "shift.py": "def by(value):\n    return value\n"}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """Return a function that writes the files with one replacement and returns the digests of their code."""

    def digest(before="", after="", name="recipe.py"):
        assert before in FILES[name]
        for file, text in FILES.items():
            (tmp_path / file).write_text(text.replace(before, after) if before and file == name else text)
            sys.modules.pop(file.removesuffix(".py"), None)
        code = describe_code(load_recipe(tmp_path / "recipe.py"))
        assert list(code["models"]) == ["Own"] and not code["shared"]
        return code["models"]["Own"]["Own"]

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two versions of a file within a second have one timestamp
    return digest


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("most(known.counts)", "most(-known.counts)", "recipe.py"),
        ("np.maximum", "np.minimum", "recipe.py"),
        ("FLOOR = 1.0", "FLOOR = 2.0", "recipe.py"),
        ("FACTOR = 2", "FACTOR = 3", "weights.py"),
        ("return value", "return -value", "shift.py"),
    ],
    ids=["a method", "a function it calls", "a constant of that", "an imported module", "an imported function"],
)
def test_the_digest_changes_with(digest, before, after, name):
    assert digest(before, after, name) != digest()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""A model."""', '"""The model."""'),
        ("most(known.counts)", "most( known.counts )  # of items"),
        ("num_items=400", "num_items=500"),
        ("SPARE = 7", "SPARE = 8"),
        ("class Unused: ...", ""),
    ],
    ids=["a docstring", "formatting and comments", "other settings", "an unused constant", "an unused class"],
)
def test_the_digest_does_not_change_with(digest, before, after):
    assert digest(before, after) == digest()


def test_classes_of_the_package_have_no_digest(tmp_path):
    (tmp_path / "recipe.py").write_text(RECIPE.replace(FORMULA, "").replace('"Own": Own(), ', ""))
    assert describe_code(load_recipe(tmp_path / "recipe.py")) == {}
