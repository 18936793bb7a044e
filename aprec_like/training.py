"""Training a network: one compiled step, epochs of a fixed number of steps, validation, early stopping."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from aprec_like.batches import STATIC, Batch, Tensor, make_batches, steps_per_epoch
from aprec_like.calibration import prior_logit
from aprec_like.interactions import Array
from aprec_like.losses import BinaryLoss, FullLoss, SampledLoss
from aprec_like.metrics import NDCG, Metric
from aprec_like.models import Network, NeuralModel
from aprec_like.negatives import Negatives
from aprec_like.objective import Objective, make_objective
from aprec_like.optimizers import Adagrad, Adam, LazyAdam
from aprec_like.ranking import NetworkScorer, NotFiniteError, rank
from aprec_like.splits import Split

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


@dataclass(frozen=True)
class EpochRecord:
    """One row of a training history; `seconds` from the start of training to the end of this epoch's validation."""

    epoch: int
    loss: float
    validation: float | None
    is_best: bool
    seconds: float


@dataclass(frozen=True)
class Progress:
    """Where training stands, for a display. `value` is the mean loss of the epoch's steps so far."""

    epoch: int
    step: int
    steps_per_epoch: int
    loss: float


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """A trained network (the weights of its best epoch, or of the last without validation) and how it got there."""

    scorer: NetworkScorer
    history: list[EpochRecord]
    stopped_by: str

    @property
    def best(self) -> EpochRecord:
        """The epoch whose weights the network has."""
        return next((record for record in reversed(self.history) if record.is_best), self.history[-1])


Step = Callable[[Batch, Tensor], Tensor]


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
        gradients = tape.gradient(value, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        if not isinstance(optimizer, LazyAdam):
            # Rows that a batch did not touch still move by their momentum, as in the originals: dense gradients.
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        optimizer.apply(gradients, variables)
        return value

    return step


class BestWeights:
    """The weights of the best epoch so far, and whether it is time to stop. Knows nothing of networks or metrics."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.value = -math.inf
        self.epoch = -1
        self.weights: list[Array] = []

    def offer(self, epoch: int, value: float, weights: Callable[[], list[Array]]) -> bool:
        """Keep the weights if the value is strictly better; says whether it was."""
        if not value > self.value:
            return False
        self.value, self.epoch, self.weights = value, epoch, weights()
        return True

    def is_patience_over(self, epoch: int) -> bool:
        """Whether `patience` epochs have passed since the best one."""
        return epoch - self.epoch >= self.patience


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
    on_step: Callable[[Progress], None] = lambda progress: None,
    on_epoch: Callable[[EpochRecord], None] = lambda record: None,
) -> TrainingOutcome:
    """Train a model on `split.train` until validation stops improving, and give it the weights of its best epoch.

    Args:
        model: the architecture.
        loss: what to minimise.
        training: how.
        split: what to learn from, and the validation cases that choose the best epoch.
        seed: of the initial weights, the order of the users, dropout and negatives. Sets Keras' global seed.
        negatives: the law of the negatives, for sampled losses.
        prior_start: start all logits at what is right for an item of which nothing is known.
        exclude_seen: whether validation leaves out the items of a user's history.
        time_limit: seconds of training, after which the epoch under way is validated and training ends.
        on_step: called now and then within an epoch.
        on_epoch: called after every epoch.

    Raises:
        NotFiniteError: if the loss or a score is not finite.
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
    batches = make_batches(
        data,
        examples,
        *sizes,
        seed,
        with_replacement=training.with_replacement,
        num_pieces=STATIC if training.jit_compile else None,
    )
    optimizer = training.optimizer.build()
    step = make_step(network, objective, optimizer, seed, batches.element_spec, training.jit_compile)
    stream = iter(batches)
    steps = steps_per_epoch(len(examples.cases(data)), *sizes)
    scorer = NetworkScorer(network)
    stopping = training.early_stopping
    best = BestWeights(stopping.patience if stopping else 1)
    history: list[EpochRecord] = []
    stopped_by = "max_epochs"
    started = time.monotonic()
    deadline = started + time_limit
    for epoch in range(1, training.max_epochs + 1):
        mean_loss = _run_epoch(step, stream, epoch, steps, deadline, on_step)
        validation, is_best = None, False
        if stopping:
            ranks = rank(scorer, split.validation, exclude_seen=exclude_seen).ranks
            validation = float(np.mean(stopping.metric.per_user(ranks)))
            is_best = best.offer(epoch, validation, network.get_weights)
        history.append(EpochRecord(epoch, mean_loss, validation, is_best, time.monotonic() - started))
        on_epoch(history[-1])
        if time.monotonic() >= deadline:
            stopped_by = "time_limit"
            break
        if stopping and best.is_patience_over(epoch):
            stopped_by = "early_stopping"
            break
    if stopping:
        network.set_weights(best.weights)
    return TrainingOutcome(scorer, history, stopped_by)


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


STEPS_BETWEEN_LOOKS = 16
"""How often the loss is brought to the host, which waits for the device."""


def _run_epoch(
    step: Step, batches: Any, epoch: int, steps: int, deadline: float, on_step: Callable[[Progress], None]
) -> float:
    """The mean loss of one epoch, cut short at the deadline."""
    first = (epoch - 1) * steps
    total = tf.zeros([])
    done = 0
    for done in range(1, steps + 1):
        total += step(next(batches), tf.constant(first + done - 1, tf.int64))
        is_over = time.monotonic() >= deadline
        if done % STEPS_BETWEEN_LOOKS == 0 or done == steps or is_over:
            mean = float(total) / done
            if not math.isfinite(mean):
                raise NotFiniteError(f"the loss is not finite in epoch {epoch}; a smaller learning rate may help")
            on_step(Progress(epoch, done, steps, mean))
        if is_over:
            break
    return float(total) / done
