from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from jumpseat.tools import builtin
from jumpseat.tools.builtin import builtin_tools, find_tools, session_tools

OLDER_TOOLS: Final = (
    *("bash", "read_bash", "write_bash", "stop_bash", "list_bash", "view", "create", "edit", "grep", "glob"),
    *("ask_user", "web_fetch", "web_search"),
)
OLDER_TOOLS_OF_SESSIONS: Final = (
    *("sql", "task", "read_agent", "list_agents", "write_agent", "manage_schedule", "exit_plan_mode", "skill"),
    *("task_complete", "store_memory", "vote_memory"),
)


def test_new_tools_follow_the_older_ones_by_name() -> None:
    # Providers cache the beginning of a request.
    for tools, older in ((builtin_tools(), OLDER_TOOLS), (session_tools(), OLDER_TOOLS_OF_SESSIONS)):
        names = [tool.name for tool in tools]
        new = names[len(older) :]
        assert names == [*older, *sorted(new)]


def test_every_file_is_named_after_its_tool() -> None:
    files = {path.stem for path in Path(builtin.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == builtin.BUILTIN_NAMES


def test_a_file_without_a_tool_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toolless.py").write_text("TOOL = None\n")
    monkeypatch.setattr(builtin, "__path__", [str(tmp_path)])
    with pytest.raises(TypeError, match="toolless: expected TOOL"):
        find_tools()


def test_the_tools_cost_the_model_little() -> None:
    specs = [
        {"name": tool.spec.name, "description": tool.spec.description, "parameters": tool.spec.parameters}
        for tool in builtin_tools()
        # One of the tools that change files is offered in place of the others, and scripts are for those who ask.
        if not tool.name.startswith("web_") and tool.name not in ("apply_patch", "call_tools")
    ]
    assert len(json.dumps(specs, separators=(",", ":"))) < 370 * len(specs)


def test_every_schema_is_an_object_with_the_names_of_the_wire() -> None:
    names = {tool.name: list(tool.spec.parameters["properties"]) for tool in builtin_tools()}
    assert names["bash"] == ["command", "description", "mode", "detach", "initial_wait", "unsandboxed"]
    assert names["read_bash"] == ["shellId", "delay"]
    assert names["view"] == ["path", "view_range"]
    assert names["edit"] == ["path", "old_str", "new_str", "replace_all", "edits"]
    assert {"-n", "-i", "-A", "-B", "-C"} <= set(names["grep"])
    assert all(tool.spec.parameters["type"] == "object" for tool in builtin_tools())
