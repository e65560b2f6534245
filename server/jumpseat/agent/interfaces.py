"""The interfaces that a session needs of ``adapters``, ``store`` and ``tools``, which implement them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import CREDITS_PER_DOLLAR, NANO, Model, ModelInfo, ToolOrigin, ToolSpec, Usage
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import HookStopError, ProviderError
from jumpseat_protocol.events import Event, ShellToolInfo, ToolsStatus
from jumpseat_protocol.structs import Discreet

if TYPE_CHECKING:
    from jumpseat.agent.client import ProvidedTool


class Announcements(Protocol):
    """The announcements that wait for events to be stored."""

    def announce(self, announcement: Callable[[], None]) -> None:
        """Call ``announcement`` when all events that were appended before are stored; at once if they are."""
        ...

    def keep(self, event: Event) -> None:
        """Store an event that is not in the log, for clients that miss its announcement: the end of a run."""
        ...

    async def wait(self) -> None:
        """Wait until all events are stored.

        Raises:
            StoreError: they cannot be stored, or another process has taken the session over.
        """
        ...


class EventLog(Protocol):
    """The log of a session's persisted events."""

    @property
    def announcements(self) -> Announcements | None:
        """The queue of announcements whose events are not stored yet; ``None`` if events are stored at once."""
        ...

    def append(self, event: Event) -> None:
        """Write one event. On the disk, it survives the death of the process from then on.

        Raises:
            StoreError: the event could not be written.
        """
        ...

    def sync_soon(self) -> None:
        """Schedule that all events are stored safely; returns at once."""
        ...

    async def flush(self) -> None:
        """Wait until the events are written, or have failed to be, which the log reports itself."""
        ...


class VirtualFiles(Protocol):
    """The files of a session that are not on the disk."""

    def covers(self, path: str) -> bool:
        """Return whether an absolute path leads to one of these files, existing or not."""
        ...

    async def load(self, path: str) -> bytes | list[str] | None:
        """Return the content of a file, or the names in a folder; ``None`` if there is nothing at the path.

        Raises:
            StoreError: it cannot be read.
        """
        ...

    async def save(self, path: str, content: bytes) -> None:
        """Create or replace a file; returns when it is stored.

        Raises:
            StoreError: it cannot be stored, or is a file that only the session itself changes.
        """
        ...

    async def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            StoreError: it cannot be removed, or is a file that only the session itself changes.
        """
        ...


class RunUsage(Struct, kw_only=True):
    """A run. ``ended_at`` is empty while it goes on; times are in ISO 8601, lengths in milliseconds."""

    interaction_id: str
    started_at: str
    ended_at: str = ""
    waiting_ms: int = 0
    model_ms: int = 0
    tools_ms: int = 0
    other_ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = None


class Storage(Protocol):
    """The place where a session is stored."""

    @property
    def log(self) -> EventLog:
        """The event log."""
        ...

    @property
    def shown_path(self) -> str:
        """The path of the session's folder, for clients."""
        ...

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """The folders on the disk that the server made for the session's model."""
        ...

    @property
    def virtual_files(self) -> VirtualFiles | None:
        """The files that are not on the disk, if there are any."""
        ...

    def read_objective(self) -> str | None:
        """Return the file with the objective of the autopilot, if there is one."""
        ...

    def write_objective(self, content: str | None) -> None:
        """Replace that file; ``None`` removes it.

        Raises:
            StoreError: it cannot be written.
        """
        ...

    def read_brief(self, cwd: str) -> Brief | None:
        """Return the description of the project in a working directory, if it is stored with the session."""
        ...

    def write_brief(self, cwd: str, brief: Brief) -> None:
        """Store the description of the project in a working directory, in place of another one.

        Raises:
            StoreError: it cannot be written.
        """
        ...

    def read_prefix(self) -> bytes | None:
        """Return the digest of the beginning of the last request, if it is stored with the session."""
        ...

    def write_prefix(self, digest: bytes) -> None:
        """Store the digest of the beginning of a request, unless the files of the session are virtual.

        Raises:
            StoreError: it cannot be written.
        """
        ...

    def append_run(self, run: RunUsage) -> None:
        """Store the time and the usage of a run that has ended; a failure is logged."""
        ...

    def save_output(self, name: str, data: bytes, folder: str | None) -> str:
        """Store a tool output that is too large for the model, in ``folder`` if given; returns its path.

        Raises:
            OSError: it cannot be stored.
        """
        ...


AskToken: TypeAlias = Callable[[str], Awaitable[str]]
"""Returns the bearer token for a provider by its name; ``default`` names the session's ``provider``."""


class ResolvedModel(Discreet, Struct, frozen=True):
    """A model ready to be called. ``wire_name`` is the provider's name for it.

    ``info`` holds the facts stated by the user or the provider, and governs requests. ``filled`` is ``info`` with
    its gaps filled from the list of known models. ``listed`` is false for a model that the provider's list, which
    may lag behind, does not have. ``find_auto`` returns the name under which the provider chooses a model itself,
    or ``None`` where it has no such name. ``explain`` explains a failed call to the user.
    """

    hidden = ("explain",)
    model: Model
    wire_name: str
    info: ModelInfo
    byok: bool = True
    listed: bool = True
    filled: ModelInfo | None = None
    find_auto: Callable[[], Awaitable[str | None]] | None = None
    explain: Callable[[ProviderError], str] | None = None

    def explain_failure(self, error: ProviderError) -> None:
        """Add an explanation to the error of a failed call."""
        if self.explain is not None and error.explanation is None:
            error.explanation = self.explain(error)

    @property
    def known(self) -> ModelInfo:
        """Everything known about the model: for information, not for deciding what a request may contain."""
        return self.filled or self.info

    def cost_of(self, usage: Usage | None) -> float | None:
        """Return the cost of a call in US dollars, as reported by the provider or computed from known prices."""
        if usage is None or usage.cost is not None:
            return usage.cost if usage is not None else None
        if usage.nano_aiu:
            return round(usage.nano_aiu / NANO / CREDITS_PER_DOLLAR, 9)
        price = self.known.price
        return round(price.total(usage), 9) if price is not None and usage.input_tokens else None


class ModelSource(Protocol):
    """Resolves the model of a session."""

    def check(self, settings: SessionSettings) -> None:
        """Validate the settings that concern the model, without I/O.

        Raises:
            JumpseatError: the provider or its settings cannot work.
        """
        ...

    async def resolve(self, settings: SessionSettings, *, ask_token: AskToken | None = None) -> ResolvedModel:
        """Resolve the model; may fetch the provider's list of models, once.

        ``ask_token`` is called before every request to a provider whose bearer token comes from the client.

        Raises:
            ProviderError: the provider refused to list its models.
            JumpseatError: no model is configured, or its configuration is invalid.
        """
        ...

    def unsupported_settings(self, settings: SessionSettings) -> list[str]:
        """Return the adapter settings, by name, that the session's model is known not to take; does no I/O."""
        ...

    async def ask_server(self, resolved: ResolvedModel, *, again: bool = False) -> bool:
        """Ask a model server in the user's own network for facts about its model, and remember them.

        Each server is asked once about a model, and once more with ``again``.

        Returns:
            Whether anything was learned.
        """
        ...

    def learn(self, resolved: ResolvedModel, **facts: Any) -> None:
        """Remember facts about a model, fields of ``ModelInfo``, that its provider has shown in an answer."""
        ...


class CommandOutput(NamedTuple):
    """A part of a command's output, which ends at the offset ``end``; ``is_last``: nothing will follow."""

    text: str
    end: int
    is_last: bool


class BackgroundCommand(Protocol):
    """A shell command of a session; it may have exited since.

    ``in_background``: no call waits for it; ``detached``: the session does not wait for it either; ``interactive``:
    the model has written to it; ``reported``: the model knows its end; ``cancelled``: a client has ended it.
    """

    description: str
    in_background: bool
    detached: bool
    interactive: bool
    reported: bool
    cancelled: bool

    @property
    def id(self) -> str: ...

    @property
    def command(self) -> str: ...

    @property
    def exit_code(self) -> int | None: ...

    @property
    def finished(self) -> bool:
        """Return whether the command itself has exited."""
        ...

    @property
    def pid(self) -> int | None:
        """Return the id of its process, or of that of its sandbox; ``None`` if it runs elsewhere."""
        ...

    @property
    def age_s(self) -> float:
        """Return the seconds since its start."""
        ...

    @property
    def ended_s(self) -> float | None:
        """Return the seconds since its end; ``None`` while it runs."""
        ...

    @property
    def output_bytes(self) -> int:
        """Return the number of bytes written so far; it changes exactly when there is new output."""
        ...

    async def wait(self) -> None:
        """Wait until the command itself has exited."""
        ...

    def output(self, limit: int | None = None) -> str:
        """Return all output so far, or its last ``limit`` bytes."""
        ...

    def output_from(self, start: int | None, limit: int) -> CommandOutput | None:
        """Return at most ``limit`` bytes of output from offset ``start``, by default the oldest that is kept.

        The result is ``None`` if the output at ``start`` is not kept.
        """
        ...

    async def news(self, seen: int) -> None:
        """Wait for more than ``seen`` bytes of output in all, or for the exit of the command."""
        ...

    async def stop(self) -> None:
        """End the command and all its processes."""
        ...


Stream: TypeAlias = Literal["stdout", "stderr"]


class ProcessListener(Protocol):
    """Learns the output and the end of a command of the user."""

    def output(self, stream: Stream, text: str) -> None:
        """Take a piece of output."""
        ...

    def exited(self, exit_code: int) -> None:
        """Take the exit code; nothing follows."""
        ...

    async def drain(self) -> None:
        """Wait until most of the output so far has been read."""
        ...


class CommandResult(Struct, frozen=True):
    """The result of a command of the user. ``exit_code`` is ``None`` if it was cancelled or could not start."""

    call_id: str
    success: bool
    output: str
    exit_code: int | None = None
    error: str | None = None


class UserCommands(Protocol):
    """The commands of the user in one session, which run beside those of the agent."""

    def start(self, command: str, cwd: Path, timeout_s: float | None, listener: ProcessListener) -> str:
        """Start a command in the background and return its id. The ``listener`` is called after that.

        Raises:
            InvalidRequestError: too many commands run, or the session is closing.
        """
        ...

    def kill(self, process_id: str, name: str) -> bool:
        """Send the signal ``name`` to such a command and its children; returns ``False`` if it does not run."""
        ...

    async def run(self, request_id: str, command: str) -> CommandResult:
        """Run a command to its end, with events. The model learns the result with the next prompt.

        Raises:
            InvalidRequestError: ``request_id`` is in use, too many commands run, or the session is closing.
        """
        ...

    def cancel(self, request_id: str) -> bool:
        """End a command that :meth:`run` waits for; returns ``False`` if there is none with this id."""
        ...


class ToolsResult(Struct, frozen=True):
    """The common result of the tool calls of one answer. ``ends_turn`` means that the model is not called again.

    ``stopped`` is the error that ends the run if a hook has stopped it.
    """

    status: ToolsStatus
    ends_turn: bool
    stopped: HookStopError | None = None


class BuiltinToolInfo(NamedTuple):
    """A built-in tool, and whether it runs commands."""

    spec: ToolSpec
    runs_commands: bool


class ToolTexts(Struct, frozen=True):
    """The tools' part of the system message: their instructions, and the sections without their own text."""

    instructions: str
    omitted_sections: frozenset[str]


class Brief(Struct, frozen=True):
    """The description of a project for its model, and the command that tests the project; both may be unknown."""

    text: str = ""
    check: str | None = None


class ToolRunner(Protocol):
    """The tools of one session."""

    async def discover(self, prompt: str) -> None:
        """Discover new tools, and those mentioned in a prompt that is about to be sent."""
        ...

    def expand_mentions(self, prompt: str) -> str:
        """Replace mentions of tools and groups, ``@{name}``, by words for the model."""
        ...

    def in_system_message(self) -> ToolTexts:
        """Return the tools' part of the system message."""
        ...

    def specs(self, needed: str | None = None, *, small: bool = False) -> list[ToolSpec]:
        """Return the tools offered to the model now, including the tool ``needed`` even if it is deferred.

        They are fewer and shorter for a model with a ``small`` window, unless they were chosen explicitly.
        """
        ...

    def shortens(self) -> bool:
        """Return whether a model with a small window gets fewer tools than others."""
        ...

    async def unknown_names(self, offered: Collection[str]) -> dict[str, str | None]:
        """Return the chosen and the excluded names that no tool has, each with the one that may be meant.

        ``offered`` are names that tools have for certain.
        """
        ...

    def deferred_specs(self) -> list[ToolSpec]:
        """Return the tools that requests do not have yet: deferred ones, and those with nothing to work on."""
        ...

    def unlisted_specs(self) -> list[ToolSpec]:
        """Return the tools that can be called although requests have none of them, deferred ones included."""
        ...

    def names(self, settings: SessionSettings | None = None) -> list[str]:
        """Return the names of the tools available to the model, now or with other ``settings``."""
        ...

    def check(self, tools: Mapping[str, ProvidedTool]) -> None:
        """Validate the tools that a client registers.

        Raises:
            InvalidRequestError: a tool would hide a built-in one without declaring that it overrides it.
        """
        ...

    async def ready(self) -> None:
        """Wait for a short time for tools that are being started, before a turn begins."""
        ...

    def described(self, calls: Sequence[ToolUseBlock]) -> list[tuple[ToolOrigin | None, str | None]]:
        """Return the MCP server of each call's tool, if it is from one, and what the call is about to do.

        The latter is for the user, in a few words.
        """
        ...

    def shell_info(self, call: ToolUseBlock) -> ShellToolInfo | None:
        """Return what a shell command touches, as far as its text shows; ``None`` for other tools."""
        ...

    async def run(self, calls: list[ToolUseBlock], turn_id: str) -> ToolsResult:
        """Run the calls of one answer.

        **Contract:** emits exactly one ``tool.execution_complete`` per call, also when cancelled.
        """
        ...

    async def run_beside(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Run a call that a client asks for, with hooks and permissions; the conversation does not get it.

        Returns the result in the form of ``ToolResultObject``.
        """
        ...

    def builtin_tools(self) -> list[BuiltinToolInfo]:
        """Return the built-in tools among those that the model may call."""
        ...

    @property
    def user_commands(self) -> UserCommands:
        """Return the commands of the user."""
        ...

    def commands(self) -> list[BackgroundCommand]:
        """Return the commands that run in the background, or whose output was not read yet."""
        ...

    def move_commands_to_background(self) -> None:
        """End the calls that wait for commands; these continue, and the model is told about their ends."""
        ...

    async def settle(self) -> None:
        """Record the files that commands have changed while a prompt ran. Not cancellable, but bounded."""
        ...

    async def close(self, grace_s: float | None = None) -> None:
        """Stop everything that the tools have running; commands get ``grace_s`` seconds to end by themselves."""
        ...


STARTED: Final = "<started in background with shellId: "
"""Followed by the id of the shell; no call waits for the command."""

RUNNING: Final = "<still running with shellId: "
"""Followed by the id of the shell; the command has outlasted the call."""

EXITED: Final = "<exited with exit code "
"""Followed by the exit code."""
