"""What an editor asks its person for us: permissions, forms, questions of the model."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from jumpseat.acp.translation.content import text_block
from jumpseat.acp.translation.params import ElicitationAnswer, PermissionAnswer
from jumpseat.acp.translation.permissions import decision_of, options_for
from jumpseat.acp.translation.updates import AskForm, AskPermission, AskToOpen
from jumpseat.errors import ClientCallError, SessionNotFoundError
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    ElicitationResult,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer, PlanAction
from jumpseat_protocol.permissions import PermissionDecision

if TYPE_CHECKING:
    from jumpseat.acp.editor.context import AcpContext
    from jumpseat.acp.editor.view import SessionView

log = logging.getLogger(__name__)

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"

PLAN_ACTIONS: Final[Mapping[str, tuple[PlanAction, ...]]] = {
    "allow_once": ("interactive", "exit_only"),
    "allow_always": ("autopilot", "autopilot_fleet"),
}
"""What an approval of each kind can mean for a plan; the first that the model offers is what it means."""
PLAN_OPTIONS: Final[Mapping[PlanAction, str]] = {
    "interactive": "Approve, and ask before changes",
    "exit_only": "Approve, and stop here",
    "autopilot": "Approve, and work on to the end",
    "autopilot_fleet": "Approve, and work on to the end",
}
AUTO_MODE_OPTIONS: Final[Mapping[str, tuple[AutoModeSwitchAnswer, str]]] = {
    "allow_once": ("yes", "Let the provider choose a model"),
    "allow_always": ("yes_always", "Always do that in this session"),
    "reject_once": ("no", "Keep this model"),
}
KEEP_PLANNING: Final = {"optionId": "reject_once", "name": "Keep planning", "kind": "reject_once"}


async def ask_permission(door: AcpContext, view: SessionView, step: AskPermission) -> None:
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


async def ask_form(door: AcpContext, view: SessionView, step: AskForm | AskToOpen) -> None:
    """Have a person fill in a form, or open an address; an editor that cannot do the one or the other cancels."""
    try:
        if isinstance(step, AskForm):
            result = await _elicit(door, view.session_id, step.message, step.schema)
        else:
            result = await _open(door, view.session_id, step)
    except ClientCallError as error:
        log.warning("session %s: the editor did not show a form: %s", view.session_id, error)
        result = ElicitationResult(action="cancel")
    try:
        view.session.clients.elicitations.answer(step.request_id, result)
    except SessionNotFoundError:
        log.debug("session %s was closed while its person was asked", view.session_id)


async def ask_user(
    door: AcpContext, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
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
    call = _shown_as(door, session_id, "ask_user", question, question)
    chosen = await _choose(door, session_id, {**call, "kind": "other"}, options)
    if chosen is None:
        raise ClientCallError("the user did not answer")
    return UserInputResponse(answer=chosen["name"], was_freeform=False)


async def ask_about_plan(door: AcpContext, params: ExitPlanModeParams) -> ExitPlanModeResponse:
    """Have the person approve a plan, and say how it is to be carried out."""
    # One option of each kind: some editors have one key for each.
    actions: dict[str, PlanAction] = {
        kind: next(action for action in group if action in params.actions)
        for kind, group in PLAN_ACTIONS.items()
        if any(action in params.actions for action in group)
    }
    options = [{"optionId": action, "name": PLAN_OPTIONS[action], "kind": kind} for kind, action in actions.items()]
    text = params.plan_content or params.summary
    call = _shown_as(door, params.session_id, "exit_plan_mode", params.summary, text)
    chosen = await _choose(door, params.session_id, {**call, "kind": "switch_mode"}, [*options, KEEP_PLANNING])
    action = actions.get(chosen["kind"]) if chosen is not None else None
    return ExitPlanModeResponse(approved=action is not None, selected_action=action)


async def ask_about_auto_mode(door: AcpContext, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
    """Have the person say whether to go on with the model that the provider chooses; silence means no."""
    options = [
        {"optionId": answer, "name": name, "kind": kind} for kind, (answer, name) in AUTO_MODE_OPTIONS.items()
    ]
    title = "The model is rate limited"
    text = f"{title} ({params.error_code})." if params.error_code else f"{title}."
    call = _shown_as(door, params.session_id, "auto_mode_switch", title, text)
    chosen = await _choose(door, params.session_id, {**call, "kind": "other"}, options)
    return AUTO_MODE_OPTIONS[chosen["kind"]][0] if chosen is not None else "no"


def _shown_as(door: AcpContext, session_id: str, tool: str, title: str, text: str) -> dict[str, Any]:
    """A question as a tool call, which is what has buttons: the one that asks it, where that is certain."""
    view = door.views.get(session_id)
    calls = [call_id for call_id, one in view.translator.calls.items() if one.tool == tool] if view else []
    return {
        "toolCallId": calls[0] if len(calls) == 1 else f"question-{uuid.uuid4()}",
        "title": title,
        "status": "pending",
        "content": [{"type": "content", "content": text_block(text)}],
    }


async def _choose(
    door: AcpContext, session_id: str, call: dict[str, Any], options: list[dict[str, str]]
) -> dict[str, str] | None:
    """The option that the person has chosen; ``None`` where it was none."""
    params = {"sessionId": session_id, "toolCall": call, "options": options}
    outcome = (await door.connection.ask(PERMISSION, params, PermissionAnswer)).outcome
    if outcome.outcome != "selected":
        return None
    return next((one for one in options if one["optionId"] == outcome.option_id), None)


async def _ask_in_form(
    door: AcpContext, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
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


async def _elicit(door: AcpContext, session_id: str, message: str, schema: dict[str, Any]) -> ElicitationResult:
    if door.capabilities.elicitation.form is None:
        raise ClientCallError("the editor shows no forms")
    params = {"mode": "form", "sessionId": session_id, "message": message, "requestedSchema": schema}
    answer = await door.connection.ask(ELICITATION, params, ElicitationAnswer)
    if answer.action == "accept":
        return ElicitationResult(action="accept", content=answer.content or {})
    return ElicitationResult(action="decline" if answer.action == "decline" else "cancel")


async def _open(door: AcpContext, session_id: str, step: AskToOpen) -> ElicitationResult:
    if door.capabilities.elicitation.url is None:
        raise ClientCallError("the editor opens no addresses")
    params = {
        "mode": "url",
        "sessionId": session_id,
        "message": step.message,
        "elicitationId": step.request_id,
        "url": step.url,
    }
    answer = await door.connection.ask(ELICITATION, params, ElicitationAnswer)
    action = answer.action
    return ElicitationResult(action=action if action in ("accept", "decline") else "cancel")
