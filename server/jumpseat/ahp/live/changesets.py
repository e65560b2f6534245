"""The changesets of one session that clients watch, and their operation.

Each is opened for its first subscriber. Its files are read again from the session's log of changes whenever they
may have changed: by tools, by a rewind, or by an undo through any door.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.session.session import Session
from jumpseat.ahp.live.errors import CONFLICT, NOT_FOUND, TURN_IN_PROGRESS, AhpError
from jumpseat.ahp.live.files import content_of
from jumpseat.ahp.states.values import Action, JsonObject, State
from jumpseat.ahp.translation.attachments import path_of
from jumpseat.ahp.translation.changesets import (
    UNDO,
    ContentAddress,
    call_of,
    message_of,
    operations,
    shown_files,
    turn_of,
)
from jumpseat.errors import InvalidRequestError, JumpseatError, UnknownItemError
from jumpseat.sessions.changesets import Changesets
from jumpseat.sessions.context import Context
from jumpseat_protocol import events

log = logging.getLogger(__name__)

_CHANGING: Final = (
    events.ToolExecutionComplete,
    events.AssistantIdle,
    events.SessionIdle,
    events.SessionChangesUndone,
)
"""The events after which files may have changed."""


class Mirror(Protocol):
    """The channels of the session. See :class:`jumpseat.ahp.live.mirror.Mirror`."""

    session_id: str
    tasks: TaskGroup
    gone: bool

    @property
    def session(self) -> Session: ...

    @property
    def context(self) -> Context: ...

    @property
    def chat(self) -> State: ...

    @property
    def working(self) -> bool: ...

    def state_of(self, uri: str, /) -> State: ...

    def is_wanted(self, uri: str, /) -> bool: ...

    def publish(self, action: Action, *, uri: str | None = None) -> bool: ...

    def open_part(self, uri: str, state: State, /) -> None: ...

    def close_part(self, uri: str, /) -> None: ...


class OpenChangesets:
    """The open changesets of a session, and those that can be opened."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        # By URI: the turn, `None` for the whole session.
        self._open: dict[str, str | None] = {}
        self._reading = anyio.Lock()
        self._stale = self._renewing = self._undoing = False
        self._known: Changesets | None = None

    @property
    def _sets(self) -> Changesets:
        session = self._mirror.session
        if self._known is None or self._known.session is not session:
            self._known = Changesets(self._mirror.context.registry, session)
        return self._known

    def _turn_of(self, uri: str) -> str | None:
        """Return the turn whose changeset has a URI, ``None`` for that of the whole session.

        Raises:
            AhpError: there is no such changeset.
        """
        chat = self._mirror.chat
        active: JsonObject | None = chat.get("activeTurn")
        turns = [*chat.get("turns", ()), *([active] if active is not None else ())]
        try:
            return turn_of(uri, (turn["id"] for turn in turns))
        except ValueError:
            raise AhpError(NOT_FOUND, f"there is no changeset {uri[:300]!r}") from None

    # --- channels -----------------------------------------------------------------------------------------------

    async def open(self, uri: str) -> None:
        """Open the channel of a changeset, unless it is open or there is none with this URI."""
        try:
            turn = self._turn_of(uri)
        except AhpError:
            return
        async with self._reading:
            if uri in self._open or self._mirror.gone:
                return
            # From now on, events make it stale.
            self._open[uri] = turn
            try:
                found = await self._sets.files([turn])
            except BaseException:
                del self._open[uri]
                raise
            files = shown_files(uri, found[turn])
            offered = operations(status=self._status(files))
            self._mirror.open_part(uri, {"status": "ready", "files": files, "operations": offered})

    async def adopt(self, uris: Iterable[str]) -> None:
        """Open the changesets again that clients watch since another replica had the session."""
        for uri in uris:
            await self.open(uri)

    def close_unwanted(self) -> None:
        """Close the changesets without subscribers."""
        for uri in [uri for uri in self._open if not self._mirror.is_wanted(uri)]:
            self._close(uri)

    def _close(self, uri: str) -> None:
        del self._open[uri]
        self._mirror.close_part(uri)

    # --- changes ------------------------------------------------------------------------------------------------

    def note(self, payload: events.EventPayload) -> None:
        """Note an event of the session."""
        if not self._open:
            return
        if isinstance(payload, _CHANGING):
            self.renew()
        self._show_status()

    def renew(self) -> None:
        """Read the files of the open changesets again, soon."""
        self._stale = True
        if self._open and not self._renewing:
            self._renewing = True
            self._mirror.tasks.start_soon(self._renew)

    async def _renew(self) -> None:
        try:
            while self._stale and not self._mirror.gone:
                self._stale = False
                await self._show()
        except (JumpseatError, OSError) as error:
            log.info("session %s: changes are not shown: %s", self._mirror.session_id, error)
        finally:
            self._renewing = False

    async def _show(self) -> None:
        """Publish the files of the open changesets as they are."""
        async with self._reading:
            found = await self._sets.files(set(self._open.values()))
            for uri, turn in list(self._open.items()):
                try:
                    self._turn_of(uri)
                except AhpError:
                    # A rewind has removed the turn.
                    self._mirror.publish({"type": "changeset/cleared"}, uri=uri)
                    self._close(uri)
                    continue
                files = shown_files(uri, found[turn])
                if files != self._mirror.state_of(uri).get("files"):
                    offered = operations(status=self._status(files))
                    action = {"type": "changeset/contentChanged", "files": files, "operations": offered}
                    self._mirror.publish(action, uri=uri)

    def _show_status(self) -> None:
        for uri in self._open:
            status = self._status(self._mirror.state_of(uri).get("files"))
            action = {"type": "changeset/operationStatusChanged", "operationId": UNDO, "status": status}
            self._mirror.publish(action, uri=uri)

    def _status(self, files: list[JsonObject] | None) -> str:
        if self._undoing:
            return "running"
        return "disabled" if self._mirror.working or not files else "idle"

    # --- requests -----------------------------------------------------------------------------------------------

    async def read(self, address: ContentAddress, *, as_text: bool) -> JsonObject:
        """Return the content of a file before or after its change.

        Raises:
            AhpError: there is none.
        """
        call = call_of(address.changeset)
        turn = self._turn_of(address.changeset) if call is None else None
        try:
            data = await self._sets.content(turn, address.path, address.side, call=call)
        except UnknownItemError as error:
            raise AhpError(NOT_FOUND, str(error)) from None
        if data is None:
            raise AhpError(NOT_FOUND, f"{str(address.path)[:200]!r} was too large to keep its content")
        return content_of(data, address.path.name, as_text=as_text)

    async def invoke(self, uri: str, operation: Any, target: Any) -> JsonObject:
        """Undo the changes of a changeset, or those of one of its files.

        Raises:
            AhpError: the operation, its target or the changeset is unknown, the session works, or no file is as the
                changes left it.
        """
        turn, path = self._turn_of(uri), _path_of(operation, target)
        if self._mirror.session.working:
            raise AhpError(TURN_IN_PROGRESS, "the session works and may change files: wait, or cancel the turn")
        if self._undoing:
            raise AhpError(CONFLICT, "changes of the session are being undone")
        self._undoing = True
        try:
            self._show_status()
            outcome = await self._sets.undo(turn, path)
        except UnknownItemError as error:
            raise AhpError(NOT_FOUND, str(error)) from None
        except InvalidRequestError as error:
            raise AhpError(TURN_IN_PROGRESS, str(error)) from None
        finally:
            self._undoing = False
            self._show_status()
        # Clients have the outcome before the answer.
        await self._show()
        if outcome.left and not outcome.undone:
            raise AhpError(CONFLICT, message_of(outcome))
        return {"message": message_of(outcome)}


def _path_of(operation: Any, target: Any) -> Path | None:
    """Return the file that an operation is about, ``None`` for all.

    Raises:
        AhpError: there is no such operation for such a target.
    """
    if operation != UNDO:
        raise AhpError.invalid(f"operationId: unknown operation {str(operation)[:100]!r}: expected {UNDO!r}")
    match target:
        case None:
            return None
        case {"kind": "resource", "resource": str(resource)} if (path := path_of(resource)) is not None:
            return Path(path)
        case _:
            raise AhpError.invalid("target: expected a file of the changeset, {kind: 'resource', resource: URI}")
