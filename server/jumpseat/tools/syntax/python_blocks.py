"""The indentation of Python, which its grammar does not check: empty blocks, and lines that are in none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from jumpseat.tools.syntax.parsing import SyntaxProblem

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query, Tree


_CONTINUED: Final = (b"\\\n", b"\\\r\n")
"""Ends of lines that the next one continues."""


def indentation_errors(tree: Tree, data: bytes, rows: tuple[int, int]) -> Iterator[SyntaxProblem]:
    """Yield the blocks without statements, and the statements that are indented unlike their neighbours.

    Looks at the blocks in some rows, from the first to the last.
    """
    import tree_sitter

    cursor = tree_sitter.QueryCursor(_blocks(tree.language))
    cursor.set_point_range((max(0, rows[0] - 1), 0), (rows[1] + 2, 0))
    for block in cursor.captures(tree.root_node).get("block", []):
        statements = [child for child in block.named_children if child.type != "comment"]
        if statements:
            yield from _uneven(statements, data)
            for statement in statements:
                if statement.type == "decorated_definition":
                    yield from _uneven(statement.named_children, data)
        elif block.type == "block" and block.parent is not None:
            row, column = block.start_point
            yield SyntaxProblem(row, column, row, "an indented block is missing")


@cache
def _blocks(language: Language) -> Query:
    import tree_sitter

    return tree_sitter.Query(language, "[(module) (block)] @block")


def _uneven(statements: list[Node], data: bytes) -> Iterator[SyntaxProblem]:
    wanted: bytes | None = None
    end = -1
    for statement in statements:
        row, column = statement.start_point
        if row > end:
            start = statement.start_byte
            before = data[start - column : start]
            if wanted is None:
                wanted = before
            elif before != wanted and not before.strip() and not data.endswith(_CONTINUED, 0, start - column):
                yield SyntaxProblem(row, column, row, "the indentation fits no block")
        end = statement.end_point[0]
