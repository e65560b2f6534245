"""The output of commands as terminals without a pseudoterminal: one for each call that runs a command. Pure.

A terminal is opened by the first output of its command, or by the result of the call, which refers to it. A call
that fails has none. Output that is shown while a call runs is not stored: with the result, the terminal shows what
the log has. That of a command that runs on in the background shows what :meth:`Terminals.show_output` is told, and
after a restart what the model has read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec import Struct, field

from jumpseat.ahp.states.values import Action, JsonObject, State, present
from jumpseat.ahp.translation.events import Translator
from jumpseat.ahp.translation.turns import Call
from jumpseat.ahp.translation.uris import session_uri, terminal_uri
from jumpseat.sessions.shown.outcomes import READERS, SHELL, outcome_of
from jumpseat_protocol import events

MOST_ENDED: Final = 64
"""The terminals of ended commands that are kept."""
PREVIEW_CHARS: Final = 2000
"""The end of the output in the result of a call, for clients that do not open the terminal."""


class Opened(NamedTuple):
    """A further channel of the session begins in a state."""

    uri: str
    state: State


class Published(NamedTuple):
    """An action on a channel."""

    uri: str
    action: Action


class Closed(NamedTuple):
    """A further channel of the session is no more."""

    uri: str


Step: TypeAlias = Opened | Published | Closed


class Ended(NamedTuple):
    """The end of a command."""

    exit_code: int | None


class Terminal(Struct):
    """A terminal with the text that it shows. ``is_live``: that is all output, not what the model has read."""

    uri: str
    shown: str = ""
    has_ended: bool = False
    is_live: bool = False


class Terminals(Struct):
    """The terminals of a session."""

    session_id: str
    # By the addresses of the terminals.
    _of_calls: dict[str, Terminal] = field(default_factory=dict[str, Terminal])
    # Those of calls that have ended, by the addresses of the chats and the ids of the shells.
    _behind: dict[tuple[str, str], Terminal] = field(default_factory=dict[tuple[str, str], Terminal])
    # The shells that calls are about, by the addresses of the chats and the ids of the calls.
    _read: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _ended: deque[str] = field(default_factory=deque[str])

    def steps(self, chat: str, translator: Translator, event: events.Event) -> Iterator[Step]:
        """Return the steps for an event of an agent, before the translator of its chat gets the event."""
        match event.payload:
            case events.ToolExecutionStart(tool_name=name) as start if name in READERS:
                arguments: Any = start.arguments
                if isinstance(arguments, dict):
                    shell_id = str(cast("JsonObject", arguments).get("shellId"))
                    self._read[chat, start.tool_call_id] = shell_id
            case events.ToolExecutionPartialResult() as partial:
                yield from self._show(chat, translator, partial)
            case events.ToolExecutionComplete() as end:
                call = translator.turn.call(end.tool_call_id, "running") if translator.turn is not None else None
                if call is not None and call.tool == SHELL:
                    yield from self._complete(chat, translator, call, end)
                elif (shell_id := self._read.pop((chat, end.tool_call_id), None)) is not None:
                    yield from self._read_more(chat, shell_id, end, call)
            case events.SystemNotification(kind={"type": "shell_completed", "shellId": str(shell_id), **rest}):
                if (terminal := self._behind.get((chat, shell_id))) is not None:
                    yield from self._end(terminal, rest.get("exitCode"))
            case _:
                pass

    def of_shell(self, chat: str, shell_id: str) -> str | None:
        """Return the terminal of a command in the background that the agent of a chat has started."""
        terminal = self._behind.get((chat, shell_id))
        return terminal.uri if terminal is not None else None

    def show_output(self, chat: str, shell_id: str, text: str, ended: Ended | None) -> Iterator[Step]:
        """Return the steps after which the terminal of such a command shows its output so far, or the end of it."""
        terminal = self._behind.get((chat, shell_id))
        if terminal is None or terminal.has_ended:
            return
        terminal.is_live = True
        yield from _write(terminal, text)
        if ended is not None:
            yield from self._end(terminal, ended.exit_code)

    def keep_shown(self, states: Mapping[str, State]) -> None:
        """Go on from the states that terminals show: the log may have less of commands in the background."""
        for terminal in self._behind.values():
            if (state := states.get(terminal.uri)) is None:
                continue
            terminal.is_live, terminal.shown = True, "".join(part["value"] for part in state["content"])
            if has_exited(state) and not terminal.has_ended:
                terminal.has_ended = True
                self._ended.append(terminal.uri)

    def end_calls(self) -> Iterator[Step]:
        """Return the steps at the end of all turns: calls without a result have no terminal."""
        for uri in self._of_calls:
            yield Closed(uri)
        self._of_calls.clear()
        self._read.clear()

    def end_all(self) -> Iterator[Step]:
        """Return the steps at the end of the process, which no command outlives."""
        yield from self.end_calls()
        for terminal in self._behind.values():
            yield from self._end(terminal, None)
        self._behind.clear()

    def _show(
        self, chat: str, translator: Translator, partial: events.ToolExecutionPartialResult
    ) -> Iterator[Step]:
        call = translator.turn.running(partial.tool_call_id) if translator.turn is not None else None
        if call is None or call.tool != SHELL:
            return
        if call.terminal is None:
            terminal = yield from self._open(chat, translator, call)
            yield from (Published(chat, action) for action in translator.show_blocks(call))
        else:
            terminal = self._of_calls[call.terminal]
        yield from _write(terminal, partial.partial_output.rstrip("\r\n"))

    def _open(self, chat: str, translator: Translator, call: Call) -> Generator[Step, None, Terminal]:
        turn_id = translator.turn.id if translator.turn is not None else ""
        uri = call.terminal = terminal_uri(self.session_id, turn_id, call.id)
        claim = {"session": session_uri(self.session_id), "chat": chat, "turnId": turn_id, "toolCallId": call.id}
        state: State = {
            "title": call.title or call.tool,
            "content": [],
            "lifecycle": {"status": "running"},
            "claim": {"kind": "session", **claim},
            "isPty": False,
        }
        call.blocks.append({"type": "terminal", "resource": uri, "title": state["title"], "isPty": False})
        terminal = self._of_calls[uri] = Terminal(uri)
        yield Opened(uri, state)
        return terminal

    def _complete(
        self, chat: str, translator: Translator, call: Call, end: events.ToolExecutionComplete
    ) -> Iterator[Step]:
        outcome = outcome_of(end)
        if outcome is None:
            if call.terminal is not None:
                del self._of_calls[call.terminal]
                call.blocks = [block for block in call.blocks if block["resource"] != call.terminal]
                yield Closed(call.terminal)
            return
        if call.terminal is None:
            terminal = yield from self._open(chat, translator, call)
        else:
            terminal = self._of_calls[call.terminal]
        del self._of_calls[terminal.uri]
        yield from _write(terminal, outcome.output)
        if outcome.shell_id is not None:
            self._behind[chat, outcome.shell_id] = terminal
            return
        result = {
            "exitCode": outcome.exit_code,
            "preview": outcome.output[-PREVIEW_CHARS:],
            "truncated": len(outcome.output) > PREVIEW_CHARS,
        }
        call.blocks = [
            {**block, "result": present(result)} if block["resource"] == terminal.uri else block
            for block in call.blocks
        ]
        yield from self._end(terminal, outcome.exit_code)

    def _read_more(
        self, chat: str, shell_id: str, end: events.ToolExecutionComplete, call: Call | None
    ) -> Iterator[Step]:
        """Show what the model has read of a command in the background."""
        terminal, outcome = self._behind.get((chat, shell_id)), outcome_of(end)
        if terminal is None or outcome is None:
            return
        if not terminal.is_live:
            yield from _write(terminal, "\n".join(filter(None, (terminal.shown, outcome.output))))
        if outcome.shell_id is None or (call is not None and call.tool == "stop_bash"):
            del self._behind[chat, shell_id]
            yield from self._end(terminal, outcome.exit_code)

    def _end(self, terminal: Terminal, exit_code: int | None) -> Iterator[Step]:
        if terminal.has_ended:
            return
        terminal.has_ended = True
        yield Published(terminal.uri, present({"type": "terminal/exited", "exitCode": exit_code}))
        self._ended.append(terminal.uri)
        if len(self._ended) > MOST_ENDED:
            yield Closed(self._ended.popleft())


def has_exited(state: State) -> bool:
    """Return whether the command of a terminal has ended."""
    return state["lifecycle"]["status"] == "exited"


def _write(terminal: Terminal, text: str) -> Iterator[Step]:
    """Return the actions after which a terminal shows a text; that of a running command may lack its beginning."""
    if text == terminal.shown:
        return
    data = text.removeprefix(terminal.shown)
    if not text.startswith(terminal.shown):
        yield Published(terminal.uri, {"type": "terminal/cleared"})
    terminal.shown = text
    if data:
        yield Published(terminal.uri, {"type": "terminal/data", "data": data})
