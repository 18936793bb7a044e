"""The process of a host that is not the first: takes part in the trainings of one process of the first host."""

from __future__ import annotations

import os
import sys
import time

from evaluation.cli import DONE, import_tensorflow, run_command
from evaluation.running.signals import StopFlag
from evaluation.running.worker import WorkerOptions

SECONDS_TO_STOP = 20.0
"""After a request to stop, how long the first host has to save and exit before this one does."""


def main() -> int:
    """Take part in trainings until the first host has no more for this process; returns the exit code."""
    stop = StopFlag()
    stop.listen()
    options = WorkerOptions.from_json(sys.argv[1])
    import_tensorflow()
    import tensorflow as tf

    from aprec_like.devices import host_number, make_strategy, prepare_devices
    from aprec_like.errors import StoppedError, first_line
    from evaluation.running.hosts.orders import End, FirstHost, Order, acknowledge_end, receive
    from evaluation.running.hosts.take_part import GOES_ON
    from evaluation.running.hosts.train_along import train_along

    requested_at: list[float] = []

    def is_stopping() -> bool:
        if stop() and not requested_at:
            requested_at.append(time.monotonic())
        return bool(requested_at) and time.monotonic() - requested_at[0] > SECONDS_TO_STOP

    strategy = make_strategy(options.devices)
    prepare_devices()
    if host_number() == 0:  # which has nothing to train
        FirstHost(strategy, Order("", 0)).end(is_last=True)
        return DONE
    with strategy.scope():
        try:
            while not isinstance(order := receive(), End):
                train_along(options, order, is_stopping)
            acknowledge_end()
        except StoppedError:
            return stop.exit_code
        except tf.errors.OpError as error:  # the first host is gone
            print(f"takes no more part: {first_line(error)}", file=sys.stderr)
            return stop.exit_code if stop() else 1
    return DONE if order.is_last else GOES_ON


if __name__ == "__main__":
    code = run_command(main)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
