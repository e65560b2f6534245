"""``session.eventLog.*``: events for clients that poll, and the events that a client answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class InterestParams(WireModel):
    session_id: str
    event_type: str
    """The type of event."""


class InterestResult(WireModel):
    handle: str
    """The id of the registration."""


class ReleaseInterestParams(WireModel):
    session_id: str
    handle: str
    """The id of the registration."""


class CursorResult(WireModel):
    cursor: str


class EventLogReadParams(WireModel):
    """``cursor`` is that of an earlier read or of ``tail``, and keeps its direction. Without it, the log is read
    from its beginning, or backward from its end.

    ``wait_ms`` is the time to wait for a first event, at most 30 seconds. ``agent_ids`` takes precedence over
    ``agent_scope``.
    """

    session_id: str
    cursor: str | None = None
    max: int = Field(default=200, ge=1)
    """The most events to return."""
    wait_ms: int = Field(default=0, ge=0)
    """How long to wait for a first event, in milliseconds."""
    types: Literal["*"] | list[str] = "*"
    """The types of events to return, or ``*``."""
    direction: Literal["forward", "backward"] = "forward"
    """Whether to begin with the oldest or the latest event."""
    include_ephemeral: StrictBool = True
    """Whether events that are not stored are returned."""
    agent_scope: Literal["primary", "all"] = "all"
    """Whether events of sub-agents are returned."""
    agent_ids: list[str] | None = None
    """The agents whose events are returned."""


class EventLogReadResult(WireModel):
    """``expired``: the event at the cursor was removed, and the log was read from its beginning or end."""

    events: list[dict[str, Any]]
    """The events."""
    cursor: str
    has_more: StrictBool
    """Whether more events follow."""
    cursor_status: Literal["ok", "expired"] = "ok"
    """Whether the event at the cursor still exists."""


METHODS: Final[Mapping[str, Method]] = {
    "session.eventLog.registerInterest": Method(
        InterestParams, InterestResult, "Register this client as one that answers events of a type."
    ),
    "session.eventLog.releaseInterest": Method(
        ReleaseInterestParams, SuccessResult, "Remove a registration for events of a type."
    ),
    "session.eventLog.read": Method(
        EventLogReadParams, EventLogReadResult, "Read events, and wait for further ones."
    ),
    "session.eventLog.tail": Method(SessionParams, CursorResult, "Return the cursor of the end."),
}
