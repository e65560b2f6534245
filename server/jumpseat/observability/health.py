"""Health and metrics over HTTP, for supervisors and Prometheus: a separate port, on loopback only.

``/healthz`` answers as long as the event loop runs, ``/readyz`` while new clients are accepted, ``/metrics`` in the
text format of Prometheus, and ``/status`` with a JSON object for ``jumpseat status``.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import h11
import orjson
from msgspec import Struct

from jumpseat.observability.prometheus import CONTENT_TYPE, PrometheusMetrics
from jumpseat.system.accept_loop import accept

log = logging.getLogger(__name__)

REQUEST_S: Final = 5.0
"""Time-out of one request."""

MOST_REQUESTS: Final = 16
"""The number of requests that are answered at the same time."""

_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class Health(Struct, frozen=True):
    """The state of the server. ``problems`` are the reasons why it is not ready; ``status`` describes it."""

    problems: Callable[[], Sequence[str]]
    status: Callable[[], Mapping[str, Any]]
    metrics: PrometheusMetrics

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return the status, the type and the body of the answer to a request."""
        match path:
            case "/healthz":
                return 200, "text/plain; charset=utf-8", b"ok\n"
            case "/readyz":
                problems = self.problems()
                text = "".join(f"{problem}\n" for problem in problems) or "ready\n"
                return 503 if problems else 200, "text/plain; charset=utf-8", text.encode()
            case "/metrics":
                return 200, CONTENT_TYPE, self.metrics.text()
            case "/status":
                body = {**self.status(), "problems": list(self.problems())}
                return 200, "application/json", orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE)
            case _:
                return 404, "text/plain; charset=utf-8", b"paths: /healthz, /readyz, /metrics, /status\n"


async def serve_health(listening: socket.socket, health: Health) -> None:
    """Answer requests until cancelled."""
    slots = anyio.Semaphore(MOST_REQUESTS)

    async def handle(accepted: socket.socket) -> None:
        async with slots:
            with anyio.move_on_after(REQUEST_S):
                try:
                    await _answer(accepted, health)
                except (OSError, h11.RemoteProtocolError):
                    # The peer has hung up, or speaks something else.
                    pass
                finally:
                    accepted.close()

    with listening:
        async with anyio.create_task_group() as tasks:
            while True:
                accepted = await accept(listening)
                if slots.value == 0:
                    accepted.close()
                    continue
                tasks.start_soon(handle, accepted)


def open_health_socket(port: int) -> socket.socket:
    """Listen on a port of loopback.

    Raises:
        OSError: the port is in use.
    """
    listening = socket.create_server(("127.0.0.1", port))
    listening.setblocking(False)
    return listening


async def _answer(accepted: socket.socket, health: Health) -> None:
    loop = asyncio.get_running_loop()
    connection = h11.Connection(h11.SERVER)
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await loop.sock_recv(accepted, 1 << 16))
    if not isinstance(event, h11.Request):
        return
    status, kind, body = _checked(event, health)
    headers = [
        ("content-type", kind),
        ("content-length", str(len(body))),
        ("connection", "close"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
    ]
    answer: list[h11.Event] = [h11.Response(status_code=status, headers=headers)]
    if event.method != b"HEAD":
        answer.append(h11.Data(data=body))
    answer.append(h11.EndOfMessage())
    sent = b"".join(connection.send(part) or b"" for part in answer)
    await loop.sock_sendall(accepted, sent)


def _checked(request: h11.Request, health: Health) -> tuple[int, str, bytes]:
    """Answer a request of this machine: a page in a browser must not read the status under another name."""
    hosts = [value.decode("latin-1") for name, value in request.headers if name == b"host"]
    name = hosts[0].rpartition(":")[0] or hosts[0] if hosts else "127.0.0.1"
    plain = "text/plain; charset=utf-8"
    if hosts and name not in _LOCAL_HOSTS and hosts[0] not in _LOCAL_HOSTS:
        return 403, plain, b"only requests to a loopback address are answered\n"
    if request.method not in (b"GET", b"HEAD"):
        return 405, plain, b"use GET\n"
    return health.answer(request.target.partition(b"?")[0].decode("latin-1"))
