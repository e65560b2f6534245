"""Reading declarations: names of handlers old and new, extending, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from jumpseat.adapters.declared.declaration import read_declaration
from jumpseat.adapters.declared.handler_names import GROUPS, read_handlers
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.errors import ConfigError
from tests.support.cases import all_cases


def handler(*_: Any) -> None: ...


def other(*_: Any) -> None: ...


def test_every_handler_can_be_declared_flat_and_in_its_group() -> None:
    with all_cases() as case:
        for group, names in GROUPS.items():
            for name, older in names.items():
                for alias in (name, *older):
                    with case(f"{group}: {alias}"):
                        assert read_handlers({alias: handler}) == {name: handler}
                        assert read_handlers({group: {alias: handler}}) == {name: handler}


def test_groups_and_flat_names_can_be_mixed() -> None:
    raw = {
        "response": {"parse_chat": handler, "parse_extra": handler},
        "chat_output": other,
        "form_messages": other,
        "tools": {"output_response": handler},
    }

    assert read_handlers(raw) == {
        "parse_chat": handler,
        "parse_meta": handler,
        "build_messages": other,
        "format_response": handler,
    }


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"parse_chatt": handler}, "handlers.parse_chatt: unknown handler, did you mean 'parse_chat'?"),
        (
            {"response": {"build_body": handler}},
            "handlers.response.build_body: unknown handler, expected one of parse_chat",
        ),
        ({"setup": "cmd:x"}, "handlers.setup: expected a function, got a string"),
        ({"request": handler}, "handlers.request: expected a table of handlers"),
    ],
)
def test_an_invalid_handler_is_named(raw: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_handlers(raw)

    assert text in str(raised.value)


def test_extending_merges_tables_and_replaces_everything_else() -> None:
    base = read_declaration(
        {
            "name": "base",
            "env": {"api_key": "BASE_KEY", "base_url": "https://base"},
            "schema": {"model": {"default": "large", "choices": ["large"], "mapping": "parameters"}},
            "raw": ["--compressed"],
            "handlers": {"chat_output": handler, "setup": handler},
        },
        where="base",
    )

    child = read_declaration(
        {
            "extends": "base",
            "name": "child",
            "env": {"base_url": "https://child"},
            "schema": {"model": {"default": "small"}, "temperature": {"type": "number"}},
            "raw": ["--insecure"],
            "handlers": {"response": {"parse_chat": other}},
        },
        where="child",
        base=base,
    )

    assert child.env == {"api_key": "BASE_KEY", "base_url": "https://child"}
    assert child.settings["model"].default == "small"
    assert child.settings["model"].mapping == "parameters"
    assert list(child.settings) == ["model", "temperature"]
    assert child.raw == ["--insecure"]
    assert child.handlers == {"parse_chat": other, "setup": handler}
    assert base.env["base_url"] == "https://base"
    assert list(base.settings) == ["model"]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({}, "mine: name: required, but missing"),
        ({"name": "x", "headres": {}}, "mine: headres: unknown, did you mean 'headers'?"),
        (
            {"name": "x", "schema": {"model": {"typ": "string"}}},
            "mine: schema.model.typ: unknown, did you mean 'type'?",
        ),
        ({"name": "x", "handlers": []}, "mine.handlers: expected a table"),
        (
            {"name": "x", "raw": ["--upload-file", "x"]},
            "mine.raw: '--upload-file' is not supported; supported: --insecure",
        ),
        ({"name": "x", "raw": ["--proxy"]}, "mine.raw: '--proxy' needs a value"),
        (
            {"name": "x", "schema": {"model": {"default": ["m"]}}},
            "mine.schema.model.default: expected the name of a model, got an array",
        ),
        (
            {"name": "x", "schema": {"heat": {"type": "number", "default": "hot"}}},
            "mine.schema.heat.default: expected a number, got a string",
        ),
    ],
)
def test_an_invalid_field_of_a_declaration_is_named(raw: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_declaration(raw, where="mine")

    assert text in str(raised.value)


def test_dotted_paths_resolve_in_tables_and_entries_only() -> None:
    declaration = read_declaration(
        {"name": "x", "opts": {"region": {"name": "eu"}}, "schema": {"model": {"default": "m"}}}, where="x"
    )

    view = AdapterView(declaration)
    assert view.lookup("schema.model.default") == "m"
    assert view.lookup("opts.region.name") == "eu"
    assert view.lookup("opts.region.name.more") is None
    assert view.lookup("schema.model.model_dump") is None
    assert view.lookup("nothing") is None
