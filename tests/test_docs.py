"""What the README and docs/ say is run: commands, recipes, code, links, and the build of the site."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from aprec_like import datasets, filters, losses, metrics, models, recipe, splits
from aprec_like.recipe import Evaluation, Recipe, load_recipe
from aprec_like.training import train
from evaluation import compare
from evaluation.running.plan import describe_plan

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MAX_README_LINES = 150
TRAIN = "python -m evaluation.run films.py\n"
"""The command of the tutorial that trains for minutes."""
SMOKE = "python -m evaluation.run films.py --smoke\n"
"""Its rehearsal, which takes as long as the shortened training."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.S)


def files(page: str) -> dict[str, str]:
    """Python blocks that begin with `# file: NAME`, by name."""
    named = [block for block in blocks(page, "python") if block.startswith("# file: ")]
    return {block.splitlines()[0].removeprefix("# file: "): block for block in named}


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_command_of_the_tutorial_runs(is_whole, tmp_path):
    for name, text in files("docs/tutorial.md").items():
        (tmp_path / name).write_text(text)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    commands = "".join(blocks("docs/tutorial.md", "sh"))
    if not is_whole:
        assert commands.count(TRAIN) == 1
        commands = commands.replace(TRAIN, f"{TRAIN.rstrip()} --time-limit 0.05\n").replace(SMOKE, "")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert r"\begin{table}" in (tmp_path / "table.tex").read_text()
    assert r"\caption{Our films. Means over" in (tmp_path / "column.tex").read_text()
    assert (tmp_path / "results/films/report.html").stat().st_size > 100_000
    if not is_whole:
        return
    ndcg = {
        name: json.loads((tmp_path / f"results/films/{name}/seed_1/metrics.json").read_text())["metrics"]["NDCG@10"]
        for name in ("gSASRec", "Popularity")
    }
    assert ndcg["gSASRec"]["low"] > ndcg["Popularity"]["high"]


def test_a_recipe_may_define_its_own_loss(tmp_path):
    loaded = load_from_docs("own_loss.py", tmp_path)
    split = loaded.split.split(loaded.load(tmp_path))
    history = train(loaded.models["SASRec, hinge"], split, seed=1).history
    assert history[-1].loss < history[0].loss - 0.01


def test_a_recipe_may_define_its_own_model(tmp_path):
    loaded = load_from_docs("own_model.py", tmp_path)
    split = loaded.split.split(loaded.load(tmp_path))
    outcome = train(loaded.models["GRU"], split, seed=1)
    assert outcome.history[-1].loss < outcome.history[0].loss - 0.01
    assert "GRU: about 12,800 parameters; 37 steps per epoch" in describe_plan(loaded, ["GRU"], tmp_path)


def load_from_docs(name, folder):
    (folder / name).write_text(files("docs/extending.md")[name])
    return load_recipe(folder / name)


def test_gbce_trains_a_keras_model_without_the_harness():
    code = next(block for block in blocks("docs/extending.md", "python") if block.startswith("import keras"))
    names = {}
    exec(compile(code, "docs/extending.md", "exec"), names)
    values = names["history"].history["loss"]
    assert values[-1] < 0.7 * values[0]
    every_item = np.arange(100)
    logits = names["model"].predict([every_item[:50], np.resize(every_item[:17], (50, 17))], verbose=0)
    assert np.isfinite(logits).all()


@pytest.mark.parametrize("page", ["README.md", "docs/data.md"])
def test_recipes_in_the_text_are_recipes(page):
    modules = (datasets, filters, losses, metrics, models, recipe, splits)
    names = {name: value for module in modules for name, value in vars(module).items() if not name.startswith("_")}
    (code,) = [block for block in blocks(page, "python") if "recipe = " in block]
    scope = {} if "import" in code else names  # what has imports can be pasted as it is
    exec(compile(code, page, "exec"), scope)
    assert isinstance(scope["recipe"], Recipe)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_linked_file_exists(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_file_exists(page):
    """Paths in backticks, such as `aprec_like/losses/gbce.py`."""
    paths = re.findall(r"`((?:aprec_like|evaluation|recipes|tests|docs)/[\w/.-]+)`", page.read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_numbers_beside_the_paper_are_those_that_the_named_command_prints(monkeypatch, capsys):
    """Rows of a table, between a comment with its command and the next comment."""
    text = (ROOT / "docs/reproduction.md").read_text()
    ((command, table),) = re.findall(r"<!-- python -m evaluation\.(compare .*?) -->\n(.*?)<!--", text, re.S)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", command.split())
    compare.run_command(compare.main)
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert table.splitlines() == printed and len(printed) > 20


def test_the_page_on_statistics_says_of_every_field_of_a_recipe_whether_it_makes_runs_incomparable():
    section = (ROOT / "docs/statistics.md").read_text().partition("## What is refused")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}
    of_recipe = {field.name for field in fields(Recipe)} - {"evaluation"}
    assert named == of_recipe | {f"evaluation.{field.name}" for field in fields(Evaluation)}


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= MAX_README_LINES


def test_the_site_builds_without_a_warning(tmp_path):
    assert importlib.util.find_spec("mkdocs"), "the extra `docs` is part of the extra `test`"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    api = (tmp_path / "site/api/index.html").read_text()
    assert all(name in api for name in ("NDCG", "GBCE", "LeaveOneOut", "Recipe"))
