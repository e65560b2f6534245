"""The access of pages in browsers: passes, logins and the servers that have a page, in ``web`` of the home folder.

A pass is part of the address that ``jumpseat web`` opens. It is valid once, for a minute and for one server, so
that the address in the browser's history is worthless. Its file (mode 0600) has the name of its hash.

A page that has used a pass gets a login: a key, which it never sends again. Whoever gets the port of a server that
has ended could serve or answer the page, so both sides prove that they have the key, for the origin that the page
was loaded from, such as ``http://127.0.0.1:4322``:

1. The page sends the id of its login and a nonce. The server answers with a nonce of its own and its proof.
2. The page connects with the token ``login-ID.NONCE.PROOF``, with the nonce of the server.

A proof is HMAC-SHA256 over the lines ``server`` or ``page``, the origin, the nonce of the page and that of the
server; keys, nonces and proofs are written in base64url without padding.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import orjson
from msgspec import Struct

from jumpseat.agent.clock import utc_now
from jumpseat.errors import StoreError
from jumpseat.store.session.files import write_text
from jumpseat.system.private_files import create_private_folder, owner_only

PASS_S: Final = 60.0
"""The time for which a pass is valid, in seconds."""

LOGIN_S: Final = 7 * 86400.0
"""The time for which a login is valid after its last use, in seconds."""

CHALLENGE_S: Final = 30.0
"""The time for which the nonce of a server is valid, in seconds."""

MOST_CHALLENGES: Final = 1000
"""The nonces that a server remembers, the latest ones."""

_PASS: Final = "pass-"  # noqa: S105 - the beginning of all passes
_LOGIN: Final = "login-"
_FILE: Final = "page-"
_LARGEST_BYTES: Final = 4096
_LONGEST_ID: Final = 64


class PageServer(Struct, frozen=True):
    """A server with a page, which may have been killed. ``url`` is its address, such as ``http://127.0.0.1:4322``.

    ``id`` is the random id that the server at the address reports; empty for servers of older versions.
    """

    pid: int
    url: str
    started_at: str
    id: str = ""


class Login(Struct, frozen=True):
    """A login: its id, which is no secret, and its key."""

    id: str
    key: str


class Challenge(Struct, frozen=True):
    """A nonce of the server, and its proof for the nonce of a page."""

    nonce: str
    proof: str


class PageAccess:
    """The passes, logins and servers of a home folder."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = home / "web"
        self._now = now
        # A random id, which distinguishes this server from one that listens on its port later.
        self.server_id = secrets.token_urlsafe(12)
        # By the nonce of the server: when it was made, and the proof that the page has to give.
        self._challenges: dict[str, tuple[float, str, str]] = {}

    def add_pass(self, pid: int) -> str:
        """Create a pass for the server with a process id, and return its text.

        Raises:
            StoreError: the file cannot be written.
        """
        token = _PASS + secrets.token_urlsafe(32)
        self._add(self._path(token), str(pid).encode())
        return token

    def page_address(self, url: str, pid: int) -> str:
        """Return an address of a server's page that logs its browser in, once.

        Browsers do not send what follows ``#``, and the page removes it from the history.

        Raises:
            StoreError: the pass cannot be stored.
        """
        return f"{url}/#pass={self.add_pass(pid)}"

    def add_login(self, origin: str) -> Login:
        """Create a login for the pages of an origin.

        Raises:
            StoreError: the file cannot be written.
        """
        login = Login(secrets.token_hex(16), secrets.token_urlsafe(32))
        self._add(self._folder / f"{_FILE}{login.id}", orjson.dumps({"key": login.key, "origin": origin}))
        return login

    def remove_login(self, login_id: str) -> bool:
        """Remove a login; return whether there was one."""
        if not _is_id(login_id):
            return False
        try:
            (self._folder / f"{_FILE}{login_id}").unlink()
        except OSError:
            return False
        return True

    def challenge(self, login_id: str, page_nonce: str, origin: str) -> Challenge | None:
        """Prove to a page that this server knows its login; ``None`` if it does not, for this origin."""
        key = self._key(login_id, origin)
        if key is None:
            return None
        nonce = secrets.token_urlsafe(32)
        while len(self._challenges) >= MOST_CHALLENGES:
            self._challenges.pop(next(iter(self._challenges)))
        expected = _proof(key, "page", origin, page_nonce, nonce)
        self._challenges[nonce] = (self._now(), login_id, expected)
        return Challenge(nonce, _proof(key, "server", origin, page_nonce, nonce))

    def accepts(self, token: str) -> bool:
        """Return whether a token is a valid pass for this server, or proves a login. It is not valid again."""
        if token.startswith(_PASS):
            return self._use_pass(token)
        login_id, _, rest = token.removeprefix(_LOGIN).partition(".")
        nonce, _, proof = rest.partition(".")
        if not token.startswith(_LOGIN) or (challenge := self._challenges.pop(nonce, None)) is None:
            return False
        made, expected_id, expected = challenge
        given = proof.encode("utf-8", "surrogatepass")
        if login_id != expected_id or not hmac.compare_digest(given, expected.encode()):
            return False
        if self._now() - made > CHALLENGE_S:
            return False
        with suppress(OSError):
            os.utime(self._folder / f"{_FILE}{login_id}", (self._now(), self._now()))
        return True

    def _key(self, login_id: str, origin: str) -> bytes | None:
        if not _is_id(login_id):
            return None
        path = self._folder / f"{_FILE}{login_id}"
        try:
            if self._age_s(path) > LOGIN_S:
                return None
            with path.open("rb") as file:
                value: Any = orjson.loads(file.read(_LARGEST_BYTES))
        except (OSError, ValueError):
            return None
        if not isinstance(value, dict):
            return None
        members = cast("dict[str, Any]", value)
        key = members.get("key")
        return key.encode() if isinstance(key, str) and members.get("origin") == origin else None

    def _use_pass(self, token: str) -> bool:
        path = self._path(token)
        try:
            age_s, pid = self._age_s(path), path.read_bytes()
            # Only one of several connections with the same pass succeeds.
            path.unlink()
        except OSError:
            return False
        return age_s <= PASS_S and pid == str(os.getpid()).encode()

    def add_server(self, url: str) -> None:
        """Add this process to the servers.

        Raises:
            StoreError: the file cannot be written.
        """
        entry = orjson.dumps({"url": url, "startedAt": utc_now(), "id": self.server_id})
        write_text(self._folder / f"server-{os.getpid()}", entry.decode())

    def remove_server(self, pid: int) -> None:
        """Remove a server that has ended."""
        with suppress(OSError):
            (self._folder / f"server-{pid}").unlink(missing_ok=True)

    def servers(self) -> list[PageServer]:
        """Return the servers in the order of their start."""
        try:
            paths = list(self._folder.glob("server-*"))
        except OSError:
            return []
        found = [server for path in paths if (server := _read_server(path)) is not None]
        return sorted(found, key=lambda server: server.started_at)

    def _path(self, token: str) -> Path:
        return self._folder / f"{_PASS}{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def _age_s(self, path: Path) -> float:
        return self._now() - path.stat().st_mtime

    def _add(self, path: Path, content: bytes) -> None:
        try:
            create_private_folder(self._folder)
            with open(owner_only(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(content)
        except OSError as error:
            raise StoreError(f"cannot write in {str(self._folder)!r}: {error.strerror or error}") from error
        os.utime(path, (self._now(), self._now()))
        self._remove_expired()

    def _remove_expired(self) -> None:
        for kind, seconds in ((_PASS, PASS_S), (_FILE, LOGIN_S)):
            for path in self._folder.glob(f"{kind}*"):
                with suppress(OSError):
                    if self._age_s(path) > seconds:
                        path.unlink()


def _is_id(text: str) -> bool:
    return text.isascii() and text.isalnum() and len(text) <= _LONGEST_ID


def _proof(key: bytes, who: str, origin: str, page_nonce: str, server_nonce: str) -> str:
    text = "\n".join((who, origin, page_nonce, server_nonce)).encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(hmac.digest(key, text, "sha256")).rstrip(b"=").decode()


def _read_server(path: Path) -> PageServer | None:
    pid = path.name.removeprefix("server-")
    try:
        with path.open("rb") as file:
            value: Any = orjson.loads(file.read(_LARGEST_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict) or not pid.isdecimal():
        return None
    members = cast("dict[str, Any]", value)
    url, started_at = members.get("url"), members.get("startedAt")
    if not isinstance(url, str) or not isinstance(started_at, str):
        return None
    server_id = members.get("id", "")
    return PageServer(int(pid), url, started_at, server_id if isinstance(server_id, str) else "")
