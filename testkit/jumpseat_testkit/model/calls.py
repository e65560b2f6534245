"""A call of a model and the pieces of its answer, apart from any wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct, field

StopReason: TypeAlias = Literal[
    "end_turn", "tool_use", "max_tokens", "refusal", "content_filter", "stop_sequence", "pause_turn"
]


class Said(Struct, frozen=True):
    """A message of the conversation; that of tools has the text of the last result."""

    role: Literal["user", "assistant", "tool"]
    text: str


class ModelCall(Struct):
    """A request to the model. ``tools`` are the names on offer; ``owner`` tells conversations apart."""

    model: str
    system: str
    messages: list[Said]
    tools: list[str] = field(default_factory=list[str])
    stream: bool = False
    owner: str = ""


class TextPiece(Struct, frozen=True):
    """A part of the text."""

    text: str


class ReasoningPiece(Struct, frozen=True):
    """A part of the reasoning."""

    text: str


class CallPiece(Struct, frozen=True):
    """A part of a tool call. ``arguments`` is a part of their JSON text."""

    id: str
    name: str
    arguments: str


class Tokens(Struct, frozen=True):
    """The usage of a call, in tokens."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Answer(Struct, frozen=True):
    """The whole answer, which ends the pieces. The arguments of a call are JSON text, which may be malformed."""

    text: str
    reasoning: str = ""
    calls: tuple[CallPiece, ...] = ()
    stop_reason: StopReason = "end_turn"
    usage: Tokens | None = None


Piece: TypeAlias = TextPiece | ReasoningPiece | CallPiece | Answer


class ModelFailureError(Exception):
    """The model fails. Without ``status``, the connection breaks. ``by_script``: the script did not ask for it."""

    def __init__(
        self,
        message: str,
        status: int | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
        *,
        by_script: bool = True,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        self.by_script = by_script


class Answering(Protocol):
    """A model."""

    def stream(self, call: ModelCall) -> AbstractAsyncContextManager[AsyncIterator[Piece]]:
        """Answer a call; the last piece is the whole :class:`Answer`.

        Raises:
            ModelFailureError: the call fails, before the first piece or after it.
        """
        ...
