"""``session.commands.*``: listing, running and queueing slash commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from jumpseat_protocol.callbacks import QueuedCommandResult
from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.wire import Method, WireModel

CommandKind: TypeAlias = Literal["builtin", "skill", "client"]


class CommandsListParams(WireModel):
    session_id: str
    include_builtins: StrictBool = True
    include_skills: StrictBool = True
    include_client_commands: StrictBool = True


class CommandInput(WireModel):
    """The arguments of a command."""

    hint: str


class SlashCommandInfo(WireModel):
    """``name`` is without the slash."""

    name: str
    description: str
    kind: CommandKind
    allow_during_agent_execution: StrictBool
    input: CommandInput | None = None


class CommandsListResult(WireModel):
    commands: list[SlashCommandInfo]


class CommandInvokeParams(WireModel):
    """``name`` may have its slash; ``input`` is the text after the name."""

    session_id: str
    name: str = Field(min_length=1)
    input: str = ""


class SubcommandOption(WireModel):
    """A word that a command takes."""

    name: str
    description: str
    group: str | None = None


class CommandInvokeResult(WireModel):
    """The members depend on the kind.

    ``text``: ``text``, which may be ``markdown``. ``agent-prompt``: ``prompt``, to be sent in ``mode``, and
    ``display_prompt``, which users see in its place. ``completed``: ``message``. ``select-subcommand``:
    ``command``, to be invoked again with the name of one of the ``options`` as its input, and ``title``.
    """

    kind: Literal["text", "completed", "agent-prompt", "select-subcommand"]
    text: str | None = None
    markdown: StrictBool | None = None
    prompt: str | None = None
    display_prompt: str | None = None
    mode: SessionMode | None = None
    message: str | None = None
    command: str | None = None
    title: str | None = None
    options: list[SubcommandOption] | None = None


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
