"""The messages of a conversation as a list that knows which of them it shares with later lists."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from jumpseat.agent.blocks import Message


class Settled(Struct):
    """What is known of the first messages of a conversation together: those that do not change any more.

    ``tokens`` are those of the first ``counted`` messages. Any model can receive the first ``universal`` messages
    unchanged. Each request asks for both: going through thousands of messages took a twentieth of a turn.
    """

    counted: int = 0
    tokens: int = 0
    universal: int = 0


class Messages(list[Message]):
    """The messages of a conversation; the first ``final`` ones are those of ``settled``."""

    __slots__ = ("final", "settled")

    def __init__(self, final: Sequence[Message], others: Sequence[Message], settled: Settled) -> None:
        super().__init__(final)
        self.extend(others)
        self.final = len(final)
        self.settled = settled
