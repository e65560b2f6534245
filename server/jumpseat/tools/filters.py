"""Which tools a session offers: ``availableTools`` and ``excludedTools`` with their pattern forms.

A pattern is a bare ``name`` (of any source), ``source:name`` or ``source:*``, where the source is ``builtin``,
``custom`` or ``mcp``. Excluded wins over available.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

SourceName: TypeAlias = Literal["builtin", "custom", "mcp"]


def offered(name: str, source: SourceName, available: Iterable[str] | None, excluded: Iterable[str]) -> bool:
    """Whether a tool is offered; ``available`` of ``None`` means all."""
    forms = {name, f"{source}:{name}", f"{source}:*"}
    if not forms.isdisjoint(excluded):
        return False
    return available is None or not forms.isdisjoint(available)
