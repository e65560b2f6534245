"""The MCP servers that a user has set up with a client: ``mcp-config.json`` in the home folder.

Read anew each time: other programs write it too. What in it is not ours stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import orjson

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.files import read_text, write_text

log = logging.getLogger(__name__)

FILE: Final = "mcp-config.json"
_SERVERS: Final = "mcpServers"
_DISABLED: Final = "disabledServers"


class McpConfigFile:
    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def exists(self) -> bool:
        return self._path.exists()

    def servers(self) -> Mapping[str, Any]:
        """The servers as they stand there. A broken file has none."""
        try:
            return _part(self._read(), _SERVERS, dict[str, Any]())
        except StoreError as error:
            log.warning("%s", error)
            return {}

    def disabled(self) -> frozenset[str]:
        """The names of those that are switched off."""
        try:
            names = _part(self._read(), _DISABLED, list[Any]())
        except StoreError:
            return frozenset()
        return frozenset(name for name in names if isinstance(name, str))

    def add(self, name: str, config: Mapping[str, Any], *, replace: bool) -> None:
        """Put a server there, or another in its place.

        Raises:
            InvalidRequestError: there is one of that name, or none to replace.
            StoreError: the file cannot be read or written; what is no JSON object is not overwritten.
        """
        whole = self._read()
        servers = _part(whole, _SERVERS, dict[str, Any]())
        if replace and name not in servers:
            raise InvalidRequestError(f"MCP server {name!r} is not configured in {FILE}")
        if not replace and name in servers:
            raise InvalidRequestError(f"MCP server {name!r} is configured already")
        self._write({**whole, _SERVERS: {**servers, name: dict(config)}})

    def remove(self, name: str) -> None:
        """Take a server out.

        Raises:
            InvalidRequestError: it is not there.
            StoreError: as in :meth:`add`.
        """
        whole = self._read()
        servers = dict(_part(whole, _SERVERS, dict[str, Any]()))
        if name not in servers:
            raise InvalidRequestError(f"MCP server {name!r} is not configured in {FILE}")
        del servers[name]
        disabled = [one for one in _part(whole, _DISABLED, list[Any]()) if one != name]
        self._write({**whole, _SERVERS: servers, _DISABLED: disabled})

    def switch(self, names: Iterable[str], *, on: bool) -> None:
        """Switch servers on or off, for sessions that begin from now on.

        Raises:
            StoreError: as in :meth:`add`.
        """
        whole = self._read()
        names = list(dict.fromkeys(names))
        rest = [one for one in _part(whole, _DISABLED, list[Any]()) if one not in names]
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
        # Its values may be keys.
        write_text(self._path, orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n", private=True)


def _part(whole: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    part = whole.get(name)
    return part if isinstance(part, type(otherwise)) else otherwise
