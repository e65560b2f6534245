"""Health and metrics over HTTP, for supervisors and Prometheus: a separate port, by default on loopback only.

``/healthz`` answers as long as the event loop runs, ``/readyz`` while new clients are accepted, ``/metrics`` in the
text format of Prometheus, and ``/status`` with a JSON object for ``jumpseat status``, on loopback only.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv6Address, ip_address
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

PAUSE_S: Final = 0.5
"""The time until connections are accepted again, if the process has too many open files."""

_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class Health(Struct, frozen=True):
    """The state of the server. ``problems`` are the reasons why it is not ready; ``status`` describes it.

    Other machines use the address ``host``, and present ``token`` for the metrics if there is one.
    """

    problems: Callable[[], Sequence[str]]
    status: Callable[[], Mapping[str, Any]]
    metrics: PrometheusMetrics
    host: str | None = None
    token: str | None = None

    def answer(self, path: str, *, is_local: bool) -> tuple[int, str, bytes]:
        """Return the status, the type and the body of the answer to a request, of this machine or another one."""
        match path if is_local or path != "/status" else "":
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
    """Answer requests until cancelled.

    Supervisors send a request at once: connections that send none make room for others, the oldest first.
    """
    # By the order of their arrival.
    pending: dict[anyio.CancelScope, None] = {}

    async def handle(accepted: socket.socket) -> None:
        with anyio.move_on_after(REQUEST_S) as scope:
            pending[scope] = None
            try:
                await _answer(accepted, health)
            except (OSError, h11.RemoteProtocolError):
                # The peer has hung up, or speaks something else.
                pass
            finally:
                pending.pop(scope, None)
                accepted.close()

    with listening:
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    accepted = await accept(listening)
                except OSError as error:
                    log.error("cannot accept a request for the health of the server: %s", error.strerror)
                    _drop_oldest(pending)
                    await anyio.sleep(PAUSE_S)
                    continue
                if len(pending) >= MOST_REQUESTS:
                    _drop_oldest(pending)
                tasks.start_soon(handle, accepted)


def _drop_oldest(pending: dict[anyio.CancelScope, None]) -> None:
    oldest = next(iter(pending), None)
    if oldest is not None:
        del pending[oldest]
        oldest.cancel()


def open_health_sockets(port: int, host: str | None) -> list[socket.socket]:
    """Listen on a port of loopback, and of ``host``.

    Raises:
        OSError: the port is in use, or this machine does not have the address.
    """
    address = ip_address(host) if host is not None else None
    found: list[socket.socket] = []
    try:
        if address is None or not address.is_unspecified:
            found.append(socket.create_server(("127.0.0.1", port)))
            port = found[0].getsockname()[1]
        if address is not None and not address.is_loopback:
            is_six = address.version == 6
            found.append(
                socket.create_server(
                    (str(address), port),
                    family=socket.AF_INET6 if is_six else socket.AF_INET,
                    dualstack_ipv6=is_six and address.is_unspecified,
                )
            )
    except BaseException:
        for listening in found:
            listening.close()
        raise
    for listening in found:
        listening.setblocking(False)
    return found


async def _answer(accepted: socket.socket, health: Health) -> None:
    loop = asyncio.get_running_loop()
    connection = h11.Connection(h11.SERVER)
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await loop.sock_recv(accepted, 1 << 16))
    if not isinstance(event, h11.Request):
        return
    status, kind, body = _checked(event, health, is_local=_is_local(accepted))
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


def _is_local(accepted: socket.socket) -> bool:
    """Return whether a connection is one of this machine to loopback."""
    address = ip_address(accepted.getsockname()[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _checked(request: h11.Request, health: Health, *, is_local: bool) -> tuple[int, str, bytes]:
    """Answer a request, unless it is one of a page in a browser that reads the status under another name."""
    headers = {name: value.decode("latin-1") for name, value in request.headers}
    path = request.target.partition(b"?")[0].decode("latin-1")
    plain = "text/plain; charset=utf-8"
    if is_local or health.token is None:
        host = headers.get(b"host")
        allowed = _LOCAL_HOSTS if is_local else {health.host, f"[{health.host}]"}
        if host is not None and host not in allowed and host.rpartition(":")[0] not in allowed:
            return 403, plain, b"only requests to the address of the server are answered\n"
    elif path == "/metrics" and not _presents(headers.get(b"authorization", ""), health.token):
        return 401, plain, b"send the token of JUMPSEAT_METRICS_TOKEN: Authorization: Bearer TOKEN\n"
    if request.method not in (b"GET", b"HEAD"):
        return 405, plain, b"use GET\n"
    return health.answer(path, is_local=is_local)


def _presents(authorization: str, token: str) -> bool:
    scheme, _, given = authorization.partition(" ")
    return scheme.casefold() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
