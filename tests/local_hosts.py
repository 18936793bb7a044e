"""Addresses of several hosts that are processes of this machine, for tests of MultiWorkerMirroredStrategy."""

import json
import socket


def local_cluster(number: int) -> list[str]:
    """Addresses with ports that were free a moment ago."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def tf_config(cluster: list[str], number: int) -> dict[str, str]:
    """The environment variable that tells a process its place in a cluster."""
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": cluster}, "task": {"type": "worker", "index": number}})}
