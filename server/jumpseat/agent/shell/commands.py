"""Identify one command of a command line: the identifier that approvals use, and its properties.

An approval names a command by its identifier: ``ls``, ``git status``. If an identifier would cover too much,
because an option makes the command write or run something, because it runs its arguments as commands, or because a
word is not literal, the identifier is the whole text of the command, which no other command matches. The tables of
programs are in :mod:`jumpseat.agent.shell.programs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, TypeAlias

from jumpseat.agent.shell.programs import (
    ACTING_OPTIONS,
    INTERPRETERS,
    LOADS_URLS,
    REACHING_OPTIONS,
    READ_ONLY,
    RUNS_OTHERS,
    SUBCOMMAND_DEPTH,
    TAKES_CODE,
    TAKES_NO_PATHS,
    TAKES_OPERANDS,
    TAKES_PATHS,
    TAKES_TARGETS,
    WITH_SUBCOMMAND,
)


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A command as approvals see it.

    ``identifier`` is what an approval names: ``ls``, ``git status``, or the whole text if the command is not
    ``clear``.
    """

    identifier: str
    read_only: bool
    clear: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command. ``text`` has its quotes removed; ``fixed`` means that the shell uses the word unchanged.

    A word that is not fixed may be a ``glob``: a file name pattern and nothing else. It is ``wild`` if any part of
    it is such a pattern.
    """

    text: str
    fixed: bool = True
    glob: bool = False
    wild: bool = False


def verbatim_command(text: str) -> ParsedCommand:
    """Return a command that is identified by its whole text, so that only the same text matches."""
    return ParsedCommand(text, read_only=False, clear=False)


def identify(text: str, words: Sequence[Word]) -> ParsedCommand:
    """Identify the command ``text``, which consists of ``words``."""
    if not words:
        return verbatim_command(text)
    name, *arguments = words
    # An assignment (PATH=, LD_PRELOAD=) is not a plain name; it may change what the command does.
    if not name.fixed or not _PLAIN_NAME.match(name.text) or _runs_other_commands(name.text):
        return verbatim_command(text)
    # A program that is called with its folder has the same options and subcommands.
    base = program_name([name.text])
    known, identifier = base, name.text
    while known in WITH_SUBCOMMAND or known.count(" ") in range(1, SUBCOMMAND_DEPTH.get(base, 0)):
        # An option in front of the subcommand (git -c ...) may change what it means.
        if not arguments or not arguments[0].fixed or not _SUBCOMMAND.match(arguments[0].text):
            if known not in WITH_SUBCOMMAND:
                break
            return verbatim_command(text)
        subcommand = arguments.pop(0).text
        known, identifier = f"{known} {subcommand}", f"{identifier} {subcommand}"
        if _runs_other_commands(known):
            return verbatim_command(text)
    if (
        known == identifier == base
        and base not in _KNOWN_PROGRAMS
        and arguments
        and _may_be_subcommand(arguments[0])
    ):
        identifier = f"{identifier} {arguments[0].text}"
    has_targets = base in TAKES_TARGETS
    options = _options((base, known), (ACTING_OPTIONS, READ_ONLY))
    if (has_targets or options) and not all(map(_is_no_option, arguments)):
        return verbatim_command(text)
    # An approval of the plain command must not cover this one.
    if has_acting_option(words) or (has_targets and any(_is_target(word.text) for word in arguments)):
        return verbatim_command(text)
    return ParsedCommand(identifier, read_only=identifier in READ_ONLY)


def has_acting_option(words: Sequence[Word]) -> bool:
    """Return whether an option makes the command run, write or destroy something else."""
    return _has_option(words, ACTING_OPTIONS, READ_ONLY)


def has_reaching_option(words: Sequence[Word]) -> bool:
    """Return whether an option makes the command open files that its words do not name."""
    return _has_option(words, REACHING_OPTIONS)


def runs_other_commands(words: Sequence[str]) -> bool:
    """Return whether the command runs other commands, so that any of its words may begin one."""
    name = program_name(words)
    return (
        _runs_other_commands(name)
        or any(_runs_other_commands(f"{name} {word}") for word in words[1:3])
        or name in ACTING_OPTIONS
    )


def takes_code(words: Sequence[str]) -> bool:
    """Return whether the words of the command may contain code in some language, or settings that hold commands."""
    name = program_name(words)
    return name in TAKES_CODE or INTERPRETERS.match(name) is not None or reconfigures_git(words)


def reconfigures_git(words: Sequence[str]) -> bool:
    """Return whether an option in front of a ``git`` subcommand may change what the subcommand means."""
    leading = takewhile(lambda word: word.startswith("-") or "=" in word, words[1:])
    return program_name(words) == "git" and any(
        may_be_option(word, ("-c", "--config-env", "--exec-path")) for word in leading
    )


def git_subcommand(words: Sequence[str]) -> str:
    """Return the first argument of ``git`` that is not an option; empty for other programs."""
    return (
        next((word for word in words[1:] if not word.startswith("-")), "") if program_name(words) == "git" else ""
    )


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def takes_no_paths(words: Sequence[str]) -> bool:
    """Return whether the command never opens its words as files."""
    return bool(words) and words[0] in TAKES_NO_PATHS


def loads_urls(words: Sequence[str]) -> bool:
    """Return whether any word of the command may be a URL, even without a scheme."""
    return program_name(words) in LOADS_URLS


def may_be_option(word: str, options: tuple[str, ...]) -> bool:
    """Return whether ``word`` may be one of ``options``: abbreviated, with a value, or joined with others."""
    for option in options:
        if option == "=":
            if "=" in word and not word.startswith("-"):
                return True
        elif option.startswith("--"):
            name = word.partition("=")[0]
            if len(name) > 2 and name.startswith("--") and (option.startswith(name) or name.startswith(option)):
                return True
        elif word.startswith(option) or (
            len(option) == 2 and option[0] == "-" and re.match(r"-[^-]", word) and option[1] in word
        ):
            return True
    return False


def _has_option(words: Sequence[Word], *tables: _Table) -> bool:
    name, *rest = [word.text for word in words] or [""]
    name = program_name([name])
    plain = [word for word in rest if not word.startswith("-")][:4]
    options = _options([name, *(f"{name} {word}" for word in plain), " ".join((name, *plain[:2]))], tables)
    if name == "tar" and rest and not rest[0].startswith("-"):
        # The old syntax of tar: options without a dash.
        rest[0] = f"-{rest[0]}"
    return any(may_be_option(word, options) for word in rest)


def _options(names: Iterable[str], tables: Iterable[_Table]) -> tuple[str, ...]:
    names = list(names)
    return tuple(option for table in tables for name in names for option in table.get(name, ()))


def _is_no_option(word: Word) -> bool:
    """Return whether a word cannot expand to an option. Globs are checked again where they are expanded."""
    return word.fixed or (word.glob and not word.text.startswith("-"))


def _is_target(word: str) -> bool:
    """Return whether a word names something to do; a number is the value of an option such as ``-j 4``."""
    return not word.startswith("-") and not word.isdigit()


def _may_be_subcommand(word: Word) -> bool:
    return word.fixed and re.fullmatch(r"[a-z][a-z0-9:_-]*", word.text) is not None


def _runs_other_commands(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last in RUNS_OTHERS or INTERPRETERS.match(last) is not None


_Table: TypeAlias = Mapping[str, tuple[str, ...]]

_KNOWN_PROGRAMS: Final = (
    TAKES_PATHS | TAKES_NO_PATHS | TAKES_OPERANDS | LOADS_URLS | {*READ_ONLY, *ACTING_OPTIONS, *REACHING_OPTIONS}
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_./+:@-]+\Z")
_SUBCOMMAND: Final = re.compile(r"[a-z0-9][\w:.-]*\Z", re.ASCII)
