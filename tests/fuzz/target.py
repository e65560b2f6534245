"""The description of a fuzz target, and helpers that several targets share."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

Check: TypeAlias = Callable[[bytes], None]
"""Try one input; raises any exception if the input breaks the property of the target."""

T = TypeVar("T")

LONGEST_EACH_BYTE: Final = 512
"""Longer inputs are not split at each byte: that many steps would take most of the time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parser and its property.

    ``open`` prepares what the inputs share, and yields the check. ``pieces`` are parts of interesting inputs.
    ``seeds`` are inputs of other tests to begin a search with, besides those in ``seeds/NAME``. ``short`` is the
    number of inputs that a run of the tests makes up.
    """

    open: Callable[[], AbstractContextManager[Check]]
    pieces: tuple[str, ...] = ()
    seeds: Callable[[], Iterable[bytes]] = tuple
    short: int = 150


def pure(check: Check) -> Callable[[], AbstractContextManager[Check]]:
    """Return the ``open`` of a target that has nothing to prepare."""

    @contextmanager
    def opened() -> Generator[Check]:
        yield check

    return opened


@contextmanager
def silenced() -> Generator[None]:
    """Drop the log of the server within the block: inputs fill it with their errors."""
    log = logging.getLogger("jumpseat")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def splits(data: bytes) -> Iterator[list[bytes]]:
    """Yield ways to split ``data`` into chunks: at each byte, and at two places that depend on the content only."""
    if len(data) <= LONGEST_EACH_BYTE:
        yield [data[at : at + 1] for at in range(len(data))]
    # The same for an input and a longer one that begins with it, so that their times can be compared.
    size = 2 + zlib.crc32(data[:64]) % 61
    yield [data[at : at + size] for at in range(0, len(data), size)]
    cut = zlib.crc32(data) % (len(data) + 1)
    yield [data[:cut], b"", data[cut:]]


def same_however_split(data: bytes, decode: Callable[[list[bytes]], T]) -> T:
    """Decode ``data`` as a whole and in chunks, and return the result.

    Raises:
        AssertionError: the chunks have another result.
    """
    whole = decode([data])
    for chunks in splits(data):
        assert decode(chunks) == whole, f"another result for the chunks {chunks!r}"
    return whole


class Choices:
    """Decisions that the bytes of an input make, for inputs that are values rather than texts."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        """Return a number from 0 to ``limit`` - 1; 0 once the bytes are used up."""
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % limit

    def pick(self, options: list[T] | tuple[T, ...]) -> T:
        return options[self.below(len(options))]

    def json(self, depth: int = 3) -> Any:
        """Return any JSON value."""
        match self.below(9 if depth else 6):
            case 0:
                return None
            case 1:
                return self.below(2) == 1
            case 2:
                return self.pick((0, 1, -1, 2**31, 2**53, 2**63, -(2**63), 10**9))
            case 3:
                return self.pick((0.5, -1.5, 1e308, 1e-300))
            case 4 | 5:
                return self.text()
            case 6:
                return [self.json(depth - 1) for _ in range(self.below(4))]
            case _:
                return {self.text(): self.json(depth - 1) for _ in range(self.below(4))}

    def text(self) -> str:
        """Return a short text. No text names a program, a file of the machine or a host beyond loopback."""
        return self.pick(_TEXTS)


_TEXTS: Final = (
    "", "a", "name", "x/y", "../a", "/nonexistent/a", "~", "é\u2028\U0001f600", "\0", "a\nb", "http://127.0.0.1:1/",
    "not a url", "2026-01-01T00:00:00Z", "-1", "*", "$x", "a" * 300, "__proto__", "<tools>", "[]", "{}",
    "text/plain", "00000000-0000-0000-0000-000000000000",
)  # fmt: skip
