"""``jumpseat.tools.*``: declared tools. These methods are not part of the Copilot SDK protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.wire import Method, WireModel


class DeclaredToolSummary(WireModel):
    """``origin`` is where the tool is declared, ``problem`` the reason why it cannot be used."""

    name: str
    """The name of the tool."""
    kind: Literal["tool", "group"]
    description: str
    origin: Literal["client", "project", "configuration", "home", "package"]
    """Where it is declared."""
    problem: str | None = None
    """Why it cannot be used."""


class DeclaredToolsListParams(WireModel):
    """``working_directory`` selects the project whose tools are included; by default, none."""

    working_directory: PathText | None = None


class DeclaredToolsListResult(WireModel):
    """All declared tools and groups, sorted by name."""

    tools: list[DeclaredToolSummary]
    """The tools, sorted by name."""


class DeclaredToolGetParams(WireModel):
    """``working_directory`` is as in ``jumpseat.tools.list``."""

    name: str = Field(min_length=1)
    """The name of the tool."""
    working_directory: PathText | None = None


class GroupMember(WireModel):
    """``origin`` is unset if the tool belongs to a client or does not exist."""

    name: str
    """The name of the tool."""
    origin: Literal["built-in", "mcp", "client", "project", "configuration", "home", "package"] | None = None
    """Where it is declared."""


class DeclaredToolDescription(WireModel):
    """A tool or a group without its functions, and without the values of ``env``.

    ``commands`` are as declared, with ``null`` in place of a function. ``approval`` is whether a person is asked
    before a call runs; ``depends`` means that a function decides. ``tools`` are the members of a group, and
    ``members`` the same with their origins; with ``collapse_tools``, the group is to be shown instead of them.
    """

    name: str
    """The name of the tool."""
    kind: Literal["tool", "group"]
    description: str
    origin: Literal["client", "project", "configuration", "home", "package"]
    """Where it is declared."""
    problem: str | None = None
    """Why it cannot be used."""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments."""
    commands: list[list[str] | str | None] | None = None
    """The commands that it runs; ``null`` for a function."""
    env: list[str] | None = None
    handlers: list[str] | None = None
    """The names of its functions."""
    approval: Literal["always", "never", "depends"] | None = None
    """Whether a person is asked before each call."""
    timeout_s: float | None = None
    """The time limit of a call, in seconds."""
    on_mention: StrictBool | None = None
    """Whether it is offered only once a prompt names it."""
    parallel: StrictBool | None = None
    """Whether several calls may run at once."""
    tools: list[str] | None = None
    """The names of a group's tools."""
    members: list[GroupMember] | None = None
    """The tools of a group."""
    collapse_tools: StrictBool | None = None
    """Whether a group is offered as one tool."""


class DeclaredToolGetResult(WireModel):
    tool: DeclaredToolDescription
    """The tool."""


class DeclaredToolRegisterParams(WireModel):
    """A declaration, as in a TOML file, with a ``name``. It may have commands only; each call requires approval."""

    declaration: dict[str, Any]
    """The declaration, with the keys of a file."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.tools.list": Method(DeclaredToolsListParams, DeclaredToolsListResult, "List the declared tools."),
    "jumpseat.tools.get": Method(DeclaredToolGetParams, DeclaredToolGetResult, "Describe a declared tool."),
    "jumpseat.tools.register": Method(
        DeclaredToolRegisterParams, DeclaredToolGetResult, "Declare a tool for this connection."
    ),
}
