"""Errors that a grammar does not report, because it takes what is wrong for something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from jumpseat.syntax.parsing import SyntaxProblem

if TYPE_CHECKING:
    from tree_sitter import Tree

_OPTIONAL_ENDS: Final = rb"p|li|dt|dd|tr|t[dh]|thead|tbody|tfoot|colgroup|option|optgroup|html|head|body|r[bpt]|rtc"


def mistaken(pattern: bytes, node_type: str, message: str) -> Callable[[Tree, bytes], Iterator[SyntaxProblem]]:
    """Return a check for places, the first groups of ``pattern``, that the grammar takes for a ``node_type``."""
    compiled = re.compile(pattern, re.MULTILINE)

    def check(tree: Tree, data: bytes) -> Iterator[SyntaxProblem]:
        for match in compiled.finditer(data):
            node = tree.root_node.descendant_for_byte_range(match.start(1), match.start(1) + 1)
            if node is not None and node.type == node_type:
                row, column = node.start_point
                yield SyntaxProblem(row, column, row, message)

    return check


unclosed_css: Final = mistaken(
    rb"^[ \t]*[\w-]++[ \t]*:[^\n;{}]*+\n[ \t]*([\w-]++[ \t]*:)", "plain_value", "';' is missing before this line"
)
"""A declaration of CSS that ends without a semicolon before another one."""

stray_end: Final = mistaken(rb"^[ \t]*(end)\b(?![\w?!:=])", "identifier", "unexpected 'end'")
"""An ``end`` of Ruby that ends nothing."""


def unclosed_html(tree: Tree, data: bytes) -> Iterator[SyntaxProblem]:
    """Yield the elements of HTML without an end tag, where one is required, and end tags of no element."""
    import tree_sitter

    query = tree_sitter.Query(tree.language, "(element . (start_tag (tag_name) @open)) (erroneous_end_tag) @end")
    found = tree_sitter.QueryCursor(query).captures(tree.root_node)
    for name in found.get("open", []):
        element = name.parent.parent if name.parent is not None else None
        last = element.children[-1].type if element is not None else ""
        text = name.text or b""
        if last not in ("end_tag", "") and not re.fullmatch(_OPTIONAL_ENDS, text, re.IGNORECASE):
            row, column = name.start_point
            yield SyntaxProblem(row, column - 1, row, f"<{text.decode('utf-8', 'replace')}> is not closed")
    for node in found.get("end", []):
        row, column = node.start_point
        yield SyntaxProblem(row, column, row, "this tag closes no element")
