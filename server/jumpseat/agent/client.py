"""A client as a session sees it: someone to deliver events to, with what it declared it can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from jumpseat_protocol.events import Event
from jumpseat_protocol.sessions import ClientTool


class Client(Protocol):
    """One connection. Delivery never blocks and never fails; a client that is gone simply gets nothing."""

    def deliver(self, session_id: str, event: Event) -> None:
        """Send one event. Events arrive in the order of the calls."""
        ...

    async def drained(self) -> None:
        """Wait until the client has read most of what it was sent."""
        ...


@dataclass(slots=True)
class Attachment:
    """What one client brought to one session."""

    client: Client
    handles_permissions: bool = False
    handles_elicitation: bool = False
    tools: dict[str, ClientTool] = field(default_factory=dict[str, ClientTool])
