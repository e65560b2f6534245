"""Named sets of tools: ``@minimal`` for small context windows, ``@all`` for all tools in spite of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec.structs import replace

from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.settings import SessionSettings

ToolSet: TypeAlias = Literal["minimal", "default", "all"]

ALL: Final = "@all"
MINIMAL: Final = "@minimal"
"""Names of sets among the available tools of a session. No tool can have such a name."""

# The arguments that the descriptions of the tools keep. The tools accept their other arguments, too.
_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    "bash": ("command", "initial_wait"),
    "view": ("path", "view_range"),
    "create": ("path", "file_text"),
    "edit": ("path", "old_str", "new_str"),
    "apply_patch": ("input",),
    "grep": ("pattern", "path", "output_mode"),
}


def set_of(settings: SessionSettings, configured: ToolSet) -> ToolSet:
    """Return the set of tools of a session; ``configured`` applies if its client has not chosen."""
    available = settings.options.available_tools
    if available is None:
        return configured
    return "minimal" if MINIMAL in available else "all"


def with_sets(available: Iterable[str]) -> list[str] | None:
    """Return names and patterns of available tools without names of sets; ``None`` for all tools."""
    names = [*available]
    if ALL in names:
        return None
    return [name for name in names if name != MINIMAL] + [*_KEPT] if MINIMAL in names else names


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
