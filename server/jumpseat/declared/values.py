"""The values of declarations: those in Python can hold more than JSON can, which cannot be sent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast


def entry_value(raw: Any) -> Any:
    """Return the value of an entry of ``env``, which is a value or a table."""
    return cast("Mapping[str, Any]", raw).get("value") if isinstance(raw, Mapping) else raw


def unpaired_surrogate(declaration: Mapping[str, Any]) -> str | None:
    """Return the place of a string with an unpaired surrogate, which no text can contain; ``None`` without one."""
    for place, value in _nodes(declaration):
        if isinstance(value, str) and _is_broken(value):
            return place
    return None


def problem_in_json(value: Any, place: str) -> str | None:
    """Return the first place in ``value``, which is at ``place``, that JSON cannot represent, with the reason."""
    for found, node in _nodes(value, place):
        if isinstance(node, float) and not math.isfinite(node):
            return f"{found}: expected a finite number"
        if isinstance(node, int) and not -(2**63) <= node < 2**64:
            return f"{found}: expected an integer of at most 64 bits"
        if not isinstance(node, dict | list | tuple | str | int | float | None):
            return f"{found}: expected a value that JSON can represent, got {type(node).__name__}"
    return None


def function_in(declaration: Mapping[str, Any]) -> str | None:
    """Return the place of a function in a declaration, ``None`` if it contains none."""
    return next((place for place, value in _nodes(declaration) if callable(value)), None)


def _nodes(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all places below a value, the keys of tables included, each table and list once."""
    seen: set[int] = set()
    rest = [(place, value)]
    while rest:
        place, node = rest.pop()
        yield place, node
        if not isinstance(node, Mapping | list | tuple) or id(cast("Any", node)) in seen:
            continue
        seen.add(id(cast("Any", node)))
        inner: list[tuple[str, Any]] = []
        if isinstance(node, Mapping):
            for key, item in cast("Mapping[Any, Any]", node).items():
                inner += [(place, key), (f"{place}.{key}" if place else str(key), item)]
        else:
            inner += [(f"{place}[{number}]", item) for number, item in enumerate(cast("list[Any]", node))]
        rest += reversed(inner)


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
