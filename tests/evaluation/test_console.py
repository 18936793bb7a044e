"""The command `aprec-like`, the recipes that come with the package, and the wheel."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aprec_like.shipped_recipes import find_recipe, list_recipes
from evaluation import console
from tests.test_architecture import COMMANDS

ROOT = Path(__file__).parents[2]


def call(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["/bin/aprec-like", *arguments])
    try:
        code = console.main()
    except SystemExit as leaving:
        code = leaving.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_every_command_has_a_line_and_its_own_help(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys)
    assert code == 0 and "quickstart" in out
    assert set(console.COMMANDS) == set(COMMANDS)
    for name in console.COMMANDS:
        assert f"\n  {name} " in out
        code, text, _ = call(monkeypatch, capsys, name, "--help")
        assert code == 0 and text.startswith(f"usage: aprec-like {name} ")


def test_an_unknown_command_is_one_line_and_exit_code_2(monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "trane")
    assert (code, out, err.count("\n")) == (2, "", 1) and "there is no command 'trane'" in err


def test_a_recipe_is_a_file_or_the_name_of_a_shipped_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(list_recipes()) == {path.stem for path in (ROOT / "recipes").glob("*.py")}
    assert find_recipe(Path("quickstart")) == ROOT / "recipes/quickstart.py"
    for path in (Path("quickstart.py"), Path("no_recipe"), Path("recipes/quickstart"), Path("../quickstart")):
        assert find_recipe(path) == path
    Path("quickstart").touch()
    assert find_recipe(Path("quickstart")) == Path("quickstart")


@pytest.mark.slow
def test_the_wheel_runs_outside_of_the_checkout_beside_a_folder_of_the_same_name(tmp_path):
    """Unpacked instead of installed, so that the test needs no package index."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)
    subprocess.run([*command, str(checkout)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    other = tmp_path / "work/evaluation"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("raise SystemExit('the folder of the user')")
    start = "import sys; from evaluation.console import main; sys.exit(main())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    for arguments in (["run", "quickstart", "--smoke", "--only", "gSASRec"], ["compare", "results/quickstart-smoke"]):
        done = subprocess.run(
            [sys.executable, "-P", "-c", start, *arguments],
            cwd=other.parent, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "gSASRec" in done.stdout
