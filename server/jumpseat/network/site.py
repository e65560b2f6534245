"""The files of the page, and the hosts and origins that may reach the server.

The files are public, so that no request for them needs a token. They are built by ``clients/web`` into ``static``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

STATIC: Final = Path(__file__).parent / "static"
"""The folder that the build fills."""

RPC_PATH: Final = "/rpc"
"""The path of WebSocket connections."""

AHP_PATH: Final = "/ahp"
"""The path of WebSocket connections of the Agent Host Protocol."""

ACP_PATH: Final = "/acp"
"""The path of the Agent Client Protocol, over WebSockets and streamable HTTP."""

CONNECTION_ID: Final = "Acp-Connection-Id"
"""The header with the id of a connection of the Agent Client Protocol."""

DOORS: Final = frozenset({AHP_PATH, ACP_PATH})
"""The paths whose clients present a token with their first request."""

METHODS: Final = (b"POST ", b"DELETE ")
"""The beginnings of requests that are none for files and none for WebSockets."""

_ALLOWED: Final = {ACP_PATH: "GET, POST, DELETE", AHP_PATH: "GET", RPC_PATH: "GET"}

EDITOR_ORIGIN: Final = "vscode-file://vscode-app"
"""The origin of the windows of VS Code, whose connections present a token at once."""

NOT_BUILT: Final = (
    "The page is not part of this installation.\n\n"
    "'jumpseat web' in a terminal of this machine tells how to get it. Released packages contain it.\n"
)

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

# Browsers keep what they have compiled of a script only together with the script.
_FOREVER: Final = "public, max-age=31536000, immutable"
_HASH_LENGTH: Final = 8


class Answer(Struct, frozen=True):
    """The answer to a request for a file. One to a HEAD request has the length of ``body``, without the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def has_page(static: Path = STATIC) -> bool:
    """Return whether the page is part of this installation."""
    return (static / "index.html").is_file()


Prove: TypeAlias = Callable[[str, str, str], Mapping[str, str] | None]
"""Answers the id of a login, the nonce of a page, and the origin of the page."""


class Site:
    """The page of one server.

    ``host`` is the address that the server listens on, ``None`` for loopback. ``origins`` are further origins of
    the page, such as ``https://agents.example.org`` behind a proxy. ``about`` is the content of ``/about.json``,
    which tells ``jumpseat web`` that the server on a port is the expected one. ``prove`` answers ``/login``, for
    pages of ``port`` and of ``origins``.
    """

    def __init__(
        self,
        *,
        host: str | None = None,
        origins: Collection[str] = (),
        tls: bool = False,
        about: bytes = b"{}",
        port: int = 0,
        prove: Prove | None = None,
        static: Path = STATIC,
    ) -> None:
        self._origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        named = {(urlsplit(origin).hostname or "") for origin in self._origins}
        own = {f"[{host}]" if ":" in host else host.lower()} if host is not None else set[str]()
        self._names = _LOOPBACK | own | named
        self._scheme = "https" if tls else "http"
        self._about = about
        self._port = port
        self._prove = prove
        self._static = static

    def accepts_host(self, host: str | None) -> bool:
        """Return whether a request was meant for this server.

        A page of another site whose name resolves to this machine sends the name of that site.
        """
        if host is None:
            return False
        name, _, port = host.lower().rpartition(":") if not host.endswith("]") else (host.lower(), "", "")
        return (name if port.isdecimal() else host.lower()) in self._names

    def accepts_origin(self, origin: str | None, host: str | None) -> bool:
        """Return whether a connection comes from the page of this server, or from a program.

        Browsers always send the origin of a WebSocket connection; programs need not.
        """
        if origin is None:
            return True
        origin = origin.lower()
        return origin in self._origins or (host is not None and origin == f"{self._scheme}://{host.lower()}")

    def get(self, path: str, host: str) -> Answer:
        """Return the file at a path, or an answer that says why there is none."""
        path, _, query = path.partition("?")
        if path == "/login" and self._prove is not None:
            return self._login(query, host)
        if path == "/about.json":
            return Answer(200, {**_HEADERS, "Content-Type": "application/json"}, self._about)
        name = "index.html" if path == "/" else path.removeprefix("/")
        try:
            # Only names in the listing are read: a path cannot lead elsewhere.
            known = {entry.name for entry in self._static.iterdir()}
            if "index.html" not in known:
                return _text(503, NOT_BUILT)
            if name not in known or Path(name).suffix not in _TYPES:
                return _text(404, "Not found.\n")
            body = (self._static / name).read_bytes()
        except OSError:
            return _text(503, NOT_BUILT)
        headers = {**_HEADERS, "Content-Type": _TYPES[Path(name).suffix]}
        if _tells_content(name):
            headers["Cache-Control"] = _FOREVER
        if name.endswith(".html"):
            headers["Content-Security-Policy"] = self._policy(host)
        return Answer(200, headers, body)

    def refuse_method(self, path: str, host: str) -> Answer:
        """Return the answer to a request for a path by a method that it does not have."""
        name = path.partition("?")[0]
        if name not in _ALLOWED and (found := self.get(path, host)).status != HTTPStatus.OK:
            return found
        answer = _text(HTTPStatus.METHOD_NOT_ALLOWED, "Not by this method.\n")
        return Answer(answer.status, {**answer.headers, "Allow": _ALLOWED.get(name, "GET, HEAD")}, answer.body)

    def _login(self, query: str, host: str) -> Answer:
        """Answer the question of a page whether this is a server that knows its login."""
        try:
            given = parse_qs(query, max_num_fields=5)
        except ValueError:
            return _text(400, "Too many parameters.\n")
        origin = self._origin(host)
        found = None
        if self._prove is not None and origin is not None:
            found = self._prove(given.get("id", [""])[0], given.get("nonce", [""])[0], origin)
        if found is None:
            return _text(404, "Unknown login.\n")
        return Answer(200, {**_HEADERS, "Content-Type": "application/json"}, json.dumps(found).encode())

    def _origin(self, host: str) -> str | None:
        """Return the origin of the page at a host; ``None`` for one that belongs to another server.

        A program at another port may pass on the question of a page, to get at its login.
        """
        named = next((one for one in self._origins if urlsplit(one).netloc == host.lower()), None)
        port = host.rpartition(":")[2] if not host.endswith("]") else ""
        default = {"http": "80", "https": "443"}[self._scheme]
        is_own = (port if port.isdecimal() else default) == str(self._port)
        return named or (f"{self._scheme}://{host.lower()}" if is_own else None)

    def _policy(self, host: str) -> str:
        """Return the content security policy of the page: no content of a session can run or load anything.

        ``'self'`` does not include WebSocket connections in all browsers, so that they are named.
        """
        socket = f"{'wss' if self._scheme == 'https' else 'ws'}://{host}"
        return "; ".join(
            (
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "img-src 'self' data: blob:",
                f"connect-src 'self' {socket}",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
                "require-trusted-types-for 'script'",
                "trusted-types dompurify 'allow-duplicates'",
            )
        )


def _tells_content(name: str) -> bool:
    """Return whether a name ends with a hash of the content, as in ``app-5EQZK2V7.js``."""
    _, _, digest = Path(name).stem.rpartition("-")
    return len(digest) == _HASH_LENGTH and digest.isalnum() and digest.upper() == digest


def _text(status: int, text: str) -> Answer:
    return Answer(status, {**_HEADERS, "Content-Type": "text/plain; charset=utf-8"}, text.encode())
