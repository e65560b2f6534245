"""An entry of the tables of methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from jumpseat.acp.editor.context import AcpContext
from jumpseat_protocol.wire import WireModel

Answer: TypeAlias = dict[str, Any]


class Route(NamedTuple):
    """A method: its params, and its function. Plain functions run in the order of arrival, coroutines as tasks."""

    params: type[WireModel]
    serve: Callable[[AcpContext, Any], Answer | Awaitable[Answer]]


class Notified(NamedTuple):
    """A notification: its params, and its function."""

    params: type[WireModel]
    take: Callable[[AcpContext, Any], None]
