"""What an editor asks its person for us: permissions, forms, questions of the model."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

from jumpseat.acp.content import text_block
from jumpseat.acp.params import ElicitationAnswer, PermissionAnswer
from jumpseat.acp.permissions import decision_of, options_for
from jumpseat.acp.updates import AskForm, AskPermission
from jumpseat.errors import ClientCallError, SessionNotFoundError
from jumpseat_protocol.callbacks import UserInputResponse
from jumpseat_protocol.elicitation import ElicitationResult
from jumpseat_protocol.permissions import PermissionDecision

if TYPE_CHECKING:
    from jumpseat.acp.door import Door
    from jumpseat.acp.view import SessionView

log = logging.getLogger(__name__)

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"


async def ask_permission(door: Door, view: SessionView, step: AskPermission) -> None:
    """Have a person decide whether a call may run; an editor that cannot ask allows nothing."""
    params = {"sessionId": view.session_id, "toolCall": step.call, "options": options_for(step.request)}
    try:
        answer = await door.connection.ask(PERMISSION, params, PermissionAnswer)
        decision = decision_of(answer.outcome)
    except ClientCallError as error:
        log.warning("session %s: the editor did not ask for permission: %s", view.session_id, error)
        decision = PermissionDecision(kind="user-not-available")
    try:
        view.session.permissions.questions.pending.answer(step.request_id, decision)
    except SessionNotFoundError:
        log.debug("session %s was closed while its person was asked", view.session_id)


async def ask_form(door: Door, view: SessionView, step: AskForm) -> None:
    """Have a person fill in a form."""
    try:
        result = await _elicit(door, view.session_id, step.message, step.schema)
    except ClientCallError as error:
        log.warning("session %s: the editor did not show a form: %s", view.session_id, error)
        result = ElicitationResult(action="cancel")
    try:
        view.session.clients.elicitations.answer(step.request_id, result)
    except SessionNotFoundError:
        log.debug("session %s was closed while its person was asked", view.session_id)


async def ask_user(
    door: Door, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
) -> UserInputResponse:
    """Put a question of the model to the person: as a form, else as a choice of buttons.

    Raises:
        ClientCallError: the editor can do neither, or the person did not want to answer.
    """
    if door.capabilities.elicitation.form is not None:
        return await _ask_in_form(door, session_id, question, choices, allow_freeform=allow_freeform)
    if not choices:
        raise ClientCallError("the editor cannot ask its user for a text")
    options = [
        {"optionId": f"choice-{place}", "name": choice, "kind": "allow_once"}
        for place, choice in enumerate(choices)
    ]
    call: dict[str, Any] = {
        "toolCallId": f"question-{uuid.uuid4()}",
        "title": question,
        "kind": "other",
        "status": "pending",
        "content": [{"type": "content", "content": text_block(question)}],
    }
    params = {"sessionId": session_id, "toolCall": call, "options": options}
    outcome = (await door.connection.ask(PERMISSION, params, PermissionAnswer)).outcome
    for option in options:
        if outcome.outcome == "selected" and outcome.option_id == option["optionId"]:
            return UserInputResponse(answer=option["name"], was_freeform=False)
    raise ClientCallError("the user did not answer")


async def _ask_in_form(
    door: Door, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
) -> UserInputResponse:
    fields: dict[str, Any] = {}
    if choices:
        fields["choice"] = {"type": "string", "title": "Choice", "enum": choices}
    if allow_freeform or not choices:
        fields["answer"] = {"type": "string", "title": "Another answer" if choices else "Answer"}
    required = [] if len(fields) > 1 else list(fields)
    schema = {"type": "object", "properties": fields, "required": required}
    result = await _elicit(door, session_id, question, schema)
    content = result.content or {}
    text, choice = content.get("answer"), content.get("choice")
    if result.action == "accept" and isinstance(text, str) and text:
        return UserInputResponse(answer=text, was_freeform=True)
    if result.action == "accept" and isinstance(choice, str) and choice:
        return UserInputResponse(answer=choice, was_freeform=False)
    raise ClientCallError("the user did not answer")


async def _elicit(door: Door, session_id: str, message: str, schema: dict[str, Any]) -> ElicitationResult:
    params = {"mode": "form", "sessionId": session_id, "message": message, "requestedSchema": schema}
    answer = await door.connection.ask(ELICITATION, params, ElicitationAnswer)
    if answer.action == "accept":
        return ElicitationResult(action="accept", content=answer.content or {})
    return ElicitationResult(action="decline" if answer.action == "decline" else "cancel")
