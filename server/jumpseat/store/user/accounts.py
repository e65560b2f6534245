"""Stored GitHub logins: ``accounts.json`` in the home folder (mode 0600).

Their tokens are in the keyring of the operating system. Where there is none, the file keeps one login with its
token, so that a machine has at most one token in plain text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, cast

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.clock import utc_now
from jumpseat.errors import InvalidRequestError, ProviderAuthError
from jumpseat.store.user.keyring import Keyring, in_thread
from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "accounts.json"


class StoredLogin:
    """A stored login, as :class:`jumpseat.agent.settings.Login`.

    ``id`` is ``NAME@HOST``. The token of a ``plain`` login is in the file.
    """

    def __init__(
        self, login_id: str, host: str, name: str, read_token: Callable[[], str | None], *, plain: bool
    ) -> None:
        self.id = login_id
        self.plain = plain
        self.auth_type = "user"
        self.host = host
        self.name: str | None = name
        self.facts: JsonObject | None = None
        self.variable: str | None = None
        self._read_token = read_token
        self._token: str | None = None

    async def token(self) -> str:
        """See :meth:`jumpseat.agent.settings.Login.token`."""
        if self._token is None:
            self._token = await in_thread(self._read_token)
        if self._token is None:
            raise ProviderAuthError(f"the token of {self.id!r} is no longer in the keyring: log in again")
        return self._token


class Accounts:
    """The stored logins. The file is read at each use, because other processes change it, too.

    ``mask`` gets the tokens, which must not appear in any output.
    """

    def __init__(self, home: Path, mask: Callable[[Iterable[str]], None] = lambda _: None) -> None:
        self._file = PrivateFile(home / FILE)
        self._keyring = Keyring()
        self._mask = mask
        # By id, with the entry that they were made from.
        self._logins: dict[str, tuple[JsonObject, StoredLogin]] = {}

    async def all(self) -> list[StoredLogin]:
        """Return all logins, the current one first."""
        stored = await in_thread(self._file.read)
        current = stored.get("current")
        logins = [
            login
            for login_id, entry in _entries(stored).items()
            if (login := self._login(login_id, entry)) is not None
        ]
        return sorted(logins, key=lambda login: login.id != current)

    async def current(self) -> StoredLogin | None:
        """Return the login in use; ``None`` if there is none."""
        return next(iter(await self.all()), None)

    async def find(self, login_id: str) -> StoredLogin:
        """Return the login with an id.

        Raises:
            InvalidRequestError: there is none.
        """
        for login in await self.all():
            if login.id == login_id:
                return login
        raise InvalidRequestError(f"there is no stored login {login_id!r}")

    async def add(self, host: str, name: str, token: str) -> StoredLogin:
        """Store a login and make it the current one. Without a keyring, it replaces the one in the file.

        Raises:
            StoreError: neither the keyring nor the file can be written.
        """
        self._mask([token])
        login_id = id_of(host, name)

        def store() -> JsonObject:
            entry: JsonObject = {"host": host, "login": name, "since": utc_now()}
            if not self._keyring.put(login_id, token):
                entry["token"] = token

            def change(stored: JsonObject) -> None:
                entries = _entries(stored)
                entries.pop(login_id, None)
                if "token" in entry:
                    entries = {other: kept for other, kept in entries.items() if "token" not in kept}
                stored["current"] = login_id
                stored["accounts"] = {**entries, login_id: entry}

            self._file.change(change)
            return entry

        entry = await in_thread(store)
        login = self._login(login_id, entry)
        assert login is not None
        return login

    async def remove(self, login_id: str) -> bool:
        """Remove a login and return whether others are left; the login before it becomes the current one.

        Raises:
            InvalidRequestError: there is no such login.
            StoreError: the file cannot be written.
        """

        def change(stored: JsonObject) -> tuple[JsonObject | None, bool]:
            entries = _entries(stored)
            removed = entries.pop(login_id, None)
            stored["accounts"] = entries
            if stored.get("current") == login_id:
                stored["current"] = next(reversed(entries), None)
            return removed, bool(entries)

        def remove() -> tuple[JsonObject | None, bool]:
            removed, left = self._file.change(change)
            if removed is not None and "token" not in removed:
                self._keyring.remove(login_id)
            return removed, left

        removed, left = await in_thread(remove)
        if removed is None:
            raise InvalidRequestError(f"there is no stored login {login_id!r}")
        return left

    def _login(self, login_id: str, entry: JsonObject) -> StoredLogin | None:
        known = self._logins.get(login_id)
        if known is not None and known[0] == entry:
            return known[1]
        host, name, token = entry.get("host"), entry.get("login"), entry.get("token")
        if not (isinstance(host, str) and isinstance(name, str) and isinstance(token, str | None)):
            return None

        def read_token() -> str | None:
            found = self._keyring.get(login_id) if token is None else token
            if found:
                self._mask([found])
            return found

        login = StoredLogin(login_id, host, name, read_token, plain=token is not None)
        self._logins[login_id] = (entry, login)
        return login


def id_of(host: str, name: str) -> str:
    """Return the id of the login ``name`` at ``host``, a URL or the name of a host."""
    return f"{name}@{host.partition('://')[2] or host}".rstrip("/").lower()


def _entries(stored: JsonObject) -> dict[str, JsonObject]:
    accounts: Any = stored.get("accounts")
    found = cast("dict[str, Any]", accounts) if isinstance(accounts, dict) else {}
    return {login_id: cast("JsonObject", entry) for login_id, entry in found.items() if isinstance(entry, dict)}
