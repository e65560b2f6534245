"""Write loops over words, and the output of commands in place of files, as the plain lines that they stand for.

``for f in a b; do cat $f; done`` is ``cat a; cat b``, and ``diff <(sort a) <(sort b)`` runs two commands beside a
third one that reads what they print. A line that may mean anything else is left as it is, and is then in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from jumpseat.agent.shell.grammar import nodes, parse_source
from jumpseat.agent.shell.programs import CHANGES_FOLDER

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_WORDS: Final = 16
"""Limit of the words that a loop goes through."""

MAX_CHARS: Final = 4096
"""Limit of a line, before and after."""


def plain_line(line: str) -> str:
    """Return a line that runs the same commands without loops; the line itself if there is none for certain."""
    if not ("for " in line or "<(" in line) or len(line) > MAX_CHARS:
        return line
    changed = _changed(line, _unrolled) if "for " in line else line
    changed = _changed(changed, _with_commands_in_front) if "<(" in changed else changed
    return changed if len(changed) <= MAX_CHARS else line


def _changed(line: str, change: Callable[[Node, str], str | None]) -> str:
    if not line.isascii() or re.search(r"\0|<<", line):
        # Positions in the tree are those of bytes.
        return line
    root = parse_source(line.encode())
    if root is None:
        return line
    # A comment would hide what follows it.
    doubtful = root.has_error or any(node.type == "comment" for node in nodes(root))
    changed = None if doubtful else change(root, line)
    return line if changed is None else changed


def _unrolled(root: Node, line: str) -> str | None:
    """Unroll the loops that are statements of the line itself."""
    turns = {child: _turns(child, line) for child in root.children if child.type == "for_statement"}
    known = [(loop.start_byte, loop.end_byte, text) for loop, text in turns.items() if text is not None]
    return _replaced(line, known) if len(known) == len(turns) else None


def _turns(loop: Node, line: str) -> str | None:
    """Return the turns of a loop one after the other."""
    variable, *values = [_text(child) for child in loop.named_children[:-1]]
    body = loop.named_children[-1]
    # Other names may be those of variables that programs obey.
    if loop.children[0].type != "for" or body.type != "do_group" or not _NAME.fullmatch(variable):
        return None
    if not 0 < len(values) <= MAX_WORDS:
        return None
    used = [node for node in nodes(body) if node.type == "variable_name" and _text(node) == variable]
    if len(used) != _NAMES.findall(_text(body)).count(variable):
        # A command may set the variable.
        return None
    turns = [_turn(body, used, value, line) for value in values]
    return None if None in turns else "\n".join(filter(None, turns))


def _turn(body: Node, used: Sequence[Node], value: str, line: str) -> str | None:
    start, end = body.children[0].end_byte, body.children[-1].start_byte
    pattern = _PATTERN.fullmatch(value) is not None
    if not pattern and not _WORD.fullmatch(value):
        return None
    changes: list[tuple[int, int, str]] = []
    for name in used:
        expansion = name.parent
        if expansion is None or _text(expansion) not in (f"${_text(name)}", f"${{{_text(name)}}}"):
            return None
        if pattern:
            # The names that it stands for are words of their own in quotes only.
            expansion = expansion.parent
            if (
                expansion is None
                or _text(expansion) not in (f'"${_text(name)}"', f'"${{{_text(name)}}}"')
                or expansion.parent is None
                or expansion.parent.type != "command"
            ):
                return None
        changes.append((expansion.start_byte, expansion.end_byte, value))
    changes += [(0, start, ""), (end, len(line), "")]
    return _replaced(line, sorted(changes)).strip(" \t\n;") or None


def _with_commands_in_front(root: Node, line: str) -> str | None:
    """Put the commands whose output is read in place of a file in front of the line."""
    found = [node for node in nodes(root) if node.type == "process_substitution"]
    if any(node.type == "command_name" and _text(node) in CHANGES_FOLDER for node in nodes(root)):
        # They would run in another folder.
        return None
    for node in found:
        reader = node.parent
        if reader is None or _text(reader.children[0]) not in _READERS or node.children[0].type != "<(":
            return None
        if sum(inner.type == "process_substitution" for inner in nodes(node)) > 1:
            return None
    inside = [_text(node)[2:-1].strip(" \t\n;") for node in found]
    changed = _replaced(line, [(node.start_byte, node.end_byte, "/dev/null") for node in found])
    return "\n".join((*inside, changed)) if all(inside) else None


def _replaced(line: str, changes: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, text in changes:
        parts += [line[at:start], text]
        at = end
    return "".join((*parts, line[at:]))


def _text(node: Node) -> str:
    return (node.text or b"").decode()


_NAMES: Final = re.compile(r"\w+", re.ASCII)
_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,11}")
_WORD: Final = re.compile(r"[\w./@%+,:][\w./@%+,:-]*", re.ASCII)
_PATTERN: Final = re.compile(r"\w[\w./-]*\*[\w./*-]*", re.ASCII)
_READERS: Final = frozenset({"cat", "cmp", "comm", "diff", "grep", "head", "paste", "sort", "tail", "wc"})
