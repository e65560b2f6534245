"""``session.sendMessages``: send several prompts together."""

from __future__ import annotations

from collections.abc import Awaitable

from jumpseat.agent.observation import trace_of
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.handlers.session.send import after_run, check_attachments, modes, queue
from jumpseat.sessions.context import Context
from jumpseat_protocol.queue import SendMessagesParams, SendMessagesResult


def send_messages(ctx: Context, params: SendMessagesParams) -> SendMessagesResult | Awaitable[SendMessagesResult]:
    """Queue prompts that one run answers together, and answer at once, or when that run has ended."""
    session = ctx.registry.live(params.session_id)
    delivery, agent_mode = modes(params.mode, params.agent_mode)
    prompts = [
        Prompt(
            message.prompt,
            display_text=message.display_prompt,
            attachments=check_attachments(message.attachments or []),
            agent_mode=agent_mode,
            source=message.source,
            headers=params.request_headers,
            trace=trace_of(params.traceparent, params.tracestate),
        )
        for message in params.messages
    ]
    if not prompts:
        return SendMessagesResult(message_ids=[])
    *before, last = prompts
    last.before = before
    last.run.steered_by += [prompt.run for prompt in before]
    queue(session, last, delivery, prepend=params.prepend)
    result = SendMessagesResult(message_ids=[prompt.id for prompt in prompts])
    return after_run(last, result) if params.wait else result
