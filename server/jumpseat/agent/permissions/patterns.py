"""Match paths against the patterns of rules, in at most quadratic time."""

from __future__ import annotations

import re
from functools import lru_cache


def path_matches(pattern: str, path: str, *, whole: bool = False, fold: bool = False) -> bool:
    """Return whether ``pattern`` matches ``path`` or a folder above it; with ``whole``, everything in ``path`` too.

    ``fold`` ignores case.
    """
    if fold:
        pattern, path = pattern.casefold(), path.casefold()
    if whole and re.search(r"[*?]", pattern.removesuffix("/**")):
        return False
    return _compile(pattern).fullmatch(path) is not None


@lru_cache(maxsize=512)
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern into an expression that takes no more than quadratic time.

    Each ``**`` but the last matches as little as possible, and so does each ``*`` but the last of a name, because a
    longer match would not help the rest of the pattern. Atomic groups keep these matches, so that no combinations
    are tried.
    """
    pattern = pattern.removesuffix("/**") if pattern != "/**" else ""
    # A folder covers everything in it; a pattern whose last part has wildcards covers matching names only.
    suffix = "(?:/.*)?" if not re.search(r"[*?]", pattern.rpartition("/")[2]) else ""
    # Several of these in a row match what one of them matches.
    pattern = re.sub(r"/\*\*/\*\*", "/**", re.sub(r"(?:\*\*/)+", "**/", re.sub(r"\*{3,}", "**", pattern)))
    pieces = re.split(r"(/\*\*/|\*\*)", pattern)
    out = _names(pieces[0], ends=len(pieces) == 1 or pieces[1] == "/**/")
    for index in range(1, len(pieces), 2):
        is_last = index == len(pieces) - 2
        gap = "/(?:.*?/)??" if pieces[index] == "/**/" else ".*?"
        ends = is_last or pieces[index + 2] == "/**/"
        names = _names(pieces[index + 1], ends=ends)
        end = "(?![^/])" if ends else ""
        out += f"{gap}{names}" if is_last else f"(?>{gap}{names}{end})"
    return re.compile(out.removesuffix("/") + suffix, re.DOTALL)


def _names(text: str, *, ends: bool) -> str:
    """Translate a part of a pattern without ``**``; ``ends`` means that its last name is complete."""
    names = text.split("/")
    out: list[str] = []
    for index, name in enumerate(names):
        first, *rest = (re.escape(part).replace(r"\?", "[^/]") for part in name.split("*"))
        for number, part in enumerate(rest, start=1):
            if number < len(rest):
                first += f"(?>[^/]*?{part})"
            elif ends or index < len(names) - 1:
                first += f"[^/]*{part}(?![^/])"
            else:
                first += f"[^/]*?{part}"
        out.append(first)
    return "/".join(out)
