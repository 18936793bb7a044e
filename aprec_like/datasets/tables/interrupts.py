"""Ctrl-C while the database works."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
"""Signals that end a query; others are left to their handlers."""


@contextmanager
def interrupt_on_signal(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """End the connection's query when SIGINT or SIGTERM arrives; raises `KeyboardInterrupt`.

    Python runs signal handlers in the main thread, which the query occupies. DuckDB checks for signals itself, but does
    not cancel the tasks of its other threads and waits until they end. Therefore a thread reads signals from a wakeup
    descriptor and interrupts the connection. Outside the main thread, which alone can set the descriptor, queries run
    without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)  # as `set_wakeup_fd` requires
    previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)

    def watch() -> None:
        while received := receiver.recv(1):  # nothing once the sender is closed
            if received[0] in STOP_SIGNALS:
                connection.interrupt()
            if previous != -1:
                with suppress(OSError):
                    os.write(previous, received)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except RuntimeError as error:  # what DuckDB makes of a signal that it has found itself
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.set_wakeup_fd(previous)
        sender.close()
        watcher.join()
        receiver.close()
