"""The built-in tools: every module of this folder defines one, as ``TOOL``.

``TOOL`` is a :class:`BuiltinTool`, or a :class:`SessionTool` if its calls work on the session. A module with a
``SessionTool`` may have a function ``source(session, resources)``, which returns a :class:`ToolSource` for one
session, where that is more than the tool. A module has the name of its tool, so that names are known unimported.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import Resources, SessionTool, SessionTools
from jumpseat.tools.tool import BuiltinTool, Tool, ToolSource, is_instructing

__all__ = ["BUILTIN_NAMES", "SessionToolSources", "builtin_tools", "find_tools", "session_tools"]

BUILTIN_NAMES: Final = frozenset(module.name for module in pkgutil.iter_modules(__path__))
"""The names that declared tools and MCP servers may take only by saying that they replace a built-in tool."""


MakeSource: TypeAlias = Callable[[Session, Resources], ToolSource]


class FoundSessionTool(Struct, frozen=True):
    """A tool of sessions. ``source`` makes the source of one session, if that is more than the tool."""

    tool: SessionTool[Any]
    source: MakeSource | None


FoundTool: TypeAlias = BuiltinTool[Any] | FoundSessionTool


def find_tools() -> list[FoundTool]:
    """Import all modules of this folder, and return their tools in the order in which a request lists them.

    Raises:
        TypeError: a module defines no tool, or one of another name.
    """
    return sorted((_tool_of(module.name) for module in pkgutil.iter_modules(__path__)), key=_sort_key)


def _tool_of(name: str) -> FoundTool:
    module = import_module(f"{__name__}.{name}")
    tool: Any = getattr(module, "TOOL", None)
    if isinstance(tool, BuiltinTool) and tool.name == name:
        return cast("BuiltinTool[Any]", tool)
    if isinstance(tool, SessionTool) and tool.name == name:
        return FoundSessionTool(cast("SessionTool[Any]", tool), getattr(module, "source", None))
    raise TypeError(f"{module.__name__}: expected TOOL, a BuiltinTool or a SessionTool with the module's name")


def _sort_key(found: FoundTool) -> tuple[int, str]:
    tool = found if isinstance(found, BuiltinTool) else found.tool
    return tool.position, tool.name


@cache
def _found() -> tuple[FoundTool, ...]:
    return tuple(find_tools())


@cache
def builtin_tools() -> tuple[BuiltinTool[Any], ...]:
    """Return the tools that need nothing of a session but what each call gets."""
    return tuple(tool for tool in _found() if isinstance(tool, BuiltinTool))


def session_tools() -> tuple[SessionTool[Any], ...]:
    """Return the tools that work on their session."""
    return tuple(found.tool for found in _of_sessions())


def _of_sessions() -> list[FoundSessionTool]:
    return [found for found in _found() if isinstance(found, FoundSessionTool)]


class SessionToolSources:
    """The sources of :func:`session_tools` for one session, made with the first request that may have one of them.

    Neighbours without their own source share one, because each session keeps all its sources.
    """

    __slots__ = ("_resources", "_session", "_sources")

    def __init__(self, resources: Resources, session: Session) -> None:
        self._resources = resources
        self._session = session
        self._sources: tuple[ToolSource, ...] | None = None

    def tools(self) -> Mapping[str, Tool]:
        return {name: tool for source in self._made() for name, tool in source.tools().items()}

    def instructions(self, offered: Collection[str]) -> list[str]:
        """See :class:`jumpseat.tools.tool.Instructing`."""
        agent = self._session.settings.custom_agent
        if self._sources is None and BUILTIN_NAMES.isdisjoint(offered) and not (agent and agent.skills):
            return []
        return [text for source in self._made() if is_instructing(source) for text in source.instructions(offered)]

    async def ready(self) -> None:
        for source in self._made():
            await source.ready()

    async def close(self, grace_s: float) -> None:
        for source in self._sources or ():
            await source.close(grace_s)

    def _made(self) -> tuple[ToolSource, ...]:
        if self._sources is None:
            groups = groupby(_of_sessions(), lambda found: found.source)
            self._sources = tuple(self._make(make, [found.tool for found in group]) for make, group in groups)
        return self._sources

    def _make(self, make: MakeSource | None, tools: list[SessionTool[Any]]) -> ToolSource:
        if make is None:
            return SessionTools(tools, self._resources, self._session)
        return make(self._session, self._resources)
