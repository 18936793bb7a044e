"""The index of a folder of runs, and that the one of the published results is true."""

import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation import report
from evaluation.cli import run_command
from evaluation.page.results_index import BEGIN, END, index_text, network_sizes
from tests.evaluation.made_runs import MIXED, make_run

ROOT = Path(__file__).parents[3]


def run_report(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["report", *map(str, arguments)])
    return run_command(report.main)


def test_the_index_of_the_published_results_is_true(tmp_path):
    """Only of those that are published: a working copy may hold other runs."""
    listed = subprocess.run(
        ["git", "ls-files", "results/*/recipe.json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    assert paths
    for path in paths:
        shutil.copytree(path.parent, tmp_path / path.parent.name)
    assert index_text(tmp_path) in (ROOT / "results/README.md").read_text()


def test_an_index_is_written_between_its_marks_and_the_text_around_it_is_kept(tmp_path, monkeypatch):
    published = {"SASRec": {"NDCG@10": 0.9}, "SSM": {"NDCG@10": 0.1}}
    known = {"SSM": "a smaller network"}
    run = make_run(tmp_path / "first", published=published, known_differences=known)
    run.write_recipe(b'"""Shows a thing.\n\nMore."""\n', run.read_recipe())
    (tmp_path / "README.md").write_text(f"Before.\n{BEGIN}\nstale\n{END}\nAfter.\n")
    assert run_report(monkeypatch, tmp_path, "--index") == 0
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("Before.\n") and text.endswith("\nAfter.\n") and "stale" not in text
    assert "- [first](first): Shows a thing.\n" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| first |")]
    assert "| 0 of 2 hold, 1 known difference, 1 off |" in row
    assert "| SSM |" in row.replace(" (underfit)", "")
    assert run_report(monkeypatch, tmp_path, "--index") == 0
    assert (tmp_path / "README.md").read_text() == text


def test_a_folder_without_readme_gets_one(tmp_path, monkeypatch):
    make_run(tmp_path / "first", models={"SASRec": MIXED["SASRec"]})
    assert run_report(monkeypatch, tmp_path, "--index") == 0
    assert (tmp_path / "README.md").read_text().startswith("# Results\n")


@pytest.mark.parametrize("text", ["no marks\n", f"{END}\n{BEGIN}\n"])
def test_a_readme_without_a_place_for_the_index_is_left_alone(text, tmp_path, monkeypatch, capsys):
    make_run(tmp_path / "first")
    (tmp_path / "README.md").write_text(text)
    assert run_report(monkeypatch, tmp_path, "--index") == 2
    assert (tmp_path / "README.md").read_text() == text
    assert "needs the lines" in capsys.readouterr().err


def test_a_folder_without_runs_is_refused(tmp_path, monkeypatch, capsys):
    assert run_report(monkeypatch, tmp_path, "--index") == 2
    assert "holds no run" in capsys.readouterr().err
    assert not (tmp_path / "README.md").exists()


def test_sizes_are_listed_once():
    large = {"model": {"class": "SASRec", "max_length": 200, "embedding_dim": 128}}
    small = {"model": {"class": "SASRec", "max_length": 50, "embedding_dim": 64}}
    assert network_sizes({"a": large, "b": {"class": "Popularity"}, "c": small, "d": large}) == ["200 x 128", "50 x 64"]
