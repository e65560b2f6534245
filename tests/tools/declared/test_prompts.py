"""Instructions of declared tools and groups in the system message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.conversation.prompt import system_prompt
from jumpseat.agent.model_calls.requests import system_message
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol.sessions import SystemMessageConfig, SystemMessageSection
from tests.tools.declared.runs import session_of

pytestmark = pytest.mark.anyio

NOOP = [["true"]]


def of_schema(schema: Any) -> str:
    return f"Use {schema['function']['name']}."


def of_group(group: Any) -> str:
    return f"This is {group.name}."


def fails(schema: Any) -> str:
    raise ValueError


async def section(tasks: TaskGroup, tools: dict[str, dict[str, Any]], prompt: str = "go", **settings: Any) -> str:
    """Return the section on tools as a client that transforms it receives it."""
    config = SystemMessageConfig(
        mode="customize", sections={"tool_instructions": SystemMessageSection(action="transform")}
    )
    made = session_of(tasks, tools, settings=SessionSettings.of(Path("/"), system_message=config, **settings))
    await made.ask(prompt)
    return made.client.to_transform[0]["tool_instructions"]


async def test_system_prompts_of_tools_are_in_the_section_on_tools(tasks: TaskGroup) -> None:
    tools = {
        "a": {"cmds": NOOP, "system_prompt": "Mind the gap."},
        "b": {"cmds": NOOP, "system_prompt": of_schema},
        "c": {"cmds": NOOP, "system_prompt": fails},
    }

    assert (await section(tasks, tools)).endswith("\n\nMind the gap.\n\nUse b.")


async def test_hidden_tools_add_no_instructions(tasks: TaskGroup) -> None:
    tools = {
        "a": {"cmds": NOOP, "system_prompt": "Mind the gap."},
        "b": {"cmds": NOOP, "system_prompt": "Never."},
        "c": {"cmds": NOOP, "system_prompt": "Never.", "on_mention": True},
        "d": {"cmds": NOOP, "system_prompt": "Never.", "enabled": False},
    }

    text = await section(tasks, tools, excluded_tools=["b"])
    assert "Mind the gap." in text
    assert "Never." not in text


async def test_a_group_adds_its_instructions_once_it_is_mentioned(tasks: TaskGroup) -> None:
    tools: dict[str, dict[str, Any]] = {
        "a": {"cmds": NOOP, "on_mention": True, "system_prompt": "Mind the gap."},
        "house": {"tools": ["a"], "system_prompt": of_group},
    }

    assert (await section(tasks, tools, "use @{house}")).endswith("\n\nThis is house.\n\nMind the gap.")
    assert "house" not in await section(tasks, tools)


def test_the_client_can_move_the_section() -> None:
    remove = SystemMessageConfig(
        mode="customize", sections={"tool_instructions": SystemMessageSection(action="remove")}
    )
    replace = SystemMessageConfig(mode="replace", content="Mine.")

    assert "Mind the gap." in system_prompt(SystemMessageConfig(), Path("/"), tools="Mind the gap.")
    assert "Mind the gap." not in system_prompt(remove, Path("/"), tools="Mind the gap.")
    assert system_prompt(replace, Path("/"), tools="Mind the gap.") == "Mine."


async def test_a_named_group_can_replace_the_instructions_of_the_server(tasks: TaskGroup) -> None:
    opts = {"collapse_tools": True, "ignore_system_prompt": True, "ignore_tool_system_prompt": True}
    tools = {
        "tag": {"cmds": NOOP, "system_prompt": "Tag with care."},
        "release": {"tools": ["tag"], "system_prompt": "You release software.", "opts": opts},
    }

    made = session_of(tasks, tools)
    before = await system_message(made.session)
    await made.ask("Use @{release}")
    after = await system_message(made.session)

    assert "You are a coding agent" in before
    assert "Paths are relative" in before
    # What remains: facts about the session, safety, and what the tools and groups say.
    environment, safety, instructions = after.split("\n\n", 2)
    assert environment.startswith("Current working directory: /")
    assert safety.startswith("Never reveal secrets.")
    assert instructions == "You release software.\n\nTag with care."
