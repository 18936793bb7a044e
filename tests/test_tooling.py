"""The linters are part of the tests, so that one command checks everything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["mypy"],
        [
            "codespell_lib",
            "aprec_like",
            "evaluation",
            "recipes",
            "tests",
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
        ],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_tool_has_nothing_to_say(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
