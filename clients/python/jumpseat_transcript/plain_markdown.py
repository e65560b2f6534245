"""Markdown whose markup is text: a viewer that runs HTML finds none.

What is code stays as it is. Viewers differ in what they take for code in lists and quotes; wherever two of them may
disagree, the rest of the text counts as no code, and a ``<`` in its code is ``&lt;``. The page exports by the same
rules.
"""

from __future__ import annotations

import re
from typing import Final

_FENCE: Final = re.compile(r"( *)(`{3,}+|~{3,}+)(.*)")
_LINES: Final = re.compile(r"\r\n?|\n")
_RUN: Final = re.compile("`+")
_PART: Final = re.compile(r"[^`\\]+")
# A definition of a link may take what follows as its address or title.
_DEFINITION: Final = re.compile(r"[\s>*+\-\d.)]*\[[^\]]*\]:")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?]|$)")
_MOST_INDENTED: Final = 3
_LONGEST_LINE: Final = 2000
"""Longer lines are searched for no code."""


def plain_markdown(text: str) -> str:
    """Return Markdown without markup of HTML outside of code. A block of code that does not end is ended."""
    made: list[str] = []
    # Whether no code since the last blank line may go on in the next one, and whether all viewers agree so far.
    is_whole = is_clear = True
    opened: tuple[int, str] | None = None
    for line in _LINES.split(text):
        fence = _FENCE.fullmatch(line)
        if opened is not None and is_clear:
            state = _inside(line, fence, *opened)
            if state == "unclear":
                is_clear = False
            else:
                opened = None if state == "end" else opened
                made.append(line)
                continue
        elif is_clear and fence is not None and _opens(fence):
            opened, is_whole = (len(fence[1]), fence[2]), True
            made.append(line.replace("<", "&lt;"))
            continue
        elif "```" in line or "~~~" in line:
            is_clear = False
        if not line.strip():
            is_whole = True
        if _DEFINITION.match(line[:_LONGEST_LINE]) is not None:
            is_clear = False
        safe, goes_on = _without_tags(line, keeps_code=is_clear and is_whole)
        is_whole = is_whole and not goes_on
        made.append(safe)
    if opened is not None and is_clear:
        made.append(" " * opened[0] + opened[1])
    return "\n".join(made)


def _opens(fence: re.Match[str]) -> bool:
    return len(fence[1]) <= _MOST_INDENTED and not (fence[2].startswith("`") and "`" in fence[3])


def _inside(line: str, fence: re.Match[str] | None, indent: int, marks: str) -> str:
    """Return what a line in a block of code is: its ``end``, ``code``, or ``unclear``."""
    is_end = fence is not None and fence[2].startswith(marks) and not fence[3].strip()
    if is_end and fence is not None and len(fence[1]) == indent:
        return "end"
    if line.strip().startswith(marks) or (line.strip() and not line.startswith(" " * indent)):
        return "unclear"
    return "code"


def _without_tags(line: str, *, keeps_code: bool) -> tuple[str, bool]:
    """Return a line without tags, and whether it has marks of code that may end on another line."""
    if len(line) > _LONGEST_LINE:
        return _TAG.sub("&lt;", line), "`" in line
    safe: list[str] = []
    goes_on = False
    at = 0
    while at < len(line):
        if line[at] == "\\":
            part = line[at : at + 2]
            safe.append(part)
        elif (run := _RUN.match(line, at)) is not None:
            ends = (one.end() for one in _RUN.finditer(line, run.end()) if len(one[0]) == len(run[0]))
            end = next(ends, None)
            goes_on = goes_on or end is None
            part = line[at:end] if end is not None else run[0]
            # The cells of a table end at each line, also within code.
            keeps = end is not None and keeps_code and "|" not in part
            safe.append(part if keeps else _TAG.sub("&lt;", part))
        else:
            found = _PART.match(line, at)
            part = found[0] if found is not None else line[at]
            safe.append(_TAG.sub("&lt;", part))
        at += len(part)
    return "".join(safe), goes_on
