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
    kind: Literal["tool", "group"]
    description: str
    origin: Literal["client", "project", "configuration", "home", "package"]
    problem: str | None = None


class DeclaredToolsListParams(WireModel):
    """``working_directory`` selects the project whose tools are included; by default, none."""

    working_directory: PathText | None = None


class DeclaredToolsListResult(WireModel):
    """All declared tools and groups, sorted by name."""

    tools: list[DeclaredToolSummary]


class DeclaredToolGetParams(WireModel):
    """``working_directory`` is as in ``jumpseat.tools.list``."""

    name: str = Field(min_length=1)
    working_directory: PathText | None = None


class GroupMember(WireModel):
    """``origin`` is unset if the tool belongs to a client or does not exist."""

    name: str
    origin: Literal["built-in", "mcp", "client", "project", "configuration", "home", "package"] | None = None


class DeclaredToolDescription(WireModel):
    """A tool or a group without its functions, and without the values of ``env``.

    ``commands`` are as declared, with ``null`` in place of a function. ``approval`` is whether a person is asked
    before a call runs; ``depends`` means that a function decides. ``tools`` are the members of a group, and
    ``members`` the same with their origins; with ``collapse_tools``, the group is to be shown instead of them.
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
    collapse_tools: StrictBool | None = None


class DeclaredToolGetResult(WireModel):
    tool: DeclaredToolDescription


class DeclaredToolRegisterParams(WireModel):
    """A declaration, as in a TOML file, with a ``name``. It may have commands only; each call requires approval."""

    declaration: dict[str, Any]


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.tools.list": Method(DeclaredToolsListParams, DeclaredToolsListResult),
    "jumpseat.tools.get": Method(DeclaredToolGetParams, DeclaredToolGetResult),
    "jumpseat.tools.register": Method(DeclaredToolRegisterParams, DeclaredToolGetResult),
}
