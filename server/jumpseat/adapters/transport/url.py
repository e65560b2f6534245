"""The addresses of providers, as requests need them."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

MAX_URL_CHARS: Final = 16 * 1024
"""Servers accept less. Errors name the URL, and are searched for parts of keys."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_LOOSE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST_NAME: Final = re.compile(r"[a-z0-9._~!$&'()*+,;=-]+")
# What a URL carries as it is (https://url.spec.whatwg.org/#percent-encoded-bytes).
_IN_PATH: Final = "!$%&'()*+,/:;=@[\\]^|~"
_IN_QUERY: Final = _IN_PATH + "?`{}"


class InvalidURL(ValueError):  # noqa: N818
    """The URL cannot be parsed."""


class Address(Protocol):
    """The parts of a URL that decide how it is reached."""

    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int | None: ...


class Url(Struct, frozen=True):
    """A URL, ready to be sent: in ASCII, with scheme and host in lower case.

    ``host`` has no brackets around an IPv6 address. ``port`` is ``None`` for that of the scheme. ``target`` is the
    path with the query, and never empty. ``user`` and ``password`` are decoded.
    """

    scheme: str
    host: str
    port: int | None
    target: str
    user: str = ""
    password: str = ""

    @property
    def path(self) -> str:
        """The path, decoded."""
        return unquote(self.target.partition("?")[0])

    @property
    def netloc(self) -> str:
        """Host and port, as in the header ``Host``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return the URL without user and password."""
        return f"{self.scheme}://{self.netloc}{self.target}"


@lru_cache(maxsize=64)
def parse_url(url: str) -> Url:
    """Parse an absolute URL. The requests of a session have the same one.

    Raises:
        InvalidURL: the URL is too long or contains control characters, or its host or port is invalid.
    """
    if len(url) > MAX_URL_CHARS:
        raise InvalidURL(f"expected a URL of at most {MAX_URL_CHARS} characters")
    if _CONTROL.search(url):
        raise InvalidURL("expected a URL without control characters")
    try:
        parts = urlsplit(url)
        port, host = parts.port, _host(parts.hostname or "")
    except ValueError as error:
        raise InvalidURL(str(error)) from None
    target = _encoded(parts.path, _IN_PATH) or "/"
    if parts.query:
        target += f"?{_encoded(parts.query, _IN_QUERY)}"
    scheme = parts.scheme.lower()
    return Url(
        scheme,
        host,
        None if port == DEFAULT_PORTS.get(scheme) else port,
        target,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
    )


def place_of(url: str) -> str:
    """Return scheme, host, port and path of ``url``, without user, password and query, which may be secret."""
    try:
        parsed = parse_url(url)
    except (InvalidURL, TypeError):
        return "the provider"
    return str(parsed).partition("?")[0].removesuffix("/") if parsed.host else "the provider"


def _host(host: str) -> str:
    """Return a host in ASCII.

    Raises:
        ValueError: the host is invalid.
    """
    if ":" in host:
        return str(ipaddress.IPv6Address(host))
    if not host.isascii():
        # The codec of Python knows only the names of 2003.
        import idna

        return idna.encode(host.lower()).decode("ascii")
    if host and not _HOST_NAME.fullmatch(host):
        raise ValueError("invalid host")
    return host


def _encoded(part: str, safe: str) -> str:
    return quote(_LOOSE_PERCENT.sub("%25", part), safe=safe)
