"""Measures the server of an exported model: latency, throughput and memory, with the clients on the same machine.

python -m evaluation.serving.measure exported/gsasrec --requests 500

starts `evaluation.serve` on a free port, sends requests for the 10 best items after random histories of 50 items, and
prints one line per number of clients and of histories in a request. The processor time of the server per request says
more than latencies where the machine is busy with other work.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
import psutil

from aprec_like.errors import InputError
from evaluation.cli import DONE, import_tensorflow, run_command, track
from evaluation.results.files import read_json

HISTORY_LENGTH = 50
LOADS = ((1, 1), (4, 1), (1, 64))
"""Clients at the same time, and histories of a request."""
NUM_WARM_UP = 5
"""Requests before anything is measured."""


@dataclass(frozen=True)
class Latencies:
    """What the clients saw.

    Args:
        seconds: of every request.
        total: from the first request to the last answer.
    """

    seconds: Sequence[float]
    total: float

    def percentile(self, share: float) -> float:
        """Return the seconds within which this share of the requests, in percent, was answered."""
        return float(np.percentile(self.seconds, share))


def main() -> int:
    """Start a server, measure it, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.serving.measure", description=__doc__)
    parser.add_argument("export", type=Path, metavar="EXPORT", help="a SavedModel that `evaluation.export` wrote")
    parser.add_argument("--requests", type=int, default=500, metavar="N", help="per line (default: 500)")
    arguments = parser.parse_args()
    if arguments.requests < 1:
        parser.error("--requests must be at least 1")
    import_tensorflow()
    name, items = read_export(arguments.export)
    bodies = {size: list(make_bodies(items, arguments.requests, size)) for _, size in LOADS}
    print(f"{name}, {len(items):,} items, {arguments.requests:,} requests per line")
    print("clients  histories  p50, ms  p99, ms  requests/s  CPU ms/request")
    with serving(arguments.export) as (host, process):
        path = f"/v1/models/{quote(name)}:predict"
        for num_clients, size in LOADS:
            send_all(host, path, bodies[size][:NUM_WARM_UP], num_clients)
            used = processor_seconds(process)
            found = send_all(host, path, bodies[size], num_clients)
            cpu = 1000 * (processor_seconds(process) - used) / len(found.seconds)
            rate = len(found.seconds) / found.total
            median, slow = (1000 * found.percentile(share) for share in (50, 99))
            print(f"{num_clients:7}  {size:9}  {median:7.1f}  {slow:7.1f}  {rate:10.1f}  {cpu:14.1f}", flush=True)
        print(f"memory of the server: {process.memory_info().rss / 2**30:.2f} GiB")
    return DONE


def processor_seconds(process: psutil.Process) -> float:
    """Return the processor time of a process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def read_export(folder: Path) -> tuple[str, list[int | str]]:
    """Return the name of an exported model and the ids of its items."""
    from evaluation.inference.export_model import DESCRIPTION, ITEMS

    description = read_json(folder / DESCRIPTION)
    with (folder / ITEMS).open(encoding="utf-8", newline="") as file:
        ids: list[int | str] = [row["item"] for row in csv.DictReader(file)]
    if isinstance(description.get("padding"), int):
        ids = list(map(int, ids))
    return str(description["model"]), ids


def make_bodies(items: Sequence[int | str], count: int, num_histories: int) -> Iterator[bytes]:
    """Yield requests for histories of random items, the same ones in every run."""
    random = np.random.default_rng(1)
    for _ in range(count):
        numbers = random.integers(len(items), size=(num_histories, HISTORY_LENGTH))
        yield json.dumps({"instances": [[items[number] for number in row] for row in numbers]}).encode()


@contextmanager
def serving(export: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Serve an export in a process of its own; gives its address and the process."""
    command = [sys.executable, "-m", "evaluation.serve", str(export), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline() if server.stdout else ""
        words = [word for word in line.split() if word.startswith("http://")]
        if not words:
            raise InputError(f"{export}: the server did not start")
        yield urlsplit(words[0]).netloc, psutil.Process(server.pid)
    finally:
        server.terminate()
        server.wait()


def send_all(host: str, path: str, bodies: Sequence[bytes], num_clients: int) -> Latencies:
    """Send requests from several clients, each with a connection that stays open; raises `InputError` on a refusal."""

    def send(client: int) -> list[float]:
        connection, seconds = http.client.HTTPConnection(host, timeout=600), []
        own = bodies[client::num_clients]
        for body in track(own, "requests of the first client", len(own)) if client == 0 else own:
            started = time.perf_counter()
            connection.request("POST", path, body)
            response = connection.getresponse()
            answer = response.read()
            seconds.append(time.perf_counter() - started)
            if response.status != http.client.OK:
                raise InputError(f"the server refused a request: {answer[:200].decode(errors='replace')}")
        connection.close()
        return seconds

    started = time.perf_counter()
    with ThreadPoolExecutor(num_clients) as clients:
        found = list(itertools.chain(*clients.map(send, range(num_clients))))
    return Latencies(found, time.perf_counter() - started)


if __name__ == "__main__":
    sys.exit(run_command(main))
