"""What a step does after the network: negatives, logits, loss and their gradients, timed by themselves."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from evaluation.benchmarking.setup import WARM_UP_STEPS, is_enough, is_too_large, naive_code, prepared


class GivenStates:
    """A network without layers: its states are given, and have a gradient; tables are those of a real one."""

    def __init__(self, network: Any, num_states: int) -> None:
        import tensorflow as tf

        dim = network.score_table.shape[1]
        self._network = network
        self._states = tf.random.stateless_normal([num_states, dim], [1, 2])
        self._scale = tf.Variable(tf.ones([dim]))
        self.variables = [self._scale, *(variable.value for variable in network.trainable_variables)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def __call__(self, inputs: Any, dropout_seed: Any = None) -> Any:
        """(batch, length, dim)."""
        import tensorflow as tf

        return tf.reshape(self._states[: inputs.shape[0] * inputs.shape[1]], [*inputs.shape, -1]) * self._scale

    def target_states(self, batch: Any, dropout_seed: Any = None) -> Any:
        """(targets, dim)."""
        import tensorflow as tf

        return self._states[: tf.shape(batch.targets)[0]] * self._scale

    def project(self, states: Any) -> Any:
        """They are as the table scores them."""
        return states


def measure_output(recipe: Any, model: Any, split: Any, num_steps: int, is_naive: bool = False) -> dict[str, float]:
    """What follows the network: negatives, logits, loss and their gradients; naive code does it at all positions."""
    import tensorflow as tf

    from aprec_like.batches import STATIC, PairExamples, make_batches
    from aprec_like.training.objective import make_objective

    naive = naive_code() if is_naive else None
    data, network = prepared(model, split)
    training, examples = model.training, model.model.examples()
    if isinstance(examples, PairExamples) or model.negatives.shared_by == "sequence":
        return {}
    if is_naive and (naive is None or is_too_large(model, data)):
        return {}
    given: Any = GivenStates(network, training.batch_size * examples.length)
    objective = make_objective(model.loss, model.negatives, data)
    settings = replace(training.batch_settings, num_pieces=STATIC if is_naive else None)
    batches = make_batches(data, examples, settings, 1)

    @tf.function(input_signature=[batches.element_spec, tf.TensorSpec([], tf.int64)])
    def gradients(batch: Any, number: Any) -> Any:
        seed = tf.stack([tf.constant(1, tf.int64), number])
        with tf.GradientTape() as tape:
            if naive is None:
                value = objective(given, batch, seed)
            else:
                value = naive.naive_loss_of_batch(given, model.loss, batch, examples.length, seed)
        found = tape.gradient(value, given.variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(gradient) for gradient in found]

    seconds: list[float] = []
    stream = iter(batches)
    while not is_enough(seconds, num_steps):
        batch = next(stream)
        started = time.monotonic()
        float(tf.reduce_sum(gradients(batch, tf.constant(len(seconds), tf.int64))[0]))
        seconds.append(time.monotonic() - started)
    return {"naive_output_seconds" if is_naive else "output_seconds": float(np.median(seconds[WARM_UP_STEPS:]))}


def measure_naive_output(recipe: Any, model: Any, split: Any, num_steps: int) -> dict[str, float]:
    """The same by naive code."""
    return measure_output(recipe, model, split, max(3, num_steps // 2), is_naive=True)
