"""Requests to providers and their responses, between the transport and the routes that carry them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from jumpseat.adapters.failures import Redactor
from jumpseat.adapters.transport.url import Url
from jumpseat.agent.model import SubAgentRef
from jumpseat_protocol.structs import Discreet

Limits: TypeAlias = dict[str, float | None]
"""The ``connect``, ``write``, ``read`` and ``pool`` timeouts of one request in seconds, in httpcore2's form."""


class Headers(Mapping[str, str]):
    """Headers by their names in any case; iteration returns the names in lower case.

    The values of a header that occurs several times are joined with commas.
    """

    __slots__ = ("_values", "pairs")

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self.pairs = [(name.lower(), value) for name, value in pairs]
        """All headers in their order, with their names in lower case."""
        self._values: dict[str, str] = {}
        for name, value in self.pairs:
            earlier = self._values.get(name)
            self._values[name] = value if earlier is None else f"{earlier}, {value}"

    @classmethod
    def decode(cls, pairs: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return headers as they were received: in UTF-8 or, as of old, in Latin-1."""
        return cls((_decoded(name), _decoded(value)) for name, value in pairs)

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Request(Discreet, Struct):
    """A request on its way to a provider. ``fields`` are its headers as they are written, ``parts`` its body.

    ``limits`` are kept by reference, so that they can be changed while the response is read. ``session_id`` and
    ``agent`` are the session and the sub-agent that the request is made for, if any. A request with ``socket`` is a
    WebSocket message, whose response is read as an event stream. ``redactor`` creates the redactor of the call's
    secrets, for a recorder.
    """

    hidden = ("fields", "parts", "redactor")
    method: str
    url: Url
    fields: list[tuple[bytes, bytes]]
    parts: Sequence[bytes]
    limits: Limits
    session_id: str | None = None
    agent: SubAgentRef | None = None
    socket: bool = False
    redactor: Callable[[], Redactor] | None = None

    @property
    def headers(self) -> Headers:
        return Headers.decode(self.fields)

    @property
    def body(self) -> bytes:
        """The whole body, a copy if it has several parts."""
        return b"".join(self.parts)


CLOSE_S: Final = 1.0
"""Time limit for releasing a connection."""


class Body(Protocol):
    """The body of a response, in pieces as they are received."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Release the connection, also while being cancelled, in :data:`CLOSE_S` at most."""
        ...


class Response(Struct):
    """The head of a response, with its body still to be read.

    ``finish`` closes the socket of a complete response that came over a WebSocket.
    """

    status: int
    headers: Headers
    body: Body
    finish: Callable[[], Awaitable[None]] | None = None


class Route(Protocol):
    """Carries requests to providers, and their responses back."""

    async def send(self, request: Request) -> Response:
        """Send a request and return once the response headers have arrived.

        Raises:
            Exception: the request failed; ``failures.py`` lists the exceptions of the network.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


class WholeBody(Struct):
    """A body that is there already."""

    content: bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self.content:
            yield self.content

    async def aclose(self) -> None:
        pass


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")
