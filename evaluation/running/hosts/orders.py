"""What the first host tells the others: to take part in a training, or that its process has none left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace

import tensorflow as tf

from aprec_like.training.hosts import Hosts


@dataclass(frozen=True)
class Order:
    """An order to take part in a training.

    Args:
        model: name of the model.
        seed: training seed.
        refit_epochs: epochs of the second training, with the validation part; `None` for the first.
    """

    model: str
    seed: int
    refit_epochs: int | None = None


@dataclass(frozen=True)
class End:
    """The process of the first host has no more to train.

    Args:
        is_last: whether no other process follows it.
    """

    is_last: bool


class FirstHost:
    """The side of the host that leads; with one host nothing is told to anyone.

    Args:
        strategy: of all hosts.
        order: the model and seed to train.
    """

    def __init__(self, strategy: tf.distribute.Strategy, order: Order) -> None:
        self.strategy, self.order = strategy, order
        with strategy.scope():
            self.hosts = Hosts()

    @contextmanager
    def training_scope(self, refit_epochs: int | None) -> Iterator[None]:
        """Tell the others to take part in a training, and enter the scope of the strategy."""
        with self.strategy.scope():
            self._tell(replace(self.order, refit_epochs=refit_epochs))
            yield

    def end(self, is_last: bool) -> None:
        """Tell the others that there is no more to train in this process; returns when they know it."""
        with self.strategy.scope():
            self._tell(End(is_last))
            acknowledge_end(self.hosts)

    def _tell(self, message: Order | End) -> None:
        self.hosts.broadcast(json.dumps(asdict(message)))


def receive(hosts: Hosts) -> Order | End:
    """Wait for what the first host tells; within the scope of the strategy."""
    values = json.loads(hosts.broadcast(""))
    return End(**values) if "is_last" in values else Order(**values)


def acknowledge_end(hosts: Hosts) -> None:
    """Wait until all hosts know of the end. A host that is gone by now knows of it too."""
    with suppress(tf.errors.OpError):
        hosts.broadcast("")
