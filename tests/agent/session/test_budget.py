"""Budgets of sessions, prompts and days, over the real wire."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.session.budget import Budgets, Limit, Spent
from jumpseat.store.user.day_usage import DayUsage, file_in
from jumpseat_protocol.sessions import BudgetOptions
from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, json_reply
from tests.support.provided import at, says, send_failing_prompt, send_prompt, serving
from tests.support.server import JsonObject, RunningServer, Wire, running_server

pytestmark = pytest.mark.anyio


def used(tokens: int, text: str = "Hi") -> Reply:
    """Return an answer whose call has used ``tokens``."""
    return says(text, usage={"prompt_tokens": tokens - 1, "completion_tokens": 1})


def calls_tool(tokens: int, name: str = "look", arguments: str = "{}") -> Reply:
    call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": arguments}}
    choice = {"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    return json_reply(
        {"choices": [choice], "usage": {"prompt_tokens": tokens - 1, "completion_tokens": 1}},
    )


def configured(provider: ModelServer, more: str = "") -> str:
    """Return a configuration with the model ``work/m``, at a dollar per thousand tokens."""
    return f"""
        {more}
        [adapters.work]
        type = "openai"
        base_url = "{provider.url}/v1"
        api_key_env = "WORK_KEY"
        models = [{{id = "m", price = {{input = 1000, output = 1000}}}}, {{id = "unpriced"}}]
    """


def warnings(wire: Wire) -> list[str]:
    told = data_of(wire.events(), "session.warning")
    return [data["message"] for data in told if data["warningType"] == "budget"]


def errors(wire: Wire) -> list[JsonObject]:
    return data_of(wire.events(), "session.error")


KEY = {"WORK_KEY": "sk-key"}


async def test_a_session_ends_at_its_budget_and_goes_on_with_a_higher_one(tmp_path: Path) -> None:
    tools = [{"name": "look", "skipPermission": True}]
    async with serving(tmp_path, calls_tool(85), used(20), used(2)) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", budget={"session": {"maxTokens": 100}}, tools=tools)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        call = await wire.event("external_tool.requested", session=session)
        # Told before the tools run, so that the user can stop them.
        assert warnings(wire) == ["85 % of the budget of the session is used up: 85 of 100 tokens."]
        await wire.call(
            "session.tools.handlePendingToolCall",
            {"sessionId": session, "requestId": call["data"]["requestId"], "result": "seen"},
        )
        await wire.event("session.idle", session=session)
        assert len(provider.requests) == 2
        error = await send_failing_prompt(wire, session)
        assert len(provider.requests) == 2
        higher = {"session": {"maxTokens": 1000}}
        await wire.call("session.options.update", {"sessionId": session, "budget": higher})
        request = await send_prompt(wire, provider, session, "more")
    assert error.endswith(
        "the budget of the session is used up, 105 of 100 tokens: raise budget.session.maxTokens (on the command"
        " line: --max-tokens; in config.toml: session.max_tokens of [budget]) to go on, or begin another session"
    )
    assert [failed["errorType"] for failed in errors(wire)] == ["budget"]
    assert len(warnings(wire)) == 1
    results = [message for message in request.json["messages"] if message["role"] == "tool"]
    assert [message["content"] for message in results] == ["seen"], "each call has exactly one result"


async def test_each_prompt_has_a_budget_of_its_own(tmp_path: Path) -> None:
    tools = [{"name": "look", "skipPermission": True}]
    async with serving(tmp_path, used(90), calls_tool(100), used(90)) as (server, provider):
        wire = server.wire
        session = await wire.create(at(provider), model="m", budget={"prompt": {"maxTokens": 100}}, tools=tools)
        await send_prompt(wire, provider, session)
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "look"})
        call = await wire.event("external_tool.requested", session=session, since=since)
        await wire.call(
            "session.tools.handlePendingToolCall",
            {"sessionId": session, "requestId": call["data"]["requestId"], "result": "seen"},
        )
        error = await wire.event("session.error", session=session, since=since)
        await wire.event("session.idle", session=session, since=since)
        await send_prompt(wire, provider, session, "again")
        assert len(provider.requests) == 3
    assert error["data"]["errorType"] == "budget"
    assert "send another prompt, or raise budget.prompt.maxTokens" in error["data"]["message"]
    # A warning for each prompt that comes near its budget, none for the one that is ended by its error.
    assert [text.partition(" %")[0] for text in warnings(wire)] == ["90", "90"]


async def test_dollars_are_counted_by_the_known_price(tmp_path: Path) -> None:
    async with ModelServer(used(500), used(700)) as provider:
        budget = "[budget]\nsession = {max_cost = 1.0}"
        async with running_server(tmp_path, config=configured(provider, budget), env=KEY) as server:
            created = await server.wire.call("session.create", {"model": "work/m"})
            session = created["sessionId"]
            for _ in range(2):
                await send_prompt(server.wire, provider, session)
            error = await send_failing_prompt(server.wire, session)
    assert "the budget of the session is used up, $1.20 of $1.00: raise budget.session.maxCost" in error
    assert warnings(server.wire) == [], "the second call went from below 80 % to beyond the budget"


async def test_a_budget_in_dollars_is_refused_for_a_model_without_a_price(tmp_path: Path) -> None:
    async with (
        ModelServer(used(10)) as provider,
        running_server(tmp_path, config=configured(provider), env=KEY) as server,
    ):
        wire = server.wire
        options = {"model": "work/unpriced", "budget": {"day": {"maxCost": 5}}}
        session = (await wire.call("session.create", options))["sessionId"]
        error = await send_failing_prompt(wire, session)
        tokens = {"session": {"maxTokens": 5000}}
        await wire.call("session.options.update", {"sessionId": session, "budget": tokens})
        await send_prompt(wire, provider, session)
    assert "the price of 'work/unpriced' is unknown, so no budget in dollars can be kept: set the price" in error
    assert len(provider.requests) == 1


async def test_the_sum_of_the_day_is_shared_by_processes_and_survives_them(tmp_path: Path) -> None:
    async with ModelServer(*[used(400)] * 3) as provider:
        config = configured(provider, "[budget]\nday = {max_tokens = 1000}")

        async def prompt(server: RunningServer, send: Callable[..., Awaitable[Any]], *args: Any) -> Any:
            # A client can lower the budget of the day, but not raise it.
            options = {"model": "work/m", "budget": {"day": {"maxTokens": 10**9}}}
            session = (await server.wire.call("session.create", options))["sessionId"]
            return await send(server.wire, *args, session)

        async with (
            running_server(tmp_path, config=config, env=KEY) as one,
            running_server(tmp_path, env=KEY) as other,
        ):
            for server in (one, other, one):
                await prompt(server, send_prompt, provider)
            refused = await prompt(other, send_failing_prompt)
            complete = {"adapter": "work", "model": "m", "messages": [{"role": "user", "content": "hi"}]}
            outside = await one.wire.error_of("jumpseat.complete", complete)
        async with running_server(tmp_path, env=KEY) as later:
            again = await prompt(later, send_failing_prompt)
        assert len(provider.requests) == 3
    assert "the budget of the day is used up, 1,200 of 1,000 tokens" in refused
    assert refused == again
    assert outside["message"] in refused
    assert outside["data"] == {"code": "budget"}


async def test_calls_outside_of_sessions_count_for_the_day(tmp_path: Path) -> None:
    async with ModelServer(used(1000)) as provider:
        config = configured(provider, "[budget]\nday = {max_cost = 0.5}")
        async with running_server(tmp_path, config=config, env=KEY) as server:
            complete = {"adapter": "work", "model": "m", "messages": [{"role": "user", "content": "hi"}]}
            await server.wire.call("jumpseat.complete", complete)
            refused = await server.wire.error_of("jumpseat.complete", complete)
    assert "the budget of the day is used up, $1.00 of $0.5000" in refused["message"]


async def test_the_calls_of_sub_agents_count(tmp_path: Path) -> None:
    task = {"name": "helper", "agent_type": "task", "description": "help", "prompt": "look"}
    async with serving(tmp_path, calls_tool(10, "task", json.dumps(task)), used(95, "found")) as (server, provider):
        session = await server.wire.create(at(provider), model="m", budget={"prompt": {"maxTokens": 100}})
        error = await send_failing_prompt(server.wire, session)
        assert len(provider.requests) == 2
    assert "the budget of the prompt is used up, 105 of 100 tokens" in error


async def test_the_usage_of_a_session_counts_after_a_restart(tmp_path: Path) -> None:
    options: JsonObject = {"model": "m", "budget": {"session": {"maxTokens": 100}}}
    async with ModelServer(used(120)) as provider:
        async with running_server(tmp_path) as server:
            session = await server.wire.create(at(provider), **options)
            await send_prompt(server.wire, provider, session)
        async with running_server(tmp_path) as server:
            params = {"sessionId": session, "provider": at(provider), "model": "m"}
            await server.wire.call("session.resume", params)
            error = await send_failing_prompt(server.wire, session)
    assert "the budget of the session is used up, 120 of 100 tokens" in error


async def test_tokens_that_the_provider_does_not_count_are_estimated(tmp_path: Path) -> None:
    async with serving(tmp_path, says("Hi")) as (server, provider):
        session = await server.wire.create(at(provider), model="m", budget={"session": {"maxTokens": 100}})
        await send_prompt(server.wire, provider, session)
        error = await send_failing_prompt(server.wire, session)
    assert "the budget of the session is used up" in error


async def test_invalid_budgets_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for budget in ({"session": {"maxCost": 0}}, {"session": {"maxCents": 1}}, {"week": {"maxCost": 1}}):
            error = await server.wire.error_of("session.create", {"budget": budget})
            assert "budget." in error["message"]


def test_a_session_replaces_budgets_but_that_of_the_day_only_by_a_lower_one() -> None:
    configured = Budgets(session=Limit(5.0, 1000), day=Limit(20.0))
    raised = {"maxCost": 50, "maxTokens": 500}
    options = BudgetOptions.model_validate({"session": {"maxCost": 50}, "prompt": raised, "day": raised})
    assert configured.overridden_by(options) == Budgets(Limit(50.0, 1000), Limit(50.0, 500), Limit(20.0, 500))
    assert configured.overridden_by(None) == configured


class FixedClock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits")


async def test_each_day_has_a_sum_of_its_own(tmp_path: Path) -> None:
    clock, document = FixedClock(), file_in(tmp_path)
    usage = DayUsage(document, clock)
    assert await usage.add(Spent()) == Spent()
    assert os.listdir(tmp_path) == [], "reading writes nothing"
    assert await usage.add(Spent(10, 0.25)) == Spent(10, 0.25)
    assert await DayUsage(document, clock).add(Spent(1, 0.5)) == Spent(11, 0.75)
    for _ in range(4):
        clock.seconds += 86_400
        assert await usage.add(Spent(5)) == Spent(5)
    assert len(document.read()) == 3


BROKEN = ("", "[]", '{"2027-01-15": 3}', '{"2027-01-15": {"tokens": "x", "dollars": -1}}')


@pytest.mark.parametrize("content", BROKEN)
async def test_a_broken_sum_counts_as_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "day-usage.json").write_text(content)
    assert await DayUsage(file_in(tmp_path), FixedClock()).add(Spent(2)) == Spent(2)
