"""The rooms of the house and who may enter which."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

LIBRARY = [
    "errors", "files", "interactions", "metrics", "datasets", "filters", "splits", "candidates", "batches", "negatives",
    "chunks", "losses", "logits", "models", "objective", "scan", "ranking", "calibration", "optimizers", "checkpoints",
    "training_state", "session", "training", "recipe",
]  # fmt: skip
EVALUATION = [
    "command", "documents", "store", "lock", "stopping", "significance", "contestants", "trec", "comparison", "layout",
    "tables", "records", "findings", "ladder", "time_to_quality", "restore", "lab", "drawing", "plots", "sweeps",
    "calibration_plots", "figures", "citations", "page", "cards", "sections", "environment", "progress", "smoke",
    "scoring", "plan", "datasheet", "golden", "experiment", "worker", "growth", "subjects", "output_layer", "measure",
    "preparation", "runner",
]  # fmt: skip
COMMANDS = ["run", "compare", "benchmark", "parity", "data", "report", "recommend"]
ORDER = [f"aprec_like.{room}" for room in LIBRARY] + [f"evaluation.{room}" for room in EVALUATION + COMMANDS]


def room_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


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
        found |= {room_of(name) for name in names if name.split(".")[0] in ("aprec_like", "evaluation", "recipes")}
    return found


FILES = sorted(path for package in ("aprec_like", "evaluation") for path in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_stands_before_it(path):
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    room = room_of(module.removesuffix(".__init__"))
    if "." not in room:
        assert imports_of(path) == set()
        return
    assert room in ORDER, f"{room} has no place in the order of rooms"
    for imported in imports_of(path) - {room, "aprec_like.__version__"}:
        if imported == "aprec_like":
            continue
        assert ORDER.index(imported) < ORDER.index(room), f"{room} imports {imported}"


@pytest.mark.parametrize(
    "command", [path.stem for path in sorted((ROOT / "evaluation").glob("*.py")) if path.stem in COMMANDS]
)
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


def test_comparing_results_needs_no_tensorflow():
    code = """
import sys
import evaluation.comparison, evaluation.tables, evaluation.compare, aprec_like.metrics
assert "tensorflow" not in sys.modules and "keras" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_file_holds_two_rooms_worth_of_code():
    """A file answers one question; past 300 lines it answers two."""
    assert {str(path): length for path in FILES if (length := len(path.read_text().splitlines())) > 300} == {}
