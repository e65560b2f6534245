"""Dotted paths into declarations, as env entries use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def follow(root: Any, path: str) -> Any:
    """What a dotted path leads to from ``root``; ``None`` where to nothing, a function, or what is private."""
    node = root
    for step in path.split("."):
        if isinstance(node, Mapping):
            node = node.get(step)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        elif step.startswith("_") or node is None:
            return None
        else:
            node = getattr(node, step, None)  # pyright: ignore[reportUnknownArgumentType]
    return node if not callable(node) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
