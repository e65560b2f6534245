"""The services of a session's owner for an editor, which may be connected to another replica."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar
from uuid import uuid4

from jumpseat.acp.client import EditorClient
from jumpseat.acp.connection import error_of
from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.methods import session_open
from jumpseat.acp.routes import find_notification, find_route
from jumpseat.acp.translation.params import ClientCapabilities, NewSessionParams, OpenSessionParams
from jumpseat.acp.translation.versions import V1, Version
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.json_rpc_peer import ResponseError
from jumpseat.sessions.context import Caller, Context
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.wire import WireModel

NAME: Final = "acp"
"""The name of this door between replicas."""
REQUEST: Final = "acp.request"
NOTIFICATION: Final = "acp.notification"
"""What an editor sends about a session, besides the requests that open, leave, copy and delete one."""
OPENED: Final = "acp.opened"
SENT: Final = "acp.sent"
ASKED: Final = "acp.asked"
"""What a guest sends: that it has opened a session, and its notifications and requests to the editor."""
DELETE: Final = "sessions.delete"
FORK: Final = "sessions.fork"
"""The methods of all clients."""

R = TypeVar("R", bound=WireModel)
Handler: TypeAlias = Callable[[Any], Any]


class GuestEditor(EditorClient):
    """An editor at the owner of its sessions. ``connection`` leads to the editor's replica."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.access, PROTOCOL_VERSION, connection.tasks)
        self.handshake_done = True
        self.wire, self.peer = connection.wire, connection.peer
        self.id = uuid4().hex
        self._label = connection.label
        self._left = False
        # By session: whether the editor has got the response that opens it, or will get it before what follows.
        self._known: dict[str, bool] = {}

    @property
    def connected(self) -> bool:
        return not self._left and super().connected

    @property
    def label(self) -> str:
        """The name of the connection in the log."""
        return self._label

    def admit(self) -> None:
        """Do nothing: the editor's replica has admitted it."""

    def leave(self) -> None:
        """Note that the editor is gone."""
        self._left = True

    def show(self, session_id: str) -> None:
        """Tell the editor's replica that a session is opened here. What follows belongs to the opening."""
        self._known[session_id] = False
        self.peer.notify(OPENED, {"sessionId": session_id, "from": self.id})

    def settle(self, session_id: str) -> None:
        """Let the editor receive what follows after the response that opens the session."""
        self._known[session_id] = True

    def notify(self, method: str, params: dict[str, Any]) -> None:
        session_id: str = params["sessionId"]
        if session_id not in self._known:
            # The editor sends prompts to a live session that it has not opened.
            self.show(session_id)
            self.settle(session_id)
        self.peer.notify(
            SENT,
            {
                "sessionId": session_id,
                "from": self.id,
                "after": self._known[session_id],
                "method": method,
                "params": params,
            },
        )

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        # A request of an MCP server names no session: its notifications come back by way of any.
        session_id = params.get("sessionId") or next(iter(self._known), None)
        asked = {"sessionId": session_id, "from": self.id, "method": method, "params": params}
        return self._read(method, await self.peer.ask(ASKED, asked), result)


class OwnerService:
    """Serves the requests of one editor about sessions that this replica owns.

    ``find_other`` returns what serves the methods that all clients have.
    """

    def __init__(
        self,
        connection: Connection,
        find_other: Callable[[str], Handler | None],
        make_context: Callable[[Caller], Context],
    ) -> None:
        self.guest = GuestEditor(connection)
        self._acp: AcpContext = self.guest.begin(make_context(self.guest))
        self._find_other = find_other
        self._handlers: Mapping[str, Handler] = {
            "session.create": self._create,
            "session.resume": self._open,
            "session.detach": self._request,
            REQUEST: self._request,
            NOTIFICATION: self._take,
        }

    def find(self, method: str) -> Handler | None:
        """Return the function that serves a method; ``None`` if the replicas of editors do not call it."""
        return self._find_other(method) if method in (DELETE, FORK) else self._handlers.get(method)

    def _create(self, params: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        self._note_editor(params["editor"])
        session_id = params["sessionId"]
        setup = NewSessionParams.model_validate(params["params"])
        return self._opened(session_id, session_open.create(self._acp, setup, session_id))

    def _open(self, params: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        self._note_editor(params["editor"])
        session_id = params["sessionId"]
        given = {**params["params"], "sessionId": session_id}
        if "disableResume" in params:
            # Opened again for the editor, whose session has moved here.
            return self._opened(session_id, self._reopen(OpenSessionParams.model_validate(given)))
        serve = find_route(self._acp, params["call"])
        assert serve is not None, "a method that opens sessions"
        return self._opened(session_id, serve(given))

    async def _reopen(self, setup: OpenSessionParams) -> dict[str, Any]:
        view = await session_open.reopen(self._acp, setup)
        view.take(view.follower.resumed())
        return await session_open.opened_result(self._acp, view)

    async def _opened(self, session_id: str, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        self.guest.show(session_id)
        try:
            return await self._answered(work)
        finally:
            self.guest.settle(session_id)

    def _request(self, params: dict[str, Any]) -> Any:
        """Serve a request. What it does at once is done in the order of arrival."""
        self._note_editor(params["editor"])
        serve = find_route(self._acp, params["call"])
        assert serve is not None, "a method of editors"
        try:
            result = serve(params["params"])
        except Exception as error:
            raise _as_response(error) from None
        return self._answered(result) if inspect.isawaitable(result) else result

    def _take(self, params: dict[str, Any]) -> dict[str, Any]:
        self._note_editor(params["editor"])
        take = find_notification(self._acp, params["call"])
        assert take is not None, "a notification of editors"
        take(params["params"])
        return {}

    async def _answered(self, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        try:
            return await work
        except Exception as error:
            raise _as_response(error) from None

    def _note_editor(self, described: dict[str, Any]) -> None:
        """Note what the editor has told with ``initialize``. See :func:`jumpseat.acp.replicas.relay.describe`."""
        editor = self._acp.editor
        editor.capabilities = ClientCapabilities.model_validate(described["capabilities"])
        editor.client_name = described["name"]
        if described["version"] != editor.version.number:
            editor.version = _version_of(described["version"])


def _version_of(number: int) -> Version:
    if number == V1.number:
        return V1
    # Imported for editors of version 2 only.
    from jumpseat.acp.draft.version import Draft

    return Draft()


def _as_response(error: Exception) -> Exception:
    """Return an error with the code that editors know."""
    found = error_of(error)
    return ResponseError(found.message, found.code)
