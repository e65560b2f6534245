"""The clients of the fault test: each uses one session, and comes back when its replica is gone."""

from __future__ import annotations

import random
import uuid
from contextlib import suppress
from typing import Any, Final

import anyio

from tests.cluster.histories import Answer, Attachment, History, JsonObject
from tests.support.server import Wire

TOOL: Final = {"name": "lookup", "description": "x", "parameters": {"type": "object"}, "skipPermission": True}
TURNS: Final = 12
ANSWER_S: Final = 45.0


def provider() -> JsonObject:
    """Return a model that calls a tool, streams a text, and begins again."""
    call: JsonObject = {"tool_calls": [{"name": "lookup", "arguments": {}}]}
    text = {"deltas": [f"word {number} " for number in range(8)], "delay_ms": 15}
    return {"type": "scripted", "script": {"prompts": [{"when": "go", "turns": [call, text]}]}}


class User:
    """A client with one session. A ``guest`` only watches; the host prompts and answers the calls of its tool."""

    def __init__(self, name: str, history: History, ports: list[int], rng: random.Random, *, guest: bool) -> None:
        self.name = name
        self.history = history
        self.runs = 0
        self.reconnects = 0
        self.refused = 0
        self.stuck: list[str] = []
        self._ports = ports
        self._rng = rng
        self._guest = guest
        self._continues = rng.random() < 0.5
        self._created = guest
        self.stopping = False
        self.current: Attachment | None = None
        self.connected = False

    async def live(self) -> None:
        """Connect, work and come back, until cancelled. A client that is ``stopping`` sends no more prompts."""
        while True:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, AssertionError):
                await self._connection()
            self.reconnects += 1
            await anyio.sleep(0.2)

    async def _connection(self) -> None:
        with anyio.fail_after(5):
            stream = await anyio.connect_tcp("127.0.0.1", self._rng.choice(self._ports))
        wire = Wire(stream)
        wire.wait_s = ANSWER_S
        seen = Attachment(self.name)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wire.read)
                tasks.start_soon(self._watch, wire, seen)
                try:
                    await self._work(wire, seen)
                finally:
                    with anyio.CancelScope(shield=True):
                        await wire.hang_up()
                    tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            if group.split(AssertionError)[1] is not None:
                raise

    async def _work(self, wire: Wire, seen: Attachment) -> None:
        await wire.call("connect", {})
        options: dict[str, Any] = {"sessionId": self.history.session, "provider": provider(), "streaming": True}
        if not self._guest:
            options["tools"] = [TOOL]
        opened = await self._ask(wire, "session.resume", {**options, "continuePendingWork": self._continues})
        if opened is None and not self._created:
            opened = await self._ask(wire, "session.create", options)
        if opened is None:
            await anyio.sleep(0.5)
            return
        self._created = True
        self.history.attachments.append(seen)
        self.current = seen
        self.connected = True
        pending = {"sessionId": self.history.session}
        try:
            # Questions that were asked before the client came.
            found = None if self._guest else await self._ask(wire, "session.tools.listPendingRequests", pending)
            for item in found["items"] if found is not None else ():
                await self._answer(wire, item["requestId"])
            while not wire.ended.is_set():
                if self._guest or self.stopping:
                    await anyio.sleep(0.1)
                    continue
                since = len(seen.events)
                sent = await self._ask(wire, "session.send", {"sessionId": self.history.session, "prompt": "go"})
                if sent is None:
                    await anyio.sleep(0.5)
                    continue
                await self._wait_for_idle(wire, seen, since)
        finally:
            self.connected = False

    async def _wait_for_idle(self, wire: Wire, seen: Attachment, since: int) -> None:
        with anyio.move_on_after(ANSWER_S) as scope:
            while not wire.ended.is_set():
                if any(event["type"] == "session.idle" for event in seen.events[since:]):
                    self.runs += 1
                    return
                await anyio.sleep(0.02)
        if scope.cancelled_caught:
            self.stuck.append(f"{self.name}: no idle within {ANSWER_S} s after {len(seen.events)} events")

    async def _ask(self, wire: Wire, method: str, params: JsonObject) -> Any:
        """Return the result of a request; ``None`` for an error."""
        answer = await wire.response(await wire.ask(method, params))
        if "error" in answer:
            self.refused += 1
            return None
        return answer["result"]

    async def _watch(self, wire: Wire, seen: Attachment) -> None:
        place = 0
        async with anyio.create_task_group() as tasks:
            while True:
                await wire.wait_for_message_at(place)
                message = wire.messages[place]
                place += 1
                if message.get("method") != "session.event":
                    continue
                event = message["params"]["event"]
                seen.events.append(event)
                if event["type"] == "external_tool.requested" and not self._guest:
                    tasks.start_soon(self._answer, wire, event["data"]["requestId"])

    async def _answer(self, wire: Wire, request: str) -> None:
        await anyio.sleep(self._rng.random() * 0.1)
        text = f"found by {uuid.uuid4().hex}"
        params = {"sessionId": self.history.session, "requestId": request, "result": text}
        accepted: bool | None = None
        with suppress(AssertionError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            for _ in range(60):
                # An error says that the store cannot be reached, or that the outcome is unknown.
                result = await self._ask(wire, "session.tools.handlePendingToolCall", params)
                if result is not None:
                    accepted = result["success"]
                    break
                await anyio.sleep(0.5)
        self.history.answers.append(Answer(self.name, request, text, accepted))
