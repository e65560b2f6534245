from __future__ import annotations

import json

from jumpseat.tools import BUILTIN_TOOLS


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
    ]


def test_the_tools_cost_the_model_little() -> None:
    specs = [
        {"name": tool.spec.name, "description": tool.spec.description, "parameters": tool.spec.parameters}
        for tool in BUILTIN_TOOLS
    ]
    assert len(json.dumps(specs, separators=(",", ":"))) < 4000


def test_every_schema_is_an_object_with_the_names_of_the_wire() -> None:
    names = {tool.name: list(tool.spec.parameters["properties"]) for tool in BUILTIN_TOOLS}
    assert names["bash"] == ["command", "description", "mode", "initial_wait"]
    assert names["read_bash"] == ["shellId", "delay"]
    assert names["view"] == ["path", "view_range"]
    assert names["edit"] == ["path", "old_str", "new_str"]
    assert {"-n", "-i", "-A", "-B", "-C"} <= set(names["grep"])
    assert all(tool.spec.parameters["type"] == "object" for tool in BUILTIN_TOOLS)
