"""The errors for exceptions of the network: a table of the library's exceptions. Loaded by the first failure."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from msgspec import Struct

from jumpseat.adapters.transport.library import httpcore2
from jumpseat.adapters.transport.url import place_of
from jumpseat.adapters.wire import one_line
from jumpseat.errors import ProviderError, ProviderProtocolError, ProviderRequestError, ProviderTransportError
from jumpseat.parsing.decompression import DecompressionError

_PLACE_IN_SSL: Final = re.compile(r" ?\(_ssl\.c:\d+\)")


class FailedCall(Struct, frozen=True):
    """A call that an exception ended. ``text`` is that of the exception, without secrets.

    ``connect_s`` and ``idle_s`` are the call's time limits. ``answered`` is set once the head of the response has
    arrived.
    """

    place: str
    text: str
    connect_s: float | None
    idle_s: float | None
    answered: bool


def failure_of(error: Exception, call: FailedCall) -> ProviderError:
    """Return the error for an exception that was raised while a request was sent or its response received."""
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error)):
        return _final(f"cannot verify the certificate of {call.place}: {_text(error, call)}")
    make = next((FAILURES[kind] for kind in type(error).__mro__ if kind in FAILURES), None)
    return make(error, call) if make is not None else _final(f"cannot reach {call.place}: {_text(error, call)}")


def _not_connected_in_time(error: Exception, call: FailedCall) -> ProviderError:
    return ProviderTransportError(f"cannot connect to {_peer(error, call)} {_format_limit(call.connect_s)}")


def _not_connected(error: Exception, call: FailedCall) -> ProviderError:
    causes = list(_causes(error))
    refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    handshake = any(isinstance(cause, ssl.SSLError) for cause in causes)
    reason = "connection refused" if refused else _text(error, call)
    peer = call.place if handshake else _peer(error, call)
    return ProviderTransportError(f"cannot connect to {peer}: {reason}", refused=refused)


def _stopped_sending(_: Exception, call: FailedCall) -> ProviderError:
    return ProviderTransportError(f"{call.place} stopped sending: no data {_format_limit(call.idle_s)}")


def _not_sent_in_time(_: Exception, call: FailedCall) -> ProviderError:
    return ProviderTransportError(f"timed out while sending the request to {call.place}")


def _closed(error: Exception, call: FailedCall) -> ProviderError:
    when = "in the middle of its response" if call.answered else "before it responded"
    return ProviderTransportError(f"{call.place} closed the connection {when}: {_text(error, call)}")


def _not_compressed(error: Exception, call: FailedCall) -> ProviderError:
    return ProviderProtocolError(f"cannot decompress the response from {call.place}: {_text(error, call)}")


def _refused_by_proxy(error: Exception, call: FailedCall) -> ProviderError:
    return ProviderTransportError(f"the proxy refused the connection to {call.place}: {_text(error, call)}")


def _not_http(_: Exception, call: FailedCall) -> ProviderError:
    return ProviderRequestError(f"the address of {call.place} must begin with http:// or https://")


def _invalid(error: Exception, call: FailedCall) -> ProviderError:
    # The message is left out, because it may quote the value of a header.
    return ProviderRequestError(f"invalid URL or header for {call.place} ({type(error).__name__})")


FAILURES: Final[Mapping[type[BaseException], Callable[[Exception, FailedCall], ProviderError]]] = {
    httpcore2.ConnectTimeout: _not_connected_in_time,
    httpcore2.ReadTimeout: _stopped_sending,
    httpcore2.WriteTimeout: _not_sent_in_time,
    httpcore2.PoolTimeout: _not_sent_in_time,
    httpcore2.TimeoutException: _not_sent_in_time,
    httpcore2.ConnectError: _not_connected,
    httpcore2.ReadError: _closed,
    httpcore2.WriteError: _closed,
    httpcore2.NetworkError: _closed,
    httpcore2.RemoteProtocolError: _closed,
    httpcore2.ProtocolError: _closed,
    httpcore2.LocalProtocolError: _invalid,
    httpcore2.ProxyError: _refused_by_proxy,
    httpcore2.UnsupportedProtocol: _not_http,
    DecompressionError: _not_compressed,
    ValueError: _invalid,
}
"""The error for each exception of the library and of the transport; that of a subclass takes precedence."""


def _peer(error: Exception, call: FailedCall) -> str:
    """Return the peer of the connection attempt: the proxy if there is one, else the provider."""
    proxy = vars(error).get("proxy")
    return f"the proxy {place_of(proxy)} for {call.place}" if proxy else call.place


def _text(error: Exception, call: FailedCall) -> str:
    return one_line(_PLACE_IN_SSL.sub("", call.text), 300) or type(error).__name__


def _format_limit(limit: float | None) -> str:
    """Format a limit for an error message; without a limit here, the operating system's own applied."""
    return "in time" if limit is None else f"within {limit:g} s"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over ``error``, its causes and contexts, and the members of exception groups."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", current).exceptions
        waiting += [current.__cause__, current.__context__]


def _final(message: str) -> ProviderTransportError:
    """Return the error for a failure that is permanent, so that it is not retried."""
    error = ProviderTransportError(message)
    error.retryable = False
    return error
