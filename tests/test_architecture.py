"""The order of folders: a module imports from its own folder and from those listed before it, never from later ones."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LEVELS = (
    ("aprec_like: types errors files lazy_tensorflow shipped_recipes",),
    ("aprec_like: unseen_items", "aprec_like/out_of_core"),
    ("aprec_like: interactions", "aprec_like/metrics"),
    ("aprec_like: filters settings candidates", "aprec_like/splits"),
    ("aprec_like/datasets",),
    (
        "aprec_like: devices gathers optimizers schedules calibration",
        "aprec_like/batches",
        "aprec_like/negatives",
        "aprec_like/losses",
        "aprec_like/models",
    ),
    ("aprec_like/ranking",),
    ("aprec_like/training",),
    ("aprec_like: recipe_classes", "aprec_like/recipe"),
    ("evaluation: cli printable table table_formats",),
    ("evaluation/results",),
    ("evaluation/caveats",),
    ("evaluation/analysis", "evaluation/calibration"),
    ("evaluation/figures",),
    ("evaluation/page",),
    ("evaluation/inference",),
    ("evaluation/serving",),
    ("evaluation/tracking",),
    ("evaluation/running", "evaluation/benchmarking"),
    ("evaluation/notebook", "evaluation/datasheets", "evaluation/tuning"),
    (
        "evaluation: benchmark compare console data export parity parity_vectors",
        "evaluation: recommend report run serve tune",
    ),
)
"""Folders, and the loose modules of the two packages, from the bottom to the top."""

OURS = ("aprec_like", "evaluation", "recipes", "tests")
MAX_FILES_PER_FOLDER = 16
MAX_LINES_PER_FILE = 300


def _rooms() -> dict[str, int]:
    """The level of every folder and loose module."""
    found = {}
    for level, rooms in enumerate(LEVELS):
        for room in rooms:
            package, _, modules = room.partition(": ")
            for name in [f"{package}/{module}" for module in modules.split()] or [package]:
                found[name] = level
    return found


ROOMS = _rooms()
FILES = sorted(path for package in ("aprec_like", "evaluation") for path in (ROOT / package).rglob("*.py"))


def room_of(module: str) -> str:
    return "/".join(module.split(".")[:2])


def imports_of(path: Path) -> set[str]:
    """Rooms that a file imports anywhere in it, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base in ("aprec_like", "evaluation") else [base]
        else:
            continue
        found |= {
            room_of(name) for name in names if name.split(".")[0] in ("aprec_like", "evaluation", "recipes", "tests")
        }
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_level_and_those_below(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    room = room_of(module)
    imported = imports_of(path) - {room, "aprec_like", "aprec_like/__version__"}
    if room in ("aprec_like", "evaluation"):
        assert imported == set()
        return
    assert room in ROOMS, f"{room} has no place in the order of folders"
    wrong = {name for name in imported if name not in ROOMS or ROOMS[name] > ROOMS[room]}
    assert wrong == set(), f"{module} imports from above: {wrong}"


def test_folders_do_not_import_each_other_in_a_circle():
    """Folders of one level may use each other, but in one direction only."""
    edges = set()
    for path in FILES:
        room = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        edges |= {(room, other) for other in imports_of(path) if other != room and other in ROOMS}
    assert {edge for edge in edges if edge[::-1] in edges} == set()


def test_no_folder_has_more_than_sixteen_modules():
    folders = {path.parent for path in FILES}
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) - 1 for folder in folders}
    assert {folder: count for folder, count in counts.items() if count > MAX_FILES_PER_FOLDER} == {}


def test_no_file_holds_two_rooms_worth_of_code():
    """A file answers one question; past 300 lines it answers two."""
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES_PER_FILE} == {}


COMMANDS = ["benchmark", "compare", "data", "export", "parity", "recommend", "report", "run", "serve", "tune"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_does_not_import_tensorflow(command):
    code = f"""
import runpy, sys
sys.argv = ["{command}", "--help"]
try:
    runpy.run_module("evaluation.{command}", run_name="__main__")
except SystemExit as leaving:
    assert leaving.code == 0, leaving.code
assert "tensorflow" not in sys.modules and "keras" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout


def test_comparing_and_reporting_need_no_tensorflow():
    """All of analysis, calibration, figures and page but `calibration/truth`, for which models score again."""
    names = ("results/store", "results/load", "analysis", "calibration", "figures", "page")
    folders = tuple(f"evaluation/{name}" for name in names)
    paths = [str(path.relative_to(ROOT).with_suffix("")) for path in FILES]
    modules = [path.replace("/", ".") for path in paths if path.startswith(folders)]
    code = f"""
import importlib, sys
for module in {sorted({*modules} - {"evaluation.calibration.truth"})!r} + ["evaluation.compare", "evaluation.report"]:
    importlib.import_module(module)
    assert "tensorflow" not in sys.modules and "keras" not in sys.modules, module
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_losses_and_negatives_are_imported_without_tensorflow_and_compute_with_it():
    code = """
import sys
import aprec_like.losses, aprec_like.negatives, aprec_like.recipe_classes
assert "tensorflow" not in sys.modules and "keras" not in sys.modules
from aprec_like.lazy_tensorflow import tf
assert float(aprec_like.losses.BCE()(tf.zeros([]), tf.zeros([1]), 10)) > 0
assert "tensorflow" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
