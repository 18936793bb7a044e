import subprocess
import sys
from pathlib import Path

import pytest

from aprec_like.errors import InputError
from aprec_like.recipe import load_recipe
from evaluation.running.plan import describe_plan

ROOT = Path(__file__).parents[3]


def test_a_plan_without_the_data_uses_the_published_sizes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = load_recipe(Path("recipes/ml1m_gsasrec.py"))
    plan = describe_plan(recipe, list(recipe.models), tmp_path)
    assert "not on disk: published numbers): 6,040 users, 3,416 items, 999,611 interactions" in plan
    line = next(line for line in plan.splitlines() if line.startswith("gSASRec:"))
    for part in ("alpha 0.074963, beta 0.30622", "1,067,008 parameters", "47 steps per epoch of 128 users"):
        assert part in line


@pytest.mark.parametrize("name", ["quickstart", "ml1m_gsasrec"])
def test_planning_initialises_no_device(name, tmp_path):
    """The run command must not occupy the GPU: threads can be set only before a device is initialised."""
    code = f"""
from pathlib import Path
import tensorflow as tf
from aprec_like.errors import InputError
from aprec_like.recipe import load_recipe
import evaluation.running.run_recipe
from evaluation.running.plan import describe_plan
recipe = load_recipe(Path("recipes/{name}.py"))
describe_plan(recipe, list(recipe.models), Path("{tmp_path}"))
tf.config.threading.set_inter_op_parallelism_threads(3)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


RECIPE = """
from aprec_like.datasets import CSVFile
from aprec_like.losses import GBCE
from aprec_like.models import SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training

recipe = Recipe(
    dataset=CSVFile("shop.csv", user="user", item="item"),
    split=LeaveOneOut(num_validation_users=None),
    models={"gSASRec": Trained(SASRec(max_length=8, embedding_dim=8), GBCE(16, 0.75), Training())},
    title="Shop & Co",
)
"""


def plan_of(folder, rows):
    (folder / "shop.py").write_text(RECIPE)
    if rows:
        (folder / "shop.csv").write_text("\n".join(["user,item", *rows]))
    return describe_plan(load_recipe(folder / "shop.py"), ["gSASRec"], folder / "data")


def test_a_plan_of_a_missing_file_names_all_places_where_it_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=r"there is no such file; looked for .*/data/shop\.csv, .*/shop\.csv"):
        plan_of(tmp_path, [])


def test_a_plan_says_what_every_table_will_say_of_the_data_and_has_a_row_for_their_table(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = plan_of(tmp_path, [f"u{user},i{user * 3 + place}" for user in range(4) for place in range(3)])
    assert "no timestamps: the rows of a user are taken to be in the order of time" in plan
    assert r"Shop \& Co & 4 & 12 & 12 & 3.0 & 25.0000\% \\" in plan
    assert "more negatives than other items" in plan  # 16 of 11
