"""A provider of eight wires and an MCP server on loopback, each of which fails once at a place of a run's plan."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.storms.answers import WIRES, Answer, Call, JsonObject, WireFormat
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply, text_reply

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
    """The plans of all runs, and the server that follows them: both the provider and the MCP server."""

    def __init__(self) -> None:
        self.plans: dict[int, Plan] = {}
        self.server = ModelServer(answer=self._answer)

    @property
    def url(self) -> str:
        return self.server.url

    def _answer(self, request: SeenRequest) -> Reply:
        # Thousands of runs would fill the memory.
        self.server.requests.clear()
        parts = request.path.split("?")[0].strip("/").split("/")
        if parts[0] == "mcp":
            return _call_mcp(self.plans[int(parts[1])], request)
        marks = _MARK.findall(request.body)
        if not marks:
            # A question about models.
            return json_reply({}, status=404)
        number, prompt = marks[-1]
        return _call_model(self.plans[int(number)], int(prompt), request.body)


def _call_model(plan: Plan, prompt: int, body: bytes) -> Reply:
    wire = WIRES[plan.wire]
    pieces = wire.encode(plan.answer(prompt, body))
    request, plan.requests = plan.requests, plan.requests + 1
    # The second prompt meets a provider that works.
    if prompt != 1 or not plan.request <= request < plan.request + plan.times:
        return _stream(wire, pieces)
    chance = random.Random(f"{plan.seed}-{request}")
    match plan.fault:
        case "refusal":
            status, refusal = plan.refusal_of(request)
            return Reply([refusal], status, {"Retry-After": "0"} if status == 429 else {}, length=len(refusal))
        case "silence":
            return _SILENCE
        case "slow":
            whole = b"".join(pieces)
            return _stream(wire, [whole[at : at + 7] for at in range(0, len(whole), 7)])
        case "overload":
            return _stream(wire, [*pieces[: chance.randrange(len(pieces))], wire.overload])
        case "garbage":
            pieces.insert(chance.randrange(len(pieces)), chance.choice(_garbage(chance)))
            return _stream(wire, pieces)
        case _:
            whole = b"".join(pieces)
            part = whole[: chance.randrange(len(whole))]
            return _stream(wire, [part], {"end": "end", "stall": "hang"}.get(plan.fault, "cut"))


def _call_mcp(plan: Plan, request: SeenRequest) -> Reply:
    if request.method != "POST":
        return json_reply({}, status=405 if request.method == "GET" else 200)
    message: JsonObject = request.json
    if "id" not in message:
        return Reply(status=202, length=0)
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "storm", "version": "1"}
        result: JsonObject = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        return _result(message, result, {"Mcp-Session-Id": f"s{plan.requests}"})
    if message["method"] == "tools/list":
        schema = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}
        return _result(message, {"tools": [{"name": "bump", "inputSchema": schema}]})
    if message["method"] != "tools/call":
        return _result(message, {})
    first, plan.mcp_calls = plan.mcp_calls == 0, plan.mcp_calls + 1
    fault = plan.mcp_fault if first else None
    if fault == "lost":
        return json_reply({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "gone"}}, status=404)
    if fault == "refused":
        return json_reply("busy", status=503)
    if fault == "break before":
        return _BREAK
    token = message["params"]["arguments"]["token"]
    plan.runs[token] += 1
    if fault == "break after":
        return _BREAK
    if fault == "stall":
        return _SILENCE
    if fault == "garbage":
        return text_reply('{"jsonrpc":', content_type="application/json")
    if fault == "failure":
        return _result(message, {"content": [{"type": "text", "text": "it failed"}], "isError": True})
    return _result(message, {"content": [{"type": "text", "text": f"bumped {token}"}]})


_SILENCE: Final = Reply(silent=True, ending="hang")
_BREAK: Final = Reply(silent=True, ending="cut")


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


def _stream(wire: WireFormat, pieces: Sequence[bytes], ending: str = "end") -> Reply:
    # An empty chunk would be the end of the body.
    return Reply([piece for piece in pieces if piece], headers={"Content-Type": wire.content_type}, ending=ending)


def _result(message: JsonObject, result: JsonObject, headers: Mapping[str, str] | None = None) -> Reply:
    return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


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
