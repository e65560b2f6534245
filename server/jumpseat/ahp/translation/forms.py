"""Convert questions to people, and their answers, between sessions and AHP. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.ahp.states.values import Action, JsonObject, present
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ElicitationResult, ExitPlanModeResponse, UserInputResponse
from jumpseat_protocol.events import AutoModeSwitchAnswer, PlanAction
from jumpseat_protocol.visible import exact_line

Requested: TypeAlias = (
    events.UserInputRequested
    | events.ElicitationRequested
    | events.ExitPlanModeRequested
    | events.AutoModeSwitchRequested
)
Completed: TypeAlias = (
    events.UserInputCompleted
    | events.ElicitationCompleted
    | events.ExitPlanModeCompleted
    | events.AutoModeSwitchCompleted
)

ANSWER: Final = "answer"
"""The id of the only question of a request that is no form."""
KEEP_PLANNING: Final = "keep_planning"
_PLAN_LABELS: Final[Mapping[PlanAction, str]] = {
    "interactive": "Approve, and ask before changes",
    "exit_only": "Approve, and stop here",
    "autopilot": "Approve, and work on to the end",
    "autopilot_fleet": "Approve, and work on to the end with several agents",
}
_AUTO_LABELS: Final[Mapping[AutoModeSwitchAnswer, str]] = {
    "yes": "Let the provider choose a model",
    "yes_always": "Always do that in this session",
    "no": "Keep this model",
}


def request_of(asked: Requested) -> JsonObject:
    """Return a question as a ``ChatInputRequest``."""
    match asked:
        case events.UserInputRequested():
            return _request(asked.request_id, asked.question, [_choice_or_text(asked)])
        case events.ExitPlanModeRequested():
            actions = {action: _PLAN_LABELS[action] for action in asked.actions}
            question = _select("The plan", {**actions, KEEP_PLANNING: "Keep planning"}, allowFreeformInput=True)
            return _request(asked.request_id, asked.plan_content or asked.summary, [question])
        case events.AutoModeSwitchRequested():
            about = f" ({asked.error_code})" if asked.error_code else ""
            question = _select("Continue with another model?", _AUTO_LABELS)
            return _request(asked.request_id, f"The model is rate limited{about}.", [question])
        case events.ElicitationRequested():
            # The source comes first: no message of a server can pass for one of the client or of jumpseat.
            source = asked.elicitation_source
            message = f"{exact_line(source)} asks: {asked.message}" if source else asked.message
            if asked.url is not None:
                return {"id": asked.request_id, "message": message, "url": asked.url}
            return _request(asked.request_id, message, _questions(asked.requested_schema or {}))


def completion_of(done: Completed) -> JsonObject:
    """Return the request id, the response and the answers of a question that is settled."""
    answers: JsonObject | None = None
    match done:
        case events.UserInputCompleted():
            response = "cancel" if done.answer is None else "accept"
            answers = None if done.answer is None else {ANSWER: _submitted("text", done.answer)}
        case events.ExitPlanModeCompleted():
            response = "cancel" if done.approved is None else "accept"
            chosen = done.selected_action if done.approved else KEEP_PLANNING
            answers = {ANSWER: _submitted("selected", chosen)} if done.approved is not None and chosen else None
        case events.AutoModeSwitchCompleted():
            response, answers = "accept", {ANSWER: _submitted("selected", done.response)}
        case events.ElicitationCompleted():
            response = done.action or "cancel"
            answers = {name: _answer(value) for name, value in (done.content or {}).items()} or None
    return present({"requestId": done.request_id, "response": response, "answers": answers})


def open_request(chat: JsonObject, request_id: str) -> JsonObject | None:
    """Return a question in the state of a chat, before it is answered."""
    active: JsonObject = chat.get("activeTurn") or {}
    parts: list[JsonObject] = active.get("responseParts") or []
    asked = [part["request"] for part in parts if part["kind"] == "inputRequest" and part.get("response") is None]
    return next((request for request in asked if request["id"] == request_id), None)


def with_drafts(request: JsonObject, action: Action) -> Action:
    """Return the completion of a question with the drafts that all clients see, where it has no answer itself."""
    drafts: JsonObject = request.get("answers") or {}
    given: JsonObject = action.get("answers") or {}
    answers = {**drafts, **given}
    return {**action, "answers": answers} if action["response"] == "accept" and answers else action


def answers_problem(request: JsonObject, answers: Iterable[str]) -> str | None:
    """Return why answers to the questions with these ids cannot be given, or ``None``."""
    known = {question["id"] for question in request.get("questions") or ()}
    unknown = next((name for name in answers if name not in known), None)
    return None if unknown is None else f"there is no question {unknown[:100]!r}"


def completion_problem(request: JsonObject, action: Action) -> str | None:
    """Return why a question cannot be completed so, or ``None``."""
    answers: JsonObject = action.get("answers") or {}
    if (problem := answers_problem(request, answers)) is not None or action["response"] != "accept":
        return problem
    questions: list[JsonObject] = request.get("questions") or []
    needed = [question["id"] for question in questions if question.get("required")]
    missing = next((name for name in needed if _value(action, name) == (None, "")), None)
    return None if missing is None else f"the answer to {missing[:100]!r} is missing"


def user_input_of(asked: events.UserInputRequested, action: Action) -> UserInputResponse:
    """Return the answer to a question of the model, which is told if there is none."""
    value, freeform = _value(action, ANSWER)
    if freeform and action["response"] == "accept":
        return UserInputResponse(answer=freeform, was_freeform=True)
    text = _choices(asked).get(str(value), value)
    if action["response"] != "accept" or not isinstance(text, str) or not text:
        return UserInputResponse(answer="The user did not answer.", was_freeform=True)
    return UserInputResponse(answer=text, was_freeform=text not in (asked.choices or ()))


def plan_answer_of(asked: events.ExitPlanModeRequested, action: Action) -> ExitPlanModeResponse:
    """Return the answer to a plan. All that names no action of the question keeps the model planning."""
    value, freeform = _value(action, ANSWER)
    offered = asked.actions if action["response"] == "accept" else []
    chosen: PlanAction | None = next((one for one in offered if one == value), None)
    return ExitPlanModeResponse(approved=chosen is not None, selected_action=chosen, feedback=freeform or None)


def auto_mode_answer_of(action: Action) -> AutoModeSwitchAnswer:
    """Return the answer whether to continue with another model. No choice means no."""
    value = _value(action, ANSWER)[0]
    answers: Iterator[AutoModeSwitchAnswer] = (answer for answer in _AUTO_LABELS if answer == value)
    chosen = next(answers, None)
    return chosen if chosen is not None and action["response"] == "accept" else "no"


def elicitation_of(action: Action) -> ElicitationResult:
    """Return the content of a form."""
    if action["response"] != "accept":
        return ElicitationResult(action="decline" if action["response"] == "decline" else "cancel")
    given: JsonObject = action.get("answers") or {}
    values = {name: _value(action, name) for name in given}
    content = {name: freeform or value for name, (value, freeform) in values.items()}
    return ElicitationResult(action="accept", content=present(content))


def _value(action: Action, question_id: str) -> tuple[Any, str]:
    """Return the value of an answer, ``None`` if there is none, and what a person wrote instead of a choice."""
    answers: JsonObject = action.get("answers") or {}
    answer: Any = answers.get(question_id)
    if not isinstance(answer, dict):
        return None, ""
    answered = cast("JsonObject", answer)
    held: Any = answered.get("value")
    inner: JsonObject = cast("JsonObject", held) if isinstance(held, dict) else {}
    written: Any = inner.get("freeformValues") or answered.get("freeformValues") or []
    listed = cast("list[Any]", written) if isinstance(written, list) else []
    texts = [text for text in listed if isinstance(text, str) and text]
    return inner.get("value") if answered.get("state") != "skipped" else None, "\n".join(texts)


def _request(request_id: str, message: str, questions: list[JsonObject]) -> JsonObject:
    return {"id": request_id, "message": message, "questions": questions}


def _choices(asked: events.UserInputRequested) -> dict[str, str]:
    return {f"choice-{place}": choice for place, choice in enumerate(asked.choices or ())}


def _choice_or_text(asked: events.UserInputRequested) -> JsonObject:
    if not asked.choices:
        return {"kind": "text", "id": ANSWER, "message": asked.question, "required": True}
    return _select(asked.question, _choices(asked), allowFreeformInput=bool(asked.allow_freeform))


def _select(message: str, options: Mapping[Any, str], **members: Any) -> JsonObject:
    choices = [{"id": option, "label": label} for option, label in options.items()]
    return {
        "kind": "single-select",
        "id": ANSWER,
        "message": message,
        "required": True,
        "options": choices,
        **members,
    }


def _submitted(kind: str, value: Any) -> JsonObject:
    return {"state": "submitted", "value": {"kind": kind, "value": value}}


def _answer(value: Any) -> JsonObject:
    match value:
        case bool():
            return _submitted("boolean", value)
        case int() | float():
            return _submitted("number", value)
        case list():
            return _submitted("selected-many", [str(item) for item in cast("list[Any]", value)])
        case _:
            return _submitted("text", str(value))


# --- forms ------------------------------------------------------------------------------------------------------


def _questions(schema: JsonObject) -> list[JsonObject]:
    """Return the fields of a form, whose schema an MCP server or a client has written."""
    properties: Any = schema.get("properties")
    required: Any = schema.get("required")
    if not isinstance(properties, dict):
        return []
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    fields = cast("dict[str, Any]", properties).items()
    return [
        _field(name, cast("JsonObject", field), name in needed) for name, field in fields if isinstance(field, dict)
    ]


def _field(name: str, field: JsonObject, is_required: bool) -> JsonObject:
    title = field.get("title")
    question: JsonObject = {
        "id": name,
        "title": title if isinstance(title, str) else name,
        "message": str(field.get("description") or title or name),
        "required": is_required,
    }
    items: Any = field.get("items")
    match field.get("type"):
        case "boolean":
            default = field.get("default")
            return {"kind": "boolean", **question} | (
                {"defaultValue": default} if isinstance(default, bool) else {}
            )
        case "number" | "integer" as kind:
            limits = {
                "min": field.get("minimum"),
                "max": field.get("maximum"),
                "defaultValue": field.get("default"),
            }
            return {"kind": kind, **question, **{key: one for key, one in limits.items() if _is_number(one)}}
        case "array" if isinstance(items, dict):
            return {"kind": "multi-select", **question, "options": _options(cast("JsonObject", items))}
        case _ if options := _options(field):
            return {"kind": "single-select", **question, "options": options}
        case _:
            default = field.get("default")
            return {"kind": "text", **question} | ({"defaultValue": default} if isinstance(default, str) else {})


def _options(field: JsonObject) -> list[JsonObject]:
    titled: Any = field.get("oneOf") or field.get("anyOf")
    if isinstance(titled, list):
        pairs = [cast("JsonObject", one) for one in cast("list[Any]", titled) if isinstance(one, dict)]
        return [{"id": str(one.get("const")), "label": str(one.get("title") or one.get("const"))} for one in pairs]
    values: Any = field.get("enum")
    names: Any = field.get("enumNames")
    if not isinstance(values, list):
        return []
    choices = [str(value) for value in cast("list[Any]", values)]
    labels = [str(name) for name in cast("list[Any]", names)] if isinstance(names, list) else choices
    return [{"id": one, "label": label} for one, label in zip(choices, labels or choices, strict=False)]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
