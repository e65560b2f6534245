"""The output of commands as terminals that editors show: one for each call of ``bash``. Pure.

The content of the call refers to its terminal. A command that runs on in the background keeps its terminal, which
shows what the model has read of it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, field

from jumpseat.acp.translation.updates import Call, Translator, Update
from jumpseat.sessions.shown.calls import argument
from jumpseat.sessions.shown.outcomes import READERS, SHELL, outcome_of
from jumpseat_protocol import events


class Terminal(Struct):
    """A terminal with the text that it shows."""

    id: str
    shown: str = ""


class Terminals(Struct):
    """The terminals of a session, by the ids of the calls for the editor, and of the shells behind ended calls."""

    _of_calls: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    _behind: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    # The shells that calls of other tools are about.
    _read: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def background(self) -> list[str]:
        """Return the ids of the terminals whose commands run in the background."""
        return [terminal.id for terminal in self._behind.values()]

    def begin(self, translator: Translator, start: events.ToolExecutionStart) -> Iterator[Update]:
        """Open the terminal of a call that the translator has begun, and show it in the call."""
        arguments: Any = start.arguments
        if start.tool_name in READERS and isinstance(arguments, dict):
            self._read[start.tool_call_id] = str(cast("dict[str, Any]", arguments).get("shellId"))
        calls = translator.running_of(SHELL)
        if start.tool_name != SHELL or not calls:
            return
        call = calls[-1]
        call.in_terminal = True
        terminal = self._of_calls[call.id] = Terminal(f"terminal-{call.id}")
        command = argument(start.arguments, "command")
        yield _update(terminal, cwd=translator.cwd, **({"command": command} if command is not None else {}))
        content = [{"type": "terminal", "terminalId": terminal.id}]
        yield Update({"sessionUpdate": "tool_call_update", "toolCallId": call.id, "content": content})

    def show(self, call: Call | None, output: str) -> Iterator[Update]:
        """Show the output of a running call until now, which may lack its beginning."""
        if call is not None and (terminal := self._of_calls.get(call.id)) is not None:
            yield from _write(terminal, output)

    def complete(self, call: Call | None, end: events.ToolExecutionComplete) -> Iterator[Update]:
        """Show the result of a call that the translator has not ended yet."""
        outcome = outcome_of(end)
        shell_id = self._read.pop(end.tool_call_id, None)
        if call is not None and (terminal := self._of_calls.pop(call.id, None)) is not None:
            if outcome is None:
                # The call shows in words why the command did not run.
                call.in_terminal = False
                yield _update(terminal, exitStatus={})
                return
            yield from _write(terminal, outcome.output)
            if outcome.shell_id is not None:
                self._behind[outcome.shell_id] = terminal
            else:
                yield _exit(terminal, outcome.exit_code)
        elif shell_id is not None and outcome is not None and (terminal := self._behind.get(shell_id)) is not None:
            yield from _write(terminal, "\n".join(filter(None, (terminal.shown, outcome.output))))
            if outcome.shell_id is None:
                del self._behind[shell_id]
                yield _exit(terminal, outcome.exit_code)

    def end(self, notification: events.SystemNotification) -> Iterator[Update]:
        """End the terminal of a command in the background, if a notification is about its end."""
        match notification.kind:
            case {"type": "shell_completed", "shellId": str(shell_id), **rest}:
                if (terminal := self._behind.pop(shell_id, None)) is not None:
                    code = rest.get("exitCode")
                    yield _exit(terminal, code if isinstance(code, int) else None)
            case _:
                pass

    def end_all(self) -> Iterator[Update]:
        """End all terminals: their commands do not run any more."""
        for terminal in (*self._of_calls.values(), *self._behind.values()):
            yield _update(terminal, exitStatus={})
        self._of_calls.clear()
        self._behind.clear()
        self._read.clear()


def _write(terminal: Terminal, text: str) -> Iterator[Update]:
    if text == terminal.shown:
        return
    if text.startswith(terminal.shown):
        data = _encoded(text[len(terminal.shown) :])
        yield Update({"sessionUpdate": "terminal_output_chunk", "terminalId": terminal.id, "data": data})
    else:
        yield _update(terminal, output={"data": _encoded(text)})
    terminal.shown = text


def _exit(terminal: Terminal, code: int | None) -> Update:
    return _update(terminal, exitStatus={} if code is None else {"exitCode": code})


def _update(terminal: Terminal, **values: Any) -> Update:
    return Update({"sessionUpdate": "terminal_update", "terminalId": terminal.id, **values})


def _encoded(text: str) -> str:
    # Lines of a terminal end with a carriage return, too.
    return b64encode(text.replace("\r\n", "\n").replace("\n", "\r\n").encode()).decode()
