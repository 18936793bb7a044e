"""`train`: builds a network, runs epochs of training steps with validation, and restores the best weights."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.batches.layouts import AnyBatch, Batch, PackedBatch
from aprec_like.gathers import slices_as_gradients
from aprec_like.models import Network
from aprec_like.optimizers import LazyAdam
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.splits import Split
from aprec_like.training.checkpoints import Checkpoints
from aprec_like.training.epoch_loop import EpochLoop, Step, TrainingControl
from aprec_like.training.objective import Objective, make_objective
from aprec_like.training.settings import Trained
from aprec_like.training.state import EpochRecord
from aprec_like.types import Tensor


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The result of a training.

    Args:
        scorer: the network with the weights of its best epoch, or of the last one without validation.
        history: one record per epoch.
        stopped_by: `max_epochs`, `early_stopping` or `time_limit`.
        seconds_before: seconds of training before the checkpoint that this process resumed from.
    """

    scorer: NetworkScorer
    history: list[EpochRecord]
    stopped_by: str
    seconds_before: float = 0.0

    @property
    def best(self) -> EpochRecord:
        """The epoch whose weights the network has."""
        return next((record for record in reversed(self.history) if record.is_best), self.history[-1])


def train(
    trained: Trained, split: Split, *, seed: int, exclude_seen: bool = True, control: TrainingControl | None = None
) -> TrainingOutcome:
    """Train a network on `split.train` until validation stops improving, and give it the weights of its best epoch.

    With checkpoints, an interrupted training resumes from its last saved state and ends with the weights it would have
    had without the interruption: everything random is a function of the seed and the number of the step.

    Args:
        trained: architecture, loss and settings.
        split: training interactions, and the validation cases that choose the best epoch.
        seed: seed of initial weights, order of users, dropout and negatives. Sets Keras' global seed.
        exclude_seen: whether validation excludes the items of a user's history from the ranking.
        control: time limit, checkpoints, stopping and callbacks.

    Raises:
        NotFiniteError: if the loss or a score is not finite.
        StoppedError: if a stop was requested.
    """
    keras.utils.set_random_seed(seed)
    control, training = control or TrainingControl(), trained.training
    data = trained.training_data(split)
    network, optimizer = trained.build_network(data), training.optimizer.build()
    objective = make_objective(trained.loss, trained.negatives, data)
    scorer = NetworkScorer(network)
    with tempfile.TemporaryDirectory() as temporary:
        loop = EpochLoop(control, control.checkpoints or Checkpoints(Path(temporary), fingerprint=None))
        start = (loop.state.epoch - 1, loop.state.step)
        batches = make_batches(data, trained.model.examples(), trained.batch_settings, seed, start=start)
        is_compiled = trained.is_step_compiled(data)
        step = make_step(network, objective, optimizer, seed, batches.element_spec, is_compiled)
        loop.restore(network.variables, optimizer.variables)
        batch_iterator, num_steps = iter(batches), trained.num_steps_per_epoch(data)
        while loop.state.stopped_by is None:
            loss = loop.run_epoch(step, batch_iterator, num_steps)
            validation = None
            if training.early_stopping:
                rankings = rank(
                    scorer,
                    split.validation,
                    exclude_seen=exclude_seen,
                    on_progress=lambda num_ranked: loop.stop_if_requested(),
                )
                validation = float(np.mean(training.early_stopping.metric.per_user(rankings.ranks)))
            loop.end_epoch(loss, validation, training)
        loop.restore_best_weights()
    return TrainingOutcome(scorer, loop.state.history, loop.state.stopped_by, loop.seconds_before)


def make_step(
    network: Network, objective: Objective, optimizer: Any, seed: int, batch_spec: AnyBatch, jit_compile: bool = False
) -> Step:
    """Return a compiled function of a batch and the number of the step that updates the weights and returns the loss.

    It is traced once, for all batches of the shapes in `batch_spec` (the `element_spec` of the dataset of batches).
    Everything random in it is a function of `seed` and the number of the step. It may be called directly or through
    `tf.distribute.Strategy.run`.
    """
    variables = network.trainable_variables
    optimizer.build(variables)
    is_lazy = isinstance(optimizer, LazyAdam)

    def update(batch: Batch, step_number: Tensor) -> Tensor:
        with tf.GradientTape() as tape, slices_as_gradients() if is_lazy else nullcontext():
            loss = objective(network, batch, tf.stack([tf.constant(seed, tf.int64), step_number]))
        weights = [variable.value for variable in variables]
        gradients = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        if not is_lazy:
            # As in the originals, gradients are dense: rows without a gradient still move by their momentum.
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        optimizer.apply(gradients, variables)
        return loss

    def compiled(spec: Batch) -> Step:
        signature = [spec, tf.TensorSpec([], tf.int64)]
        return tf.function(update, jit_compile=jit_compile, input_signature=signature)

    if not isinstance(batch_spec, PackedBatch):
        return compiled(batch_spec)
    packed_step, unpacked_step = compiled(batch_spec.packed), compiled(batch_spec.unpacked)

    @tf.function(input_signature=[batch_spec, tf.TensorSpec([], tf.int64)])
    def step(batch: PackedBatch, step_number: Tensor) -> Tensor:
        return tf.cond(
            batch.fits,
            lambda: packed_step(batch.packed, step_number),
            lambda: unpacked_step(batch.unpacked, step_number),
        )

    return step
