"""The commands ``/diff`` and ``/undo``: the changes that tools have made to files."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.paint import DIFF_LINES
from jumpseat_transcript.calls import count_changes
from jumpseat_transcript.words import count

MOST_PROMPTS: Final = 100
_STATES: Final = {
    "as-left": "",
    "changed-since": "changed since then",
    "not-kept": "too large to be kept",
}


async def diff(chat: Chat, args: str) -> None:
    if args and not (args.isdecimal() and 0 < int(args) <= MOST_PROMPTS):
        chat.feed.note(f"Expected /diff and a number of prompts from 1 to {MOST_PROMPTS}.", "yellow")
        return
    prompts = (await chat.session.request("jumpseat.changes.list", limit=int(args or 1)))["prompts"]
    if not prompts:
        chat.feed.note("No prompt of this session has changed files.")
        return
    painter = chat.screen.painter()
    parts: list[str] = []
    for changes in reversed(prompts):
        parts.append(painter.notice(f"after: {changes['prompt']}"))
        for file in changes["files"]:
            note = "  ".join(part for part in (count_changes(file["diff"]), _STATES[file["state"]]) if part)
            parts.append(painter.tool(_shorten(chat, file), None, note, failed=False))
            parts.append(painter.diff(file["diff"], DIFF_LINES) if file["diff"] else "")
    chat.feed.show("".join(parts))
    chat.feed.keep_full(
        "The changes in full",
        "".join(
            painter.tool(_shorten(chat, file), None, "", failed=False) + painter.diff(file["diff"])
            for changes in reversed(prompts)
            for file in changes["files"]
        ),
    )


async def undo(chat: Chat, _args: str) -> None:
    outcome = await chat.session.request("jumpseat.changes.undo")
    if not outcome.get("prompt"):
        chat.feed.note("There is nothing to undo.")
        return
    undone, left = outcome["undone"], outcome["left"]
    painter = chat.screen.painter()
    text = painter.notice(f"undo: {outcome['prompt']}")
    if undone:
        names = ", ".join(_relative(chat, name) for name in undone)
        text += painter.notice(f"{count(len(undone), 'file')} as before: {names}", "")
    if left:
        names = ", ".join(_relative(chat, name) for name in left)
        text += painter.warning(f"not touched, because changed since then or too large: {names}")
    chat.feed.show(text)


def _shorten(chat: Chat, file: dict[str, Any]) -> str:
    return _relative(chat, str(file["path"]))


def _relative(chat: Chat, path: str) -> str:
    try:
        return str(PurePath(path).relative_to(chat.folder))
    except ValueError:
        return path
