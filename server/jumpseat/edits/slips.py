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
    "entities",
    "long dashes",
    "line numbers",
    "code fence",
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
    "entities": "some models write arguments as XML",
    "long dashes": "a long dash may stand for two hyphens",
    "line numbers": "the file was shown with line numbers",
    "code fence": "models quote code in fences",
    "part of a line": "a passage may begin or end within a line",
}
"""All slips, strict ones first. Nothing else is forgiven: not another word, number or case, and no omission."""

NONE: Final[frozenset[Slip]] = frozenset()
ESCAPES: Final[frozenset[Slip]] = frozenset({"escaped line ends", "escaped quotes"})
ENTITIES: Final[frozenset[Slip]] = frozenset({"entities"})


def listed(slips: Collection[Slip]) -> str:
    """Return the names of slips in a fixed order, such as ``line ends and indentation``."""
    names = [slip for slip in REASONS if slip in slips and slip != "part of a line"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
