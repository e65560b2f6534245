"""Judge programs by what they are: a copy or a further name of a forbidden program, or one that cannot be known."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.rules import Facts, Rule, is_command, rule_words

MAX_PATHS: Final = 32

HEAD_BYTES: Final = 64 * 1024
"""What is compared of programs of one size. Whoever changes a copy could change it at any place."""

UNKNOWN: Final = "which program this line would run cannot be known before it runs: name it in plain words"
"""Why a line is refused while a host forbids programs."""


def first_copy(rules: Iterable[Rule], facts: Facts) -> Rule | None:
    """Return the first rule whose program a line runs under another name, or names by its path. Reads files."""
    commands = facts.possible_commands
    started = [
        (path, words)
        for words in commands
        if words[0] and "/" in words[0] and _is_program(path := Path(facts.folder, words[0]))
    ][:MAX_PATHS]
    named = [word for words in commands for word in words[1:] if word and word[0] == "/"][:MAX_PATHS]
    others = [path for word in named if _is_program(path := Path(word))]
    for rule in rules if started or others else ():
        name, *rest = rule_words(rule.argument or "")
        if rule.kind != "shell" or not name or (program := shutil.which(name)) is None:
            continue
        for path, words in started:
            if is_command(rule.argument or "", (name, *words[1:])) and _is_same(path, Path(program)):
                return rule
        if not rest and any(_is_same(path, Path(program)) for path in others):
            return rule
    return None


def hides_programs(rules: Iterable[Rule], facts: Facts) -> bool:
    """Return whether some rule is for programs, and those of the line cannot be known."""
    return facts.unknown_programs and any(rule.kind == "shell" for rule in rules)


def _is_program(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def _is_same(path: Path, program: Path) -> bool:
    try:
        if path.samefile(program):
            return True
        if path.stat().st_size != program.stat().st_size:
            return False
        with path.open("rb") as one, program.open("rb") as other:
            return one.read(HEAD_BYTES) == other.read(HEAD_BYTES)
    except OSError:
        return False
