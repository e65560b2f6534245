"""The protocols of scripts and recordings: what differs between them for a player.

A protocol is added by an entry of :data:`PROTOCOLS`, and by a rule in :func:`protocol_of` if recordings are in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.adapters.wire import as_object
from jumpseat.system.installation import own_command

Framing: TypeAlias = Literal["content-length", "lines"]
ProtocolName: TypeAlias = Literal["copilot", "ahp"]

_JUMPSEAT: Final = tuple(own_command())


class Protocol(Struct, frozen=True):
    """How a server of ours is started for a protocol, and asked for a sign of life.

    ``ping`` are the params of a request that the server answers behind everything that it had to send before.
    """

    command: Sequence[str]
    framing: Framing
    ping: Mapping[str, Any] = field(default_factory=dict[str, Any])


PROTOCOLS: Final[Mapping[ProtocolName, Protocol]] = {
    "copilot": Protocol((*_JUMPSEAT, "--headless", "--stdio", "--no-auto-login"), "content-length"),
    "ahp": Protocol((*_JUMPSEAT, "ahp", "--no-auto-login"), "lines", {"channel": "ahp-root://"}),
}


def protocol_of(messages: Iterable[Any]) -> Protocol:
    """Return the protocol of a recorded conversation, by the client's handshake."""
    for message in map(as_object, messages):
        if message.get("method") in ("initialize", "reconnect"):
            # Clients of the Agent Host Protocol offer several versions, in the root channel.
            return PROTOCOLS["ahp" if "channel" in as_object(message.get("params")) else "copilot"]
    return PROTOCOLS["copilot"]
