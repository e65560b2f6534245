"""The envelope of a JSON-RPC message that takes too long to read as a whole."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from jumpseat_protocol.envelope import RequestId


class Outline(Struct):
    """The id and the unread method of a message; both are unset if the message cannot be read."""

    id: RequestId | UnsetType = UNSET
    method: Raw | UnsetType = UNSET


def outline_of(body: bytes) -> Outline:
    """Read the envelope of a message. Its other members are passed over: no objects are made of them."""
    try:
        return msgspec.json.decode(body, type=Outline)
    except (msgspec.DecodeError, RecursionError):
        return Outline()
