"""Show a form to users. All clients that can show forms get it; the first answer counts."""

from __future__ import annotations

from typing import Any

from jumpseat.agent.clock import new_id
from jumpseat.agent.session.forms import shown_form
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ElicitationResult


async def elicit(
    session: Session, message: str, schema: dict[str, Any], *, source: str | None = None, url: str | None = None
) -> ElicitationResult:
    """Show a form and wait for the answer, as long as a client that can show forms is attached.

    ``source`` names who asks, if not the session itself. A ``url`` is opened instead of a form.

    Raises:
        InvalidRequestError: no attached client can show a form, or the schema is no form.
    """
    if not session.clients.can_elicit():
        raise InvalidRequestError("elicitation is not supported by any attached client")
    form = shown_form(schema) if url is None else None
    question = events.ElicitationRequested(
        request_id=new_id(),
        message=message,
        mode="form" if url is None else "url",
        requested_schema=form,
        elicitation_source=source,
        url=url,
    )
    pending = session.clients.elicitations.ask(question, question.request_id)
    result = ElicitationResult(action="cancel")
    try:
        session.emit(question)
        result = await pending.answer()
    finally:
        session.clients.elicitations.close(pending)
        # Also after a cancellation, so that clients remove the form.
        session.emit(
            events.ElicitationCompleted(request_id=pending.id, action=result.action, content=result.content)
        )
    return result
