"""Decide whether the options of a command are all known to be harmless.

The tables name the options that are harmless, never those that are not: an option that is missing makes a command
unclear, and a person is asked. The data is in :mod:`jumpseat.agent.shell.harmless`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from msgspec import Struct, field

from jumpseat.agent.shell.harmless import BEHIND_DASHES
from jumpseat.agent.shell.words import Word

_MARKS: Final = "@+:"
"""Operands that begin with one of these may be more than operands: lists of options, line numbers, refspecs."""


_NAMED_VALUE: Final = re.compile(r"--[\w-]+=")


class HarmlessOptions(Struct):
    """The harmless options of a program or a subcommand; see :func:`parse_options` for the notation.

    ``short`` maps a letter to whether its value is absent (``""``), required (``":"``) or optional (``"?"``),
    ``long`` does the same for the options with longer names, dashes included. A value with ``>`` names an output.
    """

    short: dict[str, str] = field(default_factory=dict[str, str])
    long: dict[str, str] = field(default_factory=dict[str, str])
    marks: str = ""
    anything: bool = False
    numbers: bool = False
    ends_at_operand: bool = False
    most_operands: int | None = None
    letters: str = ""
    rest: str | None = None

    def operands(self, arguments: Sequence[Word]) -> list[str] | None:
        """Return the operands among ``arguments``; ``None`` if not all of the options are harmless."""
        found: list[str] = []
        if self.anything:
            return found
        index = 0
        while index < len(arguments):
            word, index = arguments[index], index + 1
            if not _is_certain(word):
                return None
            if word.text == "--":
                return self._behind_dashes(found, arguments[index:])
            if not word.text.startswith("-") or word.text == "-":
                found.append(word.text)
                if word.text and word.text[0] in _MARKS and word.text[0] not in self.marks:
                    return None
                if self.most_operands is not None and len(found) > self.most_operands:
                    return None
                if self.letters and word.text.strip(self.letters):
                    return None
                if self.ends_at_operand:
                    return found
                continue
            match self._value_of(word.text):
                case None:
                    return None
                case True:
                    if index == len(arguments) or not arguments[index].single:
                        return None
                    index += 1
                case False:
                    pass
        return found

    def _behind_dashes(self, found: list[str], arguments: Sequence[Word]) -> list[str] | None:
        if self.rest is not None:
            rest = parse_options(BEHIND_DASHES[self.rest]).operands(arguments)
            return None if rest is None else found
        if self.most_operands == 0 and arguments:
            return None
        if self.letters and any(word.text.strip(self.letters) for word in arguments):
            return None
        return found + [word.text for word in arguments]

    def _value_of(self, text: str) -> bool | None:
        """Return whether the value of an option is the next word; ``None`` if the option is not known."""
        name, equals, _ = text.partition("=")
        kind = self.long.get(name)
        if kind is not None:
            if equals:
                return False if kind else None
            return kind == ":"
        if text.startswith("--"):
            return None
        for index, letter in enumerate(text[1:], start=1):
            kind = self.short.get(letter)
            if kind is None:
                return False if self.numbers and text[index:].isdigit() else None
            if kind == ":":
                return index == len(text) - 1
            if kind == "?":
                return False
        return False


@cache
def parse_options(notation: str) -> HarmlessOptions:
    """Parse the notation of the tables, which consists of these words.

    ``-ab:c?`` are the short options ``-a``, ``-b VALUE`` and ``-c[VALUE]``; ``--all``, ``--size=`` and
    ``--color?`` are long ones; ``-o>`` and ``--output>`` have a value that names an output; ``/name=`` is a long
    one with a single dash, also accepted with two. ``-#`` stands for numbers such as ``-5``, ``*`` for any option.
    ``!`` means that the first operand ends the options, ``<1`` that there is at most one operand, ``=abc`` that
    operands consist of these characters, ``@``, ``+`` and ``:`` that operands may begin with that character, and
    ``-->KEY`` that the options behind ``--`` are those of the row ``KEY``.
    """
    found = HarmlessOptions()
    for word in notation.split():
        if word == "*":
            found.anything = True
        elif word == "!":
            found.ends_at_operand = True
        elif word in _MARKS:
            found.marks += word
        elif word.startswith("<"):
            found.most_operands = int(word[1:])
        elif word.startswith("="):
            found.letters = word[1:]
        elif word.startswith("-->"):
            found.rest = word[3:]
        elif word.startswith(("--", "/")):
            name = word.rstrip("=?>")
            kind = {"=": ":", "?": "?", ">": ">"}.get(word[-1], "")
            names = [name] if word.startswith("--") else [f"-{name[1:]}", f"--{name[1:]}"]
            found.long |= dict.fromkeys(names, kind)
        else:
            found.numbers = found.numbers or "#" in word
            found.short |= dict(re.findall(r"(.)([:?>]?)", word[1:]))
    return found


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


def _is_certain(word: Word) -> bool:
    """Return whether a word is one word that cannot become an option by expansion."""
    if word.glob and _NAMED_VALUE.match(word.text):
        # Whatever the pattern matches begins with the same option.
        return True
    return word.fixed or (
        not word.text.startswith("-")
        # A glob stands for names; whether one of them looks like an option is checked where globs are expanded.
        and (word.glob or (word.single and re.match(r"[\w./~]", word.text) is not None))
    )
