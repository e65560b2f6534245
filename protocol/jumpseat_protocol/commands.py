"""Slash commands: listing them, running them at once or when their turn in the queue has come.

Loaded when the first of these methods is called; see ``methods.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from pydantic import Field, StrictBool

from jumpseat_protocol.callbacks import QueuedCommandResult
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.wire import Method, WireModel

CommandKind: TypeAlias = Literal["builtin", "skill", "client"]


class CommandsListParams(WireModel):
    session_id: str
    include_builtins: StrictBool = True
    include_skills: StrictBool = True
    include_client_commands: StrictBool = True


class CommandInput(WireModel):
    """What may stand behind the name."""

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
    """``name`` with or without its slash; ``input`` is what stands behind it."""

    session_id: str
    name: str = Field(min_length=1)
    input: str = ""


class CommandInvokeResult(WireModel):
    """``text`` is to be shown, for the kind of that name; ``agent-prompt`` has a ``prompt`` to send."""

    kind: Literal["text", "completed", "agent-prompt"]
    text: str | None = None
    prompt: str | None = None
    display_prompt: str | None = None


class CommandExecuteParams(WireModel):
    session_id: str
    command_name: str = Field(min_length=1)
    args: str = ""


class CommandExecuteResult(WireModel):
    """``error`` is what went wrong, if anything."""

    error: str | None = None


class CommandEnqueueParams(WireModel):
    """``command`` is the whole line, with its slash; ``display_text`` is shown for it in the queue."""

    session_id: str
    command: str
    display_text: str | None = None


class CommandEnqueueResult(WireModel):
    """``queue_id`` is the id that ``session.queue.pendingItems`` tells."""

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
