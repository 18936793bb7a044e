import pytest

from aprec_like.datasets import Simulated, TextFile
from aprec_like.filters import KCore, WithoutRepeats
from aprec_like.metrics import NDCG
from aprec_like.models import Oracle, Popularity
from aprec_like.recipe import Evaluation, Recipe


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": (1, 1)}, "distinct seeds"),
        ({"seeds": ()}, "distinct seeds"),
        ({"seeds": (2**32,)}, "distinct seeds from 0 to"),
        ({"published": {"Other": {"NDCG@10": 0.1}}}, "belong in literature. Received: Other"),
        ({"evaluation": Evaluation}, "evaluation"),
        ({"fit_on": "everything"}, "fit_on to be one of train, train.validation, mixed. Received: 'everything'"),
        ({"filters": KCore(5, 5)}, r"filters to be a tuple: filters=\(KCore\(.*\),\) with a comma"),
        ({"seeds": 3}, r"seeds to be a tuple: seeds=\(3,\) with a comma"),
        ({"groups": {"a": ("Other",)}}, "groups of its models"),
        ({"groups": {"a": ("Popularity",), "b": ("Popularity",)}}, "each in at most one group"),
    ],
)
def test_inconsistent_recipes_are_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Recipe(dataset=TextFile("x"), models={"Popularity": Popularity()}, **settings)


def test_a_model_without_a_name_is_refused():
    with pytest.raises(TypeError, match=r"Recipe needs models to be a dict. Received: Popularity\(\)"):
        Recipe(dataset=TextFile("x"), models=Popularity())


def test_an_oracle_must_have_the_dataset_of_the_recipe():
    with pytest.raises(ValueError, match="the Oracle of its dataset"):
        Recipe(dataset=Simulated(seed=1), models={"Oracle": Oracle(Simulated(seed=2))})


def test_an_oracle_of_filtered_data_is_refused():
    """Filters renumber items and remove interactions, which the true probabilities do not consider."""
    with pytest.raises(ValueError, match="filtered data"):
        Recipe(dataset=Simulated(seed=1), models={"Oracle": Oracle(Simulated(seed=1))}, filters=(WithoutRepeats(),))


def test_a_repeated_metric_is_refused():
    with pytest.raises(ValueError, match="each metric once"):
        Evaluation(metrics=(NDCG(10), NDCG(10)))
