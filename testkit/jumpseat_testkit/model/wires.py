"""The interface of a wire from the provider's side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

from jumpseat_protocol.json_values import as_list, as_object, as_text
from jumpseat_testkit.model.calls import Answer, ModelCall, Piece

JsonObject: TypeAlias = dict[str, Any]
ServerEvent: TypeAlias = tuple[str | None, Any]
"""The name of a server-sent event, ``None`` without one, and its data: JSON, or a string that is sent as it is."""


class Wire(ABC):
    """One response to a request in the format of a provider."""

    @abstractmethod
    def __init__(self, model: str) -> None: ...

    @staticmethod
    @abstractmethod
    def read(fields: JsonObject) -> ModelCall:
        """Parse the body of a request.

        Raises:
            ValueError: the body has no messages.
        """

    @abstractmethod
    def whole(self, answer: Answer) -> JsonObject:
        """Return the body of a response that is not streamed."""

    @abstractmethod
    def encode(self, piece: Piece) -> Iterator[ServerEvent]:
        """Yield the events of a streamed response for a piece; after the answer, the response is complete."""

    @abstractmethod
    def failure(self, message: str, code: str | None) -> JsonObject:
        """Return the body of an error."""


def text_of(content: Any, between: str = "\n") -> str:
    """Return the text of a content: a string, or an array of parts, with ``between`` between them."""
    if isinstance(content, list):
        return between.join(
            as_text(part.get("text")) for part in map(as_object, as_list(content)) if "text" in part
        )
    return as_text(content)
