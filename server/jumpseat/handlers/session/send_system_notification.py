"""``session.sendSystemNotification``: tell the model what no user wrote."""

from __future__ import annotations

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SystemNotification
from jumpseat_protocol.queue import SendSystemNotificationParams


def send_system_notification(ctx: Context, params: SendSystemNotificationParams) -> None:
    """Tell the model something that no user wrote; it answers at once, or in the running turn."""
    text = f"<system_notification>\n{params.message}\n</system_notification>"
    notification = None
    if params.kind is not None:
        notification = SystemNotification(content=text, kind=params.kind.wire())
    prompt = Prompt(text, source="system", notification=notification)
    ctx.registry.live(params.session_id).send(prompt, "immediate")
