"""``session.tasks.*``: the sub-agents of a session, and its commands in the background."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from jumpseat.agent.interfaces import BackgroundCommand
from jumpseat.agent.session.session import Session
from jumpseat.agent.subagents.subagent import SubAgent
from jumpseat.agent.subagents.subagents import sub_agents
from jumpseat.agent.subagents.texts import MOST_OF_COMMAND
from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.tasks import (
    CancelTaskResult,
    CurrentTaskResult,
    PromoteResult,
    RemoveTaskResult,
    SendTaskMessageParams,
    SendTaskMessageResult,
    StartAgentParams,
    StartAgentResult,
    TaskInfo,
    TaskListResult,
    TaskParams,
    TaskProgressResult,
)

RECENT_OUTPUT_BYTES: Final = 4096
"""The most bytes of a command's output that its progress shows."""


async def start_agent(ctx: Context, params: StartAgentParams) -> StartAgentResult:
    """Start a sub-agent in the background. The model is told when it is done.

    Raises:
        InvalidRequestError: there is no such type of agent, or a limit is reached.
        JumpseatError: the model is not available.
    """
    session = ctx.registry.live(params.session_id)
    agents = sub_agents(session)
    await agents.check_model(session, params.agent_type, params.model)
    agent = agents.start(
        session,
        params.agent_type,
        params.prompt,
        name=params.name,
        description=params.description or params.name,
        mode="background",
        model=params.model,
    )
    return StartAgentResult(agent_id=agent.id)


def list_tasks(ctx: Context, params: SessionParams) -> TaskListResult:
    """Return the sub-agents of this process, finished ones too, and the commands in the background."""
    session = ctx.registry.live(params.session_id)
    return TaskListResult(tasks=[*_agents(session), *map(_command_info, session.tools.commands())])


def refresh(ctx: Context, params: SessionParams) -> EmptyResult:
    """Do nothing: the list is always up to date."""
    ctx.registry.live(params.session_id)
    return EmptyResult()


async def wait_for_pending(ctx: Context, params: SessionParams) -> EmptyResult:
    """Wait until no sub-agent and no awaited command works, and the model has been told about all."""
    session = ctx.registry.live(params.session_id)
    if session.agents is not None:
        await sub_agents(session).wait_until_settled()
    return EmptyResult()


def get_progress(ctx: Context, params: TaskParams) -> TaskProgressResult:
    """Return the latest tool calls of a sub-agent, or the latest output of a command."""
    session = ctx.registry.live(params.session_id)
    if (agent := _agent(session, params.id)) is not None:
        activity = [{"message": message, "timestamp": timestamp} for message, timestamp in agent.activity]
        return TaskProgressResult(progress={"type": "agent", "recentActivity": activity})
    if (command := _command(session, params.id)) is not None:
        output = session.services.secrets(command.output(RECENT_OUTPUT_BYTES))
        return TaskProgressResult(progress={"type": "shell", "recentOutput": output})
    return TaskProgressResult()


def get_current_promotable(ctx: Context, params: SessionParams) -> CurrentTaskResult:
    """Return the sub-agent that a call waits for."""
    session = ctx.registry.live(params.session_id)
    agent = sub_agents(session).promotable() if session.agents is not None else None
    return CurrentTaskResult(task=None if agent is None else _agent_info(agent))


def promote_current_to_background(ctx: Context, params: SessionParams) -> CurrentTaskResult:
    """Let the call that waits for a sub-agent end, and the agent work on in the background."""
    session = ctx.registry.live(params.session_id)
    agent = sub_agents(session).promotable() if session.agents is not None else None
    if agent is None or not sub_agents(session).move_to_background(agent):
        return CurrentTaskResult()
    return CurrentTaskResult(task=_agent_info(agent))


def promote_to_background(ctx: Context, params: TaskParams) -> PromoteResult:
    """Let the call that waits for a sub-agent end, and the agent work on in the background."""
    session = ctx.registry.live(params.session_id)
    agent = _agent(session, params.id)
    return PromoteResult(promoted=agent is not None and sub_agents(session).move_to_background(agent))


async def cancel(ctx: Context, params: TaskParams) -> CancelTaskResult:
    """End a sub-agent or a command; the model is not told."""
    session = ctx.registry.live(params.session_id)
    if (agent := _agent(session, params.id)) is not None:
        return CancelTaskResult(cancelled=await sub_agents(session).cancel(agent))
    command = _command(session, params.id)
    if command is None or command.finished:
        return CancelTaskResult(cancelled=False)
    command.cancelled = command.reported = True
    await command.stop()
    return CancelTaskResult(cancelled=True)


def remove(ctx: Context, params: TaskParams) -> RemoveTaskResult:
    """Remove a cancelled sub-agent from the list."""
    session = ctx.registry.live(params.session_id)
    agent = _agent(session, params.id)
    return RemoveTaskResult(removed=agent is not None and sub_agents(session).remove(agent))


def send_message(ctx: Context, params: SendTaskMessageParams) -> SendTaskMessageResult:
    """Send a message to a sub-agent; one that works gets it when it has answered."""
    session = ctx.registry.live(params.session_id)
    agent = _agent(session, params.id)
    sender = params.from_agent_id or session.id
    if agent is None or sub_agents(session).send(agent, params.message, sender) is not None:
        return SendTaskMessageResult(sent=False, error="Agent not found or not accepting messages")
    return SendTaskMessageResult(sent=True)


def _agent(session: Session, agent_id: str) -> SubAgent | None:
    return sub_agents(session).find(agent_id) if session.agents is not None else None


def _agents(session: Session) -> Iterator[TaskInfo]:
    if session.agents is not None:
        # Those of an earlier process have no session.
        yield from (_agent_info(agent) for agent in sub_agents(session) if agent.session is not None)


def _command(session: Session, shell_id: str) -> BackgroundCommand | None:
    return next((command for command in session.tools.commands() if command.id == shell_id), None)


def _agent_info(agent: SubAgent) -> TaskInfo:
    return TaskInfo(
        type="agent",
        id=agent.id,
        description=agent.description,
        status=agent.status,
        started_at=agent.started_at,
        execution_mode=agent.mode,
        can_promote_to_background=agent.waited_for and agent.status == "running",
        completed_at=agent.ended_at,
        tool_call_id=agent.call_id,
        display_name=agent.name,
        agent_type=agent.type,
        prompt=agent.exchanges[-1].message if agent.exchanges else "",
        model=agent.requested_model,
        resolved_model=agent.model,
        latest_response=agent.answer or None,
        error=agent.error,
        active_started_at=agent.active_since,
        active_time_ms=int(agent.active_s * 1000),
        idle_since=agent.idle_since,
    )


def _command_info(command: BackgroundCommand) -> TaskInfo:
    ended_s = command.ended_s
    status = "running" if ended_s is None else "cancelled" if command.cancelled else "completed"
    return TaskInfo(
        type="shell",
        id=command.id,
        description=command.description or command.command[:MOST_OF_COMMAND],
        status=status,
        started_at=_ago(command.age_s),
        completed_at=None if ended_s is None else _ago(ended_s),
        execution_mode="background" if command.in_background else "sync",
        can_promote_to_background=False,
        command=command.command,
        attachment_mode="detached" if command.detached else "attached",
    )


def _ago(seconds: float) -> str:
    """Return the time before now by ``seconds``, in ISO 8601."""
    time = datetime.now(UTC) - timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
