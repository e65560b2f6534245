"""Data that clients keep with a session: the marks for read and archived ones, and the draft of a message.

It is stored as strings of clients, which go wherever the session goes.
"""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol

import orjson
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.states.values import ARCHIVED, READ, Action, JsonObject, State
from jumpseat.ahp.translation.shapes import is_draft
from jumpseat.errors import JumpseatError
from jumpseat.sessions.context import Context

log = logging.getLogger(__name__)

INTERVAL_S: Final = 0.5
"""The shortest time between two writes: a draft changes with every key."""
LARGEST_DRAFT_BYTES: Final = 16 * 1024
"""The largest draft that is stored: a string of clients may have that size. Larger ones are shared only."""

_MARKS: Final = {READ: "jumpseat.ahp.read", ARCHIVED: "jumpseat.ahp.archived"}
_DRAFT: Final = "jumpseat.ahp.draft"


class Metadata(Protocol):
    """The strings that clients keep with a session."""

    def read(self) -> dict[str, str]: ...


class Mirror(Protocol):
    """The channels of the session. See :class:`jumpseat.ahp.live.mirror.Mirror`."""

    session_id: str
    tasks: TaskGroup

    @property
    def session(self) -> Session: ...

    @property
    def context(self) -> Context: ...

    @property
    def state(self) -> State: ...

    @property
    def chat(self) -> State: ...

    def publish(self, action: Action, origin: Origin | None = None, /) -> bool: ...


class Kept(Struct, frozen=True):
    """``marks`` are the bits of the session's status; ``draft`` is a message, ``None`` without one."""

    marks: int = 0
    draft: JsonObject | None = None


def kept_of(metadata: Metadata) -> Kept:
    """Return what clients have kept with a session."""
    try:
        entries = metadata.read()
    except JumpseatError:
        # The file is of another program, and clients of the other protocol are told so.
        return Kept()
    marks = sum(bit for bit, key in _MARKS.items() if entries.get(key) == "true")
    return Kept(marks, _draft_of(entries.get(_DRAFT)))


def _draft_of(text: str | None) -> JsonObject | None:
    """Return a stored draft. Clients of the other protocol may have written anything there."""
    try:
        draft: Any = orjson.loads(text) if text is not None else None
    except ValueError:
        return None
    return draft if is_draft(draft) else None


class Keeper:
    """Stores what the clients of one session keep."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._is_stale = self._is_storing = False

    def change(self, action: Action, origin: Origin) -> None:
        """Show a change to all clients, and store it."""
        if self._mirror.publish(action, origin):
            self._is_stale = True
            if not self._is_storing:
                self._is_storing = True
                self._mirror.tasks.start_soon(self._store)

    async def _store(self) -> None:
        # A session that was deleted meanwhile has no state.
        while self._is_stale and self._mirror.state:
            self._is_stale = False
            try:
                await self._write(self._mirror.state["status"], self._mirror.chat.get("draft"))
            except JumpseatError as error:
                log.warning("session %s: what clients keep is not stored: %s", self._mirror.session_id, error)
        self._is_storing = False

    async def _write(self, status: int, draft: JsonObject | None) -> None:
        metadata = self._mirror.context.registry.storage(self._mirror.session).client_metadata
        entries = {key: "true" for bit, key in _MARKS.items() if status & bit}
        text = orjson.dumps(draft) if draft is not None else b""
        if 0 < len(text) <= LARGEST_DRAFT_BYTES:
            entries[_DRAFT] = text.decode()
        unset = [key for key in (*_MARKS.values(), _DRAFT) if key not in entries]
        await metadata.update(clear=False, remove=unset, entries=entries)
