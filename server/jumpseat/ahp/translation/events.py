"""Translate the events of an agent into actions on the channel of its chat. Pure: events in, actions out.

One :class:`Translator` follows the main agent of a session, or one of its sub-agents, for all clients. What AHP
shows comes from events, whichever door has caused them.

The id of a turn is the interaction id of its prompt, which the log repeats in each ``assistant.turn_start``. Unlike
the id of the message, which clients of the other protocol read as a UUID, it may be any string, so that a turn has
the id that its client chose, after a restart, too. It also tells runs apart that begin without a prompt.

A turn ends with ``session.idle``, which is not stored, and at the latest with the next one, so that a log leads to
the same turns: its duration and its outcome come from stored events alone. After all events, and after those of the
log, the state of a chat is the same, apart from what only the others tell: usage, questions and their answers,
answers that were never completed, and the order of text and reasoning in an answer that reasons after its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson
from msgspec import Struct, field

from jumpseat.ahp.states.values import Action, JsonObject, present
from jumpseat.ahp.translation import attachments, forms, results
from jumpseat.ahp.translation.permissions import OPTION_OF, options_for, question_text
from jumpseat.ahp.translation.turns import Call, Turn
from jumpseat.sessions.shown.calls import title_of
from jumpseat_protocol import events
from jumpseat_protocol.permissions import PermissionRequest


class Translator(Struct):
    """Translates the events of one agent, in their order: those of the log first, then all that follow."""

    turn: Turn | None = None
    first_events: dict[str, str] = field(default_factory=dict[str, str])
    """The ids of the events that the turns begin with, by the ids of the turns."""
    owners: dict[str, str] = field(default_factory=dict[str, str])
    """The ids of the clients that run tools, by the names of the tools."""
    # The calls of commands that the user has run; they belong to no turn.
    _of_user: set[str] = field(default_factory=set[str])
    # The latest message to the model in the place of a prompt.
    _notification: str = ""
    # The calls that ask for permission, by the ids of the questions.
    _asking: dict[str, Call] = field(default_factory=dict[str, Call])
    # The open questions of sub-agents, which may outlast a turn.
    _foreign: dict[str, events.PermissionRequested] = field(default_factory=dict[str, events.PermissionRequested])
    # The ids of the open questions that are forms.
    _open_inputs: set[str] = field(default_factory=set[str])
    _skips_deltas: bool = False
    # A sub-agent whose first run has ended: no event tells of the ends of later ones.
    _has_ended: bool = False

    def actions(self, event: events.Event) -> Iterator[Action]:
        """Return the actions for an event. Permission questions of sub-agents lack the agent's id."""
        if self._skips_deltas and isinstance(event.payload, _DELTAS):
            return
        if isinstance(event.payload, events.AssistantMessage | events.TurnStart | events.TurnEnd):
            self._skips_deltas = False
        turn = self.turn
        match event.payload:
            case events.UserMessage() as message if message.is_prompt:
                yield from self._prompt(event, message)
            case events.SystemNotification() as notification:
                self._notification = notification.content
            case events.TurnStart() as start:
                yield from self._begin_run(event, start)
            case events.SessionIdle() | events.SessionShutdown():
                self._foreign.clear()
                yield from self.end_turn()
            case events.SessionResume() as resume if not resume.continue_pending_work:
                self._foreign.clear()
                yield from self.end_turn()
            case events.SubagentCompleted() | events.SubagentFailed() as end:
                yield from self._end_agent(event, end)
            case events.ToolUserRequested() as requested:
                self._of_user.add(requested.tool_call_id)
            case events.ToolExecutionStart() | events.ToolExecutionComplete() as call if (
                call.tool_call_id in self._of_user
            ):
                if isinstance(call, events.ToolExecutionComplete):
                    self._of_user.discard(call.tool_call_id)
            case payload if turn is not None:
                if event.persisted and isinstance(payload, _OF_TURNS):
                    turn.last_at = event.timestamp
                yield from self._in_turn(turn, payload)
                if turn.only_asks and not (self._asking or self._open_inputs):
                    yield from self.end_turn()
            case payload if isinstance(payload, _QUESTIONS) and not _is_answered(payload):
                # That of a sub-agent in the background, or of an MCP server.
                message = {"text": _ASKS, "origin": {"kind": "systemNotification"}}
                yield from self._begin(event.id, event, message)
                if (turn := self.turn) is not None:
                    turn.only_asks = True
                    yield from self._in_turn(turn, payload)
            case _:
                pass

    def join(self, *, is_working: bool) -> None:
        """End the replay of the log: other events follow, from the middle of an answer if the session works.

        The beginning of that answer is unknown, so that it is shown when it is complete.
        """
        self._skips_deltas = is_working and self.turn is not None and self.turn.works

    def question_of(self, call_id: str) -> str | None:
        """Return the id of the open question about a call, by the call's id for clients."""
        return next((request_id for request_id, call in self._asking.items() if call.id == call_id), None)

    def request_of(self, call_id: str) -> str | None:
        """Return the id of the question for the result of a call, by the call's id for clients."""
        calls = self.turn.calls() if self.turn is not None else ()
        return next((call.request_id for call in calls if call.id == call_id), None)

    def runs(self, call_id: str) -> bool:
        """Return whether a call runs, by its id in events."""
        return self.turn is not None and self.turn.running(call_id) is not None

    def refer(self, call_id: str, block: JsonObject) -> tuple[str, list[Action]] | None:
        """Let a running call refer to another channel in its content; ``None`` if there is no such call.

        Returns:
            The id of the call for clients, and the actions that show the reference.
        """
        call = self.turn.running(call_id) if self.turn is not None else None
        if call is None:
            return None
        call.blocks.append(block)
        return call.id, self.show_blocks(call)

    def show_blocks(self, call: Call) -> list[Action]:
        """Return the actions that show the references of a running call."""
        if (turn := self.turn) is None:
            return []
        return [_of_call("ContentChanged", turn, call, content=list(call.blocks))]

    def end_turn(self) -> Iterator[Action]:
        """Return the action that ends the open turn, if any."""
        turn, self.turn = self.turn, None
        if turn is None:
            return
        self._asking.clear()
        self._open_inputs.clear()
        end: JsonObject = {"turnId": turn.id, "duration": turn.duration}
        if turn.aborted:
            yield {"type": "chat/turnCancelled", **end}
        elif turn.error is not None:
            part = {"kind": "error", "error": turn.error, "resumable": False}
            yield {"type": "chat/error", **end, "part": part}
        elif turn.works:
            # The process has died.
            yield {"type": "chat/turnCancelled", **end}
        else:
            yield {"type": "chat/turnComplete", **end}

    # --- turns --------------------------------------------------------------------------------------------------

    def _prompt(self, event: events.Event, message: events.UserMessage) -> Iterator[Action]:
        turn, turn_id = self.turn, message.interaction_id or event.id
        if turn is not None and message.delivery == "steering":
            turn.message_ids.add(message.message_id)
            turn.last_at = event.timestamp
            # No other event tells that the message waits no more.
            yield {"type": "chat/pendingMessageRemoved", "kind": "steering", "id": turn_id}
            yield _part(turn, {"kind": "systemNotification", "content": f"You added: {message.content}"})
        elif turn is None or turn.interaction_id != turn_id:
            shown = {"text": message.content, "origin": {"kind": "user" if message.source is None else "agent"}}
            shown |= present({"attachments": attachments.of_prompt(message.attachments)})
            yield from self._begin(turn_id, event, shown, message_id=message.message_id)

    def _begin_run(self, event: events.Event, start: events.TurnStart) -> Iterator[Action]:
        turn = self.turn
        if turn is None or start.interaction_id not in (None, turn.interaction_id):
            turn_id = start.interaction_id or event.id
            message = {"text": self._notification, "origin": {"kind": "systemNotification"}}
            yield from self._begin(turn_id, event, message)
        if self.turn is not None:
            self.turn.works, self.turn.error, self.turn.last_at = True, None, event.timestamp
            self.turn.only_asks = False

    def _end_agent(
        self, event: events.Event, end: events.SubagentCompleted | events.SubagentFailed
    ) -> Iterator[Action]:
        self._has_ended = True
        if (turn := self.turn) is None:
            return
        turn.last_at = event.timestamp
        if isinstance(end, events.SubagentFailed):
            turn.error = {"errorType": "sub_agent", "message": end.error}
        elif end.cancelled:
            turn.aborted = True
        yield from self.end_turn()

    def _begin(
        self, interaction_id: str, event: events.Event, message: JsonObject, *, message_id: str | None = None
    ) -> Iterator[Action]:
        yield from self.end_turn()
        time, turn_id = event.timestamp, interaction_id
        while turn_id in self.first_events:
            # A hook lets an agent go on whose answer has ended its turn.
            turn_id = f"{interaction_id}#{len(self.first_events)}"
        self.first_events[turn_id] = event.id
        message_ids = set[str]() if message_id is None else {message_id}
        self.turn = Turn(turn_id, interaction_id, time, time, message_ids, owners=self.owners)
        # Of a message that has waited, the id was that of the turn, too.
        queued = {} if message_id is None else {"queuedMessageId": turn_id}
        yield {"type": "chat/turnStarted", "turnId": turn_id, "startedAt": time, "message": message, **queued}
        for asked in self._foreign.values():
            yield from self._ask(self.turn, asked)

    def _in_turn(self, turn: Turn, payload: events.EventPayload) -> Iterator[Action]:
        match payload:
            case events.TurnEnd():
                turn.works = False
                if self._has_ended and not turn.calls_tools:
                    yield from self.end_turn()
            case events.Abort():
                turn.aborted = True
            case events.SessionError() if payload.originating_message_id in turn.message_ids:
                turn.error = {"errorType": payload.error_type, "message": payload.reason}
            case events.MessageDelta():
                yield from _delta(turn, "markdown", payload.message_id, payload.delta_content)
            case events.ReasoningDelta():
                yield from _delta(turn, "reasoning", payload.reasoning_id, payload.delta_content)
            case events.Reasoning():
                yield from _rest(turn, "reasoning", payload.reasoning_id, payload.content)
            case events.AssistantMessage():
                turn.calls_tools = bool(payload.tool_requests)
                yield from _rest(turn, "markdown", payload.message_id, payload.content)
                for request in payload.tool_requests:
                    yield from _declare(turn, request)
            case events.AssistantUsage():
                yield _usage(turn, payload)
            case events.ToolCallDelta():
                yield from _stream(turn, payload)
            case events.ToolExecutionStart():
                yield from self._run_call(turn, payload)
            case events.ToolExecutionPartialResult():
                yield from _show_output(turn, payload.tool_call_id, payload.partial_output)
            case events.ToolExecutionProgress():
                yield from _show_output(turn, payload.tool_call_id, payload.progress_message)
            case events.ToolExecutionComplete():
                yield from self._complete(turn, payload)
            case events.ExternalToolRequested():
                yield from _call_client(turn, payload)
            case events.PermissionRequested() if not payload.resolved_by_hook:
                yield from self._ask(turn, payload)
            case events.PermissionCompleted():
                yield from self._answer(turn, payload)
            case (
                events.UserInputRequested()
                | events.ElicitationRequested()
                | events.ExitPlanModeRequested()
                | events.AutoModeSwitchRequested()
            ):
                self._open_inputs.add(payload.request_id)
                yield {"type": "chat/inputRequested", "request": forms.request_of(payload)}
            case (
                events.UserInputCompleted()
                | events.ElicitationCompleted()
                | events.ExitPlanModeCompleted()
                | events.AutoModeSwitchCompleted()
            ):
                self._open_inputs.discard(payload.request_id)
                yield {"type": "chat/inputCompleted", **forms.completion_of(payload)}
            case events.SessionCompactionComplete(success=True) if turn.works:
                yield _part(turn, {"kind": "systemNotification", "content": "The conversation was summarized"})
            case events.SessionWarning() | events.SessionInfo() if turn.works:
                yield _part(turn, {"kind": "systemNotification", "content": payload.message})
            case _:
                # The other events have no place in a chat.
                pass

    # --- tool calls ---------------------------------------------------------------------------------------------

    def _run_call(self, turn: Turn, start: events.ToolExecutionStart) -> Iterator[Action]:
        call = turn.call(start.tool_call_id, "declared", "streamed")
        if call is None:
            call = turn.add_call(start.tool_call_id, start.tool_name, "running")
            yield _started(turn, call)
        call.phase = "running"
        call.title = title_of(start.tool_name, start.arguments, call.intention)
        call.input = _input_text(start.arguments)
        if call.client is None:
            yield from _show_ready(turn, call)

    def _complete(self, turn: Turn, end: events.ToolExecutionComplete) -> Iterator[Action]:
        if (call := turn.end_call(end.tool_call_id)) is not None:
            yield from _show_ready(turn, call)
            yield _of_call("Complete", turn, call, result=results.result_of(end, call))

    def _ask(self, turn: Turn, asked: events.PermissionRequested) -> Iterator[Action]:
        request: PermissionRequest = asked.permission_request
        call = turn.running(request.tool_call_id)
        if call is None:
            call = turn.add_call(asked.request_id, request.kind, "running")
            call.is_foreign, call.client = True, None
            self._foreign[asked.request_id] = asked
            yield _started(turn, call)
        self._asking[asked.request_id] = call
        title, text = question_text(request, call.title or None)
        call.title = call.title or title
        yield _of_call(
            "Ready",
            turn,
            call,
            confirmationTitle=title,
            invocationMessage={"markdown": text} if text else title,
            toolInput=call.input,
            options=options_for(request),
        )
        call.input = None

    def _answer(self, turn: Turn, answered: events.PermissionCompleted) -> Iterator[Action]:
        self._foreign.pop(answered.request_id, None)
        call = self._asking.pop(answered.request_id, None)
        if call is None:
            return
        approved = answered.result.kind.startswith("approved")
        yield _of_call(
            "Confirmed",
            turn,
            call,
            approved=approved,
            confirmed=("user-action" if answered.decided_by is not None else "setting") if approved else None,
            reason=None if approved else "denied",
            reasonMessage=answered.result.feedback,
            selectedOptionId=OPTION_OF.get(answered.result.kind),
        )
        if call.is_foreign and approved:
            result = {"success": True, "pastTenseMessage": call.title}
            yield _of_call("Complete", turn, call, result=result)


_OF_TURNS: Final = (
    events.TurnEnd,
    events.Reasoning,
    events.AssistantMessage,
    events.ToolExecutionStart,
    events.ToolExecutionComplete,
    events.PermissionRequested,
    events.PermissionCompleted,
    events.Abort,
    events.SessionError,
)
"""The stored events within a turn, of which the last one gives the time of its end."""


_QUESTIONS: Final = (
    events.PermissionRequested,
    events.UserInputRequested,
    events.ElicitationRequested,
    events.ExitPlanModeRequested,
    events.AutoModeSwitchRequested,
)
_ASKS: Final = "A question from the background"

_DELTAS: Final = (events.MessageDelta, events.ReasoningDelta, events.ToolCallDelta)


def _is_answered(payload: events.EventPayload) -> bool:
    return isinstance(payload, events.PermissionRequested) and bool(payload.resolved_by_hook)


def _part(turn: Turn, part: JsonObject) -> Action:
    return {"type": "chat/responsePart", "turnId": turn.id, "part": part}


def _delta(turn: Turn, kind: str, part_id: str, text: str) -> Iterator[Action]:
    sent = turn.sent_chars.get(part_id)
    if not text:
        return
    turn.sent_chars[part_id] = (sent or 0) + len(text)
    if sent is None:
        yield _part(turn, {"kind": kind, "id": part_id, "content": text})
    else:
        name = "chat/delta" if kind == "markdown" else "chat/reasoning"
        yield {"type": name, "turnId": turn.id, "partId": part_id, "content": text}


def _rest(turn: Turn, kind: str, part_id: str, content: str) -> Iterator[Action]:
    """Return the part of a complete message that was not sent as deltas."""
    return _delta(turn, kind, part_id, content[turn.sent_chars.get(part_id, 0) :])


def _usage(turn: Turn, usage: events.AssistantUsage) -> Action:
    sums = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
    }
    turn.usage = {name: turn.usage.get(name, 0) + count for name, count in sums.items()} | {"model": usage.model}
    return {"type": "chat/usage", "turnId": turn.id, "usage": turn.usage}


# --- tool calls -------------------------------------------------------------------------------------------------


def _of_call(kind: str, turn: Turn, call: Call, **members: Any) -> Action:
    return {"type": f"chat/toolCall{kind}", "turnId": turn.id, "toolCallId": call.id, **present(members)}


def _started(turn: Turn, call: Call) -> Action:
    contributor = None if call.client is None else {"kind": "client", "clientId": call.client}
    return _of_call("Start", turn, call, toolName=call.tool, displayName=call.tool, contributor=contributor)


def _show_ready(turn: Turn, call: Call) -> Iterator[Action]:
    """Show that a call runs, if that is not shown yet."""
    if call.input is not None:
        yield _of_call(
            "Ready",
            turn,
            call,
            invocationMessage=call.title,
            toolInput=call.input,
            intention=call.intention,
            confirmed="not-needed",
        )
        call.input = None


def _call_client(turn: Turn, asked: events.ExternalToolRequested) -> Iterator[Action]:
    call = turn.running(asked.tool_call_id)
    if call is not None and call.client is not None:
        call.request_id = asked.request_id
        yield from _show_ready(turn, call)


def _stream(turn: Turn, delta: events.ToolCallDelta) -> Iterator[Action]:
    call = turn.call(delta.tool_call_id, "streamed")
    if call is None:
        if delta.tool_name is None:
            return
        call = turn.add_call(delta.tool_call_id, delta.tool_name, "streamed")
        yield _started(turn, call)
    if delta.input_delta:
        call.sent_chars += len(delta.input_delta)
        yield _of_call("Delta", turn, call, content=delta.input_delta)


def _declare(turn: Turn, request: events.ToolRequest) -> Iterator[Action]:
    call = turn.call(request.tool_call_id, "streamed")
    if call is None:
        call = turn.add_call(request.tool_call_id, request.name, "streamed")
        yield _started(turn, call)
    call.phase, call.intention = "declared", request.intention_summary
    text = request.arguments_json or _input_text(request.arguments)
    if rest := text[call.sent_chars :]:
        yield _of_call("Delta", turn, call, content=rest)


def _show_output(turn: Turn, call_id: str, text: str) -> Iterator[Action]:
    call = turn.running(call_id)
    # The output of a command is in its terminal.
    if call is not None and call.terminal is None:
        yield _of_call("ContentChanged", turn, call, content=[*call.blocks, *results.text_content(text)])


def _input_text(arguments: Any) -> str:
    """Return the arguments of a call as models write them: compact JSON, or the text of a free form."""
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
