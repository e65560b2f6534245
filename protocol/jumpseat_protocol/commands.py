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
    include_skills: StrictBool = True
    include_client_commands: StrictBool = True


class CommandChoice(WireStruct, kw_only=True):
    """A word that the arguments of a command can be."""

    name: str
    description: str


class CommandInput(WireStruct, kw_only=True):
    """The arguments of a command. With ``completion``, they are the path of a folder."""

    hint: str
    choices: list[CommandChoice] | None = None
    required: StrictBool | None = None
    completion: Literal["directory"] | None = None
    preserve_multiline_input: StrictBool | None = None


class SlashCommandInfo(WireStruct, kw_only=True):
    """``name`` and ``aliases`` are without the slash. This server does not set the last two members."""

    name: str
    aliases: list[str] | None = None
    description: str
    kind: CommandKind
    allow_during_agent_execution: StrictBool
    input: CommandInput | None = None
    experimental: StrictBool | None = None
    schedulable: StrictBool | None = None


class CommandsListResult(WireStruct, kw_only=True):
    commands: list[SlashCommandInfo]


class CommandInvokeParams(WireModel):
    """``name`` may have its slash; ``input`` is the text after the name. ``origin`` has no effect."""

    session_id: str
    name: str = Field(min_length=1)
    input: str = ""
    origin: Literal["settings"] | None = None


class TimelineEntry(WireModel):
    """An entry that a client adds to what it shows."""

    type: str
    text: str
    url: str | None = None


class ModelPicker(WireModel):
    """A dialogue that a client opens."""

    kind: Literal["model-picker"]
    model_to_enable: str | None = None
    scope: str | None = None
    target: str | None = None


class SubcommandOption(WireModel):
    """A word that a command takes."""

    name: str
    description: str
    group: str | None = None


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
    markdown: StrictBool | None = None
    preserve_ansi: StrictBool | None = None
    prompt: str | None = None
    display_prompt: str | None = None
    mode: SessionMode | None = None
    notice: str | None = None
    message: str | None = None
    command: str | None = None
    title: str | None = None
    options: list[SubcommandOption] | None = None
    entry: TimelineEntry | None = None
    prefill_input: str | None = None
    dialog: ModelPicker | None = None
    model: str | None = None
    scope: str | None = None
    warning: str | None = None
    reasoning_effort: str | None = None
    plan_model: str | None = None
    runtime_settings_changed: StrictBool | None = None


class CommandExecuteParams(WireModel):
    session_id: str
    command_name: str = Field(min_length=1)
    args: str = ""


class CommandExecuteResult(WireModel):
    """``error`` is set if the command failed."""

    error: str | None = None


class CommandEnqueueParams(WireModel):
    """``command`` is the whole line, with its slash; ``display_text`` is shown in the queue."""

    session_id: str
    command: str
    display_text: str | None = None


class CommandEnqueueResult(WireModel):
    """``queue_id`` is the id in ``session.queue.pendingItems``."""

    queued: StrictBool = True
    queue_id: str


class HandlePendingCommandParams(WireModel):
    session_id: str
    request_id: str
    error: str | None = None


class RespondToQueuedCommandParams(WireModel):
    session_id: str
    request_id: str
    result: QueuedCommandResult


METHODS: Final[Mapping[str, Method]] = {
    "session.commands.list": Method(CommandsListParams, CommandsListResult),
    "session.commands.invoke": Method(CommandInvokeParams, CommandInvokeResult),
    "session.commands.execute": Method(CommandExecuteParams, CommandExecuteResult),
    "session.commands.enqueue": Method(CommandEnqueueParams, CommandEnqueueResult),
    "session.commands.handlePendingCommand": Method(HandlePendingCommandParams, SuccessResult),
    "session.commands.respondToQueuedCommand": Method(RespondToQueuedCommandParams, SuccessResult),
}
