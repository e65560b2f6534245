"""``session.queue.*``: the queued prompts and commands of a session."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.session.queue_items import Prompt, QueuedCommand, QueueItem
from jumpseat.commands import running
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers.session.session import check_attachments
from jumpseat.sessions.context import Context
from jumpseat_protocol.queue import (
    AppendSteeringParams,
    ChangedResult,
    HasPendingResult,
    InsertAtParams,
    MoveItemParams,
    QueueItemParams,
    QueueItemResult,
    QueueItemsResult,
    QueueSnapshotResult,
    RemovedResult,
    SendNowResult,
    SetDrainPausedParams,
    UpdatedResult,
    UpdateTextParams,
    WithdrawMessageParams,
    WithdrawMessageResult,
)
from jumpseat_protocol.sessions import SessionParams


def pending_items(ctx: Context, params: SessionParams) -> QueueItemsResult:
    """Return the queued items, and the steering messages for the running prompt."""
    waiting, steering = ctx.registry.live(params.session_id).queue.waiting()
    return QueueItemsResult(
        items=[row for item in waiting for row in _rows(item)],
        steering_messages=[prompt.shown for prompt in steering],
    )


def snapshot(ctx: Context, params: SessionParams) -> QueueSnapshotResult:
    """Return the queued items and steering messages with the numbers of the order in which they were added."""
    waiting, steering = ctx.registry.live(params.session_id).queue.waiting()
    rows = [(row, item.order) for item in waiting for row in _rows(item)]
    return QueueSnapshotResult(
        items=[row for row, _ in rows],
        item_orders=[order for _, order in rows] or None,
        steering_messages=[prompt.shown for prompt in steering],
        steering_message_orders=[prompt.order for prompt in steering] or None,
    )


def _rows(item: QueueItem) -> list[dict[str, Any]]:
    """Return the rows of an item: one for each of the prompts that were sent together."""
    if isinstance(item, QueuedCommand):
        return [{"id": item.id, "kind": "command", "displayText": item.display_text, "agentMode": "interactive"}]
    return [
        {
            "id": item.id,
            "kind": "message",
            "displayText": prompt.shown,
            "agentMode": item.agent_mode or "interactive",
            "messageId": prompt.id,
            **({} if prompt.source is None else {"source": prompt.source}),
        }
        for prompt in (*item.before, item)
    ]


def has_pending(ctx: Context, params: SessionParams) -> HasPendingResult:
    """Return whether items or steering messages wait."""
    waiting, steering = ctx.registry.live(params.session_id).queue.waiting()
    return HasPendingResult(has_pending=bool(waiting or steering))


def move_item(ctx: Context, params: MoveItemParams) -> ChangedResult:
    """Move an item to another position."""
    queue = ctx.registry.live(params.session_id).queue
    return ChangedResult(changed=queue.move(queue.find(params.id), params.to_position))


def insert_at(ctx: Context, params: InsertAtParams) -> QueueItemResult:
    """Insert a prompt at a position. It runs at once if the session is idle and the queue is not paused."""
    message = params.message
    if message.source == "system":
        raise InvalidRequestError("message.source 'system' is not allowed: expected a source that users can see")
    prompt = Prompt(
        message.prompt,
        display_text=message.display_prompt,
        attachments=check_attachments(message.attachments or []),
        agent_mode=message.agent_mode,
        source=message.source,
        required_tool=message.required_tool,
        billable=message.billable,
        headers=message.request_headers,
    )
    ctx.registry.live(params.session_id).queue.insert(params.position, prompt)
    return QueueItemResult(id=prompt.id)


def duplicate_at(ctx: Context, params: QueueItemParams) -> QueueItemResult:
    """Queue a copy of an item directly behind it."""
    queue = ctx.registry.live(params.session_id).queue
    return QueueItemResult(id=queue.duplicate(queue.find(params.id)).id)


def update_text(ctx: Context, params: UpdateTextParams) -> UpdatedResult:
    """Replace the text of an item, and the text that is shown to users."""
    queue = ctx.registry.live(params.session_id).queue
    item = queue.find(params.id)
    if isinstance(item, QueuedCommand):
        item.text = params.prompt.strip()
        running.split(item.text)
        item.display_text = params.display_prompt or item.text
    else:
        item.text, item.display_text = params.prompt, params.display_prompt
    queue.changed()
    return UpdatedResult(updated=True)


def append_steering(ctx: Context, params: AppendSteeringParams) -> UpdatedResult:
    """Append to a steering message that still waits and has not been changed."""
    queue = ctx.registry.live(params.session_id).queue
    attachments = check_attachments(params.attachments or [])
    _, steering = queue.waiting()
    found = next((prompt for prompt in steering if prompt.id == params.message_id), None)
    if found is None or found.text != params.expected_prompt:
        return UpdatedResult(updated=False)
    if (params.agent_mode or "interactive") != (found.agent_mode or "interactive"):
        return UpdatedResult(updated=False)
    shown = f"{found.shown}\n\n{params.display_prompt or params.prompt}"
    found.text = f"{found.text}\n\n{params.prompt}"
    found.display_text = None if shown == found.text else shown
    found.attachments = [*found.attachments, *attachments]
    queue.changed()
    return UpdatedResult(updated=True)


async def withdraw_message(ctx: Context, params: WithdrawMessageParams) -> WithdrawMessageResult:
    """Take a prompt out of the queue, or stop it if it runs; its messages stay in the conversation then."""
    queue = ctx.registry.live(params.session_id).queue
    waiting, steering = queue.waiting()
    running = queue.prompt
    for prompt in (*waiting, *steering, *([] if running is None else [running])):
        if prompt.id != params.message_id or prompt.text != params.expected_prompt:
            continue
        if isinstance(prompt, Prompt):
            await queue.withdraw(prompt)
            return WithdrawMessageResult(interrupted=prompt is running, removed=prompt is not running)
    return WithdrawMessageResult(interrupted=False, removed=False)


def remove_at(ctx: Context, params: QueueItemParams) -> RemovedResult:
    """Remove an item."""
    queue = ctx.registry.live(params.session_id).queue
    queue.remove(queue.find(params.id))
    return RemovedResult(removed=True)


def remove_most_recent(ctx: Context, params: SessionParams) -> RemovedResult:
    return RemovedResult(removed=ctx.registry.live(params.session_id).queue.remove_latest())


def clear(ctx: Context, params: SessionParams) -> None:
    """Remove all queued items. The running prompt continues."""
    ctx.registry.live(params.session_id).queue.clear_waiting()


def send_now(ctx: Context, params: QueueItemParams) -> SendNowResult:
    """Steer the running prompt with a queued one, or run an item next. Running commands move to the background."""
    session = ctx.registry.live(params.session_id)
    steered = session.queue.send_now(session.queue.find(params.id))
    if steered:
        session.tools.move_commands_to_background()
    return SendNowResult(steered=steered)


def set_drain_paused(ctx: Context, params: SetDrainPausedParams) -> None:
    """Let queued items wait, also in an idle session, or let them run again."""
    ctx.registry.live(params.session_id).queue.paused = params.paused


def process(ctx: Context, params: SessionParams) -> None:
    """Start a run if the session is idle and an item may run."""
    ctx.registry.live(params.session_id).queue.start_waiting()
