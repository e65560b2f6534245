"""Judge the commands of a line in their order: which are like others, beside others, or in another folder.

Only lines that are sequences of commands are judged (``a && b``, ``a | b``, ``cd x && a``, ``a & b``): in any other
line, nothing is like anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.shell.commands import identify, is_filter
from jumpseat.agent.shell.effects import FoundCommand, path_forms, reads_named
from jumpseat.agent.shell.likeness import LOCALHOST, NOTHING, READS, SAME, SHOWS, Likeness, is_scratch
from jumpseat.agent.shell.programs import CHANGES_FOLDER, CHANGES_SHELL
from jumpseat.agent.shell.runners import likeness
from jumpseat.agent.shell.words import Word


def line_likenesses(found: Sequence[FoundCommand], line: str) -> list[Likeness]:
    """Return for each command of a line what it has in common with others."""
    glue = _glue(found, line)
    written = [target.text for command in found for target in command.targets]
    if (
        glue is None
        or (len(found) > 1 and any(map(changes_later_commands, found)))
        or not all(map(is_scratch, written))
    ):
        return [NOTHING] * len(found)
    moved = _moved_to(found[0]) if len(found) > 1 and glue[1] == "&&" else ""
    if any(_names(command) in CHANGES_FOLDER for command in found[1 if moved else 0 :]):
        return [NOTHING] * len(found)
    # A folder that was changed in parentheses is that of the commands in them only.
    left = next((n for n, before in enumerate(glue) if before.startswith(")")), len(glue))
    result = [
        _likeness(command, moved if index < left else "", fed=before.endswith(("|", "|&")))
        for index, (command, before) in enumerate(zip(found, glue, strict=True))
    ]
    used = {form for command, own in zip(found, result, strict=True) for form in _used(command, own)}
    result = [replace(own, scratch=tuple(path for path in own.scratch if path not in used)) for own in result]
    return [replace(result[0], beside=True), *result[1:]] if moved else result


def _used(command: FoundCommand, own: Likeness) -> Iterator[str]:
    """Yield the paths that a command may use for more than its output."""
    for word in command.words:
        if word.text not in own.scratch:
            yield from (form for form in path_forms(word.text) if form not in own.scratch)


def _glue(found: Sequence[FoundCommand], line: str) -> list[str] | None:
    """Return what connects each command with the one before it; ``None`` if the line is no sequence of commands."""
    opened = line.startswith("(")
    start = line.find(found[0].text)
    if line[:start] != ("(" if opened else ""):
        return None
    glue = [""]
    end = start + len(found[0].text)
    for command in found[1:]:
        start = line.find(command.text, end)
        between = _GLUE.fullmatch(line, end, start) if start >= 0 else None
        if between is None:
            return None
        glue.append(f"{between[1]}{between[2].strip() or ';'}")
        end = start + len(command.text)
    last = _END.fullmatch(line, end)
    closed = sum(before.startswith(")") for before in glue) + (last is not None and bool(last[1]))
    return glue if last is not None and closed == opened else None


def _moved_to(command: FoundCommand) -> str:
    words = command.words
    plain = len(words) == 2 and words[0] == Word("cd") and words[1].fixed and not command.targets
    return words[1].text if plain and re.match(r"[\w/]|\./|\.\Z", words[1].text) else ""


def _likeness(command: FoundCommand, moved: str, *, fed: bool) -> Likeness:
    scratch = tuple(target.text for target in command.targets)
    if command.inputs or not command.words:
        return NOTHING
    if _ends_own_job(command) or _sets_options(command):
        return Likeness(beside=True)
    if _names(command) == "tee" and all(word.fixed for word in command.words):
        operands = [word.text for word in command.words[1:] if word.text != "-a"]
        return Likeness(beside=all(map(is_scratch, operands)), scratch=(*scratch, *operands))
    if fed and (reads_named(command.words) or _formats_json(command)):
        return Likeness((READS,), (READS,), beside=True, scratch=scratch)
    known = identify("", command.words)
    found = likeness(command.words, known) if known.clear or not fed else NOTHING
    if command.settings and any(text.startswith(SHOWS) for text in found.gives):
        # Outside of the sandbox, they may name another host or configuration.
        found = NOTHING
    if not all(text.startswith(SAME) for text in found.gives):
        found = replace(found, gives=(*found.gives, READS))
    reads = known.clear and known.read_only and not command.settings
    if reads and not program_path(command):
        operands = [word.text for word in command.words[1:] if not word.text.startswith("-")]
        return replace(
            found,
            needs=(*found.needs, READS),
            gives=(*found.gives, READS),
            beside=True,
            moved=moved,
            scratch=(*scratch, *operands),
        )
    if fed and is_filter(command.words):
        return replace(found, beside=True, scratch=scratch)
    if moved and program_path(command):
        return NOTHING
    # In a sandbox, localhost has nothing but what the session has started.
    local = LOCALHOST in found.needs
    return replace(found, moved=moved, scratch=(*scratch, *found.scratch), beside=local)


def _formats_json(command: FoundCommand) -> bool:
    name, *rest = command.texts
    return (
        name in ("python", "python3") and rest == ["-m", "json.tool"] and all(word.fixed for word in command.words)
    )


def _ends_own_job(command: FoundCommand) -> bool:
    """Return whether a command waits for what the line has started, or ends it."""
    first, *rest = command.texts
    return first in ("kill", "wait") and all(map(_JOB.fullmatch, rest)) and not command.targets


def _sets_options(command: FoundCommand) -> bool:
    return (
        len(command.words) > 1 and all(map(_SHELL_OPTION.fullmatch, command.texts[1:])) and _names(command) == "set"
    )


def changes_later_commands(command: FoundCommand) -> bool:
    """Return whether a command changes what later ones mean, other than their folder."""
    return _names(command) in _CHANGES_LATER and not _sets_options(command)


def _names(command: FoundCommand) -> str:
    return command.words[0].text if command.words else ""


def program_path(command: FoundCommand) -> str:
    """Return the program of a command if it is named by its path."""
    return _names(command) if "/" in _names(command) else ""


_CHANGES_LATER: Final = CHANGES_SHELL - CHANGES_FOLDER
_REDIRECTED: Final = r"(?:[ \t]*[12&]?>{1,2}[ \t]*&?[\w./-]+)*+"
_GLUE: Final = re.compile(rf"(\)?){_REDIRECTED}[ \t]*(\|&?|&&|\|\||[;&]|\n)[ \t\n]*")
_END: Final = re.compile(rf"(\)?){_REDIRECTED}[ \t]*[;&]?")
_JOB: Final = re.compile(r"%\d*|\$!|\$(?:\w+_)?(?:pid|PID)|-(?:9|INT|KILL|TERM|s)")
_SHELL_OPTION: Final = re.compile(r"-[eux]*o?|pipefail")

OWN_JOB: Final = re.compile(r"(?:\w+_)?(?:pid|PID)=\$!")
"""Notes the number of the process that the line has started."""
