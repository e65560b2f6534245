"""Putting a form to the person behind a client: asked of all that can show one, the first answer counts."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ElicitationResult


async def elicit(
    session: Session, message: str, schema: dict[str, Any], *, source: str | None = None, url: str | None = None
) -> ElicitationResult:
    """Show the form and wait for the answer, as long as it takes and somebody is there who can show it.

    ``source`` is who asks, where it is not the session itself; a ``url`` is opened in place of a form.

    Raises:
        InvalidRequestError: no attached client can show a form.
    """
    if not session.clients.can_elicit():
        raise InvalidRequestError("elicitation is not supported by any attached client")
    pending = session.clients.elicitations.ask(message)
    result = ElicitationResult(action="cancel")
    try:
        session.emit(
            events.ElicitationRequested(
                request_id=pending.id,
                message=message,
                mode="form" if url is None else "url",
                requested_schema=schema if url is None else None,
                elicitation_source=source,
                url=url,
            )
        )
        result = await pending.answer()
    finally:
        session.clients.elicitations.close(pending)
        # Also where nobody waits for the answer any more: clients that show the form take it away.
        session.emit(
            events.ElicitationCompleted(request_id=pending.id, action=result.action, content=result.content)
        )
    return result
