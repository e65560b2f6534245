"""The built-in tools: every module of this folder defines one, as ``TOOL``.

``TOOL`` is a :class:`BuiltinTool`, or a :class:`SessionTool` if its calls work on the session. A module with a
``SessionTool`` may have a function ``source(session, resources)``, which returns a :class:`ToolSource` for one
session, where that is more than the tool.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import groupby
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.tools.session_tool import Resources, SessionTool, SessionTools
from jumpseat.tools.tool import BuiltinTool, SourceMaker, ToolSource

__all__ = ["BUILTIN_NAMES", "BUILTIN_TOOLS", "SESSION_TOOLS", "find_tools", "session_sources"]


class FoundSessionTool(Struct, frozen=True):
    """A tool of sessions. ``source`` makes the source of one session, if that is more than the tool."""

    tool: SessionTool[Any]
    source: Callable[[Session, Resources], ToolSource] | None


FoundTool: TypeAlias = BuiltinTool[Any] | FoundSessionTool


def find_tools() -> list[FoundTool]:
    """Return the tools of all modules in this folder, in the order in which a request lists them.

    Raises:
        TypeError: a module defines no tool.
    """
    found = (_tool_of(module.name) for module in pkgutil.iter_modules(__path__))
    return sorted(found, key=_sort_key)


def _tool_of(module_name: str) -> FoundTool:
    module = import_module(f"{__name__}.{module_name}")
    tool: Any = getattr(module, "TOOL", None)
    if isinstance(tool, BuiltinTool):
        return cast("BuiltinTool[Any]", tool)
    if isinstance(tool, SessionTool):
        return FoundSessionTool(cast("SessionTool[Any]", tool), getattr(module, "source", None))
    raise TypeError(f"{module.__name__}: expected TOOL, a BuiltinTool or a SessionTool")


def _sort_key(found: FoundTool) -> tuple[int, str]:
    tool = found if isinstance(found, BuiltinTool) else found.tool
    return tool.position, tool.name


_FOUND: Final = tuple(find_tools())

BUILTIN_TOOLS: Final[tuple[BuiltinTool[Any], ...]] = tuple(tool for tool in _FOUND if isinstance(tool, BuiltinTool))
"""The tools that need nothing of a session but what each call gets."""

_OF_SESSIONS: Final = tuple(found for found in _FOUND if isinstance(found, FoundSessionTool))

SESSION_TOOLS: Final[tuple[SessionTool[Any], ...]] = tuple(found.tool for found in _OF_SESSIONS)
"""The tools that work on their session."""

BUILTIN_NAMES: Final = frozenset(tool.name for tool in (*BUILTIN_TOOLS, *SESSION_TOOLS))
"""The names that declared tools and MCP servers may take only by saying that they replace a built-in tool."""


def session_sources(resources: Resources) -> tuple[SourceMaker, ...]:
    """Return what makes the sources of :data:`SESSION_TOOLS` for one session.

    Neighbours without their own source share one, because each session keeps all its sources.
    """
    sources: list[SourceMaker] = []
    for make, group in groupby(_OF_SESSIONS, lambda found: found.source):
        tools = tuple(found.tool for found in group)
        of_session = (
            partial(SessionTools, tools, resources) if make is None else partial(_make_source, make, resources)
        )
        sources.append(SourceMaker(of_session, frozenset(tool.name for tool in tools)))
    return tuple(sources)


def _make_source(
    make: Callable[[Session, Resources], ToolSource], resources: Resources, session: Session
) -> ToolSource:
    return make(session, resources)
