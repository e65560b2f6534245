"""The way of one editor to the owners of its sessions, of which this replica is one among others."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import anyio
import orjson
from msgspec import Struct

from jumpseat.acp.connection import RESOURCE_NOT_FOUND, AcpConnection
from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.replicas import owner
from jumpseat.acp.replicas.owner import DELETE, FORK, NAME, NOTIFICATION, REQUEST, Handler
from jumpseat.acp.routes import check_params, find_route
from jumpseat.errors import AuthenticationRequiredError, ClientCallError, SessionNotFoundError
from jumpseat.rpc.json_rpc_peer import Later
from jumpseat.sessions.access import Access
from jumpseat_protocol.envelope import INTERNAL_ERROR, ErrorObject


class Link(Protocol):
    """See :class:`jumpseat.cluster.relay.door_links.DoorLink`."""

    @property
    def receive(self) -> Callable[[bytes], None]: ...

    @property
    def flush(self) -> Callable[[], None]: ...

    @property
    def close(self) -> Callable[[], None]: ...

    def find(self, method: str, /) -> Handler | None: ...


class Cluster(Protocol):
    """See :class:`jumpseat.cluster.cluster.Cluster`."""

    def connect_door(self, access: Access, name: str, take: Callable[[bytes], None]) -> Link: ...

    async def catch_up(self) -> None: ...


class _Asked(Struct, eq=False):
    """A question of a guest that the editor has not answered."""

    session_id: str | None
    guest: str
    scope: anyio.CancelScope


class Relay:
    """Sends the requests of one editor about sessions to their owners, and what the owners say to the editor.

    The editor gets what an owner says in its order: before a response that opens a session, only what belongs to
    the opening.
    """

    def __init__(self, connection: AcpConnection, ctx: AcpContext, cluster: Cluster) -> None:
        self._connection = connection
        self._ctx = ctx
        self._cluster = cluster
        self._link: Link | None = None
        # The sessions that are being opened, each with the messages that follow the response.
        self._opening: dict[str, list[dict[str, Any]]] = {}
        self._asked: dict[Any, _Asked] = {}
        # The sessions of the guests that wait for MCP servers of the editor, by request.
        self._mcp: dict[Any, str] = {}

    def find(self, method: str) -> Callable[[Any], Any] | None:
        """Return what serves a method about a session; ``None`` for other methods."""
        match method:
            case "session/new":
                return self._create
            case "session/load" | "session/resume":
                return lambda params: self._open(method, params)
            case "session/fork":
                return self._fork
            case "session/list":
                return self._list
            case "session/delete":
                return self._delete
            case "session/cancel":
                return self._take
            case "mcp/message":
                return self._take_of_mcp
            case _ if method.startswith("session/"):
                return lambda params: self._ask(method, params)
            case _:
                return None

    def stop_prompts(self) -> None:
        """Cancel the prompts of all sessions, which get their responses."""
        for session_id in list(self._ctx.elsewhere):
            self._tell("session/cancel", session_id, {"sessionId": session_id})

    def close(self) -> None:
        """Leave the sessions: the editor has hung up."""
        for asked in list(self._asked.values()):
            asked.scope.cancel()
        if self._link is not None:
            self._link.close()

    # --- requests of the editor -----------------------------------------------------------------------------------

    def _create(self, params: Any) -> Later:
        check_params(self._ctx, "session/new", params)
        session_id = str(uuid.uuid4())
        more = {"workingDirectory": params["cwd"], "params": params}
        return self._answer_opening(session_id, self._send("session.create", session_id, **more))

    def _open(self, method: str, params: Any) -> Later:
        check_params(self._ctx, method, params)
        session_id: str = params["sessionId"]
        sent = self._send("session.resume", session_id, call=method, params=params)
        return self._answer_opening(session_id, sent)

    def _fork(self, params: Any) -> Later:
        """Copy a session, and open the copy."""
        check_params(self._ctx, "session/fork", params)
        forked = Later()

        def open_copy(result: dict[str, Any]) -> None:
            copy = result["sessionId"]
            sent = self._send("session.resume", copy, call="session/resume", params={**params, "sessionId": copy})
            opened = self._answer_opening(copy, sent)
            self._then(opened, forked, lambda result: forked.succeed({"sessionId": copy, **result}))

        session_id: str = params["sessionId"]
        self._then(self._send(FORK, session_id), forked, open_copy, session_id)
        return forked

    async def _list(self, params: Any) -> Any:
        await self._cluster.catch_up()
        serve = find_route(self._ctx, "session/list")
        assert serve is not None, "a method of editors"
        result = serve(params)
        return await result if inspect.isawaitable(result) else result

    def _delete(self, params: Any) -> Later:
        check_params(self._ctx, "session/delete", params)
        session_id: str = params["sessionId"]
        self._ctx.elsewhere.pop(session_id, None)
        deleted = Later()

        def finish(later: Any) -> None:
            error = later.error
            if error is None or error.message == str(SessionNotFoundError(session_id)):
                deleted.succeed({})
            else:
                deleted.fail(_without_data(error, session_id))

        _settled(self._send(DELETE, session_id)).add_done_callback(finish)
        return deleted

    def _ask(self, method: str, params: Any) -> Later:
        check_params(self._ctx, method, params)
        session_id: str = params["sessionId"]
        ends = method == "session/close"
        answered = Later()
        sent = self._send("session.detach" if ends else REQUEST, session_id, call=method, params=params)
        self._then(sent, answered, answered.succeed, session_id)
        if ends:
            answered.add_done_callback(lambda later: later.exception() or self._ctx.elsewhere.pop(session_id, None))
        return answered

    def _take(self, params: Any) -> None:
        check_params(self._ctx, "session/cancel", params)
        self._tell("session/cancel", params["sessionId"], params)

    def _take_of_mcp(self, params: Any) -> None:
        check_params(self._ctx, "mcp/message", params)
        if (session_id := self._mcp.get((params["serverId"], params["requestId"]))) is not None:
            self._tell("mcp/message", session_id, params)

    def _tell(self, method: str, session_id: str, params: Any) -> None:
        self._send(NOTIFICATION, session_id, call=method, params=params)

    def _send(self, method: str, session_id: str, **params: Any) -> Any:
        """Send a request to the owner of a session, in the order of the calls."""
        if self._link is None:
            access = self._connection.access
            if access is None:
                raise AuthenticationRequiredError("the editor has presented no token")
            self._link = self._cluster.connect_door(access, NAME, self._handle)
        serve = self._link.find(method)
        assert serve is not None, "a method of owners"
        # The methods of all clients have no such member.
        described = {} if method in (DELETE, FORK) else {"editor": describe(self._ctx)}
        return serve({"sessionId": session_id, **described, **params})

    # --- responses ------------------------------------------------------------------------------------------------

    def _answer_opening(self, session_id: str, sent: Any) -> Later:
        """Respond, and then let the editor have what has arrived for it meanwhile."""
        opened = Later()
        self._opening.setdefault(session_id, [])
        self._then(sent, opened, opened.succeed, session_id)

        def follow(_: Any) -> None:
            # The response goes first: its callback was added later if the result was there at once.
            self._connection.tasks.start_soon(self._follow, session_id)

        opened.add_done_callback(follow)
        return opened

    async def _follow(self, session_id: str) -> None:
        for message in self._opening.pop(session_id, ()):
            self._connection.notify(message["method"], message["params"])

    def _then(
        self, sent: Any, answer: Later, go_on: Callable[[Any], object], session_id: str | None = None
    ) -> None:
        """Call ``go_on`` with the result of a request, or respond with its error."""
        later = _settled(sent)

        def cancel() -> None:
            # The prompt of a client over a network whose connection was cut goes on.
            if self._connection.connected:
                later.cancel()

        def finish(_: Any) -> None:
            if self._link is not None:
                self._link.flush()
            if (error := later.error) is not None:
                answer.fail(_without_data(error, session_id))
            else:
                go_on(later.result())

        answer.on_cancel = cancel
        later.add_done_callback(finish)

    # --- messages of guests -------------------------------------------------------------------------------------

    def _handle(self, body: bytes) -> None:
        message = orjson.loads(body)
        params = message.get("params")
        match message.get("method"):
            case owner.OPENED:
                self._begin(params["sessionId"], params["from"])
            case owner.SENT:
                self._show(params)
            case owner.ASKED:
                self._start_question(message["id"], params)
            case "$/cancelRequest":
                if (asked := self._asked.get(params["id"])) is not None:
                    asked.scope.cancel()
            case _:
                pass

    def _begin(self, session_id: str, guest: str) -> None:
        """Listen to another guest, whose replica owns a session now. The one before asks nothing more."""
        self._ctx.elsewhere[session_id] = guest
        for asked in list(self._asked.values()):
            if asked.session_id == session_id and asked.guest != guest:
                asked.scope.cancel()

    def _show(self, params: dict[str, Any]) -> None:
        session_id = params["sessionId"]
        if self._ctx.elsewhere.get(session_id) != params["from"]:
            return
        if params["after"] and (held := self._opening.get(session_id)) is not None:
            held.append(params)
        else:
            self._connection.notify(params["method"], params["params"])

    def _start_question(self, number: Any, params: dict[str, Any]) -> None:
        asked = self._asked[number] = _Asked(params["sessionId"], params["from"], anyio.CancelScope())
        self._connection.tasks.start_soon(self._ask_editor, number, asked, params["method"], params["params"])

    async def _ask_editor(self, number: Any, asked: _Asked, method: str, params: dict[str, Any]) -> None:
        request = (params.get("serverId"), params.get("requestId"))
        if method == "mcp/message" and asked.session_id is not None:
            self._mcp[request] = asked.session_id
        answer: dict[str, Any] | None = None
        try:
            with asked.scope:
                try:
                    answer = {"result": await self._connection.peer.ask(method, params)}
                except ClientCallError as error:
                    answer = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
        finally:
            self._asked.pop(number, None)
            self._mcp.pop(request, None)
        if answer is not None and self._link is not None:
            self._link.receive(orjson.dumps({"jsonrpc": "2.0", "id": number, **answer}))


def describe(ctx: AcpContext) -> dict[str, Any]:
    """Return what an owner has to know of an editor."""
    editor = ctx.editor
    return {
        "version": editor.version.number,
        "capabilities": editor.capabilities.wire(),
        "name": editor.client_name,
    }


def _settled(sent: Any) -> Later:
    """Return the response to a request that may have been served at once."""
    if isinstance(sent, Later):
        return sent
    later = Later()
    later.succeed(sent)
    return later


def _without_data(error: ErrorObject, session_id: str | None) -> ErrorObject:
    """Return an error as editors know it: without ``data``, where some expect a string."""
    if session_id is not None and error.message == str(SessionNotFoundError(session_id)):
        return ErrorObject(code=RESOURCE_NOT_FOUND, message=error.message)
    return ErrorObject(code=error.code, message=error.message)
