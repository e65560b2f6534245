"""Empty answers are asked about once, and answers that end a run without its result are told to the user."""

from __future__ import annotations

import anyio
import pytest

from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, ReasoningBlock, TextBlock
from jumpseat.agent.model import Completed, StopReason, Usage
from jumpseat.agent.turns.silence import QUESTION
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientTool
from tests.agent.turns.test_loop import QUICK, STREAMING, Recorder
from tests.support.sessions import MODEL, make_session

pytestmark = pytest.mark.anyio

THOUGHT = ReasoningBlock("hm")


def ended(stop: StopReason, *blocks: AssistantBlock, usage: Usage | None = None) -> list[Completed]:
    return [Completed(AssistantMessage([*blocks]), stop, usage)]


async def warnings_of(*answers: list[Completed]) -> list[str]:
    """Return the warnings of a prompt; the last answer is given again and again."""
    found: list[str] = []
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=Recorder(*answers, answers[-1]), settings=STREAMING, retry=QUICK)
        await made.ask("?")
        assert made.client.payloads(events.SessionError) == []
        found += [warning.message for warning in made.client.payloads(events.SessionWarning)]
    return found


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        (ended("end_turn"), "The model's answer is empty."),
        (ended("end_turn", TextBlock(" \n")), "The model's answer is empty."),
        (ended("end_turn", THOUGHT), "The model's answer is empty: it consists of reasoning alone."),
        (
            ended("max_tokens", THOUGHT, usage=Usage(9, 1024)),
            "The model was still thinking at its limit of 1,024 output tokens:"
            " raise max_output_tokens, or lower the reasoning effort.",
        ),
        (ended("max_tokens", TextBlock("so")), "The model's answer is cut off at its limit of output tokens."),
        (
            ended("tool_use"),
            "The provider announced a tool call and sent none: a gateway in between may have dropped it.",
        ),
        (
            ended("tool_use", TextBlock("so")),
            "The provider announced a tool call and sent none: a gateway in between may have dropped it.",
        ),
        (ended("refusal"), "The model declined to answer."),
    ],
)
async def test_an_answer_without_a_result_is_told(answer: list[Completed], warning: str) -> None:
    assert await warnings_of(answer) == [warning]


@pytest.mark.parametrize("empty", [ended("end_turn"), ended("end_turn", THOUGHT), ended("tool_use")])
async def test_a_model_is_asked_once_more_after_an_empty_answer(empty: list[Completed]) -> None:
    whole = ended("end_turn", TextBlock("yes"))
    recorder = Recorder(empty, whole, empty, empty)
    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=recorder, settings=STREAMING, retry=QUICK)
        await made.ask("?")
        assert [answer.content for answer in made.client.payloads(events.AssistantMessage)] == ["", "yes"]
        assert made.client.payloads(events.SessionWarning) == []
        # Once in each prompt.
        await made.ask("?")
        assert len(made.client.payloads(events.SessionWarning)) == 1
    asked = [str(request.messages[-1]).count(QUESTION) for request in recorder.requests]
    assert asked == [0, 1, 0, 1]


async def test_a_whole_answer_brings_no_warning() -> None:
    assert await warnings_of(ended("end_turn", THOUGHT, TextBlock("yes"), usage=Usage(9, 9))) == []


async def test_a_server_that_drops_the_tools_is_named_once() -> None:
    tools = [ClientTool(name=f"tool{number}", description="a long text " * 40) for number in range(20)]
    answer = ended("end_turn", TextBlock("I cannot."), usage=Usage(300, 9))

    async with anyio.create_task_group() as tasks:
        made = make_session(tasks, script=Recorder(answer, answer), tools=tools)
        await made.ask("?")
        await made.ask("?")
        (warning,) = made.client.payloads(events.SessionWarning)
        assert warning.message.startswith(f"{MODEL} seems not to receive the tools: its server counts 300 tokens")
