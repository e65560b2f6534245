"""Closed copies of the types of SDKs, which refuse unknown keys.

SDKs describe requests as ``TypedDict``, whose validation lets unknown keys and lists pass.
"""

from __future__ import annotations

import collections.abc
import types
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import TypeAdapter
from typing_extensions import TypedDict, get_type_hints, is_typeddict

_PLAIN = (str, int, float, bool, type(None))


def closed(kind: Any) -> TypeAdapter[Any]:
    """Return a validator for JSON of that type."""
    return TypeAdapter(_closed(kind, {}))


def _closed(kind: Any, known: dict[Any, Any]) -> Any:
    if is_typeddict(kind):
        if kind not in known:
            # A recursive type is open at its second occurrence.
            known[kind] = Any
            fields = {
                key: (Required if key in kind.__required_keys__ else NotRequired)[_closed(field, known)]
                for key, field in get_type_hints(kind).items()
            }
            known[kind] = TypedDict(kind.__name__, fields)  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
            known[kind].__pydantic_config__ = {"extra": "forbid"}
        return known[kind]
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired, Annotated):
        return _closed(inside[0], known)
    if origin in (Union, types.UnionType):
        return Union[tuple(_closed(argument, known) for argument in inside)]  # noqa: UP007
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence) or "Sequence" in str(origin):
        return list[_closed(inside[0], known)]
    if origin in (dict, collections.abc.Mapping):
        return dict[inside[0], _closed(inside[1], known)]
    return kind if origin is Literal or kind in _PLAIN else Any
