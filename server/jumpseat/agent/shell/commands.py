"""What one command of a line is to be remembered as, and what kind of command it is.

An approval remembers a command by its identifier: ``ls``, ``git status``. A command that its identifier would not
do justice to, because an option makes it write or run something, because it runs whatever it is told, or because it
cannot be read plainly, has its own whole text as identifier, which no other command matches. What is known of
programs stands in :mod:`jumpseat.agent.shell.programs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, TypeAlias

from jumpseat.agent.shell.programs import (
    ACTING,
    DEEP,
    HAVE_A_LANGUAGE,
    INTERPRETERS,
    LOADS_URLS,
    ONE_TARGET,
    REACHING,
    READ_ONLY,
    RUNS_OTHERS,
    TAKES_NO_PATHS,
    TAKES_PATHS,
    TAKES_THINGS,
    WITH_SUBCOMMAND,
)


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """``identifier`` is what an approval remembers: ``ls``, ``git status``, or a whole text where not ``clear``."""

    identifier: str
    read_only: bool
    clear: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command. ``text`` has its quotes removed; ``fixed`` says that the shell will use just that.

    A word that is not fixed may be a ``glob``: a pattern for names of files, and nothing else. It is ``wild`` where
    such a pattern is any part of it.
    """

    text: str
    fixed: bool = True
    glob: bool = False
    wild: bool = False


def unclear(text: str) -> ParsedCommand:
    """What only the same text is."""
    return ParsedCommand(text, read_only=False, clear=False)


def judge(text: str, words: Sequence[Word]) -> ParsedCommand:
    """What the command ``text`` with these words is to be remembered as."""
    if not words:
        return unclear(text)
    name, *arguments = words
    # An assignment (PATH=, LD_PRELOAD=) is not plain, so it makes another command of what follows.
    if not name.fixed or not _PLAIN.match(name.text) or _runs_others(name.text):
        return unclear(text)
    # A program that is named with its folder is called in the same ways.
    base = program([name.text])
    known, given = base, name.text
    while known in WITH_SUBCOMMAND or known.count(" ") in range(1, DEEP.get(base, 0)):
        # An option here (git -c ...) may change everything that follows.
        if not arguments or not arguments[0].fixed or not _SUBCOMMAND.match(arguments[0].text):
            if known not in WITH_SUBCOMMAND:
                break
            return unclear(text)
        subcommand = arguments.pop(0).text
        known, given = f"{known} {subcommand}", f"{given} {subcommand}"
        if _runs_others(known):
            return unclear(text)
    if known == given == base and base not in _KNOWN and arguments and _may_be_subcommand(arguments[0]):
        given = f"{given} {arguments[0].text}"
    one_target = base in ONE_TARGET
    options = _options((base, known), (ACTING, READ_ONLY))
    if (one_target or options) and not all(map(_is_known, arguments)):
        return unclear(text)
    # An approval of the plain command must not cover this use of it.
    if acts(words) or (one_target and any(_is_target(word.text) for word in arguments)):
        return unclear(text)
    return ParsedCommand(given, read_only=given in READ_ONLY)


def acts(words: Sequence[Word]) -> bool:
    """Whether an option makes a command run, write or destroy something quite different."""
    return _has_option(words, ACTING, READ_ONLY)


def reaches_further(words: Sequence[Word]) -> bool:
    """Whether an option makes a command open what its words do not name."""
    return _has_option(words, REACHING)


def runs_others(words: Sequence[str]) -> bool:
    """Whether a command runs what its own words say, so that each of them may be a command."""
    name = program(words)
    return _runs_others(name) or any(_runs_others(f"{name} {word}") for word in words[1:3]) or name in ACTING


def interprets(words: Sequence[str]) -> bool:
    """Whether a command takes a program in some language among its words, or commands as values of settings."""
    name = program(words)
    return name in HAVE_A_LANGUAGE or INTERPRETERS.match(name) is not None or sets_up_git(words)


def sets_up_git(words: Sequence[str]) -> bool:
    """Whether ``git`` is told by an option in front what its subcommands mean."""
    leading = takewhile(lambda word: word.startswith("-") or "=" in word, words[1:])
    return program(words) == "git" and any(may_be(word, ("-c", "--config-env", "--exec-path")) for word in leading)


def git_subcommand(words: Sequence[str]) -> str:
    """The first word of ``git``'s words that is no option; empty for another program."""
    return next((word for word in words[1:] if not word.startswith("-")), "") if program(words) == "git" else ""


def program(words: Sequence[str]) -> str:
    """The name of what runs, without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def takes_no_paths(words: Sequence[str]) -> bool:
    """Whether the words of a command are never opened as files."""
    return bool(words) and words[0] in TAKES_NO_PATHS


def loads_urls(words: Sequence[str]) -> bool:
    """Whether any word of a command may be an address, also without a scheme."""
    return program(words) in LOADS_URLS


def may_be(word: str, options: tuple[str, ...]) -> bool:
    """Whether ``word`` may be one of ``options``: abbreviated, with a value, or among joined short options."""
    for option in options:
        if option == "=":
            if "=" in word and not word.startswith("-"):
                return True
        elif option.startswith("--"):
            given = word.partition("=")[0]
            if len(given) > 2 and given.startswith("--") and (option.startswith(given) or given.startswith(option)):
                return True
        elif word.startswith(option) or (
            len(option) == 2 and option[0] == "-" and re.match(r"-[^-]", word) and option[1] in word
        ):
            return True
    return False


def _has_option(words: Sequence[Word], *tables: _Table) -> bool:
    name, *rest = [word.text for word in words] or [""]
    name = program([name])
    plain = [word for word in rest if not word.startswith("-")][:4]
    options = _options([name, *(f"{name} {word}" for word in plain), " ".join((name, *plain[:2]))], tables)
    if name == "tar" and rest and not rest[0].startswith("-"):
        # As it was written before options had dashes.
        rest[0] = f"-{rest[0]}"
    return any(may_be(word, options) for word in rest)


def _options(names: Iterable[str], tables: Iterable[_Table]) -> tuple[str, ...]:
    names = list(names)
    return tuple(option for table in tables for name in names for option in table.get(name, ()))


def _is_known(word: Word) -> bool:
    """Whether a word cannot turn out to be an option; of a glob, that is seen where it is expanded."""
    return word.fixed or (word.glob and not word.text.startswith("-"))


def _is_target(word: str) -> bool:
    return not word.startswith("-") and not word.isdigit()


def _may_be_subcommand(word: Word) -> bool:
    return word.fixed and re.fullmatch(r"[a-z][a-z0-9:_-]*", word.text) is not None


def _runs_others(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last in RUNS_OTHERS or INTERPRETERS.match(last) is not None


_Table: TypeAlias = Mapping[str, tuple[str, ...]]

_KNOWN: Final = TAKES_PATHS | TAKES_NO_PATHS | TAKES_THINGS | LOADS_URLS | {*READ_ONLY, *ACTING, *REACHING}
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+:@-]+\Z")
_SUBCOMMAND: Final = re.compile(r"[a-z0-9][\w:.-]*\Z", re.ASCII)
