"""Recognize programs of ``awk`` and ``sed`` that only print what they read: they open nothing, and run nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jumpseat.agent.shell.options import parse_options
from jumpseat.agent.shell.words import Word

MAX_PROGRAM_CHARS: Final = 500


def printed_files(words: Sequence[Word]) -> list[Word] | None:
    """Return the files that ``awk`` or ``sed`` reads if it only prints; ``None`` for any other command."""
    if not words or not words[0].fixed:
        return None
    name = words[0].text
    options = _AWK_OPTIONS if name in _AWKS else _SED_OPTIONS if name == "sed" else None
    if options is None:
        return None
    left = list(words[1:])
    while left and left[0].fixed and left[0].text.startswith("-"):
        option = left.pop(0).text
        if option in ("-F", "-v") and name != "sed":
            option += left.pop(0).text if left and left[0].fixed else "\n"
        if not options.fullmatch(option):
            return None
    if not left or not left[0].fixed or len(left[0].text) > MAX_PROGRAM_CHARS:
        return None
    program, files = left[0].text, left[1:]
    known = _prints(program) if name != "sed" else _SED.fullmatch(program) is not None
    # An operand with an equals sign sets a variable of awk.
    plain = not any("=" in word.text for word in files) and parse_options("").operands(files) is not None
    return files if known and plain else None


def _prints(program: str) -> bool:
    """Return whether a program of ``awk`` has neither functions that reach further, nor output that goes elsewhere.

    The text is not taken apart: what might be such a thing counts, also in a string.
    """
    pattern, _, actions = program.partition("{")
    if _REACHES.search(program) or ("print" in pattern and re.search(r"[>|]", pattern)):
        return False
    return ">" not in actions and "|" not in actions.replace("||", "")


def reads_more(program: str) -> bool:
    """Return whether a program of ``jq`` may read more than its input: modules, or variables of the environment."""
    return _READS_MORE.search(program) is not None


_READS_MORE: Final = re.compile(r"\b(?:import|include)\b|(?<![\w.\"'$-])env\b|\$ENV\b|\$__prog")
_AWKS: Final = frozenset({"awk", "gawk", "mawk"})
_AWK_OPTIONS: Final = re.compile(r"-F[^\n]{1,20}|-v\w+=[\w.,:/ %-]*")
_REACHES: Final = re.compile(r"system|getline|ARGV|ARGC|ENVIRON|SYMTAB|[@`]|\\\n")
_SED_OPTIONS: Final = re.compile(r"-[nErs]+")
_ADDRESS: Final = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*+/)"
_SUBSTITUTION: Final = "|".join(
    rf"s{mark}(?:[^{mark}\\\n]|\\.)*+{mark}(?:[^{mark}\\\n]|\\.)*+{mark}[gIip\d]*+"
    for mark in ("/", r"\|", "#", ",", ":")
)
_COMMAND: Final = rf"(?:{_ADDRESS}(?:,{_ADDRESS})?)?!?(?:[dpq=]|{_SUBSTITUTION})"
_SED: Final = re.compile(rf"\s*+{_COMMAND}(?:\s*+;\s*+{_COMMAND})*+(?:\s*+;)?\s*+")
