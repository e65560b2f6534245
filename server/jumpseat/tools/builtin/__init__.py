"""The built-in tools: every module of this folder defines one, as ``TOOL``.

``TOOL`` is a :class:`BuiltinTool`; or, for a tool that belongs to one session, the :class:`Described` half of one,
beside a function ``source(session, resources)`` that returns the :class:`ToolSource` of that session.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeAlias, cast

from jumpseat.agent.session.session import Session
from jumpseat.tools.resources import Resources
from jumpseat.tools.tool import BuiltinTool, Described, MakeSource, ToolSource
from jumpseat_protocol.lazy_dataclasses import dataclass

__all__ = ["BUILTIN_NAMES", "BUILTIN_TOOLS", "SESSION_TOOLS", "find_tools", "session_sources"]


@dataclass(frozen=True)
class UnboundTool:
    """A tool that belongs to one session, before it is made for one."""

    described: Described[Any]
    source: Callable[[Session, Resources], ToolSource]


FoundTool: TypeAlias = BuiltinTool[Any] | UnboundTool


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
    if isinstance(tool, Described) and hasattr(module, "source"):
        return UnboundTool(cast("Described[Any]", tool), module.source)
    raise TypeError(f"{module.__name__}: expected TOOL, a BuiltinTool, or a Described beside a function source")


def _sort_key(found: FoundTool) -> tuple[int, str]:
    described = found if isinstance(found, BuiltinTool) else found.described
    return described.position, described.name


_FOUND: Final = tuple(find_tools())

BUILTIN_TOOLS: Final[tuple[BuiltinTool[Any], ...]] = tuple(tool for tool in _FOUND if isinstance(tool, BuiltinTool))
"""The tools that are the same in all sessions."""

SESSION_TOOLS: Final[tuple[UnboundTool, ...]] = tuple(tool for tool in _FOUND if isinstance(tool, UnboundTool))
"""The tools that are made for each session."""

BUILTIN_NAMES: Final = frozenset(tool.name for tool in BUILTIN_TOOLS) | {
    tool.described.name for tool in SESSION_TOOLS
}
"""The names that declared tools and MCP servers may take only by saying that they replace a built-in tool."""


def session_sources(resources: Resources) -> tuple[MakeSource, ...]:
    """Return the functions that make the tools of :data:`SESSION_TOOLS` for one session."""
    return tuple(partial(_make_source, tool, resources) for tool in SESSION_TOOLS)


def _make_source(tool: UnboundTool, resources: Resources, session: Session) -> ToolSource:
    return tool.source(session, resources)
