"""Runs one model with one seed in a worker, and records in status.json how it ended."""

from __future__ import annotations

import contextlib
import os
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

import tensorflow as tf

from aprec_like.devices import make_strategy, prepare_devices
from aprec_like.errors import NotFiniteError, StoppedError
from aprec_like.files import StorageError
from aprec_like.models import CountingModel
from aprec_like.recipe import Trained, load_recipe
from aprec_like.recipe.own_code import describe_code
from aprec_like.settings import describe
from evaluation.cli import DONE, FAILED
from evaluation.results.identity import ChangedDuringRunError, check_unchanged_settings, identify
from evaluation.results.store import RunFolder
from evaluation.running.fit_model import ModelRun, remove_states
from evaluation.running.hosts.orders import FirstHost, Order
from evaluation.running.plan import memory_savers
from evaluation.running.progress import Display
from evaluation.running.run_model import run_model
from evaluation.running.signals import StopFlag
from evaluation.running.smoke import shrink
from evaluation.tracking.cost_meter import CostMeter

OUT_OF_DEVICE_MEMORY = "RESOURCE_EXHAUSTED"
"""In the message of XLA's errors, whatever their class, when a GPU has no more memory."""

if TYPE_CHECKING:  # it runs as __main__, and a second import would make a second module of it
    from evaluation.running.worker import WorkerOptions


def run_job(options: WorkerOptions, stop: StopFlag) -> int:
    """Run the model that a worker's options name; returns the exit code."""
    results, recipe = RunFolder(options.run), load_recipe(options.recipe)
    recipe = shrink(recipe, options.data_dir) if options.smoke else recipe
    folder = results.model(options.model, options.seed)
    stored = results.read_recipe()
    check_unchanged_settings(describe(recipe) | {"code": describe_code(recipe)}, stored, options.model, options.recipe)
    identity = identify(stored, results.read_dataset(), options.model, options.seed)
    run = ModelRun(
        recipe,
        options.model,
        options.seed,
        options.data_dir,
        folder,
        options.time_limit,
        identity,
        options.keep_checkpoints,
        options.title,
        options.is_display_shared,
        options.tensorboard,
    )
    first = FirstHost(make_strategy(options.devices), Order(options.model, options.seed))
    code = run_and_record(replace(run, training_scope=first.training_scope), run.make_display(), stop)
    if code == DONE:
        first.end(options.is_last)
    return code


def run_and_record(run: ModelRun, display: Display, stop: StopFlag) -> int:
    """Run a model and write to its status how it ended; returns the exit code."""
    folder = run.folder
    folder.write_status("running", pid=os.getpid())
    with display, CostMeter() as meter:
        try:
            prepare_devices()
            run_model(run, display, stop, meter.read)
        except StoppedError as stopped:
            folder.write_status("interrupted", reason="stopped by the user")
            display.print_line(f"stopped {stopped}")
            return stop.exit_code
        except (StorageError, ChangedDuringRunError) as error:
            with contextlib.suppress(StorageError):
                folder.write_status("interrupted", reason=str(error))
            raise
        except Exception as error:  # a failing model must not stop the others; its log has the traceback
            display.log.write(traceback.format_exc())
            if isinstance(error, NotFiniteError):
                remove_states(folder)  # a resumed training would fail again
            reason = failure_reason(error, run.model)
            folder.write_status("failed", reason=reason)
            display.print_line(f"failed: {reason}")
            return FAILED
    return DONE


def failure_reason(error: Exception, model: Trained | CountingModel) -> str:
    """Return in one line why a model failed."""
    if isinstance(error, tf.errors.UnavailableError):
        return "another host, or the network to it, was lost; started again on all hosts, the training goes on"
    message = " ".join(str(error).split())[:500]
    if isinstance(error, (MemoryError, tf.errors.ResourceExhaustedError)) or OUT_OF_DEVICE_MEMORY in message:
        return f"out of memory ({message or type(error).__name__}); to save memory: {memory_savers(model)}"
    return message if isinstance(error, NotFiniteError) else f"{type(error).__name__}: {message}"
