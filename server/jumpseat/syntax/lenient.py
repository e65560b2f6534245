"""Errors that a grammar does not report, because it takes what is wrong for something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from jumpseat.syntax.parsing import SyntaxProblem

if TYPE_CHECKING:
    from tree_sitter import Language, Query, Tree

Check: TypeAlias = Callable[["Tree", bytes, tuple[int, int]], Iterator[SyntaxProblem]]
"""Finds errors in a tree and its text, in the rows from a first to a last one at least."""

_UNCLOSED: Final = (
    rb"area|base|br|col|embed|frame|hr|img|input|link|meta|param|source|track|wbr"
    rb"|p|li|dt|dd|tr|t[dh]|thead|tbody|tfoot|caption|colgroup|option|optgroup|html|head|body|r[bpt]|rtc"
)
"""Elements of HTML that have no end tag, or need none."""


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


unended_css: Final = mistaken(
    re.compile(
        # In lines of their own, and in one line, but for selectors of nested rules.
        rb"(?<![\w-])[\w-]++[ \t]*+:[^\n;{}]{0,500}+\n[ \t]*+([\w-]++[ \t]*+:)"
        rb"|[{;]\s*+[\w-]++[ \t]*+:[^\n;{}():\"']*?[ \t]([\w-]++[ \t]*+:)[^;{}]*+[;}]"
    ),
    "plain_value",
    "';' is missing before this declaration",
)
"""Declarations of CSS without a semicolon before the next one."""

stray_end: Final = mistaken(re.compile(rb"\n[ \t]*+(end)\b(?![\w?!:=])"), "identifier", "unexpected 'end'")
"""An ``end`` of Ruby that ends nothing."""


def unclosed_html(tree: Tree, _data: bytes, _rows: tuple[int, int]) -> Iterator[SyntaxProblem]:
    """Yield the elements of HTML without an end tag, where one is required, and end tags of no element."""
    import tree_sitter

    found = tree_sitter.QueryCursor(_elements(tree.language)).captures(tree.root_node)
    for element in found.get("element", []):
        children = element.children
        if children[0].type != "start_tag" or children[-1].type == "end_tag":
            continue
        name = re.match(rb"<\s*([^\s/>]+)", children[0].text or b"")
        if name is not None and not re.fullmatch(_UNCLOSED, name[1], re.IGNORECASE):
            row, column = element.start_point
            yield SyntaxProblem(row, column, row, f"<{name[1].decode('utf-8', 'replace')}> is not closed")
    for node in found.get("end", []):
        row, column = node.start_point
        yield SyntaxProblem(row, column, row, "this tag closes no element")


@cache
def _elements(language: Language) -> Query:
    import tree_sitter

    return tree_sitter.Query(language, "(element) @element (erroneous_end_tag) @end")
