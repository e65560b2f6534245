"""Reading declarations in all their forms, and the errors of invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.agent.blocks import JsonObject
from jumpseat.errors import ConfigError
from jumpseat.tools.declared.definition import Definition, read_definition

NOOP = [["true"]]
STRING = {"type": "string"}


def read(**raw: Any) -> Definition:
    return read_definition(raw, where="t.toml", name="t")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"parameters": {"type": "object"}}, {"type": "object", "properties": {}}),
        (
            {
                "parameters": {
                    "a": STRING,
                    "b": {"type": "integer", "optional": True},
                    "c": {"enum": [1], "default": 1},
                }
            },
            {
                "type": "object",
                "properties": {"a": STRING, "b": {"type": "integer"}, "c": {"enum": [1], "default": 1}},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
        # Parameters with the names of JSON Schema keywords.
        (
            {"parameters": {"type": STRING, "properties": STRING}},
            {
                "type": "object",
                "properties": {"type": STRING, "properties": STRING},
                "required": ["type", "properties"],
                "additionalProperties": False,
            },
        ),
        (
            {"schema": {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}},
            {"type": "object", "properties": {}},
        ),
        ({"schema": {"name": "t", "parameters": {"a": STRING}}}, None),
        ({"schema": {"properties": {"a": STRING}}}, {"type": "object", "properties": {"a": STRING}}),
        (
            {
                "schema": {
                    "name": "t",
                    "parameters": {"inputs": {"lang": "python", "n": 1, "on": True, "all": ["x"]}},
                }
            },
            {
                "type": "object",
                "properties": {
                    "inputs": {
                        "type": "object",
                        "properties": {
                            "lang": {"type": "string", "examples": ["python"]},
                            "n": {"type": "integer"},
                            "on": {"type": "boolean"},
                            "all": {"type": "array", "items": {"type": "string", "examples": ["x"]}},
                        },
                        "required": ["lang", "n", "on", "all"],
                    }
                },
                "required": ["inputs"],
            },
        ),
    ],
)
def test_parameters_come_in_many_forms(form: JsonObject, expected: JsonObject | None) -> None:
    parameters = read(cmds=NOOP, **form).parameters
    assert expected is None or parameters == expected


def test_keys_around_a_callback_are_merged_into_its_tool() -> None:
    inner = {"name": "inner", "cmds": NOOP, "description": "inner", "opts": {"timeout": 1000, "parallel": True}}
    tool = read(callback=lambda: inner, description="outer", opts={"parallel": False})

    assert (tool.name, tool.description, tool.timeout_s, tool.opts.parallel) == ("inner", "outer", 1.0, False)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, "t.toml: expected cmds"),
        ({"cmds": "true"}, "t.toml: cmds: "),
        ({"cmds": [1]}, r"t.toml.cmds\[0\]: expected a list of strings, a string or a function, got 1"),
        ({"cmds": [[True]]}, r"t.toml.cmds\[0\]: expected a list of strings, but one element is a boolean"),
        ({"cmds": [" "]}, r"t.toml.cmds\[0\]: expected a command"),
        ({"cmds": [{"cmd": ["x"], "flagg": 1}]}, r"t.toml.cmds\[0\].flagg: unknown, did you mean 'flag'\?"),
        ({"cmds": NOOP, "handlers": {"setupp": print}}, r"t.toml.handlers.setupp: unknown, did you mean 'setup'\?"),
        ({"cmds": NOOP, "handlers": {"setup": "x"}}, "t.toml.handlers.setup: expected a function, got a string"),
        ({"cmds": NOOP, "output": {"success": "x"}}, "t.toml.output.success: expected a function"),
        ({"cmds": NOOP, "env": 1}, "t.toml.env: expected a function"),
        ({"cmds": NOOP, "env": {"a": {"valeu": "x"}}}, r"t.toml.env.a.valeu: unknown, did you mean 'value'\?"),
        (
            {"cmds": NOOP, "parameters": {"a": {"$ref": "#/$defs/b"}}},
            r"parameters.properties.a.\$ref: the schema has no '#/\$defs/b'",
        ),
        ({"cmds": NOOP, "enabled": "no"}, "t.toml.enabled: expected a boolean or a function"),
        ({"cmds": NOOP, "system_prompt": 1}, "t.toml.system_prompt: expected a string or a function"),
        ({"cmds": NOOP, "parameters": 1}, "t.toml.parameters: expected a table"),
        ({"cmds": NOOP, "parameters": {}, "schema": {}}, "expected parameters or schema, not both"),
        (
            {"cmds": NOOP, "parameters": {"a": {"type": "strin"}}},
            "parameters.properties.a.type: unknown type 'strin', did you mean 'string'",
        ),
        ({"cmds": NOOP, "schema": [1]}, "t.toml.schema: expected a list of tables with 'tool' in them"),
        ({"cmds": NOOP, "extends": "other"}, "t.toml.extends: expected 'cmd_tool'"),
        ({"cmds": NOOP, "opts": {"timeout_s": 0}}, "opts.timeout_s: "),
        ({"cmds": NOOP, "callback": 1}, "t.toml.callback: expected a tool"),
    ],
)
def test_errors_name_their_place(raw: JsonObject, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        read(**raw)


def test_data_only_declarations_contain_no_functions() -> None:
    with pytest.raises(ConfigError, match=r"t\.cmds\[0\]: expected data, not a function"):
        read_definition({"name": "t", "cmds": [print]}, where="t", data_only=True)
