"""The grammar of bash: tree-sitter, loaded with the first command that is parsed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser


def leaves(root: Node) -> Iterator[Node]:
    """Yield the leaves of a syntax tree in order."""
    stack = [root]
    while stack:
        node = stack.pop()
        children = node.children
        if children:
            stack += reversed(children)
        else:
            yield node


def parser() -> Parser:
    """Return a new parser of bash."""
    import tree_sitter

    # A new parser each time: a parser that was stopped would continue with the old line.
    return tree_sitter.Parser(_language())


@cache
def _language() -> Language:
    # Imported with the first command: 30 ms and 4 MiB that many processes never need.
    import tree_sitter
    import tree_sitter_bash

    grammar: object = tree_sitter_bash.language()
    return tree_sitter.Language(grammar)
