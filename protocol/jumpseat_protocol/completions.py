"""``session.completions.*``: completions of what a user types, for clients that have none of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class TriggerCharactersResult(WireModel):
    """The characters after which a client asks for completions; none, unless the client has requested them."""

    trigger_characters: list[str]
    """The characters."""


class CompletionsParams(SessionParams):
    """``offset`` is the position of the cursor in ``text``, in UTF-16 code units."""

    text: str
    """The text in the input."""
    offset: int = Field(ge=0)
    """The position of the cursor, in UTF-16 code units."""


class CompletionItem(WireModel):
    """A text that takes the place of a range of the user's text, in UTF-16 code units; the end is exclusive."""

    insert_text: str
    """The text to insert."""
    label: str | None = None
    """The text to show."""
    kind: Literal["command", "choice", "document"] | None = None
    range_start: int | None = None
    """Where the replaced text begins, in UTF-16 code units."""
    range_end: int | None = None
    """Where it ends."""


class CompletionsResult(WireModel):
    items: list[CompletionItem]
    """The completions."""


METHODS: Final[Mapping[str, Method]] = {
    "session.completions.getTriggerCharacters": Method(
        SessionParams, TriggerCharactersResult, "Return after which characters to ask for completions."
    ),
    "session.completions.request": Method(
        CompletionsParams, CompletionsResult, "Return completions for the text at the cursor."
    ),
}
