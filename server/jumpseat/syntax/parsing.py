"""Parse a text with a grammar, within limits, and list its syntax errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from jumpseat.syntax.languages import grammar

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

LONGEST_PARSE_S: Final = 0.2
"""Processor time of one parse: files of 1 MiB take half of it, texts made to be slow take all of it."""

CHUNK: Final = 64 * 1024
"""Bytes that the parser reads at a time. It lets other threads run meanwhile, unlike with a whole text."""

MOST_NODES: Final = 20_000
"""Nodes that are looked at in search of errors."""


class SyntaxProblem(Struct, frozen=True):
    """A place that does not fit the grammar; ``row``, ``end_row`` and ``column`` (in bytes) count from 0."""

    row: int
    column: int
    end_row: int
    message: str


def parse(data: bytes, language: str) -> Tree | None:
    """Parse a text; return ``None`` if that takes too long."""
    import tree_sitter

    # Not the time of the clock: a machine that is busy otherwise parses, too.
    end = time.thread_time() + LONGEST_PARSE_S
    parser = tree_sitter.Parser(grammar(language))
    try:
        return parser.parse(
            lambda start, _point: data[start : start + CHUNK],
            progress_callback=lambda _offset, _has_error: time.thread_time() > end,
        )
    except ValueError:
        return None


def problems(tree: Tree) -> list[SyntaxProblem] | None:
    """Return the errors of a text in their order; ``None`` if there are too many to look at."""
    if not tree.root_node.has_error:
        return []
    found: list[SyntaxProblem] = []
    for count, node in enumerate(_nodes_with_errors(tree.root_node)):
        if count > MOST_NODES:
            return None
        if node.is_missing or node.is_error:
            found.append(_problem(node))
    return found


def _nodes_with_errors(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += [child for child in reversed(node.children) if child.has_error]


def _problem(node: Node) -> SyntaxProblem:
    row, column = node.start_point
    if node.is_missing:
        message = f"{node.type!r} is missing"
    else:
        text = (node.text or b"")[:40].decode("utf-8", "replace").split("\n")[0].strip()
        message = f"unexpected {text!r}" if text else "unexpected end of line"
    return SyntaxProblem(row, column, node.end_point[0], message)
