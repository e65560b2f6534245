"""Filter the tools of a session by ``availableTools`` and ``excludedTools``.

A pattern is a bare ``name`` (of any source), ``source:name`` or ``source:*``, where the source is ``builtin``,
``custom`` or ``mcp``. Excluded wins over available. The list of a custom agent narrows the result; it may also
contain ``*``, and ``server/tool`` or ``server/*`` for tools of MCP servers.

Three names stand for sets: ``@minimal`` for small context windows, ``@all`` for all tools, and ``@default`` for the
default ones in spite of the configuration. A choice holds for small windows, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from msgspec.structs import replace

from jumpseat.agent.model import EditTools, ToolOrigin, ToolSchema, ToolSpec
from jumpseat.agent.settings import SessionSettings

SourceName: TypeAlias = Literal["builtin", "custom", "mcp"]

EDITS: Final = frozenset({"create", "edit"})
PATCH: Final = "apply_patch"
"""The built-in tools that change files: a model is offered those that it was trained on."""

SCRIPTS: Final = "call_tools"
"""The built-in tool for scripts that call other tools."""


def is_offered(name: str, source: SourceName, available: Collection[str] | None, excluded: Collection[str]) -> bool:
    """Return whether a tool is offered; if ``available`` is ``None``, all tools that are not excluded are."""
    if excluded and is_named(name, source, excluded):
        return False
    return available is None or is_named(name, source, available)


def is_named(name: str, source: SourceName, patterns: Collection[str]) -> bool:
    """Return whether one of ``patterns`` is for a tool."""
    return name in patterns or f"{source}:*" in patterns or f"{source}:{name}" in patterns


class Filter:
    """The filter of a session with these settings. ``members`` returns the tools of a group.

    ``configured`` applies if its client has not chosen.
    """

    def __init__(
        self,
        settings: SessionSettings,
        members: Callable[[str], Iterable[str]] = lambda _name: (),
        configured: Configured = None,
    ) -> None:
        def expand(names: Iterable[str]) -> frozenset[str]:
            return frozenset(member for name in names for member in (name, *members(name.removeprefix("custom:"))))

        agent = settings.custom_agent
        of_agent = None if agent is None else agent.tools
        excluded = settings.options.excluded_tools
        if of_agent is None:
            excluded = [*excluded, *settings.options.default_agent.excluded_tools]
        available = available_of(settings, configured)
        names = None if available is None else with_sets(available)
        self._available = None if names is None else expand(names)
        self._excluded = expand(excluded)
        self._of_agent = None if of_agent is None or "*" in of_agent else expand(of_agent)
        # Most filters name tools alone, and every tool is looked up several times in a turn.
        self._names_sources = any(":" in pattern for pattern in (*self._excluded, *(self._available or ())))

    @property
    def names(self) -> frozenset[str] | None:
        """Return the only names that can be offered; ``None`` if there may be others."""
        return None if self._names_sources else self._available

    def excludes(self, name: str, source: SourceName) -> bool:
        """Return whether a tool is named by those that are excluded, whatever else is offered."""
        return is_named(name, source, self._excluded)

    def offers(self, name: str, source: SourceName, origin: ToolOrigin | None = None) -> bool:
        """Return whether a tool is offered; ``origin`` names the MCP server that it belongs to."""
        if not self._names_sources:
            if name in self._excluded or (self._available is not None and name not in self._available):
                return False
        elif not is_offered(name, source, self._available, self._excluded):
            return False
        if self._of_agent is None or is_offered(name, source, self._of_agent, ()):
            return True
        return origin is not None and not self._of_agent.isdisjoint(
            (f"{origin.server}/{origin.tool}", f"{origin.server}/*")
        )


def left_out(names: Collection[str], edit_tools: EditTools) -> Collection[str]:
    """Return those of the built-in tools ``names`` that a model is not offered, as it has others for the same."""
    edits = EDITS.intersection(names)
    if PATCH not in names or not edits:
        return ()
    return edits if edit_tools == PATCH else (PATCH,)


def may_patch(tool_filter: Filter, source_of: Callable[[str], SourceName | None]) -> bool:
    """Return whether nobody has excluded or replaced a tool whose changes ``apply_patch`` can make as well.

    ``source_of`` returns the source of the tool that a session has under a name.
    """
    return source_of(PATCH) != "builtin" or not any(
        tool_filter.excludes(name, "builtin") or source_of(name) not in ("builtin", None) for name in EDITS
    )


# --- named sets -------------------------------------------------------------------------------------------------

ToolSet: TypeAlias = Literal["minimal", "default", "all"]
SET_NAMES: Final[tuple[ToolSet, ...]] = get_args(ToolSet)

Configured: TypeAlias = ToolSet | tuple[str, ...] | None
"""The tools of sessions whose clients choose none: a set, or names and patterns, among them names of sets.

``None`` if the user has not chosen either.
"""

ALL: Final = "@all"
DEFAULT: Final = "@default"
MINIMAL: Final = "@minimal"
"""Names of sets among the available tools of a session. No tool can have such a name."""

SETS: Final = frozenset({ALL, DEFAULT, MINIMAL})


LONGEST_NAME: Final = 100
"""The characters of a name that are compared with those of tools."""


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that somebody may have meant by an unknown one."""
    # Imported for misspelt names only.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name[:LONGEST_NAME], known, 1, 0.75)), None)


def unknown_tools(names: Collection[str], known: Collection[str]) -> dict[str, str]:
    """Return what is wrong with those ``names`` that can be no tool's, as only ``known`` ones have no prefix.

    The names of MCP servers' tools contain a hyphen, and patterns a colon, a slash or an asterisk.
    """
    wrong: dict[str, str] = {}
    for name in names:
        if name == "default" and len(names) > 1:
            wrong[name] = "'default' stands alone; 'minimal' and 'all' may be beside names"
        elif name not in known and not set(name) & set("-:/*"):
            intended = meant(name, known)
            wrong[name] = f"unknown tool {name!r}, " + (
                f"did you mean {intended!r}?"
                if intended is not None
                else "expected minimal, default, all or names of tools, such as view,edit,bash; those of others are"
                " custom:NAME, for a tool of a client, and SERVER-NAME, for one of an MCP server"
            )
    return wrong


# The arguments that the descriptions of the tools keep. The tools accept their other arguments, too.
_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "bash": ("command", "initial_wait"),
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "edit": ("path", "old_str", "new_str"),
    "apply_patch": ("input",),
    "grep": ("pattern", "path", "output_mode"),
}


def available_of(settings: SessionSettings, configured: Configured) -> Collection[str] | None:
    """Return the available tools of a session; ``configured`` applies if its client has not chosen."""
    available = settings.options.available_tools
    if available is None:
        return configured if isinstance(configured, tuple) else None
    return None if DEFAULT in available else available


def set_of(settings: SessionSettings, configured: Configured) -> ToolSet:
    """Return the set of tools of a session; ``configured`` applies if its client has not chosen."""
    available = available_of(settings, configured)
    if available is None:
        chosen = "default" if settings.options.available_tools is not None else configured
        return cast("ToolSet", chosen or "default")
    return "minimal" if MINIMAL in available else "all"


def is_chosen(settings: SessionSettings, configured: Configured) -> bool:
    """Return whether the client or the user has chosen the tools of a session."""
    return settings.options.available_tools is not None or configured is not None


def configured_of(names: Sequence[str]) -> Configured:
    """Return the tools that names in a configuration mean; the names of sets are without their ``@`` there."""
    if len(names) == 1 and names[0] in SET_NAMES:
        return names[0]
    return tuple(f"@{name}" if name in ("minimal", "all") else name for name in names)


def with_sets(available: Iterable[str]) -> list[str] | None:
    """Return names and patterns of available tools without names of sets; ``None`` for all tools."""
    names = [*available]
    if ALL in names:
        return None
    return [name for name in names if name != MINIMAL] + [*_KEPT] if MINIMAL in names else names


def named_beside_sets(settings: SessionSettings, configured: Configured) -> Collection[str]:
    """Return the available tools and patterns that are named beside a set."""
    available = available_of(settings, configured)
    return () if available is None or MINIMAL not in available else available


def is_minimal(name: str) -> bool:
    """Return whether a built-in tool is in the minimal set."""
    return name in _KEPT


@lru_cache(maxsize=64)
def shortened(spec: ToolSpec) -> ToolSpec:
    """Return the spec of a tool with its most important arguments alone."""
    schema = spec.parameters
    properties = cast("dict[str, Any]", schema.get("properties") or {})
    kept = {name: properties[name] for name in _KEPT.get(spec.name, ()) if name in properties}
    return replace(spec, schema=ToolSchema.of({**schema, "properties": kept})) if kept else spec
