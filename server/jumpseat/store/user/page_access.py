"""The access of pages in browsers: passes, logins and the servers that have a page, in ``web`` of the home folder.

A pass is part of the address that ``jumpseat web`` opens. It is valid once, for a minute and for one server, so
that the address in the browser's history is worthless. A page that has used a pass gets a login, which it keeps for
its tab. Both are 256 random bits, and have a file (mode 0600) with the name of their hash.
"""

from __future__ import annotations

import hashlib
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
from jumpseat.system.private_files import create_private_folder, owner_only

PASS_S: Final = 60.0
"""The time for which a pass is valid, in seconds."""

LOGIN_S: Final = 7 * 86400.0
"""The time for which a login is valid after its last use, in seconds."""

_PASS: Final = "pass-"  # noqa: S105 - the beginning of all passes
_LOGIN: Final = "page-"
_LARGEST_BYTES: Final = 4096


class PageServer(Struct, frozen=True):
    """A server with a page, which may have been killed. ``url`` is its address, such as ``http://127.0.0.1:4322``."""

    pid: int
    url: str
    started_at: str


class PageAccess:
    """The passes, logins and servers of a home folder."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = home / "web"
        self._now = now

    def add_pass(self, pid: int) -> str:
        """Create a pass for the server with a process id, and return its text.

        Raises:
            StoreError: the file cannot be written.
        """
        return self._add(_PASS, str(pid).encode())

    def page_address(self, url: str, pid: int) -> str:
        """Return an address of a server's page that logs its browser in, once.

        Browsers do not send what follows ``#``, and the page removes it from the history.

        Raises:
            StoreError: the pass cannot be stored.
        """
        return f"{url}/#pass={self.add_pass(pid)}"

    def add_login(self) -> str:
        """Create a login and return its text.

        Raises:
            StoreError: the file cannot be written.
        """
        return self._add(_LOGIN, b"")

    def accepts(self, token: str) -> bool:
        """Return whether a token is a valid pass for this server, which it is no longer afterwards, or a login."""
        if token.startswith(_PASS):
            return self._use_pass(token)
        if not token.startswith(_LOGIN):
            return False
        path = self._path(token)
        try:
            is_valid = self._age_s(path) <= LOGIN_S
            if is_valid:
                os.utime(path, (self._now(), self._now()))
        except OSError:
            return False
        return is_valid

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
        entry = orjson.dumps({"url": url, "startedAt": utc_now()})
        self._write(self._folder / f"server-{os.getpid()}", entry, os.O_TRUNC)

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
        return self._folder / f"{token[:5]}{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def _age_s(self, path: Path) -> float:
        return self._now() - path.stat().st_mtime

    def _add(self, kind: str, content: bytes) -> str:
        token = kind + secrets.token_urlsafe(32)
        self._write(self._path(token), content, os.O_EXCL)
        os.utime(self._path(token), (self._now(), self._now()))
        self._remove_expired()
        return token

    def _write(self, path: Path, content: bytes, how: int) -> None:
        try:
            create_private_folder(self._folder)
            with open(owner_only(str(path), os.O_WRONLY | os.O_CREAT | how), "wb") as file:
                file.write(content)
        except OSError as error:
            raise StoreError(f"cannot write in {str(self._folder)!r}: {error.strerror or error}") from error

    def _remove_expired(self) -> None:
        for kind, seconds in ((_PASS, PASS_S), (_LOGIN, LOGIN_S)):
            for path in self._folder.glob(f"{kind}*"):
                with suppress(OSError):
                    if self._age_s(path) > seconds:
                        path.unlink()


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
    return PageServer(int(pid), url, started_at)
