"""``session.eventLog.*``: events for clients that poll, and the events that a client answers.

A cursor holds the number of persisted events before it, the position in the session's event buffer, and the id of
the last persisted event, which reveals that the history has been changed since. The cursor of a read from the log
also holds the offset in the log, from which the next page is read. The cursor of a backward read begins with ``b``
and marks the beginning of the returned window.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import anyio
from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.store.session.log_lines import backward, find, forward, size_of
from jumpseat.store.session.storage import StoredLog
from jumpseat_protocol.event_log import (
    CursorResult,
    EventLogReadParams,
    EventLogReadResult,
    InterestParams,
    InterestResult,
    ReleaseInterestParams,
)
from jumpseat_protocol.events import McpHeadersRefreshRequired, McpOauthRequired
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams

MAX_EVENTS: Final = 1000

MAX_WAIT_S: Final = 30.0

Filter: TypeAlias = Callable[[dict[str, Any]], bool]


class Cursor(Struct, frozen=True):
    """A position between two events.

    ``written`` persisted events precede it; ``number`` is its position in the event buffer, and ``offset`` that in
    the log, if it is known.
    """

    written: int
    number: int
    last_id: str
    offset: int | None = None

    def __str__(self) -> str:
        offset = "" if self.offset is None else f"@{self.offset}"
        return f"{self.written}.{self.number}{offset}.{self.last_id}"


def register_interest(ctx: Context, params: InterestParams) -> InterestResult:
    """Register this client as one that answers events of a type. It is sent all events either way."""
    session = ctx.registry.live(params.session_id)
    handle = session.clients.add_interest(ctx.connection, params.event_type)
    if (
        params.event_type in (McpOauthRequired.type, McpHeadersRefreshRequired.type)
        and (host := ctx.mcp.get(session)) is not None
    ):
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
    reader = _Reader(session, ctx.registry.storage(session).log, ctx.process.secrets.mask_records, params)
    if (params.cursor is None and params.direction == "backward") or (params.cursor or "").startswith("b"):
        return reader.backward(params.cursor)
    batch = reader.forward(_parse_cursor(params.cursor) if params.cursor else Cursor(0, -1, ""))
    if batch.events or batch.cursor_status == "expired" or not params.wait_ms:
        return batch
    return reader.wait(batch)


class _Reader:
    """Reads the events of a session that fit the params of a request."""

    def __init__(
        self,
        session: Session,
        log: StoredLog,
        mask: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
        params: EventLogReadParams,
    ) -> None:
        self._session = session
        self._log = log
        self._mask = mask
        self._params = params
        self._fits = _filter(params)
        self._most = min(params.max, MAX_EVENTS)

    async def wait(self, batch: EventLogReadResult) -> EventLogReadResult:
        """Wait for events after an empty batch."""
        session = self._session
        with anyio.move_on_after(min(self._params.wait_ms / 1000, MAX_WAIT_S)):
            while not batch.events and not session.delivery.buffer.closed:
                cursor = _parse_cursor(batch.cursor)
                # Requests that arrived after this one may have added events before this task began.
                if cursor == _end(session):
                    await session.delivery.buffer.wait()
                batch = self.forward(cursor)
        return batch

    def forward(self, cursor: Cursor) -> EventLogReadResult:
        """Return the events that exist now, from the buffer if it reaches back far enough, else from the log."""
        session = self._session
        end = _end(session)
        entries = session.delivery.buffer.since(cursor.number, cursor.written, session.history.event_count)
        if entries is None and (cursor.written < session.history.event_count or cursor.last_id != end.last_id):
            return self._forward_in_log(cursor, end)
        found: list[tuple[dict[str, Any], Cursor]] = []
        for place, (written, event) in enumerate(entries or (), cursor.number + 1):
            if (event.persisted or self._params.include_ephemeral) and self._fits(record := event.wire()):
                last_id = event.id if event.persisted else event.parent_id or ""
                found.append((record, Cursor(written, place, last_id)))
        has_more = len(found) > self._most
        return EventLogReadResult(
            events=[record for record, _ in found[: self._most]],
            cursor=str(found[self._most - 1][1] if has_more else end),
            has_more=has_more,
            cursor_status="ok",
        )

    def _forward_in_log(self, cursor: Cursor, end: Cursor) -> EventLogReadResult:
        found: list[dict[str, Any]] = []
        has_more = False
        with self._log.open() as file:
            offset = find(file, cursor.offset, cursor.written, cursor.last_id)
            begin, written = (offset, cursor.written) if offset is not None else (0, 0)
            after = end
            for number, line in enumerate(forward(file, begin), written + 1):
                if not self._fits(line.record):
                    continue
                if len(found) == self._most:
                    has_more = True
                    break
                found.append(line.record)
                after = Cursor(number, end.number, str(line.record.get("id", "")), line.end)
        return EventLogReadResult(
            events=self._mask(found),
            cursor=str(after if has_more else end),
            has_more=has_more,
            cursor_status="ok" if offset is not None else "expired",
        )

    def backward(self, cursor: str | None) -> EventLogReadResult:
        """Return the latest of the persisted events before the cursor."""
        window: list[dict[str, Any]] = []
        before: Cursor | None = None
        has_more = False
        with self._log.open() as file:
            place = _parse_cursor(cursor[1:]) if cursor is not None else None
            end = find(file, place.offset, place.written, place.last_id) if place is not None else None
            expired = place is not None and end is None
            written = place.written if place is not None and not expired else self._session.history.event_count
            start = written
            for number, line in enumerate(backward(file, size_of(file) if end is None else end), 1):
                fits = self._fits(line.record)
                if len(window) < self._most:
                    if fits:
                        window.append(line.record)
                        start = written - number
                    continue
                if before is None:
                    before = Cursor(start, 0, str(line.record.get("id", "")), line.end)
                if fits:
                    has_more = True
                    break
        return EventLogReadResult(
            events=self._mask(window[::-1]),
            cursor=f"b{before if before is not None and has_more else Cursor(0, 0, '')}",
            has_more=has_more,
            cursor_status="expired" if expired else "ok",
        )


def _end(session: Session) -> Cursor:
    return Cursor(session.history.event_count, session.delivery.buffer.end, session.history.last_event_id or "")


def _parse_cursor(text: str) -> Cursor:
    written, _, rest = text.partition(".")
    position, _, last_id = rest.partition(".")
    number, at, offset = position.partition("@")
    if not all(map(_is_number, (written, number, offset if at else "0"))):
        raise InvalidRequestError(f"invalid cursor {text[:100]!r}")
    return Cursor(int(written), int(number), last_id, int(offset) if at else None)


def _is_number(text: str) -> bool:
    # Python refuses to convert numbers of thousands of digits.
    return text.isdecimal() and len(text) < 20


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
