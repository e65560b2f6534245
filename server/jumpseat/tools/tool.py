"""The interface of every tool, and the base of the built-in ones.

To the orchestrator a tool is a name, a spec and :meth:`Tool.prepare`, which checks a call's arguments and returns
the permission that the call needs and a function that runs it. A :class:`ToolSource` gives a session some of its
tools. A built-in tool is typed arguments (a pydantic model whose field descriptions are the schema that models see)
and a function.

A tool declares what a call touches and never asks for permission itself: the orchestrator does, before it runs the
call. Invalid arguments, missing files and failing commands are outcomes for the model to read, never exceptions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    runtime_checkable,
)

from msgspec import Struct, field
from pydantic import ConfigDict, ValidationError

from jumpseat.agent.blocks import ImageBlock, JsonObject, ToolUseBlock
from jumpseat.agent.interfaces import VirtualFiles
from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.permissions.permissions import UNGUARDED, ApprovalLimits
from jumpseat.agent.permissions.questions import Verdict
from jumpseat.agent.session.session import Session
from jumpseat.errors import HookStopError
from jumpseat.parsing.message_size import excess_of
from jumpseat.parsing.validation import validation_problems
from jumpseat.system.programs import OwnPrograms
from jumpseat.tools.filters import SourceName
from jumpseat.tools.running_commands import CommandRunner
from jumpseat.tools.web import Web
from jumpseat.tools.workspace_files import FileEdit, Files
from jumpseat_protocol.callbacks import UserInputResponse
from jumpseat_protocol.events import BinaryResult, CallDecision
from jumpseat_protocol.lazy_models import LazyModel
from jumpseat_protocol.permissions import PermissionRequest

TOOL_SEARCH: Final = "tool_search_tool"
"""The tool that finds deferred tools. A client may bring one of this name in place of the server's."""

MOST_ARGUMENT_ENTRIES: Final = 1000
"""The entries of one array or object in the arguments of a built-in tool, such as the changes of one edit."""

ToolStatus: TypeAlias = Literal["success", "failure", "rejected", "denied", "timeout"]


class ToolOutcome(Struct):
    """The outcome of one call.

    ``text`` goes to the model. ``error`` is the message of the completion event where it differs from the text.
    ``detail`` is for the user only (a diff, for example); ``images`` reach models with vision; ``resources``,
    ``session_log`` and ``telemetry`` reach the event stream and never the model. ``ends_turn`` stops the loop
    after this batch. ``arguments`` are those the call ran with, if they are not the model's, and ``contexts`` are
    messages for the model after the batch; hooks set both. ``messages`` are the tool's own messages for the model
    after the batch, as pairs of source and text. ``references`` are names of tools that a search has found.
    ``sandboxed`` is whether a command was confined; ``None`` without a command, or if the sandbox is off.
    ``exit_code`` is that of a command that has ended. ``stopped`` is set if a hook of the call ends the run.
    ``withheld`` takes the place of a text that shows the content of files, if the model may not read these files.
    ``notes`` are about the call, and follow the text for the model; a script that made the call does not get them.
    ``absent`` is the path that the model gave, if the call has failed because there is nothing. ``decision`` is why
    the call was allowed or denied, if no client has decided.
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
    messages: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    references: list[str] = field(default_factory=list[str])
    sandboxed: bool | None = None
    exit_code: int | None = None
    stopped: HookStopError | None = None
    withheld: str | None = None
    notes: list[str] = field(default_factory=list[str])
    absent: str | None = None
    decision: CallDecision | None = None

    @property
    def ok(self) -> bool:
        return self.status == "success"


def failure(text: str, *, error: str | None = None, withheld: str | None = None) -> ToolOutcome:
    """Return a failed outcome whose text lets the model correct the call."""
    return ToolOutcome(text=text, status="failure", error=error, withheld=withheld)


Ordering: TypeAlias = Literal["queued", "reading", "independent"]
"""When the call of a tool runs relative to the other calls of the same answer.

``queued`` calls run in the order of the answer, one after the other. ``reading`` calls keep their place among them,
but neighbouring ones run side by side. ``independent`` calls run at once and wait for no other call.
"""


class SequentialCalls(Struct):
    """The state that the queued calls of one answer hand on.

    ``following`` is the name of the next call's tool, ``last`` the previous call's result. ``unfinished`` is work
    that the previous call left: the name of its tool, the state that a call of the same tool continues with, and
    the function that finishes the work if no such call follows.
    """

    following: str | None = None
    last: Any = None
    unfinished: tuple[str, object, Callable[[], Awaitable[None]]] | None = None

    async def end(self) -> None:
        """Finish the work that the last call left."""
        if self.unfinished is not None:
            (_, _, finish), self.unfinished = self.unfinished, None
            await finish()


Severity: TypeAlias = Literal["info", "warning", "error"]
Notify: TypeAlias = Callable[[str, Severity], None]
"""Shows a text to the user, not to the model."""

Approve: TypeAlias = Callable[[PermissionRequest, ApprovalLimits], Awaitable[Verdict]]
"""Asks for permission for a part of a call that runs already."""

Concerns: TypeAlias = Callable[[PermissionRequest], Awaitable[bool]]
"""See :class:`ToolContext`."""


def _notify_nobody(_text: str, _severity: Severity) -> None:
    """Drop a text for the user."""


async def _concerns_nobody(_request: PermissionRequest) -> bool:
    return False


async def _deny(_request: PermissionRequest, _limits: ApprovalLimits) -> Verdict:
    return Verdict("denied", "There is nobody to ask.")


class Inner(Protocol):
    """The calls of tools that a running call makes."""

    @property
    def effects(self) -> ToolOutcome:
        """An outcome with what the calls had besides texts: messages, a rejection, an end of the turn."""
        ...

    def specs(self) -> list[ToolSpec]:
        """Return the specs of the tools that can be called."""
        ...

    def meant(self, name: str) -> str | None:
        """Return the name of our tool that another agent calls ``name``; ``None`` if there is none."""
        ...

    async def close_off(self, command: Sequence[str]) -> list[str] | None:
        """Return the command line that confines a Python program to computing; ``None`` if no sandbox can."""
        ...

    async def run(self, name: str, arguments: JsonObject) -> ToolOutcome:
        """Run a call between its hooks, with the question for permission and its own events."""
        ...


class ToolContext(Struct):
    """Everything that a running call may use.

    ``cwd`` is the session's working directory, ``environ`` makes the environment for child processes. ``files``
    reads and writes files, unsaved buffers of the user's editor included. ``web`` is ``None`` where the server
    offers none.
    ``partial`` shows the output so far (all of it, each time), ``progress`` one line of status; both are shown to
    the user only and must be called from the call's own task. ``ask_user`` takes a question, choices and whether a
    free answer is allowed; it raises ``ClientCallError`` if nobody answers. ``line`` is set for sequential tools.
    ``concerns`` returns whether a rule forbids a part of the call, or wants a person to decide about it: then the
    part needs approval, whatever the tool says.
    ``confined_only`` is set if the call is allowed only because it stays in the sandbox. ``programs`` are those of
    the server, such as git.
    ``virtual_files`` are those of the session that are not on the disk. ``edits`` are the changes of files that the
    call has made, virtual ones included.
    ``inner`` begins the calls that the call makes; ``None`` where it can make none.
    ``refused`` words the outcome if the turn is aborted; a tool may set it while it prepares a call.
    """

    call_id: str
    session_id: str
    cwd: Path
    environ: Callable[[], dict[str, str]]
    shells: CommandRunner
    partial: Callable[[str], None]
    progress: Callable[[str], None]
    ask_user: Callable[[str, list[str] | None, bool], Awaitable[UserInputResponse]]
    line: SequentialCalls | None = None
    files: Files = field(default_factory=Files)
    web: Web | None = None
    notify: Notify = _notify_nobody
    approve: Approve = _deny
    concerns: Concerns = _concerns_nobody
    confined_only: bool = False
    refused: Refused | None = None
    programs: OwnPrograms = field(default_factory=OwnPrograms)
    virtual_files: VirtualFiles | None = None
    edits: Sequence[FileEdit] = ()
    inner: Callable[[], Inner] | None = None

    def is_virtual(self, path: str) -> bool:
        """Return whether an absolute path leads to a file of the session that is not on the disk."""
        return self.virtual_files is not None and self.virtual_files.covers(path)

    def resolve(self, path: str) -> Path:
        """Make ``path`` absolute against the working directory; expand ``~`` and ``..``, keep symbolic links.

        The folder that ``..`` leads to is its real one, as for the system, so that a person who is asked sees it.
        """
        # Not Path.expanduser, which raises for an unknown user.
        whole = self.cwd / os.path.expanduser(path)
        if os.pardir not in whole.parts:
            return whole
        end = len(whole.parts) - whole.parts[::-1].index(os.pardir)
        try:
            folder = os.path.realpath(Path(*whole.parts[:end]))
        except (OSError, ValueError):
            return whole
        return Path(folder, *whole.parts[end:])


class Refused(Protocol):
    """Words the outcome of a call that was not allowed."""

    def __call__(self, outcome: ToolOutcome, *, cancelled: bool) -> Awaitable[ToolOutcome]: ...


class Prepared(Struct, frozen=True):
    """A call with valid arguments: the permission that it needs (``None``: none) and the function that runs it.

    ``refused`` may replace the outcome of a call that was not allowed; its ``cancelled`` is true if a person has
    cancelled the calls of the answer, or the turn was aborted, also while the call ran. ``guard`` limits how the
    permission may be given. ``refusal`` is the outcome of a call that cannot succeed as things are, so that nobody
    is asked about it.
    """

    permission: PermissionRequest | None
    run: Callable[[], Awaitable[ToolOutcome]]
    refused: Refused | None = None
    guard: ApprovalLimits = UNGUARDED
    refusal: ToolOutcome | None = None


def impossible(permission: PermissionRequest, outcome: ToolOutcome) -> Prepared:
    """Return a call that cannot succeed as things are; ``permission`` is what it would need."""

    async def run() -> ToolOutcome:
        return outcome

    return Prepared(permission, run, refusal=outcome)


class Tool(Protocol):
    """A tool of a session. ``source`` is the part before the colon in patterns such as ``mcp:*``."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> SourceName: ...

    @property
    def ordering(self) -> Ordering: ...

    @property
    def spec(self) -> ToolSpec:
        """Return the name, description and schema that the model sees."""
        ...

    @property
    def changes_nothing(self) -> bool:
        """Return whether calls may be made in plan mode, as far as the permissions that they need do not say so."""
        ...

    def summary(self, arguments: JsonObject) -> str | None:
        """Describe in a few words, for the user, what a call is about to do."""
        ...

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        """Check a call whose arguments are a JSON object; return an outcome if it cannot run.

        Has no effects and asks nobody. Called again if a person has changed the arguments.
        """
        ...


class Ignoring(Protocol):
    """A tool that runs without the arguments that it does not have."""

    def ignored(self, arguments: JsonObject) -> list[str]:
        """Return the names of those arguments that have no effect, although the model means something by them."""
        ...


def is_ignoring(tool: Tool) -> TypeGuard[Ignoring]:
    """Return whether a tool can name the arguments that it ignores."""
    return hasattr(tool, "ignored")


@runtime_checkable
class Cancellable(Protocol):
    """A tool that words the outcomes of calls that are cancelled before they are prepared."""

    async def cancelled(self, ctx: ToolContext, call: ToolUseBlock, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome of a call that does not run; by default, that would be ``outcome``."""
        ...


class Instructing(Protocol):
    """A source of tools that adds instructions to the system message."""

    def instructions(self, offered: Collection[str]) -> list[str]:
        """Return texts for the system message; ``offered`` are the names of the tools that the model sees."""
        ...


class Grouping(Protocol):
    """A source that looks for its tools on demand, and defines groups of tools of any source."""

    async def discover(self, prompt: str) -> None:
        """Look for new tools and for those that ``prompt``, which is about to be sent, mentions."""
        ...

    def members(self, name: str) -> Collection[str] | None:
        """Return the names of the tools in a group, ``None`` if this source has no such group."""
        ...

    def omitted_sections(self, offered: Collection[str]) -> Collection[str]:
        """Return the sections of the system message without their own text; ``offered`` are the tools in use."""
        ...

    def mention_text(self, name: str, members: list[str]) -> str | None:
        """Return the text that replaces ``@{name}`` in a prompt, for a group with these offered ``members``."""
        ...


def is_instructing(source: ToolSource) -> TypeGuard[Instructing]:
    """Return whether a source adds instructions to the system message."""
    # Each session asks it of every source, and a check of the whole protocol is slow.
    return hasattr(source, "instructions")


def is_grouping(source: ToolSource) -> TypeGuard[Grouping]:
    """Return whether a source defines groups of tools."""
    return hasattr(source, "omitted_sections")


class Starting(Protocol):
    """A source whose tools may still be missing."""

    async def absence(self, name: str) -> str | None:
        """Return the reason why a tool is missing, after waiting for it; ``None`` if there is no such tool."""
        ...


def is_starting(source: ToolSource) -> TypeGuard[Starting]:
    """Return whether tools of a source may still be missing."""
    return hasattr(source, "absence")


class ToolSource(Protocol):
    """Gives a session some of its tools: built-in ones, those of its clients, of MCP servers, of files."""

    def tools(self) -> Mapping[str, Tool]:
        """Return the tools that are available now, by name. Called often: does no I/O."""
        ...

    async def ready(self) -> None:
        """Wait, for a limited time, for tools that are being started."""
        ...

    async def close(self, grace_s: float) -> None:
        """End everything that the tools have running; processes get ``grace_s`` seconds to exit by themselves."""
        ...


class SourceMaker(NamedTuple):
    """Makes a source of tools for a session; ``names`` are all that its tools may have, if that is known."""

    make: Callable[[Session], ToolSource]
    names: frozenset[str] | None = None


class ToolArgs(LazyModel):
    """Base of the argument models. Unknown arguments are ignored, because models invent some."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


A = TypeVar("A", bound=ToolArgs)


LAST: Final = 1000


_PUNCTUATION: Final = re.compile(r"[-_\s]")
_REMARKS: Final = frozenset({
    "activeform", "comment", "description", "explanation", "instruction", "instructions", "intent", "intention",
    "justification", "note", "purpose", "rationale", "reason", "reasoning", "requiresapproval", "safetoautorun",
    "securityrisk", "shouldreadentirefile", "summary", "thought", "thoughts", "title", "toolsummary",
})  # fmt: skip
"""Arguments that change nothing about a call, many of them of other agents: without hyphens and underscores."""


def is_remark(name: str) -> bool:
    """Return whether an argument of a built-in tool with this name has no effect on what a call does."""
    return _PUNCTUATION.sub("", name[:40]).casefold() in _REMARKS


class Described(Struct, Generic[A], frozen=True, kw_only=True, dict=True):
    """The half of a built-in tool that models see.

    ``position`` orders the built-in tools of a request. Providers cache the beginning of a request, so the tools
    with a number keep it; new ones need none and come after them, by name. Calls of a ``read_only`` tool run side
    by side, because their order does not matter. Those of a tool ``for_plans`` change nothing but the state of the
    session, so that they may be made in plan mode, too. ``grammar`` is that of :class:`ToolSpec`. ``follows``
    names the tool that leaves what this one works on: see :mod:`jumpseat.tools.orchestrator.followers`.
    """

    name: str
    description: str
    args: type[A]
    position: int = LAST
    read_only: bool = False
    for_plans: bool = False
    grammar: str | None = None
    follows: Literal["bash", "task"] | None = None

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    @property
    def changes_nothing(self) -> bool:
        return self.read_only or self.for_plans

    @cached_property
    def _spec(self) -> ToolSpec:
        schema = _slim(self.args.model_json_schema(by_alias=True))
        return ToolSpec(self.name, self.description, ToolSchema.of(schema), grammar=self.grammar)

    @property
    def ordering(self) -> Ordering:
        return "reading" if self.read_only else "queued"

    def parse(self, call: ToolUseBlock) -> A | ToolOutcome:
        """Return the arguments of a call, or the outcome that names what is wrong with them."""
        if (excess := excess_of(call.arguments, MOST_ARGUMENT_ENTRIES)) is not None:
            return failure(f"Invalid arguments for `{self.name}`: {excess}")
        try:
            return self.args.model_validate(call.arguments)
        except ValidationError as error:
            problems = "; ".join(validation_problems(error, self.args, "arguments"))
            return failure(f"Invalid arguments for `{self.name}`: {problems}")

    def ignored(self, arguments: JsonObject) -> list[str]:
        """Return the names of those arguments that the tool does not have, but for empty ones and mere remarks."""
        if arguments.keys() <= self._taken:
            return []
        return [
            name for name, value in arguments.items() if name not in self._taken and value and not is_remark(name)
        ]

    @cached_property
    def _taken(self) -> frozenset[str]:
        fields = self.args.model_fields
        return frozenset(fields) | {field.alias for field in fields.values() if field.alias is not None}

    def describe(self, intention: Callable[[A], str], arguments: JsonObject) -> str | None:
        """Describe what a call is about to do; return ``None`` for invalid arguments."""
        if excess_of(arguments, MOST_ARGUMENT_ENTRIES) is not None:
            return None
        try:
            return intention(self.args.model_validate(arguments))
        except ValidationError:
            return None


def _no_permission(_ctx: ToolContext, _args: object) -> None:
    """Return the permission of a tool that needs none."""


class BuiltinTool(Described[A], frozen=True, kw_only=True):
    """A built-in tool.

    ``intention`` describes in a few words, for the user, what a call is about to do. ``permission`` returns the
    permission that a call needs, ``None`` if none. ``needs`` is a capability without which the tool is not offered:
    a client that can ask its user, access to the web, a configured search service, a sandbox for scripts. ``ready``
    finds out what the permission depends on. ``prepares`` prepares a call in place of ``permission``, where that
    needs the content of a file. A tool that ``runs_commands`` starts shell commands or lets them continue, so that
    any file of the workspace may have changed after a call.
    """

    run: Callable[[ToolContext, A], Awaitable[ToolOutcome]]
    intention: Callable[[A], str]
    permission: Callable[[ToolContext, A], PermissionRequest | None] = _no_permission
    needs: Literal["user_input", "web", "web_search", "scripts"] | None = None
    ready: Callable[[ToolContext], Awaitable[None]] | None = None
    prepares: Callable[[ToolContext, A], Awaitable[Prepared | ToolOutcome]] | None = None
    runs_commands: bool = False

    @property
    def source(self) -> SourceName:
        return "builtin"

    @property
    def may_ask(self) -> bool:
        """Return whether there are calls that need a permission."""
        return self.prepares is not None or self.permission is not _no_permission

    def summary(self, arguments: JsonObject) -> str | None:
        return self.describe(self.intention, arguments)

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        args = self.parse(call)
        if isinstance(args, ToolOutcome):
            return args
        if self.ready is not None:
            await self.ready(ctx)
        if self.prepares is not None:
            return await self.prepares(ctx, args)
        return Prepared(self.permission(ctx, args), partial(self.run, ctx, args))


def _slim(schema: JsonObject) -> JsonObject:
    """Remove what models need not see: titles, longest lengths, null alternatives, empty and false defaults."""

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
            if key not in ("title", "maxLength") and not (key == "default" and not item)
        }

    slim = walk({key: value for key, value in schema.items() if key != "description"})
    slim.setdefault("properties", {})
    return slim
