"""The command ``/rewind``: go back to an earlier prompt, with the files or without."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final

from jumpseat_protocol.safe import one_line
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.dialogue import Option
from jumpseat_transcript.user_commands import split_prompt
from jumpseat_transcript.words import count, time_ago

_REASONS: Final = {"user-modified": "changed since then", "skipped-capture": "too large to be kept"}


async def rewind(chat: Chat, _args: str) -> None:
    found = await chat.session.request("session.history.listRewindPoints")
    if found.get("unavailableReason"):
        chat.feed.note("Wait until the work has ended, or cancel it, before you go back.", "yellow")
        return
    points: list[dict[str, Any]] = found["points"]
    if not points:
        chat.feed.note("There is no prompt to go back to.")
        return
    now = datetime.now(UTC)
    options = [
        Option(
            f"{time_ago(point['timestamp'], now):<10}  {_prompt(point)}",
            point,
            aside=f"+{point['linesAdded']} -{point['linesRemoved']}" if point["turnChangedFiles"] else "",
        )
        for point in reversed(points)
    ]
    point: dict[str, Any] | None = await chat.screen.asking.pick("Go back to before which prompt?", options)
    if point is None:
        return
    mode = await _pick_mode(chat, point)
    if mode is not None:
        outcome = await chat.session.request("session.history.rewind", eventId=point["eventId"], mode=mode)
        _show(chat, point, outcome)


async def _pick_mode(chat: Chat, point: dict[str, Any]) -> str | None:
    """Show the files that would change, and let the user decide; ``None`` if they dismiss the question."""
    files: list[dict[str, Any]] = []
    if point["canRestoreFiles"]:
        files = (await chat.session.request("session.history.previewRewind", eventId=point["eventId"]))["files"]
    if files:
        rows = [
            (
                f"{file['changeType']}: {_relative(chat, file['path'])}",
                f"+{file['linesAdded']} -{file['linesRemoved']}",
            )
            for file in files
        ]
        chat.feed.show(chat.screen.painter().table(rows))
    options = [Option("the conversation", "conversation")]
    if files:
        aside = f"{count(len(files), 'file')}, unless changed since then"
        options.insert(0, Option("the conversation and the files", "conversation-and-files", aside=aside))
    return await chat.screen.asking.pick("What goes back?", options)


def _show(chat: Chat, point: dict[str, Any], outcome: dict[str, Any]) -> None:
    painter = chat.screen.painter()
    if outcome.get("eventsRemoved") is None:
        problem = outcome.get("error") or outcome["outcome"]
        chat.feed.show(painter.error(f"/rewind: nothing has changed: {one_line(str(problem))}"))
        return
    text = painter.notice(f"back before: {_prompt(point)}")
    if outcome["restoredFiles"]:
        names = ", ".join(_relative(chat, path) for path in outcome["restoredFiles"])
        text += painter.notice(f"{count(len(outcome['restoredFiles']), 'file')} as before: {names}", "")
    for file in outcome["skippedFiles"]:
        text += painter.warning(f"not touched, because {_REASONS[file['reason']]}: {_relative(chat, file['path'])}")
    if outcome.get("error"):
        text += painter.warning(one_line(str(outcome["error"])))
    chat.feed.show(text)


def _prompt(point: dict[str, Any]) -> str:
    """Return the prompt as its user typed it, without the commands that were sent with it."""
    return one_line(split_prompt(point["userMessage"])[0])


def _relative(chat: Chat, path: str) -> str:
    try:
        return one_line(str(PurePath(path).relative_to(chat.folder)))
    except ValueError:
        return one_line(path)
