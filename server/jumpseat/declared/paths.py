"""Resolve dotted paths into declarations, as used by ``env`` entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def follow(root: Any, path: str) -> Any:
    """Return the value at a dotted path from ``root``, or ``None`` if it is missing, callable or private."""
    node = root
    for step in path.split("."):
        if isinstance(node, Mapping):
            node = node.get(step)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        elif step.startswith("_") or node is None:
            return None
        else:
            node = getattr(node, step, None)  # pyright: ignore[reportUnknownArgumentType]
    return node if not callable(node) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
