"""The commands of the main agent that an earlier process of the server has left running, by the events of the log.

They have ended with that process, and the model was not told.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, NamedTuple, cast

from jumpseat.agent.interfaces import EXITED, RUNNING, STARTED
from jumpseat.agent.projection import Appliers, Projection
from jumpseat_protocol import events

TOOLS: Final = frozenset({"bash", "read_bash", "write_bash", "stop_bash"})
_LEFT: Final = re.compile(f"(?:{STARTED}|{RUNNING})" + r"([^;>\s]+)")


class LostCommand(NamedTuple):
    """A command that was left running. ``text`` is its description, or else its command line."""

    shell_id: str
    text: str


class LostCommands(Projection):
    """Follows the events of a log. ``left`` are the commands whose ends the model does not know."""

    def __init__(self) -> None:
        self.left: list[LostCommand] = []
        self._calls: dict[str, events.ToolExecutionStart] = {}

    def _begin_call(self, payload: events.ToolExecutionStart) -> None:
        if payload.tool_name in TOOLS:
            self._calls[payload.tool_call_id] = payload

    def _complete(self, payload: events.ToolExecutionComplete) -> None:
        if (call := self._calls.pop(payload.tool_call_id, None)) is not None:
            self._end_call(call, payload)

    def _notify(self, payload: events.SystemNotification) -> None:
        match payload.kind:
            case {"type": "shell_completed", "shellId": str(shell_id)}:
                self._forget(shell_id)
            case _:
                pass

    appliers: ClassVar[Appliers] = {
        events.ToolExecutionStart: _begin_call,
        events.ToolExecutionComplete: _complete,
        events.SystemNotification: _notify,
    }

    def _end_call(self, call: events.ToolExecutionStart, payload: events.ToolExecutionComplete) -> None:
        text = payload.result.content if payload.result is not None else ""
        given: Any = call.arguments
        arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        if call.tool_name != "bash":
            # The state of the command is in the last lines.
            if EXITED in text or (call.tool_name == "stop_bash" and payload.success):
                self._forget(str(arguments.get("shellId")))
        elif found := _LEFT.findall(text):
            self.left.append(LostCommand(found[-1], str(arguments.get("description") or arguments.get("command"))))

    def _forget(self, shell_id: str) -> None:
        """Forget the latest command with an id, which another process may have given, too."""
        for command in reversed(self.left):
            if command.shell_id == shell_id:
                self.left.remove(command)
                return
