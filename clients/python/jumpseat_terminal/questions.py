"""Questions to the user at the terminal, one at a time: permissions, questions of the model, forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

import anyio

from jumpseat_client import PermissionDecision, PermissionRequest, UnknownPermission, approve_once, cancel, reject
from jumpseat_protocol.events import AutoModeSwitchAnswer, ElicitationRequested
from jumpseat_protocol.permissions import WritePermission
from jumpseat_terminal.feed import Feed
from jumpseat_terminal.options import Settings
from jumpseat_terminal.permission_text import approval_scope, describe, question_title
from jumpseat_terminal.safe import one_line, safe
from jumpseat_terminal.screen import Option, Screen

NO_ANSWER: Final = "The user declined to answer."


class Questions:
    """The questions of one session."""

    def __init__(self, screen: Screen, feed: Feed, settings: Settings) -> None:
        self._screen = screen
        self._feed = feed
        self.folder = settings.folder
        """The session's working directory."""
        self._one_at_a_time = anyio.Lock()

    # --- permissions --------------------------------------------------------------------------------------------

    async def ask_permission(self, request: PermissionRequest) -> PermissionDecision:
        """Ask for a permission that the server's rules leave to the user; a ``PermissionHandler``."""
        call_id: str | None = getattr(request, "tool_call_id", None)
        call = self._feed.calls.get(call_id or "")
        tool = call.name if call else None
        async with self._one_at_a_time:
            described = describe(request, self._screen.painter(), self.folder, tool)
            self._feed.show(described)
            if call is not None and isinstance(request, WritePermission):
                call.shown = True
            title = question_title(request, lines=described.count("\n"))
            return await self._ask_decision(request, title, as_object(call.arguments) if call else {})

    async def _ask_decision(
        self, request: PermissionRequest, title: str, arguments: dict[str, Any]
    ) -> PermissionDecision:
        options = [Option("yes", "once", "y")]
        scope = approval_scope(request, self.folder)
        if scope:
            options.append(Option(f"yes, for this session: {scope}", "session", "s"))
            options.append(Option(f"yes, in this project: {scope}", "always", "a"))
        if arguments and not isinstance(request, UnknownPermission):
            options.append(Option("edit it first", "edit", "e"))
        options.append(Option("no, and tell the model why", "no", "n"))
        options.append(Option("cancel all calls of this answer", "cancel", "c"))
        while True:
            match await self._screen.choose(title, options):
                case "once":
                    return approve_once()
                case "session":
                    return PermissionDecision(kind="approve-for-session")
                case "always":
                    return PermissionDecision(kind="approve-for-location")
                case "edit":
                    changed = await self._edit_arguments(arguments)
                    if changed is not None:
                        self._feed.show(self._screen.painter().arguments(changed))
                        return PermissionDecision(kind="approve-once", modified_args=changed)
                case "no":
                    feedback = await self._screen.read_line("What should change? (enter: end the turn)")
                    if feedback is not None:
                        self._feed.note(f"no: {feedback}" if feedback.strip() else "no", "yellow")
                        return reject(feedback.strip() or None)
                case "cancel":
                    self._feed.note("cancelled", "yellow")
                    return cancel()
                case _:
                    self._feed.note("no", "yellow")
                    return reject()

    async def _edit_arguments(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Let the user edit the arguments: of a shell command its text, of all other calls the JSON."""
        command = arguments.get("command")
        if isinstance(command, str) and "\n" not in command and safe(command) == command:
            changed = await self._screen.read_line("Command:", command, _check_not_empty)
            return None if changed is None else {**arguments, "command": changed}
        text = await self._screen.read_line("Arguments as JSON:", json.dumps(arguments), _check_json_object)
        return None if text is None else json.loads(text)

    # --- questions ----------------------------------------------------------------------------------------------

    async def ask_input(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask a question of the model; the parameters and the result are those of ``userInput.request``."""
        question, choices = (
            str(params.get("question", "")),
            [str(choice) for choice in as_list(params.get("choices"))],
        )
        free = params.get("allowFreeform") is not False or not choices
        async with self._one_at_a_time:
            self._feed.show(self._screen.painter().markdown(question))
            answer = await self._ask_answer(choices, free=free)
        self._feed.note(f"❯ {answer}" if answer is not None else "no answer", "bold" if answer else "yellow")
        if answer is None:
            return {"answer": NO_ANSWER, "wasFreeform": True}
        return {"answer": answer, "wasFreeform": answer not in choices}

    async def ask_auto_mode(self, params: Mapping[str, Any]) -> AutoModeSwitchAnswer:
        """Ask whether the provider may choose another model after a rate limit, for ``autoModeSwitch.request``."""
        code = params.get("errorCode")
        options = [
            Option("yes", "yes", "y"),
            Option("yes, for the rest of this session", "yes_always", "a"),
            Option("no, retry", "no", "n"),
        ]
        async with self._one_at_a_time:
            self._feed.note(f"The model is rate limited{f' ({one_line(str(code))})' if code else ''}.", "yellow")
            return await self._screen.choose("Let the provider choose another model?", options) or "no"

    async def _ask_answer(self, choices: list[str], *, free: bool) -> str | None:
        if not choices:
            return await self._screen.read_line("Your answer:", check=_check_not_empty)
        options = [Option(one_line(choice), number, _digit_key(number)) for number, choice in enumerate(choices)]
        if free:
            options.append(Option("something else", -1, "0"))
        while True:
            chosen: int | None = await self._screen.choose("Your answer:", options)
            if chosen is None:
                return None
            if chosen >= 0:
                return choices[chosen]
            if (answer := await self._screen.read_line("Your answer:")) and answer.strip():
                return answer

    # --- forms --------------------------------------------------------------------------------------------------

    async def ask_form(self, request: ElicitationRequested) -> dict[str, Any]:
        """Ask a form field by field, and return ``{action, content?}``."""
        async with self._one_at_a_time:
            # The source comes first: a message of many lines cannot imitate another source.
            if request.elicitation_source:
                self._feed.note(f"{one_line(request.elicitation_source)} asks:")
            self._feed.note(request.message, "bold")
            options = [Option("answer", "accept", "y"), Option("decline", "decline", "n")]
            action = await self._screen.choose("Fill in this form?", options) or "cancel"
            if action != "accept":
                return {"action": action}
            schema = request.requested_schema or {}
            content: dict[str, Any] = {}
            required = as_list(schema.get("required"))
            for name, field in as_object(schema.get("properties")).items():
                value = await self._ask_field(name, as_object(field), required=name in required)
                if value is None:
                    return {"action": "cancel"}
                if value != "":
                    content[name] = value
                    self._feed.note(f"{name}: {value}")
            return {"action": "accept", "content": content}

    async def _ask_field(self, name: str, field: Mapping[str, Any], *, required: bool) -> Any:
        """Ask for a valid value: empty if the user leaves an optional field out, ``None`` to cancel the form."""
        title = one_line(str(field.get("title") or name))
        if about := field.get("description"):
            title += f": {one_line(str(about))}"
        kind = field.get("type")
        if kind == "boolean":
            return await self._screen.choose(title, [Option("yes", True, "y"), Option("no", False, "n")])
        if values := as_list(field.get("enum")):
            names = as_list(field.get("enumNames")) or values
            options = [
                Option(one_line(str(label)), value, _digit_key(number))
                for number, (label, value) in enumerate(zip(names, values, strict=False))
            ]
            return await self._screen.choose(title, [*options, *([] if required else [Option("none", "")])])

        def check(text: str) -> str | None:
            if not text.strip():
                return "an answer is required" if required else None
            if kind not in ("integer", "number") or _parse_number(text, kind) is not None:
                return None
            return f"expected {'an integer' if kind == 'integer' else 'a number'}"

        default = field.get("default")
        text = await self._screen.read_line(title, "" if default is None else str(default), check)
        return _parse_number(text, kind) if text and kind in ("integer", "number") else text


def as_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return ``value`` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def _check_not_empty(text: str) -> str | None:
    return None if text.strip() else "must not be empty"


def _check_json_object(text: str) -> str | None:
    try:
        return None if isinstance(json.loads(text), dict) else "expected a JSON object"
    except ValueError as error:
        return f"invalid JSON: {error}"


def _parse_number(text: str, kind: Any) -> int | float | None:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return None


def _digit_key(number: int) -> str:
    return str(number + 1) if number < 9 else ""
