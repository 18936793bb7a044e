"""The process of one model: `evaluation.run` starts one for every model and seed, so that none can harm the others."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aprec_like.files import StorageError
from evaluation.cli import DONE, FAILED, import_tensorflow, run_command
from evaluation.results.store import ModelFolder, RunFolder
from evaluation.running.signals import StopFlag

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
    return [sys.executable, "-m", "evaluation.running.worker", json.dumps(options)]


def main() -> int:
    """Run the model that the one argument, made by `command_for`, describes."""
    stop = StopFlag()
    stop.listen()
    import_tensorflow()
    from aprec_like.recipe import load_recipe
    from aprec_like.settings import describe
    from evaluation.running.smoke import shrink

    options = json.loads(sys.argv[1])
    run, name = RunFolder(Path(options["run"])), options["model"]
    folder = run.model(name, options["seed"])
    recipe = load_recipe(Path(options["recipe"]))
    recipe = shrink(recipe, Path(options["data"])) if options["smoke"] else recipe
    expected = run.read_recipe().get("models", {}).get(name)
    if name not in recipe.models or describe(recipe.models[name]) != expected:
        folder.write_status("failed", reason="the recipe was changed while its run went on; start the run again")
        return FAILED
    return _run_guarded(recipe, options, folder, stop)


def _run_guarded(recipe: Any, options: dict[str, Any], folder: ModelFolder, stop: StopFlag) -> int:
    """Run the model; whatever goes wrong with it is written to its status."""
    from aprec_like.devices import prepare_devices
    from aprec_like.errors import NotFiniteError, StoppedError
    from aprec_like.training.checkpoints import remove_checkpoints
    from evaluation.running.run_model import ModelRun, run_model

    name, seed = options["model"], options["seed"]
    time_limit = math.inf if options["time_limit"] is None else options["time_limit"]
    folder.write_status("running", pid=os.getpid())
    run = ModelRun(recipe, name, seed, Path(options["data"]), folder, time_limit)
    with run.make_display() as display:
        try:
            prepare_devices()
            run_model(run, display, stop)
        except StoppedError as stopped:
            folder.write_status("interrupted", reason="stopped by the user")
            display.say(f"stopped {stopped}")
            return stop.exit_code
        except StorageError as error:
            with contextlib.suppress(StorageError):
                folder.write_status("interrupted", reason=str(error))
            raise
        except Exception as error:  # a model that fails must not stop the others; its log has the traceback
            display.log.write(traceback.format_exc())
            if isinstance(error, NotFiniteError):
                remove_checkpoints(folder.checkpoint_path)  # from there it would only fail again
            reason = _reason(error, recipe.models[name])
            folder.write_status("failed", reason=reason)
            display.say(f"failed: {reason}")
            return FAILED
    return DONE


def _reason(error: Exception, model: Any) -> str:
    """Why a model failed, in one line."""
    import tensorflow as tf

    from aprec_like.errors import NotFiniteError
    from evaluation.running.plan import memory_savers

    message = " ".join(str(error).split())[:500]
    if isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError)):
        return f"out of memory ({message or type(error).__name__}); what would help: {memory_savers(model)}"
    return message if isinstance(error, NotFiniteError) else f"{type(error).__name__}: {message}"


if __name__ == "__main__":
    code = run_command(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # all is written; taking TensorFlow down politely would keep the folder locked for seconds more
