"""The commands that change the session."""

from __future__ import annotations

from jumpseat_protocol.sessions import SessionMetadata
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.dialogue import Option
from jumpseat_terminal.folders import with_tilde
from jumpseat_terminal.paint import count
from jumpseat_terminal.safe import one_line


async def pick_session(chat: Chat) -> str | None:
    """Let the user choose a session, and return its id; an empty string if there are none."""
    found = [session for session in await chat.client.list_sessions() if session.summary or session.name]
    if not found:
        chat.feed.note("There are no sessions yet.")
        return ""
    here = [session for session in found if session.context and session.context.cwd == str(chat.settings.folder)]
    others = [session for session in found if session not in here]
    options = [_option(session, elsewhere=session in others) for session in [*here, *others]]
    return await chat.screen.asking.pick("Which session do you want to resume?", options)


def _option(session: SessionMetadata, *, elsewhere: bool) -> Option:
    when = session.modified_time[:16].replace("T", " ")
    name = one_line(session.name or session.summary or session.session_id)
    place = one_line(with_tilde(session.context.cwd)) if elsewhere and session.context else ""
    return Option(f"{when}  {name}", session.session_id, aside=place)


async def resume(chat: Chat, args: str) -> None:
    session_id: str | None
    if args:
        found = [
            session.session_id
            for session in await chat.client.list_sessions()
            if session.session_id.startswith(args)
        ]
        session_id = found[0] if len(found) == 1 else None
        if session_id is None:
            chat.feed.note(f"{count(len(found), 'session')} found with an id that starts with {args}.", "yellow")
    else:
        session_id = await pick_session(chat)
    if session_id:
        await chat.change_session(session_id)


async def new(chat: Chat, _args: str) -> None:
    await chat.change_session(None)


async def clear(chat: Chat, _args: str) -> None:
    chat.screen.clear()
    await chat.change_session(None)


async def leave(chat: Chat, _args: str) -> None:
    chat.screen.leave()
