"""What a tool is, of whatever kind, and what a built-in one is.

To the orchestrator a tool is a name, a spec and :meth:`Tool.prepare`, which checks a call's arguments and says what
the call needs permission for and how it is run; a :class:`ToolSource` gives a session some of its tools. A built-in
tool is typed arguments (a pydantic model whose field descriptions are the schema the model sees) and a function.

What a call may touch is declared and judged by the orchestrator before it runs: no tool asks for permission itself.
Bad arguments, missing files and failing commands are outcomes for the model to read, never exceptions.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from jumpseat.agent.blocks import ImageBlock, JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.permissions.permissions import UNGUARDED, Guard
from jumpseat.errors import validation_problems
from jumpseat.tools.builtin.workspace import Files
from jumpseat.tools.filters import SourceName
from jumpseat.tools.shell.shells import Shells
from jumpseat_protocol.callbacks import UserInputResponse
from jumpseat_protocol.events import BinaryResult
from jumpseat_protocol.permissions import PermissionRequest

ToolStatus: TypeAlias = Literal["success", "failure", "rejected", "denied", "timeout"]


@dataclass(slots=True)
class ToolOutcome:
    """What one call came to.

    ``text`` goes to the model. ``error`` is the message of the completion event where it differs from the text.
    ``detail`` is for the user only (a diff, say); ``images`` reach models with vision; ``resources``,
    ``session_log`` and ``telemetry`` reach the event stream and never the model. ``ends_turn`` stops the loop
    after this batch. ``arguments`` are those the call was run with where they are not the model's, and ``contexts``
    what the model is told after the batch; hooks set both. ``says`` is what a tool itself has to tell after the
    batch, each with where it comes from; ``references`` are tools that a search has found.
    """

    text: str
    status: ToolStatus = "success"
    error: str | None = None
    detail: str | None = None
    images: list[ImageBlock] = field(default_factory=list[ImageBlock])
    resources: list[BinaryResult] = field(default_factory=list[BinaryResult])
    telemetry: JsonObject | None = None
    session_log: str | None = None
    ends_turn: bool = False
    arguments: JsonObject | None = None
    contexts: list[str] = field(default_factory=list[str])
    says: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    references: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        return self.status == "success"


def failure(text: str, *, error: str | None = None) -> ToolOutcome:
    """A call that did not work, in words the model can act on."""
    return ToolOutcome(text=text, status="failure", error=error)


@dataclass(slots=True)
class SequentialCalls:
    """Calls of one answer that run one after the other, and what they hand on.

    ``following`` is the tool of the call behind this one, ``last`` the last result; ``cancelled`` tells that all
    that is left has been called off. ``owed`` is what one call has left to the next to go on with, or to do: the
    name of its tool, what it hands on, and what must be done in the end.
    """

    following: str | None = None
    last: Any = None
    cancelled: bool = False
    owed: tuple[str, object, Callable[[], Awaitable[None]]] | None = None

    async def end(self) -> None:
        """Do what is still owed."""
        if self.owed is not None:
            (_, _, finish), self.owed = self.owed, None
            await finish()


@dataclass(slots=True)
class ToolContext:
    """What a running call may use. ``line`` is there where the calls of the tool wait for each other.

    ``cwd`` is the session's working directory, ``environ`` the environment for child processes. ``files`` are those
    that a person works on, who may have changed them without saving.
    ``partial`` shows output so far (the whole of it, each time), ``progress`` one line of news; both are for the
    user's eyes and may be called from the call's own task only. ``ask_user`` puts a question (with choices, and
    whether another answer is allowed) to a person; it raises ``ClientCallError`` where that fails.
    """

    call_id: str
    session_id: str
    cwd: Path
    environ: dict[str, str]
    shells: Shells
    partial: Callable[[str], None]
    progress: Callable[[str], None]
    ask_user: Callable[[str, list[str] | None, bool], Awaitable[UserInputResponse]]
    line: SequentialCalls | None = None
    files: Files = field(default_factory=Files)

    def resolve(self, path: str) -> Path:
        """``path`` made absolute against the working directory; ``~`` is expanded, links are kept."""
        # Not Path.expanduser, which raises for an unknown user.
        return self.cwd / os.path.expanduser(path)


class Refused(Protocol):
    def __call__(self, outcome: ToolOutcome, *, cancelled: bool) -> Awaitable[ToolOutcome]: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call whose arguments are good: what it needs permission for (``None``: nothing), and how it is run.

    ``refused`` may word what comes of a call that was not allowed; ``cancelled`` tells that a person, or the end of
    the turn, has called off more than this one. ``guard`` is how much the permission takes.
    """

    permission: PermissionRequest | None
    run: Callable[[], Awaitable[ToolOutcome]]
    refused: Refused | None = None
    guard: Guard = UNGUARDED


class Tool(Protocol):
    """One tool of a session. ``source`` is what patterns like ``mcp:*`` mean."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> SourceName: ...

    @property
    def spec(self) -> ToolSpec:
        """What the model sees."""
        ...

    def summary(self, arguments: JsonObject) -> str | None:
        """What a call is about to do, in a few words for the user."""
        ...

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        """Check a call whose arguments are a JSON object; an outcome instead where it cannot run.

        Nothing is done yet, and nothing asked. Called again with other arguments where a person has changed them.
        """
        ...


@runtime_checkable
class Sequential(Protocol):
    """A tool that may want its calls of one answer to run one after the other; others run at the same time."""

    @property
    def sequential(self) -> bool: ...


@runtime_checkable
class Instructing(Protocol):
    """A source of tools that has something to say about them."""

    def instructions(self, offered: Collection[str]) -> list[str]:
        """What the system message says of the tools, of which those in ``offered`` are."""
        ...


@runtime_checkable
class Grouping(Protocol):
    """A source of tools that looks for them when they are needed, and has groups of tools of any source."""

    async def look(self, prompt: str) -> None:
        """Look for what is new, or mentioned in a prompt that is about to be said."""
        ...

    def members(self, name: str) -> Collection[str] | None:
        """The tools of the group of that name; ``None`` where it has none."""
        ...

    def words(self, name: str, members: list[str]) -> str | None:
        """What the mention ``@{name}`` of one of its groups becomes, of which there are these ``members``."""
        ...


class ToolSource(Protocol):
    """Where a session has some of its tools from: built-in ones, those of its clients, of servers, of files."""

    def tools(self) -> Mapping[str, Tool]:
        """Those there are now, by name. Called often: no I/O."""
        ...

    async def ready(self) -> None:
        """Wait for those that are just being started, but not for long."""
        ...

    async def close(self, grace_s: float) -> None:
        """End what the tools have running; processes get ``grace_s`` seconds to do so by themselves."""
        ...


class ToolArgs(BaseModel):
    """Base of the argument models. Unknown arguments are ignored: models invent them."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, defer_build=True)


A = TypeVar("A", bound=ToolArgs)


@dataclass(frozen=True)
class Described(Generic[A]):
    """What models are told of a built-in tool. One that belongs to a session is just that before it is bound."""

    name: str
    description: str
    args: type[A]

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    @cached_property
    def _spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, _slim(self.args.model_json_schema(by_alias=True)))

    def bound(
        self,
        run: Callable[[ToolContext, A], Awaitable[ToolOutcome]],
        intention: Callable[[A], str],
        permission: Callable[[ToolContext, A], PermissionRequest | None] = lambda _ctx, _args: None,
    ) -> BuiltinTool[A]:
        """The tool of one session."""
        return BuiltinTool(self.name, self.description, self.args, run, intention, permission)


@dataclass(frozen=True)
class BuiltinTool(Described[A]):
    """One built-in tool.

    ``intention`` says in a few words what a call is about to do. ``opens`` names a file that a call looks into
    before permission is asked. A tool that ``needs`` something of the client is
    offered only where an attached client has it.
    """

    run: Callable[[ToolContext, A], Awaitable[ToolOutcome]]
    intention: Callable[[A], str]
    permission: Callable[[ToolContext, A], PermissionRequest | None] = lambda _ctx, _args: None
    needs: Literal["user_input"] | None = None
    opens: Callable[[ToolContext, A], Path] | None = None

    @property
    def source(self) -> SourceName:
        return "builtin"

    def summary(self, arguments: JsonObject) -> str | None:
        """What a call is about to do; nothing for one that cannot run."""
        try:
            return self.intention(self.args.model_validate(arguments))
        except ValidationError:
            return None

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        try:
            args = self.args.model_validate(call.arguments)
        except ValidationError as error:
            problems = "; ".join(validation_problems(error, "arguments"))
            return failure(f"Invalid arguments for `{self.name}`: {problems}")
        if self.opens is not None:
            await ctx.files.open(self.opens(ctx, args))
        return Prepared(self.permission(ctx, args), partial(self.run, ctx, args))


def _slim(schema: JsonObject) -> JsonObject:
    """Drop what pydantic adds for itself: titles, null alternatives of optional fields, null defaults."""

    def walk(node: Any, *, names: bool = False) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = cast("JsonObject", node)
        if names:
            return {name: walk(item) for name, item in node.items()}
        variants: list[Any] = [v for v in node.get("anyOf", []) if v != {"type": "null"}]
        if len(variants) == 1:
            node = {**{k: v for k, v in node.items() if k != "anyOf"}, **variants[0]}
        return {
            key: walk(item, names=key in ("properties", "$defs"))
            for key, item in node.items()
            if key != "title" and not (key == "default" and item is None)
        }

    slim = walk({key: value for key, value in schema.items() if key != "description"})
    slim.setdefault("properties", {})
    return slim
