"""``exit_plan_mode``: plans that the user approves or rejects, over the real wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.callbacks import SILENT, THROWS, answering
from tests.support.events import data_of
from tests.support.fake_openai import MODEL, calls, fake_openai, says, texts
from tests.support.server import JsonObject, running_server, scripted
from tests.support.server import calls as scripted_call

pytestmark = pytest.mark.anyio

ACTIONS = ["autopilot", "interactive", "exit_only"]
PLAN = calls("exit_plan_mode", summary="In short", actions=ACTIONS, recommendedAction="interactive")


@pytest.mark.parametrize(
    ("answer", "mode", "text"),
    [
        ({"approved": True}, "interactive", "You are now in interactive mode."),
        ({"approved": True, "selectedAction": "interactive"}, "interactive", "You are now in interactive mode."),
        ({"approved": True, "selectedAction": "exit_only"}, "interactive", "Do not implement it yet"),
        ({"approved": True, "selectedAction": "autopilot"}, "autopilot", "You are now in autopilot mode."),
        ({"approved": True, "selectedAction": "autopilot_fleet"}, "autopilot", "You are now in autopilot mode."),
        (
            {"approved": True, "selectedAction": "autopilot", "deferImplementation": True},
            "interactive",
            "Do not implement it yet",
        ),
        ({"approved": False}, "plan", "You are still in plan mode."),
        ({"approved": False, "feedback": "Think again."}, "plan", "The user says: Think again."),
    ],
    ids=str,
)
async def test_the_approval_of_a_plan_leaves_plan_mode(
    tmp_path: Path, answer: JsonObject, mode: str, text: str
) -> None:
    async with (
        fake_openai({"Plan it": [PLAN, says("I see.")]}) as model,
        running_server(tmp_path) as server,
        answering(server.wire, {"exitPlanMode.request": [answer]}) as client,
    ):
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL, requestExitPlanMode=True)
        await server.wire.call("session.mode.set", {"sessionId": session, "mode": "plan"})
        await server.wire.call("session.plan.update", {"sessionId": session, "content": "1. Do it."})
        events = await server.wire.prompt(session, "Plan it")
        assert await server.wire.call("session.mode.get", {"sessionId": session}) == mode
    shown = {
        "summary": "In short",
        "planContent": "1. Do it.",
        "actions": ACTIONS,
        "recommendedAction": "interactive",
    }
    assert client.inputs("exitPlanMode.request") == [{"sessionId": session, **shown}]
    (requested,), (completed,) = (
        data_of(events, "exit_plan_mode.requested"),
        data_of(events, "exit_plan_mode.completed"),
    )
    assert requested == {"requestId": requested["requestId"], **shown}
    answer.pop("deferImplementation", None)
    assert completed == {"requestId": requested["requestId"], **answer}
    (result,) = texts(model.requests[-1], "tool")
    assert text in result
    # The offered tools follow the mode within the same run.
    assert offers(model.requests[0])
    assert offers(model.requests[-1]) == (mode == "plan")
    assert data_of(events, "permission.requested") == []


async def test_a_prompt_can_set_plan_mode_for_its_own_run(tmp_path: Path) -> None:
    async with (
        fake_openai({"Plan it": [PLAN, says("I see.")]}) as model,
        running_server(tmp_path) as server,
        answering(server.wire, {"exitPlanMode.request": [{"approved": True}]}) as client,
    ):
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL, requestExitPlanMode=True)
        events = await server.wire.prompt(session, "Plan it", agentMode="plan")
    assert client.inputs("exitPlanMode.request")[0]["planContent"] == ""
    assert [offers(request) for request in model.requests] == [True, False]
    assert data_of(events, "session.mode_changed") == []


@pytest.mark.parametrize(
    ("handles", "mode"), [(False, "plan"), (True, "interactive"), (True, "autopilot")], ids=str
)
async def test_the_tool_is_offered_only_in_plan_mode_and_with_a_client_that_handles_it(
    tmp_path: Path, *, handles: bool, mode: str
) -> None:
    async with fake_openai({"Plan it": [PLAN, says("I see.")]}) as model, running_server(tmp_path) as server:
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL, requestExitPlanMode=handles)
        events = await server.wire.prompt(session, "Plan it", agentMode=mode)
    assert not offers(model.requests[0])
    (result,) = texts(model.requests[-1], "tool")
    assert result.startswith("Tool 'exit_plan_mode' does not exist.")
    assert data_of(events, "exit_plan_mode.requested") == []


async def test_a_plan_can_be_answered_by_the_id_of_its_event(tmp_path: Path) -> None:
    asking = scripted(scripted_call("exit_plan_mode", summary="In short"), {"text": "{{last_tool_result}}"})
    async with running_server(tmp_path) as server, answering(server.wire, {"exitPlanMode.request": [SILENT]}):
        wire = server.wire
        session = await wire.create(asking, requestExitPlanMode=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go", "agentMode": "plan"})
        request = await wire.event("exit_plan_mode.requested")
        assert request["data"]["actions"] == ACTIONS
        answer: JsonObject = {"sessionId": session, "requestId": request["data"]["requestId"]}
        answer |= {"response": {"approved": False, "feedback": "No."}}
        assert await wire.call("session.ui.handlePendingExitPlanMode", answer) == {"success": True}
        assert await wire.call("session.ui.handlePendingExitPlanMode", answer) == {"success": False}
        text = "The plan was not approved. You are still in plan mode. The user says: No."
        await wire.event("assistant.message", content=text)


@pytest.mark.parametrize(
    "answer", [THROWS, {}, {"approved": "yes"}, {"approved": True, "selectedAction": "x"}], ids=str
)
async def test_a_plan_is_not_approved_if_its_client_fails(tmp_path: Path, answer: Any) -> None:
    asking = scripted(scripted_call("exit_plan_mode", summary="Short"), {"text": "{{last_tool_result}}"})
    async with running_server(tmp_path) as server, answering(server.wire, {"exitPlanMode.request": [answer]}):
        session = await server.wire.create(asking, requestExitPlanMode=True)
        await server.wire.call("session.mode.set", {"sessionId": session, "mode": "plan"})
        events = await server.wire.prompt(session)
        assert await server.wire.call("session.mode.get", {"sessionId": session}) == "plan"
    (completion,) = data_of(events, "tool.execution_complete")
    assert completion["success"] is False
    text = data_of(events, "assistant.message")[-1]["content"]
    assert text.startswith("The user could not be asked about the plan.")
    (requested,), (completed,) = (
        data_of(events, "exit_plan_mode.requested"),
        data_of(events, "exit_plan_mode.completed"),
    )
    assert completed == {"requestId": requested["requestId"]}


def offers(request: JsonObject) -> bool:
    """Return whether the tool was offered to a model."""
    return "exit_plan_mode" in [tool["function"]["name"] for tool in request["tools"]]
