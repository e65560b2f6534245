"""The connection to NATS: messages between replicas, and requests that are repeated until NATS answers."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias, TypeVar

import anyio
import nats.errors
from msgspec import Struct
from nats.aio.client import Client as NatsClient
from nats.aio.msg import Msg
from nats.js import errors as js_errors

from jumpseat.cluster.nats.names import Names
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.errors import ConfigError, StoreError, StoreUnavailableError

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Waits before a request is repeated; the last one is used from then on."""
REQUEST_SHARE: Final = 1 / 5
"""Time for the answer to one message, as a share of the time in which it is repeated: it may be lost."""
WORK_SHARE: Final = 5 / 12
"""Time for the answers to other requests, likewise."""
WRONG_SEQUENCE: Final = (10071, 10164)
EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
MESSAGE_ID: Final = "Nats-Msg-Id"
FAILURES: Final = (nats.errors.Error, TimeoutError, OSError)

Headers: TypeAlias = Mapping[str, str]


class WrongSequenceError(Exception):
    """Another author has written to the subject, or removed messages from it.

    ``last`` is the last message there, ``None`` if there is none.
    """

    def __init__(self, last: Stored | None) -> None:
        super().__init__("the subject has another last message than expected")
        self.last = last


class NoReplyError(Exception):
    """The subject has no listener: ``gone``; or no answer came in time."""

    def __init__(self, *, gone: bool) -> None:
        super().__init__("the subject has no listener" if gone else "no answer")
        self.gone = gone


class Stored(Struct, frozen=True):
    """A message of a stream."""

    seq: int
    data: bytes
    headers: Headers


def stored(message: Any) -> Stored:
    """Return a message of a stream as nats-py returns it."""
    return Stored(message.seq or 0, message.data or b"", message.headers or {})


class NatsConnection:
    """A connection to NATS, and the names that a cluster uses there."""

    def __init__(self, names: Names, patience_s: float) -> None:
        self.names = names
        self.patience_s = patience_s
        """Time in which requests are repeated."""
        self.request_s = patience_s * REQUEST_SHARE
        """Time for the answer to one message."""
        self.reconnects: list[Callable[[], None]] = []
        """Called after each reconnect: messages to and from this replica may be lost."""
        self._requests: set[anyio.CancelScope] = set()
        # Its types are incomplete. Set by :meth:`use`.
        self._client: Any = None
        self._js: Any = None

    def use(self, client: NatsClient) -> None:
        """Begin to use a client of NATS."""
        self._client = client
        self._js = self._client.jetstream(timeout=self.patience_s * WORK_SHARE)

    def handle_break(self) -> None:
        """End the requests whose answers the broken connection had to bring: they would wait for their time-out."""
        for scope in list(self._requests):
            scope.cancel()

    def handle_reconnect(self) -> None:
        """Call :attr:`reconnects`."""
        for callback in self.reconnects:
            callback()

    @property
    def connected(self) -> bool:
        """Return whether there is a connection to a server of NATS."""
        return self._client.is_connected

    @property
    def server(self) -> str:
        """The server of NATS that this replica is connected to."""
        url = self._client.connected_url
        return url.netloc if url is not None else ""

    async def retried(
        self, work: Callable[[], Awaitable[T]], patience_s: float | None = None, *, ends_itself: bool = False
    ) -> T | None:
        """Return the result of ``work`` when NATS answers; ``None`` if there is no such thing in NATS.

        Work that ``ends_itself`` is not ended when the connection breaks, because it cleans up at its time-outs.

        Raises:
            StoreUnavailableError: NATS has not answered for ``patience_s``, by default that of the connection.
        """
        pause = self.pause(patience_s)
        while True:
            try:
                return await (work() if ends_itself else self.answer_to(work()))
            except js_errors.NotFoundError:
                return None
            except FAILURES as error:
                log.info("NATS does not answer: %s", text_of(error))
            await pause()

    def pause(self, patience_s: float | None = None) -> Pause:
        """Return the waits before a request is repeated, for ``patience_s``, by default that of the connection."""
        return Pause(self._client, self.patience_s if patience_s is None else patience_s)

    async def answer_to(self, request: Awaitable[T], limit_s: float = math.inf) -> T:
        """Return the answer to a request of JetStream.

        Raises:
            TimeoutError: the connection broke before the answer came, or it took longer than ``limit_s``. Errors of
                the request are raised, too.
        """
        scope = anyio.CancelScope(deadline=anyio.current_time() + limit_s)
        self._requests.add(scope)
        try:
            with scope:
                return await request
        finally:
            self._requests.discard(scope)
        raise TimeoutError("no answer")

    # --- messages between replicas --------------------------------------------------------------------------------

    async def listen(self, subject: str, handle: Callable[[str, bytes, str], None]) -> None:
        """Call ``handle`` with the subject of each message, its content and the subject to answer to, in order."""

        async def receive(message: Msg) -> None:
            try:
                handle(message.subject, message.data, message.reply)
            except Exception:
                log.exception("a message of another replica cannot be handled")

        await self._client.subscribe(subject, cb=receive, pending_bytes_limit=256 << 20, pending_msgs_limit=1 << 20)

    async def send(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message, which may be lost where the connection breaks; answers go to ``reply``."""
        with suppress(nats.errors.Error, OSError):
            await self._client.publish(subject, data, reply=reply)

    async def ask(self, subject: str, data: bytes, timeout_s: float) -> bytes:
        """Send a request and return the answer.

        Raises:
            NoReplyError: the subject has no listener, or no answer came in time.
        """
        try:
            return (await self._client.request(subject, data, timeout=timeout_s)).data
        except nats.errors.NoRespondersError:
            raise NoReplyError(gone=True) from None
        except FAILURES:
            raise NoReplyError(gone=False) from None


class Pause:
    """The waits before a request is sent again. ``patience_s`` limits all of them together, in seconds.

    They end with the connection of ``client``: nothing shielded may wait for a connection that was closed.
    """

    def __init__(self, client: NatsClient, patience_s: float) -> None:
        self._client = client
        self._until_s = time.monotonic() + patience_s
        self._attempt = 0

    async def __call__(self) -> None:
        """Wait.

        Raises:
            StoreUnavailableError: the patience is over, or the connection is closed.
        """
        if self._client.is_closed or time.monotonic() > self._until_s:
            raise StoreUnavailableError
        await anyio.sleep(RETRY_S[min(self._attempt, len(RETRY_S) - 1)])
        self._attempt += 1

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._attempt = 0


@asynccontextmanager
async def connected_client(
    settings: ClusterSettings, label: str, connection: NatsConnection
) -> AsyncGenerator[None]:
    """Connect to NATS, and reconnect whenever the connection breaks, to any server, until the end of the block.

    Raises:
        StoreError: no server can be reached.
        ConfigError: the credentials are not accepted.
    """
    client: Any = NatsClient()
    refusals = 0
    connecting = anyio.CancelScope()

    async def reconnected() -> None:
        log.info("connected to NATS again")
        connection.handle_reconnect()

    async def disconnected() -> None:
        if not client.is_closed:
            log.warning("the connection to NATS is lost")
            connection.handle_break()

    async def failed(error: Exception) -> None:
        nonlocal refusals
        # Of other types, too, by the moment at which the server refuses.
        refusals += "authorization" in text_of(error).lower()
        if refusals >= len(settings.servers):
            connecting.cancel()
        log.info("NATS: %s", text_of(error))

    given: dict[str, Any] = {
        "user": settings.user,
        "password": settings.password,
        "token": settings.token,
        "user_credentials": settings.credentials,
        "tls": settings.tls,
    }
    try:
        with anyio.fail_after(15), connecting:
            await client.connect(
                list(settings.servers),
                name=label,
                connect_timeout=2,
                ping_interval=5,
                max_outstanding_pings=2,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.1,
                reconnected_cb=reconnected,
                disconnected_cb=disconnected,
                error_cb=failed,
                # A cut connection must not hold what was sent meanwhile.
                pending_size=8 << 20,
                **{key: value for key, value in given.items() if value is not None},
            )
    except (nats.errors.AuthorizationError, nats.errors.NoServersError, TimeoutError, OSError) as error:
        if refusals or isinstance(error, nats.errors.AuthorizationError):
            raise ConfigError("store: NATS does not accept the credentials") from None
        raise StoreError(f"cannot reach NATS at {', '.join(settings.servers)}: {text_of(error)}") from None
    if connecting.cancelled_caught:
        raise ConfigError("store: NATS does not accept the credentials")
    connection.use(client)
    try:
        yield
    finally:
        with anyio.move_on_after(1, shield=True), suppress(nats.errors.Error, OSError, TimeoutError):
            await client.close()
        connection.handle_break()


def text_of(error: BaseException) -> str:
    """Return the text of an error of NATS."""
    description = getattr(error, "description", None)
    return str(description or error or type(error).__name__)
