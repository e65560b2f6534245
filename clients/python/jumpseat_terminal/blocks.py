"""Cutting streamed Markdown into blocks: what is finished can be shown for good, what is not may still change."""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)")


class BlockSplitter:
    """Takes text as it comes; hands out blocks that nothing that follows can change.

    A block ends at an empty line outside of code, once a line has begun that does not go on with it: an indented
    one, or the next item of a list. A fence of code ends with its last line.
    """

    def __init__(self) -> None:
        self.size = 0
        """How many characters have come of the block in progress."""
        self._block: list[str] = []
        # The line in progress, in pieces: it may be very long, and is put together once.
        self._line: list[str] = []
        self._fence: str | None = None

    @property
    def rest(self) -> str:
        """What has come of the block in progress."""
        return "".join([*self._block, *self._line])

    def tail(self, characters: int) -> str:
        """The end of :attr:`rest`, as long as that is or a little longer than ``characters``."""
        pieces: list[str] = []
        for piece in chain(reversed(self._line), reversed(self._block)):
            pieces.append(piece[-characters:])
            characters -= len(piece)
            if characters <= 0:
                break
        return "".join(reversed(pieces))

    def feed(self, text: str) -> list[str]:
        """Take more text; returns the blocks that are finished by it."""
        self.size += len(text)
        if "\n" not in text:
            self._line.append(text)
            return []
        *lines, line = ("".join(self._line) + text).split("\n")
        self._line = [line]
        found: list[str] = []
        for line in lines:
            found += self._take(line)
        return found

    def finish(self) -> str:
        """The end of the text: hands out what is left, and begins anew."""
        rest, self._block, self._line, self._fence, self.size = self.rest, [], [], None, 0
        return rest

    def _take(self, line: str) -> list[str]:
        found: list[str] = []
        if self._fence is None and line.strip() and self._ended() and not self._goes_on(line):
            found.append(self._cut())
        self._block.append(line + "\n")
        mark = _FENCE.match(line)
        if self._fence is None:
            if mark:
                self._fence = mark[1]
        elif mark and mark[1].startswith(self._fence) and not mark[2].strip():
            self._fence = None
            if not _ITEM.match(self._block[0]):
                found.append(self._cut())
        return found

    def _ended(self) -> bool:
        return bool(self._block) and not self._block[-1].strip()

    def _goes_on(self, line: str) -> bool:
        if line.startswith((" ", "\t")):
            return True
        first = next((one for one in self._block if one.strip()), "")
        return bool(_ITEM.match(first) and _ITEM.match(line))

    def _cut(self) -> str:
        block, self._block = "".join(self._block), []
        self.size -= len(block)
        return block
