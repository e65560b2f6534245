"""Failures of requests to providers. The names are those of httpx, and recordings contain them.

::

    TransportError
      TimeoutException    ConnectTimeout, ReadTimeout, WriteTimeout
      NetworkError        ConnectError, ReadError, WriteError
      ProtocolError       LocalProtocolError, RemoteProtocolError
      ProxyError
      UnsupportedProtocol
    InvalidURL
"""

# ruff: noqa: N818

from __future__ import annotations


class TransportError(Exception):
    """A request failed. ``proxy`` is the URL of the proxy that it was sent through, if any."""

    proxy: str | None = None


class TimeoutException(TransportError):
    """A time limit was exceeded."""


class ConnectTimeout(TimeoutException):
    """The connection was not made in time."""


class ReadTimeout(TimeoutException):
    """The peer sent nothing for too long."""


class WriteTimeout(TimeoutException):
    """The peer took nothing for too long."""


class NetworkError(TransportError):
    """The connection cannot be made, or broke."""


class ConnectError(NetworkError):
    """The connection cannot be made."""


class ReadError(NetworkError):
    """The connection broke while the response was received."""


class WriteError(NetworkError):
    """The connection broke while the request was sent."""


class ProtocolError(TransportError):
    """HTTP was violated."""


class LocalProtocolError(ProtocolError):
    """The request cannot be written as HTTP."""


class RemoteProtocolError(ProtocolError):
    """The response is not HTTP."""


class ProxyError(TransportError):
    """The proxy refused the connection."""


class UnsupportedProtocol(TransportError):
    """The URL is not an http or https URL."""


class InvalidURL(Exception):
    """The URL cannot be parsed."""
