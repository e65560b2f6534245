"""``session.commands.*``: listing, running and queueing slash commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from jumpseat_protocol.callbacks import QueuedCommandResult
from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.wire import Method, WireModel, WireStruct

CommandKind: TypeAlias = Literal["builtin", "skill", "client"]


class CommandsListParams(WireModel):
    session_id: str
    include_builtins: StrictBool = True
    """Whether the server's own commands are listed."""
    include_skills: StrictBool = True
    """Whether skills are listed."""
    include_client_commands: StrictBool = True
    """Whether the clients' commands are listed."""


class CommandChoice(WireStruct, kw_only=True):
    """A word that the arguments of a command can be."""

    name: str
    """The word."""
    description: str


class CommandInput(WireStruct, kw_only=True):
    """The arguments of a command. With ``completion``, they are the path of a folder."""

    hint: str
    """What to write."""
    choices: list[CommandChoice] | None = None
    """The words to choose from."""
    required: StrictBool | None = None
    """Whether there have to be arguments."""
    completion: Literal["directory"] | None = None
    """What the arguments are completed with."""
    preserve_multiline_input: StrictBool | None = None
    """Whether line ends in the arguments are kept."""


class SlashCommandInfo(WireStruct, kw_only=True):
    """``name`` and ``aliases`` are without the slash. This server does not set the last two members."""

    name: str
    """The name, without the slash."""
    aliases: list[str] | None = None
    """Other names."""
    description: str
    kind: CommandKind
    allow_during_agent_execution: StrictBool
    """Whether it may run during a turn."""
    input: CommandInput | None = None
    """The arguments that it takes."""
    experimental: StrictBool | None = None
    """Never set."""
    schedulable: StrictBool | None = None
    """Never set."""


class CommandsListResult(WireStruct, kw_only=True):
    commands: list[SlashCommandInfo]
    """The commands."""


class CommandInvokeParams(WireModel):
    """``name`` may have its slash; ``input`` is the text after the name. ``origin`` has no effect."""

    session_id: str
    name: str = Field(min_length=1)
    """The name, with or without the slash."""
    input: str = ""
    """The text behind the name."""
    origin: Literal["settings"] | None = None
    """Has no effect."""


class TimelineEntry(WireModel):
    """An entry that a client adds to what it shows."""

    type: str
    text: str
    """The text to show."""
    url: str | None = None


class ModelPicker(WireModel):
    """A dialogue that a client opens."""

    kind: Literal["model-picker"]
    model_to_enable: str | None = None
    """The id of a model that has to be enabled first."""
    scope: str | None = None
    """What the choice applies to."""
    target: str | None = None
    """Which of the session's models is chosen."""


class SubcommandOption(WireModel):
    """A word that a command takes."""

    name: str
    """The word."""
    description: str
    group: str | None = None
    """The group that it is shown in."""


class CommandInvokeResult(WireModel):
    """The members depend on the kind. This server answers with the first four kinds.

    ``text``: ``text``, which may be ``markdown``. ``agent-prompt``: ``prompt``, to be sent in ``mode``, and
    ``display_prompt``, which users see in its place. ``completed``: ``message``. ``select-subcommand``:
    ``command``, to be invoked again with the name of one of the ``options`` as its input, and ``title``.
    ``add-timeline-entry``: ``entry``, ``prefill_input``. ``show-dialog``: ``dialog``. ``set-model``: ``model``,
    ``scope``, ``warning``, ``reasoning_effort``. ``set-plan-model``: ``plan_model``, ``message``.
    """

    kind: Literal[
        "text",
        "completed",
        "agent-prompt",
        "select-subcommand",
        "add-timeline-entry",
        "show-dialog",
        "set-model",
        "set-plan-model",
    ]
    text: str | None = None
    """The text to show."""
    markdown: StrictBool | None = None
    """Whether ``text`` is Markdown."""
    preserve_ansi: StrictBool | None = None
    """Whether control sequences in ``text`` are kept."""
    prompt: str | None = None
    """The prompt to send."""
    display_prompt: str | None = None
    mode: SessionMode | None = None
    """The mode to send it in."""
    notice: str | None = None
    """What to tell the person."""
    message: str | None = None
    """What has happened, for people."""
    command: str | None = None
    """The command that takes one of ``options``."""
    title: str | None = None
    options: list[SubcommandOption] | None = None
    """The words to choose from."""
    entry: TimelineEntry | None = None
    """An entry to show."""
    prefill_input: str | None = None
    """Text to put into the input."""
    dialog: ModelPicker | None = None
    """The dialogue to open."""
    model: str | None = None
    """The id of the model that was chosen."""
    scope: str | None = None
    """What the choice applies to."""
    warning: str | None = None
    """What the person should know."""
    reasoning_effort: str | None = None
    plan_model: str | None = None
    """The id of the model for plans."""
    runtime_settings_changed: StrictBool | None = None
    """Whether settings of the server have changed."""


class CommandExecuteParams(WireModel):
    session_id: str
    command_name: str = Field(min_length=1)
    """The name, without the slash."""
    args: str = ""
    """The text behind the name."""


class CommandExecuteResult(WireModel):
    """``error`` is set if the command failed."""

    error: str | None = None


class CommandEnqueueParams(WireModel):
    """``command`` is the whole line, with its slash; ``display_text`` is shown in the queue."""

    session_id: str
    command: str
    """The whole line, with its slash."""
    display_text: str | None = None
    """What the queue shows."""


class CommandEnqueueResult(WireModel):
    """``queue_id`` is the id in ``session.queue.pendingItems``."""

    queued: StrictBool = True
    """Whether the command was queued."""
    queue_id: str
    """The id of the item in ``session.queue.pendingItems``."""


class HandlePendingCommandParams(WireModel):
    session_id: str
    request_id: str
    error: str | None = None


class RespondToQueuedCommandParams(WireModel):
    session_id: str
    request_id: str
    result: QueuedCommandResult
    """What the client has done."""


METHODS: Final[Mapping[str, Method]] = {
    "session.commands.list": Method(CommandsListParams, CommandsListResult, "List the slash commands."),
    "session.commands.invoke": Method(
        CommandInvokeParams,
        CommandInvokeResult,
        "Run a slash command, and return its output or the prompt to send.",
    ),
    "session.commands.execute": Method(
        CommandExecuteParams, CommandExecuteResult, "Run a slash command, whose output all clients get."
    ),
    "session.commands.enqueue": Method(CommandEnqueueParams, CommandEnqueueResult, "Queue a slash command."),
    "session.commands.handlePendingCommand": Method(
        HandlePendingCommandParams, SuccessResult, "Report that a command of the client has run."
    ),
    "session.commands.respondToQueuedCommand": Method(
        RespondToQueuedCommandParams, SuccessResult, "Report whether a queued command has run."
    ),
}
