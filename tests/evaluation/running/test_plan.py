import subprocess
import sys
from pathlib import Path

import pytest

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
from aprec_like.recipe import load_recipe
import evaluation.running.run_recipe
from evaluation.running.plan import describe_plan
recipe = load_recipe(Path("recipes/{name}.py"))
describe_plan(recipe, list(recipe.models), Path("{tmp_path}"))
tf.config.threading.set_inter_op_parallelism_threads(3)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
