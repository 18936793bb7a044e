"""The examples in docstrings give the results that they show."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PATHS = [path for path in sorted((ROOT / "aprec_like").rglob("*.py")) if ">>> " in path.read_text()]
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PATHS]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_right(name):
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0 and failed == 0


def test_the_classes_that_recipes_are_made_of_have_examples():
    assert {"aprec_like.interactions", "aprec_like.recipe.recipe", "aprec_like.splits.leave_one_out"} <= set(MODULES)
