"""Translate the events of a session into steps of ACP. Pure: events in, steps out; nothing is sent from here.

One :class:`Translator` follows one session for one editor. It remembers how much of a message the editor has,
because messages come in deltas and then complete, and the tool calls, because their last events do not repeat the
tool and its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from jumpseat.acp.translation import tool_calls
from jumpseat.acp.translation.content import blocks_of, text_block
from jumpseat.acp.translation.diffs import Reader, Renderer, diffs_of
from jumpseat.store.session.sessions import shorten
from jumpseat_protocol import events
from jumpseat_protocol.permissions import PermissionRequest
from jumpseat_protocol.visible import exact_line

JsonObject: TypeAlias = dict[str, Any]

STOP_REASONS: Final = {"max_tokens": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}

INTERRUPTED: Final = "\n\n*(interrupted)*"
"""Marker of an aborted prompt in a loaded session; Markdown, like answers."""
INTERRUPTED_ID: Final = "interrupted"
"""The message with the marker, if there is no message before."""


class Update(Struct, frozen=True):
    """Send a ``session/update``."""

    body: JsonObject


class Notice(Struct, frozen=True):
    """Show a notice to the user, if the editor supports notices; else send the update ``otherwise``, if any."""

    severity: str
    title: str
    otherwise: JsonObject | None = None


class Compaction(Struct, frozen=True):
    """Send a ``session/update`` about a compaction, if the editor supports them."""

    body: JsonObject


class OptionsChanged(Struct, frozen=True):
    """Send the mode and the options again: one of them has changed."""


class CommandsChanged(Struct, frozen=True):
    """Send the slash commands again."""


class PlanChanged(Struct, frozen=True):
    """Send the plan again."""


class AskPermission(Struct, frozen=True):
    """Ask whether a tool call may run. ``call`` is its ACP form."""

    request_id: str
    request: PermissionRequest
    call: JsonObject


class AskForm(Struct, frozen=True):
    """Show a form."""

    request_id: str
    message: str
    schema: JsonObject


class AskToOpen(Struct, frozen=True):
    """Ask the user to open a URL."""

    request_id: str
    message: str
    url: str


class Withdraw(Struct, frozen=True):
    """Withdraw a question, if it is still shown: it is settled."""

    request_id: str


Step: TypeAlias = (
    Update
    | Notice
    | Compaction
    | OptionsChanged
    | CommandsChanged
    | PlanChanged
    | AskPermission
    | AskForm
    | AskToOpen
    | Withdraw
)


class Call(Struct):
    """A running tool call. ``in_terminal``: the editor shows its output in its own terminal.

    ``id`` is that for the editor, in which no two calls of a session may have the same.
    """

    id: str
    tool: str
    title: str
    path: str | None
    in_terminal: bool = False


class Usage(Struct):
    """The tokens that the current prompt has used, and the cost of the session in US dollars."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    finish_reason: str | None = None

    def add(self, usage: events.AssistantUsage) -> None:
        """Add the usage of one model call."""
        self.input += usage.input_tokens
        self.output += usage.output_tokens
        self.reasoning += usage.reasoning_tokens or 0
        self.cache_read += usage.cache_read_tokens
        self.cache_write += usage.cache_write_tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        self.finish_reason = usage.finish_reason

    def reset(self) -> None:
        """Reset the tokens for a new prompt, but not the cost."""
        self.input = self.output = self.reasoning = self.cache_read = self.cache_write = 0
        self.finish_reason = None

    def wire(self) -> JsonObject:
        """Return ACP's ``Usage``."""
        return {
            "totalTokens": self.input + self.output,
            "inputTokens": self.input,
            "outputTokens": self.output,
            "thoughtTokens": self.reasoning,
            "cachedReadTokens": self.cache_read,
            "cachedWriteTokens": self.cache_write,
        }


class Translator(Struct):
    """``cwd`` resolves relative paths; ``read`` returns a file's current text; ``titled``: a title was sent.

    ``own_messages`` are the ids of the editor's own prompts, which are not sent to it. With ``whole``, complete
    messages are sent as wholes, and every message has an id. ``render`` converts diffs.
    """

    cwd: str
    read: Reader | None = None
    titled: bool = False
    whole: bool = False
    render: Renderer = diffs_of
    own_messages: set[str] = field(default_factory=set[str])
    # The running calls by their ids, which some models use again, and the number of calls with each id so far.
    _calls: dict[str, list[Call]] = field(default_factory=dict[str, list[Call]])
    _counts: dict[str, int] = field(default_factory=dict[str, int])
    usage: Usage = field(default_factory=Usage)
    _sent_chars: dict[str, int] = field(default_factory=dict[str, int])
    _held: set[str] = field(default_factory=set[str])
    _intentions: dict[str, str] = field(default_factory=dict[str, str])
    _compaction: str | None = None
    _failed_servers: set[str] = field(default_factory=set[str])
    _last_message: str = INTERRUPTED_ID

    def steps(self, event: events.Event, *, lossy: bool = False) -> Iterator[Step]:
        """Return the steps for ``event``.

        A ``lossy`` client gets no deltas: the rest of a message follows when the message is complete. ACP has no
        updates for the work of sub-agents; their questions come without the id of an agent.
        """
        if event.agent_id is not None:
            return
        payload = event.payload
        match payload:
            case events.MessageDelta():
                yield from self._delta("agent_message_chunk", payload.message_id, payload.delta_content, lossy)
            case events.ReasoningDelta():
                yield from self._delta("agent_thought_chunk", payload.reasoning_id, payload.delta_content, lossy)
            case events.Reasoning():
                yield from self._unsent_part("agent_thought_chunk", payload.reasoning_id, payload.content)
            case events.AssistantMessage():
                self._intentions.update(
                    (tool_request.tool_call_id, tool_request.intention_summary)
                    for tool_request in payload.tool_requests
                    if tool_request.intention_summary is not None
                )
                yield from self._unsent_part("agent_message_chunk", payload.message_id, payload.content)
            case events.UserMessage():
                if not self.titled and payload.source is None and payload.content:
                    self.titled = True
                    yield Update(_info(shorten(payload.content), event.timestamp))
                if payload.message_id in self.own_messages:
                    self.own_messages.discard(payload.message_id)
                elif payload.source is None:
                    # That of another client of the session; what is its own, an editor shows itself.
                    yield from self._user_message(payload)
            case events.ToolExecutionStart():
                yield Update({"sessionUpdate": "tool_call", **self._start(payload)})
            case events.ToolExecutionPartialResult():
                call = self.running(payload.tool_call_id)
                if call is not None and not call.in_terminal and not lossy:
                    content = tool_calls.output(payload.partial_output, call.tool)
                    yield _call_update({"toolCallId": call.id, "content": content})
            case events.ToolExecutionProgress():
                call = self.running(payload.tool_call_id)
                if call is not None and not lossy:
                    content = tool_calls.output(payload.progress_message, "")
                    yield _call_update({"toolCallId": call.id, "content": content})
            case events.ToolExecutionComplete():
                yield _call_update(self._end(payload, self.read))
            case events.PermissionRequested():
                yield from self._permission(payload)
            case events.PermissionCompleted():
                yield Withdraw(payload.request_id)
                call = self.running(payload.tool_call_id)
                if payload.result.kind.startswith("approved") and call is not None:
                    yield _call_update({"toolCallId": call.id, "status": "in_progress"})
            case events.ElicitationRequested():
                # The source comes first: no message of a server can pass for one of the editor or of jumpseat.
                source = payload.elicitation_source
                message = f"{exact_line(source)} asks: {payload.message}" if source else payload.message
                if payload.url is not None:
                    yield AskToOpen(payload.request_id, message, payload.url)
                else:
                    yield AskForm(payload.request_id, message, payload.requested_schema or {})
            case events.ElicitationCompleted():
                yield Withdraw(payload.request_id)
            case events.AssistantUsage():
                self.usage.add(payload)
            case events.SessionUsageInfo():
                yield Update(self._usage(payload))
            case events.SessionCompactionStart():
                self._compaction = event.id
                yield Compaction(_compaction(event.id, "in_progress"))
            case events.SessionCompactionComplete():
                yield Compaction(_compaction_end(self._compaction or event.id, payload))
            case events.SessionTitleChanged():
                self.titled = True
                yield Update(_info(payload.title, event.timestamp))
            case events.SessionModeChanged() | events.SessionModelChange() | events.SessionPermissionsChanged():
                yield OptionsChanged()
            case events.CommandsChanged() | events.SessionSkillsLoaded():
                yield CommandsChanged()
            case events.SessionPlanChanged() | events.SessionTodosChanged():
                yield PlanChanged()
            case events.SessionWarning():
                yield _notice("warning", payload.warning_type, payload.message, event.id)
            case events.SessionInfo():
                yield _notice("info", payload.info_type, payload.message, event.id)
            case events.SessionContextChanged():
                self.cwd = payload.cwd
            case events.McpServerStatusChanged():
                yield from self.server_status(payload.server_name, payload.status, payload.error)
            case _:
                # The response to the prompt reports its end, questions are requests of their own, and ACP has no
                # updates for the other events.
                pass

    def replay(self, payload: events.EventPayload | events.UnknownPayload) -> Iterator[Update | Compaction]:
        """Return the updates for an event of the log, for an editor that loads the session."""
        match payload:
            case events.UserMessage():
                if payload.source is None:
                    yield from self._user_message(payload)
            case events.Reasoning():
                yield from self._unsent_part("agent_thought_chunk", payload.reasoning_id, payload.content)
            case events.AssistantMessage():
                self._intentions.update(
                    (tool_request.tool_call_id, tool_request.intention_summary)
                    for tool_request in payload.tool_requests
                    if tool_request.intention_summary is not None
                )
                yield from self._unsent_part("agent_message_chunk", payload.message_id, payload.content)
            case events.Abort():
                # A loaded session has no response to the prompt, which would say so.
                mark: JsonObject = {"sessionUpdate": "agent_message_chunk", "content": text_block(INTERRUPTED)}
                yield Update(mark | ({"messageId": self._last_message} if self.whole else {}))
            case events.ToolExecutionStart():
                yield Update({"sessionUpdate": "tool_call", **self._start(payload)})
            case events.ToolExecutionComplete():
                yield _call_update(self._end(payload))
            case events.SessionCompactionComplete(success=True):
                yield Compaction(_compaction_end(f"checkpoint-{payload.checkpoint_number}", payload))
            case _:
                pass

    def end_replay(self) -> Iterable[Update]:
        """Forget the calls that the log does not end: none of them runs. Return the last updates, here none."""
        self._calls.clear()
        return ()

    def resumed(self) -> Iterable[Update]:
        """Return no updates: version 1 has no state of a session."""
        return ()

    def server_status(self, name: str, status: str, error: str | None) -> Iterator[Notice]:
        """Return a notice if an MCP server has failed: one until the server is connected again."""
        if status == "connected":
            self._failed_servers.discard(name)
        elif status in ("failed", "needs-auth") and name not in self._failed_servers:
            self._failed_servers.add(name)
            problem = f"has failed: {error}"
            if status == "needs-auth":
                problem = "requires a login: run `jumpseat mcp login` with its name or URL"
            yield _notice("warning", "mcp", f"MCP server {exact_line(name)!r} {problem}", f"mcp-{name}")

    # --- messages -----------------------------------------------------------------------------------------------

    def _delta(self, kind: str, message_id: str, text: str, lossy: bool) -> Iterator[Update]:
        if lossy or message_id in self._held:
            # The message is held back until it is complete, so that a missing delta leaves no gap.
            self._held.add(message_id)
        elif text:
            self._sent_chars[message_id] = self._sent_chars.get(message_id, 0) + len(text)
            yield _chunk(kind, text_block(text), message_id)

    def _unsent_part(self, kind: str, message_id: str, content: str) -> Iterator[Update]:
        """Return the part of a complete message that was not sent as deltas."""
        self._held.discard(message_id)
        if kind == "agent_message_chunk":
            self._last_message = message_id
        sent = self._sent_chars.pop(message_id, 0)
        if rest := content[sent:]:
            yield (
                _whole(kind, [text_block(rest)], message_id)
                if self.whole and not sent
                else _chunk(kind, text_block(rest), message_id)
            )

    def _user_message(self, message: events.UserMessage) -> Iterator[Update]:
        blocks = blocks_of(message.content, message.attachments)
        if self.whole:
            yield _whole("user_message_chunk", blocks, message.message_id)
        else:
            for block in blocks:
                yield _chunk("user_message_chunk", block, message.message_id)

    # --- tool calls ---------------------------------------------------------------------------------------------

    def running(self, call_id: str | None) -> Call | None:
        """Return the running call of the main agent with an id; the last one, if a model has repeated the id."""
        return self._calls[call_id][-1] if call_id in self._calls else None

    def running_calls(self) -> int:
        """Return the number of running calls."""
        return sum(map(len, self._calls.values()))

    def running_of(self, tool: str) -> list[Call]:
        """Return the running calls of a tool."""
        return [call for calls in self._calls.values() for call in calls if call.tool == tool]

    def _start(self, start: events.ToolExecutionStart) -> JsonObject:
        body = tool_calls.start_update(start, self.cwd, self._intentions.pop(start.tool_call_id, None))
        count = self._counts[start.tool_call_id] = self._counts.get(start.tool_call_id, 0) + 1
        if count > 1:
            body["toolCallId"] = f"{start.tool_call_id}#{count}"
        locations = body.get("locations")
        path = locations[0]["path"] if locations else None
        call = Call(body["toolCallId"], start.tool_name, body["title"], path)
        self._calls.setdefault(start.tool_call_id, []).append(call)
        return body

    def _end(self, end: events.ToolExecutionComplete, read: Reader | None = None) -> JsonObject:
        calls = self._calls.pop(end.tool_call_id, [])
        call = calls.pop(0) if calls else None
        if calls:
            self._calls[end.tool_call_id] = calls
        tool, path = (call.tool, call.path) if call is not None else ("", None)
        body = tool_calls.completion_update(end, tool, path, read, self.render)
        if call is not None:
            body["toolCallId"] = call.id
            if call.in_terminal:
                # The terminal continues showing the output.
                body.pop("content", None)
        return body

    def _permission(self, requested: events.PermissionRequested) -> Iterator[Step]:
        request = requested.permission_request
        call = self.running(request.tool_call_id)
        body = tool_calls.permission_call(
            request,
            call.id if call is not None else request.tool_call_id or requested.request_id,
            call.title if call is not None else None,
            self.read,
            self.render,
        )
        if call is not None:
            yield _call_update({"toolCallId": body["toolCallId"], "status": "pending"})
        yield AskPermission(requested.request_id, request, body)

    def _usage(self, info: events.SessionUsageInfo) -> JsonObject:
        body: JsonObject = {
            "sessionUpdate": "usage_update",
            "used": info.current_tokens,
            "size": info.token_limit,
        }
        if self.usage.cost is not None:
            body["cost"] = {"amount": self.usage.cost, "currency": "USD"}
        return body


def stop_reason_of(finish_reason: str | None) -> str:
    """Return the reason of the end of a prompt, for the reason that the model gave for the end of its answer."""
    return STOP_REASONS.get(finish_reason or "", "end_turn")


def _notice(severity: str, kind: str, message: str, event_id: str) -> Notice:
    # The user must see what a tool says, and that tools are missing, in every editor.
    shown = kind in ("tool", "tools", "mcp")
    thought = _chunk("agent_thought_chunk", text_block(f"{message}\n"), event_id).body if shown else None
    return Notice(severity, message, thought)


def _chunk(kind: str, content: JsonObject, message_id: str) -> Update:
    return Update({"sessionUpdate": kind, "content": content, "messageId": message_id})


def _whole(kind: str, content: list[JsonObject], message_id: str) -> Update:
    return Update({"sessionUpdate": kind.removesuffix("_chunk"), "content": content, "messageId": message_id})


def _call_update(body: JsonObject) -> Update:
    return Update({"sessionUpdate": "tool_call_update", **body})


def _info(title: str, time: str) -> JsonObject:
    return {"sessionUpdate": "session_info_update", "title": title, "updatedAt": time}


def _compaction(compaction_id: str, status: str, **more: Any) -> JsonObject:
    return {"sessionUpdate": "compaction_update", "compactionId": compaction_id, "status": status, **more}


def _compaction_end(compaction_id: str, end: events.SessionCompactionComplete) -> JsonObject:
    if end.success:
        return _compaction(compaction_id, "completed", summary=[text_block(end.summary_content or "")])
    if end.error == events.COMPACTION_CANCELLED:
        return _compaction(compaction_id, "cancelled")
    return _compaction(compaction_id, "failed", error=end.error)
