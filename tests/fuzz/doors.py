"""Measure for how long a mebibyte holds up the event loop that comes through another door than that of the SDKs.

Messages of editors (ACP) and agent hosts (AHP) go to a server in this process. What MCP servers, language servers,
providers and files bring is read by the functions that read it in the server. Each place in a type, or in an
example of a message, is large in turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, cast

import anyio
import anyio.lowlevel
import orjson

from jumpseat.acp import draft_routes, v1_routes
from jumpseat.acp.v1_routes import Route
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.transport.sse import SseDecoder
from jumpseat.agent.model import ModelRequest
from jumpseat.app import App
from jumpseat.errors import JumpseatError
from jumpseat.lsp.incoming import read_message
from jumpseat.mcp.stdio import read_messages
from jumpseat.parsing.toml_text import parse_toml
from jumpseat.rpc.transport import LINES, Wire
from jumpseat.sessions.access import EVERYTHING
from jumpseat.store.project.front_matter import front_matter
from tests.ahp import generated
from tests.fuzz.holding import HELD_S, PATIENCE_S, Held, Meter, listening_model, running_client, sampled, unit
from tests.fuzz.hostile import MIB, Maker

Message: TypeAlias = dict[str, Any]
ROOT: Final = "ahp-root://"
AHP_SESSION: Final = "ahp-session:/measured"
NUMBERS_OF_DIAGNOSTICS: Final = 100

AHP_REQUESTS: Final[Mapping[str, Message]] = {
    "initialize": {"channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": "c", "initialSubscriptions": [ROOT]},
    "reconnect": {"channel": ROOT, "clientId": "c", "lastSeenServerSeq": 1, "subscriptions": [ROOT]},
    "subscribe": {"channel": AHP_SESSION},
    "fetchTurns": {"channel": "ahp-chat:/measured", "before": "t1", "limit": 1},
    "listSessions": {"channel": ROOT, "filter": {"status": "idle"}},
    "createSession": {"channel": "ahp-session:/other", "provider": "p", "config": {"a": "b"}, "model": {"id": "m"}},
    "disposeSession": {"channel": "ahp-session:/none"},
    "resolveSessionConfig": {"channel": ROOT, "workingDirectories": ["file:///"], "config": {"a": "b"}},
    "sessionConfigCompletions": {"channel": ROOT, "property": "model", "query": "m", "config": {"a": "b"}},
    "authenticate": {"channel": ROOT, "resource": "https://a.example", "token": "t"},
    "completions": {"channel": AHP_SESSION, "kind": "userMessage", "text": "/he", "offset": 3},
    "resourceRead": {"channel": AHP_SESSION, "uri": "file:///a", "encoding": "utf-8"},
    "resourceList": {"channel": AHP_SESSION, "uri": "file:///a"},
    "resourceResolve": {"channel": AHP_SESSION, "uri": "file:///a", "query": "b"},
    "resourceRequest": {"channel": AHP_SESSION, "uri": "file:///a", "reason": "b"},
}
"""Examples of the params of all requests of agent hosts' clients."""

MCP_REPLIES: Final[Mapping[str, Message]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
        "instructions": "a",
    },
    "tools/list": {
        "tools": [
            {
                "name": "t",
                "title": "a",
                "description": "a",
                "inputSchema": {"type": "object", "properties": {"p": {"type": "string", "enum": ["a"]}}},
                "annotations": {"title": "a"},
            }
        ],
        "nextCursor": "a",
    },
    "tools/call": {
        "content": [{"type": "text", "text": "a"}, {"type": "resource_link", "uri": "file:///a", "name": "a"}],
        "structuredContent": {"a": "b"},
    },
}
LSP_MESSAGES: Final[Mapping[str, Message]] = {
    "diagnostics": {
        "method": "textDocument/publishDiagnostics",
        "params": {
            "uri": "file:///a",
            "diagnostics": [
                {
                    "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
                    "message": "a",
                    "code": "c",
                    "source": "s",
                }
            ],
        },
    },
    "answer": {"id": 1, "result": {"items": [{"message": "a"}], "capabilities": {"a": ["b"]}}},
    "error": {"id": 1, "error": {"code": 1, "message": "a", "data": {"a": "b"}}},
}
STREAMED: Final[Mapping[str, Message]] = {
    "chat": {
        "id": "a",
        "choices": [{"index": 0, "delta": {"content": "a", "reasoning_content": "b"}}],
        "model": "m",
    },
    "chat call": {
        "choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{"}}]}}
        ]
    },
    "responses": {"type": "response.output_text.delta", "item_id": "a", "delta": "b"},
    "responses item": {
        "type": "response.output_item.done",
        "item": {"type": "function_call", "id": "a", "call_id": "b", "name": "t", "arguments": "{}"},
    },
    "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    "anthropic call": {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "a", "name": "t", "input": {"a": "b"}},
    },
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP"}]},
    "gemini call": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "t", "args": {"a": "b"}}}]}}]},
    "ollama": {"model": "m", "message": {"role": "assistant", "content": "a", "thinking": "b"}, "done": False},
    "error": {"type": "error", "error": {"type": "a", "code": "b", "message": "c", "metadata": {"a": "b"}}},
}


ACP_REQUESTS: Final[Mapping[str, Mapping[str, Route]]] = {
    "acp": v1_routes.REQUESTS,
    "acp2": draft_routes.REQUESTS,
}
"""The requests of editors by door: version 1, and version 2, whose answers and updates have another form."""


class DoorCase(NamedTuple):
    """A message to a door, ``acp``, ``acp2`` or ``ahp``: a request, or a notification without a response."""

    title: str
    door: str
    method: str
    params: Any


class Reading(NamedTuple):
    """A function of the server that reads what comes from elsewhere."""

    title: str
    read: Callable[[], object]


# --- what is measured ---------------------------------------------------------------------------------------------


def cases_of_doors(is_chosen: Callable[[str], bool] = bool, size: int = MIB) -> Iterator[DoorCase]:
    """Yield the messages of editors and of clients of agent hosts."""
    maker = Maker({"sessionId": "SESSION", "cwd": "PROJECT"}, size)
    for door, requests in ACP_REQUESTS.items():
        for method, route in requests.items():
            if is_chosen(f"{door}:{method}"):
                for title, params in maker.hostile(route.params):
                    yield DoorCase(f"{door}:{method} {title}", door, method, params)
    for method, example in AHP_REQUESTS.items():
        if is_chosen(f"ahp:{method}"):
            for title, params in maker.enlarged(example):
                yield DoorCase(f"ahp:{method} {title}", "ahp", method, params)
    seen: set[str] = set()
    for reducer, channel in (("root", ROOT), ("session", AHP_SESSION), ("chat", "ahp-chat:/measured")):
        for action in generated.actions(Random(1), reducer, 600):
            if action["type"] in seen or not is_chosen(f"ahp:{action['type']}"):
                continue
            seen.add(action["type"])
            for title, large in maker.enlarged(action):
                params = {"channel": channel, "clientSeq": 1, "action": large}
                yield DoorCase(f"ahp:{action['type']} {title}", "ahp", "dispatchAction", params)


def readings(is_chosen: Callable[[str], bool] = bool, size: int = MIB) -> Iterator[Reading]:
    """Yield the reading of what servers, providers and files bring."""
    maker = Maker({}, size)
    for name, result in MCP_REPLIES.items():
        if is_chosen(f"mcp:{name}"):
            for title, large in maker.enlarged({"jsonrpc": "2.0", "id": 1, "result": result}):
                yield _reading(f"mcp:{name} {title}", read_messages, orjson.dumps(large))
    for name, message in LSP_MESSAGES.items():
        if is_chosen(f"lsp:{name}"):
            for title, large in maker.enlarged({"jsonrpc": "2.0", **message}):
                body = orjson.dumps(large)
                yield _reading(f"lsp:{name} {title}", lambda text: read_message(text, NUMBERS_OF_DIAGNOSTICS), body)
    yield from _streams(maker, is_chosen)
    for name, text in maker.texts():
        if is_chosen("config"):
            yield _reading(f"config {name}", parse_toml, text)
            yield _reading(f"config value {name}", parse_toml, f"a = {orjson.dumps(text).decode()}\n")
            yield _reading(f"config array {name}", parse_toml, f"a = [\n{text}")
        if is_chosen("skill"):
            yield _reading(f"skill {name}", front_matter, f"---\n{text}\n---\nbody")
            yield _reading(f"skill body {name}", front_matter, f"---\nname: a\n---\n{text}")


def _streams(maker: Maker, is_chosen: Callable[[str], bool]) -> Iterator[Reading]:
    adapters = {load_adapter(name) for name in PROVIDERS if name != "scripted"}
    for name, event in STREAMED.items():
        if not is_chosen(f"stream:{name}"):
            continue
        for title, large in maker.enlarged(event):
            data = b"data: %b\n\n" % orjson.dumps(large)
            for adapter in adapters:

                def read(data: bytes, adapter: Any = adapter) -> None:
                    decoder = adapter.decoder(ModelRequest(model="m", system="", messages=[], stream=True))
                    for found in SseDecoder().feed(data):
                        # See HttpEvents: these become a ProviderProtocolError.
                        with suppress(LookupError, TypeError, AttributeError):
                            decoder.feed(*found)

                wire = type(adapter).__name__ if not isinstance(adapter, type) else adapter.__name__
                yield _reading(f"stream:{name} {title} ({wire})", read, data)


def _reading(title: str, read: Callable[[Any], object], data: object) -> Reading:
    def run() -> None:
        with suppress(JumpseatError, ValueError):
            read(data)

    return Reading(title, run)


# --- measuring ----------------------------------------------------------------------------------------------------


def measure_readings(cases: Iterable[Reading], report: Callable[[str, Held], None]) -> None:
    """Report the processor time of each reading. Those above the limit are measured twice."""
    for case in cases:
        held = _held(case)
        if held.too_long:
            held = min(held, _held(case))
        report(case.title, held)


def _held(case: Reading) -> Held:
    before = unit()
    with sampled() as sampler:
        began = time.thread_time()
        case.read()
        took = time.thread_time() - began
    return Held(took, max(before, unit()) if took > HELD_S else before, sampler.place)


async def measure_doors(
    cases: Iterable[DoorCase], meter: Meter, folder: Path, report: Callable[[str, Held], None]
) -> None:
    """Report for how long each message to a door holds up the event loop. Those above the limit are sent twice."""
    with listening_model() as model:
        async with running_client(folder, model, meter) as client:
            doors = {name: _Door(client.app, name, meter) for name in (*ACP_REQUESTS, "ahp")}
            await doors["acp"].open_acp(folder / "project", {"protocolVersion": 1, "clientCapabilities": {}})
            info = {"name": "e", "version": "1"}
            await doors["acp2"].open_acp(
                folder / "project", {"protocolVersion": 2, "info": info, "capabilities": {}}
            )
            await doors["ahp"].open_ahp(folder / "project")
            for case in cases:
                door = doors[case.door]
                held = await door.held(case)
                if held.too_long:
                    held = min(held, await door.held(case))
                report(case.title, held)


class _Door(asyncio.WriteTransport):
    """A client of one door, whose own time is not measured."""

    def __init__(self, app: App, name: str, meter: Meter) -> None:
        super().__init__()
        self._meter = meter
        self._known: dict[str, str] = {}
        self._unread = b""
        self._last_id = 0
        self._responses: dict[int, Message] = {}
        self._news = anyio.Event()
        connect = (
            app.doors.connect_acp if name in ACP_REQUESTS else lambda: app.doors.connect_ahp(EVERYTHING, LINES)
        )
        self._wire: Wire = connect().wire
        self._wire.connection_made(self)

    async def open_acp(self, project: Path, params: Message) -> None:
        """Initialize the connection, and create the session that messages are about."""
        await self.request("initialize", params)
        made = await self.request("session/new", {"cwd": str(project), "mcpServers": []})
        self._known = {"SESSION": made["result"]["sessionId"], "PROJECT": str(project)}

    async def open_ahp(self, project: Path) -> None:
        """The same for clients of agent hosts."""
        await self.request("initialize", AHP_REQUESTS["initialize"])
        await self.request(
            "createSession",
            {"channel": AHP_SESSION, "workingDirectories": [project.as_uri()], "provider": "jumpseat"},
        )
        await self.request("subscribe", {"channel": AHP_SESSION})

    async def held(self, case: DoorCase) -> Held:
        """Send a message, and return for how long it held up the event loop."""
        before = unit()
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        self._meter.longest = 0.0
        with sampled() as sampler:
            await self.request(case.method, self._filled(case.params), notify=case.method == "dispatchAction")
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
        longest = self._meter.longest
        return Held(longest, max(before, unit()) if longest > HELD_S else before, sampler.place)

    def _filled(self, params: Any) -> Any:
        if not isinstance(params, dict):
            return params
        members = cast("Message", params)
        return {
            name: self._known.get(value, value) if isinstance(value, str) and len(value) < 16 else value
            for name, value in members.items()
        }

    async def request(self, method: str, params: Any, *, notify: bool = False) -> Message:
        """Send a message, and return the response; empty if there is none in time."""
        self._last_id += 1
        number = self._last_id
        with self._meter.paused():
            message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if notify else {"id": number})}
            line = orjson.dumps(message) + b"\n"
        asyncio.get_running_loop().call_soon(self._wire.data_received, line)
        with anyio.move_on_after(PATIENCE_S if notify else 10 * PATIENCE_S):
            while number not in self._responses:
                await self._news.wait()
        return self._responses.pop(number, {})

    # --- the server calls these -----------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with self._meter.paused():
            self._unread += bytes(data)
            *lines, self._unread = self._unread.split(b"\n")
            for line in filter(None, lines):
                message = orjson.loads(line)
                if "method" not in message and isinstance(message.get("id"), int):
                    self._responses[message["id"]] = message
            self._news.set()
            self._news = anyio.Event()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: nothing is buffered."""

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """Do nothing: a door that was closed answers nothing."""

    def abort(self) -> None:
        """The same as for :meth:`close`."""
