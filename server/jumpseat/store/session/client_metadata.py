"""Strings that clients keep with a session: ``client-metadata.json`` in its folder, ``{version, entries}``.

The server never interprets them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, cast

import orjson

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.session.state_files import StateFiles, store_error

FILE: Final = "client-metadata.json"
VERSION: Final = 1
MOST_ENTRIES: Final = 128
LARGEST_KEY_BYTES: Final = 256
LARGEST_VALUE_BYTES: Final = 16 * 1024
LARGEST_BYTES: Final = 64 * 1024
"""Largest file."""

_RESERVED: Final = ("copilot/", "github/")


class CorruptMetadataError(StoreError):
    """The file is not what this class has written."""


class UnknownVersionError(StoreError):
    """The file is of a newer program."""


class ClientMetadata:
    """The entries of one session."""

    def __init__(self, state: StateFiles) -> None:
        self._state = state

    def read(self) -> dict[str, str]:
        """Return all entries.

        Raises:
            CorruptMetadataError: the file is invalid.
            UnknownVersionError: the file has an unknown version.
            StoreError: the file cannot be read.
        """
        try:
            text = self._state.read(FILE)
        except OSError as error:
            raise store_error("read", FILE, error) from error
        if text is None:
            return {}
        try:
            content: Any = orjson.loads(text)
        except ValueError:
            raise CorruptMetadataError("client-metadata.json is not JSON") from None
        if not isinstance(content, dict):
            raise CorruptMetadataError("client-metadata.json is not an object")
        fields = cast("dict[str, Any]", content)
        if fields.get("version") != VERSION:
            raise UnknownVersionError(f"client-metadata.json has the version {str(fields.get('version'))[:20]!r}")
        entries = fields.get("entries")
        if not isinstance(entries, dict) or not all(
            isinstance(value, str) for value in cast("dict[str, Any]", entries).values()
        ):
            raise CorruptMetadataError("client-metadata.json: entries is not an object of strings")
        return cast("dict[str, str]", entries)

    async def update(self, *, clear: bool, remove: Collection[str], entries: Mapping[str, str]) -> dict[str, str]:
        """Clear, remove, then set entries, all or nothing; return what is stored then.

        Raises:
            InvalidRequestError: a key or value is invalid, or the entries are too many or too large.
            StoreError: the file cannot be read or written.
        """
        check_keys([*remove, *entries])
        for key, value in entries.items():
            if len(value.encode("utf-8", "surrogatepass")) > LARGEST_VALUE_BYTES:
                raise InvalidRequestError(f"the value of {key!r} has more than {LARGEST_VALUE_BYTES} bytes")
        stored = {} if clear else self.read()
        for key in remove:
            stored.pop(key, None)
        stored.update(entries)
        if len(stored) > MOST_ENTRIES:
            raise InvalidRequestError(f"{len(stored)} entries, expected at most {MOST_ENTRIES}")
        try:
            text = orjson.dumps({"version": VERSION, "entries": stored})
        except TypeError:
            raise InvalidRequestError("a key or value has characters that are not valid Unicode") from None
        if len(text) > LARGEST_BYTES:
            raise InvalidRequestError(f"the entries have more than {LARGEST_BYTES} bytes")
        try:
            self._state.write(FILE, text)
        except OSError as error:
            raise store_error("write", FILE, error) from error
        await self._state.flush()
        return stored


def check_keys(keys: Collection[str]) -> None:
    """Check the names of entries.

    Raises:
        InvalidRequestError: a name is empty, too long or reserved.
    """
    for key in keys:
        if not key or len(key.encode("utf-8", "surrogatepass")) > LARGEST_KEY_BYTES:
            raise InvalidRequestError(
                f"key {key[:50]!r}: expected a name of at most {LARGEST_KEY_BYTES} bytes that is not empty"
            )
        if key.startswith(_RESERVED):
            raise InvalidRequestError(f"key {key[:50]!r}: names that begin with copilot/ or github/ are reserved")
