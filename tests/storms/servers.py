"""A provider of eight wires and an MCP server on loopback, each of which fails once at a place of a run's plan."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from tests.storms.answers import WIRES, Answer, Call, JsonObject, WireFormat

PROVIDER_FAULTS: Final = ("break", "end", "stall", "overload", "refusal", "garbage", "silence", "slow")
MCP_FAULTS: Final = ("lost", "refused", "break before", "break after", "stall", "garbage", "failure")

REFUSALS: Final = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
PASSING: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
MOST_PASSING: Final = 2
"""The number of failures in a row that a run survives."""
_REFUSAL_BODIES: Final = (
    b'{"error": {"message": "refused by the storm", "type": "storm"}}',
    b"<html><body>Bad gateway</body></html>",
    b"",
    b"\xff\x00",
)
_MARK: Final = re.compile(rb"storm-(\d+)-(\d+)-")


@dataclass
class Plan:
    """What goes wrong in one run: ``fault`` from request number ``request`` on, in ``times`` requests."""

    number: int
    wire: str
    fault: str
    request: int
    times: int
    seed: int
    mcp_fault: str | None = None
    requests: int = 0
    mcp_calls: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    """How often each call has run, by its token."""

    @property
    def passes(self) -> bool:
        """Whether the same requests succeed when they are repeated."""
        if (
            self.fault == "refusal"
            and not {self.refusal_of(self.request + n)[0] for n in range(self.times)} <= PASSING
        ):
            return False
        return self.times <= MOST_PASSING and self.fault != "garbage"

    def refusal_of(self, request: int) -> tuple[int, bytes]:
        """Return the status and the body with which a request is refused."""
        chance = random.Random(f"{self.seed}-{request}")
        return chance.choice(REFUSALS), chance.choice(_REFUSAL_BODIES)

    def answer(self, prompt: int, body: bytes) -> Answer:
        """Return the answer of a model that works: two calls, then a text."""
        mark = f"{self.number}-{prompt}"
        if f"token-{mark}-0".encode() in body:
            return Answer("All done.", ("It is ", "do", f"ne-{mark}."))
        names = ["note", "note" if self.mcp_fault is None else "storm-bump"]
        calls = [
            Call(f"call_{mark.replace('-', '_')}_{index}", name, {"token": f"token-{mark}-{index}"})
            for index, name in enumerate(names)
        ]
        return Answer("Two calls.", ("I look ", "twice."), calls)


class Storm:
    """The plans of all runs, and the servers that follow them."""

    def __init__(self) -> None:
        self.plans: dict[int, Plan] = {}
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._serve_request(reader, writer):
                pass
        writer.close()

    async def _serve_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection can be used again."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = path.split("?")[0].strip("/").split("/")
        if parts[0] == "mcp":
            return await self._serve_mcp(self.plans[int(parts[1])], method, headers, body, reader, writer)
        marks = _MARK.findall(body)
        if not marks:
            # A question about models.
            return await _send(writer, 404, b"{}")
        number, prompt = marks[-1]
        return await self._serve_model(self.plans[int(number)], int(prompt), body, reader, writer)

    # --- the provider ---------------------------------------------------------------------------------------------

    async def _serve_model(
        self, plan: Plan, prompt: int, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        wire = WIRES[plan.wire]
        pieces = wire.encode(plan.answer(prompt, body))
        request, plan.requests = plan.requests, plan.requests + 1
        # The second prompt meets a provider that works.
        broken = prompt == 1 and plan.request <= request < plan.request + plan.times
        if not broken:
            return await _stream(writer, wire, pieces)
        chance = random.Random(f"{plan.seed}-{request}")
        match plan.fault:
            case "refusal":
                status, refusal = plan.refusal_of(request)
                return await _send(writer, status, refusal, "Retry-After: 0\r\n" if status == 429 else "")
            case "silence":
                await reader.read(1)
                return False
            case "slow":
                whole = b"".join(pieces)
                return await _stream(writer, wire, [whole[at : at + 7] for at in range(0, len(whole), 7)])
            case "overload":
                return await _stream(writer, wire, [*pieces[: chance.randrange(len(pieces))], wire.overload])
            case "garbage":
                pieces.insert(chance.randrange(len(pieces)), chance.choice(_garbage(chance)))
                return await _stream(writer, wire, pieces)
            case _:
                whole = b"".join(pieces)
                part = whole[: chance.randrange(len(whole))]
                await _stream(writer, wire, [part], complete=plan.fault == "end")
                if plan.fault == "stall":
                    await reader.read(1)
                return plan.fault == "end"

    # --- the MCP server -------------------------------------------------------------------------------------------

    async def _serve_mcp(
        self,
        plan: Plan,
        method: str,
        headers: dict[str, str],
        body: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if method != "POST":
            return await _send(writer, 405 if method == "GET" else 200, b"")
        message: JsonObject = json.loads(body)
        if "id" not in message:
            return await _send(writer, 202, b"")
        if message["method"] == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "storm", "version": "1"}
            result: JsonObject = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            return await _reply(writer, message, result, f"Mcp-Session-Id: s{plan.requests}\r\n")
        if message["method"] == "tools/list":
            schema = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}
            return await _reply(writer, message, {"tools": [{"name": "bump", "inputSchema": schema}]})
        if message["method"] != "tools/call":
            return await _reply(writer, message, {})
        first, plan.mcp_calls = plan.mcp_calls == 0, plan.mcp_calls + 1
        fault = plan.mcp_fault if first else None
        if fault == "lost":
            return await _send(writer, 404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}')
        if fault in ("refused", "break before"):
            return await _send(writer, 503, b"busy") if fault == "refused" else False
        token = message["params"]["arguments"]["token"]
        plan.runs[token] += 1
        if fault == "break after":
            return False
        if fault == "stall":
            await reader.read(1)
            return False
        if fault == "garbage":
            return await _send(writer, 200, b'{"jsonrpc":')
        if fault == "failure":
            content = [{"type": "text", "text": "it failed"}]
            return await _reply(writer, message, {"content": content, "isError": True})
        return await _reply(writer, message, {"content": [{"type": "text", "text": f"bumped {token}"}]})


def _garbage(chance: random.Random) -> Sequence[bytes]:
    return (
        chance.randbytes(40) + b"\n\n",
        b"data: {not json}\n\n",
        b"data: [1, 2]\n\n",
        b"data: null\n\n",
        b"<html><body>502</body></html>\n\n",
        b'{"half": \n',
        b"\r\n\r\n\r\n",
    )


async def _stream(
    writer: asyncio.StreamWriter, wire: WireFormat, pieces: Sequence[bytes], *, complete: bool = True
) -> bool:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % wire.content_type.encode()
    )
    for piece in pieces:
        if piece:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    if complete:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return complete


async def _reply(writer: asyncio.StreamWriter, message: JsonObject, result: JsonObject, more: str = "") -> bool:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return await _send(writer, 200, body, more)


async def _send(writer: asyncio.StreamWriter, status: int, body: bytes, more: str = "") -> bool:
    head = f"HTTP/1.1 {status} Storm\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return True


@asynccontextmanager
async def storm() -> AsyncGenerator[Storm]:
    """Run the servers on a free port of loopback."""
    made = Storm()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, limit=1 << 22)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made


def plan_of(number: int, seed: int) -> Plan:
    """Return the plan of a run, which depends on its number and the seed alone."""
    chance = random.Random(f"{seed}-{number}")
    return Plan(
        number,
        wire=[*WIRES][number % len(WIRES)],
        fault=chance.choice(PROVIDER_FAULTS),
        request=chance.randrange(3),
        times=chance.choice((1, 1, 1, 2, 9)),
        seed=chance.randrange(1 << 30),
        mcp_fault=chance.choice(MCP_FAULTS) if chance.random() < 0.25 else None,
    )
