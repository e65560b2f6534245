"""Deferred tools: the tools that a request lists, and the search for the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.settings import SessionSettings
from jumpseat.tools.builtin.view import TOOL as VIEW
from jumpseat.tools.orchestrator.offered_tools import guidance, search
from jumpseat.tools.tool import TOOL_SEARCH
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool, SpecificToolChoice, ToolSearchConfig
from tests.support.sessions import MadeSession, make_session

pytestmark = pytest.mark.anyio

MANY = [
    ClientTool(name=f"tool_{number}", description=f"Do the thing number {number}", skip_permission=True)
    for number in range(5)
]
WEATHER = ClientTool(name="getWeather", description="Forecasts for a city", skip_permission=True)
PINNED = ClientTool(name="pinned", description="Always there", defer="never")


def search_then_call(query: str, name: str) -> list[dict[str, Any]]:
    return [
        {"tool_calls": [{"name": TOOL_SEARCH, "arguments": {"query": query}}]},
        {"tool_calls": [{"name": name, "arguments": {}}]},
        {"text": "done"},
    ]


def session_of(tasks: TaskGroup, script: Any = ({"text": "hi"},), threshold: int = 5, **more: Any) -> MadeSession:
    config = ToolSearchConfig(defer_threshold=threshold, enabled=more.pop("enabled", True))
    settings = SessionSettings.of(Path("/"), tool_search=config, **more.pop("settings", {}))
    tools = more.pop("tools", [*MANY, WEATHER, PINNED])
    return make_session(tasks, script=script, settings=settings, tools=tools, builtin=[VIEW], **more)


def shown(made: MadeSession) -> list[str]:
    return [spec.name for spec in made.session.tools.specs()]


async def test_up_to_the_threshold_all_tools_are_shown(tasks: TaskGroup) -> None:
    made = session_of(tasks, threshold=8)

    assert shown(made) == ["view", *(tool.name for tool in MANY), "getWeather", "pinned"]
    assert made.session.tools.deferred_specs() == []


async def test_above_the_threshold_built_in_tools_and_those_with_defer_never_are_shown(tasks: TaskGroup) -> None:
    made = session_of(tasks)

    assert shown(made) == ["view", "pinned", TOOL_SEARCH]
    assert [spec.name for spec in made.session.tools.deferred_specs()] == [
        *(tool.name for tool in MANY),
        "getWeather",
    ]
    assert (
        "tool_search_tool before they can be called: getWeather, tool_0"
        in made.session.tools.in_system_message().instructions
    )


@pytest.mark.parametrize(
    "more",
    [
        {"enabled": False},
        {"settings": {"available_tools": ["custom:*"]}},
        {"settings": {"excluded_tools": [TOOL_SEARCH]}},
    ],
)
async def test_without_the_search_no_tool_is_deferred(tasks: TaskGroup, more: dict[str, Any]) -> None:
    made = session_of(tasks, **more)

    assert {tool.name for tool in MANY} < set(shown(made))
    assert TOOL_SEARCH not in shown(made)


async def test_a_found_tool_can_be_called_and_stays_in_use(tasks: TaskGroup) -> None:
    made = session_of(tasks, search_then_call("weather forecast", "getWeather"))
    made.send("go")
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "sunny")
    await made.idle()

    found, called = made.client.payloads(events.ToolExecutionComplete)
    assert found.result == events.ToolResult(
        content="These tools can be called now:\n- getWeather: Forecasts for a city"
    )
    assert called.success
    assert made.client.payloads(events.ToolSearchActivated) == [
        events.ToolSearchActivated(strategy="keyword", tool_names=["getWeather"])
    ]
    assert shown(made) == ["view", "getWeather", "pinned", TOOL_SEARCH]


async def test_a_deferred_tool_runs_when_called_and_stays_in_use(tasks: TaskGroup) -> None:
    made = session_of(tasks, [{"tool_calls": [{"name": "tool_3", "arguments": {}}]}, {"text": "done"}])
    made.send("go")
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "ok")
    await made.idle()

    assert "tool_3" in shown(made)


async def test_a_search_without_matches_is_reported(tasks: TaskGroup) -> None:
    made = session_of(
        tasks, [{"tool_calls": [{"name": TOOL_SEARCH, "arguments": {"query": "zebra"}}]}, {"text": ""}]
    )
    await made.ask("go")

    (completion,) = made.client.payloads(events.ToolExecutionComplete)
    assert completion.result == events.ToolResult(content="No tool was found. Try other words.")


@pytest.mark.parametrize("arguments", [{}, {"query": " "}, {"query": 1}, {"query": "x", "limit": 0}])
async def test_invalid_arguments_of_the_search_are_reported(tasks: TaskGroup, arguments: dict[str, Any]) -> None:
    made = session_of(tasks, [{"tool_calls": [{"name": TOOL_SEARCH, "arguments": arguments}]}, {"text": ""}])
    await made.ask("go")

    (completion,) = made.client.payloads(events.ToolExecutionComplete)
    assert completion.error is not None
    assert completion.error.message.startswith("Invalid arguments for `tool_search_tool`: ")


async def test_a_tool_that_must_be_called_is_not_deferred(tasks: TaskGroup) -> None:
    choice = SpecificToolChoice(mode="specific", tool_name="tool_1")
    made = session_of(tasks, settings={"tool_choice": choice})
    await made.ask("go")

    assert [spec.name for spec in made.session.tools.specs("tool_1")] == ["view", "tool_1", "pinned", TOOL_SEARCH]


async def test_a_search_of_the_client_names_the_tools_it_has_found(tasks: TaskGroup) -> None:
    own = ClientTool(name=TOOL_SEARCH, description="Mine", overrides_built_in_tool=True, skip_permission=True)
    made = session_of(tasks, search_then_call("x", "getWeather")[::2], tools=[*MANY, WEATHER, own])
    made.send("go")
    request = await made.client.wait_for(events.ExternalToolRequested)
    made.answer_tool(request, {"textResultForLlm": "that one", "toolReferences": ["tool_2", "nowhere"]})
    await made.idle()

    assert made.client.payloads(events.ToolSearchActivated) == [
        events.ToolSearchActivated(strategy="client", tool_names=["tool_2"])
    ]
    assert shown(made) == ["view", "tool_2", TOOL_SEARCH]


async def test_tools_are_found_by_name_by_words_and_by_other_forms_of_them(tasks: TaskGroup) -> None:
    made = session_of(
        tasks,
        tools=[
            ClientTool(name="deleteFile", description="Remove something"),
            ClientTool(name="files", description="List what there is", parameters={"properties": {"folder": {}}}),
            ClientTool(name="mail", description="Send a message; deletes nothing"),
        ],
    )
    tools: Any = made.session.tools
    every = tools._tools.offered()

    def names(query: str) -> list[str]:
        return [
            tool.name for tool in search(query, {name: every[name] for name in ("deleteFile", "files", "mail")})
        ]

    assert names("mail, files") == ["mail", "files"]
    assert names("delete") == ["deleteFile", "mail"]
    assert names("file") == ["deleteFile", "files"]
    assert names("folders") == ["files"]
    assert names("") == []


def test_very_many_names_are_not_all_listed() -> None:
    text = guidance([f"tool_number_{number}" for number in range(1000)])
    assert len(text) < 6000
    assert text.endswith(" more.")


LONG = ClientTool(name="long", description="Much", parameters={"type": "object", "description": "x" * 500})


async def test_a_few_tools_with_very_long_schemas_are_deferred_too(tasks: TaskGroup) -> None:
    config = ToolSearchConfig(defer_characters=600)
    settings = SessionSettings.of(Path("/"), tool_search=config)
    few = make_session(tasks, settings=settings, tools=[LONG], builtin=[VIEW])
    more = make_session(tasks, settings=settings, tools=[LONG, *MANY, PINNED], builtin=[VIEW], session_id="more")

    assert shown(few) == ["view", "long"]
    assert shown(more) == ["view", "pinned", TOOL_SEARCH]


async def test_finding_one_long_tool_does_not_bring_the_others_back(tasks: TaskGroup) -> None:
    settings = SessionSettings.of(Path("/"), tool_search=ToolSearchConfig(defer_characters=600))
    script = search_then_call("long", "tool_1")
    made = make_session(tasks, script=script, settings=settings, tools=[LONG, *MANY, PINNED], builtin=[VIEW])
    made.session.permissions.set_mode("allow-all")
    made.send("go")
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), result="done")
    await made.idle()

    assert shown(made) == ["view", "long", "tool_1", "pinned", TOOL_SEARCH]


async def test_a_tool_that_the_user_mentions_is_not_deferred(tasks: TaskGroup) -> None:
    made = session_of(tasks)
    made.send("Use @{getWeather}")
    await made.idle()

    assert shown(made) == ["view", "getWeather", "pinned", TOOL_SEARCH]
