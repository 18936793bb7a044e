"""Settings of optimisers, and the Keras optimisers that they build."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.devices import has_gpu
from aprec_like.schedules import Schedule
from aprec_like.settings import OMIT_DEFAULT
from aprec_like.types import Tensor


@dataclass(frozen=True)
class Adam:
    """Settings of the Adam optimiser; the defaults are Keras'.

    Args:
        learning_rate: step size.
        beta_1: decay rate of the first moment, the mean gradient.
        beta_2: decay rate of the second moment, the mean squared gradient.
        epsilon: added to the root of the second moment, for numerical stability.
        lazy: update only the rows of an embedding table that a step has used, so that the cost of a step does not grow
            with the catalogue. Moments and bias correction of a row then count only the steps that used it. Tables with
            a dense gradient (full losses, or negatives per position, which leave few rows unused) are updated as
            usual, so it is meant for negatives that a sequence or a batch shares.
        weight_decay: share of every weight matrix that a step takes away, times the learning rate (AdamW); norms and
            biases keep their values.
        clip_norm: largest norm of all gradients of a step together, which are scaled down to it; `None` for no limit.
    """

    learning_rate: float | Schedule = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7
    lazy: bool = False
    weight_decay: float = field(default=0.0, metadata=OMIT_DEFAULT)
    clip_norm: float | None = field(default=None, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        if not isinstance(self.learning_rate, Schedule) and not self.learning_rate > 0:
            raise ValueError(f"Adam needs a positive learning_rate. Received: learning_rate={self.learning_rate}")
        if not self.weight_decay >= 0:
            raise ValueError(f"Adam needs a weight_decay of at least 0. Received: weight_decay={self.weight_decay}")
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"Adam needs a positive clip_norm. Received: clip_norm={self.clip_norm}")
        if self.lazy and (self.weight_decay or self.clip_norm):
            raise ValueError("Adam with lazy=True needs weight_decay=0 and clip_norm=None: they concern all rows")

    def build(self) -> Any:
        """Build the Keras optimiser; the step of a schedule is one of its variables, so that it resumes exactly."""
        optimizer = LazyAdam if self.lazy else FusedAdam
        rate = self.learning_rate.build() if isinstance(self.learning_rate, Schedule) else self.learning_rate
        decay = self.weight_decay or None
        return optimizer(
            rate, self.beta_1, self.beta_2, self.epsilon, weight_decay=decay, global_clipnorm=self.clip_norm
        )


@dataclass(frozen=True)
class Adagrad:
    """Settings of the Adagrad optimiser.

    Args:
        learning_rate: step size before it is divided by the root of the accumulator.
        initial_accumulator: initial value of the sum of squared gradients; above 0, so that no epsilon is needed
            (Keras' default would outweigh a small accumulator).
    """

    learning_rate: float = 0.05
    initial_accumulator: float = 0.1

    def __post_init__(self) -> None:
        if not self.initial_accumulator > 0:
            raise ValueError(f"Adagrad needs a positive initial_accumulator. Received: {self.initial_accumulator}")

    def build(self) -> Any:
        """Build the Keras optimiser."""
        return keras.optimizers.Adagrad(self.learning_rate, self.initial_accumulator, epsilon=0.0)


class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam as one fused operation, without temporary arrays of the size of a variable."""

    @override
    def build(self, variables: list[Any]) -> None:
        """Create the moments; only matrices decay."""
        if self.weight_decay is not None and not self.built:
            self.exclude_from_weight_decay(var_list=[variable for variable in variables if len(variable.shape) < 2])
        super().build(variables)

    @override
    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> Any:
        """Update all variables; the powers of the decay rates are computed once for all of them."""
        step = tf.cast(self.iterations + 1, tf.float32)
        self._beta_1_power, self._beta_2_power = tf.pow(self.beta_1, step), tf.pow(self.beta_2, step)
        return super().apply(grads, trainable_variables)

    @override
    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Update one variable; a sparse gradient is 0 in all other rows, which still move by their moments."""
        mean, mean_square = self._moments(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=mean.handle,
            v=mean_square.handle,
            beta1_power=tf.cast(self._beta_1_power, variable.dtype),
            beta2_power=tf.cast(self._beta_2_power, variable.dtype),
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
        )

    def _moments(self, variable: Any) -> tuple[Any, Any]:
        index = self._get_variable_index(variable)
        return self._momentums[index].value, self._velocities[index].value


class LazyAdam(FusedAdam):
    """Adam that updates only the rows that have a gradient; see `Adam.lazy`."""

    @override
    def build(self, variables: list[Any]) -> None:
        """Create the moments and, for matrices, a count of the steps that used each row."""
        if self.built:
            return
        super().build(variables)
        self._uses = [
            self.add_variable((variable.shape[0],), name=f"{variable.path.replace('/', '_')}_uses")
            if len(variable.shape) == 2
            else None
            for variable in variables
        ]

    @override
    def _all_reduce_sum_gradients(self, grads_and_vars: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Add up the gradients of all replicas; sparse ones by putting their rows together."""
        context = tf.distribute.get_replica_context()
        if context is None or context.num_replicas_in_sync == 1:
            return grads_and_vars
        dense = [pair for pair in grads_and_vars if not isinstance(pair[0], tf.IndexedSlices)]
        reduced = iter(super()._all_reduce_sum_gradients(dense))
        return [
            (_gather_slices(context, gradient), variable) if isinstance(gradient, tf.IndexedSlices) else next(reduced)
            for gradient, variable in grads_and_vars
        ]

    @override
    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Update one variable, or only the rows of a sparse gradient."""
        if not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        rows, row_gradients = _sum_by_row(gradient)
        mean, mean_square = self._moments(variable)
        uses = self._uses[self._get_variable_index(variable)].value
        # Bias correction by the uses of a row: at its first use it moves by the learning rate.
        steps = tf.gather(uses, rows)[:, None] + 1
        rate = learning_rate * tf.sqrt(1 - tf.pow(self.beta_2, steps)) / (1 - tf.pow(self.beta_1, steps))
        old_mean, old_square = tf.gather(mean, rows), tf.gather(mean_square, rows)
        new_mean = old_mean + (row_gradients - old_mean) * (1 - self.beta_1)
        new_square = old_square + (tf.square(row_gradients) - old_square) * (1 - self.beta_2)
        uses.scatter_update(tf.IndexedSlices(steps[:, 0], rows))
        mean.scatter_update(tf.IndexedSlices(new_mean, rows))
        mean_square.scatter_update(tf.IndexedSlices(new_square, rows))
        moved = tf.gather(variable, rows) - rate * new_mean / (tf.sqrt(new_square) + self.epsilon)
        variable.scatter_update(tf.IndexedSlices(moved, rows))


def _gather_slices(context: Any, gradient: tf.IndexedSlices) -> tf.IndexedSlices:
    """Return the sparse gradients of all replicas as one."""
    values, indices = (context.all_gather(part, axis=0) for part in (gradient.values, gradient.indices))
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


def _sum_by_row(gradient: tf.IndexedSlices) -> tuple[Tensor, Tensor]:
    """Return the rows of a sparse gradient and their gradients, summed over repeated indices.

    On a GPU a row comes as often as its index, each time with the same sum: to find the distinct ones would wait for
    their number, and assigning the same values twice is harmless.
    """
    if not has_gpu():
        rows, row_index = tf.unique(gradient.indices)
        return rows, tf.math.unsorted_segment_sum(gradient.values, row_index, tf.size(rows))
    rows, order, row_index = _sorted_rows(gradient.indices)
    sums = tf.math.unsorted_segment_sum(tf.gather(gradient.values, order), row_index, tf.size(gradient.indices))
    return rows, tf.gather(sums, row_index)


@tf.function(jit_compile=True)
def _sorted_rows(indices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return (n,) indices in order, their places before, and the number of distinct indices before each."""
    order = tf.argsort(indices, stable=True)
    rows = tf.gather(indices, order)
    is_new = tf.concat([[False], rows[1:] != rows[:-1]], axis=0)
    return rows, tf.cast(order, tf.int64), tf.cumsum(tf.cast(is_new, tf.int64))
