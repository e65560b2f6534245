"""Lines that stand for others, such as ``# ... existing code ...``: an edit with one would delete these."""

from __future__ import annotations

import re
from typing import Final

_COMMENT: Final = r"(?:#|//|/\*++|\{/\*|--|<!--|%|;|\*)"
_END: Final = r"\s*+(?:\*/\}?|-->)?"
_DOTS: Final = r"(?:\.\.\.|…)"
_WORDS: Final = r"(?:existing|rest|remaining|remainder|remains|unchanged|same|previous|other|omitted|keep|snip)"

_OMISSION: Final = re.compile(
    # An ellipsis alone, perhaps in brackets.
    rf"\s*+(?:(?:{_COMMENT}\s*+)?[(\[{{<]?{_DOTS}[)\]}}>]?{_END}"
    # An ellipsis and a word such as "existing" or "rest", in a comment or alone.
    rf"|{_COMMENT}\s*+[(\[]?{_DOTS}?\s*+(?:\w++\s++)?{_WORDS}\b(?>.*?(?:{_DOTS}|unchanged|as before)).*"
    rf"|(?:{_COMMENT}\s*+)?[(\[]?{_DOTS}(?>.*?\b(?:{_WORDS}|code|lines)\b).*)",
    re.IGNORECASE,
)
_REMARK: Final = re.compile(
    rf"\s*+{_COMMENT}[\s(\[<-]*+"
    r"(?=[^\n]*\b(?:existing|rest|remaining|remains|remainder|unchanged|same|omitted|snip|etc|skipped)\b)"
    r"(?:(?:existing|rest|remaining|remains?|remainder|unchanged|same|omitted|snip|etc|skipped|stays?|is|are|as|before"
    r"|above|of|the|this|code|lines?|here|function|method|class|file|implementation|content|section|for|brevity)\b"
    rf"[\s,]*+)++[)\]>.:\s-]*+{_END}",
    re.IGNORECASE,
)
"""A comment that may stand for lines, or be one of its own."""


def is_omission(line: str) -> bool:
    """Return whether a line stands for others and can hardly be meant as it is."""
    return _OMISSION.fullmatch(line) is not None


def omission(old: str, new: str) -> str | None:
    """Return the line of the new text that stands for lines of the old one."""
    old_lines = [line.strip() for line in old.split("\n") if line.strip()]
    new_lines = [line.strip() for line in new.split("\n") if line.strip()]
    known = set(old_lines)
    for index, line in enumerate(new_lines):
        if line in known:
            continue
        certain = is_omission(line)
        if certain and re.search(r"\w", line):
            return line
        if not certain and not _REMARK.fullmatch(line):
            continue
        before = new_lines[max(0, index - 1)]
        after = new_lines[index + 1] if index + 1 < len(new_lines) else None
        # An ellipsis may be meant, as in a Python stub; not between two lines that had others between them.
        if before in known and after in known and old_lines.index(after) > old_lines.index(before) + 1:
            return line
        # Nor does a remark replace several lines.
        fresh = len([other for other in new_lines if other not in known]) - 1
        lost = len(known.difference(new_lines))
        if lost > fresh + 1 and (before in known or after in known or not certain):
            return line
    return None
