"""Turn the events of a session into text for the screen, finished or in progress.

Finished text is written once, in order, and never touched again, so nothing flickers, and scrolling and searching
in the terminal work. Work in progress is a few lines at the bottom that are redrawn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from jumpseat_client import Event
from jumpseat_protocol.events import (
    COMPACTION_CANCELLED,
    Abort,
    AssistantMessage,
    AssistantUsage,
    MessageDelta,
    ModelCallFailure,
    Reasoning,
    ReasoningDelta,
    SessionCompactionComplete,
    SessionCompactionStart,
    SessionError,
    SessionIdle,
    SessionInfo,
    SessionModelChange,
    SessionUsageInfo,
    SessionWarning,
    SubagentStarted,
    SystemNotification,
    ToolCallDelta,
    ToolExecutionComplete,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
    ToolExecutionStart,
    TurnStart,
    UserMessage,
)
from jumpseat_protocol.safe import one_line, safe
from jumpseat_terminal.blocks import BlockSplitter
from jumpseat_terminal.paint import DIFF_LINES, Painter, fit, shown_argument
from jumpseat_transcript.calls import SHELLS, count_changes, split_shell_result, without_last_number
from jumpseat_transcript.transcript import INTERRUPTED_CALL
from jumpseat_transcript.user_commands import UserCommand, split_prompt
from jumpseat_transcript.words import count, duration, line_count

HIDDEN_TOOLS: Final = frozenset({"ask_user", "exit_plan_mode"})
"""Tools that are not shown, because their question and answer are on the screen already."""
DENIED: Final = frozenset({"denied", "rejected"})
"""The codes of the errors of calls that were not allowed."""
_OWN_ANSWER: Final = "The user rejected this tool call"
LIVE_MARKDOWN: Final = 4000
"""Maximum size of an unfinished block rendered as Markdown; of longer ones, the end is shown as plain text."""
LONG_TURN_S: Final = 10.0
OWN_OUTPUT_LINES: Final = 40
"""Maximum lines shown of the output of a command that the user has run."""

Section: TypeAlias = Literal["none", "text", "tools", "notes", "prompt", "questions"]


@dataclass(slots=True)
class Call:
    """A tool call. ``shown`` means that its diff or command is on the screen already."""

    name: str
    arguments: Any = None
    started: float = field(default_factory=time.monotonic)
    running: bool = False
    output: str = ""
    shown: bool = False


class Feed:
    """The text of one session. ``write`` prints finished text, ``painter`` makes a painter of the current width."""

    def __init__(self, write: Callable[[str], None], painter: Callable[[], Painter]) -> None:
        self.busy = False
        self.queued: list[str] = []
        """The prompts that wait for the end of the turn, the oldest first."""
        self.compacting: float | None = None
        """Start of a running compaction, by the monotonic clock."""
        self.model: str | None = None
        self.context_used: float | None = None
        self.show_thinking = False
        self.full: tuple[str, str] | None = None
        """The last shortened item, which ctrl-o shows: its title and its full text, painted."""
        self.prompts: list[str] = []
        self.calls: dict[str, Call] = {}
        self.own_command: Call | None = None
        """The command that the user runs."""
        self._write = write
        self._painter = painter
        self._message = BlockSplitter()
        self._streamed = False
        self._reasoning = ""
        self._reasoning_since = 0.0
        self._call_in_progress = ""
        self._retry_reason = ""
        self._turn_started = time.monotonic()
        self._last_section: Section = "none"

    # --- events -------------------------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Handle an event, live or from a log."""
        main = event.agent_id is None
        match event.payload:
            case UserMessage(content=content, source=source, attachments=attached) if main and source in (
                None,
                "user",
            ):
                self._start_turn()
                prompt, commands = split_prompt(content)
                self._dequeue(prompt)
                self.prompts.append(prompt)
                names = [_attachment_name(attachment) for attachment in attached or []]
                self._write_section(
                    "prompt", self._painter().prompt(prompt, [*names, *(f"! {line}" for line in commands)])
                )
            case TurnStart():
                self._start_turn()
            case ReasoningDelta(delta_content=text) if main:
                self._add_reasoning(text)
            case Reasoning(content=content) if main and not self._streamed:
                self._finish_reasoning(content)
            case MessageDelta(delta_content=text) if main:
                self._add_text(text)
            case AssistantMessage() as message:
                self._finish_message(message, main=main)
            case ToolCallDelta(tool_name=name) if name and main:
                self._call_in_progress = name
            case ToolExecutionStart() as start:
                call = self.calls.setdefault(start.tool_call_id, Call(start.tool_name, start.arguments))
                call.running, call.started = True, time.monotonic()
            case ToolExecutionPartialResult(tool_call_id=call_id, partial_output=text) if call_id in self.calls:
                self.calls[call_id].output = text
            case ToolExecutionProgress(tool_call_id=call_id, progress_message=text) if call_id in self.calls:
                self.calls[call_id].output = text
            case ToolExecutionComplete() as done:
                self._finish_call(done)
            case SessionUsageInfo(current_tokens=used, token_limit=limit) if limit > 0 and main:
                self.context_used = used / limit
            case AssistantUsage() if main:
                self._retry_reason = ""
            case SessionModelChange(new_model=model):
                self.model = model
                self.note(f"model: {model}")
            case ModelCallFailure(error_message=message):
                # If the call is not retried, an error event follows.
                self._retry_reason = one_line(message or "no reason given")
            case SessionInfo(message=message):
                self.note(message)
            case SessionWarning(message=message):
                self._write_section("notes", self._painter().warning(message))
            case SessionCompactionStart() if main:
                self.compacting = time.monotonic()
            case SessionCompactionComplete() as end if main:
                self._finish_compaction(end)
            case SessionError() as error:
                self._flush()
                self._write_section("notes", self._painter().error(error.reason))
            case Abort():
                # Unlike the end of the run, it is in the log: a resumed chat shows it, too.
                self._flush()
                self.note("cancelled", "yellow")
            case SubagentStarted(execution_mode="background") as agent:
                self.note(f"agent {one_line(agent.agent_display_name)} works in the background")
            case SystemNotification(kind={"displayName": str(name)} as kind) if main:
                how = "has failed" if kind.get("status") == "failed" else "has finished"
                self.note(f"agent {one_line(name)} {how}")
            case SessionIdle(aborted=aborted):
                self._finish_turn(aborted=aborted is True)
            case _:
                pass

    def _dequeue(self, prompt: str) -> None:
        """Forget a queued prompt that runs now; the server may have changed its text."""
        if prompt in self.queued:
            self.queued.remove(prompt)
        elif self.queued and self.busy:
            del self.queued[0]

    def take_queued(self) -> str:
        """Return the prompts that wait, and forget them."""
        taken, self.queued = self.queued, []
        return "\n".join(taken)

    def _start_turn(self) -> None:
        if not self.busy:
            self.busy, self._turn_started = True, time.monotonic()

    def _add_reasoning(self, text: str) -> None:
        if not self._reasoning:
            self._reasoning_since = time.monotonic()
        self._reasoning += text

    def _finish_reasoning(self, text: str) -> None:
        """Write the finished reasoning: one line, or all of it if the user has chosen that."""
        seconds = time.monotonic() - self._reasoning_since if self._reasoning else 0.0
        self._reasoning = ""
        if not text.strip():
            return
        painter = self._painter()
        if self.show_thinking:
            self._write_section("notes", painter.reasoning(text))
        else:
            self.keep_full("the reasoning", painter.reasoning(text))
            self._write_section("notes", painter.folded_reasoning(text, seconds))

    def _add_text(self, text: str) -> None:
        self._finish_reasoning(self._reasoning)
        self._streamed = True
        for block in self._message.feed(text):
            self._write_block(block)

    def _finish_message(self, message: AssistantMessage, *, main: bool) -> None:
        for request in message.tool_requests:
            self.calls[request.tool_call_id] = Call(request.name, request.arguments)
        if main:
            self._finish_reasoning(self._reasoning)
            if not self._streamed:
                for block in self._message.feed(message.content):
                    self._write_block(block)
            self._flush()
            self._streamed, self._call_in_progress = False, ""

    def _flush(self) -> None:
        self._reasoning = ""
        self._write_block(self._message.finish())

    def _write_block(self, text: str) -> None:
        if text.strip():
            self._write_section("text", self._painter().markdown(text))

    def _finish_call(self, done: ToolExecutionComplete) -> None:
        call = self.calls.get(done.tool_call_id) or Call("tool")
        call.running = False
        cancelled = done.error is not None and done.error.message == INTERRUPTED_CALL
        if call.name in HIDDEN_TOOLS and (done.success or cancelled):
            return
        painter = self._painter()
        arguments = done.effective_arguments or call.arguments
        title = f"{one_line(call.name)} {shown_argument(arguments)}".rstrip()
        detail = done.result.detailed_content if done.result else None
        if cancelled:
            text = painter.tool(call.name, arguments, "cancelled", failed=True)
            self._write_section("tools", text + (painter.output(detail) if detail else ""))
            return
        if done.error is not None and done.error.code in DENIED:
            # The text for the model says what the user has answered.
            reason = "" if done.error.message.startswith(_OWN_ANSWER) else done.error.message
            text = painter.tool(call.name, arguments, "denied", failed=True)
            self._write_section("tools", text + (painter.output(reason) if reason else ""))
            return
        if not done.success:
            reason = (done.error.message if done.error else "") or (done.result.content if done.result else "")
            reason = reason if detail is None else detail
            text = painter.tool(call.name, arguments, "failed", failed=True) + painter.output(reason)
            self.keep_full(title, painter.output(reason, None))
            self._write_section("tools", text)
            return
        content = done.result.content if done.result else ""
        diff = detail or ""
        if diff.startswith("--- "):
            text = painter.tool(call.name, arguments, count_changes(diff), failed=False)
            self._write_section("tools", text if call.shown else text + painter.diff(diff, DIFF_LINES))
            self.keep_full(title, painter.diff(diff))
        elif call.name in SHELLS:
            output, note, failed = split_shell_result(content)
            text = painter.tool(call.name, arguments, note, failed=failed)
            self._write_section("tools", text + (painter.output(output) if output else ""))
            if output:
                self.keep_full(title, painter.output(output, None))
        elif detail is not None:
            # The tool has its own text for the user.
            text = painter.tool(call.name, arguments, line_count(detail) if detail else "", failed=False)
            self._write_section("tools", text + (painter.output(detail) if detail else ""))
            if detail:
                self.keep_full(title, painter.output(detail, None))
        else:
            size = line_count(without_last_number(content) if call.name == "view" else content)
            self._write_section("tools", painter.tool(call.name, arguments, size, failed=False))
            if content.strip():
                self.keep_full(title, painter.output(content, None))

    def _finish_compaction(self, end: SessionCompactionComplete) -> None:
        self.compacting = None
        if end.success:
            before, after = end.pre_compaction_tokens or 0, end.post_compaction_tokens or 0
            self.note(f"Summarized the conversation: about {after:,} tokens of context instead of {before:,}.")
        elif end.error == COMPACTION_CANCELLED:
            if not self.busy:
                self.note("cancelled", "yellow")
        else:
            text = f"Could not summarize the conversation: {one_line(end.error or 'no reason given')}"
            self._write_section("notes", self._painter().warning(text))

    def _finish_turn(self, *, aborted: bool) -> None:
        self._flush()
        seconds = time.monotonic() - self._turn_started
        if not aborted and self.busy and seconds >= LONG_TURN_S:
            self.note(f"done in {duration(seconds)}")
        self.busy, self._streamed = False, False
        self.queued.clear()
        self._call_in_progress = self._retry_reason = ""
        self.calls.clear()

    # --- output -------------------------------------------------------------------------------------------------

    def note(self, text: str, style: str = "dim") -> None:
        """Write a message of the chat itself."""
        self._write_section("notes", self._painter().notice(text, style))

    def heading(self, text: str) -> None:
        """Write the command that the following text answers."""
        self._write_section("prompt", self._painter().prompt(text))
        self._last_section = "none"

    def keep_full(self, title: str, text: str) -> None:
        """Keep the full text of an item that was shortened, which is painted already."""
        self.full = (title, text)

    def show_full(self) -> None:
        """Write the last shortened item in full, once."""
        if self.full is None:
            self.note("Nothing was shortened since the last item that you have seen in full.")
            return
        (title, text), self.full = self.full, None
        self.note(f"{title}, in full:", "bold")
        self._last_section = "none"
        self.show(text)

    def show_own_command(self, command: UserCommand) -> None:
        """Write a command that the user has run, and its output."""
        painter = self._painter()
        failed = command.status != "exit code 0"
        size = line_count(command.output) if command.output.strip() else "no output"
        note = f"{command.status}, {size}" if failed else size
        text = painter.tool("!", {"command": command.line}, note, failed=failed)
        if command.output.strip():
            text += painter.output(command.output, OWN_OUTPUT_LINES)
            self.keep_full(f"! {one_line(command.line)}", painter.output(command.output, None))
        self._write_section("questions", text + painter.notice("    the model sees this with your next prompt"))

    def show(self, text: str) -> None:
        """Write text that is painted already."""
        self._write_section("questions", text)

    def _write_section(self, section: Section, text: str) -> None:
        # No empty lines between consecutive tool calls or notes.
        apart = self._last_section != "none" and (section != self._last_section or section in ("text", "questions"))
        self._last_section = section
        self._write(("\n" if apart and not text.startswith("\n") else "") + text)

    # --- in progress --------------------------------------------------------------------------------------------

    def live_text(self, height: int) -> str:
        """Return the work in progress, painted, in at most ``height`` lines."""
        painter = self._painter()
        parts: list[str] = []
        if self._reasoning:
            lines = painter.reasoning(self._reasoning[-LIVE_MARKDOWN:]).rstrip("\n").split("\n")
            parts.append("\n".join(lines[-min(3, height) :]) + "\n")
        if self._message.size < LIVE_MARKDOWN:
            rest = self._message.pending.strip("\n")
            parts += [painter.markdown(rest)] if rest else []
        else:
            parts.append(painter.notice(self._message.tail(height * painter.width).strip("\n"), ""))
        for call in (*self.calls.values(), *([self.own_command] if self.own_command else [])):
            if call.running and call.name not in HIDDEN_TOOLS:
                took = duration(time.monotonic() - call.started)
                about = fit(shown_argument(call.arguments), painter.width - len(call.name) - len(took) - 6)
                parts.append(painter.notice(f"○ {one_line(call.name)} {about}  {took}", ""))
                if call.output.strip():
                    tail = safe(call.output[-LIVE_MARKDOWN:]).rstrip().split("\n")[-2:]
                    parts.append(painter.notice("\n".join(f"    {fit(line, painter.width - 4)}" for line in tail)))
        parts += [
            painter.notice(f"❯ {fit(one_line(prompt), painter.width - 12)}  (queued)") for prompt in self.queued
        ]
        lines = "".join(parts).rstrip("\n").split("\n")
        return "\n".join(lines[-height:]) if height > 0 else ""

    def activity(self) -> str:
        """Describe the current activity and its duration for the progress line; empty when idle."""
        if self.own_command is not None and not self.busy:
            return f"running your command {duration(time.monotonic() - self.own_command.started)}"
        if not self.busy and self.compacting:
            return f"summarizing {duration(time.monotonic() - self.compacting)}"
        if not self.busy:
            return "waiting for a model" if self.queued else ""
        running = [call.name for call in self.calls.values() if call.running]
        if running:
            what = (
                f"running {one_line(running[0])}" if len(running) == 1 else f"running {count(len(running), 'tool')}"
            )
        elif self._call_in_progress:
            what = f"preparing {one_line(self._call_in_progress)}"
        elif self._message.size:
            what = "writing"
        else:
            what = "thinking" if self._reasoning else "summarizing" if self.compacting else "waiting"
            if self._retry_reason:
                what = f"retrying ({self._retry_reason[:40]})"
        queued = f", {len(self.queued)} queued" if self.queued else ""
        return f"{what} {duration(time.monotonic() - self._turn_started)}{queued}"


def _attachment_name(attachment: Mapping[str, Any]) -> str:
    return str(attachment.get("displayName") or attachment.get("path") or attachment.get("type"))
