"""The interface of an adapter, which writes requests and reads answers, and the one of its HTTP calls. No I/O.

``adapters/transport/http.py`` sends requests, applies timeouts, maps statuses and splits streams into server-sent
events, once for all adapters. An adapter is stateless; the state of one answer lives in its decoder.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import anyio
from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, EditsContext, ModelEvent, ModelRequest, StructuredOutput
from jumpseat.errors import ConfigError, ProviderAuthError
from jumpseat_protocol.members import hint
from jumpseat_protocol.structs import Discreet

if TYPE_CHECKING:
    from jumpseat.declared.env import EnvResolver

ANY_OPTION: Final = frozenset({"*"})
"""The names of the options of a wire that passes them on."""


class Endpoint(Discreet, Struct, frozen=True):
    """The address and the credentials of calls.

    ``base_url`` has no trailing slash. ``headers`` are the user's and win over those of the adapter.
    ``options`` are specific to the adapter, for example ``api_version`` of Azure.
    """

    hidden = ("api_key", "bearer_token", "headers")
    base_url: str
    api_key: str | None = None
    bearer_token: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    user_agent: str = "jumpseat"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Timeouts(Struct, frozen=True):
    """Timeouts in seconds; ``None`` means no limit.

    ``connect`` covers name resolution, TCP and TLS. ``first_byte`` runs from the start of the call to the status
    and headers of the answer: models that reason send nothing for minutes. ``idle`` is the longest silence after
    that. ``total`` bounds the whole call; it is checked when bytes arrive, so it may be exceeded by one ``idle``.
    """

    connect: float | None = 15.0
    first_byte: float | None = 600.0
    idle: float | None = 300.0
    total: float | None = 3600.0


class Network(Discreet, Struct, frozen=True):
    """Network settings that differ from those of the environment.

    ``proxy`` is a URL. ``insecure`` accepts any certificate. ``ca_file`` holds the only trusted authorities.
    ``client_cert`` and ``client_key`` are PEM files; the key may be in the file of its certificate.
    """

    hidden = ("proxy",)
    proxy: str | None = None
    insecure: bool = False
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


class HttpRequest(Discreet, Struct, frozen=True):
    """A request. ``body`` is sent as JSON; with ``socket``, as a message on a WebSocket."""

    hidden = ("headers",)
    url: str
    headers: Mapping[str, str]
    body: JsonObject
    method: str = "POST"
    socket: bool = False


class Decoder(Protocol):
    """Reads one answer. Use it once.

    A streamed answer goes through :meth:`feed`, one server-sent event at a time, then :meth:`finish`;
    a whole answer goes through :meth:`whole`.
    """

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        """Decode one server-sent event: its name, if it has one, and its data.

        Where the wire marks the end of the answer (``[DONE]``, ``message_stop``), this may return ``Completed``:
        the caller then stops reading, and :meth:`finish` returns nothing.

        Raises:
            ProviderError: the event is an error, or does not have this provider's format.
        """
        ...

    def finish(self) -> list[ModelEvent]:
        """Decode the end of the stream; return the remaining events, with ``Completed`` last if it is still due.

        Raises:
            ProviderProtocolError: the stream ended before the answer did.
        """
        ...

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        """Decode an answer that was not streamed; the ``Completed`` is last.

        Deltas are optional: the caller creates them where the request asked for a stream.

        Raises:
            ProviderError: the answer is an error, or does not have this provider's format.
        """
        ...


class Outcome(Discreet, Struct, frozen=True):
    """The end of a call.

    ``status`` is ``None`` without an answer. ``content`` is the body of an error or of a whole answer, and empty
    after a stream. ``broken`` means that the connection failed or timed out.
    """

    hidden = ("headers", "content")
    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b""
    broken: bool = False

    @property
    def body(self) -> str:
        """The content as text."""
        return self.content.decode("utf-8", "replace")


class NetworkReplacement(Protocol):
    """A replacement for the network that answers a call."""

    def route(self) -> Any:
        """Return the route (``transport.messages.Route``) that leads to the replacement."""
        ...


class PreparedCall(Discreet, Struct, frozen=True):
    """A call that is ready to be sent, and the decoder of its answer.

    ``secrets`` must not appear in any error. ``on_end`` is called once after the call, whatever its outcome;
    the text that it returns explains a failure to the user.
    ``timeouts`` and ``network`` override the defaults. ``replacement`` answers the call instead of the network.
    ``decode`` runs each step of a decoder that may block, such as one that calls functions of a user.
    """

    hidden = ("secrets",)
    request: HttpRequest
    decoder: Decoder
    secrets: tuple[str, ...] = ()
    on_end: Callable[[Outcome], Awaitable[str | None]] | None = None
    timeouts: Timeouts | None = None
    network: Network | None = None
    replacement: NetworkReplacement | None = None
    decode: Callable[[Callable[[], None]], Awaitable[None]] | None = None


class Adapter(ABC):
    """Writes requests to a provider and reads its answers. Instances are shared by all sessions.

    ``name`` is the type of the provider. ``signs_as`` is the name that the provider's blocks carry in ``provider``,
    where it differs: a block goes back unchanged only to an adapter that signs with the same name.
    """

    name: str = ""
    signs_as: str | None = None

    hosted: Mapping[str, JsonObject] = MappingProxyType({})
    """The tools that the provider runs itself, in the form of the wire, by the names that jumpseat has for them.

    ``bash`` and ``text_editor`` are tools that a model was trained on and that run here.
    """

    cites_as: Literal["anthropic", "openai"] | None = None
    """The provider whose form the citations have; ``None`` where there are no citations."""

    limits_calls: bool = True
    """True if a request can demand at most one tool call per answer."""

    reports_cost: bool = False
    """True if answers state what they cost, in dollars or in AI credits."""

    option_names: frozenset[str] = ANY_OPTION
    """The names that ``Endpoint.options`` may have."""

    default_options: Mapping[str, Any] = MappingProxyType({})
    default_headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        name: str | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Create the adapter of the provider type ``name``.

        ``options`` are defaults of ``Endpoint.options``; ``headers`` go with every request.
        """
        self.name = name or self.name
        self.default_options = options or self.default_options
        self.default_headers = headers or self.default_headers

    @abstractmethod
    def request(self, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
        """Write the request. Pure: the same input gives the same output."""

    @abstractmethod
    def decoder(self, request: ModelRequest) -> Decoder:
        """Create a reader for one answer to ``request``."""

    def decoder_at(self, endpoint: Endpoint, request: ModelRequest) -> Decoder:
        """Create a reader for one answer of ``endpoint``, whose options may concern it."""
        return self.decoder(request)

    @property
    def signature(self) -> str:
        """The name that blocks of this provider carry in ``provider``."""
        return self.signs_as or self.name

    def signing_as(self, provider: str) -> Adapter:
        """Return a copy whose blocks carry ``provider``: another server cannot read the blocks of this one."""
        signed = copy.copy(self)
        signed.signs_as = provider
        return signed

    def unknown_option(self, options: Mapping[str, Any]) -> str | None:
        """Return the problem of the first option that the wire does not have, ``None`` if it has all."""
        known = self.option_names
        unknown = None if known is ANY_OPTION else next((name for name in options if name not in known), None)
        return None if unknown is None else f"options.{unknown}: unknown, {hint(unknown, known)}"

    def options(self, endpoint: Endpoint) -> Mapping[str, Any]:
        """Merge the options of the endpoint and of the provider; those of the endpoint take precedence."""
        return {**self.default_options, **endpoint.options} if self.default_options else endpoint.options

    def structured_output(self, model: str) -> StructuredOutput:
        """Return when requests to ``model`` have a field for the schema of the answer."""
        return "always"

    def edits_context(self, endpoint: Endpoint) -> EditsContext | None:
        """Return how the provider shall shorten long conversations itself; ``None`` if it shall not."""
        return None

    def hosted_by(self, model: str) -> Mapping[str, JsonObject]:
        """Return the tools of :attr:`hosted` that ``model`` has; by default all."""
        return self.hosted

    def sees(self, model: str) -> bool:
        """Return whether requests to ``model`` have room for images."""
        return True


class ForeignAdapter(Adapter):
    """An object with ``name``, ``request`` and ``decoder`` that does not inherit :class:`Adapter`.

    It has one name for its provider and its signature. Its capabilities are those it declares, if any.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__(inner.name)
        self._inner = inner
        for member in (
            "hosted",
            "hosted_by",
            "cites_as",
            "structured_output",
            "sees",
            "limits_calls",
            "reports_cost",
        ):
            if hasattr(inner, member):
                setattr(self, member, getattr(inner, member))

    def request(self, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
        written: HttpRequest = self._inner.request(endpoint, request)
        return written

    def decoder(self, request: ModelRequest) -> Decoder:
        decoder: Decoder = self._inner.decoder(request)
        return decoder

    def signing_as(self, provider: str) -> Adapter:
        """Return a copy called ``provider``.

        Raises:
            ConfigError: the object does not let its name be changed.
        """
        inner = copy.copy(self._inner)
        try:
            inner.name = provider
        except AttributeError:
            raise ConfigError(
                f"adapter {provider!r}: its wire {type(inner).__name__} must inherit"
                " jumpseat.adapters.adapter.Adapter, or have a name that can be set"
            ) from None
        return ForeignAdapter(inner)


class Caller(Protocol):
    """Prepares the calls of one model."""

    @property
    def adapter_name(self) -> str:
        """The name of the adapter."""
        ...

    @property
    def signs_as(self) -> str:
        """The signature that the adapter's own blocks carry in ``provider``."""
        ...

    @property
    def wire_name(self) -> str:
        """The provider type whose wire this is; the adapter's own name if it has its own wire."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """The address and credentials, as far as they are known before a call."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """Return the capabilities of ``model``."""
        ...

    async def resolve_endpoint(self) -> tuple[Endpoint, Network | None]:
        """Return the current address, credentials and network settings.

        Raises:
            ConfigError: a required value is missing.
        """
        ...

    def for_text(self) -> Caller:
        """Return a caller for requests that need a text answer and nothing else."""
        ...

    async def prepare(self, request: ModelRequest) -> PreparedCall:
        """Prepare one call. May look up secrets, and ask clients for them.

        Raises:
            ProviderError: no token is available, or the adapter refused.
            ConfigError: a required value is missing.
            TypeError, ValueError: the request cannot be written.
        """
        ...


class ClientToken(Struct, frozen=True):
    """Asks a client for the bearer token of ``provider``.

    Tokens are not kept: the client knows when they expire.
    """

    provider: str
    ask: Callable[[str], Awaitable[str]] | None
    timeout_s: float = 60.0

    async def __call__(self) -> str:
        """Ask for the token.

        Raises:
            ProviderAuthError: there is no client, or it did not send a token in time.
        """
        if self.ask is None:
            raise ProviderAuthError(f"no client can provide the bearer token of provider {self.provider!r}")
        try:
            with anyio.fail_after(self.timeout_s):
                answer = await self.ask(self.provider)
        except TimeoutError:
            raise ProviderAuthError(
                f"the client returned no bearer token for provider {self.provider!r} within {self.timeout_s:g} s"
            ) from None
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ProviderAuthError(
                f"the client returned no bearer token for provider {self.provider!r}: {reason}"
            ) from error
        if not (token := answer.strip()):
            raise ProviderAuthError(f"the client returned an empty bearer token for provider {self.provider!r}")
        return token


class CommandKey(Struct, frozen=True):
    """Runs the command of a session that prints the key of ``provider``.

    Keys are not kept: a command stands for keys that expire soon.
    """

    provider: str
    command: str
    resolver: EnvResolver

    async def __call__(self) -> str:
        """Run the command and return the key.

        Raises:
            ProviderAuthError: the command fails, prints nothing, or takes too long.
        """
        found = await self.resolver.run_command(self.command)
        if isinstance(found, str):
            return found
        raise ProviderAuthError(f"no key for provider {self.provider!r}: {found.reason}")
