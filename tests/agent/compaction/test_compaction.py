"""Compaction: the messages that are summarized, and the conversation afterwards."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.adapters.scripted import Script, ScriptedModel
from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.compaction.compaction import compact
from jumpseat.agent.compaction.summary import MAX_TEXT_CHARS, fit_messages
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.conversation import (
    MAX_PROMPT_CHARACTERS,
    Conversation,
    canonical_json,
    last_prompt,
    summary_text,
)
from jumpseat.agent.conversation.prompt import wrap_prompt
from jumpseat.agent.model import Capabilities, Completed, ModelEvent, ModelInfo, ModelRequest
from jumpseat.agent.session.compactor import CompactionPolicy, Compactor
from jumpseat_protocol import events
from jumpseat_protocol.sessions import InfiniteSessionConfig
from tests.support.pictures import PNG_BASE64
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio

ID = "00000000-0000-4000-8000-000000000000"


def user(text: str) -> UserMessage:
    return UserMessage([TextBlock(text)])


def tool_call(number: int, output: str) -> list[Message]:
    """Return a tool call and its result."""
    name = f"c{number}"
    return [
        AssistantMessage([ToolUseBlock(name, "view", "{}", {})]),
        ToolMessage([ToolResultBlock(name, "view", output)]),
    ]


def estimate(messages: list[Message]) -> int:
    return sum(tokens.of_message(message) for message in messages)


LONG: list[Message] = [user("first"), *tool_call(1, "a" * 9000), *tool_call(2, "b" * 9000), user("last")]


def test_messages_that_fit_are_unchanged() -> None:
    assert fit_messages(LONG, estimate(LONG)) == LONG


def test_the_oldest_outputs_are_shortened_first() -> None:
    short = fit_messages(LONG, estimate(LONG) - 1)
    first, second = [message for message in short if isinstance(message, ToolMessage)]
    text = first.results[0].text
    assert len(text) < MAX_TEXT_CHARS + 50
    assert text.startswith("aaa")
    assert text.endswith("aaa")
    assert f"[{9000 - MAX_TEXT_CHARS} characters omitted]" in text
    assert second.results[0].text == "b" * 9000
    # The conversation itself is unchanged.
    assert estimate(LONG) > estimate(short)


def test_images_of_tool_results_are_removed() -> None:
    seen = ToolMessage([ToolResultBlock("c1", "view", "a picture", images=[ImageBlock("AAAA", "image/png")])])
    messages: list[Message] = [user("?"), AssistantMessage([ToolUseBlock("c1", "view", "{}", {})]), seen, user("!")]
    remaining = fit_messages(messages, 100)
    assert estimate(remaining) <= 100
    (results,) = [message.results for message in remaining if isinstance(message, ToolMessage)]
    assert results == [ToolResultBlock("c1", "view", "a picture")]


# Conversations by their last message.
ENDS: dict[str, list[Message]] = {
    "a prompt": LONG,
    "a result": [*LONG, *tool_call(3, "c" * 9000)],
    "an answer": [*LONG, AssistantMessage([TextBlock("done")])],
    "nothing but one exchange": [user("first"), *tool_call(1, "a" * 9000)],
}


@pytest.mark.parametrize("room", [2000, 700, 100, 10, 0, -50])
@pytest.mark.parametrize("name", ENDS)
def test_the_oldest_exchanges_are_removed_and_the_rest_is_a_valid_request(name: str, room: int) -> None:
    whole = ENDS[name]
    remaining = fit_messages(whole, room)
    last = len(whole) - (2 if isinstance(whole[-1], ToolMessage) else 1)
    assert [type(message) for message in remaining[-(len(whole) - last) :]] == [
        type(message) for message in whole[last:]
    ]
    assert isinstance(remaining[0], UserMessage)
    for place, message in enumerate(remaining):
        if isinstance(message, ToolMessage):
            assert isinstance(remaining[place - 1], AssistantMessage)
    assert estimate(remaining) <= max(room, estimate(fit_messages(whole[last:], 0))) + 30


def test_an_earlier_summary_is_never_removed() -> None:
    earlier = user(summary_text(["one"], "What was before. " * 300))
    remaining = fit_messages([earlier, *LONG], estimate([earlier]) + 10)
    assert remaining[0] == earlier
    assert remaining[-1] == LONG[-1]


def test_a_summary_that_does_not_fit_by_itself_loses_its_middle() -> None:
    earlier = user(summary_text(["one"], "What was before. " * 3000))
    remaining = fit_messages([earlier, *LONG], 3000)
    assert estimate(remaining) <= 3000 + 500
    text = str(remaining[0])
    assert "<user_message>\\none" in text
    assert "</summary>" in text


def test_long_prompts_and_arguments_are_shortened_before_messages_are_removed() -> None:
    arguments: JsonObject = {"path": "a.txt", "file_text": "x" * 9000, "lines": [1]}
    call = ToolUseBlock("c1", "create", canonical_json(arguments), arguments)
    messages: list[Message] = [
        UserMessage([TextBlock("p" * 9000), ImageBlock("AAAA", "image/png")]),
        AssistantMessage([TextBlock("I will."), call]),
        ToolMessage([ToolResultBlock("c1", "create", "made")]),
        user("go on"),
    ]
    remaining = fit_messages(messages, 1200)
    assert len(remaining) == 4
    (written,) = [message.tool_uses()[0] for message in remaining if isinstance(message, AssistantMessage)]
    assert written.arguments is not None
    assert written.arguments["path"] == "a.txt"
    assert len(written.arguments["file_text"]) < MAX_TEXT_CHARS + 50
    assert written.arguments_json.startswith('{"path":"a.txt","file_text":"xxx')
    assert len(arguments["file_text"]) == 9000
    assert estimate(remaining) <= 1200


def test_long_prompts_lose_their_middle_and_many_prompts_those_between() -> None:
    text = summary_text(["x" * 20_000, *(f"{number} " + "y" * 7_000 for number in range(20)), "the last"], "sum")
    assert len(text) < MAX_PROMPT_CHARACTERS + 1000
    assert "[12001 characters omitted]" in text
    assert "[16 earlier messages omitted]" in text
    assert "19 yyy" in text
    assert last_prompt(text) == "the last"
    assert last_prompt("anything else") == "anything else"


def prompts(*contents: str) -> Conversation:
    conversation = Conversation()
    for content in contents:
        conversation.apply(events.UserMessage(content=content, message_id=ID))
    return conversation


def compact_conversation(conversation: Conversation, limit: int | None = None) -> list[Message]:
    conversation.apply(events.SessionCompactionStart())
    compaction = events.SessionCompactionComplete(success=True, summary_content="sum", token_limit=limit)
    conversation.apply(compaction)
    return conversation.messages()


def test_prompts_take_a_small_share_of_a_small_window() -> None:
    many = prompts(*(f"{number} " + "y" * 7_000 for number in range(20)), "the last")
    remaining = compact_conversation(many, limit=8192)
    assert estimate(remaining) < 8192 * 0.2
    assert "the last" in str(remaining[-1])


def test_images_of_unanswered_prompts_do_not_accumulate() -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    picture = {"type": "blob", "data": PNG_BASE64, "mimeType": "image/png"}
    for _ in range(5):
        conversation.apply(events.UserMessage(content="look", message_id=ID, attachments=[picture] * 20))
    conversation.apply(events.UserMessage(content="never mind", message_id=ID))
    remaining = compact_conversation(conversation, limit=32_000)
    assert remaining == [user(summary_text(["one", *["look"] * 5, "never mind"], "sum"))]


def test_a_summary_is_not_mistaken_for_an_unanswered_prompt() -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    compact_conversation(conversation)
    conversation.apply(events.UserMessage(content="from a hook", message_id=ID, source="hook"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    first, *rest = compact_conversation(conversation)
    assert str(first).count("<summary>") == 1
    assert str(first).count("<user_message>") == 1
    assert rest == [user("from a hook"), user("two")]
    assert not conversation.has_answers


def test_many_short_prompts_and_wide_characters_are_counted_in_tokens() -> None:
    for text in ("go on", "继续工作" * 150):
        remaining = compact_conversation(prompts(*[text] * 1000), limit=8192)
        assert estimate(remaining) < 8192 * 0.2


def test_unanswered_prompts_do_not_accumulate() -> None:
    remaining = compact_conversation(prompts(*(f"{number} " + "y" * 7_000 for number in range(20))), limit=8192)
    assert len(remaining) == 2
    assert remaining[-1] == user("19 " + "y" * 7_000)
    assert estimate(remaining) < 8192 * 0.5


@pytest.mark.parametrize(
    "newest",
    [
        events.UserMessage(content="look", message_id=ID, attachments=[{"type": "file", "path": "a.txt"}]),
        events.UserMessage(content="look", message_id=ID, transformed_content="something else"),
        events.UserMessage(content="look", message_id=ID, transformed_content="look\n\nRULE: be kind"),
        events.UserMessage(content="x" * 25_000, message_id=ID),
        events.UserMessage(content="from a hook", message_id=ID, source="hook"),
    ],
    ids=["attachments", "rewritten", "extended", "long", "context"],
)
def test_unanswered_messages_stay_unchanged(newest: events.UserMessage) -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    conversation.apply(newest)
    before = conversation.messages()
    assert compact_conversation(conversation) == [user(summary_text(["one"], "sum")), *before[-2:]]
    # Once it is answered, it is summarized with the rest.
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    texts = [text for text in ("one", "two", newest.content) if text != "from a hook"]
    assert compact_conversation(conversation) == [user(summary_text(texts, "sum"))]


def test_a_plain_unanswered_prompt_is_summarized() -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    wrapped = wrap_prompt("two", [], "now", Path("/"), look=False)
    conversation.apply(events.UserMessage(content="two", message_id=ID, transformed_content=wrapped))
    assert compact_conversation(conversation) == [user(summary_text(["one", "two"], "sum"))]


def test_a_summary_needs_no_prompts() -> None:
    assert "<user_message>" not in summary_text([], "sum")


def test_context_from_hooks_is_not_mistaken_for_a_prompt() -> None:
    conversation = prompts()
    conversation.apply(events.UserMessage(content="from a hook", message_id=ID, source="hook"))
    conversation.apply(events.UserMessage(content="one", message_id=ID))
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    assert compact_conversation(conversation) == [user(summary_text(["one"], "sum"))]
    assert conversation.compactions == 1


def test_a_compaction_without_a_start_event_covers_everything_before_it() -> None:
    conversation = prompts("one")
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum", checkpoint_number=4))
    assert conversation.messages() == [user(summary_text(["one"], "sum"))]
    assert conversation.checkpoint == 4


def test_a_failed_compaction_leaves_nothing_behind() -> None:
    conversation = prompts("one")
    conversation.apply(events.SessionCompactionStart())
    conversation.apply(events.SessionCompactionComplete(success=False, error="no"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum"))
    assert conversation.messages() == [user(summary_text(["one", "two"], "sum"))]


def test_a_session_overrides_the_thresholds_it_configures() -> None:
    policy = CompactionPolicy(enabled=False, exhaustion=0.9)
    assert policy.overridden_by(None) == policy.overridden_by(InfiniteSessionConfig()) == policy
    half = InfiniteSessionConfig(background_compaction_threshold=0.5)
    assert policy.overridden_by(half) == CompactionPolicy(enabled=False, background=0.5, exhaustion=0.9)
    assert policy.overridden_by(InfiniteSessionConfig(enabled=True)).enabled


async def test_the_token_count_of_a_provider_calibrates_estimates(tasks: TaskGroup) -> None:
    compactor = Compactor(tasks)
    assert compactor.apply_calibration(1000) == 1000
    compactor.calibrate(1000, 1500)
    assert compactor.apply_calibration(2000) == 3000
    # A count of zero is ignored, and extreme counts are limited.
    compactor.calibrate(1000, 0)
    assert compactor.apply_calibration(2000) == 3000
    compactor.calibrate(10, 1_000_000)
    assert compactor.apply_calibration(100) == 400


async def test_a_compaction_that_starts_while_another_ends_is_not_confused_with_it(tasks: TaskGroup) -> None:
    compactor, cancelled = Compactor(tasks), list[str]()
    ended = anyio.Event()

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ended.wait()

    compactor.start("threshold", slow, lambda: cancelled.append("threshold"))
    await anyio.wait_all_tasks_blocked()
    assert compactor.cancel()
    assert not compactor.cancel()
    compactor.start("manual", anyio.sleep_forever, lambda: cancelled.append("manual"))
    ended.set()
    await anyio.wait_all_tasks_blocked()
    assert (compactor.trigger, cancelled) == ("manual", ["threshold"])
    assert compactor.cancel()
    await compactor.wait_until_finished()
    assert cancelled == ["threshold", "manual"]


class Held:
    """A model that answers when the test releases it."""

    signs_as = adapter_name = "held"

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.go = anyio.Event()

    def capabilities(self, model: str) -> Capabilities:
        return Capabilities()

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        async def play() -> AsyncIterator[ModelEvent]:
            self.asked.set()
            await self.go.wait()
            yield Completed(AssistantMessage([TextBlock("<overview>All.</overview>")]), stop_reason="end_turn")

        yield play()


async def test_a_cancellation_counts_even_if_the_answer_has_just_arrived(tasks: TaskGroup) -> None:
    model = Held()
    made = make_session(tasks, script=model)
    conversation = made.session.conversation
    for payload in (
        events.UserMessage(content="one", message_id=ID),
        events.AssistantMessage(message_id=ID, content="answer"),
    ):
        conversation.apply(payload)
    ended: list[events.SessionCompactionComplete] = []

    async def ask() -> None:
        ended.append(await compact(made.session))

    tasks.start_soon(ask)
    await model.asked.wait()
    model.go.set()
    await made.session.abort("user_initiated")
    await anyio.wait_all_tasks_blocked()
    assert [completion.error for completion in ended] == [events.COMPACTION_CANCELLED]
    assert made.client.payloads(events.SessionCompactionComplete) == ended
    assert conversation.compactions == 0


async def test_the_required_growth_depends_on_the_current_model(tasks: TaskGroup) -> None:
    summary = {"when": "^Please create a detailed summary", "turns": [{"text": "<overview>All.</overview>"}]}
    script = Script.model_validate({"prompts": [summary, {"turns": [{"text": "ok"}]}]})
    small = ModelInfo("m", context_window=32_000)
    made = make_session(tasks, script=ScriptedModel(script), known=small)
    await made.ask("one")
    # As after a compaction for a model with a larger context window.
    made.session.compactor.last_size = 20_000
    await made.ask("word " * 27_000)
    await made.ask("two")
    assert len(made.client.payloads(events.SessionCompactionStart)) == 1
