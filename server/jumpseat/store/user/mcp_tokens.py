"""Stored logins to MCP servers: ``mcp-tokens.json`` in the home folder (mode 0600), by the URL of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "mcp-tokens.json"


class McpTokenFile:
    """The file with the logins; it is read at each use, because other processes change it, too."""

    def __init__(self, home: Path) -> None:
        self._file = PrivateFile(home / FILE)

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
