"""The process of a host that is not the first: takes part in the trainings of one process of the first host."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evaluation.cli import DONE, FAILED, import_tensorflow, run_command
from evaluation.running.signals import SIGNALS, StopFlag, exit_with_run_command, unblock_signals
from evaluation.running.worker import WorkerOptions

SECONDS_TO_STOP = 20.0
"""After a request to stop, how long the first host has to save and exit before this one does."""


def main() -> int:
    """Take part in trainings until the first host has no more for this process; returns the exit code.

    While it waits for the first host, in TensorFlow, any signal ends it.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    unblock_signals()
    threading.Thread(target=exit_with_run_command, daemon=True).start()
    options = WorkerOptions.from_json(sys.argv[1])
    import_tensorflow()
    import tensorflow as tf

    from aprec_like.devices import host_number, make_strategy, prepare_devices
    from aprec_like.errors import NotFiniteError, StoppedError, first_line
    from aprec_like.training.hosts import Hosts
    from evaluation.running.hosts.orders import End, FirstHost, Order, acknowledge_end, receive
    from evaluation.running.hosts.take_part import GOES_ON
    from evaluation.running.hosts.train_along import train_along

    strategy = make_strategy(options.devices)
    prepare_devices()
    if host_number() == 0:  # which has nothing to train
        FirstHost(strategy, Order("", 0)).end(is_last=True)
        return DONE
    with strategy.scope():
        hosts = Hosts()
        try:
            while not isinstance(order := receive(hosts), End):
                with stopping_late() as is_stopping:
                    train_along(options, order, is_stopping)
            acknowledge_end(hosts)
        except (StoppedError, NotFiniteError, tf.errors.OpError) as error:  # at the first host too, or it is gone
            print(f"takes no more part: {first_line(error)}", file=sys.stderr)
            return FAILED
    return DONE if order.is_last else GOES_ON


@contextmanager
def stopping_late() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether a signal came long ago; the first host, which saves, had one too or not."""
    stop = StopFlag()
    requested_at: list[float] = []

    def is_stopping() -> bool:
        if stop() and not requested_at:
            requested_at.append(time.monotonic())
        return bool(requested_at) and time.monotonic() - requested_at[0] > SECONDS_TO_STOP

    previous = {number: signal.signal(number, stop.receive) for number in SIGNALS}
    try:
        yield is_stopping
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    code = run_command(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
