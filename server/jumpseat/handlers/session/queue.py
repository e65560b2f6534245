"""``session.queue.*``: the queued prompts and commands of a session."""

from __future__ import annotations

from jumpseat.agent.session.queue import Prompt, QueueItem
from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import QueueItemsResult, RemovedResult


def pending_items(ctx: Context, params: SessionParams) -> QueueItemsResult:
    """Return the queued items, and the steering messages for the running prompt."""
    waiting, steering = ctx.registry.live(params.session_id).queue.waiting()
    return QueueItemsResult(
        items=[_item_to_wire(item) for item in waiting],
        steering_messages=[prompt.text for prompt in steering],
    )


def _item_to_wire(item: QueueItem) -> dict[str, str]:
    if isinstance(item, Prompt):
        mode = item.agent_mode or "interactive"
        return {"id": item.id, "kind": "message", "displayText": item.text, "agentMode": mode}
    return {"id": item.id, "kind": "command", "displayText": item.display_text, "agentMode": "interactive"}


def remove_most_recent(ctx: Context, params: SessionParams) -> RemovedResult:
    """Remove the item that was queued last."""
    return RemovedResult(removed=ctx.registry.live(params.session_id).queue.remove_latest())


def clear(ctx: Context, params: SessionParams) -> None:
    """Remove all queued items. The running prompt continues."""
    ctx.registry.live(params.session_id).queue.clear_waiting()
