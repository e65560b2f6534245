"""What of a long conversation is summed up, and what stands for it afterwards."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.agent import tokens
from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.compaction import LONGEST_OUTPUT, fitting
from jumpseat.agent.compactor import Compactor
from jumpseat.agent.conversation import (
    LONGEST_PROMPT_CHARACTERS,
    MOST_PROMPT_CHARACTERS,
    Conversation,
    compacted,
    last_prompt,
)
from jumpseat_protocol import events

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


def weight(messages: list[Message]) -> int:
    return sum(tokens.of_message(one) for one in messages)


LONG: list[Message] = [says("first"), *called(1, "a" * 9000), *called(2, "b" * 9000), says("last")]


def test_what_fits_is_given_as_it_is() -> None:
    assert fitting(LONG, weight(LONG)) == LONG


def test_the_oldest_outputs_are_cut_first() -> None:
    short = fitting(LONG, weight(LONG) - 1)
    first, second = [one for one in short if isinstance(one, ToolMessage)]
    text = first.results[0].text
    assert len(text) < LONGEST_OUTPUT + 50
    assert text.startswith("aaa")
    assert text.endswith("aaa")
    assert f"[{9000 - LONGEST_OUTPUT} characters are left out here.]" in text
    assert second.results[0].text == "b" * 9000
    # The conversation itself is as it was.
    assert weight(LONG) > weight(short)


def test_pictures_that_tools_gave_go_with_long_outputs() -> None:
    seen = ToolMessage([ToolResultBlock("c1", "view", "a picture", images=[ImageBlock("AAAA", "image/png")])])
    messages: list[Message] = [says("?"), AssistantMessage([ToolUseBlock("c1", "view", "{}", {})]), seen, says("!")]
    kept = fitting(messages, 100)
    assert weight(kept) <= 100
    (results,) = [one.results for one in kept if isinstance(one, ToolMessage)]
    assert results == [ToolResultBlock("c1", "view", "a picture")]


@pytest.mark.parametrize("room", [2000, 700, 100, 10, 0, -50])
def test_what_does_not_fit_goes_from_the_oldest_on_and_what_is_left_can_be_sent(room: int) -> None:
    kept = fitting(LONG, room)
    assert kept[-1] == LONG[-1]
    assert isinstance(kept[0], UserMessage)
    for place, one in enumerate(kept):
        if isinstance(one, ToolMessage):
            assert isinstance(kept[place - 1], AssistantMessage)
    assert weight(kept) <= max(room, tokens.of_message(LONG[-1])) + 30


def test_long_prompts_lose_their_middle_and_many_the_ones_between() -> None:
    text = compacted(["x" * 20_000, *(f"{number} " + "y" * 7_000 for number in range(20)), "the last"], "sum")
    assert len(text) < MOST_PROMPT_CHARACTERS + LONGEST_PROMPT_CHARACTERS
    assert "[12000 characters are left out here.]" in text
    assert "[16 earlier messages are left out here.]" in text
    assert "19 yyy" in text
    assert last_prompt(text) == "the last"
    assert last_prompt("anything else") == "anything else"


def test_a_summary_without_any_prompt_is_one_all_the_same() -> None:
    assert "<user_message>" not in compacted([], "sum")


def test_context_that_hooks_add_is_not_taken_for_what_the_user_said() -> None:
    conversation = Conversation()
    for content, source in (("from a hook", "hook"), ("one", None)):
        conversation.apply(events.UserMessage(content=content, message_id=ID, source=source))
    conversation.apply(events.SessionCompactionStart())
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum", checkpoint_number=4))
    assert conversation.messages() == [says(compacted(["one"], "sum"))]
    assert (conversation.compactions, conversation.checkpoint) == (1, 4)


def test_a_log_without_the_beginning_of_a_compaction_is_summed_up_to_its_end() -> None:
    conversation = Conversation()
    conversation.apply(events.UserMessage(content="one", message_id=ID))
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum"))
    assert conversation.messages() == [says(compacted(["one"], "sum"))]


def test_a_compaction_that_failed_leaves_nothing_behind() -> None:
    conversation = Conversation()
    conversation.apply(events.UserMessage(content="one", message_id=ID))
    conversation.apply(events.SessionCompactionStart())
    conversation.apply(events.SessionCompactionComplete(success=False, error="no"))
    conversation.apply(events.UserMessage(content="two", message_id=ID))
    conversation.apply(events.SessionCompactionComplete(success=True, summary_content="sum"))
    assert conversation.messages() == [says(compacted(["one", "two"], "sum"))]


async def test_what_a_provider_counts_corrects_what_is_estimated(tasks: TaskGroup) -> None:
    compactor = Compactor(tasks)
    assert compactor.corrected(1000) == 1000
    compactor.learn(1000, 1500)
    assert compactor.corrected(2000) == 3000
    # Who does not count changes nothing, and nobody is believed everything.
    compactor.learn(1000, 0)
    assert compactor.corrected(2000) == 3000
    compactor.learn(10, 1_000_000)
    assert compactor.corrected(100) == 400


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
