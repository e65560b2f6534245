"""Find names in declarations that nothing declares: misspelled options, and placeholders without a value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from jumpseat_protocol.members import hint, misspelt

PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")
"""``${name}`` in a string of a declaration."""


def unknown_option(opts: Mapping[str, Any], known: Collection[str], *, has_functions: bool) -> str | None:
    """Return the problem of the first unknown option, ``None`` if there is none.

    Only functions can read options of the author's own. In a declaration without functions, every unknown name is
    therefore a mistake; with functions, only a misspelled one is.
    """
    for name in opts:
        meant = misspelt(name, known)
        if meant is not None:
            return f"{name}: unknown, did you mean {meant!r}?"
        if name not in known and not has_functions:
            return f"{name}: unknown, {hint(name, known)}"
    return None


def placeholders_in(text: str) -> Iterator[str]:
    """Yield the names of the placeholders in a string."""
    if "${" in text:
        yield from (match[1] for match in PLACEHOLDER.finditer(text))


def meant_placeholder(name: str, known: Collection[str]) -> str:
    """Return the end of a sentence about an unknown placeholder: ", did you mean ${x}?", or nothing."""
    meant = misspelt(name, known)
    return "" if meant is None else f", did you mean ${{{meant}}}?"
