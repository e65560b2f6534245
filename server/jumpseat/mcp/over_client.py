"""Transport to servers that a client serves over its own connection, as editors do.

Servers of this kind have no session and send no requests (revision 2026-07-28): there are requests, each with its
notifications, and their cancellation.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from jumpseat.agent.client import Client
from jumpseat.errors import ClientCallError
from jumpseat.mcp.stdio import Incoming, Streams

log = logging.getLogger(__name__)

UNREAD: Final = 1000
"""Notifications of a server that may wait to be read; later ones are dropped."""


@asynccontextmanager
async def client_streams(client: Client, server_id: str) -> AsyncGenerator[Streams, None]:
    """Connect to a server of ``client``. The connection is that of the client, and ends with it."""
    send_in, incoming = anyio.create_memory_object_stream[Incoming](UNREAD)
    outgoing, receive_out = anyio.create_memory_object_stream[SessionMessage]()
    open_requests: dict[Any, anyio.CancelScope] = {}

    def receive(message: dict[str, Any]) -> None:
        try:
            read: Incoming = SessionMessage(jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message}))
        except ValidationError as error:
            read = error
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
            send_in.send_nowait(read)

    async def ask(request: JSONRPCRequest) -> None:
        message = request.model_dump(by_alias=True, mode="json", exclude_none=True)
        with anyio.CancelScope() as scope:
            open_requests[request.id] = scope
            try:
                outcome = await client.ask_mcp(server_id, message, receive)
            except ClientCallError as error:
                outcome = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
            finally:
                del open_requests[request.id]
            receive({"id": request.id, **outcome})

    async def pump() -> None:
        async for sent in receive_out:
            match sent.message:
                case JSONRPCRequest() as request:
                    tasks.start_soon(ask, request)
                case JSONRPCNotification(method="notifications/cancelled", params=params):
                    scope = open_requests.get((params or {}).get("requestId"))
                    if scope is not None:
                        scope.cancel()
                case other:
                    log.debug("not sent to the MCP server of a client: %s", type(other).__name__)

    async with anyio.create_task_group() as tasks, send_in, receive_out:
        tasks.start_soon(pump)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
