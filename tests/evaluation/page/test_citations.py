"""The page cites the works behind the classes of a recipe, and no others."""

import pytest

from aprec_like.datasets import PUBLISHED
from aprec_like.models import GRU4Rec
from aprec_like.recipe import eSASRec
from aprec_like.settings import describe
from aprec_like.training import Training
from evaluation.page.citations import REFERENCES, collect_bibtex, find_references, read_bibliography
from tests.evaluation.made_runs import MIXED


def test_exactly_the_works_behind_a_recipe_are_cited():
    keys = find_references({"dataset": {"class": "Simulated"}, "models": {"a": MIXED["gSASRec <t> & $k$"]}})
    assert keys == ["petrov2023gsasrec", "kang2018sasrec"]
    assert find_references({"model": describe(GRU4Rec())}) == ["hidasi2016session", "hidasi2018recurrent"]
    assert "tikhonovich2025esasrec" in find_references({"model": describe(eSASRec(Training()))})
    assert find_references({"dataset": {"class": "Gowalla"}, "models": {}}) == ["cho2011friendship"]
    assert collect_bibtex({"class": "Gowalla"}) == read_bibliography()["cho2011friendship"]
    assert collect_bibtex({"class": "Popularity"}) == ""


def test_every_entry_of_the_bibliography_is_complete_and_cited():
    assert {key for keys in REFERENCES.values() for key in keys} == set(read_bibliography())
    for key, entry in read_bibliography().items():
        assert entry.startswith("@") and entry.split("{", 1)[1].startswith(f"{key},")
        assert entry.count("{") == entry.count("}") and entry.endswith("\n}")


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_dataset_has_a_reference(name):
    assert find_references({"class": type(PUBLISHED[name]).__name__}) != []
