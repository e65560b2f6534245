"""``session.eventLog.*``: events for clients that poll, and the events that a client answers.

A cursor holds the number of persisted events before it, the position in the session's event buffer, and the id of
the last persisted event, which reveals that the history has been changed since. The cursor of a backward read
begins with ``b`` and marks the beginning of the returned window.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import anyio

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.interests import HEADERS, OAUTH
from jumpseat.sessions.context import Context
from jumpseat_protocol.event_log import (
    CursorResult,
    EventLogReadParams,
    EventLogReadResult,
    InterestParams,
    InterestResult,
    ReleaseInterestParams,
)
from jumpseat_protocol.lazy_dataclasses import dataclass
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams

MAX_EVENTS: Final = 1000

MAX_WAIT_S: Final = 30.0

Filter: TypeAlias = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position between two events.

    ``written`` persisted events precede it; ``number`` is its position in the event buffer.
    """

    written: int
    number: int
    last_id: str

    def __str__(self) -> str:
        return f"{self.written}.{self.number}.{self.last_id}"


def register_interest(ctx: Context, params: InterestParams) -> InterestResult:
    """Register this client as one that answers events of a type. It is sent all events either way."""
    session = ctx.registry.live(params.session_id)
    handle = session.clients.add_interest(ctx.connection, params.event_type)
    if params.event_type in (OAUTH, HEADERS) and (host := ctx.mcp.get(session)) is not None:
        # A server may have requested a token or headers before a client could provide them.
        host.retry_auth()
    return InterestResult(handle=handle)


def release_interest(ctx: Context, params: ReleaseInterestParams) -> SuccessResult:
    """Remove a registration. Succeeds if there is none."""
    ctx.registry.live(params.session_id).clients.remove_interest(params.handle)
    return SuccessResult()


def tail(ctx: Context, params: SessionParams) -> CursorResult:
    """Return the cursor after the latest event."""
    return CursorResult(cursor=str(_end(ctx.registry.live(params.session_id))))


def read(ctx: Context, params: EventLogReadParams) -> EventLogReadResult | Awaitable[EventLogReadResult]:
    """Return the events after the cursor; if there are none, wait for new ones.

    The read begins in the order of arrival, so that events caused by later requests are not missed.

    Raises:
        InvalidRequestError: the cursor is invalid.
    """
    session = ctx.registry.live(params.session_id)
    log = ctx.registry.storage(session).log
    fits = _filter(params)
    most = min(params.max, MAX_EVENTS)

    def records() -> list[dict[str, Any]]:
        return ctx.process.secrets.mask_records(log.read().records)

    if (params.cursor is None and params.direction == "backward") or (params.cursor or "").startswith("b"):
        return _backward(session, params.cursor, fits, most, records)
    cursor = _parse_cursor(params.cursor) if params.cursor else Cursor(0, -1, "")
    batch = _forward(session, cursor, params, fits, most, records)
    if batch.events or batch.cursor_status == "expired" or not params.wait_ms:
        return batch
    return _wait(session, batch, params, fits, most, records)


async def _wait(
    session: Session,
    batch: EventLogReadResult,
    params: EventLogReadParams,
    fits: Filter,
    most: int,
    records: Callable[[], list[dict[str, Any]]],
) -> EventLogReadResult:
    with anyio.move_on_after(min(params.wait_ms / 1000, MAX_WAIT_S)):
        while not batch.events and not session.event_buffer.closed:
            # Requests that arrived after this one may have added events before this task began.
            if str(_end(session)) == batch.cursor:
                await session.event_buffer.wait()
            batch = _forward(session, _parse_cursor(batch.cursor), params, fits, most, records)
    return batch


def _forward(
    session: Session,
    cursor: Cursor,
    params: EventLogReadParams,
    fits: Filter,
    most: int,
    records: Callable[[], list[dict[str, Any]]],
) -> EventLogReadResult:
    """Return the events that exist now, from the buffer if it reaches back far enough, otherwise from the log."""
    end = _end(session)
    entries = session.event_buffer.since(cursor.number, cursor.written, session.history.event_count)
    found: list[tuple[dict[str, Any], Cursor]] = []
    status = "ok"
    if entries is not None:
        for place, (written, event) in enumerate(entries, cursor.number + 1):
            if (event.persisted or params.include_ephemeral) and fits(record := event.wire()):
                last_id = event.id if event.persisted else event.parent_id or ""
                found.append((record, Cursor(written, place, last_id)))
    elif cursor.written < session.history.event_count or cursor.last_id != end.last_id:
        history = records()
        start = cursor.written
        if start > len(history) or (start and history[start - 1].get("id") != cursor.last_id):
            start, status = 0, "expired"
        for place, record in enumerate(history[start:], start + 1):
            if fits(record):
                found.append((record, Cursor(place, end.number, str(record.get("id", "")))))
    has_more = len(found) > most
    return EventLogReadResult(
        events=[record for record, _ in found[:most]],
        cursor=str(found[most - 1][1] if has_more else end),
        has_more=has_more,
        cursor_status=status,
    )


def _backward(
    session: Session, cursor: str | None, fits: Filter, most: int, records: Callable[[], list[dict[str, Any]]]
) -> EventLogReadResult:
    """Return the latest of the persisted events before the cursor."""
    history = records()
    before, status = len(history), "ok"
    if cursor is not None:
        place = _parse_cursor(cursor[1:])
        if place.written > len(history) or (
            place.written and history[place.written - 1].get("id") != place.last_id
        ):
            status = "expired"
        else:
            before = place.written
    found = [(place, record) for place, record in enumerate(history[:before]) if fits(record)]
    window = found[-most:]
    start = window[0][0] if len(found) > most else 0
    last_id = str(history[start - 1].get("id", "")) if start else ""
    return EventLogReadResult(
        events=[record for _, record in window],
        cursor=f"b{Cursor(start, 0, last_id)}",
        has_more=len(found) > most,
        cursor_status=status,
    )


def _end(session: Session) -> Cursor:
    return Cursor(session.history.event_count, session.event_buffer.end, session.history.last_event_id or "")


def _parse_cursor(text: str) -> Cursor:
    written, _, rest = text.partition(".")
    number, _, last_id = rest.partition(".")
    if not (written.isdecimal() and number.isdecimal()):
        raise InvalidRequestError(f"invalid cursor {text[:100]!r}")
    return Cursor(int(written), int(number), last_id)


def _filter(params: EventLogReadParams) -> Filter:
    types = None if params.types == "*" else frozenset(params.types)

    def fits(record: dict[str, Any]) -> bool:
        kind: str = record["type"]
        if types is not None and kind not in types:
            return False
        agent = record.get("agentId")
        if params.agent_ids is not None:
            return agent in params.agent_ids
        return params.agent_scope == "all" or agent is None or kind.startswith("subagent.")

    return fits
