"""Changes to a live session that clients of both protocols make."""

from __future__ import annotations

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionModelChange, SessionTitleChanged


def set_session_name(ctx: Context, session: Session, name: str, *, by_user: bool) -> None:
    """Name a session and emit ``session.title_changed``. A name by the user is not replaced by a generated one.

    Raises:
        InvalidRequestError: the name is empty.
    """
    name = name.strip()
    if not name:
        raise InvalidRequestError("the name of a session must not be empty")
    ctx.registry.storage(session).rename(name, by_user=by_user)
    session.emit(SessionTitleChanged(title=name))


async def set_reasoning_effort(ctx: Context, session: Session, effort: str) -> None:
    """Set the reasoning effort from the next model call on, and emit ``session.model_change``.

    The levels are the provider's own; they are not checked.
    """
    settings = session.settings
    settings.reasoning_effort = effort
    model = settings.model or await ctx.models.default_name(settings)
    if model is not None:
        session.emit(
            SessionModelChange(new_model=model, previous_model=model, reasoning_effort=effort, source="sdk")
        )
