"""The HTTP server: the page, TF Serving's REST form, health."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from typing_extensions import override

from aprec_like.errors import InputError
from aprec_like.types import Json
from evaluation.cli import DONE
from evaluation.serving.requests import MAX_BODY_BYTES, answer_predict, answer_similarities, parse_predict
from evaluation.serving.served_model import ServedModel, load_served_model

SECONDS_TO_WAIT = 30.0
"""For the rest of a request that has begun."""
MAX_DISCARDED_BYTES = 8 * MAX_BODY_BYTES
"""Read of a body that is too large, before it is refused."""
ASSETS = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class ModelServer(ThreadingHTTPServer):
    """A server of one model."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], model: ServedModel) -> None:
        super().__init__(address, RequestHandler)
        self.model = model

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away; anything else is a defect and shown."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class RequestHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    server: ModelServer
    protocol_version = "HTTP/1.1"
    timeout = SECONDS_TO_WAIT
    # Headers and body are two writes: the second would wait for the client's delayed acknowledgement, 40 ms.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer for the page, its files, a search of items, the model's status and health."""
        url, model = urlsplit(self.path), self.server.model
        if url.path in ASSETS:
            name, kind = ASSETS[url.path]
            text = resources.files("evaluation.serving").joinpath(f"assets/{name}").read_text("utf-8")
            self._send(HTTPStatus.OK, text.encode(), kind)
        elif url.path == "/health":
            self._send_json({"status": "ok"})
        elif url.path == "/items":
            texts = parse_qs(url.query, errors="replace", max_num_fields=8).get("q", [""])
            self._send_json({"items": model.search(texts[0][:200])})
        elif url.path == "/model":
            self._send_json(
                {name: model.description.get(name) for name in ("model", "run", "num_items", "exclude_seen")}
            )
        elif unquote(url.path) == f"/v1/models/{model.name}":
            status = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
            self._send_json({"model_version_status": [status]})
        else:
            self._send_error(
                HTTPStatus.NOT_FOUND, f"there is nothing here; the model is at /v1/models/{quote(model.name)}"
            )

    def do_POST(self) -> None:
        """Answer `:predict` requests and the page's question why."""
        path, model = unquote(urlsplit(self.path).path), self.server.model
        answers: dict[str, Callable[[bytes], Json]] = {
            f"/v1/models/{model.name}:predict": lambda body: answer_predict(parse_predict(body, model), model),
            "/similarities": lambda body: answer_similarities(body, model),
        }
        if path not in answers:
            self._send_error(HTTPStatus.NOT_FOUND, f"requests go to /v1/models/{quote(model.name)}:predict")
            return
        try:
            answer = answers[path](self._read_body())
        except InputError as error:
            self._send_error(HTTPStatus.BAD_REQUEST, str(error))
        else:
            self._send_json(answer)

    def _read_body(self) -> bytes:
        """Return the body; after a body that was not read to its end the connection is closed."""
        self.close_connection = True
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            raise InputError("the request needs a Content-Length")
        if len(length) > 10 or int(length) > MAX_BODY_BYTES:
            self.rfile.read(min(int(length[:10]), MAX_DISCARDED_BYTES))  # a client reads no answer before it has sent
            raise InputError(f"the body must have at most {MAX_BODY_BYTES:,} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise InputError("the body is shorter than its Content-Length")
        self.close_connection = self.headers.get("Connection", "").casefold() == "close"
        return body

    def _send_json(self, value: Json, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(status, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"), "application/json")

    def _send_error(self, status: HTTPStatus, message: str) -> None:
        self._send_json({"error": message}, status)

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a request holds what a person likes."""


def serve(folder: Path, host: str, port: int) -> int:
    """Serve an export until Ctrl-C; returns the exit code."""
    model = load_served_model(folder)
    model.recommend([[]], 1, exclude_seen=True)  # the first call takes longer
    try:
        server = ModelServer((host, port), model)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    with server:
        address = f"http://{host}:{server.server_address[1]}"
        print(f"{model.name}, {model.num_items:,} items: {address}/  (Ctrl-C ends)", flush=True)
        print(f"requests: POST {address}/v1/models/{quote(model.name)}:predict", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended", file=sys.stderr)
    return DONE
