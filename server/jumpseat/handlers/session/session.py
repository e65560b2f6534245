"""``session.*`` without a further namespace: the life of a session, its prompts and its events."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Literal, TypeAlias, TypeVar

import orjson

from jumpseat.agent.model_calls.requests import check_choice
from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.observation import trace_of
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, SessionInUseError, SessionNotFoundError, TurnFailedError
from jumpseat.handlers.session.canvas import open_canvases
from jumpseat.sessions.context import Context
from jumpseat.sessions.ending import shut_down_session
from jumpseat.sessions.opening import create_session, resume_session
from jumpseat.sessions.session_fs import delete_session
from jumpseat_protocol.events import (
    AgentMode,
    EventPayload,
    SessionError,
    SessionInfo,
    SessionWarning,
    SystemNotification,
)
from jumpseat_protocol.old_clients import BROADCASTS, readable
from jumpseat_protocol.queue import (
    InterruptParams,
    InterruptResult,
    SendMessagesParams,
    SendMessagesResult,
    SendSystemNotificationParams,
)
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.sessions import (
    Capabilities,
    ForegroundResult,
    SessionAbortParams,
    SessionCreateParams,
    SessionGetMetadataResult,
    SessionIdResult,
    SessionListParams,
    SessionListResult,
    SessionOpenedResult,
    SessionParams,
    SessionResumeParams,
    SessionSendAndWaitResult,
    SessionSendParams,
    SessionSendResult,
    UiCapabilities,
)
from jumpseat_protocol.state import LogParams, LogResult, ShutdownParams
from jumpseat_protocol.wire import Encoded


async def create(ctx: Context, params: SessionCreateParams) -> SessionOpenedResult:
    """Create a session. ``session.created`` and ``session.start`` precede the response."""
    return opened_result(ctx, await create_session(ctx, params))


def opened_result(ctx: Context, session: Session) -> SessionOpenedResult:
    """Return the result of ``session.create`` and ``session.resume``."""
    return SessionOpenedResult(
        session_id=session.id,
        workspace_path=ctx.registry.storage(session).shown_path,
        start_time=session.started_at,
        mode=session.settings.mode,
        capabilities=Capabilities(
            ui=UiCapabilities(
                elicitation=session.clients.can_elicit(),
                mcp_apps=session.settings.options.request_mcp_apps,
                canvases=session.clients.can_render_canvases(),
            )
        ),
    )


async def resume(ctx: Context, params: SessionResumeParams) -> SessionOpenedResult:
    """Attach this connection to a session. Options in ``params`` replace those of the session."""
    session = await resume_session(ctx, params)
    result = opened_result(ctx, session)
    if session.canvases.provided():
        result.open_canvases = open_canvases(session)
    return result


R = TypeVar("R")
SendMode: TypeAlias = Literal["enqueue", "immediate", "interactive", "plan", "autopilot"]


def send(ctx: Context, params: SessionSendParams) -> SessionSendResult | Awaitable[SessionSendResult]:
    """Queue a prompt and answer at once, or when its run has ended. Its progress arrives as events."""
    prompt = _send(ctx, params)
    result = SessionSendResult(message_id=prompt.id)
    return after_run(prompt, result) if params.wait else result


def send_and_wait(ctx: Context, params: SessionSendParams) -> Awaitable[SessionSendAndWaitResult]:
    """Queue a prompt at once, in the order of arrival, and answer when its run ends."""
    return _run_result(_send(ctx, params))


async def after_run(prompt: Prompt, result: R) -> R:
    """Return ``result`` when the run of ``prompt`` has ended."""
    await prompt.run.done.wait()
    return result


async def _run_result(prompt: Prompt) -> SessionSendAndWaitResult:
    """Wait for the end of a prompt's run and return its result.

    Raises:
        TurnFailedError: the run ended with ``session.error``.
    """
    run = prompt.run
    await run.done.wait()
    if run.error is not None and isinstance(run.error.payload, SessionError):
        raise TurnFailedError(run.error.payload.message, completion_event_id=run.error.id)
    return SessionSendAndWaitResult(
        message_id=prompt.id,
        aborted=run.aborted,
        completion_event_id=run.idle.id if run.idle else None,
        response=run.answer.wire() if run.answer and not run.aborted else None,
    )


def _send(ctx: Context, params: SessionSendParams) -> Prompt:
    session = ctx.registry.live(params.session_id)
    if params.tool_choice is not None:
        check_choice(params.tool_choice, session.tools.names)
    check_format(params.response_format)
    if params.adapter_settings:
        merged = {**session.settings.options.adapter_settings, **params.adapter_settings}
        ctx.models.check_adapter_settings(session.settings.with_options(adapter_settings=merged))
    delivery, agent_mode = modes(params.mode, params.agent_mode)
    prompt = Prompt(
        params.prompt,
        display_text=params.display_prompt,
        attachments=check_attachments(params.attachments or []),
        agent_mode=agent_mode,
        shows_mode=params.agent_mode is not None or agent_mode is None,
        source=params.source,
        required_tool=params.required_tool,
        billable=params.billable,
        headers=params.request_headers,
        tool_choice=params.tool_choice,
        hosted_tools=params.hosted_tools,
        response_format=params.response_format,
        adapter_settings=params.adapter_settings,
        trace=trace_of(params.traceparent, params.tracestate),
    )
    queue(session, prompt, delivery, prepend=params.prepend)
    return prompt


def modes(mode: SendMode, agent_mode: AgentMode | None) -> tuple[Literal["enqueue", "immediate"], AgentMode | None]:
    """Return how to deliver a prompt, and its agent mode: ``mode`` can name either."""
    if mode in ("enqueue", "immediate"):
        return mode, agent_mode
    return "enqueue", agent_mode or mode


def queue(session: Session, prompt: Prompt, delivery: Literal["enqueue", "immediate"], *, prepend: bool) -> None:
    if prepend and delivery == "enqueue":
        session.queue.add_next(prompt)
    else:
        session.send(prompt, delivery)


def check_attachments(attachments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the attachments unchanged.

    Raises:
        InvalidRequestError: one lacks a required field of its type. The provider would reject the conversation.
    """
    if attachments:
        # Loaded late: most prompts have no attachments.
        from jumpseat_protocol.attachments import problem_of

        for place, attachment in enumerate(attachments):
            if (problem := problem_of(attachment)) is not None:
                raise InvalidRequestError(f"attachments.{place}.{problem}")
    return attachments


def send_messages(ctx: Context, params: SendMessagesParams) -> SendMessagesResult | Awaitable[SendMessagesResult]:
    """Queue prompts that one run answers together, and answer at once, or when that run has ended."""
    session = ctx.registry.live(params.session_id)
    check_format(params.response_format)
    delivery, agent_mode = modes(params.mode, params.agent_mode)
    prompts = [
        Prompt(
            message.prompt,
            display_text=message.display_prompt,
            attachments=check_attachments(message.attachments or []),
            agent_mode=agent_mode,
            shows_mode=params.agent_mode is not None or agent_mode is None,
            source=message.source,
            required_tool=message.required_tool,
            billable=message.billable,
            headers=params.request_headers,
            response_format=params.response_format,
            trace=trace_of(params.traceparent, params.tracestate),
        )
        for message in params.messages
    ]
    if not prompts:
        return SendMessagesResult(message_ids=[])
    *before, last = prompts
    last.before = before
    last.billable = any(prompt.billable for prompt in prompts)
    last.run.steered_by += [prompt.run for prompt in before]
    queue(session, last, delivery, prepend=params.prepend)
    result = SendMessagesResult(message_ids=[prompt.id for prompt in prompts])
    return after_run(last, result) if params.wait else result


def send_system_notification(ctx: Context, params: SendSystemNotificationParams) -> None:
    """Tell the model something that no user wrote; it answers at once, or in the running turn."""
    text = f"<system_notification>\n{params.message}\n</system_notification>"
    notification = None
    if params.kind is not None:
        notification = SystemNotification(content=text, kind=params.kind.wire())
    prompt = Prompt(text, source="system", notification=notification)
    ctx.registry.live(params.session_id).send(prompt, "immediate")


def abort(ctx: Context, params: SessionAbortParams) -> Awaitable[SuccessResult]:
    """Stop the running prompt and drop the queued ones. Prompts that arrive after the request are not affected.

    The response is sent when the session is idle. Aborting an idle session succeeds.
    """
    session = ctx.registry.live(params.session_id)
    session.report_interruption()
    return _success(session.abort(params.reason or "user_initiated"))


async def _success(stopped: Awaitable[None]) -> SuccessResult:
    await stopped
    return SuccessResult()


async def interrupt_main_turn(ctx: Context, params: InterruptParams) -> InterruptResult:
    """Stop the running prompt or command, and answer when it has ended."""
    session = ctx.registry.live(params.session_id)
    stopped = session.interrupt(flush=params.flush_queued)
    if stopped is None:
        return InterruptResult(interrupted=False)
    session.emit(SessionInfo(info_type="cancellation", message="Operation cancelled by user"), ephemeral=True)
    await stopped
    return InterruptResult(interrupted=True)


async def detach(ctx: Context, params: SessionParams) -> SuccessResult:
    """Detach this connection from a session, whose files stay. Succeeds for unknown ids: SDKs call it twice."""
    await ctx.registry.detach_and_close(params.session_id, ctx.connection)
    return SuccessResult()


async def delete(ctx: Context, params: SessionParams) -> SuccessResult:
    """Delete a live or stored session. An unknown session gets ``success: false``, not an error.

    So does a session that another process has open."""
    try:
        await delete_session(ctx, params.session_id)
    except (SessionInUseError, SessionNotFoundError) as error:
        return SuccessResult(success=False, error=str(error))
    return SuccessResult()


async def list_(ctx: Context, params: SessionListParams) -> Encoded[SessionListResult]:
    await ctx.registry.prepare_list()
    return Encoded((b'{"sessions":', *ctx.registry.list_json(params.filter), b"}"))


def get_metadata(ctx: Context, params: SessionParams) -> SessionGetMetadataResult:
    """Return the list entry of a stored session; no ``session`` if the id is unknown."""
    return SessionGetMetadataResult(session=ctx.registry.metadata(params.session_id))


def get_last_id(ctx: Context, params: EmptyParams) -> SessionIdResult:
    """Return the id of the session that changed last; no id if there are no sessions."""
    return SessionIdResult(session_id=ctx.registry.store.last_id())


def get_messages(ctx: Context, params: SessionParams) -> Encoded[dict[str, Any]]:
    """Return the persisted events in order, from ``session.start`` on, in the form in which they were sent."""
    session = ctx.registry.live(params.session_id)
    secrets, records = ctx.process.secrets, ctx.registry.storage(session).log.read().records
    if not secrets and ctx.connection.protocol != 2:
        return Encoded((b'{"events":[', *records.json(), b"]}"))
    masked = secrets.mask_records(records)
    if ctx.connection.protocol == 2:
        masked = [readable(record) for record in masked if record["type"] not in BROADCASTS]
    return Encoded((orjson.dumps({"events": masked}),))


def get_foreground(ctx: Context, params: EmptyParams) -> ForegroundResult:
    """Return no session."""
    return ForegroundResult()


def set_foreground(ctx: Context, params: SessionParams) -> SuccessResult:
    """Refuse, with the message that the SDKs look for."""
    return SuccessResult(success=False, error="Not running in TUI+server mode")


def log(ctx: Context, params: LogParams) -> LogResult:
    """Emit a message as an event of its level.

    A message of level ``error`` does not end the run, but SDKs that wait for the run stop waiting.
    """
    session = ctx.registry.live(params.session_id)
    payload: EventPayload
    match params.level:
        case "info":
            payload = SessionInfo(info_type=params.type, message=params.message, url=params.url, tip=params.tip)
        case "warning":
            payload = SessionWarning(warning_type=params.type, message=params.message, url=params.url)
        case "error":
            payload = SessionError(error_type=params.type, message=params.message, url=params.url)
    return LogResult(event_id=session.emit(payload, ephemeral=params.ephemeral).id)


async def shutdown(ctx: Context, params: ShutdownParams) -> None:
    """Stop the session's work, emit its usage and close it. It can be resumed from the disk."""
    session = ctx.registry.live(params.session_id)
    await shut_down_session(ctx.registry, session, params.type, params.reason)


async def suspend(ctx: Context, params: SessionParams) -> None:
    """Stop the running prompt, withdraw open questions to clients, and flush the log to disk."""
    session = ctx.registry.live(params.session_id)
    await session.abort("user_initiated")
    session.flush()


async def cancel_all_background_agents(ctx: Context, params: SessionParams) -> int:
    """End all sub-agents in the background, and return how many worked."""
    # Most sessions have no sub-agents.
    from jumpseat.agent.subagents.subagents import sub_agents

    session = ctx.registry.live(params.session_id)
    return await sub_agents(session).cancel_all() if session.agents is not None else 0
