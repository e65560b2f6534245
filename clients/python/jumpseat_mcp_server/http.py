"""Streamable HTTP on loopback, with a bearer token."""

from __future__ import annotations

import hmac
import socket
from typing import Any, Final

import uvicorn
from mcp.server.lowlevel import Server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PATH: Final = "/mcp"


async def serve_http(server: Server[Any], port: int, token: str | None) -> None:
    """Serve until the process ends; prints the address. The package checks the host and the origin of requests.

    Raises:
        OSError: the port is in use.
    """
    app: ASGIApp = server.streamable_http_app(streamable_http_path=PATH)
    if token is not None:
        app = _WithToken(app, token)
    listening = socket.create_server(("127.0.0.1", port))
    with listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
        print(f"jumpseat serves MCP clients at {address}", flush=True)  # noqa: T201 - for people and scripts
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        await uvicorn.Server(config).serve(sockets=[listening])


class _WithToken:
    """Refuses requests without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(given, self._expected):
                headers = {"WWW-Authenticate": "Bearer"}
                await PlainTextResponse("A token is needed.\n", 401, headers)(scope, receive, send)
                return
        await self._app(scope, receive, send)
