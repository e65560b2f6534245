"""``jumpseat run``: one prompt, made for pipes. The answer goes to stdout, all else to stderr.

Nobody can be asked here. What the server's rules do not decide is refused, and that ends the run with
exit code 3 and a sentence on what would allow it: a model is not left to find its way around a refusal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from jumpseat_client import (
    Event,
    JumpseatClientError,
    PermissionDecision,
    PermissionRequest,
    Session,
    reject,
)
from jumpseat_protocol.events import (
    AssistantMessage,
    AssistantUsage,
    MessageDelta,
    SessionError,
    SessionIdle,
    SessionWarning,
    ToolExecutionComplete,
    ToolExecutionStart,
)
from jumpseat_protocol.permissions import McpPermission, ShellPermission, UrlPermission, WritePermission
from jumpseat_terminal.opening import NoSessionError, connect, find_session, open_session
from jumpseat_terminal.options import USAGE_ERROR, RunOptions
from jumpseat_terminal.safe import one_line, safe

DONE: Final = 0
FAILED: Final = 1
DENIED: Final = 3
CANCELLED: Final = 130
TERMINATED: Final = 143
NO_READER: Final = 141

TICK_S: Final = 0.2


def main(options: RunOptions) -> int:
    """Run the prompt; returns the exit code."""
    prompt = options.prompt
    if prompt == "-":
        try:
            prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
        except KeyboardInterrupt:
            return CANCELLED
        if not prompt.strip():
            print("error: stdin held no prompt", file=sys.stderr)
            return USAGE_ERROR
    try:
        return anyio.run(_Run(options, prompt).run)
    except KeyboardInterrupt:
        return CANCELLED


class _ReaderGone(Exception):  # noqa: N818 - no error of ours
    """Nobody reads stdout any more."""


class _Run:
    """One run: what has come so far, and where it is shown."""

    def __init__(self, options: RunOptions, prompt: str) -> None:
        self._options = options
        self._settings = options.settings
        self._prompt = prompt
        self._code = DONE
        self._answer = ""
        self._failure: dict[str, Any] | None = None
        self._denied: list[dict[str, Any]] = []
        self._usage = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0}
        self._model: str | None = self._settings.model
        self._tools: dict[str, str] = {}
        self._shown_calls = 0
        self._out = _Output()
        self._progress = _Progress(sys.stderr.isatty(), beside_answer=sys.stdout.isatty())
        self._idle = anyio.Event()

    async def run(self) -> int:
        """Raises nothing: what goes wrong is in the exit code and on stderr."""
        started = time.monotonic()
        session_id: str | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tick)
                async with connect(self._settings) as client:
                    session = await open_session(
                        client,
                        self._settings,
                        await find_session(client, self._settings),
                        on_event=self._see,
                        on_permission=self._decide,
                        extra={},
                    )
                    session_id = session.id
                    self._line({"type": "run.started", "sessionId": session_id})
                    tasks.start_soon(self._obey_signals, session, tasks)
                    # Only now: a resumed session may have told of an earlier idle.
                    self._idle = anyio.Event()
                    async with session.events() as events:
                        await session.send(self._prompt)
                        async for event in events:
                            self._show(event)
                            if isinstance(event.payload, SessionIdle):
                                break
                tasks.cancel_scope.cancel()
        except* _ReaderGone:
            self._code = NO_READER
        except* NoSessionError as group:
            self._fail(str(group.exceptions[0]))
            self._code = USAGE_ERROR
        except* JumpseatClientError as group:
            self._fail(str(group.exceptions[0]))
        self._progress.clear()
        if self._denied and self._code == DONE:
            self._code = DENIED
        self._finish(session_id, time.monotonic() - started)
        return self._code

    # --- what comes ---------------------------------------------------------------------------------------------

    def _see(self, event: Event) -> None:
        """Know the names of calls before anybody asks about them."""
        if isinstance(event.payload, ToolExecutionStart):
            self._tools[event.payload.tool_call_id] = event.payload.tool_name

    def _show(self, event: Event) -> None:
        if self._options.format == "stream-json":
            self._line(
                {
                    "type": event.type,
                    "id": event.id,
                    "timestamp": event.timestamp,
                    "data": event.data,
                    **({"agentId": event.agent_id} if event.agent_id else {}),
                }
            )
        match event.payload:
            case MessageDelta(delta_content=text) if event.agent_id is None:
                self._text(text)
            case AssistantMessage() as message if event.agent_id is None:
                self._message(message)
            case ToolExecutionStart() as call:
                self._progress.begin(call.tool_name, call.arguments)
            case ToolExecutionComplete() as done:
                self._progress.end(self._tools.get(done.tool_call_id, "tool"), done.success)
            case AssistantUsage() as used:
                for name, tokens in (
                    ("inputTokens", used.input_tokens),
                    ("outputTokens", used.output_tokens),
                    ("cacheReadTokens", used.cache_read_tokens),
                    ("cacheWriteTokens", used.cache_write_tokens),
                ):
                    self._usage[name] += tokens
            case SessionWarning(message=message):
                self._progress.say(f"warning: {one_line(message)}")
            case SessionError() as error:
                self._fail(error.message)
                self._failure = {"type": error.error_type, "message": error.message, "status": error.status_code}
            case SessionIdle(aborted=True):
                if self._code == DONE and self._failure is None and not self._denied:
                    self._fail("the run was aborted")
            case _:
                pass

    def _text(self, text: str) -> None:
        if self._options.format == "text":
            self._progress.clear()
            self._out.write(text)

    def _message(self, message: AssistantMessage) -> None:
        self._model = message.model or self._model
        if message.content:
            self._answer = message.content
        if self._options.format != "text" or not message.content:
            return
        if not self._out.wrote_in_message:
            self._text(message.content)
        self._out.end_message()

    # --- permissions --------------------------------------------------------------------------------------------

    async def _decide(self, request: PermissionRequest) -> PermissionDecision:
        call_id: str | None = getattr(request, "tool_call_id", None)
        tool = self._tools.get(call_id or "")
        self._denied.append({"toolCallId": call_id, "tool": tool, "kind": request.kind, "what": _what(request)})
        because = "a rule wants a person to decide" if self._settings.yolo else "nobody can be asked here"
        self._progress.say(f"denied: {tool or request.kind} wants to {_what(request)}, and {because}")
        if not self._settings.yolo:
            self._progress.say(
                f"  allow it with --allow-tool {_suggested(request, tool)}, or everything with --yolo"
            )
        return reject()

    # --- ends ---------------------------------------------------------------------------------------------------

    async def _obey_signals(self, session: Session, tasks: TaskGroup) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            asked = False
            async for number in signals:
                self._code = CANCELLED if number == signal.SIGINT else TERMINATED
                if asked:
                    tasks.cancel_scope.cancel()
                    return
                asked = True
                self._progress.say("cancelling; once more to leave at once")
                await session.abort("the user cancelled")

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            self._progress.tick()

    def _fail(self, message: str) -> None:
        self._code = self._code or FAILED
        self._failure = self._failure or {"type": "client", "message": message, "status": None}
        self._progress.say(f"error: {safe(message).strip()}")

    def _finish(self, session_id: str | None, seconds: float) -> None:
        result = {
            "type": "run.result",
            "sessionId": session_id,
            "exitCode": self._code,
            "result": self._answer,
            "error": self._failure,
            "denied": self._denied,
            "model": self._model,
            "usage": self._usage,
            "durationMs": round(seconds * 1000),
        }
        try:
            if self._options.format == "text":
                self._out.end_message()
            else:
                self._line(result, last=True)
            self._out.close()
        except _ReaderGone:
            self._code = NO_READER

    def _line(self, value: dict[str, Any], *, last: bool = False) -> None:
        if self._options.format == "stream-json" or (last and self._options.format == "json"):
            self._out.write(json.dumps(value, ensure_ascii=False) + "\n")


class _Output:
    """stdout. Raises :class:`_ReaderGone` where nobody takes it; on a terminal, text is made safe."""

    def __init__(self) -> None:
        self._clean: Callable[[str], str] = safe if sys.stdout.isatty() else str
        self.wrote_in_message = False
        self._between = ""

    def write(self, text: str) -> None:
        data = self._clean(self._between + text).encode("utf-8", "replace")
        self._between = ""
        self.wrote_in_message = True
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except (BrokenPipeError, ConnectionResetError):
            # The interpreter would complain once more when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise _ReaderGone from None

    def end_message(self) -> None:
        """End the line of a message; the next one begins behind an empty line."""
        if self.wrote_in_message:
            self.write("\n")
            self._between = "\n"
        self.wrote_in_message = False

    def close(self) -> None:
        self._between = ""


class _Progress:
    """stderr: a line that says how long the work has taken, where a person watches, and what is left to read."""

    def __init__(self, watched: bool, *, beside_answer: bool) -> None:
        self._watched = watched
        # Where the answer comes to the same screen, a line that is drawn anew would garble it.
        self._moving = watched and not beside_answer and os.environ.get("TERM") != "dumb"
        self._doing = "waiting for the model"
        self._since = time.monotonic()
        self._drawn = False

    def begin(self, tool: str, arguments: Any) -> None:
        self._doing, self._since = f"{one_line(tool)} {_short(arguments)}".strip(), time.monotonic()

    def end(self, tool: str, success: bool) -> None:
        if self._watched:
            self.say(f"{'ok' if success else 'failed'}: {self._doing if self._doing.startswith(tool) else tool}")
        self._doing, self._since = "waiting for the model", time.monotonic()

    def tick(self) -> None:
        if self._moving:
            self._drawn = True
            _to_stderr(f"\r\x1b[K{self._doing[:60]} ... {time.monotonic() - self._since:.0f} s")

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            _to_stderr("\r\x1b[K")

    def say(self, text: str) -> None:
        self.clear()
        _to_stderr(text + "\n")


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.buffer.write(text.encode("utf-8", "replace"))
        sys.stderr.buffer.flush()
    except OSError:
        # What nobody reads is not worth an end of the run.
        return


def _short(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        return ""
    first = next((value for value in arguments.values() if isinstance(value, str)), "")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return one_line(first)[:60]


def _what(request: PermissionRequest) -> str:
    match request:
        case ShellPermission():
            return f"run {one_line(request.full_command_text)!r}"
        case WritePermission():
            return f"write {one_line(request.file_name)}"
        case UrlPermission():
            return f"load {one_line(request.url)}"
        case McpPermission():
            return f"call {one_line(request.tool_name)} of {one_line(request.server_name)}"
        case _:
            path = getattr(request, "path", None)
            return f"read {one_line(path)}" if isinstance(path, str) else f"do this ({request.kind})"


def _suggested(request: PermissionRequest, tool: str | None) -> str:
    if isinstance(request, ShellPermission) and request.can_offer_session_approval and len(request.commands) == 1:
        return f"'shell({one_line(request.commands[0].identifier)} *)'"
    if isinstance(request, McpPermission):
        return f"'mcp({one_line(request.server_name)}:{one_line(request.tool_name)})'"
    return request.kind if request.kind in ("shell", "write", "read", "url", "memory") else tool or request.kind
