"""Errors that a grammar does not report: it takes what is wrong for something else, or ignores indentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from jumpseat.tools.syntax.parsing import SyntaxProblem, offset_of, point

if TYPE_CHECKING:
    from tree_sitter import Language, Query, Tree
if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query, Tree

Check: TypeAlias = Callable[["Tree", bytes, tuple[int, int]], Iterator[SyntaxProblem]]
"""Finds errors in a tree and its text, in the rows from a first to a last one at least."""


def mistaken(pattern: re.Pattern[bytes], node_type: str, message: str) -> Check:
    """Return a check for places, the first groups of ``pattern``, that pass for a ``node_type``."""

    def check(tree: Tree, data: bytes, _rows: tuple[int, int]) -> Iterator[SyntaxProblem]:
        for match in pattern.finditer(data):
            start = match.start(match.lastindex or 0)
            node = tree.root_node.descendant_for_byte_range(start, start + 1)
            if node is not None and node.type == node_type:
                row, column = node.start_point
                yield SyntaxProblem(row, column, row, message)

    return check


_NO_CODE: Final = re.compile(
    rb"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|url\([^()\"'\n]*+\)|\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|\([^(){};]*+\)",
    re.DOTALL,
)
_UNENDED: Final = re.compile(
    # Selectors of nested rules end with "{". Old filters have names with a colon; custom properties have any value.
    rb"[{;]\s*+(?=[^;{}]*+[;}])(?:"
    rb"(?!--)[\w-]++[ \t]*+:(?!\s*+progid\b)[^;{}:]*+(?P<next>:)(?!:)"
    rb"|--[\w-]++[ \t]*+:[^;{}:\n]*+\n[ \t]*+(?P<custom>--[\w-]++[ \t]*+:))"
)


def _blanked(match: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" " if match[0].startswith(b"/*") else b"_", match[0])


def unended_css(_tree: Tree, data: bytes, rows: tuple[int, int]) -> Iterator[SyntaxProblem]:
    """Yield the declarations of CSS that follow one without a semicolon, in the blocks of some rows."""
    start = data.rfind(b"{", 0, offset_of(data, rows[0]))
    end = data.find(b"}", offset_of(data, rows[1] + 1))
    start, end = max(0, start), len(data) if end < 0 else end + 1
    text = data[start:end]
    # Twice, for parentheses in parentheses.
    for _ in range(2):
        text = _NO_CODE.sub(_blanked, text)
    for match in _UNENDED.finditer(text):
        place = start + match.start(match.lastgroup or 0)
        row, column = point(data, place)
        yield SyntaxProblem(row, column, row, "';' is missing before this declaration", certain=True)


def mismatched_jsx(tree: Tree, _data: bytes, rows: tuple[int, int]) -> Iterator[SyntaxProblem]:
    """Yield the closing tags of JSX with another name than the opening ones, of elements in some rows."""
    import tree_sitter

    cursor = tree_sitter.QueryCursor(_elements(tree.language))
    cursor.set_point_range((max(0, rows[0] - 1), 0), (rows[1] + 2, 0))
    for _, captures in cursor.matches(tree.root_node):
        opening, closing = captures["open"][0], captures["close"][0]
        names = [tag.child_by_field_name("name") for tag in (opening, closing)]
        one, other = (b"" if name is None else name.text for name in names)
        if one != other:
            row, column = closing.start_point
            wanted = f"</{(one or b'').decode('utf-8', 'replace')}>"
            yield SyntaxProblem(row, column, row, f"expected {wanted} of line {opening.start_point[0] + 1}")


@cache
def _elements(language: Language) -> Query:
    import tree_sitter

    return tree_sitter.Query(language, "(jsx_element open_tag: (_) @open close_tag: (_) @close)")


stray_end: Final = mistaken(re.compile(rb"\n[ \t]*+(end)\b(?![\w?!:=])"), "identifier", "unexpected 'end'")
"""An ``end`` of Ruby that ends nothing."""


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
