"""The process of one model: `evaluation.run` starts one for every model and seed, so that none can harm the others."""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.command import DONE, FAILED, INTERRUPTED, import_tensorflow, run_command
from evaluation.store import RunFolder

ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_ARENA_MAX": "1"}
"""For glibc's malloc: keep freed memory for the next step instead of returning it to the system. A training step frees
and asks for the same large arrays again and again, and fresh pages cost more than the arithmetic on them (on two CPU
cores a step with all logits of MovieLens-1M took 0.4 s instead of 0.7 s). Values are not affected."""


def environment_for(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a model's process; what the user has set stays."""
    return ALLOCATOR | dict(environment)


def command_for(
    recipe_path: Path, name: str, seed: int, data_dir: Path, run: RunFolder, time_limit: float, is_smoke: bool
) -> list[str]:
    """The command that runs one model in a process of its own."""
    options = {
        "recipe": str(recipe_path),
        "model": name,
        "seed": seed,
        "data": str(data_dir),
        "run": str(run.path),
        "time_limit": None if math.isinf(time_limit) else time_limit,
        "smoke": is_smoke,
    }
    return [sys.executable, "-m", "evaluation.worker", json.dumps(options)]


def main() -> int:
    """Run the model that the one argument, made by `command_for`, describes."""
    import_tensorflow()
    from aprec_like.recipe import describe, load_recipe
    from evaluation.smoke import shrink

    options = json.loads(sys.argv[1])
    run, name = RunFolder(Path(options["run"])), options["model"]
    recipe = load_recipe(Path(options["recipe"]))
    recipe = shrink(recipe, Path(options["data"])) if options["smoke"] else recipe
    expected = (run.read_recipe() or {}).get("models", {}).get(name)
    if name not in recipe.models or describe(recipe.models[name]) != expected:
        reason = "the recipe was changed while its run went on; start the run again"
        run.model(name, options["seed"]).write_status("failed", reason=reason)
        return FAILED
    return _run_guarded(recipe, options, run)


def _run_guarded(recipe: Any, options: dict[str, Any], run: RunFolder) -> int:
    """Run the model; whatever goes wrong with it is written to its status."""
    from aprec_like.ranking import NotFiniteError
    from evaluation.experiment import make_display, prepare_devices, run_model

    name, seed = options["model"], options["seed"]
    folder = run.model(name, seed)
    time_limit = math.inf if options["time_limit"] is None else options["time_limit"]
    folder.write_status("running", pid=os.getpid())
    with make_display(recipe, name, seed, folder, time_limit) as display:
        try:
            prepare_devices()
            run_model(recipe, name, seed, Path(options["data"]), folder, display, time_limit)
        except KeyboardInterrupt:
            folder.write_status("interrupted", reason="stopped by the user")
            return INTERRUPTED
        except Exception as error:  # a model that fails must not stop the others; its log has the traceback
            display.log.write(traceback.format_exc())
            message = " ".join(str(error).split())[:500]
            reason = message if isinstance(error, NotFiniteError) else f"{type(error).__name__}: {message}"
            folder.write_status("failed", reason=reason)
            display.say(f"failed: {reason}")
            return FAILED
    return DONE


if __name__ == "__main__":
    sys.exit(run_command(main))
