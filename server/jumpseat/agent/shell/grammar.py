"""The grammar of bash: tree-sitter, loaded with the first command that is parsed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser


MAX_STEPS: Final = 250
"""Limit of the parser's progress reports, one per about a hundred steps. Ordinary lines of that length take 200."""


def nodes(root: Node) -> Iterator[Node]:
    """Yield the nodes of a syntax tree in order, each before those in it."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


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


def parse_source(source: bytes) -> Node | None:
    """Return the root of the syntax tree of a line; ``None`` if parsing it takes too many steps."""
    steps = 0

    def is_over_limit(_offset: int, _failed: bool) -> bool:
        nonlocal steps
        steps += 1
        return steps > MAX_STEPS

    try:
        return parser().parse(lambda start, _point: source[start:], progress_callback=is_over_limit).root_node
    except ValueError:
        return None


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
