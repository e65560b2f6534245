"""SIGKILL at named points of a tree of sub-agents, and what the next processes make of the log.

The client stops the server exactly at most points: it holds back its answer to a hook, to a question for a token
(asked before each request to the model) or to a tool call. The model stops it at the others: its answer never ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import pytest

from jumpseat.adapters.scripted import Script
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat_testkit.model.server import ModelServer
from tests.soak.views import problem_of_agents, problem_of_calls, problem_of_parents
from tests.support.limits import WAIT_S
from tests.support.server import JsonObject, RunningServer, calls, frame, running_server
from tests.support.wire_rules import check_calls

pytestmark = pytest.mark.anyio

Turns: TypeAlias = list[JsonObject]
HUNG: Final[JsonObject] = {"deltas": ["I ", "begin"], "hang": True}
SAID: Final[JsonObject] = {"text": "done"}
EFFECT: Final = calls("count", "call-effect")


def task(prompt: str, mode: str = "sync") -> JsonObject:
    """Return the call that starts a sub-agent; the prompt is its id and the name of the agent, too."""
    given = {"name": prompt, "agent_type": "task", "description": "x", "prompt": prompt, "mode": mode}
    return {"id": f"call-{prompt}", "name": "task", "arguments": given}


def turn(*tool_calls: JsonObject) -> JsonObject:
    return {"tool_calls": list(tool_calls)}


@dataclass
class Seen:
    """The events and the requests of a server so far, in order."""

    events: list[JsonObject] = field(default_factory=list[JsonObject])
    requests: list[tuple[str, JsonObject]] = field(default_factory=list[tuple[str, JsonObject]])

    def has(self, kind: str, **data: Any) -> bool:
        """Return whether there was an event of a sub-agent with these values."""
        return any(
            event["type"] == kind and "agentId" in event and all(event["data"].get(k) == data[k] for k in data)
            for event in self.events
        )

    def main(self, kind: str) -> bool:
        """Return whether there was an event of the main agent."""
        return any(event["type"] == kind and "agentId" not in event for event in self.events)

    def asks(self, name: str, **given: Any) -> bool:
        """Return whether the last request has a name and these values."""
        last, params = self.requests[-1] if self.requests else ("", {})
        return last == name and all(params.get(key) == given[key] for key in given)

    def agent_asks(self, name: str) -> bool:
        """Return whether the last request is a hook of a sub-agent."""
        agents = {event["agentId"] for event in self.events if "agentId" in event}
        return self.asks(name) and self.requests[-1][1]["sessionId"] in agents

    @property
    def answers(self) -> int:
        """The number of messages of sub-agents."""
        return sum(event["type"] == "assistant.message" and "agentId" in event for event in self.events)

    @property
    def pending(self) -> int:
        """The number of tool calls that the client has been asked to run."""
        return sum(event["type"] == "external_tool.requested" for event in self.events)


@dataclass(frozen=True)
class Point:
    """A point at which a server is killed: the answers to each prompt, and the condition that is met then."""

    reached: Callable[[Seen], bool]
    prompts: dict[str, Turns]
    holds_tools: bool = False
    """Whether the client runs its tools, but never answers."""


SYNC: Final[Turns] = [turn(task("scout")), SAID]
BACKGROUND: Final[Turns] = [turn(task("scout", "background")), SAID]

POINTS: Final[dict[str, Point]] = {
    "while the call that starts an agent is written": Point(
        lambda seen: seen.main("assistant.tool_call_delta"), {"begin": [{**turn(task("scout")), "hang": True}]}
    ),
    "before an agent is announced": Point(
        lambda seen: seen.asks("preToolUse", toolName="task"), {"begin": SYNC, "scout": [SAID]}
    ),
    "after an agent is announced": Point(
        lambda seen: seen.agent_asks("userPromptSubmitted"), {"begin": SYNC, "scout": [SAID]}
    ),
    "in the first delta of an agent": Point(
        lambda seen: seen.has("assistant.message_delta"), {"begin": SYNC, "scout": [HUNG]}
    ),
    "in a tool call of an agent": Point(
        lambda seen: seen.pending == 1, {"begin": SYNC, "scout": [EFFECT, SAID]}, holds_tools=True
    ),
    "in a command of an agent": Point(
        lambda seen: seen.has("tool.execution_partial_result"),
        {"begin": SYNC, "scout": [calls("bash", "call-bash", command="echo ran | tee -a effects; sleep 60"), SAID]},
    ),
    "between a result and the next request": Point(
        lambda seen: seen.has("tool.execution_complete") and seen.asks("providerToken.getToken"),
        {"begin": SYNC, "scout": [EFFECT, SAID]},
    ),
    "two agents side by side, one of which has ended": Point(
        lambda seen: seen.has("subagent.completed") and seen.pending == 1,
        {"begin": [turn(task("scout"), task("quick")), SAID], "scout": [EFFECT, SAID], "quick": [SAID]},
        holds_tools=True,
    ),
    "an agent in the background while its parent is idle": Point(
        lambda seen: seen.main("assistant.idle") and seen.pending == 1,
        {"begin": BACKGROUND, "scout": [EFFECT, SAID]},
        holds_tools=True,
    ),
    "while a notification waits for its turn": Point(
        lambda seen: seen.has("subagent.completed") and seen.main("assistant.message_delta"),
        {"begin": [turn(task("scout", "background")), HUNG], "scout": [EFFECT, SAID]},
    ),
    "between a later answer of an agent and its notification": Point(
        lambda seen: seen.answers == 2 and seen.main("assistant.message_delta"),
        {
            "begin": [
                turn(task("scout", "background")),
                calls("read_agent", "call-read", agent_id="scout", wait=True),
                calls("write_agent", "call-more", agent_id="scout", message="more"),
                HUNG,
            ],
            "scout": [SAID],
            "more": [SAID],
        },
    ),
    "in the turn of a notification": Point(
        lambda seen: seen.main("system.notification") and seen.asks("providerToken.getToken"),
        {"begin": BACKGROUND, "scout": [EFFECT, SAID]},
    ),
    "in an agent of an agent": Point(
        lambda seen: seen.pending == 1,
        {"begin": SYNC, "scout": [turn(task("helper")), SAID], "helper": [EFFECT, SAID]},
        holds_tools=True,
    ),
    "in an agent in the background of an agent": Point(
        lambda seen: seen.pending == 1 and any(name == "agentStop" for name, _ in seen.requests),
        {"begin": SYNC, "scout": [turn(task("helper", "background")), SAID], "helper": [EFFECT, SAID]},
        holds_tools=True,
    ),
    "during the end of an agent": Point(
        lambda seen: seen.agent_asks("agentStop"), {"begin": SYNC, "scout": [EFFECT, SAID]}
    ),
    "between the end of an agent and the result of its call": Point(
        lambda seen: seen.asks("postToolUse", toolName="task"), {"begin": SYNC, "scout": [EFFECT, SAID]}
    ),
}


class Client:
    """A client that answers everything until a point is reached, and nothing afterwards."""

    def __init__(self, server: RunningServer, session: str, effects: Counter[str], point: Point | None) -> None:
        self.reached = anyio.Event()
        self._wire = server.wire
        self._session = session
        self._effects = effects
        self._point = point
        self._seen = Seen()

    async def run(self) -> None:
        position = 0
        while True:
            await self._wire.wait_for_message_at(position)
            message = self._wire.messages[position]
            position += 1
            if "method" in message:
                await self._take(message["method"], message)

    async def _take(self, method: str, message: JsonObject) -> None:
        params: JsonObject = message["params"]
        event: JsonObject = params.get("event", {})
        if event:
            self._seen.events.append(event)
        elif "id" in message:
            is_hook = method == "hooks.invoke"
            self._seen.requests.append((params["hookType"], params["input"]) if is_hook else (method, params))
        asked = event.get("type") == "external_tool.requested"
        if asked:
            self._effects[event["data"]["toolCallId"]] += 1
        if self._point is not None and self._point.reached(self._seen):
            self.reached.set()
        elif asked and not (self._point is not None and self._point.holds_tools):
            ids = {"sessionId": self._session, "requestId": event["data"]["requestId"]}
            await self._wire.ask("session.tools.handlePendingToolCall", ids | {"result": "counted"})
        elif "id" in message:
            answer = {"output": None} if method == "hooks.invoke" else {"token": "t"}
            await self._wire.send(frame({"jsonrpc": "2.0", "id": message["id"], "result": answer}))


@asynccontextmanager
async def opened(
    folder: Path, model: ModelServer, session: str, effects: Counter[str], point: Point | None = None
) -> AsyncGenerator[tuple[RunningServer, str, Client]]:
    """Start a server and open the session in it, with a client."""
    options: JsonObject = {
        "provider": {"type": "openai", "baseUrl": model.url, "hasBearerTokenProvider": True},
        "model": "scripted",
        "tools": [{"name": "count", "description": "x", "skipPermission": True}],
        "workingDirectory": str(folder),
        "streaming": True,
        "hooks": True,
    }
    async with running_server(folder, args=["--yolo"]) as server, anyio.create_task_group() as tasks:
        method = "session.resume" if session else "session.create"
        opened = await server.wire.call(method, options | ({"sessionId": session} if session else {}))
        session = opened["sessionId"]
        client = Client(server, session, effects, point)
        tasks.start_soon(client.run)
        yield server, session, client
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("name", POINTS)
async def test_nothing_is_lost_and_nothing_runs_twice_after_a_kill(tmp_path: Path, name: str) -> None:
    point = POINTS[name]
    report = [calls("list_agents", "call-list", include_completed=True, scope="all"), {"text": "reported"}]
    prompts = [
        {"when": text, "turns": turns} for text, turns in {"report": report, **point.prompts, ".": [SAID]}.items()
    ]
    effects: Counter[str] = Counter()
    async with ModelServer(Script.model_validate({"prompts": prompts})) as model:
        async with opened(tmp_path, model, "", effects, point) as (server, session, client):
            await server.wire.call("session.send", {"sessionId": session, "prompt": "begin"})
            with anyio.fail_after(WAIT_S):
                await client.reached.wait()
            await server.kill()
            await server.wire.ended.wait()
            told = server.wire.events(session)
        log_path = server.log_of(session)
        before = log_path.read_bytes()
        ran = dict(effects), _commands_run(tmp_path)

        # A process that is killed right after the resume must not change the outcome.
        async with opened(tmp_path, model, session, effects) as (server, _, _):
            await server.kill()
            await server.wire.ended.wait()
        after_resume = _ends(log_path)
        async with opened(tmp_path, model, session, effects) as (server, _, _):
            assert _ends(log_path) == after_resume
            log: list[JsonObject] = (await server.wire.call("session.getMessages", {"sessionId": session}))[
                "events"
            ]
            events = await server.wire.prompt(session, "report")
            told_later = [event["data"]["kind"] for event in events if event["type"] == "system.notification"]
            listed = next(e["data"] for e in events if e["type"] == "tool.execution_complete")["result"]["content"]

        # Nothing is lost.
        assert log_path.read_bytes().startswith(before)
        places = [
            next(p for p, one in enumerate(log) if one == event) for event in told if "ephemeral" not in event
        ]
        assert places == sorted(places)
        problem = problem_of_calls(log, ended=True) or problem_of_agents(log, ended=True) or problem_of_parents(log)
        assert problem is None, problem

        # Nothing runs twice, and what was cut short says so.
        assert (dict(effects), _commands_run(tmp_path)) == ran
        assert all(count == 1 for count in effects.values())
        results_before = _results(told)
        for call, result in _results(log).items():
            assert result == results_before.get(call, INTERRUPTED)
        started = {e["agentId"]: e["data"] for e in log if e["type"] == "subagent.started"}
        ended_before = {e["agentId"] for e in told if e["type"] == "subagent.completed"}
        failed = {e["agentId"] for e in log if e["type"] == "subagent.failed"}
        assert failed == started.keys() - ended_before

        # The model is told about each agent, and each request is valid.
        assert all(agent in listed for agent in started)
        in_background = {
            agent
            for agent, data in started.items()
            if data["executionMode"] == "background" and "parentId" not in data
        }
        told_before = {e["data"]["kind"]["agentId"] for e in told if e["type"] == "system.notification"}
        assert [kind["agentId"] for kind in told_later] == list(in_background - told_before)
        for request in model.requests:
            check_calls("chat", request)


def _results(events: list[JsonObject]) -> dict[tuple[str, str], str]:
    """Return the result of each call, by agent and call."""
    return {
        (event.get("agentId", ""), event["data"]["toolCallId"]): (
            event["data"]["result"]["content"] if event["data"]["success"] else event["data"]["error"]["message"]
        )
        for event in events
        if event["type"] == "tool.execution_complete"
    }


def _ends(log_path: Path) -> Counter[str]:
    """Count the events of a log, without those that each resume adds."""
    return Counter(
        kind
        for line in log_path.read_text().splitlines()
        for kind in [line.partition('"type":"')[2].partition('"')[0]]
        if kind != "session.resume"
    )


def _commands_run(folder: Path) -> int:
    """Return how often the command with an effect has run."""
    effects = folder / "effects"
    return len(effects.read_text().splitlines()) if effects.exists() else 0


async def test_an_agent_continues_its_conversation_in_the_next_process(tmp_path: Path) -> None:
    prompts: dict[str, Turns] = {
        "begin": [
            turn(task("scout"), task("worker")),
            calls("write_agent", "call-more", agent_id="worker", message="more"),
            SAID,
        ],
        "resume them": [
            turn(
                *(
                    {
                        "id": f"write-{name}",
                        "name": "write_agent",
                        "arguments": {"agent_id": name, "message": "proceed"},
                    }
                    for name in ("scout", "worker", "nobody")
                )
            ),
            SAID,
        ],
        "finished processing|has failed": [{"text": "noted"}],
        "scout": [EFFECT, {"text": "scouted"}],
        "worker": [{"text": "worked"}],
        "more": [calls("count", "call-more-effect")],
        "proceed": [{"text": "went on"}],
    }
    point = Point(lambda seen: seen.pending == 2, {})
    effects: Counter[str] = Counter()
    entries = [{"when": text, "turns": turns} for text, turns in prompts.items()]
    async with ModelServer(Script.model_validate({"prompts": entries})) as model:
        async with opened(tmp_path, model, "", effects, point) as (server, session, client):
            await server.wire.call("session.send", {"sessionId": session, "prompt": "begin"})
            with anyio.fail_after(WAIT_S):
                await client.reached.wait()
            await server.kill()
            await server.wire.ended.wait()
        asked = len(model.requests)
        log: list[JsonObject] = []
        for _ in range(2):
            # The interruption is in the log once, and the model is told once.
            async with opened(tmp_path, model, session, effects) as (server, _, _):
                events = await server.wire.prompt(session, "resume them")
                log = (await server.wire.call("session.getMessages", {"sessionId": session}))["events"]
                (warning,) = [event for event in log if event["type"] == "session.warning"]
                assert warning["data"]["message"] == "The agent was interrupted at its work."
                results = _results(events)
                assert results["", "write-scout"].startswith("Message delivered to agent ")
                assert results["", "write-worker"].startswith("Message delivered to agent ")
                assert results["", "write-nobody"] == "Agent not found"
                tasks = (await server.wire.call("session.tasks.list", {"sessionId": session}))["tasks"]
                assert [(one["status"], one["latestResponse"]) for one in tasks] == [("idle", "went on")] * 2
                answered = [e["agentId"] for e in events if e["type"] == "user.message" and "agentId" in e]
                assert len(answered) == 2
        told = [e["data"]["kind"]["type"] for e in log if e["type"] == "system.notification"]
        assert sorted(told) == ["agent_completed", *["agent_idle"] * 4]
        # The agent has its own conversation, with the interrupted call.
        worker = next(r for r in model.requests[asked:] if "worker" in str(r["messages"][1]["content"]))
        texts = [(message["role"], str(message.get("content"))) for message in worker["messages"][1:]]
        assert [role for role, _ in texts] == ["user", "assistant", "user", "assistant", "tool", "user"]
        assert (texts[1][1], texts[4][1]) == ("worked", INTERRUPTED)
        for request in model.requests:
            check_calls("chat", request)
        assert effects == {"call-effect": 1, "call-more-effect": 1}
