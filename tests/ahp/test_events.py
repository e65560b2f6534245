"""After all events of a session, and after those of its log alone, clients see the same chat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import msgspec

from jumpseat.ahp.states.chat import reduce_chat
from jumpseat.ahp.states.values import Action, JsonObject
from jumpseat.ahp.translation.events import Translator
from jumpseat_protocol import events
from jumpseat_protocol.events import Event, decode_payload
from jumpseat_protocol.permissions import DecidedBy, PermissionResult, ReadPermission, ShellPermission
from tests.ahp.generated import INITIAL
from tests.support.cases import all_cases

TRANSCRIPTS: Final = Path(__file__).parents[1] / "transcripts"
LOST: Final = {"abort.jsonl"}
"""Conversations with an answer that is shown and not stored."""


def time_of(number: int) -> str:
    return f"2026-11-28T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z"


def transcript(path: Path) -> Iterator[Event]:
    """Return the events of a recorded conversation, with times in place of those that are left out."""
    number = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        message = json.loads(line).get("<-")
        if not isinstance(message, dict) or cast("JsonObject", message).get("method") != "session.event":
            continue
        number += 1
        event = json.loads(json.dumps(message["params"]["event"]).replace('"<n>"', "1"))
        payload: Any = decode_payload(event["type"], event["data"])
        yield Event.of(
            event["id"], time_of(number), None, payload, event.get("agentId"), bool(event.get("ephemeral"))
        )


def translated(found: Iterable[Event]) -> list[Action]:
    translator = Translator()
    actions = [action for event in found for action in translator.actions(event)]
    return [*actions, *translator.end_turn()]


def chat_after(actions: Iterable[Action]) -> JsonObject:
    state = INITIAL["chat"]
    for action in actions:
        if action["type"].startswith("chat/"):
            state = reduce_chat(state, action)
    return state


def without_unstored(state: JsonObject) -> JsonObject:
    """Return a chat without what only events tell that are not stored."""
    turns = [
        {
            **{name: value for name, value in turn.items() if name != "usage"},
            "responseParts": [part for part in turn["responseParts"] if part["kind"] != "inputRequest"],
        }
        for turn in state["turns"]
    ]
    return {**state, "turns": turns}


def check_law(found: list[Event]) -> None:
    every = chat_after(translated(found))
    stored = chat_after(translated(event for event in found if event.persisted))
    assert without_unstored(every) == without_unstored(stored)


def test_recorded_conversations() -> None:
    with all_cases() as case:
        for path in sorted(TRANSCRIPTS.glob("*.jsonl")):
            if path.name in LOST:
                continue
            with case(path.name):
                check_law(list(transcript(path)))


def test_turns_of_a_conversation_with_approval() -> None:
    (turn,) = chat_after(translated(transcript(TRANSCRIPTS / "approved.jsonl")))["turns"]
    assert (turn["state"], turn["message"]["text"]) == ("complete", "Make a file")
    call, text = turn["responseParts"]
    assert text["content"] == "It is there."
    assert call["toolCall"]["status"] == "completed"
    assert call["toolCall"]["selectedOption"]["id"] == "once"
    assert "+hello" in call["toolCall"]["invocationMessage"]["markdown"]
    assert turn["usage"]["inputTokens"] == 2


def test_how_turns_end() -> None:
    endings = {"abort": "cancelled", "model_error": "error", "rejected": "complete", "plain": "complete"}
    with all_cases() as case:
        for name, ending in endings.items():
            with case(name):
                turns = chat_after(translated(transcript(TRANSCRIPTS / f"{name}.jsonl")))["turns"]
                assert turns[0]["state"] == ending


def test_a_turn_without_an_end_in_the_log_was_interrupted() -> None:
    found = list(transcript(TRANSCRIPTS / "approved.jsonl"))
    at = next(place for place, event in enumerate(found) if isinstance(event.payload, events.PermissionRequested))
    (turn,) = chat_after(translated(found[: at + 1]))["turns"]
    assert turn["state"] == "cancelled"
    assert turn["responseParts"][0]["toolCall"]["reason"] == "skipped"


# --- generated sessions -----------------------------------------------------------------------------------------


class Recording:
    """Generates the events of a session as the server publishes them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.found: list[Event] = []
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"id-{self.names}"

    def add(self, payload: events.EventPayload, event_id: str | None = None) -> None:
        # Several events in a second, some at the same time.
        time = time_of(10 + len(self.found) // 3)
        self.found.append(Event.of(event_id or self.name(), time, None, payload))

    def chance(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def prompt(self, interaction: str, delivery: events.Delivery = "idle") -> str:
        message_id = self.name()
        self.add(
            events.UserMessage(
                content=f"Prompt {message_id}",
                message_id=message_id,
                interaction_id=interaction,
                delivery=delivery,
                attachments=[{"type": "file", "path": "/a/b.txt"}] if self.chance(0.2) else None,
            ),
            message_id,
        )
        return message_id

    def run(self) -> None:
        """Add the events of a run, which may end in the middle of a turn."""
        interaction = self.name()
        if self.chance(0.1):
            self.add(events.SystemNotification(content="An agent is done", kind={"type": "agent_idle"}))
            message_id = ""
        else:
            message_id = self.prompt(interaction, self.random.choice(("idle", "queued")))
        for number in range(self.random.randrange(1, 4)):
            self.add(events.TurnStart(turn_id=str(number), interaction_id=interaction))
            if number and self.chance(0.3):
                self.prompt(self.name(), "steering")
            if self.chance(0.1):
                self.add(events.SessionWarning(warning_type="x", message="Careful"))
            self.answer()
            if self.chance(0.05):
                # The process has died: nothing of the run follows.
                self.add(events.SessionResume(resume_time=time_of(0), event_count=1))
                return
            self.add(events.TurnEnd(turn_id=str(number)))
        match self.random.randrange(8):
            case 0:
                self.add(events.Abort(reason="user_initiated"))
            case 1 if message_id:
                error = events.SessionError(
                    error_type="query", message="Execution failed: no", originating_message_id=message_id
                )
                self.add(error)
            case _:
                pass
        if self.chance(0.8):
            self.add(events.AssistantIdle())
            self.add(events.SessionIdle(mode="interactive"))

    def answer(self) -> None:
        streams, message_id = self.chance(), self.name()
        if self.chance(0.3):
            reasoning_id = self.name()
            if streams:
                self.add(events.ReasoningDelta(reasoning_id=reasoning_id, delta_content="Let me "))
            self.add(events.Reasoning(reasoning_id=reasoning_id, content="Let me see"))
        text = self.random.choice(("", "All done.", "I look."))
        if streams:
            self.add(events.MessageStart(message_id=message_id))
            for part in (text[:3], text[3 : self.random.randrange(3, 9)]):
                self.add(events.MessageDelta(message_id=message_id, delta_content=part))
        # Some models use an id again.
        requests = [
            events.ToolRequest(
                tool_call_id=self.random.choice(("call-1", self.name())),
                name=self.random.choice(("bash", "view")),
                arguments={"command": "ls -la"},
                intention_summary="List" if self.chance() else None,
            )
            for _ in range(self.random.randrange(3))
        ]
        if streams:
            for request in requests[:1]:
                for part in ('{"comm', 'and":"ls'):
                    self.add(
                        events.ToolCallDelta(
                            tool_call_id=request.tool_call_id, input_delta=part, tool_name=request.name
                        )
                    )
        self.add(events.AssistantMessage(message_id=message_id, content=text, tool_requests=requests))
        self.add(
            events.AssistantUsage(
                model="m", input_tokens=5, output_tokens=3, cache_read_tokens=0, cache_write_tokens=0, duration=1
            )
        )
        for request in requests:
            self.call(request)

    def call(self, request: events.ToolRequest) -> None:
        call_id = request.tool_call_id
        self.add(
            events.ToolExecutionStart(tool_call_id=call_id, tool_name=request.name, arguments=request.arguments)
        )
        approved = True
        if self.chance(0.4):
            approved = self.ask(call_id)
        if approved and self.chance(0.3):
            self.add(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output="so far"))
            if self.chance(0.3):
                # The question of a sub-agent, about a call that the chat does not show.
                self.ask(self.name())
        if self.chance(0.2):
            question = self.name()
            self.add(events.UserInputRequested(request_id=question, question="Why?", choices=["a", "b"]))
            self.add(events.UserInputCompleted(request_id=question, answer="a", was_freeform=False))
        result = events.ToolResult(content="a b c") if approved else None
        error = None if approved else events.ToolError(message="The user rejected this tool call.")
        self.add(events.ToolExecutionComplete(tool_call_id=call_id, success=approved, result=result, error=error))

    def ask(self, call_id: str) -> bool:
        question, approved = self.name(), self.chance(0.7)
        request = ReadPermission(intention="Read", path="/etc/passwd", tool_call_id=call_id)
        self.add(events.PermissionRequested(request_id=question, permission_request=request))
        self.add(
            events.PermissionCompleted(
                request_id=question,
                result=PermissionResult(kind="approved" if approved else "denied-interactively-by-user"),
                tool_call_id=call_id,
                decided_by=DecidedBy(client="x") if self.chance() else None,
            )
        )
        return approved


def test_generated_sessions() -> None:
    with all_cases() as case:
        for seed in range(150):
            recording = Recording(Random(seed))
            for _ in range(recording.random.randrange(1, 5)):
                recording.run()
            with case(seed):
                check_law(recording.found)
                turns = chat_after(translated(recording.found))["turns"]
                assert turns
                assert len({turn["id"] for turn in turns}) == len(turns)


def test_commands_of_the_user_belong_to_no_turn() -> None:
    recording = Recording(Random(3))
    recording.run()
    before = chat_after(translated(recording.found))
    recording.add(events.ToolUserRequested(tool_call_id="mine", tool_name="bash", arguments={"command": "ls"}))
    recording.add(events.ToolExecutionStart(tool_call_id="mine", tool_name="bash", arguments={"command": "ls"}))
    recording.add(events.ToolExecutionComplete(tool_call_id="mine", success=True))
    assert chat_after(translated(recording.found)) == before
    check_law(recording.found)


def test_text_of_questions_is_literal() -> None:
    recording = Recording(Random(0))
    interaction = recording.name()
    recording.prompt(interaction)
    recording.add(events.TurnStart(turn_id="0", interaction_id=interaction))
    request = ShellPermission(
        full_command_text="echo ```\n# **not** a heading",
        intention="Say hello",
        commands=[],
        possible_paths=[],
        has_write_file_redirection=False,
        can_offer_session_approval=False,
        warning="May hide ‮ something",
    )
    recording.add(events.PermissionRequested(request_id="q", permission_request=request))
    translator = Translator()
    actions = [action for event in recording.found for action in translator.actions(event)]
    ready = msgspec.json.decode(msgspec.json.encode(actions[-1]))
    assert ready["invocationMessage"]["markdown"].startswith("````console\necho ```\n# **not** a heading\n````")
    assert "\u202e" not in ready["invocationMessage"]["markdown"]
    assert [option["id"] for option in ready["options"]] == ["once", "reject"]
