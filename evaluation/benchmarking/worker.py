"""One measurement in a process of its own, so that its memory is its own: training steps or ranking, fast or naive."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aprec_like.interactions import Interactions
from evaluation.benchmarking.output_layer import measure_naive_output, measure_output
from evaluation.benchmarking.setup import WARM_UP_STEPS, fresh_network, is_enough, is_too_large, naive_code, prepared
from evaluation.benchmarking.sizes import Size
from evaluation.cli import DONE, import_tensorflow, run_command
from evaluation.results.environment import peak_memory_gib

MAX_RANKED_USERS = 2_048
NAIVE_CHUNK_USERS, MAX_NAIVE_SCORES = 128, 1 << 24
"""Users that naive code ranks at once, and scores that it sorts at the most."""
KINDS = ("step", "encoder", "output", "naive_output", "naive_step", "ranking", "naive_ranking")


def measure(kind: str, recipe_path: Path, name: str, data_dir: Path, num_steps: int) -> dict[str, float]:
    """What one kind of measurement gives for a model of a recipe; nothing where it does not apply."""
    from aprec_like.recipe import Trained, load_recipe

    recipe = load_recipe(recipe_path)
    model = recipe.models[name]
    split = recipe.split.split(recipe.load(data_dir))
    values: dict[str, float] = {}
    if kind == "ranking":
        values = _measure_ranking(recipe, model, split)
    elif isinstance(model, Trained):
        values = _MEASURES[kind](recipe, model, split, num_steps)
    return values | {"peak_memory_gib": peak_memory_gib()} if values else {}


def measure_size(recipe_path: Path, name: str, size: Size, num_steps: int) -> dict[str, float]:
    """Seconds per step and memory of a model at one size of a sweep, on random data."""
    from aprec_like.recipe import load_recipe

    model, data = size.applied(load_recipe(recipe_path).models[name])
    seconds = _time_steps(model, data, fresh_network(model, data), num_steps)["step_seconds"]
    return {"step_seconds": seconds, "peak_memory_gib": peak_memory_gib()}


def _measure_step(recipe: Any, model: Any, split: Any, num_steps: int) -> dict[str, float]:
    from aprec_like.training.epoch_loop import save_seconds

    data, network = prepared(model, split)
    training = model.training
    optimizer = training.optimizer.build()
    values = _time_steps(model, data, network, num_steps, optimizer)
    with tempfile.TemporaryDirectory() as folder:
        saving = save_seconds(network.variables, optimizer.variables, Path(folder))
    return values | {
        "save_seconds": saving,
        "steps_per_epoch": model.num_steps_per_epoch(data),
        "validation_users": len(split.validation) if training.early_stopping else 0,
    }


def _measure_encoder(recipe: Any, model: Any, split: Any, num_steps: int) -> dict[str, float]:
    """A step whose loss needs no item table: what the network alone costs."""
    import tensorflow as tf

    from aprec_like.batches import PairExamples

    data, network = prepared(model, split)
    if isinstance(model.model.examples(), PairExamples):
        return {}

    def objective(network: Any, batch: Any, seed: Any) -> Any:
        return tf.reduce_mean(tf.square(network.target_states(batch, seed)))

    return {"encoder_seconds": _time_steps(model, data, network, num_steps, objective=objective)["step_seconds"]}


def _time_steps(
    model: Any, data: Interactions, network: Any, num_steps: int, optimizer: Any = None, objective: Any = None
) -> dict[str, float]:
    """Seconds of a training step, and of waiting for its batch."""
    import tensorflow as tf

    from aprec_like.batches import make_batches
    from aprec_like.training.loop import make_step
    from aprec_like.training.objective import make_objective

    training, examples = model.training, model.model.examples()
    started = time.monotonic()
    batches = make_batches(data, examples, training.batch_settings, 1)
    stream = iter(batches)
    batch = next(stream)
    first_batch = time.monotonic() - started
    objective = objective or make_objective(model.loss, model.negatives, data)
    optimizer = optimizer or training.optimizer.build()
    step = make_step(network, objective, optimizer, 1, batches.element_spec, training.jit_compile)
    waits: list[float] = []
    steps: list[float] = []
    targets: list[int] = []
    while not is_enough(steps, num_steps):
        started = time.monotonic()
        batch = next(stream)
        waits.append(time.monotonic() - started)
        float(step(batch, tf.constant(len(steps), tf.int64)))
        steps.append(time.monotonic() - started - waits[-1])
        targets.append(int(tf.reduce_sum(tf.cast(batch.targets >= 0, tf.int32))))
    seconds = float(np.median(steps[WARM_UP_STEPS:]))
    return {
        "step_seconds": seconds,
        "input_seconds": float(np.median(waits[WARM_UP_STEPS:])),
        "first_batch_seconds": first_batch,
        "first_step_seconds": steps[0],
        "tokens_per_second": float(np.mean(targets[WARM_UP_STEPS:])) / seconds,
    }


def _measure_naive_step(recipe: Any, model: Any, split: Any, num_steps: int) -> dict[str, float]:
    import tensorflow as tf

    from aprec_like.batches import STATIC, PairExamples, make_batches

    naive = naive_code()
    data, network = prepared(model, split)
    training, examples = model.training, model.model.examples()
    if naive is None or isinstance(examples, PairExamples) or is_too_large(model, data):
        return {}
    batches = make_batches(data, examples, replace(training.batch_settings, num_pieces=STATIC), 1)
    step = naive.make_naive_step(network, model.loss, data.num_items, training.optimizer.build())
    seconds = []
    for number, batch in zip(range(max(3, num_steps // 2) + 1), batches, strict=False):
        inputs, targets = naive.padded(batch, examples.length)
        started = time.monotonic()
        float(step(inputs, targets, tf.constant(number, tf.int64)))
        seconds.append(time.monotonic() - started)
    return {"naive_step_seconds": float(np.median(seconds[1:]))}


def _some_test_users(split: Any, most: int = MAX_RANKED_USERS) -> Any:
    """Test cases at regular distances."""
    from aprec_like.splits import HeldOut

    cases = np.unique(np.linspace(0, len(split.test) - 1, most).astype(int))
    return HeldOut(split.test.known, split.test.users[cases], split.test.targets[cases])


def _measure_ranking(recipe: Any, model: Any, split: Any) -> dict[str, float]:
    from aprec_like.models import CountingModel
    from aprec_like.ranking.rank_catalogue import NetworkScorer, rank

    held_out = _some_test_users(split)
    is_counted = isinstance(model, CountingModel)
    scorer = model.fit(split.test.known) if is_counted else NetworkScorer(prepared(model, split)[1])
    options = {"exclude_seen": recipe.evaluation.exclude_seen, "depth": recipe.evaluation.depth}
    rank(scorer, held_out, **options)
    started = time.monotonic()
    rank(scorer, held_out, **options)
    return {"users_per_second": len(held_out) / (time.monotonic() - started)}


def _measure_naive_ranking(recipe: Any, model: Any, split: Any, num_steps: int) -> dict[str, float]:
    from aprec_like.batches import PairExamples
    from aprec_like.interactions import MASK
    from aprec_like.models import BERT4Rec

    naive = naive_code()
    if naive is None or isinstance(model.model.examples(), PairExamples):
        return {}
    data, network = prepared(model, split)
    held_out = _some_test_users(split, max(8, min(MAX_RANKED_USERS, MAX_NAIVE_SCORES // data.num_items)))
    length = model.model.max_length
    seconds = 0.0
    for start in range(0, len(held_out) + NAIVE_CHUNK_USERS, NAIVE_CHUNK_USERS):  # the first chunk twice: warm-up
        begin = max(0, start - NAIVE_CHUNK_USERS)
        cases = np.arange(begin, min(begin + NAIVE_CHUNK_USERS, len(held_out)))
        histories = held_out.histories(cases)
        inputs = histories.last(length)
        if isinstance(model.model, BERT4Rec):
            inputs = np.pad(inputs[:, 1:], ((0, 0), (0, 1)), constant_values=MASK)
        seen = np.split(histories.items, histories.offsets[1:-1])
        started = time.monotonic()
        naive.naive_ranks(network, inputs, seen, held_out.targets[cases])
        seconds += time.monotonic() - started if start else 0.0
    return {"naive_users_per_second": len(held_out) / seconds}


_MEASURES = {
    "step": _measure_step,
    "encoder": _measure_encoder,
    "output": measure_output,
    "naive_output": measure_naive_output,
    "naive_step": _measure_naive_step,
    "naive_ranking": _measure_naive_ranking,
}


def main() -> int:
    """Print the measurement that the one argument, a JSON object, asks for."""
    import_tensorflow()
    from aprec_like.devices import prepare_devices

    prepare_devices()
    options = json.loads(sys.argv[1])
    recipe, name, num_steps = Path(options["recipe"]), options["model"], options["steps"]
    if "size" in options:
        values = measure_size(recipe, name, Size(*options["size"]), num_steps)
    else:
        values = measure(options["kind"], recipe, name, Path(options["data"]), num_steps)
    print(json.dumps(values))
    return DONE


if __name__ == "__main__":
    sys.exit(run_command(main))
