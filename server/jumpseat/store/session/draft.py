"""The prompt that a person has begun to write in a session: ``draft.json`` and ``draft-attachments.json``.

Both are apart because the text changes with each word, and attachments may be large. The server never interprets
them. A draft is no part of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import orjson

from jumpseat.errors import InvalidRequestError
from jumpseat.store.session.state_files import StateFiles, store_error

TEXT_FILE: Final = "draft.json"
ATTACHMENTS_FILE: Final = "draft-attachments.json"
LARGEST_TEXT: Final = 4 * 1024 * 1024
LARGEST_ATTACHMENTS_BYTES: Final = 48 * 1024 * 1024


class Draft:
    """The draft of one session."""

    def __init__(self, state: StateFiles) -> None:
        self._state = state

    def exists(self) -> bool:
        """Return whether anything is stored."""
        return bool(self.text() or self.attachments())

    def text(self) -> str:
        """Return the text; empty if there is none that can be read."""
        found = self._read(TEXT_FILE)
        return found if isinstance(found, str) else ""

    def attachments(self) -> list[dict[str, Any]]:
        """Return the attachments, as the client has stored them; none if they cannot be read."""
        found = self._read(ATTACHMENTS_FILE)
        if not isinstance(found, list):
            return []
        return [cast("dict[str, Any]", one) for one in cast("list[Any]", found) if isinstance(one, dict)]

    def write(self, text: str, attachments: Sequence[dict[str, Any]] | None) -> None:
        """Replace the text, and the attachments unless they are ``None``.

        Raises:
            InvalidRequestError: the draft is too large.
            StoreError: it cannot be written.
        """
        if len(text) > LARGEST_TEXT:
            raise InvalidRequestError(f"text: expected at most {LARGEST_TEXT} characters, got {len(text)}")
        self._write(TEXT_FILE, text, LARGEST_TEXT * 6)
        if attachments is not None:
            self._write(ATTACHMENTS_FILE, attachments, LARGEST_ATTACHMENTS_BYTES)

    def _read(self, name: str) -> Any:
        try:
            return orjson.loads(self._state.read(name) or b"null")
        except (OSError, ValueError):
            return None

    def _write(self, name: str, content: str | Sequence[dict[str, Any]], largest: int) -> None:
        try:
            data = orjson.dumps(content)
        except TypeError:
            raise InvalidRequestError("the draft has characters that are not valid Unicode") from None
        if len(data) > largest:
            raise InvalidRequestError(f"the draft has {len(data)} bytes, expected at most {largest}")
        try:
            if content:
                self._state.write(name, data)
            else:
                self._state.remove(name)
        except OSError as error:
            raise store_error("write", name, error) from error
