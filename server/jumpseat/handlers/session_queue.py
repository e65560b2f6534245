"""``session.queue.*``: the prompts that wait for their turn."""

from __future__ import annotations

from jumpseat.handlers.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import QueueItemsResult, RemovedResult


def pending_items(ctx: Context, params: SessionParams) -> QueueItemsResult:
    """What waits, and what will be slipped into the prompt that runs."""
    waiting, steering = ctx.registry.live(params.session_id).waiting()
    return QueueItemsResult(
        items=[
            {
                "id": prompt.id,
                "kind": "message",
                "displayText": prompt.text,
                "agentMode": prompt.agent_mode or "interactive",
            }
            for prompt in waiting
        ],
        steering_messages=[prompt.text for prompt in steering],
    )


def remove_most_recent(ctx: Context, params: SessionParams) -> RemovedResult:
    """Forget the prompt that was queued last."""
    return RemovedResult(removed=ctx.registry.live(params.session_id).forget_latest())


def clear(ctx: Context, params: SessionParams) -> None:
    """Forget all that wait; the one that runs goes on."""
    ctx.registry.live(params.session_id).forget_waiting()
