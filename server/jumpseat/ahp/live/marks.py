"""The marks that clients put on sessions: read, archived. They are stored with the session."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.states.values import ARCHIVED, READ, Action
from jumpseat.errors import JumpseatError

log = logging.getLogger(__name__)

_KEYS: Final = {READ: "jumpseat.ahp.read", ARCHIVED: "jumpseat.ahp.archived"}


class Metadata(Protocol):
    """The strings that clients keep with a session."""

    def read(self) -> dict[str, str]: ...


def marks_of(metadata: Metadata) -> int:
    """Return the bits of a session's status that clients have set."""
    try:
        entries = metadata.read()
    except JumpseatError:
        # The file is of another program, and clients of the other protocol are told so.
        return 0
    return sum(bit for bit, key in _KEYS.items() if entries.get(key) == "true")


def change(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Change a mark, and store all of them."""
    if mirror.publish(action, origin):
        mirror.tasks.start_soon(_store, mirror)


async def _store(mirror: Mirror) -> None:
    try:
        metadata = mirror.context.registry.storage(mirror.session).client_metadata
        status: int = mirror.state["status"]
        wanted = {key: "true" for bit, key in _KEYS.items() if status & bit}
        unset = [key for key in _KEYS.values() if key not in wanted]
        await metadata.update(clear=False, remove=unset, entries=wanted)
    except JumpseatError as error:
        log.warning("session %s: the marks of clients are not stored: %s", mirror.session_id, error)
