"""Rate-limited models and the switch to the provider's own choice, over the real wire."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.callbacks import THROWS, AnsweringClient, answering
from tests.support.events import data_of
from tests.support.fake_copilot import ALICE, FakeCopilot, fake_copilot
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio

QUESTION = "autoModeSwitch.request"
HANDLER = {"requestAutoModeSwitch": True}
WEEKLY = "user_weekly_rate_limited"
AUTO = {"id": "auto"}


@asynccontextmanager
async def limited(
    tmp_path: Path, *answers: Any, code: str = WEEKLY, auto: Sequence[JsonObject] = (AUTO,), **options: Any
) -> AsyncGenerator[tuple[Wire, str, FakeCopilot, AnsweringClient]]:
    """Open a session whose model is rate-limited, with a client that answers the request to switch."""
    async with (
        fake_copilot() as copilot,
        running_server(tmp_path, env=copilot.environ) as server,
        answering(server.wire, {QUESTION: answers}) as client,
    ):
        copilot.models += auto
        copilot.limited["by-chat"] = code
        created = await server.wire.call(
            "session.create", {"gitHubToken": ALICE, "model": "by-chat", **HANDLER, **options}
        )
        yield server.wire, created["sessionId"], copilot, client


async def test_after_consent_the_provider_chooses_the_model(tmp_path: Path) -> None:
    async with limited(tmp_path, {"response": "yes"}) as (wire, session, copilot, client):
        events = await wire.prompt(session)
        current = await wire.call("session.model.getCurrent", {"sessionId": session})

    why = {"errorCode": WEEKLY, "retryAfterSeconds": 1}
    assert client.inputs(QUESTION) == [{"sessionId": session, **why}]
    (asked,), (answered,) = (
        data_of(events, "auto_mode_switch.requested"),
        data_of(events, "auto_mode_switch.completed"),
    )
    assert asked == {"requestId": answered["requestId"], **why}
    assert answered["response"] == "yes"
    (changed,) = data_of(events, "session.model_change")
    assert (changed["newModel"], changed["previousModel"]) == ("auto", "by-chat")
    assert changed["cause"] == "rate_limit_auto_switch"
    assert (copilot.called_models(), current["modelId"]) == (["by-chat", "auto"], "auto")
    assert [said["content"] for said in data_of(events, "assistant.message")] == ["chat/completions of alice"]
    assert len(data_of(events, "assistant.turn_start")) == 1
    assert data_of(events, "session.error") == []


@pytest.mark.parametrize(("asked", "told"), [("0.2", 1), ("1e300", 365 * 24 * 3600), ("soon", None)])
async def test_the_retry_delay_for_clients_is_in_whole_seconds(
    tmp_path: Path, asked: str, told: int | None
) -> None:
    async with limited(tmp_path, {"response": "yes"}) as (wire, session, copilot, client):
        copilot.retry_after = asked
        await wire.prompt(session)

    (question,) = client.inputs(QUESTION)
    assert (question.get("retryAfterSeconds"), type(question.get("retryAfterSeconds"))) == (told, type(told))


@pytest.mark.parametrize("answer", [{"response": "no"}, {"response": "perhaps"}, THROWS], ids=str)
async def test_without_consent_the_same_model_is_called_again(tmp_path: Path, answer: Any) -> None:
    async with limited(tmp_path, answer) as (wire, session, copilot, client):
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        completed = await wire.event("auto_mode_switch.completed", session=session)
        copilot.limited.clear()
        await wire.event("session.idle", session=session)

    assert (completed["data"]["response"], client.names()) == ("no", [QUESTION])
    assert set(copilot.called_models()) == {"by-chat"}
    assert copilot.called_models()[1:]


async def test_the_answer_always_applies_to_later_rate_limits(tmp_path: Path) -> None:
    async with limited(tmp_path, {"response": "yes_always"}) as (wire, session, copilot, client):
        await wire.prompt(session)
        await wire.call("session.model.switchTo", {"sessionId": session, "modelId": "by-chat"})
        await wire.prompt(session)
        # A resume does not ask again either.
        await wire.call("session.destroy", {"sessionId": session})
        resumed = {"sessionId": session, "gitHubToken": ALICE, "model": "by-chat", **HANDLER}
        await wire.call("session.resume", resumed)
        await wire.prompt(session)

    assert client.names() == [QUESTION]
    assert copilot.called_models() == ["by-chat", "auto"] * 3


async def test_an_option_can_give_consent_in_advance(tmp_path: Path) -> None:
    async with limited(tmp_path, continueOnAutoMode=True) as (wire, session, copilot, client):
        events = await wire.prompt(session)

    assert (client.names(), data_of(events, "auto_mode_switch.requested")) == ([], [])
    assert copilot.called_models() == ["by-chat", "auto"]


async def test_the_request_can_be_answered_by_the_id_of_its_event(tmp_path: Path) -> None:
    async with limited(tmp_path) as (wire, session, copilot, client):
        params = {"sessionId": session}
        handle = (await wire.call("session.ui.registerDirectAutoModeSwitchHandler", params))["handle"]
        await wire.call("session.send", {**params, "prompt": "hi"})
        request = (await wire.event("auto_mode_switch.requested", session=session))["data"]
        answer = {**params, "requestId": request["requestId"], "response": "yes"}
        assert await wire.call("session.ui.handlePendingAutoModeSwitch", answer) == {"success": True}
        assert await wire.call("session.ui.handlePendingAutoModeSwitch", answer) == {"success": False}
        await wire.event("session.idle", session=session)
        await wire.call("session.ui.unregisterDirectAutoModeSwitchHandler", {**params, "handle": handle})

    assert client.names() == []
    assert copilot.called_models() == ["by-chat", "auto"]


async def test_the_request_ends_with_the_last_client(tmp_path: Path) -> None:
    async with limited(tmp_path, requestAutoModeSwitch=False) as (wire, session, copilot, _):
        params = {"sessionId": session}
        handle = (await wire.call("session.ui.registerDirectAutoModeSwitchHandler", params))["handle"]
        await wire.call("session.send", {**params, "prompt": "hi"})
        await wire.event("auto_mode_switch.requested", session=session)
        copilot.limited.clear()
        await wire.call("session.ui.unregisterDirectAutoModeSwitchHandler", {**params, "handle": handle})
        await wire.event("session.idle", session=session)

    assert copilot.called_models() == ["by-chat", "by-chat"]


async def test_an_abort_ends_the_request(tmp_path: Path) -> None:
    async with limited(tmp_path, requestAutoModeSwitch=False) as (wire, session, copilot, _):
        params = {"sessionId": session}
        await wire.call("session.ui.registerDirectAutoModeSwitchHandler", params)
        await wire.call("session.send", {**params, "prompt": "hi"})
        request = (await wire.event("auto_mode_switch.requested", session=session))["data"]
        await wire.call("session.abort", params)
        completed = (await wire.event("auto_mode_switch.completed", session=session))["data"]
        await wire.event("session.idle", session=session)

    assert completed == {"requestId": request["requestId"], "response": "no"}
    assert copilot.called_models() == ["by-chat"]


@pytest.mark.parametrize(
    ("code", "auto", "options"),
    [
        ("user_global_rate_limited", [AUTO], {}),
        ("rate_limited", [AUTO], {}),
        (WEEKLY, [], {}),
        (WEEKLY, [{**AUTO, "policy": {"state": "disabled"}}], {}),
        (WEEKLY, [AUTO], {"requestAutoModeSwitch": False}),
        (WEEKLY, [AUTO], {"customAgents": [{"name": "own", "prompt": "x", "model": "by-chat"}], "agent": "own"}),
    ],
    ids=[
        "a limit of all models",
        "a passing limit",
        "no choice",
        "no leave to choose",
        "nobody",
        "agent",
    ],
)
async def test_no_request_is_made_if_a_switch_cannot_help(
    tmp_path: Path, code: str, auto: list[JsonObject], options: JsonObject
) -> None:
    async with limited(tmp_path, code=code, auto=auto, **options) as (wire, session, copilot, client):
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        await wire.event("model.call_failure", session=session)
        copilot.limited.clear()
        await wire.event("session.idle", session=session)
        events = wire.events(session)

    assert (client.names(), data_of(events, "auto_mode_switch.requested")) == ([], [])
    assert set(copilot.called_models()) == {"by-chat"}
    assert data_of(events, "assistant.message")
