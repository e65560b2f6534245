"""Call the handlers and output functions of a declared tool during one call, and collect what they add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumpseat.agent.permissions.questions import FEEDBACK
from jumpseat.declared.calling import HandlerError, call, log_failure
from jumpseat.declared.env import EnvValues, MissingValueError
from jumpseat.tools.declared.calling_conventions import HANDLER_ORDERS, HANDLER_ORDERS_2024, bind
from jumpseat.tools.declared.definition import Definition, Handler
from jumpseat.tools.declared.substitution import Filled
from jumpseat.tools.declared.view import ChatView, ToolView, as_text
from jumpseat.tools.tool import ToolOutcome


class Handlers:
    """The functions of the tool of one call. ``values`` are those of ``${}`` in texts of ``output``."""

    def __init__(self, definition: Definition, view: ToolView, chat: ChatView, values: EnvValues) -> None:
        self.values = values
        self._definition = definition
        self._view = view
        self._chat = chat
        self.in_messages = False
        """A tool of 2024 has added its output as a message, which takes the place of the result."""

    async def call(self, kind: str, function: Handler, **more: Any) -> Any:
        """Call ``function``, which has the role ``kind``; ``more`` are values that its parameters may name.

        Raises:
            HandlerError: the function failed or timed out.
        """
        definition, view = self._definition, self._view
        cmd, told = more.get("cmd"), as_text(more.get("reason") or "")
        # The user's own words, if there are any.
        reason = told.partition(FEEDBACK)[2] or told or None
        values = {
            "tool": view.tools if definition.legacy else view,
            "tools": view.tools,
            "chat": self._chat,
            "args": view.args,
            "request": view.request,
            "config": view.opts,
            "schema": view.schema,
            "cmd": cmd,
            "stdout": list(view.tools.stdout) or None,
            "stderr": list(view.tools.stderr) or None,
            "opts": {"tools": view.tools, "cmd": cmd, "reason": reason, "opts": {"reason": reason}},
            **more,
            **({"reason": reason} if reason else {}),
        }
        orders = (HANDLER_ORDERS_2024 if definition.legacy else HANDLER_ORDERS)[kind]
        place = f"tool {view.name!r}: {kind}"
        return await call(place, bind(function, values, orders), definition.timeout_s)

    async def handle(self, kind: str) -> Any:
        """Call the handler ``kind`` if the tool has it; return its result."""
        handler = self._definition.handlers.get(kind)
        return None if handler is None else await self.call(kind, handler)

    async def text_of(self, kind: str, **more: Any) -> str | None:
        """Return the text of an output template or function, ``None`` if it has none.

        Raises:
            HandlerError: the function failed or timed out.
        """
        output = self._definition.output.get(kind)
        if output is None:
            return None
        if isinstance(output, str):
            return self._fill(output)
        result = await self.call(kind, output, **more)
        return as_text(result) if isinstance(result, str) else None

    async def add_output(self, kind: str, **more: Any) -> bool:
        """Call an output function, and add a text that it returns to the result; return whether anything was added.

        Raises:
            HandlerError: the function failed or timed out.
        """
        before, messages = len(self._chat.outputs), len(self._chat.messages)
        text = await self.text_of(kind, **more)
        if text and len(self._chat.outputs) == before:
            self._chat.add_tool_output(self._view, text)
        if self._definition.legacy and kind == "success" and len(self._chat.messages) > messages:
            self.in_messages = True
        return len(self._chat.outputs) > before

    async def try_to_add_output(self, kind: str, **more: Any) -> bool:
        """Do the same for a call whose outcome stands even if the function fails: the error is only logged."""
        before = len(self._chat.outputs)
        try:
            return await self.add_output(kind, **more)
        except HandlerError:
            return len(self._chat.outputs) > before

    def finish(self, outcome: ToolOutcome, reports: Sequence[str] = ()) -> ToolOutcome:
        """Put what the functions have added into ``outcome``: the outputs, then ``reports``, and the messages.

        The user is shown the outputs in the form for the user, if any function has distinguished it.
        """
        outputs = [*self._chat.outputs, *((report, None) for report in reports)]
        if self._chat.outputs:
            outcome.text = "\n\n".join(for_llm for for_llm, _ in outputs if for_llm)
            # Clients show the error of a failed call, unless there is a text for the user.
            if not outcome.ok or any(for_user is not None for _, for_user in outputs):
                shown = (for_llm if for_user is None else for_user for for_llm, for_user in outputs)
                outcome.detail = "\n\n".join(filter(None, shown))
        self._chat.closed = True
        outcome.contexts += self._chat.messages
        return outcome

    def cmd_of(self, step: Filled | Handler | None) -> Any:
        """Return the value of the parameter ``cmd``: the argv of a command, else the arguments of the call."""
        if isinstance(step, Filled):
            return list(step.argv)
        if self._definition.legacy:
            return self._view.request.get("action", self._view.args)
        return self._view.args

    def _fill(self, template: str) -> str:
        try:
            return self.values.text(template) or template
        except MissingValueError as error:
            log_failure(f"tool {self._view.name!r}", error)
            return template
