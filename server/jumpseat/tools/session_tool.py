"""Built-in tools whose calls work on their session.

A tool is the same for all sessions; a session keeps one small object for each of those that it is offered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.tools.filters import SourceName
from jumpseat.tools.resources import Resources
from jumpseat.tools.tool import A, Described, Ordering, Prepared, ToolContext, ToolOutcome
from jumpseat_protocol.permissions import PermissionRequest


class SessionTool(Described[A], frozen=True, kw_only=True):
    """A built-in tool that works on its session.

    ``run``, ``intention`` and ``permission`` are as in :class:`jumpseat.tools.tool.BuiltinTool`, with the session
    and the parts of the server first. ``is_offered`` returns whether a session has the tool now.
    """

    run: Callable[[Session, Resources, ToolContext, A], Awaitable[ToolOutcome]]
    intention: Callable[[A], str]
    permission: Callable[[Session, Resources, A], PermissionRequest | None] | None = None
    is_offered: Callable[[Session, Resources], bool] = lambda _session, _resources: True


class BoundTool(Generic[A]):
    """A tool of one session. Implements :class:`jumpseat.tools.tool.Tool`."""

    __slots__ = ("_resources", "_session", "definition")

    source: SourceName = "builtin"

    def __init__(self, definition: SessionTool[A], session: Session, resources: Resources) -> None:
        self.definition = definition
        self._session = session
        self._resources = resources

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def ordering(self) -> Ordering:
        return self.definition.ordering

    @property
    def spec(self) -> ToolSpec:
        return self.definition.spec

    def summary(self, arguments: JsonObject) -> str | None:
        return self.definition.describe(self.definition.intention, arguments)

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        args = self.definition.parse(call)
        if isinstance(args, ToolOutcome):
            return args
        session, resources = self._session, self._resources
        permission = self.definition.permission
        request = None if permission is None else permission(session, resources, args)
        return Prepared(request, partial(self.definition.run, session, resources, ctx, args))


class SessionTools:
    """The source of those of ``definitions`` that a session is offered."""

    __slots__ = ("_bound", "_definitions", "_resources", "_session")

    def __init__(self, definitions: Sequence[SessionTool[Any]], resources: Resources, session: Session) -> None:
        self._definitions = definitions
        self._session = session
        self._resources = resources
        self._bound: dict[str, BoundTool[Any]] = {}

    def tools(self) -> Mapping[str, BoundTool[Any]]:
        return {
            tool.name: self._bind(tool)
            for tool in self._definitions
            if tool.is_offered(self._session, self._resources)
        }

    def _bind(self, tool: SessionTool[Any]) -> BoundTool[Any]:
        bound = self._bound.get(tool.name)
        if bound is None:
            bound = self._bound[tool.name] = BoundTool(tool, self._session, self._resources)
        return bound

    async def ready(self) -> None:
        """Return at once."""

    async def close(self, grace_s: float) -> None:
        """Do nothing: the tools keep nothing running between calls."""
