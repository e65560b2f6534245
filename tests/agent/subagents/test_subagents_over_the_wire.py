"""Sub-agents over the real wire, with a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.server import JsonObject, Wire, calls, running_server

pytestmark = pytest.mark.anyio


def by_prompt(prompts: dict[str, list[JsonObject]]) -> JsonObject:
    """Return a scripted provider whose model answers each prompt that contains a text with its turns."""
    entries = [{"when": text, "turns": turns} for text, turns in prompts.items()]
    return {"type": "scripted", "script": {"prompts": entries}}


def task(call_id: str = "call-1", **arguments: Any) -> JsonObject:
    """Return a call that starts a sub-agent."""
    given = {"name": "helper", "agent_type": "task", "description": "help", "prompt": "look", **arguments}
    return {"id": call_id, "name": "task", "arguments": given}


def turn(*tool_calls: JsonObject) -> JsonObject:
    """Return a scripted turn that makes several calls."""
    return {"tool_calls": list(tool_calls)}


def results(events: list[JsonObject]) -> dict[str, str]:
    """Return what each call has returned, by its id; of failed calls the error."""
    return {
        event["data"]["toolCallId"]: (event["data"].get("result") or event["data"]["error"]).get(
            "content", event["data"].get("error", {}).get("message")
        )
        for event in events
        if event["type"] == "tool.execution_complete"
    }


def named(events: list[JsonObject], kind: str) -> list[JsonObject]:
    return [event for event in events if event["type"] == kind]


async def test_a_sub_agent_answers_its_call_and_its_events_carry_its_id(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task()), {"text": "The helper found it."}],
            "look": [calls("sql", "call-2", query="SELECT 1"), {"text": "found {{last_tool_result}}"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        events = await server.wire.prompt(session, "delegate")
        (started,) = named(events, "subagent.started")
        agent = started["agentId"]
        own = [event for event in events if event.get("agentId") == agent]
        assert [
            event["type"] for event in own if event["type"] not in ("assistant.usage", "session.usage_info")
        ] == [
            "subagent.started",
            "subagent.configured",
            "user.message",
            "assistant.turn_start",
            "assistant.message",
            "tool.execution_start",
            "tool.execution_complete",
            "assistant.turn_end",
            "assistant.turn_start",
            "assistant.message",
            "assistant.turn_end",
            "subagent.completed",
        ]
        assert {event.get("agentId") for event in events} == {None, agent}
        assert started["data"]["toolCallId"] == "call-1"
        assert own[2]["data"]["source"] == f"agent-{session}"
        parents = {
            e["data"]["parentToolCallId"] for e in own if e["type"].startswith(("tool.", "assistant.message"))
        }
        assert parents == {"call-1"}
        # The call ends after all events of the agent.
        ends = [event["data"]["toolCallId"] for event in named(events, "tool.execution_complete")]
        assert ends == ["call-2", "call-1"]
        assert results(events)["call-1"] == "found 1\n1"
        assert len(named(events, "session.idle")) == 1

        # The conversation of the main agent has nothing of the sub-agent's but the result.
        elsewhere = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k"}
        options = {"sessionId": session, "provider": elsewhere, "model": "m", "disableResume": True}
        await server.wire.call("session.resume", options)
        request = await server.wire.call("jumpseat.session.nextRequest", {"sessionId": session})
        roles = [message["role"] for message in request["body"]["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "assistant"]
        usage = await server.wire.call("session.usage.getMetrics", {"sessionId": session})
        counts = {
            name: sum(used["requests"]["count"] for used in part["modelMetrics"].values())
            for name, part in usage["agentMetrics"].items()
        }
        assert counts == {"main": 2, agent: 2}


async def test_calls_of_one_answer_work_side_by_side(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task("call-1", prompt="first"), task("call-2", prompt="second")), {"text": "done"}],
            "first": [calls("meet", "call-3"), {"text": "one"}],
            "second": [calls("meet", "call-4"), {"text": "two"}],
        }
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model, tools=[{"name": "meet", "skipPermission": True}])
        await wire.call("session.send", {"sessionId": session, "prompt": "delegate"})
        # Both agents wait for the client at the same time.
        asked = [await wire.event("external_tool.requested", toolCallId=call) for call in ("call-3", "call-4")]
        for event in reversed(asked):
            assert "agentId" not in event
            ids = {"sessionId": session, "requestId": event["data"]["requestId"]}
            await wire.call("session.tools.handlePendingToolCall", ids | {"result": "met"})
        await wire.event("session.idle")
        found = results(wire.events())
        assert (found["call-1"], found["call-2"]) == ("one", "two")


async def test_the_model_is_told_about_an_agent_in_the_background_before_the_session_is_idle(
    tmp_path: Path,
) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task(mode="background")), {"text": "launched"}],
            "look": [calls("meet", "call-2"), {"text": "found"}],
            "finished processing": [{"text": "I know now."}],
        }
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model, tools=[{"name": "meet", "skipPermission": True}])
        waiting = await wire.ask("session.sendAndWait", {"sessionId": session, "prompt": "delegate"})
        await wire.event("assistant.idle")
        assert named(wire.events(), "session.idle") == []
        asked = await wire.event("external_tool.requested")
        ids = {"sessionId": session, "requestId": asked["data"]["requestId"]}
        await wire.call("session.tools.handlePendingToolCall", ids | {"result": "met"})
        answered = await wire.response(waiting)
        events = wire.events()
        types = [event["type"] for event in events if "agentId" not in event]
        assert types[-1] == "session.idle"
        assert types.count("session.idle") == 1
        assert types.count("user.message") == 1
        (notification,) = named(events, "system.notification")
        agent = named(events, "subagent.started")[0]["agentId"]
        assert notification["data"]["kind"]["agentId"] == agent
        assert f'read_agent with agent_id "{agent}"' in notification["data"]["content"]
        assert f"agent_id: {agent}." in results(events)["call-1"]
        # The response has the last answer of the run.
        assert answered["result"]["response"]["data"]["content"] == "I know now."


async def test_an_answer_that_was_read_is_not_announced_again(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [
                turn(task(mode="background")),
                calls("read_agent", "call-2", agent_id="helper", wait=True),
                {"text": "read"},
            ],
            "look": [{"text": "found"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        events = await server.wire.prompt(session, "delegate")
        assert "status: idle" in results(events)["call-2"]
        assert results(events)["call-2"].endswith("\n\n[Turn 0]\nfound")
        assert named(events, "system.notification") == []
        assert len(named(events, "session.idle")) == 1


async def test_an_idle_agent_answers_a_message_on_its_old_conversation(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [
                turn(task()),
                calls("write_agent", "call-2", agent_id="helper", message="and where"),
                calls("read_agent", "call-3", agent_id="helper", wait=True, since_turn=1),
                calls("list_agents", "call-4"),
                calls("write_agent", "call-5", message="x"),
                calls("write_agent", "call-6", agent_ids=["helper", "nobody"], message="once more"),
                calls("read_agent", "call-7", agent_id="helper", wait=True, since_turn=2),
                {"text": "read"},
            ],
            "look": [{"text": "found"}],
            "and where": [{"text": "there"}],
            "once more": [{"text": "still there"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        events = await server.wire.prompt(session, "delegate")
        found = results(events)
        assert found["call-2"].startswith("Message delivered to agent ")
        assert found["call-3"].endswith("\n\n[Turn 1]\n[Message]\nand where\n\n[Response]\nthere")
        assert "Idle (1):\n  helper (" in found["call-4"]
        assert found["call-5"] == 'Provide exactly one of "agent_id", "agent_ids", or "scope"'
        assert "- nobody, not delivered, task_status=unknown" in found["call-6"]
        assert "still there" in found["call-7"]
        assert [len(named(events, f"subagent.{kind}")) for kind in ("started", "completed")] == [1, 1]


async def test_agents_whose_model_counts_the_calls_of_each_conversation_have_calls_of_their_own(
    tmp_path: Path,
) -> None:
    def counted(query: str) -> JsonObject:
        return calls("sql", "sql:0", query=query)

    model = by_prompt(
        {
            "delegate": [turn(task("sql:0")), counted("SELECT 2"), counted("SELECT 3"), {"text": "done"}],
            "look": [counted("SELECT 1"), {"text": "found {{last_tool_result}}"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model, streaming=True, includeSubAgentStreamingEvents=True)
        events = await server.wire.prompt(session, "delegate")
        ids = {"main": ["sql:0"] * 3, "agent": ["sql:0_2"]}
        for kind in ("assistant.tool_call_delta", "tool.execution_start", "tool.execution_complete"):
            made = named(events, kind)
            assert ids == {
                "main": [event["data"]["toolCallId"] for event in made if "agentId" not in event],
                "agent": [event["data"]["toolCallId"] for event in made if "agentId" in event],
            }
        (report,) = (event["data"]["result"] for event in named(events, "tool.execution_complete")[1:2])
        assert "found" in str(report)


async def test_an_abort_ends_the_agents_and_answers_each_call_once(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task("call-1"), task("call-2", mode="background", name="other")), {"text": "-"}],
            "look": [calls("bash", "call-3", command="sleep 1000", description="sleep"), {"text": "-"}],
        }
    )
    async with running_server(tmp_path, args=["--yolo"]) as server:
        wire = server.wire
        session = await wire.create(model)
        await wire.call("session.send", {"sessionId": session, "prompt": "delegate"})
        for _ in range(2):
            await wire.event("tool.execution_start", toolName="bash")
        await wire.until(lambda _: len(named(wire.events(), "tool.execution_start")) >= 4)
        await wire.call("session.abort", {"sessionId": session})
        events = wire.events()
        ends = [event["data"]["toolCallId"] for event in named(events, "tool.execution_complete")]
        assert sorted(ends) == ["call-1", "call-2", "call-3", "call-3_2"]
        assert [event["data"].get("cancelled") for event in named(events, "subagent.completed")] == [True, True]
        (idle,) = named(events, "session.idle")
        assert idle["data"]["aborted"] is True
        assert named(events, "session.error") == []
        tasks = await wire.call("session.tasks.list", {"sessionId": session})
        assert {task["status"] for task in tasks["tasks"] if task["type"] == "agent"} == {"cancelled"}
        # Leaving the server fails if a process is left behind.


async def test_a_denied_call_ends_the_agent_without_an_answer(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task()), {"text": "{{last_tool_result}}"}],
            "look": [calls("bash", "call-2", command="touch x", description="touch"), {"text": "-"}],
        }
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model, requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "delegate"})
        asked = await wire.event("permission.requested")
        assert "agentId" not in asked
        assert asked["data"]["permissionRequest"]["toolCallId"] == "call-2"
        ids = {"sessionId": session, "requestId": asked["data"]["requestId"]}
        decision = {"result": {"kind": "reject"}}
        await wire.call("session.permissions.handlePendingPermissionRequest", ids | decision)
        await wire.event("session.idle")
        assert results(wire.events())["call-1"] == "Agent completed but produced no response."
        assert len(named(wire.events(), "subagent.failed")) == 1


async def test_the_failure_of_its_model_fails_the_call_only(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task()), {"text": "so what"}],
            "look": [{"errors": [{"status": 400, "message": "a bad request"}], "text": "-"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        events = await server.wire.prompt(session, "delegate")
        assert "a bad request" in results(events)["call-1"]
        assert named(events, "session.error") == []
        assert named(events, "assistant.message")[-1]["data"]["content"] == "so what"


async def test_agents_are_limited_in_depth_number_and_tokens(tmp_path: Path) -> None:
    config = "[agents]\ndepth = 2\nrunning = 2\ntokens = 100\n"
    usage = {"input": 90, "output": 20}
    model = by_prompt(
        {
            "deep": [turn(task(prompt="level one")), {"text": "-"}],
            "level one": [turn(task("call-2", prompt="level two")), {"text": "{{last_tool_result}}"}],
            "level two": [turn(task("call-3", prompt="level three")), {"text": "{{last_tool_result}}"}],
            "wide": [turn(*(task(f"call-{n}", prompt="stay") for n in (4, 5, 6))), {"text": "-"}],
            "stay": [calls("meet", "call-m"), {"text": "met"}],
            "dear": [turn(task("call-7", prompt="spend")), {"text": "-"}],
            "spend": [calls("sql", "call-8", query="SELECT 1") | {"usage": usage}, {"text": "-", "hang": True}],
            "odd": [turn(task("call-9", agent_type="nosuch")), {"text": "-"}],
        }
    )
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        session = await wire.create(model, tools=[{"name": "meet", "skipPermission": True}])
        for prompt in ("deep", "dear", "odd"):
            await wire.prompt(session, prompt)
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "wide"})
        # Both agents work until the client answers.
        await wire.until(lambda _: len(named(wire.events(), "external_tool.requested")) == 2)
        await wire.event("tool.execution_complete", since=since)
        for asked in named(wire.events(), "external_tool.requested"):
            ids = {"sessionId": session, "requestId": asked["data"]["requestId"]}
            await wire.call("session.tools.handlePendingToolCall", ids | {"result": "met"})
        await wire.event("session.idle", since=since)
        found = results(wire.events())
        # The tool is not offered where an agent may not start another.
        assert found["call-3"].startswith("Tool 'task' does not exist.")
        assert sorted(found[f"call-{n}"] for n in (4, 5, 6)) == [
            "No agent was started: 2 agents work already. Wait for one of them.",
            "met",
            "met",
        ]
        assert found["call-7"] == "The agent was ended because it used more than 100 tokens."
        assert found["call-9"].startswith("Unknown agent_type: nosuch. Valid types are: explore, task, ")


async def test_agents_are_limited_in_time(tmp_path: Path) -> None:
    model = by_prompt({"delegate": [turn(task()), {"text": "-"}], "look": [{"text": "-", "hang": True}]})
    async with running_server(tmp_path, config="[agents]\ntimeout_s = 0.25\n") as server:
        events = await server.wire.prompt(await server.wire.create(model), "delegate")
    assert results(events)["call-1"] == "The agent was ended because it worked for more than 0.25 s."


async def test_an_agent_ends_after_those_that_it_has_started(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task(prompt="lead")), {"text": "-"}],
            "lead": [turn(task("call-2", prompt="chase", mode="background")), {"text": "waiting"}],
            "chase": [{"text": "chased"}],
            "finished processing": [{"text": "led"}],
        }
    )
    async with running_server(tmp_path) as server:
        session = await server.wire.create(model)
        events = await server.wire.prompt(session, "delegate")
        outer, inner = named(events, "subagent.started")
        assert inner["data"]["parentId"] == outer["agentId"]
        ended = [event["agentId"] for event in named(events, "subagent.completed")]
        assert ended == [inner["agentId"], outer["agentId"]]
        assert [event["agentId"] for event in named(events, "system.notification")] == [outer["agentId"]]
        assert results(events)["call-1"] == "led"


async def test_clients_start_move_cancel_and_remove_tasks(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task()), {"text": "moved"}],
            "look": [calls("meet", "call-2"), {"text": "found"}],
            "rest": [{"text": "here"}],
            "finished processing": [{"text": "noted"}],
        }
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model, tools=[{"name": "meet", "skipPermission": True}])
        here = {"sessionId": session}
        assert await wire.call("session.tasks.getCurrentPromotable", here) == {}
        await wire.call("session.send", here | {"prompt": "delegate"})
        asked = await wire.event("external_tool.requested")
        current = (await wire.call("session.tasks.getCurrentPromotable", here))["task"]
        assert (current["status"], current["executionMode"], current["agentType"]) == ("running", "sync", "task")
        moved = (await wire.call("session.tasks.promoteCurrentToBackground", here))["task"]
        assert (moved["id"], moved["executionMode"]) == (current["id"], "background")
        await wire.event("assistant.idle")
        assert results(wire.events())["call-1"].startswith("Agent moved to background")
        # A prompt runs at once while the agent works, and the session is not idle after it.
        progress = await wire.call("session.tasks.getProgress", here | {"id": moved["id"]})
        assert [line["message"] for line in progress["progress"]["recentActivity"]] == ["meet"]
        ids = here | {"requestId": asked["data"]["requestId"]}
        await wire.call("session.tools.handlePendingToolCall", ids | {"result": "met"})
        await wire.event("session.idle")
        assert named(wire.events(), "assistant.message")[-1]["data"]["content"] == "noted"

        since = len(wire.messages)
        agent = {"agentType": "explore", "name": "scout", "prompt": "rest"}
        started = (await wire.call("session.tasks.startAgent", here | agent))["agentId"]
        await wire.event("session.idle", since=since)
        assert await wire.call("session.tasks.waitForPending", here) == {}
        listed = (await wire.call("session.tasks.list", here))["tasks"]
        assert [(one["status"], one["latestResponse"]) for one in listed] == [("idle", "found"), ("idle", "here")]
        one = here | {"id": started}
        assert await wire.call("session.tasks.remove", one) == {"removed": False}
        assert await wire.call("session.tasks.cancel", one) == {"cancelled": True}
        assert await wire.call("session.tasks.cancel", one) == {"cancelled": False}
        sent = await wire.call("session.tasks.sendMessage", one | {"message": "more"})
        assert sent == {"sent": False, "error": "Agent not found or not accepting messages"}
        assert await wire.call("session.tasks.remove", one) == {"removed": True}
        error = await wire.error_of("session.tasks.startAgent", here | agent | {"agentType": "nosuch"})
        assert error["message"].startswith("Unknown agent_type: nosuch.")


async def test_an_agent_is_not_started_with_a_model_that_the_provider_does_not_list(tmp_path: Path) -> None:
    async with fake_copilot() as copilot, running_server(tmp_path, env=copilot.environ) as server:
        created = await server.wire.call("session.create", {"gitHubToken": ALICE, "model": "by-chat"})
        here = {"sessionId": created["sessionId"]}
        agent = here | {"agentType": "explore", "name": "scout", "prompt": "look", "model": "no-such-model"}
        error = await server.wire.error_of("session.tasks.startAgent", agent)
        assert error["message"] == "No agent was started: the provider has no model 'no-such-model'."
        of_user = {"agents": {"explore": {"model": "unknown-to-all"}}}
        await server.wire.call("session.tools.updateSubagentSettings", here | {"subagents": of_user})
        error = await server.wire.error_of("session.tasks.startAgent", {**agent, "model": "by-chat"})
        assert error["message"] == "No agent was started: the provider has no model 'unknown-to-all'."
        assert await server.wire.call("session.tasks.list", here) == {"tasks": []}
        assert copilot.called_models() == []


async def test_a_killed_server_loses_no_agent_and_runs_none_twice(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [
                turn(
                    task("call-1", mode="background", name="slow"), task("call-2", mode="background", name="quick")
                ),
                {"text": "launched"},
            ],
            "go on": [
                calls("read_agent", "call-3", agent_id="slow"),
                calls("read_agent", "call-4", agent_id="quick"),
                {"text": "told"},
            ],
            "look": [calls("meet", "call-5"), {"text": "found"}],
        }
    )
    tools = [{"name": "meet", "skipPermission": True}]
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model, tools=tools)
        await wire.call("session.send", {"sessionId": session, "prompt": "delegate"})
        await wire.until(lambda _: len(named(wire.events(), "external_tool.requested")) == 2)
        await wire.event("assistant.idle")
        asked = named(wire.events(), "external_tool.requested")[1]
        ids = {"sessionId": session, "requestId": asked["data"]["requestId"]}
        quick = named(wire.events(), "subagent.started")[1]["agentId"]
        with anyio.CancelScope():
            await wire.call("session.tools.handlePendingToolCall", ids | {"result": "met"})
            await wire.event("subagent.completed")
            await server.kill()
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.resume", {"sessionId": session, "provider": model, "tools": tools})
        (failed,) = named(wire.events(), "subagent.failed")
        assert failed["data"]["error"] == "The agent was interrupted at its work."
        assert (await wire.call("session.tasks.list", {"sessionId": session}))["tasks"] == []
        events = await wire.prompt(session, "go on")
        assert named(events, "subagent.started") == []
        found = results(events)
        assert "Agent failed." in found["call-3"]
        assert found["call-4"].endswith("[Turn 0]\nfound")
        told = [event["data"]["kind"]["agentId"] for event in named(events, "system.notification")]
        assert failed["agentId"] in told
        assert quick not in told or told.count(quick) == 1


async def test_fleet_shows_the_words_of_the_user_and_sends_instructions(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(by_prompt({"Request: tidy up": [{"text": "on it"}], "fleet": [{"text": "ok"}]}))
        assert await wire.call("session.fleet.start", {"sessionId": session, "prompt": "tidy up"}) == {
            "started": True
        }
        await wire.event("session.idle")
        (prompt,) = named(wire.events(), "user.message")
        assert prompt["data"]["content"] == "Fleet deployed: tidy up"
        assert "`task` tool" in prompt["data"]["transformedContent"]
        assert named(wire.events(), "assistant.message")[0]["data"]["content"] == "on it"


async def test_a_fleet_gets_attachments_and_can_be_waited_for(tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("the plan")
    file = {"type": "file", "path": str(tmp_path / "plan.txt"), "displayName": "plan.txt"}
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(by_prompt({"tidy up": [{"text": "on it"}]}))
        asked = {"sessionId": session, "prompt": "tidy up", "attachments": [file], "wait": True}
        assert await wire.call("session.fleet.start", asked) == {"started": True}
        # The answer has come after the run.
        assert named(wire.events(), "session.idle")
        (prompt,) = named(wire.events(), "user.message")
        assert [attached["path"] for attached in prompt["data"]["attachments"]] == [file["path"]]
        refused = await wire.error_of("session.fleet.start", {**asked, "attachments": [{"type": "file"}]})
        assert refused["message"].startswith("attachments.0")


async def test_hooks_see_the_id_of_the_agent_and_deltas_can_be_left_out(tmp_path: Path) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task(agent_type="critic")), {"text": "done"}],
            "look": [calls("sql", "call-2", query="SELECT 1"), {"text": "found"}],
        }
    )
    critic = {"name": "critic", "prompt": "You judge.", "displayName": "Critic", "tools": ["sql"]}
    for wanted in (True, False):
        async with running_server(tmp_path / str(wanted)) as server:
            wire = server.wire
            session = await wire.create(
                model, customAgents=[critic], hooks=True, streaming=True, includeSubAgentStreamingEvents=wanted
            )

            async def answer(wire: Wire = wire) -> None:
                position = 0
                while True:
                    message = await wire.until(lambda _: True, since=position)
                    position += 1
                    if message.get("method") == "hooks.invoke":
                        await wire.answer(message, {"output": None})

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer)
                await wire.call("session.send", {"sessionId": session, "prompt": "delegate"})
                await wire.event("session.idle")
                tasks.cancel_scope.cancel()
            (started,) = named(wire.events(), "subagent.started")
            assert (started["data"]["agentName"], started["data"]["agentDisplayName"]) == ("critic", "Critic")
            asked = [m["params"] for m in wire.messages if m.get("method") == "hooks.invoke"]
            assert {params["sessionId"] for params in asked} == {session}
            seen = {
                params["input"]["toolName"]: params["input"]["sessionId"]
                for params in asked
                if params["hookType"] == "preToolUse"
            }
            assert seen == {"task": session, "sql": started["agentId"]}
            deltas = [event for event in named(wire.events(), "assistant.message_delta") if "agentId" in event]
            assert bool(deltas) is wanted


async def test_hooks_for_the_start_and_the_end_of_a_sub_agent_change_its_prompt_and_its_answer(
    tmp_path: Path,
) -> None:
    model = by_prompt(
        {
            "delegate": [turn(task(agent_type="explore")), {"text": "It said {{last_tool_result}}"}],
            "look": [{"text": "half", "expect": {"user": "Be careful.\n\nlook"}}, {"text": "The code is 1234."}],
        }
    )
    outputs: list[JsonObject] = [
        {"additionalContext": "Be careful."},
        {"decision": "block", "reason": "Look on."},
        {"decision": "allow", "modifiedResponse": "The code is known."},
    ]
    asked: list[JsonObject] = []
    events: list[JsonObject] = []
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(model, hooks=True)

        async def answer() -> None:
            position = 0
            while True:
                message = await wire.until(lambda _: True, since=position)
                position += 1
                if message.get("method") == "hooks.invoke":
                    asked.append(message["params"])
                    about_agent = message["params"]["hookType"].startswith("subagent")
                    await wire.answer(message, {"output": outputs.pop(0) if about_agent else None})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            events += await wire.prompt(session, "delegate")
            tasks.cancel_scope.cancel()
    (started,) = named(events, "subagent.started")
    kinds = [params["hookType"] for params in asked]
    begin, last = kinds.index("subagentStart"), len(kinds) - kinds[::-1].index("subagentStop") - 1
    assert kinds[begin - 1 : last + 2] == [
        *("preToolUse", "subagentStart", "userPromptSubmitted", "userPromptTransformed"),
        *("agentStop", "subagentStop", "agentStop", "subagentStop", "postToolUse"),
    ]
    about = {
        "sessionId": session,
        "cwd": str(tmp_path),
        "transcriptPath": str(server.log_of(session)),
        "agentName": "explore",
        "agentType": "explore",
        "agentId": started["agentId"],
        "agentDisplayName": "helper",
        "agentDescription": "help",
    }
    inside = [asked[begin + 1]["input"], asked[begin + 3]["input"]]
    assert [(one["agentId"], one["agentType"]) for one in inside] == [(started["agentId"], "explore")] * 2
    for position in (begin, last):
        assert asked[position]["sessionId"] == session
        assert isinstance(asked[position]["input"].pop("timestamp"), int)
    assert asked[begin]["input"] == about
    end = {"stopReason": "end_turn", "response": "The code is 1234.", "stop_hook_active": True}
    assert asked[last]["input"] == about | end
    (prompt,) = [e for e in named(events, "user.message") if e["data"].get("source") == f"agent-{session}"]
    assert prompt["data"]["content"] == "look"
    assert results(events) == {"call-1": "The code is known."}
    assert outputs == []


async def test_an_agent_within_an_agent_has_the_name_that_its_call_gives(tmp_path: Path) -> None:
    general = {"agent_type": "general-purpose"}
    model = by_prompt(
        {
            "delegate": [turn(task("outer", name="first", prompt="split", **general)), {"text": "done"}],
            "split": [turn(task("inner", name="second", prompt="look", **general)), {"text": "split"}],
            "look": [{"text": "found"}],
        }
    )
    async with running_server(tmp_path) as server:
        events = await server.wire.prompt(await server.wire.create(model), "delegate")
    names = [event["data"]["agentDisplayName"] for event in named(events, "subagent.started")]
    assert names == ["first", "second"]
