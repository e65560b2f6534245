"""Completions of what a user types: slash commands and their arguments, and files of the workspace."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.commands.running import available_commands
from jumpseat.sessions.context import Parts
from jumpseat_protocol.commands import SlashCommandInfo
from jumpseat_protocol.completions import CompletionItem

TRIGGERS: Final = ("/", "@")
MOST: Final = 50
"""The number of completions."""

_LISTED: Final = 1000
"""The number of files among which the best are chosen."""
_LONGEST: Final = 1024
"""Code units before the cursor that are looked at: no path or command is longer."""

Subject: TypeAlias = Literal["command", "argument", "file"]


class Token(Struct, frozen=True):
    """The word before the cursor: ``typed`` is what the user has typed of it, from ``start`` to ``end``.

    Positions are in UTF-16 code units. ``command`` is the name of the command whose argument it is.
    """

    subject: Subject
    typed: str
    start: int
    end: int
    command: str = ""


def find_token(text: str, offset: int) -> Token | None:
    """Return the word before the cursor, if it can be completed."""
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * offset]
    end = len(units) // 2
    before = units[-2 * _LONGEST :].decode("utf-16-le", "replace")
    whole = end <= _LONGEST

    def token(subject: Subject, word: str, typed: str, command: str = "") -> Token:
        return Token(subject, typed, end - len(word.encode("utf-16-le", "surrogatepass")) // 2, end, command)

    if whole and (match := re.fullmatch(r"/(\S*)", before)):
        return token("command", before, match[1])
    if whole and (match := re.fullmatch(r"/(\S+) ++(.*)", before)):
        found = token("argument", match[2], match[2], match[1])
    else:
        found = None
    if match := re.search(r"(?:^|\s)(@(\S*))$", before):
        return token("file", match[1], match[2])
    return found


async def complete(server: Parts, session: Session, text: str, offset: int) -> list[CompletionItem]:
    """Return the completions at a position of the text, the best first."""
    token = find_token(text, offset)
    if token is None:
        return []
    match token.subject:
        case "command":
            return _commands(session, token)
        case "argument":
            return _arguments(session, token)
        case "file":
            return await _files(server, session, token)


def _commands(session: Session, token: Token) -> list[CompletionItem]:
    typed = token.typed.casefold()
    found: list[CompletionItem] = []
    for command in available_commands(session):
        name = next((name for name in _names(command) if name.casefold().startswith(typed)), None)
        if name is not None:
            found.append(_item(token, f"/{name}", f"/{name}  {command.description}".rstrip(), "command"))
    return found[:MOST]


def _arguments(session: Session, token: Token) -> list[CompletionItem]:
    called, typed = token.command.casefold(), token.typed.casefold()
    choices = [
        choice
        for command in available_commands(session)
        if called in (name.casefold() for name in _names(command)) and command.input is not None
        for choice in command.input.choices or ()
    ]
    return [
        _item(token, choice.name, f"{choice.name}  {choice.description}", "choice")
        for choice in choices
        if choice.name.casefold().startswith(typed)
    ]


def _names(command: SlashCommandInfo) -> list[str]:
    return [command.name, *(command.aliases or ())]


def _item(
    token: Token, insert_text: str, label: str, kind: Literal["command", "choice", "document"]
) -> CompletionItem:
    return CompletionItem(
        insert_text=insert_text, label=label, kind=kind, range_start=token.start, range_end=token.end
    )


async def _files(server: Parts, session: Session, token: Token) -> list[CompletionItem]:
    """Return the files below the typed folder whose names contain the rest, in any case."""
    folder, slash, name = token.typed.rpartition("/")
    fixed = "".join(map(_literal, folder)) + slash
    wanted = "".join(map(_in_any_case, name))
    pattern = f"{fixed}**/*{wanted}*" if wanted else f"{fixed}*"
    depth = None if wanted else folder.count("/") + len(slash) + 1
    found = await server.registry.find_files(session, pattern, depth=depth, limit=_LISTED)

    def position(path: str) -> tuple[bool, int, str]:
        own_name = path.rpartition("/")[2].casefold()
        return not own_name.startswith(name.casefold()), path.count("/"), path

    # A path with a space would not end at the space.
    complete = sorted((path for path in found if not re.search(r"\s", path)), key=position)
    return [_item(token, f"@{path}", path, "document") for path in complete[:MOST]]


def _literal(char: str) -> str:
    return f"\\{char}" if char in "*?[]{},\\" else char


def _in_any_case(char: str) -> str:
    lower, upper = char.lower(), char.upper()
    return f"[{lower}{upper}]" if char.isalpha() and len(lower) == len(upper) == 1 else _literal(char)
