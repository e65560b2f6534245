"""The model server of the lab: the clumsy model on three wires, or a real one behind it, and what it is sent.

It is a server with a thread per connection, on loopback, with one task at a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Final

from msgspec import Struct

from jumpseat.cli.lab.clumsy import ClumsyModel
from jumpseat.cli.lab.wires import MODEL, WIRES, in_order, read, stream, write

CHARACTERS_PER_TOKEN: Final = 4
_TOO_LONG: Final = "context_length_exceeded"


class RealModel(Struct, frozen=True):
    """A model at a provider with a compatible API, to which requests are passed on."""

    base_url: str
    model: str
    key: str


class Traffic(Struct):
    """The cost of one task: requests, characters sent, and characters that began as the request before."""

    requests: int = 0
    characters: int = 0
    repeated: int = 0

    @property
    def tokens(self) -> int:
        return self.characters // CHARACTERS_PER_TOKEN


class ModelServer:
    """Answers the requests of an agent; :meth:`begin` sets the task that they are about."""

    def __init__(self, window: int, real: RealModel | None = None) -> None:
        self.window = window
        self.real = real
        self.traffic = Traffic()
        self._model: ClumsyModel | None = None
        self._last: list[str] = []
        self._lock = Lock()
        self._server = _HttpServer(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        """The base URL without a version."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @contextmanager
    def running(self) -> Generator[None]:
        thread = Thread(target=self._server.serve_forever, name="lab-model")
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def begin(self, model: ClumsyModel) -> Traffic:
        """Begin a task, and return its traffic, which goes on being counted."""
        with self._lock:
            self._model, self.traffic, self._last = model, Traffic(), []
            return self.traffic

    def count(self, body: dict[str, Any]) -> tuple[int, int]:
        """Count a request; return its tokens and those of its cached beginning, as the simulation sees them."""
        text = in_order(body)
        with self._lock:
            repeated = max((_alike(text, last) for last in self._last), default=0)
            self._last = [*self._last[-3:], text]
            self.traffic.requests += 1
            self.traffic.characters += len(text)
            self.traffic.repeated += repeated
        return len(text) // CHARACTERS_PER_TOKEN, repeated // CHARACTERS_PER_TOKEN

    def answer(self, wire: str, body: dict[str, Any]) -> tuple[int, str, str]:
        """Return the status, the media type and the text of an answer."""
        usage = self.count(body)
        if usage[0] > self.window:
            message = (
                f"This model's maximum context length is {self.window} tokens. However, you requested {usage[0]}"
            )
            error = {"message": f"{message} tokens.", "type": "invalid_request_error", "code": _TOO_LONG}
            return 400, "application/json", json.dumps({"type": "error", "error": error})
        with self._lock:
            assert self._model is not None
            said = self._model.answer(read(wire, body))
            number = self.traffic.requests
        if body.get("stream"):
            return 200, "text/event-stream", "".join(stream(wire, said, number, usage))
        return 200, "application/json", json.dumps(write(wire, said, number, usage))


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # An agent that was ended does not read its answer.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _alike(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            """Log nothing."""

        def do_GET(self) -> None:
            name = server.real.model if server.real else MODEL
            listed = {"id": name, "object": "model", "context_length": server.window}
            self._send(200, "application/json", json.dumps({"object": "list", "data": [listed]}).encode())

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            wire = next((each for each in WIRES if path.endswith(each)), None)
            if wire is None:
                self._send(404, "application/json", b'{"error": {"message": "unknown endpoint"}}')
            elif server.real is not None:
                self._pass_on(server.real, wire, json.loads(data))
            else:
                status, kind, text = server.answer(wire, json.loads(data))
                self._send(status, kind, text.encode())

        def _send(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _pass_on(self, real: RealModel, wire: str, body: dict[str, Any]) -> None:
            # Imported here: the simulated model sends no requests.
            import httpx2

            server.count(body)
            headers = {"Authorization": f"Bearer {real.key}", "x-api-key": real.key}
            for name in ("anthropic-version", "anthropic-beta"):
                if value := self.headers.get(name):
                    headers[name] = value
            url = f"{real.base_url.rstrip('/')}/{wire}"
            body = {**body, "model": real.model}
            try:
                with httpx2.stream("POST", url, json=body, headers=headers, timeout=600) as response:
                    self.send_response(response.status_code)
                    self.send_header("Content-Type", response.headers.get("Content-Type", "application/json"))
                    if wait := response.headers.get("Retry-After"):
                        self.send_header("Retry-After", wait)
                    self.send_header("Connection", "close")
                    self.end_headers()
                    for chunk in response.iter_bytes():
                        self.wfile.write(chunk)
                        self.wfile.flush()
            except httpx2.HTTPError as error:
                text = json.dumps({"error": {"message": f"{url}: {error}"}})
                self._send(502, "application/json", text.encode())
            self.close_connection = True

    return Handler
