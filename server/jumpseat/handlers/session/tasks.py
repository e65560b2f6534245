"""``session.tasks.*``: the sub-agents of a session, its commands in the background, and tasks of clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anyio

from jumpseat.agent.interfaces import BackgroundCommand, CommandOutput
from jumpseat.agent.session.client_tasks import ClientTask, ClientTasks
from jumpseat.agent.session.session import Session
from jumpseat.agent.subagents.subagent import SubAgent
from jumpseat.agent.subagents.subagents import sub_agents
from jumpseat.agent.subagents.texts import MOST_OF_COMMAND
from jumpseat.errors import InvalidRequestError, UnknownItemError
from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.tasks import (
    CancelTaskResult,
    ClientTaskInfo,
    ClientTaskOwner,
    CurrentTaskResult,
    OutputExit,
    PromoteResult,
    ReadOutputParams,
    ReadOutputResult,
    RegisterTaskParams,
    RegisterTaskResult,
    RemoveTaskResult,
    SendTaskMessageParams,
    SendTaskMessageResult,
    StartAgentParams,
    StartAgentResult,
    TaskInfo,
    TaskListResult,
    TaskParams,
    TaskProgressResult,
    UpdateTaskParams,
    UpdateTaskResult,
)

READ_BYTES: Final = 64 * 1024
"""The most bytes of a command's output that one read returns."""

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


def list_(ctx: Context, params: SessionParams) -> TaskListResult:
    """Return the sub-agents of this process, finished ones too, commands in the background, and clients' tasks."""
    session = ctx.registry.live(params.session_id)
    of_clients = map(_client_task_info, session.client_tasks or ())
    return TaskListResult(tasks=[*_agents(session), *map(_command_info, session.tools.commands()), *of_clients])


def register(ctx: Context, params: RegisterTaskParams) -> RegisterTaskResult:
    """List a task that the calling client carries out; a task that it has registered before is returned.

    Raises:
        InvalidRequestError: the client is not attached to the session, the task has another sequence number than
            expected, or too many tasks are active.
    """
    session = ctx.registry.live(params.session_id)
    attachment = session.clients.get(ctx.connection)
    if attachment is None:
        raise InvalidRequestError("this client is not attached to the session: resume it first")
    if session.client_tasks is None:
        session.client_tasks = ClientTasks(session.id, session.clients, session.emit)
    task, created = session.client_tasks.register(attachment, params)
    return RegisterTaskResult(task=_client_task_info(task), created=created)


def update(ctx: Context, params: UpdateTaskParams) -> UpdateTaskResult:
    """Change a task that the calling client has registered.

    Raises:
        UnknownItemError: the client has no such task.
        InvalidRequestError: the update is older than the latest one, or the task has ended.
    """
    tasks = ctx.registry.live(params.session_id).client_tasks
    if tasks is None:
        raise UnknownItemError("client task", params.id)
    task, applied = tasks.update(ctx.connection, params.id, params.sequence, params.update)
    return UpdateTaskResult(task=_client_task_info(task), applied=applied, duplicate=not applied)


async def read_output(ctx: Context, params: ReadOutputParams) -> ReadOutputResult:
    """Return the output of a command after a cursor; wait for it, for a limited time, if there is none yet.

    Raises:
        UnknownItemError: there is no such command.
        InvalidRequestError: the cursor is invalid, or the output there is not kept any more.
    """
    session = ctx.registry.live(params.session_id)
    command = _command(session, params.id)
    if command is None:
        raise UnknownItemError("shell task", params.id)
    start = _offset(params.cursor)
    found = command.output_from(start, READ_BYTES)
    result = None if found is None else _masked(session, command, found)
    if found is not None and result is not None and not result.text and result.exit is None and params.wait_ms:
        with anyio.move_on_after(params.wait_ms / 1000):
            await command.news(found.end)
        found = command.output_from(start, READ_BYTES)
        result = None if found is None else _masked(session, command, found)
    if result is None:
        raise InvalidRequestError("the output at the cursor is not kept any more: read again without a cursor")
    return result


def _masked(session: Session, command: BackgroundCommand, output: CommandOutput) -> ReadOutputResult:
    """Mask the secrets in a part of a command's output; one that may begin at its end is left for the next read."""
    secrets = session.services.secrets
    if output.is_last:
        ended = OutputExit(status="cancelled" if command.cancelled else "completed", exit_code=command.exit_code)
        return ReadOutputResult(cursor=str(output.end), text=secrets(output.text), exit=ended)
    text, rest = secrets.split(output.text)
    return ReadOutputResult(cursor=str(output.end - len(rest.encode())), text=text)


def _offset(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 20):
        raise InvalidRequestError(f"invalid cursor {cursor[:100]!r}: expected that of an earlier read")
    return int(cursor)


def refresh(ctx: Context, params: SessionParams) -> EmptyResult:
    ctx.registry.live(params.session_id)
    return EmptyResult()


async def wait_for_pending(ctx: Context, params: SessionParams) -> EmptyResult:
    """Wait until no sub-agent and no awaited command works, and the model has been told about all."""
    session = ctx.registry.live(params.session_id)
    if session.agents is not None:
        await sub_agents(session).wait_until_settled()
    return EmptyResult()


def get_progress(ctx: Context, params: TaskParams) -> TaskProgressResult:
    """Return the latest tool calls of a sub-agent, the latest output of a command, or the latest updates."""
    session = ctx.registry.live(params.session_id)
    if (agent := _agent(session, params.id)) is not None:
        activity = [{"message": message, "timestamp": timestamp} for message, timestamp in agent.activity]
        return TaskProgressResult(progress={"type": "agent", "recentActivity": activity})
    if (command := _command(session, params.id)) is not None:
        output = session.services.secrets(command.output(RECENT_OUTPUT_BYTES))
        pid = {} if command.pid is None else {"pid": command.pid}
        return TaskProgressResult(progress={"type": "shell", "recentOutput": output, **pid})
    if (task := _client_task(session, params.id)) is not None:
        return TaskProgressResult(progress=_client_task_progress(task))
    return TaskProgressResult()


def get_current_promotable(ctx: Context, params: SessionParams) -> CurrentTaskResult:
    session = ctx.registry.live(params.session_id)
    agent = sub_agents(session).promotable() if session.agents is not None else None
    return CurrentTaskResult(task=None if agent is None else _agent_info(agent))


def promote_current_to_background(ctx: Context, params: SessionParams) -> CurrentTaskResult:
    session = ctx.registry.live(params.session_id)
    agent = sub_agents(session).promotable() if session.agents is not None else None
    if agent is None or not sub_agents(session).move_to_background(agent):
        return CurrentTaskResult()
    return CurrentTaskResult(task=_agent_info(agent))


def promote_to_background(ctx: Context, params: TaskParams) -> PromoteResult:
    session = ctx.registry.live(params.session_id)
    agent = _agent(session, params.id)
    return PromoteResult(promoted=agent is not None and sub_agents(session).move_to_background(agent))


async def cancel(ctx: Context, params: TaskParams) -> CancelTaskResult:
    """End a sub-agent or a command, of which the model is not told, or ask a client to end its own task."""
    session = ctx.registry.live(params.session_id)
    if session.client_tasks is not None and (task := session.client_tasks.find(params.id)) is not None:
        return CancelTaskResult(cancelled=await session.client_tasks.cancel(task))
    if (agent := _agent(session, params.id)) is not None:
        return CancelTaskResult(cancelled=await sub_agents(session).cancel(agent))
    command = _command(session, params.id)
    if command is None or command.finished:
        return CancelTaskResult(cancelled=False)
    command.cancelled = command.reported = True
    await command.stop()
    return CancelTaskResult(cancelled=True)


def remove(ctx: Context, params: TaskParams) -> RemoveTaskResult:
    """Remove a cancelled sub-agent, or a task of a client that has ended, from the list."""
    session = ctx.registry.live(params.session_id)
    if session.client_tasks is not None and (task := session.client_tasks.find(params.id)) is not None:
        return RemoveTaskResult(removed=session.client_tasks.remove(task))
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


def _client_task(session: Session, task_id: str) -> ClientTask | None:
    return None if session.client_tasks is None else session.client_tasks.find(task_id)


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
        pid=command.pid,
    )


def _client_task_info(task: ClientTask) -> ClientTaskInfo:
    return ClientTaskInfo(
        id=task.id,
        client_task_id=task.key,
        display_name=task.name,
        description=task.description,
        status=task.status,
        owner=ClientTaskOwner(
            participant_id=task.owner_id,
            join_id=task.join_id,
            presence="connected" if task.connected else "disconnected",
            disconnected_at=task.left_at,
        ),
        started_at=task.started_at,
        updated_at=task.updated_at,
        completed_at=task.completed_at,
        active_time_ms=int(task.elapsed_s(anyio.current_time()) * 1000),
        active_started_at=task.active_since,
        idle_since=task.idle_since,
        orphaned_at=task.left_at if task.status == "orphaned" else None,
        can_cancel=task.cancellable and task.connected and task.active,
        sequence=task.sequence,
        result=task.result,
        error=task.error,
        error_code=task.error_code,
        cancellation_reason=task.cancellation_reason,
    )


def _client_task_progress(task: ClientTask) -> dict[str, Any]:
    known = {
        "phase": task.phase,
        "percentage": task.percentage,
        "lastMessage": task.activity[-1][0] if task.activity else None,
    }
    return {
        "type": "client",
        "status": task.status,
        "sequence": task.sequence,
        "updatedAt": task.updated_at,
        **{name: value for name, value in known.items() if value is not None},
        "recentActivity": [{"message": message, "timestamp": timestamp} for message, timestamp in task.activity],
    }


def _ago(seconds: float) -> str:
    """Return the time before now by ``seconds``, in ISO 8601."""
    time = datetime.now(UTC) - timedelta(seconds=seconds)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
