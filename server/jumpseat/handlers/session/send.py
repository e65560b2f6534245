"""``session.send`` and ``sendAndWait``: send a prompt."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Literal, TypeAlias, TypeVar

from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.model_calls.tool_choice import check_choice
from jumpseat.agent.observation import trace_of
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError, TurnFailedError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import AgentMode, SessionError
from jumpseat_protocol.sessions import SessionSendAndWaitResult, SessionSendParams, SessionSendResult

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
        source=params.source,
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
