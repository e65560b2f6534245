"""A client of the Agent Host Protocol with the real server, which folds what it gets as the official ones do.

::

    async with door_server(tmp_path, script) as (server, port), connected(port, "a") as client:
        uri = await client.create()
        await client.prompt("t1", "hello")
        await client.action("chat/turnComplete")
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

import anyio
from websockets.asyncio.client import ClientConnection, connect

from jumpseat.ahp.coverage import ACTIONS_SENT
from jumpseat.ahp.states.channels import REDUCERS
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.uris import chat_uri, kind_of, session_of
from tests.ahp.official import Judge, judge, plain
from tests.support.editor import CONFIG
from tests.support.limits import WAIT_S
from tests.support.server import RunningServer, running_server

ROOT: Final = "ahp-root://"


@asynccontextmanager
async def door_server(
    folder: Path, script: Mapping[str, Any], **options: Any
) -> AsyncGenerator[tuple[RunningServer, int]]:
    """Run a server whose models are scripted, and yield its WebSocket port, too."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "script.json").write_text(json.dumps(script))
    args = ("--ws-port", "0", *options.pop("args", ()))
    async with running_server(folder, tcp=True, args=args, config=CONFIG, **options) as server:
        line = await server.next_line()
        yield server, int(line.removeprefix("jumpseat serves WebSocket clients on port "))


class Socket(Protocol):
    """A connection that carries whole messages."""

    async def send(self, message: str) -> None: ...

    async def recv(self) -> str | bytes: ...


class Client:
    """One connection, the states of its channels, and all that it has received."""

    def __init__(self, socket: Socket, client_id: str) -> None:
        self.socket = socket
        self.client_id = client_id
        self.states: dict[str, JsonObject] = {}
        self.last_seen = 0
        self.session = self.chat = ""
        self.received: list[JsonObject] = []
        self.methods: dict[int, str] = {}
        self.judge: Judge | None = None
        self._folded: dict[str, tuple[JsonObject, list[JsonObject]]] = {}
        self._numbers = 0
        self._seen = 0

    async def request(self, method: str, channel: str = ROOT, **params: Any) -> JsonObject:
        """Send a request and return its response."""
        self._numbers += 1
        number = self._numbers
        self.methods[number] = method
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"channel": channel, **params}}
        await self.socket.send(json.dumps(message))
        return await self._read(lambda found: found.get("id") == number)

    async def call(self, method: str, channel: str = ROOT, **params: Any) -> Any:
        """Send a request and return its result."""
        response = await self.request(method, channel, **params)
        assert "result" in response, response
        return response["result"]

    async def initialize(self, *subscriptions: str, versions: Sequence[str] = ("1.0.0",)) -> JsonObject:
        result = await self.call(
            "initialize",
            protocolVersions=versions,
            clientId=self.client_id,
            initialSubscriptions=[ROOT, *subscriptions],
        )
        self._take(result["snapshots"])
        return result

    async def subscribe(self, uri: str) -> JsonObject:
        result = await self.call("subscribe", uri)
        self._take([result["snapshot"]])
        return result["snapshot"]["state"]

    async def create(self, **params: Any) -> str:
        """Create a session and subscribe to it and to its chat."""
        uri = f"ahp-session:/{uuid4()}"
        assert await self.call("createSession", uri, **params) is None
        await self.join(uri)
        if self.states[uri]["lifecycle"] != "ready":
            await self.action("session/ready")
        return uri

    async def join(self, uri: str) -> None:
        """Subscribe to a session and to its chat."""
        self.session, self.chat = uri, chat_uri(session_of(uri) or "")
        state = await self.subscribe(uri)
        assert state["defaultChat"] == self.chat
        await self.subscribe(self.chat)

    async def join_parts(self) -> list[str]:
        """Subscribe to the chats of sub-agents and to the terminals of calls, and return their URIs."""
        await self.settle()
        parts = [chat["resource"] for chat in self.states[self.session]["chats"] if chat["resource"] != self.chat]
        for uri in parts:
            if uri not in self.states:
                await self.subscribe(uri)
        terminals = [uri for chat in (self.chat, *parts) for uri in terminals_of(self.states[chat])]
        for uri in terminals:
            if uri not in self.states:
                await self.subscribe(uri)
        # No action tells that a terminal is gone: the call that had it refers to it no longer.
        for uri in [uri for uri in self.states if uri.startswith("ahp-terminal:") and uri not in terminals]:
            self._forget(uri)
        return [*parts, *terminals]

    async def dispatch(self, action_type: str, channel: str = "", /, **members: Any) -> int:
        """Dispatch an action and return its number."""
        self._numbers += 1
        if not channel:
            channel = self.chat if action_type.startswith("chat/") else self.session
        params = {"channel": channel, "clientSeq": self._numbers, "action": {"type": action_type, **members}}
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
        return self._numbers

    async def prompt(self, turn_id: str, text: str) -> JsonObject:
        """Begin a turn and return the envelope of the echo."""
        message = {"text": text, "origin": {"kind": "user"}}
        sent = await self.dispatch(
            "chat/turnStarted", turnId=turn_id, startedAt="2026-11-28T00:00:00.000Z", message=message
        )
        return await self.echo(sent)

    async def echo(self, number: int) -> JsonObject:
        """Return the envelope of the echo of a dispatch, or of its refusal."""
        wanted = {"clientId": self.client_id, "clientSeq": number}
        return (await self._read(lambda found: found.get("params", {}).get("origin") == wanted))["params"]

    async def action(self, kind: str) -> JsonObject:
        """Return the next action of a type that was not awaited before."""
        found = await self._read(lambda found: found.get("params", {}).get("action", {}).get("type") == kind)
        return found["params"]["action"]

    async def any_action(self) -> JsonObject:
        """Return the next action that was not awaited before."""
        return (await self._read(lambda found: found.get("method") == "action"))["params"]["action"]

    async def notification(self, method: str) -> JsonObject:
        return (await self._read(lambda found: found.get("method") == method))["params"]

    async def reconnect(self, before: Client) -> str:
        """Take the place of a client whose connection is lost."""
        self._folded = before._folded
        self.states, self.last_seen, self.session, self.chat = (
            before.states,
            before.last_seen,
            before.session,
            before.chat,
        )
        result = await self.call(
            "reconnect",
            clientId=self.client_id,
            lastSeenServerSeq=self.last_seen,
            subscriptions=[*self.states, "ahp-session:/gone"],
        )
        if result["type"] == "replay":
            missing = set(result["missing"])
            assert "ahp-session:/gone" in missing
            assert not missing & {ROOT, self.session, self.chat}
            # A rewind has removed the agent or the turn that these belonged to.
            for uri in missing & self.states.keys():
                self._forget(uri)
            for envelope in result["actions"]:
                self._apply(envelope)
        else:
            for uri in self.states.keys() - {snapshot["resource"] for snapshot in result["snapshots"]}:
                self._forget(uri)
            self._take(result["snapshots"])
        return result["type"]

    async def settle(self) -> None:
        """Read all that the server has sent so far."""
        await self.call("ping")

    async def read_actions(self, count: int) -> bool:
        """Read messages until ``count`` actions have come, or all that were sent; return whether it was all."""
        self._numbers += 1
        ping = {"jsonrpc": "2.0", "id": self._numbers, "method": "ping", "params": {"channel": ROOT}}
        await self.socket.send(json.dumps(ping))
        number = self._numbers
        self.methods[number] = "ping"
        for _ in range(count):
            if (await self._read(lambda found: found.get("id") == number or "action" in found["params"])).get("id"):
                return True
        return False

    def abort(self) -> None:
        """End the connection at once, with what is unread."""
        assert isinstance(self.socket, ClientConnection)
        self.socket.transport.abort()

    def _take(self, snapshots: Sequence[JsonObject]) -> None:
        for snapshot in snapshots:
            self.states[snapshot["resource"]] = snapshot["state"]
            self._folded[snapshot["resource"]] = snapshot["state"], []
            self.last_seen = max(self.last_seen, snapshot["fromSeq"])

    def _apply(self, envelope: JsonObject) -> None:
        assert envelope["serverSeq"] > self.last_seen
        assert "origin" in envelope or envelope["action"]["type"] in ACTIONS_SENT
        self.last_seen, channel = envelope["serverSeq"], envelope["channel"]
        state = self.states[channel]
        after = REDUCERS[kind_of_channel(channel)](state, envelope["action"])
        assert after is not state, f"no effect: {envelope}"
        self.states[channel] = after
        self._folded[channel][1].append(envelope["action"])
        if envelope["action"]["type"] == "session/chatRemoved":
            self._forget(envelope["action"]["chat"])

    def _forget(self, uri: str) -> None:
        """Forget a channel that is gone."""
        if self.states.pop(uri, None) is not None:
            del self._folded[uri]

    def check_judged(self) -> None:
        """Check that the official reducers come to the states of this client."""
        if self.judge is None:
            return
        for uri, (state, actions) in self._folded.items():
            folded = self.judge.ask({"reducer": kind_of_channel(uri), "state": state, "actions": actions})
            assert plain(folded) == plain(self.states[uri]), actions
            self._folded[uri] = self.states[uri], []

    async def _read(self, fits: Callable[[JsonObject], bool]) -> JsonObject:
        """Return the next message that fits, among those that no earlier wait has passed."""
        while self._seen < len(self.received):
            self._seen += 1
            if fits(self.received[self._seen - 1]):
                return self.received[self._seen - 1]
        with anyio.fail_after(WAIT_S):
            while True:
                message: JsonObject = json.loads(await self.socket.recv())
                self.received.append(message)
                self._seen += 1
                if message.get("method") == "action" and "rejectionReason" not in message["params"]:
                    self._apply(message["params"])
                if fits(message):
                    return message


def terminals_of(chat: JsonObject) -> list[str]:
    """Return the terminals to which the calls of a chat refer."""
    turns: list[JsonObject] = [*chat["turns"], *([chat["activeTurn"]] if "activeTurn" in chat else [])]
    parts = [part for turn in turns for part in turn["responseParts"] if part["kind"] == "toolCall"]
    blocks: list[JsonObject] = [block for part in parts for block in part["toolCall"].get("content") or ()]
    return [block["resource"] for block in blocks if block["type"] == "terminal"]


def kind_of_channel(uri: str) -> str:
    """Return the kind of a channel, by which its reducer is known."""
    # Older builds of VS Code name sessions by the provider.
    return "root" if uri == ROOT else kind_of(uri.replace("jumpseat:/", "ahp-session:/", 1))


@asynccontextmanager
async def raw(port: int, client_id: str, query: str = "", **options: Any) -> AsyncGenerator[Client]:
    """Connect without a handshake. The official types and reducers judge what comes, if they are built."""
    judged = judge()
    # A client that reads nothing for a while, on a busy machine, is not given up.
    options = {"ping_interval": None, "proxy": None, "max_size": None, **options}
    async with connect(f"ws://127.0.0.1:{port}/ahp{query}", **options) as socket:
        client = Client(socket, client_id)
        client.judge = judged
        yield client
    client.check_judged()
    if judged is not None:
        judged.check_messages(client.received, client.methods)


@asynccontextmanager
async def connected(port: int, client_id: str, query: str = "") -> AsyncGenerator[Client]:
    """Connect as a client that subscribes to the root channel."""
    async with raw(port, client_id, query) as client:
        await client.initialize()
        yield client


async def check_equal(port: int, *clients: Client, query: str = "") -> None:
    """Check that clients of a session see what a newcomer is shown now; no action tells the session's activity."""
    for client in clients:
        await client.settle()
        client.check_judged()
    async with connected(port, "newcomer", query) as newcomer:
        await newcomer.join(clients[0].session)
        for client in clients:
            for uri in [uri for uri in client.states if kind_of_channel(uri) in ("chat", "terminal", "changeset")]:
                if uri not in newcomer.states:
                    await newcomer.subscribe(uri)
                # Changes are read in the background, and commands write there.
                with anyio.move_on_after(WAIT_S):
                    while client.states[uri] != newcomer.states[uri]:
                        await newcomer.settle()
                        await client.settle()
                assert client.states[uri] == newcomer.states[uri]
            # A run may have ended since the session was joined.
            await newcomer.subscribe(client.session)
            theirs, ours = newcomer.states[client.session], client.states[client.session]
            assert {**theirs, "status": 0} == {**ours, "status": 0}
            assert theirs["status"] & 31 == newcomer.states[client.chat]["status"] & 31
