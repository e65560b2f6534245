"""Pass the messages of an editor on to a server, and connect again when the connection is lost.

The protocol repeats no messages, so a lost connection has three effects. Requests of the editor that have no
response yet get an error. Questions of the server are withdrawn; the server asks them again. Sessions are resumed
with their last settings, and messages that the editor sends meanwhile follow.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final, TypeAlias, cast

import anyio
import orjson
from msgspec import Struct

from jumpseat.acp.bridge.connections import Link, LinkError, Open, RefusedError
from jumpseat.parsing.json_text import read_json
from jumpseat.rpc.transport import Wire
from jumpseat_protocol.envelope import INTERNAL_ERROR

log = logging.getLogger(__name__)

JsonObject: TypeAlias = dict[str, Any]

RETRY_S: Final = (0.25, 0.5, 1.0, 2.0, 5.0)
"""The pauses between attempts to connect again, in seconds; the last one is repeated."""
GIVE_UP_S: Final = 120.0
"""The time after which a lost server is given up, in seconds."""
END_S: Final = 2.0
"""The time for responses after the editor has sent its last message, in seconds."""
CANCEL: Final = "$/cancel_request"
_OWN: Final = "jumpseat-bridge-"
_LOST: Final = "the connection to the server was lost: the outcome of the request is not known"


class _Asked(Struct):
    """A request of the editor without a response."""

    msg_id: Any
    method: str
    params: JsonObject


class Bridge:
    """An editor's way to a server. ``say`` tells the user something."""

    def __init__(self, connect: Open, token: str | None, say: Callable[[str], None]) -> None:
        self._connect = connect
        self._token = token
        self._say = say
        self._wire: Wire | None = None
        self._link: Link | None = None
        self._greeting: JsonObject | None = None
        self._sessions: dict[str, JsonObject] = {}
        self._asked: dict[Any, _Asked] = {}
        self._questions: dict[Any, Any] = {}
        self._numbers = count(1)
        self._own: dict[str, anyio.Event] = {}
        self._outgoing: deque[bytes] = deque()
        self._news = anyio.Event()
        self._ready = anyio.Event()
        self._ended = anyio.Event()

    # --- the editor -----------------------------------------------------------------------------------------------

    def attach(self, wire: Wire) -> None:
        """Use the connection of the editor."""
        self._wire = wire

    def end(self) -> None:
        """Note that the editor sends nothing more."""
        self._ended.set()
        self._news.set()

    def take(self, body: bytes) -> None:
        """Take a message of the editor."""
        value = _object_in(body)
        if value is None:
            # The server says what is wrong with it.
            self._queue(body)
            return
        if "method" not in value:
            msg_id: Any = value.get("id")
            question = self._questions.pop(msg_id, None)
            if question is not None:
                self._queue(orjson.dumps({**value, "id": question}))
            return
        if "id" in value:
            params = _object(value.get("params")) or {}
            self._asked[_key(value["id"])] = _Asked(value["id"], str(value["method"]), params)
        self._queue(body)

    def _queue(self, body: bytes) -> None:
        self._outgoing.append(body)
        self._news.set()

    def _tell(self, message: JsonObject) -> None:
        assert self._wire is not None
        self._wire.send(orjson.dumps({"jsonrpc": "2.0", **message}))

    # --- the server -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Pass messages on in both directions until the editor leaves.

        Raises:
            LinkError: the server cannot be reached, refuses the token, or is lost for too long.
        """
        self._link = await self._connect()
        self._ready.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send)
            tasks.start_soon(self._follow)
            await self._ended.wait()
            with anyio.move_on_after(END_S):
                while self._asked or self._outgoing:
                    self._news = anyio.Event()
                    await self._news.wait()
            tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(END_S):
            await self._link.close()

    async def _send(self) -> None:
        while True:
            await self._ready.wait()
            if not self._outgoing:
                self._news = anyio.Event()
                await self._news.wait()
                continue
            assert self._link is not None
            try:
                await self._link.send(self._outward(self._outgoing[0]))
            except LinkError:
                # The task that receives notices as well, and connects again; the message has to wait.
                self._ready = anyio.Event()
                continue
            self._outgoing.popleft()
            self._news.set()

    def _outward(self, body: bytes) -> bytes:
        """Return a message as the server gets it: its first request with the token, where there is no header."""
        assert self._link is not None
        if self._token is None or not self._link.takes_token or b'"initialize"' not in body:
            return body
        message = _object_in(body)
        if message is None or message.get("method") != "initialize":
            return body
        return orjson.dumps({**message, "params": self._with_token(message.get("params"))})

    def _with_token(self, params: Any) -> JsonObject:
        given = _object(params) or {}
        if self._token is None or self._link is None or not self._link.takes_token:
            return given
        return {**given, "_meta": {**(_object(given.get("_meta")) or {}), "jumpseat": {"token": self._token}}}

    async def _follow(self) -> None:
        """Take the messages of the server, from one connection after the other."""
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    await self._receive()
                except LinkError as error:
                    self._ready = anyio.Event()
                    self._lose()
                    self._say(f"{error}; connecting again")
                self._link = await self._connect_again()
                tasks.start_soon(self._restore)

    async def _receive(self) -> None:
        assert self._link is not None
        assert self._wire is not None
        while True:
            self._handle(await self._link.receive())
            await self._wire.drain()

    def _lose(self) -> None:
        """Answer what cannot be answered any more, and withdraw the questions of the server."""
        for msg_id in self._questions:
            self._tell({"method": CANCEL, "params": {"requestId": msg_id}})
        self._questions.clear()
        queued = {_key(_id_of(body)) for body in self._outgoing}
        for key, asked in list(self._asked.items()):
            if key not in queued:
                del self._asked[key]
                self._tell({"id": asked.msg_id, "error": {"code": INTERNAL_ERROR, "message": _LOST}})
        for answered in self._own.values():
            answered.set()

    async def _connect_again(self) -> Link:
        last: LinkError | None = None
        with anyio.move_on_after(GIVE_UP_S):
            for attempt in count():
                await anyio.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
                try:
                    return await self._connect()
                except RefusedError:
                    raise
                except LinkError as error:
                    last = error
        raise LinkError(f"gave up after {GIVE_UP_S:.0f} s: {last}")

    async def _restore(self) -> None:
        """Introduce the editor again, and resume its sessions."""
        link = self._link
        try:
            if self._greeting is not None:
                await self._ask("initialize", self._with_token(self._greeting))
            for session_id, setup in list(self._sessions.items()):
                await self._ask("session/resume", {**setup, "sessionId": session_id})
        except LinkError:
            # The task that receives connects again.
            return
        if self._link is link:
            self._say("connected again")
            self._ready.set()

    async def _ask(self, method: str, params: JsonObject) -> None:
        assert self._link is not None
        msg_id = f"{_OWN}{next(self._numbers)}"
        answered = self._own[msg_id] = anyio.Event()
        try:
            await self._link.send(
                orjson.dumps({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})
            )
            await answered.wait()
        finally:
            del self._own[msg_id]

    def _handle(self, body: bytes) -> None:
        """Pass a message of the server on."""
        assert self._wire is not None
        message = _object_in(body)
        if message is None:
            self._wire.send(body)
        elif "method" in message:
            self._pass_on(message, body)
        elif (own := self._own.get(str(message.get("id")))) is not None:
            if (error := message.get("error")) is not None:
                self._say(f"the server could not restore everything: {_text_of(error)}")
            own.set()
        else:
            asked = self._asked.pop(_key(message.get("id")), None)
            if asked is not None and (result := _object(message.get("result"))) is not None:
                self._note(asked, result)
            self._wire.send(body)
            self._news.set()

    def _pass_on(self, message: JsonObject, body: bytes) -> None:
        """Pass on a request or notification. Ids of the server are ours: two connections may use the same ones."""
        assert self._wire is not None
        if "id" in message:
            number = next(self._numbers)
            self._questions[number] = message["id"]
            self._wire.send(orjson.dumps({**message, "id": number}))
        elif message["method"] == CANCEL and (params := _object(message.get("params"))) is not None:
            given = params.get("requestId")
            number = next((one for one, asked in self._questions.items() if asked == given), None)
            if number is not None:
                self._tell({"method": CANCEL, "params": {**params, "requestId": number}})
        else:
            self._wire.send(body)

    def _note(self, asked: _Asked, result: JsonObject) -> None:
        """Keep what a reconnect needs: how the editor has introduced itself, and its open sessions."""
        named: Any = result.get("sessionId", asked.params.get("sessionId"))
        if asked.method == "initialize":
            self._greeting = asked.params
        elif asked.method in ("session/new", "session/load", "session/resume", "session/fork"):
            if isinstance(named, str):
                kept = ("cwd", "mcpServers", "additionalDirectories")
                self._sessions[named] = {name: asked.params[name] for name in kept if name in asked.params}
        elif asked.method in ("session/close", "session/delete"):
            self._sessions.pop(named, None)


def _key(msg_id: Any) -> Any:
    """Return the id of a request as a key: 1 and "1" are different ids."""
    return type(msg_id), str(msg_id)


def _id_of(body: bytes) -> Any:
    return (_object_in(body) or {}).get("id")


def _object_in(body: bytes) -> JsonObject | None:
    """Return a message that is an object; ``None`` for one that is something else."""
    try:
        return _object(read_json(body))
    except orjson.JSONDecodeError:
        return None


def _object(value: Any) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _text_of(error: Any) -> str:
    return str((_object(error) or {}).get("message") or "unknown error")[:500]
