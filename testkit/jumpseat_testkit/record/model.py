"""Find what the model has said in a conversation, for the scripted model that plays it again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from jumpseat_protocol.json_values import as_list, as_object, as_text, parse_arguments
from jumpseat_protocol.prompt_marks import SUMMARY_REQUEST
from jumpseat_testkit.protocols import PROTOCOLS, ProtocolName

JsonObject: TypeAlias = dict[str, Any]

RETRIED: Final = (408, 409, 425, 429)
"""Statuses below 500 of failures after which a server may call a model again."""
_ENDED: Final = ("completed", "failed", "cancelled")


class _Turn(Struct):
    """One answer of the model. ``is_over``: what comes next belongs to another answer."""

    text: str = ""
    reasoning: str = ""
    calls: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    hangs: bool = False
    error: JsonObject | None = None
    is_over: bool = False

    def as_script(self) -> JsonObject:
        """Return the answer as in a script, without what it lacks."""
        found: JsonObject = {"reasoning": self.reasoning, "text": self.text, "tool_calls": [*self.calls.values()]}
        if self.hangs:
            found["hang"] = True
        if self.error is not None:
            found["errors"] = [self.error]
        return {name: value for name, value in found.items() if value} or {"text": ""}


class _Prompt(Struct):
    """A prompt, and the answers to it. ``agent`` is the sub-agent that got it, ``""`` for the session itself."""

    text: str
    agent: str = ""
    turns: list[_Turn] = field(default_factory=list[_Turn])


class ModelAnswers:
    """The answers of the model, by the prompts in whose course they were given."""

    def __init__(self, protocol: ProtocolName) -> None:
        self._feed = PROTOCOLS[protocol].feed
        self._prompts: list[_Prompt] = []
        self._read = _READERS[self._feed.method]

    def read(self, messages: Iterable[tuple[str, Any]]) -> None:
        """Read the messages of a conversation, with their directions."""
        for direction, message in messages:
            fields = as_object(message)
            if direction == "->" and fields.get("method") == "session/prompt":
                blocks = [as_object(block) for block in as_list(as_object(fields.get("params")).get("prompt"))]
                self.begin("".join(as_text(block.get("text")) for block in blocks))
            elif direction == "<-" and (event := self._feed.event_of(message)) is not None:
                self._read(self, event)

    def begin(self, text: str, agent: str = "") -> None:
        """Record a prompt."""
        self._prompts.append(_Prompt(text, agent))

    def turn(self, agent: str = "") -> _Turn | None:
        """Return the answer that is being given; ``None`` before the first prompt."""
        prompt = next((one for one in reversed(self._prompts) if one.agent == agent), None)
        if prompt is None:
            return None
        if not prompt.turns or prompt.turns[-1].is_over:
            prompt.turns.append(_Turn())
        return prompt.turns[-1]

    def summarize(self, text: str) -> None:
        """Record a summary, which the prompts before and after it have nothing to do with."""
        self._prompts.insert(0, _Prompt(SUMMARY_REQUEST, turns=[_Turn(text=text, is_over=True)]))

    def script(self) -> JsonObject | None:
        """Return the scripted model; ``None`` for a conversation without prompts."""
        answered = [prompt for prompt in self._prompts if prompt.turns]
        if not answered:
            return None
        if len(answered) == 1 and not answered[0].agent:
            return {"turns": _as_scripts(answered[0].turns)}
        if _are_flat(answered):
            return {"turns": _as_scripts(turn for prompt in answered for turn in prompt.turns)}
        # Prompts with the same text share their answers: the model counts them from the last prompt on.
        shared: dict[str, list[_Turn]] = {}
        for prompt in answered:
            shared.setdefault(prompt.text.strip(), prompt.turns)
        entries = [{"when": _expression(text), "turns": _as_scripts(turns)} for text, turns in shared.items()]
        # The first one that is found in a prompt counts.
        return {"prompts": sorted(entries, key=lambda entry: -len(entry["when"]))}


def _are_flat(prompts: Sequence[_Prompt]) -> bool:
    """Return whether one prompt was given twice, with other answers, and all answers can be counted instead."""
    texts = [prompt.text.strip() for prompt in prompts]
    turns = [turn for prompt in prompts for turn in prompt.turns]
    is_whole = not any(prompt.agent or prompt.text == SUMMARY_REQUEST for prompt in prompts)
    return len(set(texts)) < len(texts) and is_whole and not any(turn.hangs or turn.error for turn in turns)


def _as_scripts(turns: Iterable[_Turn]) -> list[JsonObject]:
    return [turn.as_script() for turn in turns]


def _expression(text: str) -> str:
    escaped = re.sub(r"\\([ '\"/:,;<>=&%@!#~`-])", r"\1", re.escape(text[:200]).replace("\\\n", r"\s"))
    return escaped or "^$"


def _read_event(answers: ModelAnswers, event: JsonObject) -> None:
    """Read an event of the Copilot SDK protocol."""
    data, agent = as_object(event.get("data")), as_text(event.get("agentId"))
    match event.get("type"):
        case "user.message":
            answers.begin(as_text(data.get("content")), agent)
        case "assistant.turn_start" if (turn := answers.turn(agent)) is not None:
            # An answer that is cut off has no message.
            turn.hangs = True
        case "assistant.message" if (turn := answers.turn(agent)) is not None:
            turn.text, turn.reasoning = as_text(data.get("content")), as_text(data.get("reasoningText"))
            turn.hangs, turn.is_over = False, True
            for call in map(as_object, as_list(data.get("toolRequests"))):
                turn.calls[as_text(call.get("toolCallId"))] = {
                    "id": call.get("toolCallId"),
                    "name": call.get("name"),
                    "arguments": call.get("arguments") or {},
                }
        case "session.compaction_complete" if data.get("summaryContent"):
            answers.summarize(as_text(data.get("summaryContent")))
        case "session.error" if data.get("errorType") != "notification" and (turn := answers.turn(agent)):
            turn.hangs, turn.is_over = False, True
            status = data.get("statusCode") or 400
            # The failures that a server retries would take the time of all its attempts.
            turn.error = {
                "status": 400 if status >= 500 or status in RETRIED else status,
                "message": as_text(data.get("message")),
            }
        case _:
            pass


def _read_update(answers: ModelAnswers, update: JsonObject) -> None:
    """Read an update of the Agent Client Protocol."""
    turn = answers.turn()
    if turn is None:
        return
    call = as_text(update.get("toolCallId"))
    match update.get("sessionUpdate"):
        case "agent_message_chunk":
            turn.text += as_text(as_object(update.get("content")).get("text"))
        case "agent_thought_chunk":
            turn.reasoning += as_text(as_object(update.get("content")).get("text"))
        case "tool_call" if update.get("name"):
            turn.calls[call] = {"id": call, "name": update["name"], "arguments": update.get("rawInput") or {}}
        case "tool_call_update" if update.get("status") in _ENDED and call in turn.calls:
            turn.is_over = True
        case _:
            pass


def _read_action(answers: ModelAnswers, action: JsonObject) -> None:
    """Read an action of the Agent Host Protocol."""
    if action.get("type") == "chat/turnStarted":
        answers.begin(as_text(as_object(action.get("message")).get("text")))
    turn = answers.turn()
    if turn is None:
        return
    call = as_text(action.get("toolCallId"))
    match action.get("type"):
        case "chat/delta":
            turn.text += as_text(action.get("content"))
        case "chat/responsePart":
            part = as_object(action.get("part"))
            turn.text += as_text(part.get("content")) if part.get("kind") == "markdown" else ""
        case "chat/reasoning":
            turn.reasoning += as_text(action.get("content"))
        case "chat/toolCallStart":
            turn.calls[call] = {"id": call, "name": action.get("toolName"), "arguments": {}}
        case "chat/toolCallReady" if call in turn.calls and action.get("toolInput"):
            turn.calls[call]["arguments"] = parse_arguments(as_text(action.get("toolInput")))
        case "chat/toolCallComplete" if call in turn.calls:
            turn.is_over = True
        case _:
            pass


_READERS: Final[Mapping[str, Callable[[ModelAnswers, JsonObject], None]]] = {
    "session.event": _read_event,
    "session/update": _read_update,
    "action": _read_action,
}
