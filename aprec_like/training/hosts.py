"""Training on several hosts (`tf.distribute.MultiWorkerMirroredStrategy`): what each of them does besides the steps.

All hosts run the same loop in the same order. The first one saves checkpoints; the others resume from a copy of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.splits import HeldOut
from aprec_like.training.checkpoints import Checkpoints, copy_checkpoints
from aprec_like.training.epoch_loop import MAX_STEPS_PER_CALL
from aprec_like.types import Array, Tensor

MAX_BYTES = 4096
"""Of a text that the first host sends."""


class Hosts:
    """The hosts of the current strategy; one without a strategy of several hosts."""

    def __init__(self) -> None:
        self.strategy = tf.distribute.get_strategy()
        resolver = self.strategy.cluster_resolver
        workers = resolver.cluster_spec().as_dict().get("worker", []) if resolver else []
        self.num_hosts = max(1, len(workers))
        self.number = resolver.task_id if self.num_hosts > 1 else 0

    @property
    def max_steps_per_call(self) -> int:
        """Steps of one call: one on several hosts, which must agree on it.

        Otherwise their number depends on a host's speed, and TensorFlow matches sums over hosts by the iteration of a
        loop that they are in: hosts at the same step but in other iterations would wait for each other forever.
        """
        return MAX_STEPS_PER_CALL if self.num_hosts == 1 else 1

    def check_time_limit(self, time_limit: float) -> None:
        """Raise `InputError` for a time limit, which hosts would reach at different steps."""
        if self.num_hosts > 1 and not math.isinf(time_limit):
            raise InputError("a training on several hosts can't have a time limit; use max_epochs")

    def own_checkpoints(self, checkpoints: Checkpoints, temporary: Path) -> Checkpoints:
        """Return the checkpoints of the first host; for others a copy in a temporary folder."""
        if self.number == 0:
            return checkpoints
        if checkpoints.folder.is_dir():
            copy_checkpoints(checkpoints.folder, temporary)
        return Checkpoints(temporary, checkpoints.fingerprint)

    def check_same_start(self, start: tuple[int, int]) -> None:
        """Raise `InputError` if hosts would go on from different steps."""
        if self.num_hosts > 1 and not np.array_equal(self.sum(np.array(start)), np.array(start) * self.num_hosts):
            raise InputError(f"hosts resume from different states, this one from {start}; they must share checkpoints")

    def own_cases(self, cases: HeldOut) -> tuple[HeldOut, Array]:
        """Return the cases that this host ranks, and their numbers."""
        numbers = np.arange(self.number, len(cases), self.num_hosts)
        if self.num_hosts == 1:
            return cases, numbers
        return HeldOut(cases.known, cases.users[numbers], cases.targets[numbers]), numbers

    def gather_cases(self, values: Array, numbers: Array, num_cases: int) -> Array:
        """Return the (num_cases,) values of all hosts, from those of this host's cases."""
        if self.num_hosts == 1:
            return values
        found = np.zeros(num_cases)
        found[numbers] = values
        return self.sum(found)

    def broadcast(self, text: str) -> str:
        """Return the text of the first host, of at most `MAX_BYTES` bytes, whatever that of the others."""
        if self.num_hosts == 1:
            return text
        own = text.encode() if self.number == 0 else b""
        padded = np.frombuffer(own.ljust(MAX_BYTES, b"\0"), np.uint8)
        if len(padded) > MAX_BYTES:
            raise ValueError(f"Hosts can send at most {MAX_BYTES} bytes at once. Received: {len(padded)} bytes")
        return self.sum(padded).astype(np.uint8).tobytes().rstrip(b"\0").decode()

    def sum(self, values: Array) -> Array:
        """Return the sum of an array over all hosts."""
        return self._add_up(tf.constant(values, tf.float64)).numpy()

    @functools.cached_property
    def _add_up(self) -> Callable[[Tensor], Tensor]:
        num_local = self.strategy.num_replicas_in_sync // self.num_hosts

        @tf.function
        def add_up(values: tf.Tensor) -> tf.Tensor:
            def of_replica(values: tf.Tensor) -> tf.Tensor:
                context = tf.distribute.get_replica_context()
                is_first = tf.equal(tf.math.floormod(context.replica_id_in_sync_group, num_local), 0)
                own = tf.where(is_first, values, tf.zeros_like(values))
                return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

            return self.strategy.experimental_local_results(self.strategy.run(of_replica, args=(values,)))[0]

        return add_up
