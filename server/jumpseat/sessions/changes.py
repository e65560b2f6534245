"""Changes to a live session that clients of both protocols make."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Final

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context, Parts
from jumpseat.sessions.options import refresh_found_agents
from jumpseat.system.git import working_directory_context
from jumpseat_protocol.events import SessionModelChange, SessionSkillsLoaded, SessionTitleChanged, SessionWarning

LONGEST_NAME: Final = 100
"""Limit on the name of a new session, in UTF-16 units, as in the SDKs."""


def check_new_name(name: str) -> None:
    """Check the name that a client gives a session that it creates.

    Raises:
        InvalidRequestError: the name is invalid.
    """
    if not name or name != name.strip():
        raise InvalidRequestError(f"name: {name[:20]!r} is empty, or begins or ends with white space")
    if len(name.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST_NAME:
        raise InvalidRequestError(f"name: expected at most {LONGEST_NAME} UTF-16 units")
    if '"' in name or any(unicodedata.category(character) == "Cc" for character in name):
        raise InvalidRequestError("name: expected no control characters and no double quotes")


def set_session_name(ctx: Parts, session: Session, name: str, *, by_user: bool) -> None:
    """Name a session and emit ``session.title_changed``. A name by the user is not replaced by a generated one.

    Raises:
        InvalidRequestError: the name is empty.
    """
    name = name.strip()
    if not name:
        raise InvalidRequestError("the name of a session must not be empty")
    ctx.registry.storage(session).rename(name, by_user=by_user)
    session.emit(SessionTitleChanged(title=name))


def set_stored_name(ctx: Parts, session_id: str, name: str) -> None:
    """Name a session that is not live, for its user.

    Raises:
        InvalidRequestError: the name is empty.
        SessionNotFoundError: there is no such session.
    """
    if not name.strip():
        raise InvalidRequestError("the name of a session must not be empty")
    ctx.registry.store.get_existing(session_id).rename(name.strip(), by_user=True)


async def set_reasoning_effort(ctx: Context, session: Session, effort: str) -> None:
    """Set the reasoning effort from the next model call on, and emit ``session.model_change``.

    The levels are the provider's own; they are not checked.
    """
    settings = session.settings
    settings.set_options(reasoning_effort=effort)
    model = settings.options.model or await ctx.models.default_name(settings)
    if model is not None:
        session.emit(
            SessionModelChange(new_model=model, previous_model=model, reasoning_effort=effort, source="sdk")
        )


def set_working_directory(ctx: Parts, session: Session, cwd: Path) -> None:
    """Change the working directory from the next call on. The change is stored for resume."""
    ctx.registry.storage(session).move(
        working_directory_context(cwd, host_git=session.settings.options.enable_host_git_operations)
    )
    session.settings.cwd = cwd
    refresh_found_agents(ctx, session.settings)
    session.announce_agent(session.settings.options.agent)
    ctx.mcp.begin(session)
    if (host := ctx.mcp.get(session)) is not None:
        host.notify_roots_changed()


def folder_of(session: Session, path: str) -> Path:
    """Return the folder at ``path``, which may be relative to the working directory.

    Raises:
        InvalidRequestError: there is no such folder.
    """
    place = session.permissions.path_scope.resolve(path)
    if place is None or not place.is_folder:
        raise InvalidRequestError(f"{path[:200]!r} is not a directory")
    return Path(place.given)


def allow_additional_folders(session: Session) -> None:
    """Allow the additional folders that a client has just given; of a folder that does not exist, warn."""
    for path in session.settings.options.additional_directories:
        try:
            folder = folder_of(session, path)
        except InvalidRequestError as error:
            message = f"additionalDirectories: {error}; it is left out"
            session.emit(SessionWarning(warning_type="additional_directories", message=message))
            continue
        added = session.permissions.path_scope.added_folders
        if folder not in added:
            added.append(folder)


def switch_skill(ctx: Parts, session: Session, name: str, *, on: bool) -> None:
    """Enable or disable a skill, from the next model call on.

    Raises:
        InvalidRequestError: there is no such skill.
    """
    disabled = session.settings.options.disabled_skills
    known = {skill.name for skill in ctx.process.skills.for_session(session).all()}
    if name not in known and name not in disabled:
        raise InvalidRequestError(f"unknown skill {name[:128]!r}")
    others = [other for other in disabled if other != name]
    session.settings.set_options(disabled_skills=others if on else [*others, name])
    ctx.registry.store_options(session)
    emit_skills(ctx, session)


def emit_skills(ctx: Parts, session: Session) -> None:
    """Emit the skills of a session to its clients."""
    session.emit(SessionSkillsLoaded(skills=ctx.process.skills.for_session(session).to_wire()))
