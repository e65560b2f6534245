"""Questions to the user at the terminal, one at a time: permissions, plans and questions of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import anyio

from jumpseat_client import PermissionDecision, PermissionRequest, UnknownPermission, approve_once, cancel, reject
from jumpseat_protocol.events import AutoModeSwitchAnswer, ElicitationRequested
from jumpseat_protocol.permissions import WritePermission
from jumpseat_protocol.safe import one_line, safe
from jumpseat_terminal.dialogue import Option
from jumpseat_terminal.feed import Feed
from jumpseat_terminal.forms import as_list, as_object, ask_form, digit_key
from jumpseat_terminal.options import Settings
from jumpseat_terminal.permission_text import approval_scope, describe, question_title
from jumpseat_terminal.screen import Screen

NO_ANSWER: Final = "The user declined to answer."
_PLAN_ACTIONS: Final = (
    ("interactive", "yes, and ask before each change", "y"),
    ("autopilot", "yes, and go on to the end without questions about the plan", "p"),
    ("exit_only", "yes, but wait for my next prompt", "w"),
)
"""The answers to a plan: the action on the wire, its label and its key."""


class Questions:
    """The questions of one session."""

    def __init__(self, screen: Screen, feed: Feed, settings: Settings) -> None:
        self._screen = screen
        self._asking = screen.asking
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
        options.append(Option("no, and tell the model why", "no", "n", takes_text=True))
        options.append(Option("cancel all calls of this answer", "cancel", "c"))
        while True:
            match await self._asking.choose(title, options):
                case "once":
                    return approve_once()
                case "session":
                    if await self._confirm("for the rest of this session", scope):
                        return PermissionDecision(kind="approve-for-session")
                case "always":
                    if await self._confirm("in this project, in later sessions too", scope):
                        return PermissionDecision(kind="approve-for-location")
                case "edit":
                    changed = await self._edit(arguments)
                    if changed is not None:
                        return PermissionDecision(kind="approve-once", modified_args=changed)
                case "no":
                    feedback = await self._ask_feedback("What should change? (enter: end the turn)")
                    if feedback is not None:
                        self._feed.note(f"no: {feedback}" if feedback else "no", "yellow")
                        return reject(feedback or None)
                case "cancel":
                    self._feed.note("cancelled", "yellow")
                    return cancel()
                case _:
                    self._feed.note("no", "yellow")
                    return reject()

    async def _confirm(self, how_long: str, scope: str) -> bool:
        """Ask again before an approval outlasts its call, with everything that it will cover."""
        options = [Option(f"keep: {scope}", True, "k"), Option("back", False, "b")]
        if not await self._asking.choose(f"Keep this approval {how_long}?", options):
            return False
        self._feed.note(f"kept {how_long}: {scope}\n/permissions lists and revokes what is kept", "yellow")
        return True

    async def _ask_feedback(self, title: str) -> str | None:
        """Return the text that the user gives the model with a no: the draft, or else a line."""
        draft = self._asking.take_draft().strip()
        if draft:
            return draft
        text = await self._asking.read_line(title)
        return None if text is None else text.strip()

    async def _edit(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Let the user edit the arguments and look at the result; ``None`` if they go back to the question."""
        options = [Option("yes", "yes", "y"), Option("edit again", "edit", "e"), Option("back", "back", "b")]
        while True:
            changed = await self._edit_arguments(arguments)
            if changed is None:
                return None
            self._feed.show(self._screen.painter().arguments(changed))
            match await self._asking.choose("Call it like this?", options):
                case "yes":
                    return changed
                case "edit":
                    arguments = changed
                case _:
                    return None

    async def _edit_arguments(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Let the user edit the arguments: of a shell command its text, of all other calls the JSON."""
        command = arguments.get("command")
        if isinstance(command, str) and "\n" not in command and safe(command) == command:
            changed = await self._asking.read_line("Command:", command, _check_not_empty)
            return None if changed is None else {**arguments, "command": changed}
        text = await self._asking.read_line("Arguments as JSON:", json.dumps(arguments), _check_json_object)
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
            while True:
                answer: AutoModeSwitchAnswer | None = await self._asking.choose(
                    "Let the provider choose another model?", options
                )
                lasting = answer == "yes_always"
                if not lasting or await self._confirm("for the rest of this session", "any model of the provider"):
                    return answer or "no"

    async def ask_form(self, request: ElicitationRequested) -> dict[str, Any]:
        """Ask a form field by field, and return ``{action, content?}``."""
        async with self._one_at_a_time:
            return await ask_form(self._asking, self._feed, request)

    # --- plans --------------------------------------------------------------------------------------------------

    async def ask_plan(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for approval of a plan; the parameters and the result are those of ``exitPlanMode.request``."""
        plan = str(params.get("planContent") or params.get("summary") or "")
        actions: list[str] = [str(action) for action in as_list(params.get("actions"))]
        options = [Option(label, action, key) for action, label, key in _PLAN_ACTIONS if action in actions]
        if "interactive" in actions:
            options.insert(1, Option("yes, and make changes to files without asking", "edits", "e"))
        options.append(Option("no, and tell the model what to change", "no", "n", takes_text=True))
        async with self._one_at_a_time:
            self._feed.show(self._screen.painter().markdown(plan))
            while True:
                match await self._asking.choose("Is this plan right?", options):
                    case "edits":
                        scope = "all changes in this folder"
                        if await self._confirm("for the rest of this session", scope):
                            return {"approved": True, "selectedAction": "interactive", "autoApproveEdits": True}
                    case "no":
                        feedback = await self._ask_feedback("What should change?")
                        if feedback is not None:
                            self._feed.note(f"no: {feedback}" if feedback else "no", "yellow")
                            return {"approved": False, "feedback": feedback or None}
                    case str(action):
                        self._feed.note("plan approved")
                        return {"approved": True, "selectedAction": action}
                    case _:
                        self._feed.note("no", "yellow")
                        return {"approved": False}

    async def _ask_answer(self, choices: list[str], *, free: bool) -> str | None:
        if not choices:
            return await self._asking.read_line("Your answer:", check=_check_not_empty)
        options = [Option(one_line(choice), number, digit_key(number)) for number, choice in enumerate(choices)]
        if free:
            options.append(Option("something else", -1, "0", takes_text=True))
        while True:
            chosen: int | None = await self._asking.choose("Your answer:", options)
            if chosen is None:
                return None
            if chosen >= 0:
                return choices[chosen]
            if answer := await self._ask_feedback("Your answer:"):
                return answer


def _check_not_empty(text: str) -> str | None:
    return None if text.strip() else "must not be empty"


def _check_json_object(text: str) -> str | None:
    try:
        return None if isinstance(json.loads(text), dict) else "expected a JSON object"
    except ValueError as error:
        return f"invalid JSON: {error}"
