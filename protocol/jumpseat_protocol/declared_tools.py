"""``jumpseat.tools.*``, which the Copilot SDK protocol does not have: tools that are declared, not programmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.wire import Method, WireModel


class DeclaredToolSummary(WireModel):
    """``origin`` tells where it is declared. ``problem`` tells why it cannot be used."""

    name: str
    kind: Literal["tool", "group"]
    description: str
    origin: Literal["client", "project", "configuration", "home", "package"]
    problem: str | None = None


class DeclaredToolsListParams(WireModel):
    """``working_directory`` is that of a session, and settles which project's tools there are; unset, none."""

    working_directory: str | None = None


class DeclaredToolsListResult(WireModel):
    """All declared tools and groups, sorted by name."""

    tools: list[DeclaredToolSummary]


class DeclaredToolGetParams(WireModel):
    """``working_directory`` is as in the list."""

    name: str = Field(min_length=1)
    working_directory: str | None = None


class GroupMember(WireModel):
    """``origin`` tells where it comes from; unset, it is of a client, or not there."""

    name: str
    origin: Literal["built-in", "mcp", "client", "project", "configuration", "home", "package"] | None = None


class DeclaredToolDescription(WireModel):
    """A tool or a group without its functions, and without values of ``env``.

    ``commands`` are as they are declared, ``None`` in the place of a function. ``approval`` tells whether a person
    is asked before a call runs; ``depends`` leaves it to a function. ``tools`` are the members of a group, and
    ``members`` the same with where they come from.
    """

    name: str
    kind: Literal["tool", "group"]
    description: str
    origin: Literal["client", "project", "configuration", "home", "package"]
    problem: str | None = None
    parameters: dict[str, Any] | None = None
    commands: list[list[str] | str | None] | None = None
    env: list[str] | None = None
    handlers: list[str] | None = None
    approval: Literal["always", "never", "depends"] | None = None
    timeout_s: float | None = None
    on_mention: StrictBool | None = None
    parallel: StrictBool | None = None
    tools: list[str] | None = None
    members: list[GroupMember] | None = None


class DeclaredToolGetResult(WireModel):
    tool: DeclaredToolDescription


class DeclaredToolRegisterParams(WireModel):
    """A declaration, as in a TOML file, with a ``name``: commands only, and a person is asked before each call."""

    declaration: dict[str, Any]


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.tools.list": Method(DeclaredToolsListParams, DeclaredToolsListResult),
    "jumpseat.tools.get": Method(DeclaredToolGetParams, DeclaredToolGetResult),
    "jumpseat.tools.register": Method(DeclaredToolRegisterParams, DeclaredToolGetResult),
}
