"""The slips that an edit may contain, and the reason why each is forgiven."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, TypeAlias

Slip: TypeAlias = Literal[
    "line ends",
    "trailing blanks",
    "blank lines",
    "indentation",
    "special spaces",
    "typographic characters",
    "composed letters",
    "runs of blanks",
    "blanks beside punctuation",
    "escaped line ends",
    "escaped quotes",
    "escaped letters",
    "entities",
    "other quotes",
    "long dashes",
    "arrows",
    "line numbers",
    "patch marks",
    "quote marks",
    "list mark",
    "code fence",
    "inline code",
    "search markers",
    "CDATA",
    "part of a line",
]

REASONS: Final[Mapping[Slip, str]] = {
    "line ends": "models write line feeds, whatever the file has",
    "trailing blanks": "they cannot be seen",
    "blank lines": "models add them around a passage, and lose the blanks in them",
    "indentation": "models quote a block at the margin, without its first indentation, or with spaces for tabs",
    "special spaces": "they look like a space",
    "typographic characters": "models beautify quotes, dashes and dots, and flatten those of the file",
    "composed letters": "the two Unicode forms of a letter look the same",
    "runs of blanks": "models write one blank for several",
    "blanks beside punctuation": "models format expressions their way",
    "escaped line ends": "some models escape an argument twice",
    "escaped quotes": "the same",
    "escaped letters": "some encoders of JSON escape letters and angle brackets",
    "entities": "some models write arguments as XML",
    "other quotes": "models write strings with the quotes that they are used to",
    "long dashes": "a long dash may stand for two hyphens",
    "arrows": "an arrow, as fonts for programs show it, may stand for the two signs",
    "line numbers": "the file was shown with line numbers",
    "patch marks": "models copy the lines of a patch with their marks",
    "quote marks": "the passage was quoted in a message",
    "list mark": "the passage was an item of a list in a message",
    "code fence": "models quote code in fences",
    "inline code": "the same, with single backticks",
    "search markers": "models write edits as the blocks of other agents",
    "CDATA": "some models write arguments as XML",
    "part of a line": "a passage may begin or end within a line",
}
"""All slips, strict ones first. Nothing else is forgiven: not another word, number or case, and no omission."""

NONE: Final[frozenset[Slip]] = frozenset()
ESCAPES: Final[frozenset[Slip]] = frozenset({"escaped line ends", "escaped quotes", "escaped letters"})
ENTITIES: Final[frozenset[Slip]] = frozenset({"entities"})
QUOTES: Final[frozenset[Slip]] = frozenset({"other quotes"})


def listed(slips: Collection[Slip]) -> str:
    """Return the names of slips in a fixed order, such as ``line ends and indentation``."""
    names = [slip for slip in REASONS if slip in slips and slip != "part of a line"]
    if not names:
        # Nothing else is ignored without a slip, such as a line end where the file ends without one.
        return "white space around it"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
