"""Running prompts: the whole lists of events that a client receives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.conversation.portability import check_capability
from jumpseat.agent.model import (
    Capabilities,
    Completed,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
    ToolSchema,
    ToolSpec,
)
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ProviderError, ProviderLoadingError, ProviderTransportError
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from tests.support.limits import WAIT_S
from tests.support.sessions import MODEL, MadeSession, P, make_session

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(first_wait_s=0)
STREAMING = SessionSettings.of(Path("/project"), streaming=True)
ADD = ClientTool(name="add", skip_permission=True)
CALL_ADD: dict[str, Any] = {"tool_calls": [{"id": "c1", "name": "add", "arguments": {"a": 1}}]}


class Recorder:
    """A model that records its requests and gives prepared answers."""

    def __init__(self, *answers: Sequence[ModelEvent | ProviderError]) -> None:
        self.requests: list[ModelRequest] = []
        self._answers = list(answers)
        self.signs_as = "recorder"

    @property
    def adapter_name(self) -> str:
        return "recorder"

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.requests.append(request)
        answer = self._answers.pop(0)

        async def play() -> AsyncIterator[ModelEvent]:
            for event in answer:
                if isinstance(event, ProviderError):
                    raise event
                yield event

        yield play()


def completed(text: str) -> Completed:
    return Completed(AssistantMessage([TextBlock(text)]), stop_reason="end_turn")


async def test_a_plain_turn_publishes_each_event_once_and_idle_last() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": "2"}])
        await made.ask("What is 1+1?")
        assert made.client.types() == [
            "pending_messages.modified",
            "pending_messages.modified",
            "user.message",
            "assistant.turn_start",
            "assistant.message",
            "assistant.usage",
            "session.usage_info",
            "assistant.turn_end",
            "assistant.idle",
            "session.idle",
        ]


async def test_the_deltas_of_a_streamed_answer_add_up_to_the_message() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"deltas": ["The ", "answer"], "reasoning": "hm"}], settings=STREAMING)
        await made.ask("?")
        deltas = made.client.payloads(events.MessageDelta)
        (start,) = made.client.payloads(events.MessageStart)
        (message,) = made.client.payloads(events.AssistantMessage)
        assert [delta.delta_content for delta in deltas] == ["The ", "answer"]
        assert {delta.message_id for delta in deltas} == {start.message_id} == {message.message_id}
        assert message.content == "The answer"
        (reasoning,) = made.client.payloads(events.Reasoning)
        assert reasoning.content == "hm"
        assert "hm" not in message.content


async def test_without_streaming_there_are_no_deltas() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"deltas": ["a", "b"], "reasoning": "hm"}])
        await made.ask("?")
        assert [kind for kind in made.client.types() if "delta" in kind or kind == "assistant.message_start"] == []


async def test_a_turn_with_a_tool_call_publishes_call_result_and_answer() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[CALL_ADD, {"text": "it is {{last_tool_result}}"}], tools=[ADD])
        prompt = made.send("add")
        request = await made.client.wait_for(events.ExternalToolRequested)
        assert made.answer_tool(request, "42")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        assert made.client.types(persisted_only=True) == [
            "user.message",
            "assistant.turn_start",
            "assistant.message",
            "tool.execution_start",
            "external_tool.requested",
            "external_tool.completed",
            "tool.execution_complete",
            "assistant.turn_end",
            "assistant.turn_start",
            "assistant.message",
            "assistant.turn_end",
        ]
        assert [start.turn_id for start in made.client.payloads(events.TurnStart)] == ["0", "1"]
        assert made.client.payloads(events.AssistantMessage)[-1].content == "it is 42"


async def test_turn_ids_start_again_with_each_prompt() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": "a"}, {"text": "b"}])
        await made.ask("1")
        await made.ask("2")
        assert [start.turn_id for start in made.client.payloads(events.TurnStart)] == ["0", "0"]


async def test_events_link_the_answer_to_the_prompt_and_each_event_to_its_parent() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": "a"}])
        prompt = await made.ask("1")
        (user,) = made.client.payloads(events.UserMessage)
        (answer,) = made.client.payloads(events.AssistantMessage)
        assert (user.message_id, answer.originating_message_id) == (prompt.id, prompt.id)
        persisted = [event for event in made.client.events if event.persisted]
        assert [event.parent_id for event in persisted] == [None, *(event.id for event in persisted[:-1])]
        assert next(event.id for event in persisted if event.type == "user.message") == prompt.id


async def test_prompts_that_are_sent_while_busy_run_in_order_with_one_idle_at_the_end() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[CALL_ADD, {"text": "first"}, {"text": "second"}], tools=[ADD])
        first = made.send("one")
        request = await made.client.wait_for(events.ExternalToolRequested)
        second = made.send("two")
        made.answer_tool(request, "1")
        with anyio.fail_after(WAIT_S):
            await second.run.done.wait()
        assert first.run.done.is_set()
        assert [user.delivery for user in made.client.payloads(events.UserMessage)] == ["idle", "queued"]
        assert len(made.client.payloads(events.SessionIdle)) == 1
        assert made.client.types()[-1] == "session.idle"


async def test_a_steering_prompt_is_added_before_the_next_model_call() -> None:
    model = Recorder(
        [Completed(_calls_add(), stop_reason="tool_use")],
        [completed("steered")],
    )
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, tools=[ADD])
        prompt = made.send("one")
        request = await made.client.wait_for(events.ExternalToolRequested)
        made.session.send(Prompt("and be quick"), "immediate")
        made.answer_tool(request, "1")
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        users = made.client.payloads(events.UserMessage)
        assert [(user.content, user.delivery, user.turn_id) for user in users] == [
            ("one", "idle", None),
            ("and be quick", "steering", "1"),
        ]
        roles = [message.role for message in model.requests[1].messages]
        assert roles == ["user", "assistant", "tool", "user"]
        assert len(made.client.payloads(events.SessionIdle)) == 1


def _calls_add() -> AssistantMessage:
    return AssistantMessage([ToolUseBlock("c1", "add", "{}", {})])


async def test_the_model_is_sent_the_earlier_conversation() -> None:
    model = Recorder([completed("Hello.")], [completed("Again.")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await made.ask("Hi")
        await made.ask("Hi again")
        first = made.client.payloads(events.UserMessage)[0]
        assert model.requests[1].messages[0] == UserMessage([TextBlock(first.transformed_content or "")])
        assert model.requests[1].messages[:1] == model.requests[0].messages
        assert model.requests[1].messages[1] == AssistantMessage([TextBlock("Hello.")])


async def test_an_empty_answer_ends_the_turn_quietly() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": ""}])
        await made.ask("?")
        assert made.client.payloads(events.AssistantMessage)[0].content == ""
        assert made.client.payloads(events.SessionError) == []
        assert made.client.types()[-1] == "session.idle"


async def test_a_failed_call_is_retried_and_each_failure_published() -> None:
    failing = {"text": "at last", "errors": [{"status": 500, "message": "no"}, {"status": 429, "message": "slow"}]}
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[failing])
        await made.ask("?")
        failures = made.client.payloads(events.ModelCallFailure)
        assert [(failure.status_code, failure.error_type) for failure in failures] == [
            (500, "query"),
            (429, "rate_limit"),
        ]
        assert made.client.payloads(events.AssistantMessage)[0].content == "at last"
        assert made.client.payloads(events.SessionError) == []


async def test_a_call_that_fails_for_good_ends_in_an_error_and_idle() -> None:
    failing = {"text": "never", "errors": [{"status": 503, "message": "down", "code": "busy"}] * 9}
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[failing], retry=RetryPolicy(attempts=3, first_wait_s=0))
        prompt = await made.ask("?")
        (error,) = made.client.payloads(events.SessionError)
        assert (error.error_type, error.status_code, error.error_code) == ("query", 503, "busy")
        assert error.originating_message_id == prompt.id
        assert "tried 3 times" in error.message
        assert made.client.types()[-4:] == [
            "assistant.turn_end",
            "session.error",
            "assistant.idle",
            "session.idle",
        ]


BROKEN = ProviderTransportError("connection broke")


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(["wer", ".", completed("wer.")], id="continued"),
        pytest.param(["half ", "an answ", "er.", completed("half an answer.")], id="begun anew"),
    ],
)
async def test_a_broken_answer_is_continued_as_one_message(rest: list[str | Completed]) -> None:
    broken = [TextDelta("half an "), TextDelta("ans"), BROKEN]
    model = Recorder(broken, [TextDelta(item) if isinstance(item, str) else item for item in rest])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, settings=STREAMING, retry=QUICK)
        await made.ask("?")
        (message,) = made.client.payloads(events.AssistantMessage)
        deltas = made.client.payloads(events.MessageDelta)
        assert message.content == "".join(delta.delta_content for delta in deltas) == "half an answer."
        assert {delta.message_id for delta in deltas} == {message.message_id}
        assert len(made.client.payloads(events.MessageStart)) == 1
        assert made.client.payloads(events.SessionError) == []
        assert [type(message) for message in model.requests[1].messages] == [
            UserMessage,
            AssistantMessage,
            UserMessage,
        ]


async def test_the_user_is_told_once_that_the_server_is_loading_the_model() -> None:
    loading = [ProviderLoadingError("loading", status=503)]
    model = Recorder(*[loading] * 9, [completed("yes")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, retry=QUICK)
        await made.ask("?")
        (info,) = made.client.payloads(events.SessionInfo)
        assert (info.info_type, info.message) == (
            "model_loading",
            f"The server is loading {MODEL}. Waiting for it.",
        )
        assert made.client.payloads(events.AssistantMessage)[0].content == "yes"


async def test_an_answer_that_breaks_before_its_text_begins_anew() -> None:
    thought = [ReasoningDelta("hm"), ToolCallDelta("c1", "add", '{"a'), BROKEN]
    model = Recorder(thought, [ReasoningDelta("hm"), TextDelta("yes"), completed("yes")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, settings=STREAMING, retry=QUICK)
        await made.ask("?")
        assert model.requests[0].messages == model.requests[1].messages
        assert made.client.payloads(events.AssistantMessage)[0].content == "yes"
        first, second = made.client.payloads(events.ReasoningDelta)
        assert first.reasoning_id != second.reasoning_id


async def test_a_hook_that_says_retry_is_obeyed_after_shown_text() -> None:
    hooks: dict[str, Any] = {"errorOccurred": [{"errorHandling": "retry", "retryCount": 1}]}
    model = Recorder([TextDelta("half "), BROKEN], [TextDelta("done."), completed("done.")])
    async with anyio.create_task_group() as tasks:
        once = RetryPolicy(attempts=1, first_wait_s=0)
        made = make_session(tasks, script=model, settings=STREAMING, retry=once, hooks=hooks)
        await made.ask("?")
        assert made.client.payloads(events.AssistantMessage)[0].content == "half done."
        assert made.client.payloads(events.SessionError) == []


async def test_an_answer_that_breaks_for_good_keeps_the_shown_text() -> None:
    model = Recorder([TextDelta("half "), BROKEN], [TextDelta("an ans"), BROKEN])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, settings=STREAMING, retry=RetryPolicy(attempts=2, first_wait_s=0))
        await made.ask("?")
        assert len(made.client.payloads(events.SessionError)) == 1
        (kept,) = made.client.payloads(events.AssistantMessage)
        assert kept.content == "half an ans"
        kinds = [event.payload.type for event in made.client.events if event.persisted]
        assert kinds[-3:] == ["assistant.message", "assistant.turn_end", "session.error"]


async def test_the_session_continues_after_an_error() -> None:
    model = Recorder([ProviderError("no such model", status=404)], [completed("fine")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await made.ask("?")
        await made.ask("again")
        assert made.client.payloads(events.AssistantMessage)[-1].content == "fine"
        assert [type(message) for message in model.requests[1].messages] == [UserMessage, UserMessage]


class Late(Recorder):
    """A model whose first answer waits for ``gate``."""

    def __init__(self, *answers: Sequence[ModelEvent | ProviderError]) -> None:
        super().__init__(*answers)
        self.called, self.gate = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        self.called.set()
        await self.gate.wait()
        async with super().stream(request) as events:
            yield events


async def steered(made: MadeSession, model: Late) -> Prompt:
    """Send a prompt, and another one while the model answers; returns the first."""
    prompt = made.send("one")
    with anyio.fail_after(WAIT_S):
        await model.called.wait()
    made.session.send(Prompt("two"), "immediate")
    model.gate.set()
    return prompt


async def test_a_steering_prompt_that_arrives_too_late_runs_by_itself() -> None:
    model = Late([ProviderError("no more", status=400)], [completed("here you are")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        await steered(made, model)
        await made.client.wait_for(events.SessionIdle)
        assert [user.delivery for user in made.client.payloads(events.UserMessage)] == ["idle", "queued"]
        assert made.client.payloads(events.AssistantMessage)[-1].content == "here you are"


async def test_a_run_ends_as_usual_if_a_hook_blocks_the_prompt_that_would_prolong_it() -> None:
    model = Late([completed("fine")])
    hooks: dict[str, Any] = {"userPromptSubmitted": [None, {"decision": "block", "reason": "has a key"}]}
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, hooks=hooks)
        prompt = await steered(made, model)
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        assert (len(model.requests), made.client.payloads(events.SessionError)) == (1, [])
        assert len(made.client.payloads(events.SessionWarning)) == 1
        assert [end.turn_id for end in made.client.payloads(events.TurnEnd)] == ["0", "1"]


async def test_an_unexpected_exception_is_not_disclosed() -> None:
    class Broken(Recorder):
        @asynccontextmanager
        async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
            if not self.requests:
                raise RuntimeError("a path and a secret")
            async with super().stream(request) as events:
                yield events

    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=Broken())
        await made.ask("?")
        (error,) = made.client.payloads(events.SessionError)
        assert error.message == "Execution failed: internal error"
        assert made.client.types()[-1] == "session.idle"


async def _abort_at(made: MadeSession, kind: type[P]) -> None:
    """Send a prompt, wait for an event of the type ``kind``, and abort."""
    prompt = made.send("go")
    await made.client.wait_for(kind)
    with anyio.fail_after(WAIT_S):
        await made.session.abort("user_initiated")
    assert prompt.run.aborted


async def test_abort_while_streaming_drops_the_partial_answer() -> None:
    script = [{"deltas": ["one"] * 500, "delay_ms": 20}, {"text": "back"}]
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=script, settings=replace(STREAMING))
        await _abort_at(made, events.MessageDelta)
        assert [kind for kind in made.client.types() if "delta" not in kind][-5:] == [
            "abort",
            "pending_messages.modified",
            "assistant.turn_end",
            "assistant.idle",
            "session.idle",
        ]
        assert made.client.payloads(events.SessionIdle)[0].aborted is True
        assert made.client.payloads(events.AssistantMessage) == []


async def test_abort_while_a_tool_runs_ends_the_call_with_one_result() -> None:
    model = Recorder([Completed(_calls_add(), stop_reason="tool_use")], [completed("recovered")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, tools=[ADD])
        await _abort_at(made, events.ExternalToolRequested)
        (completion,) = made.client.payloads(events.ToolExecutionComplete)
        assert (completion.tool_call_id, completion.success) == ("c1", False)
        await made.ask("and now?")
        results = [message for message in model.requests[1].messages if isinstance(message, ToolMessage)]
        assert [result.text for message in results for result in message.results] == [INTERRUPTED]
        (request,) = made.client.payloads(events.ExternalToolRequested)
        assert not made.answer_tool(request, "late")


async def test_abort_drops_waiting_prompts() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[CALL_ADD], tools=[ADD])
        running = made.send("one")
        await made.client.wait_for(events.ExternalToolRequested)
        waiting = made.send("two")
        await made.session.abort("user_initiated")
        assert running.run.aborted
        assert waiting.run.aborted
        assert len(made.client.payloads(events.UserMessage)) == 1


async def test_an_abort_right_after_send_is_not_lost() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"hang": True}])
        prompt = made.send("go")
        with anyio.fail_after(WAIT_S):
            await made.session.abort("user_initiated")
        assert prompt.run.aborted
        assert made.client.types()[-1] == "session.idle"


async def test_abort_of_an_idle_session_does_nothing() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[])
        await made.session.abort("user_initiated")
        await made.session.abort("user_initiated")
        assert made.client.events == []


async def test_a_change_is_reported_once_per_run() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"text": "a"}, {"text": "b"}])
        await made.ask("1")
        await made.ask("2")
        assert made.changes == ["session-1", "session-1"]


async def test_streaming_waits_for_a_slow_client() -> None:
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=[{"deltas": ["x"] * 200}], settings=replace(STREAMING))
        held = anyio.Event()
        reached = anyio.Event()

        async def hold() -> None:
            reached.set()
            await held.wait()

        made.client.drain = hold
        prompt = made.send("go")
        with anyio.fail_after(WAIT_S):
            await reached.wait()
        assert 0 < len(made.client.payloads(events.MessageDelta)) < 200
        assert not prompt.run.done.is_set()
        held.set()
        with anyio.fail_after(WAIT_S):
            await prompt.run.done.wait()
        assert len(made.client.payloads(events.MessageDelta)) == 200


async def test_the_user_is_warned_once_of_missing_capabilities_and_the_request_is_sent_anyway() -> None:
    model = Recorder(*([completed("one")] for _ in range(3)))
    known = ModelInfo("m", vision=False, tools=False, reasoning=False, context_window=50_000, max_output_tokens=3)
    settings = STREAMING.with_options(reasoning_effort="high")
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model, settings=settings, tools=[ADD], known=known)
        await made.ask("?")
        await made.ask("?")
        settings.set_options(reasoning_effort=None)
        await made.ask("?")
        warned = [
            (warning.warning_type, warning.message) for warning in made.client.payloads(events.SessionWarning)
        ]
        windows = [usage.token_limit for usage in made.client.payloads(events.SessionUsageInfo)]
        no_tools = "m is not known to support tool calls"
        assert warned == [
            (
                "capability",
                f"{no_tools} or reasoning (effort 'high'). The request was sent anyway.",
            ),
            ("capability", f"{no_tools}. The request was sent anyway."),
        ]
        assert windows == [50_000] * 3
    assert [request.reasoning_effort for request in model.requests] == ["high", "high", None]
    # Known capabilities do not change the request.
    assert all(request.tools and request.vision and request.max_output_tokens is None for request in model.requests)


def test_tool_calls_as_xml_are_reported_as_such() -> None:
    plain = ModelInfo("m", tools=False, reasoning=False)
    request = ModelRequest("m", "", [UserMessage([TextBlock("?")])], tools=[ToolSpec("add", "", ToolSchema.of({}))])
    as_xml = "m is not known to support tool calls, and was asked to write them as XML."

    assert check_capability(request, plain, Capabilities(), xml_tools=True) == as_xml
    both = check_capability(replace(request, reasoning_effort="low"), plain, Capabilities(), xml_tools=True)
    assert both == f"{as_xml} m is not known to support reasoning (effort 'low'). The request was sent anyway."


def test_a_request_for_one_call_at_a_time_and_tools_that_are_not_sent_cause_a_warning() -> None:
    tools, alone = [ToolSpec("add", "", ToolSchema.of({}))], ToolChoice(parallel=False)
    request = ModelRequest("m", "", [UserMessage([TextBlock("?")])], tools=tools, tool_choice=alone)
    known, plain, limited = ModelInfo("m"), Capabilities(), Capabilities(limits_calls=False)
    warning = "m may call several tools at once, because its provider has no setting for parallel: false."

    assert check_capability(request, known, limited) == warning
    assert check_capability(request, known, limited, xml_tools=True) == ""
    assert check_capability(replace(request, tool_choice=ToolChoice(parallel=True)), known, limited) == ""
    assert check_capability(request, known, plain) == ""
    assert check_capability(request, known, Capabilities(drops_tools="Not sent.")) == "Not sent."
    assert check_capability(replace(request, tools=[]), known, Capabilities(drops_tools="Not sent.")) == ""


def test_images_for_a_model_without_vision_cause_a_warning() -> None:
    blind, sees, can = ModelInfo("m", vision=False), ModelInfo("m", vision=True), Capabilities()
    picture = ImageBlock("AAAA", "image/png")
    for message in (UserMessage([picture]), ToolMessage([ToolResultBlock("c", "t", "", images=[picture])])):
        request = ModelRequest("m", "", [message])
        assert (
            check_capability(request, blind, can)
            == "m is not known to support images. The request was sent anyway."
        )
        assert check_capability(request, sees, can) == ""
        assert check_capability(request, ModelInfo("m"), can) == ""
        # With vision switched off, another warning reports the omitted images.
        assert check_capability(replace(request, vision=False), blind, can) == ""
    assert check_capability(ModelRequest("m", "", [UserMessage([TextBlock("?")])]), blind, can) == ""


async def test_a_model_with_unknown_capabilities_causes_no_warning() -> None:
    async with anyio.create_task_group() as tasks:
        settings = SessionSettings.of(Path("/project"), streaming=True, reasoning_effort="high")
        made = make_session(tasks, script=Recorder([completed("one")]), settings=settings)
        await made.ask("?")
        assert made.client.payloads(events.SessionWarning) == []


async def test_the_user_is_warned_once_per_provider_of_content_it_cannot_be_sent() -> None:
    signed = Completed(
        AssistantMessage([ReasoningBlock("Hm.", "elsewhere", {"signature": "MQ=="}), TextBlock("So.")]), "end_turn"
    )
    model = Recorder([signed], [completed("one")], [completed("two")], [completed("three")], [completed("four")])
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=model)
        for _ in range(3):
            await made.ask("?")
        assert len(made.client.payloads(events.SessionWarning)) == 1
        # Another provider with the same limits.
        model.signs_as = "third"
        for _ in range(2):
            await made.ask("?")
        warnings = made.client.payloads(events.SessionWarning)
        assert [warning.warning_type for warning in warnings] == ["portability", "portability"]
        assert all(warning.message.endswith("Left out: 1 reasoning block.") for warning in warnings)
