"""``jumpseat run``: one prompt, made for pipes. The answer goes to stdout, all else to stderr.

Nobody can be asked here. What the server's rules do not decide is refused, and that ends the run with
exit code 3 and a sentence on what would allow it: a model is not left to find its way around a refusal.
"""

from __future__ import annotations

import json
import signal
import time
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final
from urllib.parse import urlsplit

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
    CompactionTokensUsed,
    MessageDelta,
    SessionCompactionComplete,
    SessionCompactionStart,
    SessionError,
    SessionIdle,
    SessionWarning,
    ToolExecutionComplete,
    ToolExecutionStart,
)
from jumpseat_protocol.permissions import (
    McpPermission,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_terminal.opening import NoSessionError, connect, find_session, open_session
from jumpseat_terminal.options import USAGE_ERROR, RunOptions
from jumpseat_terminal.rules import lies_in
from jumpseat_terminal.safe import one_line, safe
from jumpseat_terminal.streams import (
    InputError,
    Output,
    OutputError,
    Progress,
    ReaderGone,
    piped_input,
    read_input,
    to_stderr,
)

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
    try:
        if prompt == "-":
            prompt = read_input()
            if not prompt.strip():
                raise InputError("stdin held no prompt")
        elif (piped := piped_input()).strip():
            prompt = f"{prompt}\n\n<stdin>\n{piped.rstrip()}\n</stdin>"
    except (InputError, OSError) as error:
        to_stderr(f"error: {error}\n")
        return USAGE_ERROR
    return anyio.run(_Run(options, prompt).run)


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
        self._out = Output()
        self._progress = Progress()
        self._session: Session | None = None

    async def run(self) -> int:
        """Raises nothing: what goes wrong is in the exit code and on stderr."""
        started = time.monotonic()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._obey_signals, tasks)
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
                    self._session = session
                    self._line({"type": "run.started", "sessionId": session.id})
                    async with session.events() as events:
                        await session.send(self._prompt, attachments=self._options.attachments)
                        async for event in events:
                            self._show(event)
                            if isinstance(event.payload, SessionIdle):
                                break
                    if self._failure is not None and self._model is None:
                        await self._tell_of_models(session)
                tasks.cancel_scope.cancel()
        except* ReaderGone:
            self._code = NO_READER
        except* NoSessionError as group:
            self._fail(str(group.exceptions[0]))
            self._code = USAGE_ERROR
        except* (JumpseatClientError, OutputError) as group:
            # What breaks because the run was called off is no news.
            if self._code not in (CANCELLED, TERMINATED):
                self._fail(str(group.exceptions[0]))
        self._progress.clear()
        if self._denied and self._code == DONE:
            self._code = DENIED
        self._finish(time.monotonic() - started)
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
                self._use(used)
            case SessionCompactionStart():
                self._progress.say("summing up the conversation")
            case SessionCompactionComplete(compaction_tokens_used=CompactionTokensUsed() as used):
                self._use(used)
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

    def _use(self, used: AssistantUsage | CompactionTokensUsed) -> None:
        for name, tokens in (
            ("inputTokens", used.input_tokens),
            ("outputTokens", used.output_tokens),
            ("cacheReadTokens", used.cache_read_tokens),
            ("cacheWriteTokens", used.cache_write_tokens),
        ):
            self._usage[name] += tokens

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
            rule = _suggested(request, tool, self._settings.folder)
            self._progress.say(f"  allow it with --allow-tool {rule}, or everything with --yolo")
        return reject()

    # --- ends ---------------------------------------------------------------------------------------------------

    async def _obey_signals(self, tasks: TaskGroup) -> None:
        # What whoever started us wants to be ignored stays ignored.
        heeded = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN]
        with anyio.open_signal_receiver(*heeded) as signals:
            asked = False
            async for number in signals:
                self._code = CANCELLED if number == signal.SIGINT else TERMINATED
                if asked or self._session is None:
                    tasks.cancel_scope.cancel()
                    return
                asked = True
                self._progress.say("cancelling; once more to leave at once")
                tasks.start_soon(self._abort, self._session)

    async def _tell_of_models(self, session: Session) -> None:
        current = await session.request("session.model.getCurrent")
        if current.get("modelId") is None:
            self._progress.say("  'jumpseat adapters' tells what can be used, --model NAME chooses a model")

    async def _abort(self, session: Session) -> None:
        # The server may be on its way out too: that shows elsewhere.
        with suppress(JumpseatClientError):
            await session.abort("the user cancelled")

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            self._progress.tick(in_a_line=self._out.wrote_in_message)

    def _fail(self, message: str) -> None:
        self._code = self._code or FAILED
        self._failure = self._failure or {"type": "client", "message": message, "status": None}
        self._progress.say(f"error: {safe(message).strip()}")

    def _finish(self, seconds: float) -> None:
        result = {
            "type": "run.result",
            "sessionId": self._session.id if self._session else None,
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
        except ReaderGone:
            self._code = NO_READER
        except OutputError as error:
            self._fail(str(error))

    def _line(self, value: dict[str, Any], *, last: bool = False) -> None:
        if self._options.format == "stream-json" or (last and self._options.format == "json"):
            self._out.write(json.dumps(value, ensure_ascii=False) + "\n")


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


def _suggested(request: PermissionRequest, tool: str | None, folder: Path) -> str:
    match request:
        case ShellPermission() if request.can_offer_session_approval and len(request.commands) == 1:
            return quote(f"shell({one_line(request.commands[0].identifier)} *)")
        case McpPermission():
            return quote(f"mcp({one_line(request.server_name)}:{one_line(request.tool_name)})")
        case ReadPermission(path=path) | WritePermission(file_name=path) if not lies_in(path, folder):
            return quote(f"{request.kind}({one_line(path)})")
        case UrlPermission():
            return quote(f"url({urlsplit(request.url).hostname or one_line(request.url)})")
        case _:
            return request.kind if request.kind in ("shell", "write", "read", "memory") else tool or request.kind
