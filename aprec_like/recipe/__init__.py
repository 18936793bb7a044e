"""Recipes: the declaration of an experiment, presets of published models, and the loading of recipe files."""

from aprec_like.recipe.presets import MFBPR, gSASRec
from aprec_like.recipe.recipe import Evaluation, Recipe, sampled_name
from aprec_like.recipe.recipe_file import load_recipe
from aprec_like.training.settings import Trained

__all__ = ["MFBPR", "Evaluation", "Recipe", "Trained", "gSASRec", "load_recipe", "sampled_name"]
