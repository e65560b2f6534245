"""The user's MCP servers that clients configure, in ``mcp-config.json``, and their logins, in ``mcp-tokens.json``.

The configuration is read at each use, because other programs write it, too. Unknown keys stay in it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import orjson

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.session.files import read_text, write_text
from jumpseat.store.user.private_file import PrivateFile

log = logging.getLogger(__name__)

FILE: Final = "mcp-config.json"
_SERVERS: Final = "mcpServers"
_DISABLED: Final = "disabledServers"


class McpConfigFile:
    """The file with the user's servers."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def exists(self) -> bool:
        """Return whether there is such a file."""
        return self._path.exists()

    def servers(self) -> Mapping[str, Any]:
        """Return the settings of the servers by name, unchecked; a broken file counts as empty."""
        try:
            return _part(self._read(), _SERVERS, dict[str, Any]())
        except StoreError as error:
            log.warning("%s", error)
            return {}

    def disabled(self) -> frozenset[str]:
        """Return the names of the disabled servers; a broken file counts as empty."""
        try:
            names = _part(self._read(), _DISABLED, list[Any]())
        except StoreError:
            return frozenset()
        return frozenset(name for name in names if isinstance(name, str))

    def add(self, name: str, config: Mapping[str, Any], *, replace: bool) -> None:
        """Add a server, or with ``replace`` change one.

        Raises:
            InvalidRequestError: the name is taken, or with ``replace`` unknown.
            StoreError: the file cannot be read or written, or is not a JSON object.
        """
        whole = self._read()
        servers = _part(whole, _SERVERS, dict[str, Any]())
        if replace and name not in servers:
            raise InvalidRequestError(f"MCP server {name!r} is not configured in {FILE}")
        if not replace and name in servers:
            raise InvalidRequestError(f"MCP server {name!r} is already configured")
        self._write({**whole, _SERVERS: {**servers, name: dict(config)}})

    def remove(self, name: str) -> None:
        """Remove a server.

        Raises:
            InvalidRequestError: the server is not in the file.
            StoreError: as in :meth:`add`.
        """
        whole = self._read()
        servers = dict(_part(whole, _SERVERS, dict[str, Any]()))
        if name not in servers:
            raise InvalidRequestError(f"MCP server {name!r} is not configured in {FILE}")
        del servers[name]
        disabled = [server for server in _part(whole, _DISABLED, list[Any]()) if server != name]
        self._write({**whole, _SERVERS: servers, _DISABLED: disabled})

    def switch(self, names: Iterable[str], *, on: bool) -> None:
        """Enable or disable servers, for later sessions.

        Raises:
            StoreError: as in :meth:`add`.
        """
        whole = self._read()
        names = list(dict.fromkeys(names))
        rest = [server for server in _part(whole, _DISABLED, list[Any]()) if server not in names]
        self._write({**whole, _DISABLED: rest if on else [*rest, *names]})

    def _read(self) -> dict[str, Any]:
        text = read_text(self._path)
        if text is None:
            return {}
        try:
            whole = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise StoreError(f"{FILE} is not JSON: {error}") from None
        if not isinstance(whole, dict):
            raise StoreError(f"{FILE} is not a JSON object")
        return cast("dict[str, Any]", whole)

    def _write(self, whole: Mapping[str, Any]) -> None:
        # The settings of servers may hold secrets.
        write_text(self._path, orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n")


def _part(whole: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    part = whole.get(name)
    return part if isinstance(part, type(otherwise)) else otherwise


LOGIN_FILE: Final = "mcp-tokens.json"


class McpTokenFile:
    """The file with the logins; it is read at each use, because other processes change it, too.

    The secrets of registered clients are in the keyring.
    """

    def __init__(self, home: Path) -> None:
        self._file = PrivateFile(home / LOGIN_FILE)

    def all(self) -> dict[str, dict[str, Any]]:
        """Return all logins by URL."""
        return {
            url: cast("dict[str, Any]", value)
            for url, value in self._file.read().items()
            if isinstance(value, dict)
        }

    def get(self, url: str) -> dict[str, Any] | None:
        """Return the login for a URL; ``None`` if there is none."""
        return self.all().get(url)

    def put(self, url: str, login: dict[str, Any]) -> None:
        """Store a login.

        Raises:
            StoreError: the file cannot be written.
        """
        self._file.change(lambda logins: logins.update({url: login}))

    def remove(self, url: str) -> bool:
        """Remove a login; return whether there was one.

        Raises:
            StoreError: the file cannot be written.
        """
        return self._file.change(lambda logins: logins.pop(url, None)) is not None

    def client_secret(self, url: str, issuer: str, client_id: str) -> str | None:
        """Return the secret of a client of an authorization server; ``None`` if there is none."""
        # Imported here: few servers have such clients.
        from jumpseat.store.user.client_secrets import RegisteredClient, client_secret

        return client_secret(RegisteredClient(url, issuer, client_id))
