"""``jumpseat run``: one prompt, for scripts and pipes. The answer goes to stdout, all else to stderr.

Nobody can approve tool calls here. A call that the server's rules neither allow nor deny is denied and ends the
run, with exit code 3 and a message with the rule that would allow it, so that the model does not try to work
around it.
"""

from __future__ import annotations

import json
import os
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
    PromptOptions,
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
    SessionInfo,
    SessionWarning,
    ToolExecutionComplete,
    ToolExecutionStart,
)
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    McpPermission,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.safe import one_line, safe
from jumpseat_protocol.sessions import JsonSchemaFormat, ResponseFormatSchema
from jumpseat_terminal.opening import NoSessionError, UnknownToolError, connect, find_session, open_session
from jumpseat_terminal.options import USAGE_ERROR, RunOptions
from jumpseat_terminal.rules import is_inside
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
SCHEMA_NAME: Final = "answer"
"""The name of the form of a structured answer, which some providers require."""


def main(options: RunOptions) -> int:
    """Run the prompt and return the exit code."""
    prompt = options.prompt
    try:
        if prompt == "-":
            prompt = read_input()
            if not prompt.strip():
                raise InputError("the prompt on stdin is empty")
        elif (piped := piped_input()).strip():
            prompt = f"{prompt}\n\n<stdin>\n{piped.rstrip()}\n</stdin>"
    except (InputError, OSError) as error:
        to_stderr(f"error: {error}\n")
        return USAGE_ERROR
    return anyio.run(_Run(options, prompt).run)


class _Run:
    """The state of a run, and its output."""

    def __init__(self, options: RunOptions, prompt: str) -> None:
        self._options = options
        self._settings = options.settings
        self._prompt = prompt
        self._exit_code = DONE
        self._answer = ""
        self._failure: dict[str, Any] | None = None
        self._denied: list[dict[str, Any]] = []
        self._usage = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0}
        self._model: str | None = self._settings.model
        self._tools: dict[str, str] = {}
        self._out = Output()
        self._progress = Progress()
        self._session: Session | None = None

    async def run(self) -> int:
        """Run the prompt and return the exit code. Never raises: errors go to stderr and the exit code."""
        started = time.monotonic()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._handle_signals, tasks)
                tasks.start_soon(self._redraw_progress)
                async with connect(self._settings) as client:
                    session = await open_session(
                        client,
                        self._settings,
                        await find_session(client, self._settings, one_off_too=True),
                        on_event=self._remember_tool,
                        on_permission=self._deny,
                        extra={},
                        one_off=True,
                    )
                    self._session = session
                    self._write_json({"type": "run.started", "sessionId": session.id})
                    async with session.events() as events:
                        await session.send(self._prompt, **_prompt_options(self._options))
                        async for event in events:
                            self._handle_event(event)
                            if isinstance(event.payload, SessionIdle):
                                break
                    if self._failure is not None and self._model is None:
                        await self._suggest_models(session)
                tasks.cancel_scope.cancel()
        except* ReaderGone:
            self._exit_code = NO_READER
        except* (NoSessionError, UnknownToolError) as group:
            self._fail(str(group.exceptions[0]))
            self._exit_code = USAGE_ERROR
        except* (JumpseatClientError, OutputError) as group:
            # Errors caused by the cancellation need no report.
            if self._exit_code not in (CANCELLED, TERMINATED):
                self._fail(str(group.exceptions[0]))
        self._progress.clear()
        if self._denied and self._exit_code == DONE:
            self._exit_code = DENIED
        self._finish(time.monotonic() - started)
        return self._exit_code

    # --- events -------------------------------------------------------------------------------------------------

    def _remember_tool(self, event: Event) -> None:
        """Remember the tools of calls, for the permission requests that follow."""
        if isinstance(event.payload, ToolExecutionStart):
            self._tools[event.payload.tool_call_id] = event.payload.tool_name

    def _handle_event(self, event: Event) -> None:
        if self._options.format == "stream-json":
            self._write_json(
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
                self._write_text(text)
            case AssistantMessage() as message if event.agent_id is None:
                self._finish_message(message)
            case ToolExecutionStart() as call:
                self._progress.start_call(call.tool_name, call.arguments)
            case ToolExecutionComplete() as done:
                self._progress.finish_call(self._tools.get(done.tool_call_id, "tool"), done.success)
            case AssistantUsage() as used:
                self._add_usage(used)
            case SessionCompactionStart():
                self._progress.write_line("summarizing the conversation")
            case SessionCompactionComplete(compaction_tokens_used=CompactionTokensUsed() as used):
                self._add_usage(used)
            case SessionInfo(message=message):
                self._progress.write_line(one_line(message))
            case SessionWarning(message=message):
                self._progress.write_line(f"warning: {one_line(message)}")
            case SessionError() as error:
                self._fail(error.reason)
                self._failure = {"type": error.error_type, "message": error.reason, "status": error.status_code}
            case SessionIdle(aborted=True):
                if self._exit_code == DONE and self._failure is None and not self._denied:
                    self._fail("the run was aborted")
            case _:
                pass

    def _add_usage(self, used: AssistantUsage | CompactionTokensUsed) -> None:
        for name, tokens in (
            ("inputTokens", used.input_tokens),
            ("outputTokens", used.output_tokens),
            ("cacheReadTokens", used.cache_read_tokens),
            ("cacheWriteTokens", used.cache_write_tokens),
        ):
            self._usage[name] += tokens

    def _write_text(self, text: str) -> None:
        # Of a structured answer, only the valid form is written, at the end.
        if self._options.format == "text" and self._options.schema is None:
            self._progress.clear()
            self._out.write(text)

    def _finish_message(self, message: AssistantMessage) -> None:
        self._model = message.model or self._model
        if message.content:
            self._answer = message.content
        if self._options.format != "text" or not message.content:
            return
        if not self._out.in_message:
            self._write_text(message.content)
        self._out.end_message()

    # --- permissions --------------------------------------------------------------------------------------------

    async def _deny(self, request: PermissionRequest) -> PermissionDecision:
        call_id: str | None = getattr(request, "tool_call_id", None)
        tool = self._tools.get(call_id or "")
        self._denied.append({"toolCallId": call_id, "tool": tool, "kind": request.kind, "what": _describe(request)})
        because = "a rule requires approval by a user" if self._settings.yolo else "run cannot ask for approval"
        self._progress.write_line(f"denied: {tool or request.kind} wants to {_describe(request)}, but {because}")
        if not self._settings.yolo:
            rules = _suggest_rules(request, tool, self._settings.folder)
            options = " ".join(f"--allow-tool {quote(rule)}" for rule in rules)
            self._progress.write_line(f"  allow it with {options}, or everything with --yolo")
        return reject()

    # --- ending -------------------------------------------------------------------------------------------------

    async def _handle_signals(self, tasks: TaskGroup) -> None:
        # Signals that our parent set to be ignored stay ignored.
        heeded = [
            number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN
        ]
        with anyio.open_signal_receiver(*heeded) as signals:
            cancelling = False
            async for number in signals:
                self._exit_code = CANCELLED if number == signal.SIGINT else TERMINATED
                if cancelling or self._session is None:
                    tasks.cancel_scope.cancel()
                    return
                cancelling = True
                self._progress.write_line("cancelling; repeat to exit at once")
                tasks.start_soon(self._abort, self._session)

    async def _suggest_models(self, session: Session) -> None:
        current = await session.request("session.model.getCurrent")
        if current.get("modelId") is None:
            self._progress.write_line("  'jumpseat adapters' lists what is available; --model NAME selects a model")

    async def _abort(self, session: Session) -> None:
        # The server may be ending too; other code reports that.
        with suppress(JumpseatClientError):
            await session.abort("the user cancelled")

    async def _redraw_progress(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            self._progress.redraw(in_message=self._out.in_message)

    def _fail(self, message: str) -> None:
        self._exit_code = self._exit_code or FAILED
        self._failure = self._failure or {"type": "client", "message": message, "status": None}
        self._progress.write_line(f"error: {safe(message).strip()}")

    def _finish(self, seconds: float) -> None:
        result = {
            "type": "run.result",
            "sessionId": self._session.id if self._session else None,
            "exitCode": self._exit_code,
            "result": self._answer,
            "error": self._failure,
            "denied": self._denied,
            "model": self._model,
            "usage": self._usage,
            "durationMs": round(seconds * 1000),
        }
        try:
            if self._options.format == "text":
                if self._options.schema is not None and self._exit_code == DONE:
                    self._out.write(self._answer)
                self._out.end_message()
            else:
                self._write_json(result, last=True)
            self._out.close()
        except ReaderGone:
            self._exit_code = NO_READER
        except OutputError as error:
            self._fail(str(error))

    def _write_json(self, value: dict[str, Any], *, last: bool = False) -> None:
        if self._options.format == "stream-json" or (last and self._options.format == "json"):
            self._out.write(json.dumps(value, ensure_ascii=False) + "\n")


def _prompt_options(options: RunOptions) -> PromptOptions:
    found: PromptOptions = {"attachments": options.attachments}
    if options.schema is not None:
        schema = ResponseFormatSchema.model_validate({"name": SCHEMA_NAME, "schema": options.schema})
        found["response_format"] = JsonSchemaFormat(type="json_schema", json_schema=schema)
    return found


def _describe(request: PermissionRequest) -> str:
    match request:
        case ShellPermission():
            return f"run {one_line(request.full_command_text)!r}"
        case WritePermission():
            return f"write {one_line(request.file_name)}"
        case UrlPermission():
            return f"load {one_line(request.url)}"
        case McpPermission():
            return f"call {one_line(request.tool_name)} of {one_line(request.server_name)}"
        case CustomToolPermission():
            return f"run ({one_line(request.tool_description)})"
        case _:
            path = getattr(request, "path", None)
            return f"read {one_line(path)}" if isinstance(path, str) else f"make a {request.kind} call"


def _suggest_rules(request: PermissionRequest, tool: str | None, folder: Path) -> list[str]:
    """Return the narrowest rules that would allow the call, and others like it."""
    match request:
        case ShellPermission() if request.can_offer_session_approval and request.commands:
            return list(dict.fromkeys(f"shell({one_line(command.identifier)} *)" for command in request.commands))
        case McpPermission():
            return [f"mcp({one_line(request.server_name)}:{one_line(request.tool_name)})"]
        case ReadPermission(path=path) | WritePermission(file_name=path):
            return [f"{request.kind}({one_line(_relative(path, folder))})"]
        case UrlPermission():
            return [f"url({urlsplit(request.url).hostname or one_line(request.url)})"]
        case _:
            return [request.kind if request.kind in ("shell", "memory") else tool or request.kind]


def _relative(path: str, folder: Path) -> str:
    """Return a path from the folder of the session on, where rules begin, if it is in it."""
    return os.path.relpath(folder / path, folder) if is_inside(path, folder) else path
