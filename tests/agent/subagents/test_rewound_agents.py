"""Sub-agents of a session that goes back in its history."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jumpseat.adapters.scripted import Script
from jumpseat.agent.subagents.subagent import INTERRUPTED
from jumpseat_testkit.model.server import ModelServer
from tests.agent.subagents.test_subagents_over_the_wire import named, results, task, turn
from tests.support.server import JsonObject, Wire, calls, running_server
from tests.support.wire_rules import check_calls

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def a_session(
    folder: Path, prompts: Mapping[str, list[JsonObject]]
) -> AsyncGenerator[tuple[Wire, str, ModelServer]]:
    """Start a server with a session whose model answers ``prompts``, by a text in them."""
    entries = [{"when": text, "turns": turns} for text, turns in prompts.items()]
    async with (
        ModelServer(Script.model_validate({"prompts": entries})) as model,
        running_server(folder) as server,
    ):
        provider = {"type": "openai", "baseUrl": model.url, "apiKey": "k"}
        yield server.wire, await server.wire.create(provider, model="scripted"), model


async def test_a_rewind_takes_the_later_agents_and_messages_with_it(tmp_path: Path) -> None:
    prompts: dict[str, list[JsonObject]] = {
        "first": [turn(task("call-1", name="early", prompt="look")), {"text": "done"}],
        "second": [
            turn(task("call-2", name="late", prompt="look")),
            calls("write_agent", "call-3", agent_id="early", message="forget this"),
            {"text": "done"},
        ],
        "third": [
            calls("list_agents", "call-4", scope="all", include_completed=True),
            calls("write_agent", "call-5", agent_id="early", message="keep this"),
            calls("read_agent", "call-6", agent_id="early", wait=True),
            {"text": "done"},
        ],
        "look": [{"text": "found"}],
        "this": [{"text": "heard"}],
        "processing": [{"text": "noted"}],
    }
    async with a_session(tmp_path, prompts) as (wire, session, model):
        for prompt in ("first", "second"):
            events = await wire.prompt(session, prompt)
        second = named(events, "user.message")[0]["id"]
        here = {"sessionId": session}
        rewound = await wire.call("session.history.rewind", here | {"eventId": second, "mode": "conversation"})
        assert rewound["outcome"] == "success"

        found = results(await wire.prompt(session, "third"))
        assert "Idle (1):\n  early (" in found["call-4"]
        assert "late" not in found["call-4"]
        assert found["call-5"].startswith("Message delivered to agent ")
        assert found["call-6"].count("[Response]") == 1
        (request,) = [body for body in model.requests if "keep this" in str(body["messages"][-1])][:1]
        assert "forget this" not in str(request)
        assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "user"]
        for body in model.requests:
            check_calls("chat", body)
        tasks = (await wire.call("session.tasks.list", here))["tasks"]
        assert [one["displayName"] for one in tasks] == ["early"]


async def test_an_agent_whose_end_is_removed_counts_as_interrupted(tmp_path: Path) -> None:
    prompts: dict[str, list[JsonObject]] = {
        "first": [turn(task("call-1", name="early", prompt="look")), {"text": "done"}],
        "look": [{"text": "found"}],
        "second": [{"text": "still here"}],
    }
    async with a_session(tmp_path, prompts) as (wire, session, _):
        events = await wire.prompt(session, "first")
        here = {"sessionId": session}
        await wire.call(
            "session.history.truncate", here | {"eventId": named(events, "subagent.completed")[0]["id"]}
        )

        assert await wire.call("session.abort", here) == {"success": True}
        log = (await wire.call("session.getMessages", here))["events"]
        assert [event["data"]["error"] for event in named(log, "subagent.failed")] == [INTERRUPTED]
        answered = await wire.prompt(session, "second")
        assert named(answered, "assistant.message")[-1]["data"]["content"] == "still here"
