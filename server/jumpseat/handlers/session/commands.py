"""``session.commands.*``: slash commands."""

from __future__ import annotations

from jumpseat.agent.session.queue import Prompt, QueuedCommand
from jumpseat.agent.turns import commands
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.commands import (
    CommandEnqueueParams,
    CommandEnqueueResult,
    CommandExecuteParams,
    CommandExecuteResult,
    CommandInvokeParams,
    CommandInvokeResult,
    CommandsListParams,
    CommandsListResult,
    HandlePendingCommandParams,
    RespondToQueuedCommandParams,
)
from jumpseat_protocol.events import SessionInfo
from jumpseat_protocol.server import SuccessResult


def list_commands(ctx: Context, params: CommandsListParams) -> CommandsListResult:
    """The server's own, those of the attached clients, and the skills that people may call."""
    found = commands.available(
        ctx.registry.live(params.session_id),
        builtins=params.include_builtins,
        clients=params.include_client_commands,
        skills=params.include_skills,
    )
    return CommandsListResult(commands=found)


async def invoke(ctx: Context, params: CommandInvokeParams) -> CommandInvokeResult:
    """Run one now and hand back what it says, or the prompt that does it."""
    session = ctx.registry.live(params.session_id)
    shown = await commands.invoke(session, params.name.strip().lstrip("/"), params.input.strip())
    if isinstance(shown, commands.AgentPrompt):
        return CommandInvokeResult(kind="agent-prompt", prompt=shown.text, display_prompt=shown.text)
    return CommandInvokeResult(kind="completed" if shown is None else "text", text=shown)


async def execute(ctx: Context, params: CommandExecuteParams) -> CommandExecuteResult:
    """Run one now; what it says is told to everybody, what goes wrong to the caller."""
    session = ctx.registry.live(params.session_id)
    try:
        shown = await commands.invoke(session, params.command_name.strip().removeprefix("/"), params.args)
    except InvalidRequestError as error:
        return CommandExecuteResult(error=str(error))
    if isinstance(shown, commands.AgentPrompt):
        session.send(Prompt(shown.text))
    elif shown is not None:
        session.emit(SessionInfo(info_type="command", message=shown))
    return CommandExecuteResult()


def enqueue(ctx: Context, params: CommandEnqueueParams) -> CommandEnqueueResult:
    """Have one run when all that was sent before it is done."""
    session = ctx.registry.live(params.session_id)
    text = params.command.strip()
    commands.split(text)
    command = QueuedCommand(text, params.display_text or text)
    session.queue.add(command)
    return CommandEnqueueResult(queue_id=command.id)


def handle_pending_command(ctx: Context, params: HandlePendingCommandParams) -> SuccessResult:
    """A client has run its command, or failed to. Fine also where nobody waits for it any more."""
    ctx.registry.live(params.session_id).clients.command_calls.answer(params.request_id, params.error)
    return SuccessResult()


def respond_to_queued_command(ctx: Context, params: RespondToQueuedCommandParams) -> SuccessResult:
    """The first answer for a queued command counts; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.queued_commands.answer(params.request_id, params.result))
