"""Events of a session on their way to the screen: what is finished is handed out, what is in progress is kept.

Finished things go out once, in order, and are never touched again, so nothing flickers and the terminal's own
scrolling and searching work. What is in progress is a few lines at the bottom that are drawn anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from jumpseat_client import Event
from jumpseat_protocol.events import (
    COMPACTION_CANCELLED,
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
    ToolCallDelta,
    ToolExecutionComplete,
    ToolExecutionPartialResult,
    ToolExecutionProgress,
    ToolExecutionStart,
    TurnStart,
    UserMessage,
)
from jumpseat_terminal.blocks import BlockSplitter
from jumpseat_terminal.paint import DIFF_LINES, Painter, count, duration, fit, main_argument
from jumpseat_terminal.safe import one_line, safe

SHELLS: Final = frozenset({"bash", "read_bash", "write_bash", "stop_bash"})
QUIET: Final = frozenset({"ask_user"})
"""Tools whose question and answer are on the screen already."""
INTERRUPTED: Final = "The execution of this tool, or a previous tool was interrupted."
"""What the protocol says of a call that was cancelled."""
LIVE_MARKDOWN: Final = 4000
"""Of a longer unfinished block the end is shown, as plain text: it is drawn many times."""
LONG_S: Final = 10.0

Section: TypeAlias = Literal["nothing", "text", "tools", "notes", "prompt", "asked"]


@dataclass(slots=True)
class Call:
    """A tool call. ``shown`` says that its diff or its command stands on the screen already."""

    name: str
    arguments: Any = None
    started: float = field(default_factory=time.monotonic)
    running: bool = False
    output: str = ""
    shown: bool = False


class Feed:
    """``write`` takes finished text; ``painter`` gives one for the width of the moment."""

    def __init__(self, write: Callable[[str], None], painter: Callable[[], Painter]) -> None:
        self.busy = False
        self.queued = 0
        self.compacting: float | None = None
        """Since when the conversation is being summed up."""
        self.model: str | None = None
        self.context_used: float | None = None
        self.show_thinking = False
        self.unfolded: str | None = None
        """What ctrl-o shows: the latest thing that was shortened."""
        self.prompts: list[str] = []
        self.calls: dict[str, Call] = {}
        self._write = write
        self._painter = painter
        self._message = BlockSplitter()
        self._streamed = False
        self._thinking = ""
        self._thought_since = 0.0
        self._writing_call = ""
        self._trouble = ""
        self._since = time.monotonic()
        self._last: Section = "nothing"

    # --- events -------------------------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Take an event, live or from a log."""
        main = event.agent_id is None
        match event.payload:
            case UserMessage(content=content, source=source, attachments=attached) if main and source in (
                None,
                "user",
            ):
                self._begin()
                self.queued = max(self.queued - 1, 0)
                self.prompts.append(content)
                self._out("prompt", self._painter().prompt(content, [_name(one) for one in attached or []]))
            case TurnStart():
                self._begin()
            case ReasoningDelta(delta_content=text) if main:
                self._think(text)
            case Reasoning(content=content) if main and not self._streamed:
                self._thought(content)
            case MessageDelta(delta_content=text) if main:
                self._say(text)
            case AssistantMessage() as message:
                self._complete(message, main=main)
            case ToolCallDelta(tool_name=name) if name:
                self._writing_call = name
            case ToolExecutionStart() as start:
                call = self.calls.setdefault(start.tool_call_id, Call(start.tool_name, start.arguments))
                call.running, call.started = True, time.monotonic()
            case ToolExecutionPartialResult(tool_call_id=call_id, partial_output=text) if call_id in self.calls:
                self.calls[call_id].output = text
            case ToolExecutionProgress(tool_call_id=call_id, progress_message=text) if call_id in self.calls:
                self.calls[call_id].output = text
            case ToolExecutionComplete() as done:
                self._end_call(done)
            case SessionUsageInfo(current_tokens=used, token_limit=limit) if limit > 0:
                self.context_used = used / limit
            case AssistantUsage() if main:
                self._trouble = ""
            case SessionModelChange(new_model=model):
                self.model = model
                self.note(f"model: {model}")
            case ModelCallFailure(error_message=message):
                # An error follows where it is not tried again.
                self._trouble = one_line(message or "no reason given")
            case SessionInfo(message=message):
                self.note(message)
            case SessionWarning(message=message):
                self._out("notes", self._painter().warning(message))
            case SessionCompactionStart():
                self.compacting = time.monotonic()
            case SessionCompactionComplete() as end:
                self._compacted(end)
            case SessionError(message=message):
                self._flush()
                self._out("notes", self._painter().error(message))
            case SessionIdle(aborted=aborted):
                self._idle(aborted=aborted is True)
            case _:
                pass

    def _begin(self) -> None:
        if not self.busy:
            self.busy, self._since = True, time.monotonic()

    def _think(self, text: str) -> None:
        if not self._thinking:
            self._thought_since = time.monotonic()
        self._thinking += text

    def _thought(self, text: str) -> None:
        """The reasoning is whole: one line of it stays, or all of it where the user wants that."""
        seconds = time.monotonic() - self._thought_since if self._thinking else 0.0
        self._thinking = ""
        if not text.strip():
            return
        painter = self._painter()
        self.unfolded = painter.reasoning(text)
        self._out("notes", self.unfolded if self.show_thinking else painter.folded_reasoning(text, seconds))

    def _say(self, text: str) -> None:
        self._thought(self._thinking)
        self._streamed = True
        for block in self._message.feed(text):
            self._block(block)

    def _complete(self, message: AssistantMessage, *, main: bool) -> None:
        for request in message.tool_requests:
            self.calls[request.tool_call_id] = Call(request.name, request.arguments)
        if main:
            self._thought(self._thinking)
            if not self._streamed:
                for block in self._message.feed(message.content):
                    self._block(block)
            self._flush()
            self._streamed, self._writing_call = False, ""

    def _flush(self) -> None:
        self._thinking = ""
        self._block(self._message.finish())

    def _block(self, text: str) -> None:
        if text.strip():
            self._out("text", self._painter().markdown(text))

    def _end_call(self, done: ToolExecutionComplete) -> None:
        call = self.calls.get(done.tool_call_id) or Call("tool")
        call.running = False
        cancelled = done.error is not None and done.error.message == INTERRUPTED
        if call.name in QUIET and (done.success or cancelled):
            return
        painter = self._painter()
        arguments = done.effective_arguments or call.arguments
        if cancelled:
            self._out("tools", painter.tool(call.name, arguments, "cancelled", failed=True))
            return
        if not done.success:
            reason = (done.error.message if done.error else "") or (done.result.content if done.result else "")
            text = painter.tool(call.name, arguments, "failed", failed=True) + painter.output(reason)
            self.unfolded = painter.output(reason, None)
            self._out("tools", text)
            return
        content = done.result.content if done.result else ""
        diff = (done.result.detailed_content if done.result else None) or ""
        if diff.startswith("--- "):
            text = painter.tool(call.name, arguments, _changes(diff), failed=False)
            self._out("tools", text if call.shown else text + painter.diff(diff, DIFF_LINES))
            self.unfolded = painter.diff(diff)
        elif call.name in SHELLS:
            output, note, failed = _shell(content)
            text = painter.tool(call.name, arguments, note, failed=failed)
            self._out("tools", text + (painter.output(output) if output else ""))
            self.unfolded = painter.output(output, None) if output else self.unfolded
        else:
            self._out("tools", painter.tool(call.name, arguments, _size(content), failed=False))
            self.unfolded = painter.output(content, None) if content.strip() else self.unfolded

    def _compacted(self, end: SessionCompactionComplete) -> None:
        self.compacting = None
        if end.success:
            before, after = end.pre_compaction_tokens or 0, end.post_compaction_tokens or 0
            self.note(f"The conversation was summed up: about {after:,} tokens of context instead of {before:,}.")
        elif end.error == COMPACTION_CANCELLED:
            if not self.busy:
                self.note("cancelled", "yellow")
        else:
            text = f"The conversation could not be summed up: {one_line(end.error or 'no reason given')}"
            self._out("notes", self._painter().warning(text))

    def _idle(self, *, aborted: bool) -> None:
        self._flush()
        seconds = time.monotonic() - self._since
        if aborted:
            self.note("cancelled", "yellow")
        elif self.busy and seconds >= LONG_S:
            self.note(f"done in {duration(seconds)}")
        self.busy, self.queued, self._streamed = False, 0, False
        self._writing_call = self._trouble = ""
        self.calls.clear()

    # --- out ----------------------------------------------------------------------------------------------------

    def note(self, text: str, style: str = "dim") -> None:
        """Say something that is not the model's."""
        self._out("notes", self._painter().notice(text, style))

    def show(self, text: str) -> None:
        """Hand out text that is painted already."""
        self._out("asked", text)

    def _out(self, section: Section, text: str) -> None:
        # Calls stand close together, all else with air around it.
        apart = self._last != "nothing" and (section != self._last or section in ("text", "asked"))
        self._last = section
        self._write(("\n" if apart and not text.startswith("\n") else "") + text)

    # --- in progress --------------------------------------------------------------------------------------------

    def live(self, height: int) -> str:
        """What is in progress, in ``height`` lines at most, painted."""
        painter = self._painter()
        parts: list[str] = []
        if self._thinking:
            lines = painter.reasoning(self._thinking[-LIVE_MARKDOWN:]).rstrip("\n").split("\n")
            parts.append("\n".join(lines[-min(3, height) :]) + "\n")
        if self._message.size < LIVE_MARKDOWN:
            rest = self._message.rest.strip("\n")
            parts += [painter.markdown(rest)] if rest else []
        else:
            parts.append(painter.notice(self._message.tail(height * painter.width).strip("\n"), ""))
        for call in self.calls.values():
            if call.running and call.name not in QUIET:
                took = duration(time.monotonic() - call.started)
                about = fit(main_argument(call.arguments), painter.width - len(call.name) - len(took) - 6)
                parts.append(painter.notice(f"○ {one_line(call.name)} {about}  {took}", ""))
                if call.output.strip():
                    tail = safe(call.output[-LIVE_MARKDOWN:]).rstrip().split("\n")[-2:]
                    parts.append(painter.notice("\n".join(f"    {fit(line, painter.width - 4)}" for line in tail)))
        lines = "".join(parts).rstrip("\n").split("\n")
        return "\n".join(lines[-height:]) if height > 0 else ""

    def doing(self) -> str:
        """What is being done and for how long, for the line of progress; empty when idle."""
        if not self.busy:
            return f"summing up {duration(time.monotonic() - self.compacting)}" if self.compacting else ""
        running = [call.name for call in self.calls.values() if call.running]
        if running:
            what = (
                f"running {one_line(running[0])}" if len(running) == 1 else f"running {count(len(running), 'tool')}"
            )
        elif self._writing_call:
            what = f"preparing {one_line(self._writing_call)}"
        elif self._message.size:
            what = "writing"
        else:
            what = "thinking" if self._thinking else "summing up" if self.compacting else "waiting"
            if self._trouble:
                what = f"trying again ({self._trouble[:40]})"
        queued = f", {self.queued} queued" if self.queued else ""
        return f"{what} {duration(time.monotonic() - self._since)}{queued}"


def _name(attachment: Mapping[str, Any]) -> str:
    return str(attachment.get("displayName") or attachment.get("path") or attachment.get("type"))


def _changes(diff: str) -> str:
    lines = diff.split("\n")[2:]
    added, removed = sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)
    return f"+{added} -{removed}"


def _shell(content: str) -> tuple[str, str, bool]:
    """Output, status and failure of what a shell tool says: the status stands in angle brackets at the end."""
    output, _, status = content.rstrip().rpartition("\n")
    if not (status.startswith("<") and status.endswith(">")):
        return content, _size(content), False
    code = status.removeprefix("<exited with exit code ").removesuffix(">")
    size = _size(output) if output else "no output"
    if not code.lstrip("-").isdigit():
        return output, f"{status[1:-1].split(':')[0].split(' with')[0]}, {size}", False
    return output, size if code == "0" else f"exit code {code}, {size}", code != "0"


def _size(text: str) -> str:
    return count(len(text.rstrip("\n").split("\n")), "line") if text.strip() else "nothing"
