"""Training a network: one compiled step, epochs of a fixed number of steps, validation, early stopping."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from aprec_like.batches import STATIC, Batch, Tensor, make_batches, steps_per_epoch
from aprec_like.calibration import prior_logit
from aprec_like.checkpoints import Checkpoints, Variables
from aprec_like.losses import BinaryLoss, FullLoss, SampledLoss
from aprec_like.metrics import NDCG, Metric
from aprec_like.models import Network, NeuralModel
from aprec_like.negatives import Negatives
from aprec_like.objective import Objective, make_objective
from aprec_like.optimizers import Adagrad, Adam, LazyAdam
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.session import Session, Step, named_variables
from aprec_like.splits import Split
from aprec_like.training_state import EpochRecord, Progress, TrainingState

Loss = SampledLoss | FullLoss


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when `patience` epochs in a row have not improved the best value of a metric on the validation users.

    Only a strictly greater value is an improvement.
    """

    metric: Metric = field(default_factory=lambda: NDCG(10))
    patience: int = 200

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError(f"EarlyStopping needs a patience of at least 1. Received: patience={self.patience}")


@dataclass(frozen=True)
class Training:
    """How to train; the defaults are those of the gSASRec paper.

    Args:
        batch_size: users per step (interactions, for models that learn from pairs).
        max_steps_per_epoch: an epoch is one pass over the users, but no more steps than this.
        max_epochs: when to stop at the latest.
        early_stopping: when to stop before; its metric also chooses the best epoch, whose weights are used. `None`
            trains for `max_epochs` without validation and keeps the last weights.
        optimizer: settings of the optimiser.
        with_replacement: draw the users of every batch anew, as the original SASRec does.
        learns_validation_targets: train on everything but the test targets, for models that need no validation.
        jit_compile: compile the step with XLA.
        mixed_precision: compute states in bfloat16; weights, logits, losses and moments stay in float32. For GPUs.
    """

    batch_size: int = 128
    max_steps_per_epoch: int = 256
    max_epochs: int = 10_000
    early_stopping: EarlyStopping | None = field(default_factory=EarlyStopping)
    optimizer: Adam | Adagrad = field(default_factory=Adam)
    with_replacement: bool = False
    learns_validation_targets: bool = False
    jit_compile: bool = False
    mixed_precision: bool = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_steps_per_epoch", "max_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"Training needs {name} of at least 1. Received: {name}={getattr(self, name)}")
        if self.learns_validation_targets and self.early_stopping is not None:
            raise ValueError("Training that learns the validation targets cannot stop early by them")


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """A trained network (the weights of its best epoch, or of the last without validation) and how it got there."""

    scorer: NetworkScorer
    history: list[EpochRecord]
    stopped_by: str
    seconds_before: float = 0.0
    """Of training before the checkpoint that it went on from."""

    @property
    def best(self) -> EpochRecord:
        """The epoch whose weights the network has."""
        return next((record for record in reversed(self.history) if record.is_best), self.history[-1])


def make_step(
    network: Network, objective: Objective, optimizer: Any, seed: int, batch_spec: Batch, jit_compile: bool = False
) -> Step:
    """One optimisation step as a compiled function of a batch and the number of the step; returns the loss.

    It is traced once, for all batches of the shapes in `batch_spec` (the `element_spec` of the dataset of batches).

    Everything random in it is a function of `seed` and the number of the step. It may be called directly or through
    `tf.distribute.Strategy.run`.
    """
    variables = network.trainable_variables
    optimizer.build(variables)

    @tf.function(jit_compile=jit_compile, input_signature=[batch_spec, tf.TensorSpec([], tf.int64)])
    def step(batch: Batch, number: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            value = objective(network, batch, tf.stack([tf.constant(seed, tf.int64), number]))
        weights = [variable.value for variable in variables]
        gradients = tape.gradient(value, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        if not isinstance(optimizer, LazyAdam):
            # Rows that a batch did not touch still move by their momentum, as in the originals: dense gradients.
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        optimizer.apply(gradients, variables)
        return value

    return step


def train(
    model: NeuralModel,
    loss: Loss,
    training: Training,
    split: Split,
    *,
    seed: int,
    negatives: Negatives | None = None,
    prior_start: bool = False,
    exclude_seen: bool = True,
    time_limit: float = math.inf,
    checkpoints: Checkpoints | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_epoch: Callable[[EpochRecord], None] = lambda record: None,
) -> TrainingOutcome:
    """Train a model on `split.train` until validation stops improving, and give it the weights of its best epoch.

    With checkpoints, a training that was cut off goes on where it last saved its state, and ends with the weights that
    it would have had: everything random is a function of the seed and the number of the step.

    Args:
        model: the architecture.
        loss: what to minimise.
        training: how.
        split: what to learn from, and the validation cases that choose the best epoch.
        seed: of the initial weights, the order of the users, dropout and negatives. Sets Keras' global seed.
        negatives: the law of the negatives, for sampled losses.
        prior_start: start all logits at what is right for an item of which nothing is known.
        exclude_seen: whether validation leaves out the items of a user's history.
        time_limit: seconds of training, over all its starts, after which the epoch under way is validated and training
            ends.
        checkpoints: where to keep the state; without them it is lost with the process.
        is_stopping: asked after every step and between chunks of users; once true, the state is saved and
            `StoppedError` raised.
        on_step: called now and then within an epoch.
        on_epoch: called after every epoch.

    Raises:
        NotFiniteError: if the loss or a score is not finite.
        StoppedError: if it was asked to stop.
    """
    keras.utils.set_random_seed(seed)
    negatives = negatives or Negatives()
    data = split.test.known if training.learns_validation_targets else split.train
    first_logit = _first_logit(loss, data.num_items, negatives) if prior_start else None
    with computing_in("mixed_bfloat16" if training.mixed_precision else "float32"):
        network = model.build(data.num_items, num_users=data.num_users, logit_offset=first_logit)
    objective = make_objective(loss, negatives, data)
    sizes = (training.batch_size, training.max_steps_per_epoch)
    examples = model.examples()
    steps = steps_per_epoch(len(examples.cases(data)), *sizes)
    optimizer = training.optimizer.build()
    scorer = NetworkScorer(network)
    stopping = training.early_stopping
    with tempfile.TemporaryDirectory() as temporary:
        checkpoints = checkpoints or Checkpoints(Path(temporary), fingerprint=None)
        saved = checkpoints.load()
        state = TrainingState.from_json(saved.facts) if saved else TrainingState()
        seconds_before = state.seconds
        batches = make_batches(
            data,
            examples,
            *sizes,
            seed,
            with_replacement=training.with_replacement,
            first_epoch=state.epoch - 1,
            first_step=state.step,
            num_pieces=STATIC if training.jit_compile else None,
        )
        step = make_step(network, objective, optimizer, seed, batches.element_spec, training.jit_compile)
        weights, variables = variables_of(network, optimizer)
        if saved:
            saved.restore(variables)
            checkpoints.say(_place(state))
        session = Session(state, variables, checkpoints, time_limit, is_stopping)
        stream = iter(batches)
        while state.stopped_by is None:
            mean_loss = session.run_epoch(step, stream, steps, on_step)
            validation = None
            if stopping:
                rankings = rank(
                    scorer, split.validation, exclude_seen=exclude_seen, on_progress=lambda done: session.heed()
                )
                validation = float(np.mean(stopping.metric.per_user(rankings.ranks)))
            record = session.end_epoch(mean_loss, validation, weights)
            state.stopped_by = _reason_to_stop(training, session)
            if state.stopped_by or session.is_save_due(0.0):
                session.save()
            on_epoch(record)
        if state.best_weights:
            checkpoints.restore_best(state.best_weights, weights)
    return TrainingOutcome(scorer, state.history, state.stopped_by, seconds_before)


def variables_of(network: Network, optimizer: Any) -> tuple[Variables, Variables]:
    """The weights of a network, and with its optimiser's variables all arrays of a training's state, by name."""
    weights = named_variables("weights", network.variables)
    return weights, weights | named_variables("optimizer", optimizer.variables)


def seconds_to_save(network: Network, optimizer: Any, folder: Path) -> float:
    """How long one save after a best epoch takes: the state and the best weights, written to a folder and removed."""
    weights, variables = variables_of(network, optimizer)
    state = TrainingState()
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        checkpoints = Checkpoints(Path(temporary), fingerprint={})
        started = time.monotonic()
        state.best_weights = checkpoints.save_best(state.epoch, weights)
        checkpoints.save(state.as_json(), variables)
        return time.monotonic() - started


def _place(state: TrainingState) -> str:
    if state.stopped_by:
        return f"was trained already: {len(state.history)} epochs"
    return f"goes on from epoch {state.epoch}, step {state.step}"


def _reason_to_stop(training: Training, session: Session) -> str | None:
    """What ends training after an epoch, if anything does."""
    if session.is_time_over:
        return "time_limit"
    if training.early_stopping and session.state.is_patience_over(training.early_stopping.patience):
        return "early_stopping"
    return "max_epochs" if len(session.state.history) >= training.max_epochs else None


@contextmanager
def computing_in(policy: str) -> Iterator[None]:
    """Layers made within have this Keras dtype policy."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _first_logit(loss: Loss, num_items: int, negatives: Negatives) -> float:
    if not isinstance(loss, BinaryLoss):
        raise ValueError(f"prior_start needs a binary loss, such as GBCE. Received: {loss}")
    return prior_logit(loss, num_items, negatives)
