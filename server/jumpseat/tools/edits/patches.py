"""Read patches in the form that GPT-5 and codex models were trained on: ``*** Begin Patch`` to ``*** End Patch``.

The text around a patch is ignored: the shell command or the code fence that a model may put around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

Action: TypeAlias = Literal["add", "update", "delete"]

_ACTIONS: Final[dict[str, Action]] = {
    **dict.fromkeys(("add", "create", "new"), "add"),
    **dict.fromkeys(("update", "modify", "edit", "change"), "update"),
    **dict.fromkeys(("delete", "remove"), "delete"),
}
_BEGIN: Final = re.compile(r"([ \t]*)\*\*\* ?Begin Patch\b.*", re.IGNORECASE)
_END: Final = re.compile(r"[ \t]*\*\*\* ?End Patch\b.*", re.IGNORECASE)
_FILE: Final = re.compile(rf"\*\*\* ?({'|'.join(_ACTIONS)})(?: file)?:(.*)", re.IGNORECASE)
_MOVE: Final = re.compile(r"\*\*\* ?(?:Move|Rename)(?: file)?(?: to)?:(.*)", re.IGNORECASE)
_AT_END: Final = re.compile(r"\*\*\* ?End of File\b.*", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)?(?: ?@@.*)?")
_HEREDOC: Final = re.compile(r"<<-?\s*['\"]?(\w+)")
_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})\s*")

FORM: Final = (
    "Write *** Begin Patch, then for each file *** Add File: PATH, *** Update File: PATH or *** Delete File: PATH"
    " with its lines, then *** End Patch."
)


class PatchError(Exception):
    """A text is not a patch; the message is for the model."""


class Hunk(Struct, frozen=True):
    """A passage of a file with its change. Its ``lines`` begin with a blank, ``-`` or ``+``, if they are marked.

    ``contexts`` are lines of the file above the passage, the outermost first; ``at_end`` puts it at the file's end.
    """

    lines: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def changes(self) -> bool:
        return any(line.startswith(("-", "+")) for line in self.lines)


class FilePatch(Struct, frozen=True):
    """The change of one file. ``text`` is that of a new file, ``move_to`` the new path of an updated one."""

    action: Action
    path: str
    text: str = ""
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


def parse_patch(text: str) -> list[FilePatch]:
    """Return the changes of files in a patch.

    Raises:
        PatchError: the text contains no patch, or one without a clear meaning.
    """
    lines = _unwrapped(text)
    starts = [index for index, line in enumerate(lines) if _FILE.fullmatch(line)]
    if not starts:
        raise PatchError(f"The patch names no file. {FORM}")
    if any(line.strip() for line in lines[: starts[0]]):
        raise PatchError(f"The patch begins with {lines[0][:80]!r} instead of a file. {FORM}")
    sections = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    return [_file(header, rest) for header, *rest in sections]


def named_files(text: str) -> list[str]:
    """Return the paths that a text names as those of its files, if it is a patch, in their order."""
    found = (_FILE.fullmatch(line) for line in text.splitlines())
    return list(dict.fromkeys(_path(match[2]) for match in found if match))


# --- the text around a patch ------------------------------------------------------------------------------------


def _unwrapped(text: str) -> list[str]:
    """Return the lines between the first ``*** Begin Patch`` and the last ``*** End Patch``, or without them."""
    text = _decoded(text).replace("\r\n", "\n")
    lines = text.split("\n")
    first = next((index for index, line in enumerate(lines) if _BEGIN.fullmatch(line)), None)
    if first is None:
        first = next((index for index, line in enumerate(lines) if _FILE.fullmatch(line)), 0)
        around, indentation = lines[:first], ""
    else:
        begin = _BEGIN.fullmatch(lines[first])
        around, indentation = lines[: first + 1], begin[1] if begin else ""
        first += 1
    last = next((index for index in range(len(lines) - 1, first - 1, -1) if _END.fullmatch(lines[index])), None)
    inside = lines[first:last] if last is not None else _without_tail(lines[first:], around)
    inside = [line.removeprefix(indentation) for line in inside]
    return [line for line in inside if not _BEGIN.fullmatch(line) and not _END.fullmatch(line)]


def _decoded(text: str) -> str:
    """Return the patch in a text that is JSON, or has escaped line ends."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        try:
            for found in _strings(json.loads(text)):
                if _FILE.search(found):
                    return found
        except (ValueError, RecursionError):
            pass
    if "\n" not in text.strip() and "\\n" in text:
        return text.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")
    return text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        items = cast("dict[str, Any] | list[Any]", value)
        for item in items.values() if isinstance(items, dict) else items:
            yield from _strings(item)


def _without_tail(lines: list[str], around: list[str]) -> list[str]:
    """Remove what ends the shell command or the code fence around a patch, if it has lost its own end."""
    words = {match[1] for line in around for match in _HEREDOC.finditer(line)}
    fenced = any(line.lstrip().startswith(("```", "~~~")) for line in around)
    while lines:
        last = lines[-1]
        if last.strip() and last.strip() not in words and not (fenced and _FENCE.fullmatch(last)):
            break
        lines = lines[:-1]
    return lines


# --- files ------------------------------------------------------------------------------------------------------


def _file(header: str, lines: list[str]) -> FilePatch:
    match = _FILE.fullmatch(header)
    assert match is not None, "sections begin with the line that names the file"
    action, path = _ACTIONS[match[1].lower()], _path(match[2])
    if not path:
        raise PatchError(f"The line {header!r} names no file.")
    while lines and not lines[-1].strip(" "):
        lines.pop()
    if action == "add":
        return FilePatch(action, path, _new_text(path, lines))
    if action == "delete":
        if lines and not all(line.startswith("-") for line in lines):
            raise PatchError(f"Expected nothing after *** Delete File: {path}, found {lines[0][:80]!r}.")
        return FilePatch(action, path)
    move = _MOVE.fullmatch(lines[0]) if lines else None
    hunks = tuple(_hunks(lines[1:] if move else lines))
    if move is None and not any(hunk.changes for hunk in hunks):
        raise PatchError(f"The patch of {path} changes nothing: it has no line that begins with - or +.")
    return FilePatch(action, path, hunks=hunks, move_to=_path(move[1]) if move else None)


def _path(text: str) -> str:
    return text.strip().strip("`'\"").strip()


def _new_text(path: str, lines: list[str]) -> str:
    lines = [line for line in lines if not _AT_END.fullmatch(line)]
    if any(line.startswith("+") for line in lines):
        unmarked = next((line for line in lines if line.strip() and not line.startswith("+")), None)
        if unmarked is not None:
            raise PatchError(f"Each line of the new file {path} begins with +, but not {unmarked[:80]!r}.")
        lines = [line[1:] if line.startswith("+") else "" for line in lines]
    return "".join(f"{line}\n" for line in lines)


def _hunks(lines: list[str]) -> Iterator[Hunk]:
    if len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ "):
        # The names of the file in a unified diff.
        lines = lines[2:]
    contexts: list[str] = []
    body: list[str] = []
    at_end = False
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if body:
                yield _hunk(body, contexts, at_end=at_end)
                contexts, body, at_end = [], [], False
            if context := _context(line):
                contexts.append(context)
        elif _AT_END.fullmatch(line):
            at_end = True
        elif not line.startswith("\\ No newline"):
            body.append(line)


def _hunk(body: list[str], contexts: list[str], *, at_end: bool) -> Hunk:
    while body and not body[-1].strip(" "):
        body = body[:-1]
    return Hunk(tuple(body), tuple(contexts), at_end)


def _context(line: str) -> str:
    """Return the line of the file after ``@@``; empty if there is none, or the line numbers of a unified diff."""
    text = line[2:].strip()
    return "" if _NUMBERS.fullmatch(text) else text.removesuffix("@@").strip()
