"""After all events of a session, and after those of its log alone, clients see the same chat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import msgspec
import pytest

from jumpseat.agent.interfaces import EXITED, RUNNING, STARTED
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.events import Translator
from jumpseat.ahp.translation.session_events import SessionTranslator, apply
from jumpseat.ahp.translation.terminals import MOST_ENDED, Published
from jumpseat.ahp.translation.uris import chat_uri, kind_of
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


MAIN: Final = chat_uri("s")


def channels_after(found: Iterable[Event]) -> dict[str, JsonObject]:
    """Return the states of the main chat and of the further channels after some events."""
    translator = SessionTranslator("s")
    states = {MAIN: INITIAL["chat"]}
    for event in found:
        for step in translator.steps(event):
            apply(states, step)
    for step in translator.end_turns():
        apply(states, step)
    return states


def chat_after(found: Iterable[Event]) -> JsonObject:
    return channels_after(found)[MAIN]


def without_unstored(state: JsonObject) -> JsonObject:
    """Return a chat without what only events tell that are not stored; a terminal as it is."""
    if "turns" not in state:
        return state
    turns = [
        {
            **{name: value for name, value in turn.items() if name != "usage"},
            "responseParts": [part for part in turn["responseParts"] if part["kind"] != "inputRequest"],
        }
        for turn in state["turns"]
    ]
    return {**state, "turns": turns}


def check_law(found: list[Event]) -> None:
    every = channels_after(found)
    stored = channels_after(event for event in found if event.persisted)
    assert {uri: without_unstored(state) for uri, state in every.items()} == {
        uri: without_unstored(state) for uri, state in stored.items()
    }


def test_recorded_conversations() -> None:
    with all_cases() as case:
        for path in sorted(TRANSCRIPTS.glob("*.jsonl")):
            if path.name in LOST:
                continue
            with case(path.name):
                check_law(list(transcript(path)))


def test_turns_of_a_conversation_with_approval() -> None:
    (turn,) = chat_after(transcript(TRANSCRIPTS / "approved.jsonl"))["turns"]
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
                turns = chat_after(transcript(TRANSCRIPTS / f"{name}.jsonl"))["turns"]
                assert turns[0]["state"] == ending


def test_a_turn_without_an_end_in_the_log_was_interrupted() -> None:
    found = list(transcript(TRANSCRIPTS / "approved.jsonl"))
    at = next(place for place, event in enumerate(found) if isinstance(event.payload, events.PermissionRequested))
    (turn,) = chat_after(found[: at + 1])["turns"]
    assert turn["state"] == "cancelled"
    assert turn["responseParts"][0]["toolCall"]["reason"] == "skipped"


# --- generated sessions -----------------------------------------------------------------------------------------


class Recording:
    """Generates the events of a session as the server publishes them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.found: list[Event] = []
        self.names = 0
        self.agent: str | None = None
        """The sub-agent whose events are added; ``None`` for the main agent."""
        self.idle: list[str] = []
        """The sub-agents that have ended their first run."""
        self.shells: list[tuple[str | None, str]] = []
        """The commands in the background, by the agents that have started them."""

    def name(self) -> str:
        self.names += 1
        return f"id-{self.names}"

    def add(self, payload: events.EventPayload, event_id: str | None = None) -> None:
        # Several events in a second, some at the same time.
        time = time_of(10 + len(self.found) // 3)
        self.found.append(Event.of(event_id or self.name(), time, None, payload, self.agent))

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
            if self.idle and self.chance(0.3):
                self.ask_agent(self.random.choice(self.idle))
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
        if self.agent is None and self.chance(0.4):
            approved = self.ask(call_id)
        if approved and self.chance(0.2 if self.agent is None else 0.05):
            self.start_agent(call_id)
        output = self.random.choice(("", "a b c", "so far\nand on"))
        if approved and self.chance(0.3):
            shown = self.random.choice(("so far\n", "of far longer output", ""))
            self.add(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=shown))
            self.add(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=shown + output))
            if self.agent is None and self.chance(0.3):
                # The question of a sub-agent, about a call that the chat does not show.
                self.ask(self.name())
        if self.chance(0.2):
            question = self.name()
            self.add(events.UserInputRequested(request_id=question, question="Why?", choices=["a", "b"]))
            self.add(events.UserInputCompleted(request_id=question, answer="a", was_freeform=False))
        approved = approved and self.chance(0.9)
        if request.name == "bash":
            output = self.output_of_command(output)
        result = events.ToolResult(content=output) if approved else None
        error = None if approved else events.ToolError(message="The user rejected this tool call.")
        self.add(events.ToolExecutionComplete(tool_call_id=call_id, success=approved, result=result, error=error))
        if self.shells and self.shells[-1][0] == self.agent and self.chance(0.3):
            self.end_command()

    def output_of_command(self, output: str) -> str:
        """Return the result of a command, which may run on in the background."""
        shell_id = str(len(self.found))
        behind = (f"{RUNNING}{shell_id}; more>", f"{STARTED}{shell_id}; more>")
        status = self.random.choice(("", f"{EXITED}3>\n<hint>", f"{EXITED}-9>", *behind))
        if status in behind:
            self.shells.append((self.agent, shell_id))
        return "\n".join(filter(None, (output, status)))

    def end_command(self) -> None:
        """Let the model read a command in the background, or learn of its end."""
        parent, (self.agent, shell_id) = self.agent, self.shells.pop()
        if self.chance():
            kind = {"type": "shell_completed", "shellId": shell_id, "exitCode": 1}
            self.add(events.SystemNotification(content="A command has ended", kind=kind))
        call_id, name = self.name(), self.random.choice(("read_bash", "write_bash", "stop_bash"))
        self.add(events.ToolExecutionStart(tool_call_id=call_id, tool_name=name, arguments={"shellId": shell_id}))
        status = self.random.choice((f"{EXITED}0>", f"{RUNNING}{shell_id}>"))
        result = events.ToolResult(content=f"more\n{status}")
        self.add(events.ToolExecutionComplete(tool_call_id=call_id, success=True, result=result))
        self.agent = parent

    def start_agent(self, call_id: str) -> None:
        """Add the events of a sub-agent until the end of its first run, which not every one reaches."""
        names: dict[str, Any] = {"tool_call_id": call_id, "agent_name": "task", "agent_display_name": "helper"}
        parent, self.agent = self.agent, self.name()
        self.add(events.SubagentStarted(**names, agent_description="help", parent_id=parent))
        for _ in range(self.random.randrange(1, 3)):
            self.run_agent()
        match self.random.randrange(5):
            case 0:
                self.add(events.SubagentFailed(**names, error="no"))
            case 1:
                self.add(events.SubagentCompleted(**names, cancelled=True))
            case 2 | 3:
                self.add(events.SubagentCompleted(**names))
                self.idle.append(self.agent)
            case _:
                # It works on, or its process has died.
                pass
        self.agent = parent

    def ask_agent(self, agent: str) -> None:
        """Add the events of a later run of a sub-agent."""
        parent, self.agent = self.agent, agent
        self.run_agent()
        self.agent = parent

    def run_agent(self) -> None:
        interaction = self.name()
        self.prompt(interaction, self.random.choice(("idle", "queued")))
        for number in range(self.random.randrange(1, 4)):
            self.add(events.TurnStart(turn_id=str(number), interaction_id=interaction))
            self.answer()
            self.add(events.TurnEnd(turn_id=str(number)))

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


@pytest.mark.thorough
def test_generated_sessions() -> None:
    with all_cases() as case:
        for seed in range(150):
            recording = Recording(Random(seed))
            for _ in range(recording.random.randrange(1, 5)):
                recording.run()
            with case(seed):
                check_law(recording.found)
                channels = channels_after(recording.found)
                for uri, chat in channels.items():
                    if kind_of(uri) == "terminal":
                        assert refers(channels[chat["claim"]["chat"]], uri, chat["claim"])
                        continue
                    assert chat["turns"]
                    assert len({turn["id"] for turn in chat["turns"]}) == len(chat["turns"])
                    is_main = uri == MAIN
                    assert ("interactivity" not in chat) == is_main
                    if not is_main:
                        origin = chat["origin"]
                        assert refers(channels[origin["chat"]], uri, origin)


def refers(parent: JsonObject, uri: str, origin: JsonObject) -> bool:
    """Return whether the call of a chat that a channel comes from refers to the channel."""
    parts = [part for turn in parent["turns"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
    calls = [part["toolCall"] for part in parts if part["toolCall"]["toolCallId"] == origin["toolCallId"]]
    # A call that is cancelled has no content.
    return any(
        call["status"] == "cancelled" or uri in [one.get("resource") for one in call.get("content", ())]
        for call in calls
    )


def command(recording: Recording, *outputs: str, result: str | None, call_id: str) -> None:
    """Add the events of a call that runs a command."""
    recording.add(events.ToolExecutionStart(tool_call_id=call_id, tool_name="bash", arguments={"command": "ls"}))
    for output in outputs:
        recording.add(events.ToolExecutionPartialResult(tool_call_id=call_id, partial_output=output))
    if result is not None:
        content = events.ToolResult(content=result)
        recording.add(events.ToolExecutionComplete(tool_call_id=call_id, success=True, result=content))


def test_the_output_of_a_command_is_that_of_a_terminal() -> None:
    recording = Recording(Random(0))
    recording.prompt("i")
    recording.add(events.TurnStart(turn_id="0", interaction_id="i"))
    # The third output lacks the beginning, which was too long.
    command(recording, "one\n", "one\ntwo\n", "o\nthree\n", result=None, call_id="c/1")
    translator = SessionTranslator("s")
    steps = [step for event in recording.found for step in translator.steps(event)]
    actions = [step.action for step in steps if isinstance(step, Published) and kind_of(step.uri) == "terminal"]
    assert actions == [
        {"type": "terminal/data", "data": "one"},
        {"type": "terminal/data", "data": "\ntwo"},
        {"type": "terminal/cleared"},
        {"type": "terminal/data", "data": "o\nthree"},
    ]
    long = "x" * 5000
    recording.add(
        events.ToolExecutionComplete(
            tool_call_id="c/1", success=True, result=events.ToolResult(content=f"{long}\n{EXITED}2>\n<a hint>")
        )
    )
    terminal = channels_after(recording.found)["ahp-terminal:/s/i/c%2F1"]
    assert terminal["content"] == [{"type": "unclassified", "value": long}]
    assert (terminal["isPty"], terminal["lifecycle"]) == (False, {"status": "exited", "exitCode": 2})
    (part,) = chat_after(recording.found)["turns"][0]["responseParts"]
    block = part["toolCall"]["content"][0]
    assert (block["type"], block["isPty"], len(block["result"]["preview"])) == ("terminal", False, 2000)
    assert (block["result"]["exitCode"], block["result"]["truncated"]) == (2, True)
    check_law(recording.found)


def test_only_the_latest_terminals_of_ended_commands_are_kept() -> None:
    recording = Recording(Random(0))
    recording.prompt("i")
    recording.add(events.TurnStart(turn_id="0", interaction_id="i"))
    command(recording, result=f"{STARTED}7; more>", call_id="running")
    for number in range(MOST_ENDED + 5):
        command(recording, "a", result=f"a\n{EXITED}0>", call_id=f"c{number}")
    kept = [uri.rpartition("/")[2] for uri in channels_after(recording.found) if kind_of(uri) == "terminal"]
    assert kept == ["running", *(f"c{number}" for number in range(5, MOST_ENDED + 5))]
    recording.add(events.SessionResume(resume_time=time_of(0), event_count=1))
    terminals = [state for uri, state in channels_after(recording.found).items() if kind_of(uri) == "terminal"]
    # The process of the server has ended, and its commands with it.
    assert all(terminal["lifecycle"]["status"] == "exited" for terminal in terminals)
    assert len(terminals) == MOST_ENDED
    check_law(recording.found)


def test_later_prompts_of_a_sub_agent_are_turns_that_end_with_an_answer() -> None:
    recording = Recording(Random(1))
    recording.agent = "helper"
    recording.add(
        events.SubagentStarted(
            tool_call_id="c", agent_name="task", agent_display_name="helper", agent_description="help"
        )
    )
    for number in range(3):
        recording.prompt(f"i-{number}")
        # A hook lets the agent go on once more, as the log shows it.
        for _ in range(2):
            recording.add(events.TurnStart(turn_id="0", interaction_id=f"i-{number}"))
            recording.add(events.AssistantMessage(message_id=recording.name(), content="There"))
            recording.add(events.TurnEnd(turn_id="0"))
        if number == 0:
            recording.add(
                events.SubagentCompleted(tool_call_id="c", agent_name="task", agent_display_name="helper")
            )
        translator, states = SessionTranslator("s"), dict[str, JsonObject]()
        for event in recording.found:
            for step in translator.steps(event):
                apply(states, step)
        (chat,) = states.values()
        assert "activeTurn" not in chat
        assert [turn["state"] for turn in chat["turns"]] == ["complete"] * (1 + 2 * number)
    check_law(recording.found)


def test_commands_of_the_user_belong_to_no_turn() -> None:
    recording = Recording(Random(3))
    recording.run()
    before = chat_after(recording.found)
    recording.add(events.ToolUserRequested(tool_call_id="mine", tool_name="bash", arguments={"command": "ls"}))
    recording.add(events.ToolExecutionStart(tool_call_id="mine", tool_name="bash", arguments={"command": "ls"}))
    recording.add(events.ToolExecutionComplete(tool_call_id="mine", success=True))
    assert chat_after(recording.found) == before
    check_law(recording.found)


def test_a_question_of_a_sub_agent_outlasts_the_turn_in_which_it_was_asked() -> None:
    recording = Recording(Random(2))
    request = ReadPermission(intention="Read", path="/etc/passwd", tool_call_id="unknown")
    for number in range(2):
        recording.prompt(f"i-{number}")
        recording.add(events.TurnStart(turn_id="0", interaction_id=f"i-{number}"))
        if number == 0:
            recording.add(events.PermissionRequested(request_id="q", permission_request=request))
        recording.add(events.TurnEnd(turn_id="0"))
    asked = list(recording.found)
    recording.add(events.PermissionCompleted(request_id="q", result=PermissionResult(kind="approved")))
    translator = SessionTranslator("s")
    for event in asked:
        list(translator.steps(event))
    assert translator.main.question_of("q") == "q"
    first, second = chat_after(recording.found)["turns"]
    assert [part["toolCall"]["status"] for part in first["responseParts"]] == ["cancelled"]
    assert [part["toolCall"]["status"] for part in second["responseParts"]] == ["completed"]
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
