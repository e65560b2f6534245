"""Tools of MCP servers, with arbitrary names and schemas, in the form of every adapter."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest
from msgspec.structs import replace

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.adapters.wires.tool_schema import object_parameters
from jumpseat.agent.blocks import JsonObject, TextBlock, UserMessage
from jumpseat.agent.encoded_history import WrittenBudget, WrittenMessages, encode, plain
from jumpseat.agent.model import ModelRequest, ToolSchema, ToolSpec
from jumpseat.mcp.input_schema import repair_schema
from jumpseat.mcp.naming import tool_name
from tests.adapters.subjects import SUBJECTS
from tests.support.cases import all_cases

POINT: JsonObject = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
NASTY: dict[str, JsonObject] = {
    "nothing": {},
    "only a type": {"type": "object"},
    "no type": {"properties": {"a": {"type": "string"}}},
    "a choice": {"anyOf": [POINT, {"type": "object", "properties": {"y": {"type": "number"}}}]},
    "one of": {"type": "object", "oneOf": [POINT, POINT]},
    "a reference": {"$ref": "#/$defs/Point", "$defs": {"Point": POINT}},
    "references inside": {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/Point"}, "next": {"anyOf": [{"$ref": "#/$defs/Point"}, {}]}},
        "$defs": {"Point": POINT},
    },
    "a circle": {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    },
    "loose ends": {
        "type": "object",
        "properties": {"list": {"type": "array"}, "any": True, "either": {"type": ["array", "null"]}},
    },
    "not an object": {"type": "string"},
}


def schemas_of(value: Any) -> list[JsonObject]:
    """Return the parameters of a tool in a request, from the place of its wire."""
    found: list[JsonObject] = []
    if isinstance(value, dict):
        for key, item in cast("JsonObject", value).items():
            if key in ("parameters", "input_schema", "parametersJsonSchema") and isinstance(item, dict):
                found.append(cast("JsonObject", item))
            else:
                found += schemas_of(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            found += schemas_of(item)
    return found


def test_every_adapter_sends_one_object_schema_with_properties() -> None:
    with all_cases() as case:
        for name in PROVIDERS:
            for kind, schema in NASTY.items():
                with case(f"{name}: {kind}"):
                    tool = ToolSpec("s-t", "", ToolSchema.of(repair_schema(schema)[0]))
                    request = ModelRequest("m", "system", [UserMessage([TextBlock("hello")])], tools=[tool])
                    body = load_adapter(name).request(Endpoint("http://localhost:8080"), request).body
                    for sent in schemas_of(json.loads(json.dumps(body))):
                        assert_object_schema(sent)


@pytest.mark.anyio
async def test_every_adapter_sends_the_schemas_that_it_keeps_as_if_it_wrote_them_anew() -> None:
    tools = [ToolSpec("s-t", "Ü", ToolSchema.of(repair_schema(schema)[0])) for schema in NASTY.values()]
    anew = ModelRequest("m-1", "system", [UserMessage([TextBlock("hello")])], tools=tools)
    keeping = replace(anew, written=WrittenMessages(WrittenBudget()))
    with all_cases() as case:
        for subject in SUBJECTS:
            with case(str(subject)):
                body = (await subject.prepare(anew)).request.body
                for _ in range(2):
                    kept = (await subject.prepare(keeping)).request.body
                    assert encode(kept) == encode(body)
                    assert plain(kept) == body


def assert_object_schema(schema: JsonObject) -> None:
    assert schema["type"] in ("object", "OBJECT")
    assert isinstance(schema["properties"], dict)
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & schema.keys()
    properties = cast("JsonObject", schema["properties"])
    assert all(
        "items" in property_schema
        for property_schema in properties.values()
        if "array" in str(property_schema.get("type"))
    )


def test_alternative_objects_are_merged() -> None:
    merged = object_parameters(NASTY["a choice"])
    assert set(merged["properties"]) == {"x", "y"}
    assert not merged.get("required")


def test_a_supported_schema_is_unchanged() -> None:
    assert object_parameters(POINT) is POINT


def test_an_endless_schema_is_cut() -> None:
    deep: JsonObject = {"type": "object"}
    for _ in range(5000):
        deep = {"type": "object", "properties": {"a": deep}}
    json.dumps(repair_schema(deep)[0])


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("files", "read", "files-read"),
        ("my files", "lire.été", "my_files-lire__t_"),
        ("1st", "x", "_1st-x"),
    ],
)
def test_names_have_only_characters_that_all_wires_accept(server: str, tool: str, name: str) -> None:
    assert tool_name(server, tool) == name


def test_names_that_are_too_long_or_taken_become_unique_and_stable() -> None:
    long = "x" * 100
    first, second = tool_name("s", long + "a"), tool_name("s", long + "b")
    assert first != second
    assert first == tool_name("s", long + "a")
    assert tool_name("s", "a b", {"s-a_b"}) != "s-a_b"
    for name in (first, second, tool_name("s", "a b", {"s-a_b"})):
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", name)
