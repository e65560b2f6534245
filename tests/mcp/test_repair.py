"""Definitions of tools and results with invalid parts: the parts are lost, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.json_schema import check_schema
from jumpseat.mcp.input_schema import repair_schema
from jumpseat_protocol.tool_checks import schema_problem
from tests.support.cases import all_cases
from tests.support.mcp_servers import call, rude, session_with, turn
from tests.support.server import running_server

YOLO = ("--yolo",)
TEXT: JsonObject = {"type": "string"}


def properties(**named: Any) -> JsonObject:
    return {"type": "object", "properties": named}


INVALID: dict[str, tuple[Any, str]] = {
    "no schema": (None, "type"),
    "a text": ("none", "type"),
    "no type": ({"properties": {"a": TEXT}}, "type"),
    "a choice at the root": ({"anyOf": [properties(a=TEXT), properties(b=TEXT)]}, "type"),
    "null for a list": ({**properties(a=TEXT), "required": None}, "required"),
    "null for properties": ({"type": "object", "properties": None}, "properties"),
    "an unknown type": (properties(a={"type": "int"}), "properties.a.type"),
    "unknown types": (properties(a={"type": ["string", "none"]}), "properties.a.type"),
    "no target": (properties(a={"$ref": "#/$defs/Nope"}), "properties.a.$ref"),
    "an invalid target": ({**properties(a={"$ref": "#/$defs/A"}), "$defs": {"A": 1}}, "$defs.A"),
    "another document": (properties(a={"$ref": "https://example.com/a.json"}), "properties.a.$ref"),
    "keywords in properties": (properties(a=TEXT, required=["a"], type="object"), "properties.required"),
    "a flag of draft 3": (properties(a={"type": "string", "required": True}), "properties.a.required"),
    "a text for a number": (properties(a={"type": "number", "minimum": "0"}), "properties.a.minimum"),
    "a negative length": (properties(a={"type": "string", "maxLength": -1}), "properties.a.maxLength"),
    "a number for a text": (properties(a={"type": "string", "description": 5}), "properties.a.description"),
    "no values": (properties(a={"enum": []}), "properties.a.enum"),
    "no choices": (properties(a={"anyOf": []}), "properties.a.anyOf"),
    "a text for a schema": (properties(a={"type": "array", "items": "string"}), "properties.a.items"),
    "rest": ({**properties(a=TEXT), "additionalProperties": "no"}, "additionalProperties"),
}
VALID: dict[str, JsonObject] = {
    "null as a value": properties(a={"enum": ["x", None], "default": None}, b={"const": None}),
    "a circle": {**properties(a={"$ref": "#/$defs/A"}), "$defs": {"A": properties(a={"$ref": "#/$defs/A"})}},
    "draft 4": properties(a={"type": "number", "minimum": 0, "exclusiveMinimum": True}),
    "draft 7": properties(a={"type": "array", "items": [TEXT, TEXT], "additionalItems": False}),
    "a property with the name of a keyword": properties(required=TEXT, type=TEXT, enum=TEXT),
    "anything": properties(a=True, b={}),
}


def test_schemas_are_repaired_to_those_that_providers_accept() -> None:
    with all_cases() as case:
        for name, (schema, place) in INVALID.items():
            with case(name):
                before = json.dumps(schema)
                repaired, problems = repair_schema(schema)
                check_schema(repaired)
                assert schema_problem(repaired) is None
                assert problems[0].startswith(f"inputSchema.{place}: ")
                assert json.dumps(schema) == before
        for name, schema in VALID.items():
            with case(name):
                repaired, problems = repair_schema(schema)
                check_schema(repaired)
                assert (problems, repaired["properties"].keys()) == ([], schema["properties"].keys())


def definition(name: Any, schema: Any = None, **more: Any) -> JsonObject:
    return {"name": name, "inputSchema": {"type": "object"} if schema is None else schema, **more}


@pytest.mark.anyio
async def test_an_invalid_definition_costs_no_other_tool(tmp_path: Path) -> None:
    listed = tmp_path / "tools.json"
    deep: JsonObject = {"type": "object"}
    for _ in range(400):
        deep = properties(a=deep)
    choice = {"oneOf": [properties(a=TEXT), properties(b=TEXT)]}
    tools = [
        definition("go"),
        definition("old", properties(a={"type": "int"}), annotations="none", outputSchema={}),
        definition("pick", choice),
        definition(7),
        "nothing",
        definition("deep", deep),
    ]
    listed.write_text(json.dumps(tools))
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "rude", rude("nasty", str(listed)), *turn("rude-old", a=1))
        warning = (await server.wire.event("session.warning", session=session))["data"]["message"]
        done, _ = await call(server.wire, session)
        tools = await server.wire.call("session.mcp.listTools", {"sessionId": session, "serverName": "rude"})
    assert done["success"]
    assert [tool["name"] for tool in tools["tools"]] == ["go", "old", "pick", "deep"]
    assert "'old': inputSchema.properties.a.type: unknown type 'int'" in warning
    assert "'pick': inputSchema.type: expected 'object'" in warning
    assert "7 is left out: name: " in warning
    assert "tools.4 is left out" in warning


RESULTS: dict[str, tuple[JsonObject, str]] = {
    "an unknown type": ({"content": [{"type": "text", "text": "a"}, {"type": "json", "value": 1}]}, 'a\n{"type'),
    "no type": ({"content": [{"text": "x"}, {"type": "text", "text": "a"}]}, "\na"),
    "no mimeType": ({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA=="}]}, "mimeType"),
    "no text": ({"content": [{"type": "text"}, {"type": "text", "text": "a"}]}, "\na"),
    "no block": ({"content": ["x", {"type": "text", "text": "a"}]}, '"x"\na'),
    "no address": ({"content": [{"type": "resource", "resource": {"text": "x"}}]}, "[resource left out"),
    "odd hints": ({"content": [{"type": "text", "text": "a", "annotations": "none", "_meta": 1}]}, "a"),
    "no content": ({"structuredContent": {"a": 1}}, '{"a":1}'),
    "null as content": ({"content": None, "structuredContent": {"a": 1}}, '{"a":1}'),
    "a list as structure": ({"content": [], "structuredContent": [1, 2]}, "[1,2]"),
}


@pytest.mark.anyio
async def test_an_invalid_block_costs_no_other_part_of_a_result(tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps([result for result, _ in RESULTS.values()]))
    turns = [step for _ in RESULTS for step in turn("rude-go")]
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "rude", rude("answering", str(answers)), *turns)
        with all_cases() as case:
            for name, (_, expected) in RESULTS.items():
                with case(name):
                    done, text = await call(server.wire, session)
                    assert (done["success"], expected in text) == (True, True), text
