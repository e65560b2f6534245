"""``session.getMessages``: the persisted events of a session."""

from __future__ import annotations

from typing import Any

import orjson

from jumpseat.sessions.context import Context
from jumpseat.store.session.event_log import Records
from jumpseat_protocol.old_clients import BROADCASTS, readable
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Encoded


def get_messages(ctx: Context, params: SessionParams) -> Encoded[dict[str, Any]]:
    """Return the persisted events in order, from ``session.start`` on, in the form in which they were sent."""
    session = ctx.registry.live(params.session_id)
    secrets, records = ctx.process.secrets, ctx.registry.storage(session).log.read().records
    if isinstance(records, Records) and not secrets and ctx.connection.protocol != 2:
        return Encoded((b'{"events":[', *records.json(), b"]}"))
    masked = secrets.mask_records(records)
    if ctx.connection.protocol == 2:
        masked = [readable(record) for record in masked if record["type"] not in BROADCASTS]
    return Encoded((orjson.dumps({"events": masked}),))
