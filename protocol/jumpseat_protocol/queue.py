"""``session.queue.*``: the queued prompts and commands; and the other ways to send prompts, and to stop one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, StrictBool

from jumpseat_protocol.events import AgentMode
from jumpseat_protocol.sessions import Headers, ResponseFormatConfig, SessionParams
from jumpseat_protocol.wire import Later, Method, WireModel

Source: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
"""Names where a prompt comes from that no user wrote."""


class QueueItemsResult(WireModel):
    """``items``: ``{id, kind, displayText, agentMode, messageId?, source?}`` each, in the order of their runs.

    Messages that were sent together have one id.
    """

    items: list[dict[str, Any]]
    """The prompts and commands that wait, in the order of their runs."""
    steering_messages: list[str]
    """The messages that wait for the running turn."""
    in_flight_steering_count: int = 0
    """How many steering messages the running model call has."""


class QueueSnapshotResult(WireModel):
    """The orders are the numbers of the items in the order in which they were added, left out without items."""

    items: list[dict[str, Any]]
    """The prompts and commands that wait, in the order of their runs."""
    steering_messages: list[str]
    """The messages that wait for the running turn."""
    item_orders: list[int] | None = None
    """The place of each item among all that were added."""
    steering_message_orders: list[int] | None = None
    """The place of each steering message among all that were added."""


class HasPendingResult(WireModel):
    has_pending: StrictBool
    """Whether anything waits."""


class QueueItemParams(WireModel):
    session_id: str
    id: str
    """The id of the item."""


class MoveItemParams(WireModel):
    """``to_position`` counts from 0; a position beyond the end is the end."""

    session_id: str
    id: str
    """The id of the item."""
    to_position: int
    """The new position, counted from 0."""


class ChangedResult(WireModel):
    changed: StrictBool
    """Whether anything changed."""


class InsertMessage(WireModel):
    """A prompt to insert. Its ``source`` is not ``system``."""

    prompt: str
    """The text of the prompt."""
    display_prompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    agent_mode: AgentMode | None = None
    """The mode to run it in."""
    source: Source | None = None
    """Where the prompt comes from, if not from a person."""
    required_tool: str | None = None
    """A tool that the model must call."""
    billable: StrictBool = True
    """Whether a Copilot plan counts it as a request."""
    request_headers: Headers = Field(default_factory=dict, repr=False)
    """Headers for the model calls of this prompt."""


class InsertAtParams(WireModel):
    """``position`` counts from 0; a position beyond the end is the end, a negative one the front."""

    session_id: str
    position: int
    """The position, counted from 0."""
    message: InsertMessage
    """The prompt."""


class QueueItemResult(WireModel):
    id: str
    """The id of the item."""


class UpdateTextParams(WireModel):
    session_id: str
    id: str
    """The id of the item."""
    prompt: str
    """The new text."""
    display_prompt: str | None = None


class UpdatedResult(WireModel):
    updated: StrictBool
    """Whether the item was changed."""


class AppendSteeringParams(WireModel):
    """Text and attachments for a steering message that waits, if its text is still ``expected_prompt``."""

    session_id: str
    message_id: str
    expected_prompt: str
    """The text that the message must still have."""
    prompt: str
    """The text to add."""
    display_prompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    agent_mode: AgentMode | None = None
    """The mode to run it in."""


class WithdrawMessageParams(WireModel):
    """``expected_prompt`` is the prompt as it was sent: an edited message is not withdrawn."""

    session_id: str
    message_id: str
    expected_prompt: str
    """The prompt as it was sent."""


class WithdrawMessageResult(WireModel):
    """``removed``: the message has left the queue. ``interrupted``: it was running, and its turn was stopped."""

    interrupted: StrictBool
    """Whether the prompt was running and its turn was stopped."""
    removed: StrictBool
    """Whether the prompt has left the queue."""


class RemovedResult(WireModel):
    removed: StrictBool
    """Whether there was something to remove."""


class SendNowResult(WireModel):
    """``steered`` is false for an item that no running prompt can take: it is the next to run."""

    steered: StrictBool
    """Whether the running prompt takes the item."""


class SetDrainPausedParams(WireModel):
    session_id: str
    paused: StrictBool
    """Whether queued prompts wait."""


class MessageItem(WireModel):
    """A prompt of several that are sent together."""

    prompt: str
    """The text of the prompt."""
    display_prompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    source: Source | None = None
    """Where the prompt comes from, if not from a person."""
    required_tool: str | None = None
    """A tool that the model must call."""
    billable: StrictBool = True
    """Whether a Copilot plan counts it as a request."""


class SendMessagesParams(WireModel):
    """Prompts that one run answers together. The other fields are those of ``session.send``."""

    session_id: str
    messages: list[MessageItem]
    """The prompts."""
    mode: Literal["enqueue", "immediate", "interactive", "plan", "autopilot"] = "enqueue"
    """How to send them, as in ``session.send``."""
    prepend: StrictBool = False
    """Whether they run before those that wait."""
    agent_mode: AgentMode | None = None
    """The mode to run them in."""
    request_headers: Headers = Field(default_factory=dict, repr=False)
    """Headers for their model calls."""
    response_format: Later[ResponseFormatConfig] | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    wait: StrictBool = False
    """Whether the answer comes when the run has ended."""


class SendMessagesResult(WireModel):
    message_ids: list[str]
    """The ids of the prompts."""


class NotificationKind(WireModel):
    """``type`` and anything else; all of it is part of the event."""

    model_config = ConfigDict(extra="allow")

    type: str


class SendSystemNotificationParams(WireModel):
    """With a ``kind``, the notification is a separate event, otherwise a message of the source ``system``."""

    session_id: str
    message: str
    """The text that the model reads."""
    kind: NotificationKind | None = None


class InterruptParams(WireModel):
    """``flush_queued``: the queued prompts run next; without it they are dropped."""

    session_id: str
    flush_queued: StrictBool = False
    """Whether queued prompts run next instead of being dropped."""


class InterruptResult(WireModel):
    interrupted: StrictBool
    """Whether anything was running."""


METHODS: Final[Mapping[str, Method]] = {
    "session.interruptMainTurn": Method(InterruptParams, InterruptResult, "Stop the running prompt or command."),
    "session.sendMessages": Method(
        SendMessagesParams, SendMessagesResult, "Send several prompts that one run answers together."
    ),
    "session.sendSystemNotification": Method(
        SendSystemNotificationParams, None, "Send the model a message that no person has written."
    ),
    "session.queue.appendSteering": Method(
        AppendSteeringParams, UpdatedResult, "Add text to a steering message that waits."
    ),
    "session.queue.clear": Method(SessionParams, None, "Drop everything that waits."),
    "session.queue.duplicateAt": Method(QueueItemParams, QueueItemResult, "Copy an item of the queue."),
    "session.queue.hasPending": Method(SessionParams, HasPendingResult, "Return whether anything waits."),
    "session.queue.insertAt": Method(InsertAtParams, QueueItemResult, "Insert a prompt into the queue."),
    "session.queue.moveItem": Method(MoveItemParams, ChangedResult, "Move an item of the queue."),
    "session.queue.pendingItems": Method(SessionParams, QueueItemsResult, "Return what waits."),
    "session.queue.process": Method(SessionParams, None, "Run what waits."),
    "session.queue.removeAt": Method(QueueItemParams, RemovedResult, "Remove an item of the queue."),
    "session.queue.removeMostRecent": Method(SessionParams, RemovedResult, "Remove the item that was added last."),
    "session.queue.sendNow": Method(
        QueueItemParams, SendNowResult, "Send an item of the queue to the running turn."
    ),
    "session.queue.setDrainPaused": Method(
        SetDrainPausedParams, None, "Keep queued prompts waiting, or let them run."
    ),
    "session.queue.snapshot": Method(
        SessionParams, QueueSnapshotResult, "Return what waits, in the order in which it was added."
    ),
    "session.queue.updateText": Method(UpdateTextParams, UpdatedResult, "Change the text of a queued prompt."),
    "session.queue.withdrawMessage": Method(
        WithdrawMessageParams, WithdrawMessageResult, "Take a prompt back, also while it runs."
    ),
}
