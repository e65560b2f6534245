"""``session.commands.*``: slash commands."""

from __future__ import annotations

from jumpseat.agent.session.queue_items import QueuedCommand
from jumpseat.commands import running
from jumpseat.commands.results import AgentPrompt, Choice, Done, Text, shown_text
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
    SubcommandOption,
)
from jumpseat_protocol.events import SessionInfo
from jumpseat_protocol.server import SuccessResult


def list_(ctx: Context, params: CommandsListParams) -> CommandsListResult:
    """Return the built-in commands, those of attached clients, and the skills that users may invoke."""
    found = running.available_commands(
        ctx.registry.live(params.session_id),
        builtins=params.include_builtins,
        clients=params.include_client_commands,
        skills=params.include_skills,
    )
    return CommandsListResult(commands=found)


async def invoke(ctx: Context, params: CommandInvokeParams) -> CommandInvokeResult:
    """Run a command now and return its output, or the prompt that the client has to send."""
    session = ctx.registry.live(params.session_id)
    result = await running.invoke(ctx, session, params.name.strip().lstrip("/"), params.input.strip())
    match result:
        case Text():
            return CommandInvokeResult(kind="text", text=result.text, markdown=result.markdown or None)
        case Done():
            return CommandInvokeResult(kind="completed", message=result.message)
        case AgentPrompt():
            shown = result.shown or result.text
            return CommandInvokeResult(
                kind="agent-prompt", prompt=result.text, display_prompt=shown, mode=result.mode
            )
        case Choice():
            options = [
                SubcommandOption(name=option.name, description=option.description) for option in result.options
            ]
            return CommandInvokeResult(
                kind="select-subcommand", command=result.command, title=result.title, options=options
            )


async def execute(ctx: Context, params: CommandExecuteParams) -> CommandExecuteResult:
    """Run a command now. Its output is emitted to all clients; its failure is returned to the caller."""
    session = ctx.registry.live(params.session_id)
    try:
        result = await running.invoke(
            ctx, session, params.command_name.strip().removeprefix("/"), params.args.strip()
        )
    except InvalidRequestError as error:
        return CommandExecuteResult(error=str(error))
    if isinstance(result, AgentPrompt):
        session.send(result.as_prompt())
    elif (shown := shown_text(result)) is not None:
        session.emit(SessionInfo(info_type="command", message=shown))
    return CommandExecuteResult()


def enqueue(ctx: Context, params: CommandEnqueueParams) -> CommandEnqueueResult:
    """Queue a command behind the prompts and commands that were sent before."""
    session = ctx.registry.live(params.session_id)
    text = params.command.strip()
    running.split(text)
    command = QueuedCommand(text, params.display_text or text)
    session.queue.add(command)
    return CommandEnqueueResult(queue_id=command.id)


def handle_pending_command(ctx: Context, params: HandlePendingCommandParams) -> SuccessResult:
    """Record that a client has run its command, or failed to. Succeeds even if the call has ended already."""
    ctx.registry.live(params.session_id).clients.command_calls.answer(params.request_id, params.error)
    return SuccessResult()


def respond_to_queued_command(ctx: Context, params: RespondToQueuedCommandParams) -> SuccessResult:
    """Answer a queued command. Only the first answer counts; others get ``success: false``."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.queued_commands.answer(params.request_id, params.result))
