"""The recipe that a search writes runs as it is, with the best settings and their budget."""

import ast
from pathlib import Path

from aprec_like.losses import BCE
from aprec_like.recipe import TuningBudget, load_recipe
from evaluation.tuning.tuned_file import ORIGIN, ChosenModel, tuned_source
from tests.evaluation.tuning.small_studies import write_recipe

BUDGET = TuningBudget(trials=20, hours=0.5, epochs=80, num_settings=3, max_trials=20)


def test_the_tuned_recipe_has_the_settings_and_the_budget(tmp_path):
    path = write_recipe(tmp_path)
    recipe = load_recipe(path)
    values = {"learning_rate": 0.0123, "dropout_rate": 0.25, "loss": recipe.spaces["gSASRec"]["loss"].values[1]}
    chosen = ChosenModel("gSASRec", recipe.spaces["gSASRec"], values, BUDGET, "validation 0.5")
    target = tmp_path / "circle_tuned.py"
    target.write_text(tuned_source(path.read_text(), path, target, [chosen], "2026-01-01"))
    tuned = load_recipe(target)
    model = tuned.models["gSASRec"]
    assert (model.training.optimizer.learning_rate, model.model.dropout_rate, model.loss) == (0.0123, 0.25, BCE(2))
    assert tuned.tuning == {"gSASRec": BUDGET}
    assert tuned.models["SASRec"] == recipe.models["SASRec"] and tuned.dataset == recipe.dataset


def test_the_tuned_recipe_says_where_it_comes_from(tmp_path):
    path = write_recipe(tmp_path)
    chosen = ChosenModel("SASRec", {}, {"learning_rate": 0.01}, BUDGET, "validation 0.5")
    docstring = ast.get_docstring(ast.parse(tuned_source(path.read_text(), path, Path("x.py"), [chosen], "2026-01-01")))
    assert f"{ORIGIN} from circle.py" in docstring and "2026-01-01" in docstring
    assert "Run:       python -m evaluation.run x.py\nExpected:  SASRec: validation 0.5\nDuration:  " in docstring


def test_a_recipe_without_a_docstring_gets_one():
    chosen = ChosenModel("SASRec", {}, {"learning_rate": 0.01}, BUDGET, "")
    source = tuned_source("recipe = 1\n", Path("r.py"), Path("x.py"), [chosen], "2026-01-01")
    assert ast.get_docstring(ast.parse(source)).startswith(f"r.\n\n{ORIGIN} from r.py") and "recipe = 1\n" in source


def test_the_lines_of_the_docstring_are_not_too_long_and_a_question_stays_one():
    chosen = [ChosenModel(f"model number {number}", {}, {"learning_rate": 0.01}, BUDGET, "") for number in range(9)]
    docstring = ast.get_docstring(
        ast.parse(tuned_source('"""Who wins?"""\n', Path("r.py"), Path("x.py"), chosen, "2026-01-01"))
    )
    assert docstring.startswith("Who wins?\n\n") and max(map(len, docstring.splitlines())) <= 120
    assert "model number 7, model number 8 chosen on validation" in " ".join(docstring.split())
