"""Texts that are valid, though not in the language of their suffix: templates, JSON with comments."""

from __future__ import annotations

import re
from typing import Final

from jumpseat.tools.syntax.parsing import SyntaxProblem

_TAGS: Final = ((b"{{", b"}}"), (b"{%", b"%}"), (b"<%", b"%>"), (b"<?php", b"?>"))

_FRONT_MATTER: Final = re.compile(rb"\A---\r?\n(?:[^\n]*+\n){0,100}?---\r?\n")


def without_templates(data: bytes) -> bytes:
    """Replace the tags of template languages: those in a line of their own by blanks, others by letters.

    Lines and columns stay as they are.
    """
    if match := _FRONT_MATTER.match(data):
        data = re.sub(rb"[^\n]", b" ", match[0]) + data[match.end() :]
    for opening, closing in _TAGS:
        data = _without(data, opening, closing)
    return data


def _without(data: bytes, opening: bytes, closing: bytes) -> bytes:
    parts: list[bytes] = []
    position = 0
    while (start := data.find(opening, position)) >= 0:
        end = data.find(closing, start)
        if end < 0:
            break
        end += len(closing)
        line_start = data.rfind(b"\n", position, start) + 1 or position
        line_end = data.find(b"\n", end)
        rest = data[end : line_end if line_end >= 0 else len(data)]
        alone = opening == b"{%" or not (data[line_start:start] + rest).strip()
        filler = b" " if alone else b"x"
        parts += [data[position:start], re.sub(rb"[^\n]", filler, data[start:end])]
        position = end
    return b"".join([*parts, data[position:]])


_PARTS: Final = (
    re.compile(rb"<(/?)html\b", re.IGNORECASE),
    re.compile(rb"<(/?)body\b", re.IGNORECASE),
    re.compile(rb"\A\s*+<(/)"),
)


def is_part(data: bytes) -> bool:
    """Return whether a text begins or ends a document of HTML that other files complete."""
    tags = [{match == b"/" for match in part.findall(data)} for part in _PARTS]
    return any(len(kinds) == 1 for kinds in tags)


_JSON_WITH_COMMENTS: Final = re.compile(r"(?:[tj]sconfig|devcontainer|\.eslintrc|\.babelrc).*\.json\Z|.*\.jsonc\Z")


_LINE_OF_COMMENT: Final = re.compile(rb"^[ \t]*+(?://|/\*)", re.MULTILINE)


def is_trailing_comma(name: str, data: bytes, problem: SyntaxProblem, lines: list[bytes]) -> bool:
    """Return whether an error is a comma that JSON with comments allows."""
    if not _JSON_WITH_COMMENTS.match(name.replace("\\", "/").rpartition("/")[2]) and not _LINE_OF_COMMENT.search(
        data
    ):
        return False
    return problem.message == "unexpected ','" or lines[problem.row][problem.column : problem.column + 1] == b","
