"""``session.send`` and ``session.sendAndWait``: send a prompt."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.model_calls.tool_choice import check_choice
from jumpseat.agent.observation import trace_of
from jumpseat.agent.session.queue import Prompt
from jumpseat.errors import InvalidRequestError, TurnFailedError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionError
from jumpseat_protocol.sessions import SessionSendAndWaitResult, SessionSendParams, SessionSendResult


def send(ctx: Context, params: SessionSendParams) -> SessionSendResult:
    """Queue a prompt and answer at once. Its progress arrives as events."""
    return SessionSendResult(message_id=_send(ctx, params).id)


def send_and_wait(ctx: Context, params: SessionSendParams) -> Awaitable[SessionSendAndWaitResult]:
    """Queue a prompt at once, in the order of arrival, and answer when its run ends."""
    return _run_result(_send(ctx, params))


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
        check_choice(params.tool_choice, session.tools.names())
    check_format(params.response_format)
    if params.adapter_settings:
        merged = {**session.settings.adapter_settings, **params.adapter_settings}
        ctx.models.check_adapter_settings(replace(session.settings, adapter_settings=merged))
    prompt = Prompt(
        params.prompt,
        attachments=_check_attachments(params.attachments or []),
        agent_mode=params.agent_mode,
        headers=params.request_headers,
        tool_choice=params.tool_choice,
        hosted_tools=params.hosted_tools,
        response_format=params.response_format,
        adapter_settings=params.adapter_settings,
        trace=trace_of(params.traceparent, params.tracestate),
    )
    session.send(prompt, params.mode)
    return prompt


def _check_attachments(attachments: list[dict[str, Any]]) -> list[dict[str, Any]]:
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
