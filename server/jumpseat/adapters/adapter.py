"""What one provider must say: how to write a request and how to read an answer. No I/O.

``adapters/transport/http.py`` sends, times out, maps statuses and splits the stream into server-sent events, once
for all adapters. An adapter is stateless; everything that belongs to one answer lives in its decoder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ModelEvent, ModelRequest


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and as whom an adapter calls.

    ``base_url`` has no trailing slash. ``headers`` are the user's and win over those of the adapter.
    ``options`` are adapter-specific (``api_version`` of azure, say).
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    user_agent: str = "jumpseat"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds; ``None`` means none.

    ``connect`` covers name, TCP and TLS. ``first_byte`` runs from the start of the call to the status and headers
    of the answer: models that think say nothing for minutes. ``idle`` is the longest silence after that. ``total``
    bounds the whole call; it is looked at when something arrives, so silence may stretch it by once ``idle``.
    """

    connect: float | None = 15.0
    first_byte: float | None = 600.0
    idle: float | None = 300.0
    total: float | None = 3600.0


@dataclass(frozen=True, slots=True)
class Network:
    """How a server is reached where that is not as the environment says.

    ``proxy`` is a URL. ``insecure`` takes any certificate. ``ca_file`` holds the only authorities that are trusted,
    ``client_cert`` and ``client_key`` are PEM files; a key may stand in the file of its certificate.
    """

    proxy: str | None = field(default=None, repr=False)
    insecure: bool = False
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One call: ``body`` is sent as JSON, with ``socket`` as a message on a WebSocket."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: JsonObject
    method: str = "POST"
    socket: bool = False


class Decoder(Protocol):
    """Reads one answer. Use it once.

    A streamed answer goes through :meth:`feed`, one server-sent event at a time, then :meth:`finish`;
    a whole answer goes through :meth:`whole`.
    """

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        """Take one server-sent event (its name, if it has one, and its data) and return what it says.

        Where the wire marks its own end (``[DONE]``, ``message_stop``) the ``Completed`` may come here already:
        the caller then reads no further, and :meth:`finish` has nothing left to return.

        Raises:
            ProviderError: the event is an error, or not of this provider's form.
        """
        ...

    def finish(self) -> list[ModelEvent]:
        """Take note that the stream ended; return what is left, with the one ``Completed`` last if it is still due.

        Raises:
            ProviderProtocolError: the stream ended before the answer did.
        """
        ...

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        """Read an answer that was not streamed; the one ``Completed`` is last.

        Deltas need not be made here: the caller makes them where the request asked for a stream.

        Raises:
            ProviderError: the answer is an error, or not of this provider's form.
        """
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended. ``status`` is ``None`` where there was no answer; ``body`` is that of an error."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: str = ""


class Detached(Protocol):
    """What answers a call in place of the network."""

    def route(self) -> Any:
        """A transport of httpx that leads to it."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """One call that is ready to be made, and what reads its answer.

    ``secrets`` must not appear in any error. ``ended`` is told how it went, after the answer, in every case.
    ``timeouts`` and ``network`` are those of the call where they differ from the usual ones. ``instead`` is what
    the adapter has in place of the network.
    """

    request: HttpRequest
    decoder: Decoder
    secrets: tuple[str, ...] = field(default=(), repr=False)
    ended: Callable[[Outcome], Awaitable[None]] | None = None
    timeouts: Timeouts | None = None
    network: Network | None = None
    instead: Detached | None = None


class Wire:
    """What all wires of the server inherit.

    ``name`` says which wire it is. ``signs_as`` is the provider behind it, where that is not called as the wire is:
    what its blocks carry in ``provider``. Only what carries it is given back as it came.
    """

    name: ClassVar[str]
    signs_as: ClassVar[str | None] = None

    @property
    def signature(self) -> str:
        """What blocks of the provider behind this wire carry in ``provider``."""
        return self.signs_as or self.name


class Adapter(Protocol):
    """One provider's wire. Instances are shared by all sessions and hold no state."""

    name: ClassVar[str]
    default_base_url: ClassVar[str | None]
    key_env: ClassVar[str | None]
    """The environment variable where this provider's users keep their key."""

    # A class may also say what `adapters/capabilities.py` reads, and as which relative it `signs_as`.

    def request(self, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
        """Write the request. Pure: same input, same output."""
        ...

    def decoder(self, request: ModelRequest) -> Decoder:
        """Make a reader for one answer to ``request``."""
        ...
