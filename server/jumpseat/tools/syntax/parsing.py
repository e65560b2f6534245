"""Parse a text with a grammar of tree-sitter, within limits, and list its syntax errors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

LONGEST_PARSE_S: Final = 0.2
"""Processor time of one parse: files of 1 MiB take half of it, texts made to be slow take all of it."""

CHUNK: Final = 64 * 1024
"""Bytes that the parser reads at a time. It lets other threads run meanwhile, unlike with a whole text."""

MOST_ERRORS: Final = 200
"""A text with more errors is in another language."""

MOST_QUOTED: Final = 40
"""Bytes of the unexpected text that a message quotes."""


class SyntaxProblem(Struct, frozen=True):
    """A place that does not fit the grammar; ``row``, ``end_row`` and ``column`` (in bytes) count from 0.

    It is ``certain`` if it is an error even in files with syntax that the grammar does not know.
    """

    row: int
    column: int
    end_row: int
    message: str
    certain: bool = False


def parse(data: bytes, grammar: Language, old: Tree | None = None) -> Tree | None:
    """Parse a text; return ``None`` if that takes too long.

    ``old`` is the tree of a version of the text, edited as the text was.
    """
    import tree_sitter

    # Not the time of the clock: a busy machine must not change the result.
    end = time.thread_time() + LONGEST_PARSE_S

    def read(start: int, _point: object) -> bytes:
        return data[start : start + CHUNK]

    def is_late(_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > end

    parser = tree_sitter.Parser(grammar)
    try:
        if old is None:
            return parser.parse(read, progress_callback=is_late)
        return parser.parse(read, old, progress_callback=is_late)
    except ValueError:
        return None


def errors(tree: Tree, data: bytes) -> list[SyntaxProblem] | None:
    """Return the errors in the tree of a text in their order; ``None`` if there are too many."""
    found: list[SyntaxProblem] = []
    stack = [tree.root_node] if tree.root_node.has_error else []
    while stack:
        node = stack.pop()
        if node.is_missing or node.is_error:
            if len(found) == MOST_ERRORS:
                return None
            found.append(_problem(node, data))
        stack += [child for child in reversed(node.children) if child.has_error]
    return found


def _problem(node: Node, data: bytes) -> SyntaxProblem:
    row, column = node.start_point
    if node.is_missing:
        message = f"{node.type!r} is missing"
    else:
        text = data[node.start_byte : node.end_byte][:MOST_QUOTED].decode("utf-8", "replace").split("\n")[0].strip()
        message = f"unexpected {text!r}" if text else "unexpected end of line"
    return SyntaxProblem(row, column, node.end_point[0], message)


def point(data: bytes, offset: int) -> tuple[int, int]:
    """Return the row and the column of a byte, both from 0."""
    return data.count(b"\n", 0, offset), offset - data.rfind(b"\n", 0, offset) - 1


def offset_of(data: bytes, row: int) -> int:
    """Return where a row begins, or the end of the text if there is none."""
    offset = 0
    for _ in range(row):
        offset = data.find(b"\n", offset) + 1
        if not offset:
            return len(data)
    return offset
