"""Settings of a training: the model and loss (`Trained`), the optimisation (`Training`), and `EarlyStopping`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import keras

from aprec_like.batches import BatchSettings, num_steps_per_epoch
from aprec_like.batches.layouts import STATIC
from aprec_like.devices import has_gpu
from aprec_like.gathers import is_small_table
from aprec_like.interactions import Interactions
from aprec_like.losses import BinaryLoss, FullLoss, SampledLoss, SampledSoftmax
from aprec_like.metrics import NDCG, Metric
from aprec_like.models import Network, NeuralModel
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adagrad, Adam
from aprec_like.settings import check_type
from aprec_like.splits import Split


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `patience` epochs without an improvement of a metric on the validation users.

    Only a strictly greater value is an improvement.

    Args:
        metric: the metric.
        patience: number of epochs.
    """

    metric: Metric = field(default_factory=lambda: NDCG(10))
    patience: int = 200

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError(f"EarlyStopping needs a patience of at least 1. Received: patience={self.patience}")


@dataclass(frozen=True)
class Training:
    """Settings of the optimisation; the defaults are those of the gSASRec paper.

    Args:
        batch_size: users per step (interactions, for models that learn from user-item pairs).
        max_steps_per_epoch: maximum number of steps in an epoch, which is otherwise one pass over the users.
        max_epochs: maximum number of epochs.
        early_stopping: when to stop earlier; its metric also chooses the best epoch, whose weights are used. `None`
            trains for `max_epochs` without validation and keeps the last weights.
        optimizer: settings of the optimiser.
        with_replacement: sample the users of every batch with replacement, as the original SASRec does.
        learns_validation_targets: train on everything but the test targets, for models that need no validation. In a
            recipe it counts with `fit_on="mixed"` only: otherwise all models learn from the same interactions.
        jit_compile: compile the step with XLA on CPUs. A GPU compiles it wherever that needs no scatter of floats.
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
            raise ValueError(
                "Training with learns_validation_targets needs early_stopping=None: it has no validation data"
            )

    @property
    def batch_settings(self) -> BatchSettings:
        """How batches are made: XLA needs static shapes, otherwise batches are cut into buckets of similar length.

        On a GPU all shapes are static.
        """
        layout = STATIC if self.jit_compile and not has_gpu() else None
        return BatchSettings(self.batch_size, self.max_steps_per_epoch, self.with_replacement, layout)


@dataclass(frozen=True)
class Trained:
    """A network to train.

    Args:
        model: the architecture.
        loss: the loss to minimise.
        training: settings of the optimisation.
        negatives: how negatives are sampled, for sampled losses.
        prior_start: add a trainable bias to all logits, initialised at the optimal logit of an item with prior
            P = 1/|I|. Rankings do not change; without it gBCE spends its first epochs lowering all scores. Not in the
            paper.
    """

    model: NeuralModel
    loss: SampledLoss | FullLoss
    training: Training
    negatives: Negatives = field(default_factory=Negatives)
    prior_start: bool = False

    def __post_init__(self) -> None:
        check_type("Trained", "model", self.model, NeuralModel)
        check_type("Trained", "loss", self.loss, (SampledLoss, FullLoss))
        check_type("Trained", "training", self.training, Training)
        check_type("Trained", "negatives", self.negatives, Negatives)
        if self.prior_start and not isinstance(self.loss, BinaryLoss):
            raise ValueError(f"Trained needs a binary loss, such as GBCE, for prior_start. Received: {self.loss}")
        if self.prior_start and self.negatives.by_popularity:
            raise ValueError("Trained with prior_start needs uniform negatives: for others the prior is not known")
        if self.negatives.by_popularity and isinstance(self.loss, SampledSoftmax) and self.loss.is_corrected:
            raise ValueError("Trained with a corrected SampledSoftmax needs uniform negatives: it corrects for those")

    def training_data(self, split: Split) -> Interactions:
        """The interactions that the network learns from."""
        return split.test.known if self.training.learns_validation_targets else split.train

    @property
    def batch_settings(self) -> BatchSettings:
        """How batches are made; negatives that a sequence shares need a row per sequence."""
        settings = self.training.batch_settings
        if has_gpu() and isinstance(self.loss, SampledLoss) and self.negatives.shared_by == "sequence":
            return replace(settings, layout=STATIC)
        return settings

    def is_step_compiled(self, data: Interactions) -> bool:
        """Return whether XLA compiles the whole step: on a CPU if asked to, on a GPU if no table needs a scatter."""
        if not has_gpu():
            return self.training.jit_compile
        is_lazy = isinstance(self.training.optimizer, Adam) and self.training.optimizer.lazy
        return is_small_table(max(data.num_items, data.num_users)) and not is_lazy

    def num_steps_per_epoch(self, data: Interactions) -> int:
        """Number of training steps in an epoch over `data`."""
        return num_steps_per_epoch(len(self.model.examples().cases(data)), self.training.batch_settings)

    def build_network(self, data: Interactions) -> Network:
        """Build a network with new weights for the catalogue and users of `data`, drawn from Keras' global seed."""
        bias = None
        if self.prior_start and isinstance(self.loss, BinaryLoss):
            bias = self.loss.prior_logit(data.num_items, self.negatives)
        with _dtype_policy("mixed_bfloat16" if self.training.mixed_precision else "float32"):
            return self.model.build(data.num_items, num_users=data.num_users, logit_bias=bias)


@contextmanager
def _dtype_policy(policy: str) -> Iterator[None]:
    """Set Keras' global dtype policy within the block."""
    previous = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(previous)
