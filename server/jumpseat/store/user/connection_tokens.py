"""Named connection tokens: ``connection-tokens.json`` in the home folder (mode 0600), by name.

Only hashes are stored. A token is 256 random bits, so that a fast hash without salt is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from jumpseat.agent.clock import utc_now
from jumpseat.errors import InvalidRequestError
from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "connection-tokens.json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


class ConnectionToken(Struct, frozen=True):
    """A stored token. ``digest`` is the SHA-256 hash of its text, in hexadecimal; ``created_at`` is ISO 8601."""

    name: str
    digest: str
    all: bool
    created_at: str


class ConnectionTokenFile:
    """The file with the tokens, which is read at each use because ``jumpseat token`` changes it."""

    def __init__(self, home: Path) -> None:
        self._file = PrivateFile(home / FILE)

    def all(self) -> list[ConnectionToken]:
        """Return all tokens in the order of their creation."""
        tokens = [_parse(name, value) for name, value in self._file.read().items()]
        return [token for token in tokens if token is not None]

    def find(self, text: str) -> ConnectionToken | None:
        """Return the token with that text; ``None`` if there is none."""
        digest = _digest(text)
        matching = [token for token in self.all() if hmac.compare_digest(token.digest, digest)]
        return matching[0] if matching else None

    def add(self, name: str, *, all_sessions: bool) -> str:
        """Create a token and return its text, which is not stored.

        Raises:
            InvalidRequestError: the name is invalid or taken.
            StoreError: the file cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise InvalidRequestError(
                f"invalid name {name[:100]!r}: expected 1 to 64 letters, digits, '.', '_', '@' or '-',"
                " beginning with a letter or a digit"
            )
        text = secrets.token_urlsafe(32)

        def change(tokens: dict[str, Any]) -> None:
            if name in tokens:
                raise InvalidRequestError(f"there is a token {name!r} already: revoke it first")
            tokens[name] = {"sha256": _digest(text), "all": all_sessions, "createdAt": utc_now()}

        self._file.change(change)
        return text

    def revoke(self, name: str) -> bool:
        """Remove a token; return whether there was one.

        Raises:
            StoreError: the file cannot be written.
        """
        return self._file.change(lambda tokens: tokens.pop(name, None)) is not None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _parse(name: str, value: Any) -> ConnectionToken | None:
    """Return a stored token; ``None`` if it is invalid."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    digest, created_at = fields.get("sha256"), fields.get("createdAt")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        return None
    return ConnectionToken(
        name, digest, fields.get("all") is True, created_at if isinstance(created_at, str) else ""
    )
