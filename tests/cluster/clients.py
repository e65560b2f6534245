"""Clients of busy sessions, which connect again when they are cut off, and note what they are told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.abc import ByteStream, TaskGroup

from tests.cluster.histories import Answer, Attachment, History, JsonObject
from tests.soak.views import View
from tests.support.server import Wire, frame, request
from tests.support.tcp_forwarder import Forwarder

HANG_S: Final = 240.0
"""Time after which a run whose end was not announced counts as stuck: one replica may be paused again and again."""
CALL_S: Final = 30.0
"""Time that a client waits for a response before it connects again."""
TOOLS: Final = [{"name": "lookup", "description": "x", "skipPermission": True}]
_DELTAS: Final = 20
_CALL: Final[JsonObject] = {"tool_calls": [{"name": "lookup", "arguments": {}}]}
PROMPTS: Final = ("text it", "call it", "call often", "call often")


def scripted_provider(slowness: float) -> JsonObject:
    """Return a provider whose model streams text and calls the tool of its client."""
    words = [f"word {number} " for number in range(max(4, round(_DELTAS / slowness)))]
    text: JsonObject = {"deltas": words, "delay_ms": round(100 * slowness / len(words))}
    twice: JsonObject = {"tool_calls": [*_CALL["tool_calls"]] * 2}
    prompts: list[JsonObject] = [
        {"when": "text it", "turns": [text]},
        {"when": "call it", "turns": [_CALL, text]},
        {"when": "call often", "turns": [_CALL, twice, _CALL, text]},
        {"turns": [{"text": "done"}]},
    ]
    return {"type": "scripted", "script": {"prompts": prompts, "after_last": "repeat"}}


class LostError(Exception):
    """The connection is gone, or the server does not respond."""


class RefusedError(Exception):
    """The server responds with an error."""


class ClientWire(Wire):
    """A connection that keeps no messages; ``on_event`` gets the session events."""

    def __init__(self, stream: ByteStream, on_event: Callable[[JsonObject], None]) -> None:
        super().__init__(stream)
        self._on_event = on_event
        self._open: dict[int, anyio.Event] = {}
        self._responses: dict[int, JsonObject] = {}

    def check(self, message: JsonObject) -> None:
        self.messages.clear()
        if message.get("method") == "session.event":
            self._on_event(message["params"]["event"])
        elif "method" not in message and message["id"] in self._open:
            self._responses[message["id"]] = message
            self._open[message["id"]].set()

    async def request(self, method: str, params: JsonObject) -> Any:
        """Send a request and return its result.

        Raises:
            LostError: there is no response.
            RefusedError: the response is an error.
        """
        request_id = self.new_id()
        done = self._open[request_id] = anyio.Event()
        try:
            with anyio.fail_after(CALL_S):
                await self.send(frame(request(request_id, method, params)))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._cancel_at_end, tasks)
                    await done.wait()
                    tasks.cancel_scope.cancel()
        except (TimeoutError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise LostError(method) from None
        finally:
            del self._open[request_id]
        response = self._responses.pop(request_id, None)
        if response is None:
            raise LostError(method)
        if "error" in response:
            raise RefusedError(f"{method}: {response['error']}")
        return response["result"]

    async def _cancel_at_end(self, tasks: TaskGroup) -> None:
        await self.ended.wait()
        tasks.cancel_scope.cancel()


@dataclass
class BusySession:
    """A session with its clients. ``goes_on``: its runs go on at another replica, else they are interrupted."""

    history: History
    goes_on: bool
    races: bool
    """Whether all clients answer each tool call, instead of one."""
    with_sdk: bool = False
    """Whether one of the clients uses the official SDK."""
    slowness: float = 1
    provider: JsonObject = field(default_factory=lambda: scripted_provider(1))
    created: bool = False
    prompts: int = 0
    stuck: list[str] = field(default_factory=list[str])


class BusyClient:
    """One client of a session. The first one of a session prompts it."""

    def __init__(
        self, session: BusySession, number: int, balancer: Forwarder, choose: random.Random, counts: Counter[str]
    ) -> None:
        self.name = f"client {number} of {session.history.session}"
        self.rests = False
        """Whether to send no more prompts."""
        self.at_rest = anyio.Event()
        """Set when the client rests, and no run of the session is left."""
        self.prompted = 0
        self.has_prompted = anyio.Event()
        self.session = session
        self._first = number == 0
        self._balancer = balancer
        self._choose = choose
        self._counts = counts
        self._attachment: Attachment | None = None
        self._view = View()
        self._news = anyio.Event()
        self._answers = 0

    @property
    def attachment(self) -> Attachment | None:
        """The present attachment; ``None`` while the client is not attached."""
        return self._attachment

    async def live(self) -> None:
        """Connect and work, again and again, until cancelled."""
        while True:
            try:
                stream = await anyio.connect_tcp("127.0.0.1", self._balancer.port)
            except OSError:
                await anyio.sleep(0.1)
                continue
            wire = ClientWire(stream, self._take)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wire.read)
                self._tasks, self._wire = tasks, wire
                try:
                    await self._work(wire)
                except (LostError, RefusedError) as error:
                    self._count(f"{type(error).__name__} {error}")
                finally:
                    self._attachment = None
                    await wire.hang_up()
                    tasks.cancel_scope.cancel()
            assert wire.problem is None, wire.problem
            await anyio.sleep(self._choose.uniform(0, 0.5))

    async def _work(self, wire: ClientWire) -> None:
        await wire.request("connect", {})
        await self._attach(wire)
        session = {"sessionId": self.session.history.session}
        events = (await wire.request("session.getMessages", session))["events"]
        completed = {event["data"]["requestId"] for event in events if event["type"] == "external_tool.completed"}
        for event in events[-30:]:
            if event["type"] == "external_tool.requested" and event["data"]["requestId"] not in completed:
                self._answer_soon(event["data"]["requestId"])
        self._view.working = (await wire.request("session.metadata.isProcessing", session))["processing"]
        while True:
            await self._wait_for_idle(wire)
            if self.rests or not self._first:
                self.at_rest.set()
                await self._wait_for_news(wire)
                continue
            await anyio.sleep(self._choose.uniform(0, 0.5) * self.session.slowness)
            self.session.prompts += 1
            # The model of sessions with the official SDK gives all calls the same id.
            kind = "text it" if self.session.with_sdk else self._choose.choice(PROMPTS)
            prompt = f"{kind} {self.session.prompts}"
            since = self._view.idles
            await wire.request("session.send", {**session, "prompt": prompt})
            self.prompted += 1
            self.has_prompted.set()
            # The events of a short run may have come before the response.
            self._view.working = self._view.working or self._view.idles == since

    async def _attach(self, wire: ClientWire) -> None:
        history = self.session.history
        self._attachment, self._view = Attachment(self.name), View()
        history.attachments.append(self._attachment)
        options: JsonObject = {
            "sessionId": history.session,
            "provider": self.session.provider,
            "streaming": self._first,
        }
        options["model"] = "fake-model"
        if self._first:
            # A tool belongs to one client; every client can answer a call.
            options["tools"] = TOOLS
        if not self.session.created:
            assert self._first
            await wire.request("session.create", options)
            self.session.created = True
            return
        if self.session.goes_on:
            options["continuePendingWork"] = True
        await wire.request("session.resume", options)

    async def _wait_for_idle(self, wire: ClientWire) -> None:
        with anyio.move_on_after(HANG_S) as limit:
            while self._view.working:
                await self._wait_for_news(wire)
        if limit.cancelled_caught:
            assert self._attachment is not None
            last = [event["type"] for event in self._attachment.events[-8:]]
            self.session.stuck.append(f"{self.name} was not told of the end of a run for {HANG_S} s, after {last}")
            raise LostError("stuck")

    async def _wait_for_news(self, wire: ClientWire) -> None:
        if wire.ended.is_set():
            raise LostError("end")
        async with anyio.create_task_group() as tasks:

            async def end() -> None:
                await wire.ended.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end)
            await self._news.wait()
            tasks.cancel_scope.cancel()

    def _take(self, event: JsonObject) -> None:
        if self._attachment is None:
            return
        if event.get("ephemeral") and event["type"].endswith("_delta"):
            # Nothing else of it is compared, and there are many.
            event = {"id": event["id"], "type": event["type"], "ephemeral": True, "data": {}}
        self._attachment.events.append(event)
        self._view.take(event)
        if event["type"] == "external_tool.requested":
            self._answer_soon(event["data"]["requestId"])
        self.wake()

    def wake(self) -> None:
        """Let the client look again at what it waits for."""
        self._news.set()
        self._news = anyio.Event()

    def _answer_soon(self, request_id: str) -> None:
        if self._first or self.session.races:
            self._tasks.start_soon(self._answer, self._wire, request_id)

    async def _answer(self, wire: ClientWire, request_id: str) -> None:
        await anyio.sleep(self._choose.choice([0, 0, 0.01, 0.1, 0.5]) * self.session.slowness)
        self._answers += 1
        text = f"{self.name} answers {self._answers}"
        answer = {"sessionId": self.session.history.session, "requestId": request_id, "result": text}
        accepted: bool | None = None
        unknown = False
        try:
            while accepted is None:
                try:
                    accepted = (await wire.request("session.tools.handlePendingToolCall", answer))["success"]
                except RefusedError as error:
                    # The store cannot be reached, or the owner is gone: what is answered already is refused.
                    self._count(f"{type(error).__name__} {error}")
                    unknown = unknown or "outcome_unknown" in str(error)
                    await anyio.sleep(0.5)
            # The refusal may be due to the same answer, sent before.
            accepted = accepted or (None if unknown else False)
        except LostError:
            pass
        finally:
            self.session.history.answers.append(Answer(self.name, request_id, text, accepted))

    def _count(self, what: str) -> None:
        self._counts[what[:100]] += 1
