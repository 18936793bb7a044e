"""Recipes: the declaration of an experiment, presets of published models, search spaces, and the loading of files."""

from aprec_like.recipe.presets import MFBPR, eSASRec, gSASRec
from aprec_like.recipe.ranges import Choice, Integers, LogIntegers, LogUniform, Uniform
from aprec_like.recipe.recipe import Evaluation, Recipe, sampled_name
from aprec_like.recipe.recipe_file import load_recipe
from aprec_like.recipe.space import SearchSpace
from aprec_like.recipe.tuning import TuningBudget, tuned_recipe
from aprec_like.training.settings import Trained

__all__ = [
    "MFBPR",
    "Choice",
    "Evaluation",
    "Integers",
    "LogIntegers",
    "LogUniform",
    "Recipe",
    "SearchSpace",
    "Trained",
    "TuningBudget",
    "Uniform",
    "eSASRec",
    "gSASRec",
    "load_recipe",
    "sampled_name",
    "tuned_recipe",
]
