"""Split streamed Markdown into blocks: finished blocks can be printed for good, the last one may still change."""

from __future__ import annotations

import re
from itertools import chain
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)")


class BlockSplitter:
    """Splits text that arrives in pieces into blocks that no later text can change.

    A block ends at an empty line outside of fenced code, as soon as the next line starts and does not continue
    the block: indented lines and further items of a list do. Fenced code ends with its closing fence.
    """

    def __init__(self) -> None:
        self.size = 0
        """Number of characters in the unfinished block."""
        self._block: list[str] = []
        # The unfinished line, in pieces: it may be very long, so it is joined only once.
        self._line: list[str] = []
        self._fence: str | None = None

    @property
    def pending(self) -> str:
        """The text of the unfinished block."""
        return "".join([*self._block, *self._line])

    def tail(self, characters: int) -> str:
        """Return the end of :attr:`pending`: ``characters`` or slightly more, or all of it if it is shorter."""
        pieces: list[str] = []
        for piece in chain(reversed(self._line), reversed(self._block)):
            pieces.append(piece[-characters:])
            characters -= len(piece)
            if characters <= 0:
                break
        return "".join(reversed(pieces))

    def feed(self, text: str) -> list[str]:
        """Add text and return the blocks that it finishes."""
        self.size += len(text)
        if "\n" not in text:
            self._line.append(text)
            return []
        *lines, line = ("".join(self._line) + text).split("\n")
        self._line = [line]
        found: list[str] = []
        for line in lines:
            found += self._add_line(line)
        return found

    def finish(self) -> str:
        """Return the unfinished block and start over."""
        pending, self._block, self._line, self._fence, self.size = self.pending, [], [], None, 0
        return pending

    def _add_line(self, line: str) -> list[str]:
        found: list[str] = []
        if self._fence is None and line.strip() and self._ends_with_blank_line() and not self._continues(line):
            found.append(self._pop_block())
        self._block.append(line + "\n")
        mark = _FENCE.match(line)
        if self._fence is None:
            if mark:
                self._fence = mark[1]
        elif mark and mark[1].startswith(self._fence) and not mark[2].strip():
            self._fence = None
            if not _ITEM.match(self._block[0]):
                found.append(self._pop_block())
        return found

    def _ends_with_blank_line(self) -> bool:
        return bool(self._block) and not self._block[-1].strip()

    def _continues(self, line: str) -> bool:
        if line.startswith((" ", "\t")):
            return True
        first = next((line for line in self._block if line.strip()), "")
        return bool(_ITEM.match(first) and _ITEM.match(line))

    def _pop_block(self) -> str:
        block, self._block = "".join(self._block), []
        self.size -= len(block)
        return block
