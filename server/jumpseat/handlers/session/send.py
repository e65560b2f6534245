"""``session.send`` and ``session.sendAndWait``: a prompt for a session."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from jumpseat.agent.model_calls.structured import check_format
from jumpseat.agent.model_calls.tool_choice import check_choice
from jumpseat.agent.session.queue import Prompt
from jumpseat.errors import InvalidRequestError, TurnFailedError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionError
from jumpseat_protocol.sessions import SessionSendAndWaitResult, SessionSendParams, SessionSendResult


def send(ctx: Context, params: SessionSendParams) -> SessionSendResult:
    """Queue a prompt and answer at once; what comes of it arrives as events."""
    return SessionSendResult(message_id=_send(ctx, params).id)


def send_and_wait(ctx: Context, params: SessionSendParams) -> Awaitable[SessionSendAndWaitResult]:
    """Queue a prompt at once, in the order of arrival, and answer when its run has ended."""
    return _answer(_send(ctx, params))


async def _answer(prompt: Prompt) -> SessionSendAndWaitResult:
    """What became of ``prompt``.

    Raises:
        TurnFailedError: its run ended in a ``session.error``.
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
        wanted = {**session.settings.adapter_settings, **params.adapter_settings}
        ctx.models.check_adapter_settings(replace(session.settings, adapter_settings=wanted))
    prompt = Prompt(
        params.prompt,
        attachments=_checked(params.attachments or []),
        agent_mode=params.agent_mode,
        headers=params.request_headers,
        tool_choice=params.tool_choice,
        hosted_tools=params.hosted_tools,
        response_format=params.response_format,
        adapter_settings=params.adapter_settings,
    )
    session.send(prompt, params.mode)
    return prompt


def _checked(attachments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The attachments as they came.

    Raises:
        InvalidRequestError: one lacks what its kind must have: it would be lost, or spoil the conversation.
    """
    if attachments:
        # Most prompts have none.
        from jumpseat_protocol.attachments import problem_of

        for place, attachment in enumerate(attachments):
            if (problem := problem_of(attachment)) is not None:
                raise InvalidRequestError(f"attachments.{place}.{problem}")
    return attachments
