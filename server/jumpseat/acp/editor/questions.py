"""Questions that the editor puts to its user: permissions, forms, questions of the model."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any, Final

from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.translation.content import text_block
from jumpseat.acp.translation.params import ElicitationAnswer, PermissionAnswer
from jumpseat.acp.translation.permissions import decision_of, options_for
from jumpseat.acp.translation.updates import AskForm, AskPermission, AskToOpen
from jumpseat.errors import ClientCallError
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    ElicitationResult,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer, PlanAction
from jumpseat_protocol.permissions import PermissionDecision

log = logging.getLogger(__name__)

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"

PLAN_ACTIONS: Final[Mapping[str, tuple[PlanAction, ...]]] = {
    "allow_once": ("interactive", "exit_only"),
    "allow_always": ("autopilot", "autopilot_fleet"),
}
"""The actions that an approval of each kind can stand for; the first one that the model offers is taken."""
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


async def ask_permission(editor: Editor, session_id: str, step: AskPermission) -> PermissionDecision:
    """Ask whether a tool call may run. Where the editor fails, the user is not available."""
    params = {"sessionId": session_id, "toolCall": step.call, "options": options_for(step.request)}
    try:
        answer = await editor.connection.ask(PERMISSION, editor.version.permission(params), PermissionAnswer)
    except ClientCallError as error:
        log.warning("session %s: the editor did not ask for permission: %s", session_id, error)
        return PermissionDecision(kind="user-not-available")
    return decision_of(answer.outcome)


async def ask_form(editor: Editor, session_id: str, step: AskForm | AskToOpen) -> ElicitationResult:
    """Ask the user to fill in a form or to open a URL. Where the editor cannot or fails, the result is a cancel."""
    try:
        if isinstance(step, AskForm):
            return await _elicit(editor, session_id, step.message, step.schema)
        return await _open(editor, session_id, step)
    except ClientCallError as error:
        log.warning("session %s: the editor did not show a form: %s", session_id, error)
        return ElicitationResult(action="cancel")


async def ask_user(
    editor: Editor,
    session_id: str,
    call_id: str | None,
    question: str,
    choices: list[str] | None,
    *,
    allow_freeform: bool,
) -> UserInputResponse:
    """Ask the user a question of the model: in a form where the editor has forms, else by a choice of buttons.

    ``call_id`` is the tool call that asks, where it is known; the editor shows the buttons there.

    Raises:
        ClientCallError: the editor can do neither, or the user did not answer.
    """
    if editor.capabilities.elicitation.form is not None:
        return await _ask_in_form(editor, session_id, question, choices, allow_freeform=allow_freeform)
    if not choices:
        raise ClientCallError("the editor cannot ask its user for text")
    options = [
        {"optionId": f"choice-{place}", "name": choice, "kind": "allow_once"}
        for place, choice in enumerate(choices)
    ]
    call = _tool_call(call_id, "other", question, question)
    chosen = await _choose(editor, session_id, call, options)
    if chosen is None:
        raise ClientCallError("the user did not answer")
    return UserInputResponse(answer=chosen["name"], was_freeform=False)


async def ask_about_plan(editor: Editor, call_id: str | None, params: ExitPlanModeParams) -> ExitPlanModeResponse:
    """Ask the user to approve a plan and to choose how it is carried out.

    Raises:
        ClientCallError: the editor failed.
    """
    # One option of each kind: some editors have one key for each.
    actions: dict[str, PlanAction] = {
        kind: next(action for action in group if action in params.actions)
        for kind, group in PLAN_ACTIONS.items()
        if any(action in params.actions for action in group)
    }
    options = [{"optionId": action, "name": PLAN_OPTIONS[action], "kind": kind} for kind, action in actions.items()]
    text = params.plan_content or params.summary
    call = _tool_call(call_id, "switch_mode", params.summary, text)
    chosen = await _choose(editor, params.session_id, call, [*options, KEEP_PLANNING])
    action = actions.get(chosen["kind"]) if chosen is not None else None
    return ExitPlanModeResponse(approved=action is not None, selected_action=action)


async def ask_about_auto_mode(editor: Editor, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
    """Ask whether to continue with a model that the provider chooses. A user who does not choose means no.

    Raises:
        ClientCallError: the editor failed.
    """
    options = [
        {"optionId": answer, "name": name, "kind": kind} for kind, (answer, name) in AUTO_MODE_OPTIONS.items()
    ]
    title = "The model is rate limited"
    text = f"{title} ({params.error_code})." if params.error_code else f"{title}."
    chosen = await _choose(editor, params.session_id, _tool_call(None, "other", title, text), options)
    return AUTO_MODE_OPTIONS[chosen["kind"]][0] if chosen is not None else "no"


def _tool_call(call_id: str | None, kind: str, title: str, text: str) -> dict[str, Any]:
    """Return a question as a tool call, because editors show buttons for tool calls only."""
    return {
        "toolCallId": call_id or f"question-{uuid.uuid4()}",
        "kind": kind,
        "title": title,
        "status": "pending",
        "content": [{"type": "content", "content": text_block(text)}],
    }


async def _choose(
    editor: Editor, session_id: str, call: dict[str, Any], options: list[dict[str, str]]
) -> dict[str, str] | None:
    """Return the option that the user chose, or ``None``."""
    params = editor.version.permission({"sessionId": session_id, "toolCall": call, "options": options})
    outcome = (await editor.connection.ask(PERMISSION, params, PermissionAnswer)).outcome
    if outcome.outcome != "selected":
        return None
    return next((option for option in options if option["optionId"] == outcome.option_id), None)


async def _ask_in_form(
    editor: Editor, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
) -> UserInputResponse:
    fields: dict[str, Any] = {}
    if choices:
        fields["choice"] = {"type": "string", "title": "Choice", "enum": choices}
    if allow_freeform or not choices:
        fields["answer"] = {"type": "string", "title": "Another answer" if choices else "Answer"}
    required = [] if len(fields) > 1 else list(fields)
    schema = {"type": "object", "properties": fields, "required": required}
    result = await _elicit(editor, session_id, question, schema)
    content = result.content or {}
    text, choice = content.get("answer"), content.get("choice")
    if result.action == "accept" and isinstance(text, str) and text:
        return UserInputResponse(answer=text, was_freeform=True)
    if result.action == "accept" and isinstance(choice, str) and choice:
        return UserInputResponse(answer=choice, was_freeform=False)
    raise ClientCallError("the user did not answer")


async def _elicit(editor: Editor, session_id: str, message: str, schema: dict[str, Any]) -> ElicitationResult:
    if editor.capabilities.elicitation.form is None:
        raise ClientCallError("the editor cannot show forms")
    params = {"mode": "form", "sessionId": session_id, "message": message, "requestedSchema": schema}
    answer = await editor.connection.ask(ELICITATION, params, ElicitationAnswer)
    if answer.action == "accept":
        return ElicitationResult(action="accept", content=answer.content or {})
    return ElicitationResult(action="decline" if answer.action == "decline" else "cancel")


async def _open(editor: Editor, session_id: str, step: AskToOpen) -> ElicitationResult:
    if editor.capabilities.elicitation.url is None:
        raise ClientCallError("the editor cannot open URLs")
    params = {
        "mode": "url",
        "sessionId": session_id,
        "message": step.message,
        "elicitationId": step.request_id,
        "url": step.url,
    }
    answer = await editor.connection.ask(ELICITATION, params, ElicitationAnswer)
    action = answer.action
    return ElicitationResult(action=action if action in ("accept", "decline") else "cancel")
