from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from jumpseat.agent.settings import SessionSettings
from jumpseat.tools import builtin
from jumpseat.tools.builtin import BUILTIN_TOOLS, SESSION_TOOLS, find_tools
from jumpseat.tools.tool import BuiltinTool
from jumpseat_protocol import events
from tests.support.sessions import make_session

SHOUT = """
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome


class ShoutArgs(ToolArgs):
    text: str


async def run_shout(ctx: ToolContext, args: ShoutArgs) -> ToolOutcome:
    return ToolOutcome(args.text.upper())


TOOL = BuiltinTool(
    name="shout",
    description="Return a text in capitals.",
    args=ShoutArgs,
    run=run_shout,
    intention=lambda args: f"Shout {args.text}",
)
"""


def test_the_tools_come_in_the_documented_order() -> None:
    assert [tool.name for tool in BUILTIN_TOOLS] == [
        "bash",
        "read_bash",
        "write_bash",
        "stop_bash",
        "list_bash",
        "view",
        "create",
        "edit",
        "grep",
        "glob",
        "ask_user",
        "web_fetch",
        "web_search",
    ]
    assert [tool.name for tool in SESSION_TOOLS] == [
        "sql",
        "task",
        "read_agent",
        "list_agents",
        "write_agent",
        "manage_schedule",
        "exit_plan_mode",
        "skill",
        "task_complete",
        "store_memory",
        "vote_memory",
        "invoke_canvas_action",
        "list_canvas_capabilities",
        "open_canvas",
    ]


def test_every_file_is_named_after_its_tool() -> None:
    files = {path.stem for path in Path(builtin.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == builtin.BUILTIN_NAMES


@pytest.mark.anyio
async def test_one_file_adds_a_tool_that_a_model_can_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shout.py").write_text(SHOUT)
    monkeypatch.setattr(builtin, "__path__", [*builtin.__path__, str(tmp_path)])
    tools = [found for found in find_tools() if isinstance(found, BuiltinTool)]
    assert [tool.name for tool in tools] == [*(tool.name for tool in BUILTIN_TOOLS), "shout"]
    script = [{"tool_calls": [{"name": "shout", "arguments": {"text": "hi"}}]}, {"text": "done"}]
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=script, settings=SessionSettings(cwd=tmp_path), builtin=tools)
        await made.ask("go")
        (completion,) = made.client.payloads(events.ToolExecutionComplete)
        assert completion.result is not None
        assert completion.result.content == "HI"


def test_a_file_without_a_tool_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolless.py").write_text("TOOL = None\n")
    monkeypatch.setattr(builtin, "__path__", [str(tmp_path)])
    with pytest.raises(TypeError, match="toolless: expected TOOL"):
        find_tools()


def test_the_tools_cost_the_model_little() -> None:
    specs = [
        {"name": tool.spec.name, "description": tool.spec.description, "parameters": tool.spec.parameters}
        for tool in BUILTIN_TOOLS
        if not tool.name.startswith("web_")
    ]
    assert len(json.dumps(specs, separators=(",", ":"))) < 4000


def test_every_schema_is_an_object_with_the_names_of_the_wire() -> None:
    names = {tool.name: list(tool.spec.parameters["properties"]) for tool in BUILTIN_TOOLS}
    assert names["bash"] == ["command", "description", "mode", "detach", "initial_wait", "unsandboxed"]
    assert names["read_bash"] == ["shellId", "delay"]
    assert names["view"] == ["path", "view_range"]
    assert names["edit"] == ["path", "old_str", "new_str"]
    assert {"-n", "-i", "-A", "-B", "-C"} <= set(names["grep"])
    assert all(tool.spec.parameters["type"] == "object" for tool in BUILTIN_TOOLS)
