"""``invokeChangesetOperation``."""

from __future__ import annotations

from jumpseat.ahp.live.door import Peer
from jumpseat.ahp.live.errors import NOT_FOUND, AhpError
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.uris import kind_of, owner_of


async def invoke(connection: Peer, params: JsonObject) -> JsonObject:
    """Undo the changes of a changeset, or of one of its files.

    Raises:
        AhpError: there is no such changeset, operation or file, or it cannot be undone.
    """
    uri = params.get("channel")
    if not isinstance(uri, str):
        raise AhpError.invalid("channel: expected a string")
    door, rights = connection.door, connection.rights
    session_id = owner_of(uri)
    if session_id is not None and kind_of(uri) == "changeset":
        if (mirror := await door.open(uri, rights)) is not None:
            return await mirror.changesets.invoke(uri, params.get("operationId"), params.get("target"))
        if (answer := await door.ask(session_id, rights, "invokeChangesetOperation", params)) is not None:
            return answer
    raise AhpError(NOT_FOUND, f"there is no changeset {uri[:300]!r}")
