"""The first message about a client that a replica relays to another one, and the versions of all messages after it.

Each replica tells the versions of the relay protocol that it speaks in its heartbeat and in this message. Replicas
without a common version do not relay to each other: a request about a session of the other one fails with
:class:`jumpseat.errors.ReplicaIncompatibleError` until the session moves.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from msgspec import Struct
from pydantic import Field, ValidationError

from jumpseat_protocol.version import __version__
from jumpseat_protocol.wire import WireModel

ACCEPTED: Final = b"ok"
"""The answer of a replica that takes the client."""
_NAME: Final = "^[A-Za-z0-9_-]+$"


class Versions(Struct, frozen=True):
    """The versions of the relay protocol that a replica speaks, from the oldest to the newest."""

    oldest: int
    newest: int

    def fits(self, other: Versions) -> bool:
        """Return whether there is a version that both replicas speak."""
        return self.oldest <= other.newest and other.oldest <= self.newest

    def encode(self) -> list[int]:
        """Return the versions as a JSON array of the oldest and the newest."""
        return [self.oldest, self.newest]

    def __str__(self) -> str:
        return str(self.newest) if self.oldest == self.newest else f"{self.oldest} to {self.newest}"


UNNUMBERED: Final = Versions(0, 0)
"""The version of the builds that do not tell any."""
SPOKEN: Final = Versions(1, 2)
"""The versions that this build speaks.

``newest`` is increased when an earlier build would misunderstand what replicas tell each other about clients,
``oldest`` when the code for an older version is removed. Members that others may leave out need no new version.
"""


DOORS: Final = Versions(2, 2)
"""The versions with which replicas serve the clients of other doors, as :attr:`Handshake.door` says."""


def decode_versions(value: Any) -> Versions:
    """Return the versions that a replica tells; :data:`UNNUMBERED` if it tells none."""
    match value:
        case [int(oldest), int(newest)]:
            return Versions(oldest, newest)
        case _:
            return UNNUMBERED


class HandshakeAccess(WireModel):
    """The rights of a client, which its replica has checked."""

    name: str | None = None
    all: bool = False


class Handshake(WireModel):
    """A client's description, which a replica sends to another one before the first relayed request.

    ``tunnel`` is the id of the connection, ``replica`` that of the client's. A client without ``access`` may do
    nothing. ``door`` is the protocol whose methods it calls, if it is another one. Later builds may tell more.
    """

    tunnel: str = Field(pattern=_NAME)
    replica: str = Field(pattern=_NAME)
    label: str = "a client"
    protocol: int | None = None
    telemetry: bool = False
    session_fs: Any = None
    access: HandshakeAccess | None = None
    relay: Any = None
    door: str | None = None

    def encode(self) -> bytes:
        """Return the message."""
        return orjson.dumps(self.wire())

    @classmethod
    def decode(cls, data: bytes) -> Handshake | None:
        """Return the content of a message; ``None`` if no replica can have sent it."""
        try:
            return cls.model_validate_json(data)
        except ValidationError:
            return None


def refusal() -> bytes:
    """Return the answer of a replica that has no version in common with that of the client."""
    return orjson.dumps({"relay": SPOKEN.encode(), "version": __version__})
