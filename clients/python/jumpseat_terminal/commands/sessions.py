"""The commands that change the session, and the one that exports it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jumpseat_protocol.safe import one_line
from jumpseat_protocol.sessions import SessionMetadata
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.dialogue import Option
from jumpseat_terminal.opening import same_folder
from jumpseat_transcript.exporting import FORMATS, ExportError, format_of, write_new_file
from jumpseat_transcript.exporting import export as to_format
from jumpseat_transcript.transcript import build_transcript, usage_of_metrics
from jumpseat_transcript.words import count, time_ago, with_tilde


async def pick_session(chat: Chat, search: str = "") -> str | None:
    """Let the user choose a session, and return its id; an empty string if there are none.

    Sessions that nobody would resume are left out: runs of one prompt, and those that failed before an answer.
    """
    stored = await chat.client.list_sessions()
    found = [session for session in stored if session.resumable]
    left_out = len(stored) - len(found)
    if not found:
        chat.feed.note("There are no sessions yet.")
        return ""
    folder = str(chat.settings.folder)
    here = [session for session in found if session.context and same_folder(session.context.cwd, folder)]
    others = [session for session in found if session not in here]
    now = datetime.now(UTC)
    options = [_option(session, now, elsewhere=session in others) for session in [*here, *others]]
    if left_out:
        reason = "of one prompt or without an answer"
        chat.feed.note(f"{count(left_out, 'session')} {reason} left out; jumpseat sessions list has them.")
    return await chat.screen.asking.pick("Which session do you want to resume?", options, search)


def _option(session: SessionMetadata, now: datetime, *, elsewhere: bool) -> Option:
    name = one_line(session.name or session.summary or session.session_id)
    place = one_line(with_tilde(session.context.cwd)) if elsewhere and session.context else ""
    return Option(f"{time_ago(session.modified_time, now):<10}  {name}", session.session_id, aside=place)


async def resume(chat: Chat, args: str) -> None:
    session_id: str | None = None
    if args:
        stored = await chat.client.list_sessions()
        found = [session.session_id for session in stored if session.session_id.startswith(args)]
        session_id = found[0] if len(found) == 1 else None
    if session_id is None:
        session_id = await pick_session(chat, args)
    if session_id:
        await chat.change_session(session_id)


async def export(chat: Chat, args: str) -> None:
    """Write the session to a file in the working directory; the name of the file chooses the format."""
    name = args or f"session-{chat.session.id[:8]}.md"
    path = _in_folder(chat.folder, name)
    wanted = format_of(path)
    if wanted is None:
        chat.feed.note(f"{one_line(name)} has none of the endings {', '.join(FORMATS)}.", "yellow")
        return
    records: list[dict[str, Any]] = (await chat.session.request("session.getMessages"))["events"]
    metrics = await chat.session.request("session.usage.getMetrics")
    usage = usage_of_metrics(metrics["totalModelMetrics"])
    transcript = build_transcript(chat.session.id, records, folder=str(chat.folder), usage=usage)
    try:
        write_new_file(path, to_format(transcript, records, wanted))
    except ExportError as error:
        chat.feed.show(chat.screen.painter().error(f"/export: {error}"))
        return
    chat.feed.note(f"Wrote {one_line(name)}")


def _in_folder(folder: Path, name: str) -> Path:
    return folder / Path(name).expanduser()


async def new(chat: Chat, _args: str) -> None:
    await chat.change_session(None)


async def clear(chat: Chat, _args: str) -> None:
    chat.screen.clear()
    await chat.change_session(None)


async def leave(chat: Chat, _args: str) -> None:
    chat.screen.leave()
