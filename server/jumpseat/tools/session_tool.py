"""Built-in tools whose calls work on their session, and the parts of the server that they are made from.

A tool is the same for all sessions; a session keeps one small object for each of those that it is offered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol

from msgspec import Struct

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.memories import Memories
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Skills
from jumpseat.tools.filters import SourceName
from jumpseat.tools.tool import A, Described, Ordering, Prepared, ToolContext, ToolOutcome
from jumpseat_protocol.permissions import PermissionRequest
from jumpseat_protocol.sessions import CustomAgentConfig


class Database(Protocol):
    """A session's SQLite database."""

    async def run(self, query: str) -> tuple[str, bool]:
        """Run SQL statements; return their results as text, and whether the table of todos has changed.

        Raises:
            StoreError: a statement failed; the message is for the model.
        """
        ...


class Resources(Struct, frozen=True):
    """``database`` returns the database of a session, ``None`` if its storage has none.

    ``find_agents`` reads the custom agents in files. ``read_plan`` returns the plan of a session,
    ``None`` if there is none; it may raise ``StoreError``.
    """

    database: Callable[[Session], Database | None]
    read_plan: Callable[[Session], Awaitable[str | None]]
    skills: Callable[[Session], Skills]
    find_agents: Callable[[SessionSettings], Awaitable[list[CustomAgentConfig]]]
    memories: Memories


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

    @property
    def changes_nothing(self) -> bool:
        return self.definition.changes_nothing

    @property
    def follows(self) -> str | None:
        return self.definition.follows

    def summary(self, arguments: JsonObject) -> str | None:
        return self.definition.describe(self.definition.intention, arguments)

    def ignored(self, arguments: JsonObject) -> list[str]:
        return self.definition.ignored(arguments)

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


def shows_canvases(session: Session, _resources: Resources) -> bool:
    """Return whether a client renders canvases and a client provides some."""
    return session.clients.can_render_canvases() and bool(session.canvases.provided())
