"""``session.getMessages``: the persisted events of a session."""

from __future__ import annotations

from typing import Any

from jumpseat.sessions.context import Context
from jumpseat_protocol.old_clients import BROADCASTS, readable
from jumpseat_protocol.sessions import SessionParams


def get_messages(ctx: Context, params: SessionParams) -> dict[str, Any]:
    """Return the persisted events in order, from ``session.start`` on, in the form in which they were sent."""
    session = ctx.registry.live(params.session_id)
    records = ctx.process.secrets.mask_records(ctx.registry.storage(session).log.read().records)
    if ctx.connection.protocol == 2:
        records = [readable(record) for record in records if record["type"] not in BROADCASTS]
    return {"events": records}
