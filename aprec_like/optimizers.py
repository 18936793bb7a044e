"""Settings of optimisers: frozen, and turned into the Keras ones for every training anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from aprec_like.types import Tensor


@dataclass(frozen=True)
class Adam:
    """Settings of the Adam optimiser; the defaults are Keras'.

    Args:
        learning_rate: how far a step moves a parameter.
        beta_1: how much of the mean gradient a step keeps.
        beta_2: how much of the mean squared gradient a step keeps.
        epsilon: added to the root of the mean squared gradient.
        lazy: move only the rows of a table that a step has used, so that a step on a huge catalogue costs what its
            rows cost. Every row then has an Adam of its own, made of the steps that used it: between them it does not
            drift, its means do not fade, and bias correction counts its own steps. A table whose gradient is dense
            moves as ever: one that scores all items, or negatives of each position's own, which are so many that few
            rows are left out. So it is meant for negatives that a sequence or a batch shares.
    """

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7
    lazy: bool = False

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise ValueError(f"Adam needs a positive learning_rate. Received: learning_rate={self.learning_rate}")

    def build(self) -> Any:
        """The Keras optimiser."""
        kind = LazyAdam if self.lazy else FusedAdam
        return kind(self.learning_rate, self.beta_1, self.beta_2, self.epsilon)


@dataclass(frozen=True)
class Adagrad:
    """Settings of the Adagrad optimiser.

    Args:
        learning_rate: of a parameter that has not moved yet.
        initial_accumulator: what the sum of squared gradients starts from; above 0, so that nothing else need be added
            to divide by its root (Keras' epsilon would outweigh a small one).
    """

    learning_rate: float = 0.05
    initial_accumulator: float = 0.1

    def __post_init__(self) -> None:
        if not self.initial_accumulator > 0:
            raise ValueError(f"Adagrad needs a positive initial_accumulator. Received: {self.initial_accumulator}")

    def build(self) -> Any:
        """The Keras optimiser."""
        return keras.optimizers.Adagrad(self.learning_rate, self.initial_accumulator, epsilon=0.0)


class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam by the same formulas in one operation: no array as large as the table on the way."""

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Move one variable; a gradient of some rows counts as 0 in the others, which move by their means."""
        mean, mean_square = self._moments(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=mean.handle,
            v=mean_square.handle,
            beta1_power=tf.pow(tf.constant(self.beta_1, variable.dtype), step),
            beta2_power=tf.pow(tf.constant(self.beta_2, variable.dtype), step),
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
    """Adam that moves only the rows that have a gradient; see `Adam.lazy`."""

    def build(self, variables: list[Any]) -> None:
        """Moments, and for the rows of every matrix how many steps have used each."""
        if self.built:
            return
        super().build(variables)
        self._uses = [
            self.add_variable((variable.shape[0],), name=f"{variable.path.replace('/', '_')}_uses")
            if len(variable.shape) == 2
            else None
            for variable in variables
        ]

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Tensor) -> None:
        """Move one variable, or some of its rows."""
        if not isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable, learning_rate)
            return
        rows, place = tf.unique(gradient.indices)
        summed = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
        mean, mean_square = self._moments(variable)
        uses = self._uses[self._get_variable_index(variable)].value
        # A row used for the first time moves by the learning rate, whatever the number of steps before.
        steps = tf.gather(uses, rows)[:, None] + 1
        rate = learning_rate * tf.sqrt(1 - tf.pow(self.beta_2, steps)) / (1 - tf.pow(self.beta_1, steps))
        old_mean, old_square = tf.gather(mean, rows), tf.gather(mean_square, rows)
        new_mean = old_mean + (summed - old_mean) * (1 - self.beta_1)
        new_square = old_square + (tf.square(summed) - old_square) * (1 - self.beta_2)
        uses.scatter_update(tf.IndexedSlices(steps[:, 0], rows))
        mean.scatter_update(tf.IndexedSlices(new_mean, rows))
        mean_square.scatter_update(tf.IndexedSlices(new_square, rows))
        variable.scatter_sub(tf.IndexedSlices(rate * new_mean / (tf.sqrt(new_square) + self.epsilon), rows))
