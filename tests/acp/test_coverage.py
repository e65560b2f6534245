"""The page about what is served says what the tables say, and these have all names of the published schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from jumpseat.acp import draft_routes, v1_routes
from jumpseat.acp.coverage import page
from jumpseat.acp.draft.version import CAPABILITIES as DRAFT_CAPABILITIES
from jumpseat.acp.facts import V1, V2
from jumpseat.acp.methods.initialize import CAPABILITIES
from tests.acp.conftest import package

PAGE = Path(__file__).parents[2] / "docs" / "acp-coverage.md"

UNIONS: Final = {
    "updates": "SessionUpdate",
    "content": "ContentBlock",
    "content of tool calls": "ToolCallContent",
    "status of tool calls": "ToolCallStatus",
    "changes in diffs": "DiffChange",
    "states": "StateUpdate",
    "work in the background": "BackgroundWork",
    "subjects of permissions": "RequestPermissionSubject",
    "options of permissions": "PermissionOptionKind",
    "options of sessions": "SessionConfigOption",
    "plans": "PlanUpdateContent",
    "ways to log in": "AuthMethod",
    "transports of MCP": "McpServer",
    "elicitations": "CreateElicitationRequest",
    "replays": "ReplayFrom",
    "commands": "AvailableCommand",
}
"""The definitions of the schemas whose alternatives are the names of a category."""

OWN: Final = {"session/set_model"}
"""Methods of older editors, which no schema has."""


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "python -m jumpseat.acp.coverage > docs/acp-coverage.md"


def test_the_tables_are_those_of_the_server() -> None:
    doors = ((V1, v1_routes, CAPABILITIES), (V2, draft_routes, DRAFT_CAPABILITIES))
    for facts, door, capabilities in doors:
        methods = {name for name, fact in facts["methods of the agent"].items() if fact.kind == "served"}
        assert methods == {*door.REQUESTS, *door.NOTIFICATIONS} - OWN
        declared = {name for name, fact in facts["capabilities of the agent"].items() if fact.kind == "served"}
        assert declared == set(_declared(capabilities))


@pytest.mark.parametrize("version", [1, 2])
def test_the_tables_have_all_names_of_the_schemas(version: int) -> None:
    folder = package() / "schema" / f"v{version}"
    stable, unstable = (
        _names(version, json.loads((folder / name).read_text())["$defs"])
        for name in ("schema.json", "schema.unstable.json")
    )
    facts = V1 if version == 1 else V2
    for category in facts:
        ours = facts[category]
        assert set(ours) == unstable[category], category
        # The stable schema may have an empty object for what the other one has more of.
        assert {name for name, fact in ours.items() if fact.is_stable} == stable[category] & set(ours), category
    assert set(facts) == set(unstable)


def _declared(capabilities: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in capabilities.items():
        if isinstance(value, dict) and value:
            yield from _declared(value, f"{before}{name}.")  # pyright: ignore[reportUnknownArgumentType]
        elif value is not False:
            yield f"{before}{name}"


def _names(version: int, definitions: dict[str, Any]) -> dict[str, set[str]]:
    """Return the names of a schema, by categories."""
    found = {
        category: set(_alternatives(definitions[name])) if name in definitions else set[str]()
        for category, name in UNIONS.items()
        if version == 2 or category in V1
    }
    sides = {
        "agent": "methods of the agent",
        "client": "methods of the editor",
        "protocol": "methods of both sides",
    }
    sides["proxy"] = sides["agent"]
    for side in sides.values():
        found.setdefault(side, set())
    for definition in definitions.values():
        if "x-method" in definition:
            found[sides[definition["x-side"]]].add(definition["x-method"])
    found["capabilities of the agent"] = set(_paths(definitions, "AgentCapabilities"))
    found["capabilities of the editor"] = set(_paths(definitions, "ClientCapabilities"))
    found["stop reasons"] = set(_alternatives(definitions["StopReason" if version == 1 else "IdleStateUpdate"]))
    return found


def _alternatives(definition: dict[str, Any]) -> Iterator[str]:
    """Yield the constants that tell the alternatives of a definition apart."""
    for one in (*definition.get("oneOf", ()), *definition.get("anyOf", ())):
        members = one.get("properties", {}).values()
        yield from (part["const"] for part in (one, *members) if "const" in part)


def _paths(definitions: dict[str, Any], name: str, before: str = "") -> Iterator[str]:
    """Yield the paths to the members of a definition that have no members themselves."""
    for member, schema in definitions[name]["properties"].items():
        if member == "_meta":
            continue
        inner = [one for one in _references(schema) if set(definitions[one].get("properties", ())) - {"_meta"}]
        if inner:
            yield from _paths(definitions, inner[0], f"{before}{member}.")
        else:
            yield f"{before}{member}"


def _references(schema: dict[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    for alternatives in ("allOf", "anyOf", "oneOf"):
        for one in schema.get(alternatives, ()):
            yield from _references(one)
