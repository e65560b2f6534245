"""Judge programs by what they are: a copy or a further name of a forbidden program, or one that cannot be known."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterable
from typing import Final

from jumpseat.agent.permissions.rules import Facts, Rule, is_command, rule_words

MAX_PATHS: Final = 32

UNKNOWN: Final = "which program this line would run cannot be known before it runs: name it in plain words"
"""Why a line is refused while a host forbids programs."""


def first_copy(rules: Iterable[Rule], facts: Facts) -> Rule | None:
    """Return the first rule whose program a line runs under another name, or names by its path. Reads files."""
    started = [words for words in facts.possible_commands if words[0] and "/" in words[0]][:MAX_PATHS]
    named = [word for words in facts.possible_commands for word in words[1:] if word and word[0] == "/"][:MAX_PATHS]
    for rule in rules if started or named else ():
        name, *rest = rule_words(rule.argument or "")
        if rule.kind != "shell" or not name or (program := shutil.which(name)) is None:
            continue
        for words in started:
            own = (name, *words[1:])
            if is_command(rule.argument or "", own) and _is_same(
                os.path.join(facts.folder, words[0] or ""), program
            ):
                return rule
        if not rest and any(_is_same(word, program) for word in named):
            return rule
    return None


def hides_programs(rules: Iterable[Rule], facts: Facts) -> bool:
    """Return whether some rule is for programs, and those of the line cannot be known."""
    return facts.unknown_programs and any(rule.kind == "shell" for rule in rules)


def _is_same(path: str, program: str) -> bool:
    try:
        return os.path.samefile(path, program) or (
            os.path.isfile(path)
            and os.path.getsize(path) == os.path.getsize(program)
            and filecmp.cmp(path, program, shallow=False)
        )
    except (OSError, ValueError):
        return False
