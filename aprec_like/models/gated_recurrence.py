"""Gated recurrent unit (GRU): the layer, and its recurrence with a gradient in few operations per position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from typing_extensions import override

from aprec_like.types import Tensor


class GRULayer(keras.layers.Layer):
    """`keras.layers.GRU(dim, return_sequences=True)` with the same weights, for several sequences in a row.

    z = sigmoid(x Wz + h Uz + b), r = sigmoid(x Wr + h Ur + b), n = tanh(x Wn + b + r * (h Un + b')), and the next state
    is z * h + (1 - z) * n: the form of cuDNN. Keras' layer cannot start anew within a row, and cuDNN's kernel takes
    neither padding on the left nor bfloat16 and is out of XLA's reach, so the recurrence is a loop of TensorFlow.

    Args:
        dim: size of the states.
        name: name of the layer.
    """

    def __init__(self, dim: int, name: str) -> None:
        super().__init__(name=name)
        self.dim = dim

    @override
    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        self.kernel = self.add_weight(
            shape=(inputs_shape[-1], 3 * self.dim), initializer="glorot_uniform", name="kernel"
        )
        # The recurrence is in float32 whatever the policy: it adds up over positions, and waits more than it computes.
        self.recurrent_kernel = self.add_weight(
            shape=(self.dim, 3 * self.dim), initializer="orthogonal", name="recurrent_kernel", autocast=False
        )
        self.bias = self.add_weight(shape=(2, 3 * self.dim), initializer="zeros", name="bias", autocast=False)

    @override
    def call(self, inputs: Tensor, is_continued: Tensor) -> Tensor:
        """Compute (batch, length, dim) states of (batch, length, inputs dim) inputs.

        Args:
            inputs: one input per position.
            is_continued: (batch, length) True where the state of the position before is taken over, False where a
                sequence starts, from a state of 0.
        """
        kernel, recurrent_kernel, bias = (
            tf.convert_to_tensor(weight) for weight in (self.kernel, self.recurrent_kernel, self.bias)
        )
        projected = tf.cast(tf.tensordot(inputs, kernel, axes=1), tf.float32) + bias[0]
        return tf.cast(gated_recurrence(projected, recurrent_kernel, bias[1], is_continued), inputs.dtype)


def gated_recurrence(inputs: Tensor, kernel: Tensor, bias: Tensor, is_continued: Tensor) -> Tensor:
    """Compute the (batch, length, dim) states of a GRU.

    Only states are kept for the gradient: gates are computed again, at all positions at once, and so are the gradients
    of the weights. What is left in the loops is one product per position.

    Args:
        inputs: (batch, length, 3 dim) projected inputs of the gates z, r and n.
        kernel: (dim, 3 dim) of the states.
        bias: (3 dim,) added to the products of states and `kernel`.
        is_continued: (batch, length) as in `GRULayer`.
    """
    carried = tf.transpose(tf.cast(is_continued, inputs.dtype))[:, :, None]  # (length, batch, 1)
    length, dim = tf.shape(inputs)[1], kernel.shape[0]

    @tf.custom_gradient
    def recurrence(inputs: Tensor, kernel: Tensor, bias: Tensor) -> tuple[Tensor, Callable[[Tensor], Any]]:
        inputs = tf.transpose(inputs, [1, 0, 2])

        def next_state(position: Tensor, state: Tensor) -> Tensor:
            state *= carried[position]
            update, _, candidate, _ = _gates(inputs[position], tf.matmul(state, kernel) + bias)
            return candidate + update * (state - candidate)

        states = _loop(next_state, length, tf.zeros_like(inputs[0, :, :dim]), is_reversed=False)

        def backward(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            before = tf.concat([tf.zeros_like(states[:1]), states[:-1]], axis=0) * carried
            update, reset, candidate, recurrent = _gates(inputs, tf.tensordot(before, kernel, axes=1) + bias)
            # Derivatives of the next state with respect to what the three non-linearities are applied to.
            d_update = (before - candidate) * update * (1 - update)
            d_candidate = (1 - update) * (1 - tf.square(candidate))
            d_reset = d_candidate * recurrent * reset * (1 - reset)
            d_recurrent = tf.concat([d_update, d_reset, d_candidate * reset], axis=-1)
            grad_states = tf.transpose(upstream, [1, 0, 2])

            def grad_state(position: Tensor, grad_after: Tensor) -> Tensor:
                """Gradient of the state at a position; the loop starts behind the last one, whose `grad_after` is 0."""
                after = tf.minimum(position + 1, length - 1)
                grad_recurrent = tf.tile(grad_after, [1, 3]) * d_recurrent[after]
                through = grad_after * update[after] + tf.matmul(grad_recurrent, kernel, transpose_b=True)
                return grad_states[position] + through * carried[after]

            grads = _loop(grad_state, length, tf.zeros_like(grad_states[0]), is_reversed=True)
            grad_inputs = tf.tile(grads, [1, 1, 3]) * tf.concat([d_update, d_reset, d_candidate], axis=-1)
            grad_recurrent = tf.tile(grads, [1, 1, 3]) * d_recurrent
            grad_kernel = tf.tensordot(before, grad_recurrent, axes=[[0, 1], [0, 1]])
            return tf.transpose(grad_inputs, [1, 0, 2]), grad_kernel, tf.reduce_sum(grad_recurrent, axis=[0, 1])

        return tf.transpose(states, [1, 0, 2]), backward

    return recurrence(inputs, kernel, bias)


def _gates(inputs: Tensor, recurrent: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gates z and r, the candidate n, and the part of n from the state before: each (..., dim)."""
    (z, r, n), (z_state, r_state, n_state) = (tf.split(values, 3, axis=-1) for values in (inputs, recurrent))
    reset = tf.sigmoid(r + r_state)
    return tf.sigmoid(z + z_state), reset, tf.tanh(n + reset * n_state), n_state


def _loop(step: Callable[[Tensor, Tensor], Tensor], length: Tensor, first: Tensor, *, is_reversed: bool) -> Tensor:
    """Return the (length, batch, dim) values of a recurrence over the positions, in their order or the reverse."""

    def body(number: Tensor, value: Tensor, values: Any) -> tuple[Tensor, Tensor, Any]:
        position = length - 1 - number if is_reversed else number
        value = step(position, value)
        return number + 1, value, values.write(position, value)

    values = tf.TensorArray(first.dtype, size=length, element_shape=first.shape)
    start = (tf.constant(0), first, values)
    *_, values = tf.while_loop(lambda number, *_: number < length, body, start, parallel_iterations=1)
    return values.stack()
