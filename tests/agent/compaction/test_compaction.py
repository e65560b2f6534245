"""What of a long conversation is summed up, and what stands for it afterwards."""

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
    MOST_PROMPT_CHARACTERS,
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
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio

ID = "00000000-0000-4000-8000-000000000000"


def says(text: str) -> UserMessage:
    return UserMessage([TextBlock(text)])


def called(number: int, output: str) -> list[Message]:
    """A call of a tool and its result."""
    name = f"c{number}"
    return [
        AssistantMessage([ToolUseBlock(name, "view", "{}", {})]),
        ToolMessage([ToolResultBlock(name, "view", output)]),
    ]


def estimate(messages: list[Message]) -> int:
    return sum(tokens.of_message(one) for one in messages)


LONG: list[Message] = [says("first"), *called(1, "a" * 9000), *called(2, "b" * 9000), says("last")]


def test_what_fits_is_given_as_it_is() -> None:
    assert fit_messages(LONG, estimate(LONG)) == LONG


def test_the_oldest_outputs_are_cut_first() -> None:
    short = fit_messages(LONG, estimate(LONG) - 1)
    first, second = [one for one in short if isinstance(one, ToolMessage)]
    text = first.results[0].text
    assert len(text) < MAX_TEXT_CHARS + 50
    assert text.startswith("aaa")
    assert text.endswith("aaa")
    assert f"[{9000 - MAX_TEXT_CHARS} characters omitted]" in text
    assert second.results[0].text == "b" * 9000
    # The conversation itself is as it was.
    assert estimate(LONG) > estimate(short)


def test_pictures_that_tools_gave_go_with_long_outputs() -> None:
    seen = ToolMessage([ToolResultBlock("c1", "view", "a picture", images=[ImageBlock("AAAA", "image/png")])])
    messages: list[Message] = [says("?"), AssistantMessage([ToolUseBlock("c1", "view", "{}", {})]), seen, says("!")]
    kept = fit_messages(messages, 100)
    assert estimate(kept) <= 100
    (results,) = [one.results for one in kept if isinstance(one, ToolMessage)]
    assert results == [ToolResultBlock("c1", "view", "a picture")]


# Whatever a conversation ends with.
ENDS: dict[str, list[Message]] = {
    "a prompt": LONG,
    "a result": [*LONG, *called(3, "c" * 9000)],
    "an answer": [*LONG, AssistantMessage([TextBlock("done")])],
    "nothing but one exchange": [says("first"), *called(1, "a" * 9000)],
}


@pytest.mark.parametrize("room", [2000, 700, 100, 10, 0, -50])
@pytest.mark.parametrize("name", ENDS)
def test_what_does_not_fit_goes_from_the_oldest_on_and_what_is_left_can_be_sent(name: str, room: int) -> None:
    whole = ENDS[name]
    kept = fit_messages(whole, room)
    last = len(whole) - (2 if isinstance(whole[-1], ToolMessage) else 1)
    assert [type(one) for one in kept[-(len(whole) - last) :]] == [type(one) for one in whole[last:]]
    assert isinstance(kept[0], UserMessage)
    for place, one in enumerate(kept):
        if isinstance(one, ToolMessage):
            assert isinstance(kept[place - 1], AssistantMessage)
    assert estimate(kept) <= max(room, estimate(fit_messages(whole[last:], 0))) + 30


def test_the_summary_of_what_was_before_is_never_left_out() -> None:
    earlier = says(summary_text(["one"], "What was before. " * 300))
    kept = fit_messages([earlier, *LONG], estimate([earlier]) + 10)
    assert kept[0] == earlier
    assert kept[-1] == LONG[-1]


def test_a_summary_that_does_not_fit_by_itself_loses_its_middle() -> None:
    earlier = says(summary_text(["one"], "What was before. " * 3000))
    kept = fit_messages([earlier, *LONG], 3000)
    assert estimate(kept) <= 3000 + 500
    text = str(kept[0])
    assert "<user_message>\\none" in text
    assert "</summary>" in text


def test_long_prompts_and_arguments_are_cut_before_anything_is_left_out() -> None:
    arguments: JsonObject = {"path": "a.txt", "file_text": "x" * 9000, "lines": [1]}
    call = ToolUseBlock("c1", "create", canonical_json(arguments), arguments)
    messages: list[Message] = [
        UserMessage([TextBlock("p" * 9000), ImageBlock("AAAA", "image/png")]),
        AssistantMessage([TextBlock("I will."), call]),
        ToolMessage([ToolResultBlock("c1", "create", "made")]),
        says("go on"),
    ]
    kept = fit_messages(messages, 1200)
    assert len(kept) == 4
    (written,) = [one.tool_uses()[0] for one in kept if isinstance(one, AssistantMessage)]
    assert written.arguments is not None
    assert written.arguments["path"] == "a.txt"
    assert len(written.arguments["file_text"]) < MAX_TEXT_CHARS + 50
    assert written.arguments_json.startswith('{"path":"a.txt","file_text":"xxx')
    assert len(arguments["file_text"]) == 9000
    assert estimate(kept) <= 1200


def test_long_prompts_lose_their_middle_and_many_the_ones_between() -> None:
    text = summary_text(["x" * 20_000, *(f"{number} " + "y" * 7_000 for number in range(20)), "the last"], "sum")
    assert len(text) < MOST_PROMPT_CHARACTERS + 1000
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


def sum_up(conversation: Conversation, limit: int | None = None) -> list[Message]:
    conversation.apply(events.SessionCompactionStart())
    done = events.SessionCompactionComplete(success=True, summary_content="sum", token_limit=limit)
    conversation.apply(done)
    return conversation.messages()


def test_of_a_small_window_the_prompts_take_a_small_share() -> None:
    many = prompts(*(f"{number} " + "y" * 7_000 for number in range(20)), "the last")
    kept = sum_up(many, limit=8192)
    assert estimate(kept) < 8192 * 0.2
    assert "the last" in str(kept[-1])


def test_pictures_of_prompts_that_were_never_answered_do_not_pile_up() -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    picture = {"type": "blob", "data": "AAAA", "mimeType": "image/png"}
    for _ in range(5):
        conversation.apply(events.UserMessage(content="look", message_id=ID, attachments=[picture] * 20))
    conversation.apply(events.UserMessage(content="never mind", message_id=ID))
    kept = sum_up(conversation, limit=32_000)
    assert kept == [says(summary_text(["one", *["look"] * 5, "never mind"], "sum"))]


def test_a_summary_is_not_taken_for_a_prompt_without_an_answer() -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    sum_up(conversation)
    conversation.apply(events.UserMessage(content="from a hook", message_id=ID, source="hook"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    first, *rest = sum_up(conversation)
    assert str(first).count("<summary>") == 1
    assert str(first).count("<user_message>") == 1
    assert rest == [says("from a hook"), says("two")]
    assert not conversation.has_answers


def test_many_short_prompts_and_wide_letters_count_as_what_they_take() -> None:
    for one in ("go on", "继续工作" * 150):
        kept = sum_up(prompts(*[one] * 1000), limit=8192)
        assert estimate(kept) < 8192 * 0.2


def test_prompts_that_were_never_answered_do_not_pile_up() -> None:
    kept = sum_up(prompts(*(f"{number} " + "y" * 7_000 for number in range(20))), limit=8192)
    assert len(kept) == 2
    assert kept[-1] == says("19 " + "y" * 7_000)
    assert estimate(kept) < 8192 * 0.5


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
def test_what_has_no_answer_yet_stays_as_it_is(newest: events.UserMessage) -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    conversation.apply(newest)
    before = conversation.messages()
    assert sum_up(conversation) == [says(summary_text(["one"], "sum")), *before[-2:]]
    # Once it is answered, it is of the past like all else.
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    said = [one for one in ("one", "two", newest.content) if one != "from a hook"]
    assert sum_up(conversation) == [says(summary_text(said, "sum"))]


def test_a_plain_prompt_without_an_answer_is_part_of_what_is_summed_up() -> None:
    conversation = prompts("one")
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    wrapped = wrap_prompt("two", [], "now", Path("/"), look=False)
    conversation.apply(events.UserMessage(content="two", message_id=ID, transformed_content=wrapped))
    assert sum_up(conversation) == [says(summary_text(["one", "two"], "sum"))]


def test_a_summary_without_any_prompt_is_one_all_the_same() -> None:
    assert "<user_message>" not in summary_text([], "sum")


def test_context_that_hooks_add_is_not_taken_for_what_the_user_said() -> None:
    conversation = prompts()
    conversation.apply(events.UserMessage(content="from a hook", message_id=ID, source="hook"))
    conversation.apply(events.UserMessage(content="one", message_id=ID))
    conversation.apply(events.AssistantMessage(message_id=ID, content="answer"))
    assert sum_up(conversation) == [says(summary_text(["one"], "sum"))]
    assert conversation.compactions == 1


def test_a_log_without_the_beginning_of_a_compaction_is_summed_up_to_its_end() -> None:
    conversation = prompts("one")
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum", checkpoint_number=4))
    assert conversation.messages() == [says(summary_text(["one"], "sum"))]
    assert conversation.checkpoint == 4


def test_a_compaction_that_failed_leaves_nothing_behind() -> None:
    conversation = prompts("one")
    conversation.apply(events.SessionCompactionStart())
    conversation.apply(events.SessionCompactionComplete(success=False, error="no"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum"))
    assert conversation.messages() == [says(summary_text(["one", "two"], "sum"))]


def test_a_session_says_of_the_thresholds_what_it_will() -> None:
    policy = CompactionPolicy(enabled=False, exhaustion=0.9)
    assert policy.overridden_by(None) == policy.overridden_by(InfiniteSessionConfig()) == policy
    half = InfiniteSessionConfig(background_compaction_threshold=0.5)
    assert policy.overridden_by(half) == CompactionPolicy(enabled=False, background=0.5, exhaustion=0.9)
    assert policy.overridden_by(InfiniteSessionConfig(enabled=True)).enabled


async def test_what_a_provider_counts_corrects_what_is_estimated(tasks: TaskGroup) -> None:
    compactor = Compactor(tasks)
    assert compactor.calibrated(1000) == 1000
    compactor.calibrate(1000, 1500)
    assert compactor.calibrated(2000) == 3000
    # Who does not count changes nothing, and nobody is believed everything.
    compactor.calibrate(1000, 0)
    assert compactor.calibrated(2000) == 3000
    compactor.calibrate(10, 1_000_000)
    assert compactor.calibrated(100) == 400


async def test_one_that_is_begun_while_another_ends_is_not_taken_for_it(tasks: TaskGroup) -> None:
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
    await compactor.finished()
    assert cancelled == ["threshold", "manual"]


class Held:
    """A model that answers when it is let."""

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


async def test_a_cancellation_counts_also_where_the_answer_has_just_come(tasks: TaskGroup) -> None:
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
    assert [one.error for one in ended] == [events.COMPACTION_CANCELLED]
    assert made.client.payloads(events.SessionCompactionComplete) == ended
    assert conversation.compactions == 0


async def test_how_much_it_has_to_grow_is_a_matter_of_the_model_that_is_called(tasks: TaskGroup) -> None:
    summary = {"when": "^Please create a detailed summary", "turns": [{"text": "<overview>All.</overview>"}]}
    script = Script.model_validate({"prompts": [summary, {"turns": [{"text": "ok"}]}]})
    small = ModelInfo("m", context_window=32_000)
    made = make_session(tasks, script=ScriptedModel(script), known=small)
    await made.ask("one")
    # As after a compaction while a model with a large window was called.
    made.session.compactor.last_size = 20_000
    await made.ask("word " * 27_000)
    await made.ask("two")
    assert len(made.client.payloads(events.SessionCompactionStart)) == 1
