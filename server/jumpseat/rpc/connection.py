"""One connection: its wire, its JSON-RPC, and what sessions see of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import anyio
import orjson
from anyio.abc import TaskGroup

from jumpseat.rpc.pygls_seam import Seam
from jumpseat.rpc.transport import Wire
from jumpseat_protocol.envelope import INVALID_REQUEST
from jumpseat_protocol.events import Event
from jumpseat_protocol.framing import FramingError

log = logging.getLogger(__name__)

# What a client that has stopped reading can do without: the whole follows in a persisted event.
DELTAS: Final = frozenset(
    {
        "assistant.message_delta",
        "assistant.reasoning_delta",
        "assistant.tool_call_delta",
        "tool.execution_partial_result",
        "tool.execution_progress",
    }
)
# How long a turn waits for a client that does not read, once, before it goes on without waiting.
PATIENCE_S: Final = 10.0


class Connection:
    """``on_close`` hears of its end once. Nothing is served before :meth:`serve` says how."""

    def __init__(self, on_close: Callable[[Connection], None], tasks: TaskGroup, *, authenticated: bool) -> None:
        self.authenticated = authenticated
        self.handshaken = False
        self._on_close = on_close
        self._slow = False
        self.wire = Wire(self._body, self._framing_error, self._closed)
        self.seam = Seam(self.wire.send, tasks)

    def serve(self, find: Callable[[str], Callable[[Any], Any] | None]) -> None:
        """Serve the methods that ``find`` knows."""
        self.seam.find = find

    def deliver(self, session_id: str, event: Event) -> None:
        """Send a session event. To a client that is far behind, deltas are not sent."""
        if event.type in DELTAS and self.wire.lossy:
            return
        self.seam.tell("session.event", {"sessionId": session_id, "event": orjson.Fragment(event.encode())})

    async def drained(self) -> None:
        """Wait until the client has caught up; one that reads nothing at all is waited for only once."""
        if self._slow and self.wire.busy:
            return
        with anyio.move_on_after(PATIENCE_S) as patience:
            await self.wire.drained()
        self._slow = patience.cancelled_caught
        if self._slow:
            log.warning("a client has stopped reading; its deltas may be left out")

    def close(self) -> None:
        """Send what is queued and end the connection."""
        self.wire.close()

    def _body(self, body: bytes) -> None:
        self.seam.receive(body)

    def _framing_error(self, error: FramingError) -> None:
        self.seam.refuse(INVALID_REQUEST, error.message)

    def _closed(self) -> None:
        self.seam.close()
        self._on_close(self)
