"""The transcript of a session, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, cast

from jumpseat_protocol.events import (
    Abort,
    AssistantMessage,
    EventPayload,
    PermissionCompleted,
    PermissionRequested,
    Reasoning,
    SessionCompactionComplete,
    SessionError,
    SessionInfo,
    SessionModeChanged,
    SessionModelChange,
    SessionResume,
    SessionShutdown,
    SessionStart,
    SessionWarning,
    SubagentSelected,
    SystemNotification,
    ToolError,
    ToolExecutionComplete,
    ToolExecutionStart,
    UnknownPayload,
    UserMessage,
    decode_payload,
)
from jumpseat_protocol.permissions import PermissionResult
from jumpseat_transcript.calls import SHELLS, count_changes, split_shell_result, without_last_number
from jumpseat_transcript.user_commands import split_prompt
from jumpseat_transcript.words import display_time, duration, line_count

INTERRUPTED_CALL: Final = "The execution of this tool, or a previous tool was interrupted."
"""The protocol's error message of a cancelled call."""

CallStatus: TypeAlias = Literal["unfinished", "done", "failed", "denied", "cancelled"]

_APPROVALS: Final = {
    "approved": "approved once",
    "approved-for-session": "approved for the session",
    "approved-for-location": "approved for this folder",
    "approved-read-only-for-session": "approved, with reading in these folders",
    "cancelled": "the question was withdrawn",
    "denied-by-rules": "denied by a rule",
    "denied-by-content-exclusion-policy": "denied by the policy of the organization",
    "denied-by-permission-request-hook": "denied by a hook",
    "denied-interactively-by-user": "denied by the user",
    "denied-no-approval-rule-and-could-not-request-from-user": "denied, because nobody could be asked",
}


@dataclass(slots=True)
class Answer:
    """Text of the model. ``interrupted`` marks an answer that the user has cut off."""

    text: str
    time: str
    model: str | None = None
    interrupted: bool = False
    agent_id: str | None = None


@dataclass(slots=True)
class Thought:
    """Reasoning of the model."""

    text: str


@dataclass(slots=True)
class Call:
    """A tool call. ``output`` is the result for the user, ``diff`` a unified diff of the file that it has changed.

    ``note`` summarizes the result: ``3 lines``, ``exit code 1, 2 lines``, ``+2 -1``. ``approval`` says how a person
    or a rule has decided, in words; it is empty if nobody was asked.
    """

    id: str
    tool: str
    arguments: Any
    time: str
    status: CallStatus = "unfinished"
    output: str = ""
    diff: str = ""
    note: str = ""
    approval: str = ""
    seconds: float | None = None
    agent_id: str | None = None

    @property
    def summary(self) -> str:
        """The result, the decision and, from a second on, the duration: ``3 lines, approved once, 12s``."""
        decided = self.status == "denied" and self.approval
        words = ["" if decided else self.note or self.status, self.approval]
        if self.seconds is not None and self.seconds >= 1:
            words.append(duration(self.seconds))
        return ", ".join(filter(None, words))


@dataclass(slots=True)
class Note:
    """Something that the server has said, or that has happened to the session."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


Item: TypeAlias = Answer | Thought | Call | Note


@dataclass(slots=True)
class Turn:
    """A prompt and everything up to the next one. ``prompt`` is ``None`` for what came before the first.

    ``attached`` are the names of attachments, ``commands`` the lines that the user has run before the prompt.
    """

    prompt: str | None
    time: str
    attached: list[str] = field(default_factory=list[str])
    commands: list[str] = field(default_factory=list[str])
    items: list[Item] = field(default_factory=list[Item])


@dataclass(slots=True)
class Usage:
    """The calls of one model, and their tokens. ``dollars`` is ``None`` if no price is known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    dollars: float | None = None

    def add(self, other: Usage) -> None:
        """Add the calls of another part of the session."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cached_tokens += other.cached_tokens
        if other.dollars is not None:
            self.dollars = (self.dollars or 0.0) + other.dollars


@dataclass(slots=True)
class Transcript:
    """A session. Times are ISO 8601 in UTC; ``usage`` is by model."""

    session_id: str
    title: str = ""
    folder: str = ""
    started: str = ""
    changed: str = ""
    turns: list[Turn] = field(default_factory=list[Turn])
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    lines_added: int = 0
    lines_removed: int = 0
    files_changed: int = 0

    @property
    def prompts(self) -> int:
        return sum(turn.prompt is not None for turn in self.turns)

    @property
    def calls(self) -> list[Call]:
        return [item for turn in self.turns for item in turn.items if isinstance(item, Call)]

    @property
    def models(self) -> list[str]:
        """The models that have answered, in the order of their first answers."""
        answers = (item for turn in self.turns for item in turn.items if isinstance(item, Answer))
        return list(dict.fromkeys(answer.model for answer in answers if answer.model))


def build_transcript(
    session_id: str,
    records: Iterable[Mapping[str, Any]],
    *,
    title: str = "",
    folder: str = "",
    usage: Mapping[str, Usage] | None = None,
) -> Transcript:
    """Build the transcript of a session from its events: ``{type, timestamp, data, agentId?}`` each.

    Never raises: events of unknown types and shapes are left out. ``title`` and ``folder`` replace those of the
    events, and so does ``usage``, by model: events have only that of sessions which a client has shut down.
    """
    builder = _Builder(Transcript(session_id, title, folder))
    for record in records:
        timestamp, agent_id = record.get("timestamp"), record.get("agentId")
        builder.add(
            decode_payload(str(record.get("type", "")), record.get("data")),
            timestamp if isinstance(timestamp, str) else "",
            agent_id if isinstance(agent_id, str) else None,
        )
    if usage:
        builder.transcript.usage = dict(usage)
    return builder.transcript


class _Builder:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self._calls: dict[str, Call] = {}
        # By the id of the request: the id of the call that a question is about.
        self._asked: dict[str, str] = {}

    def add(self, payload: EventPayload | UnknownPayload, time: str, agent_id: str | None) -> None:
        """Add one event of the session."""
        transcript = self.transcript
        transcript.changed = time or transcript.changed
        match payload:
            case SessionStart():
                transcript.started = payload.start_time
                if payload.context is not None:
                    transcript.folder = transcript.folder or payload.context.cwd
            case UserMessage():
                self._add_prompt(payload, time)
            case Reasoning(content=text) if text.strip() and agent_id is None:
                self._add(Thought(text), time)
            case AssistantMessage():
                self._add_answer(payload, time, agent_id)
            case ToolExecutionStart():
                call = self._call(payload.tool_call_id, payload.tool_name, payload.arguments, time, agent_id)
                call.time = time
            case ToolExecutionComplete():
                self._finish_call(payload, time)
            case PermissionRequested():
                self._asked[payload.request_id] = payload.permission_request.tool_call_id or ""
            case PermissionCompleted():
                self._add_decision(payload)
            case SessionShutdown():
                self._add_usage(payload)
            case _:
                self._add_note(payload, time)

    def _add_prompt(self, payload: UserMessage, time: str) -> None:
        if payload.source not in (None, "user"):
            return
        prompt, commands = split_prompt(payload.content)
        if not self.transcript.title:
            self.transcript.title = " ".join(prompt.split())[:100]
        attached = [_attachment_name(attachment) for attachment in payload.attachments or ()]
        self.transcript.turns.append(Turn(prompt, time, attached, commands))

    def _add_answer(self, payload: AssistantMessage, time: str, agent_id: str | None) -> None:
        if payload.content.strip():
            answer = Answer(payload.content, time, payload.model, payload.interrupted is True, agent_id)
            self._add(answer, time)
        for request in payload.tool_requests:
            self._call(request.tool_call_id, request.name, request.arguments, time, agent_id)

    def _call(self, call_id: str, tool: str, arguments: Any, time: str, agent_id: str | None) -> Call:
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = Call(call_id, tool, arguments, time, agent_id=agent_id)
            self._add(call, time)
        return call

    def _finish_call(self, payload: ToolExecutionComplete, time: str) -> None:
        call = self._calls.get(payload.tool_call_id)
        if call is None:
            return
        if payload.effective_arguments is not None:
            call.arguments = payload.effective_arguments
        call.seconds = _seconds_between(call.time, time)
        result, error = payload.result, payload.error
        content = result.content if result is not None else ""
        detail = result.detailed_content if result is not None else None
        if not payload.success:
            call.note = call.status = _status_of_failure(error)
            # The message of a cancelled call says nothing more.
            message = "" if call.status == "cancelled" or error is None else error.message
            call.output = detail or message or content
            return
        call.status = "done"
        if detail is not None and detail.startswith("--- "):
            call.diff, call.note = detail, count_changes(detail)
        elif call.tool in SHELLS:
            call.output, call.note, failed = split_shell_result(content)
            call.status = "failed" if failed else "done"
        else:
            call.output = content if detail is None else detail
            call.note = line_count(without_last_number(call.output) if call.tool == "view" else call.output)

    def _add_decision(self, payload: PermissionCompleted) -> None:
        call = self._calls.get(payload.tool_call_id or self._asked.get(payload.request_id, ""))
        if call is not None:
            decision = _decision(payload.result)
            call.approval = f"{call.approval}; {decision}" if call.approval else decision

    def _add_usage(self, payload: SessionShutdown) -> None:
        transcript = self.transcript
        for model, used in usage_of_metrics(payload.model_metrics).items():
            transcript.usage.setdefault(model, Usage()).add(used)
        # Counted from the start of the session, unlike usage.
        changes = payload.code_changes
        transcript.lines_added = _number(changes.get("linesAdded"))
        transcript.lines_removed = _number(changes.get("linesRemoved"))
        files: Any = changes.get("filesModified")
        transcript.files_changed = len(cast("list[Any]", files)) if isinstance(files, list) else 0

    def _add_note(self, payload: EventPayload | UnknownPayload, time: str) -> None:
        note: Note | None
        match payload:
            case SessionResume():
                note = Note(f"resumed at {display_time(time)}") if self.transcript.turns else None
            case SessionModelChange(new_model=model):
                note = Note(f"model: {model}")
            case SessionModeChanged(new_mode=mode):
                note = Note(f"mode: {mode}")
            case SubagentSelected(agent_display_name=name):
                note = Note(f"agent: {name}")
            case SystemNotification(kind={"displayName": str(name)} as kind):
                note = Note(f"agent {name} has {'failed' if kind.get('status') == 'failed' else 'finished'}")
            case SessionInfo(message=message):
                note = Note(message)
            case SessionWarning(message=message):
                note = Note(message, "warning")
            case SessionError() as error:
                note = Note(error.reason, "error")
            case Abort():
                note = Note("cancelled", "warning")
            case SessionCompactionComplete(success=True):
                note = Note("the conversation so far was summarized")
            case SessionCompactionComplete(error=reason):
                note = Note(f"the conversation could not be summarized: {reason or 'no reason given'}", "warning")
            case _:
                note = None
        if note is not None:
            self._add(note, time)

    def _add(self, item: Item, time: str) -> None:
        if not self.transcript.turns:
            self.transcript.turns.append(Turn(None, time))
        self.transcript.turns[-1].items.append(item)


def _status_of_failure(error: ToolError | None) -> CallStatus:
    if error is None:
        return "failed"
    if error.message == INTERRUPTED_CALL:
        return "cancelled"
    return "denied" if error.code in ("denied", "rejected") else "failed"


def _decision(result: PermissionResult) -> str:
    words = _APPROVALS.get(result.kind, result.kind.replace("-", " "))
    return f"{words}: {result.feedback}" if result.feedback else words


def usage_of_metrics(metrics: Mapping[str, Any]) -> dict[str, Usage]:
    """Return the usage of each model from its wire form: ``{requests: {count}, usage, costUsd?}``."""
    return {
        model: _usage(cast("dict[str, Any]", value)) for model, value in metrics.items() if isinstance(value, dict)
    }


def _usage(value: Mapping[str, Any]) -> Usage:
    def part(name: str) -> dict[str, Any]:
        found: Any = value.get(name)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    requests, tokens = part("requests"), part("usage")
    dollars = value.get("costUsd")
    return Usage(
        _number(requests.get("count")),
        _number(tokens.get("inputTokens")),
        _number(tokens.get("outputTokens")),
        _number(tokens.get("cacheReadTokens")),
        float(dollars) if isinstance(dollars, int | float) else None,
    )


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _attachment_name(attachment: Mapping[str, Any]) -> str:
    return str(attachment.get("displayName") or attachment.get("path") or attachment.get("type"))


def _seconds_between(start: str, end: str) -> float | None:
    try:
        return max((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
