"""Small context windows: they are learned from refusals and counts, and no result of a tool fills them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from anyio.abc import TaskGroup

from jumpseat.adapters.failures import failure_of_response
from jumpseat.agent.blocks import AssistantMessage, Message, ToolMessage, ToolResultBlock, ToolUseBlock
from jumpseat.agent.compaction.overflow import MOST_IN_VAIN, check_progress
from jumpseat.agent.conversation.result_size import fit_results
from jumpseat.agent.session.queue_items import Progress
from jumpseat.errors import ProviderContextError
from tests.agent.compaction.test_compaction_over_the_wire import SUMMARY, is_summary_body
from tests.support.events import data_of, tool_texts
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply
from tests.support.provided import at
from tests.support.server import JsonObject, RunningServer, running_server
from tests.support.sessions import make_session

pytestmark = pytest.mark.anyio

WINDOW = 8192
CONFIG = f"[permissions]\nallow_unasked = true\n[limits]\nserver_question_s = {WAIT_S}\n"


@dataclass
class SmallServer:
    """A model with a window of :data:`WINDOW` tokens, that reads ``big.txt`` for a prompt with "read".

    It refuses what is longer, or with ``silent``, cuts it off without a word. It answers "seen" to a result. With
    ``says``, it describes itself as llama.cpp does.
    """

    silent: bool = False
    says: bool = False
    names_limit: bool = True
    summary: str = SUMMARY
    refused: list[int] = field(default_factory=list[int])
    asked: list[str] = field(default_factory=list[str])
    server: ModelServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ModelServer(answer=self._answer, lists=True)

    def _answer(self, request: SeenRequest) -> Reply:
        if request.method == "GET":
            self.asked.append(request.path)
            listed = {"data": [{"id": "model.gguf", "owned_by": "llamacpp"}]}
            state = {"default_generation_settings": {"n_ctx": WINDOW}, "modalities": {"vision": False}}
            return json_reply((state if request.path == "/props" else listed) if self.says else {}, status=200)
        body: JsonObject = request.json
        size = len(request.body) // 4
        if size > WINDOW and not self.silent:
            self.refused.append(size)
            text = f"This model's maximum context length is {WINDOW} tokens, but the messages have {size} tokens."
            text = text if self.names_limit else "Please reduce the length of the messages."
            return json_reply({"error": {"message": text, "code": "context_length_exceeded"}}, status=400)
        last = body["messages"][-1]
        message: JsonObject = {"role": "assistant", "content": "seen" if last["role"] == "tool" else "well " * 300}
        if is_summary_body(body):
            message["content"] = self.summary
        elif last["role"] == "user" and "read" in str(last["content"]):
            call = {"name": "view", "arguments": json.dumps({"path": "big.txt"})}
            message = {
                "role": "assistant",
                "tool_calls": [{"id": f"c{size}", "type": "function", "function": call}],
            }
        finish = "tool_calls" if "tool_calls" in message else "stop"
        finish = "length" if is_summary_body(body) and self.summary != SUMMARY else finish
        usage = {"prompt_tokens": min(size, WINDOW), "completion_tokens": 9, "total_tokens": size}
        return json_reply({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})


@asynccontextmanager
async def session_with(folder: Path, small: SmallServer) -> AsyncGenerator[tuple[RunningServer, str]]:
    (folder / "big.txt").write_text("".join(f"line {number} of many\n" for number in range(2000)))
    async with small.server, running_server(folder, config=CONFIG) as server:
        yield server, await server.wire.create(at(small.server), model="m", availableTools=["view"])


@pytest.mark.parametrize("names_limit", [True, False])
async def test_a_window_is_learned_from_a_refusal_and_a_large_result_is_shortened(
    tmp_path: Path, names_limit: bool
) -> None:
    small = SmallServer(names_limit=names_limit)
    async with session_with(tmp_path, small) as (server, session):
        first = await server.wire.prompt(session, "read it")
        second = await server.wire.prompt(session, "read it again")

    for events in (first, second):
        assert data_of(events, "assistant.message")[-1]["content"] == "seen"
        assert data_of(events, "session.error") == data_of(events, "session.compaction_start") == []
    (warning,) = data_of([*first, *second], "session.warning")
    assert warning["warningType"] == "context_window"
    assert ("context_window = 8192" if names_limit else "did not name its limit") in warning["message"]
    assert len(small.refused) == 1
    # The window is known by now: the next result is limited before it is sent.
    (kept,) = tool_texts(second)
    assert len(kept) < WINDOW


async def test_a_local_server_is_asked_for_its_window_before_it_has_to_refuse(tmp_path: Path) -> None:
    small = SmallServer(says=True)
    async with session_with(tmp_path, small) as (server, session):
        await server.wire.prompt(session, "hi")
        assert small.asked == []
        events = [event for word in ("read", "go on") for event in await server.wire.prompt(session, word + " it")]

    assert data_of(events, "assistant.message")[-1]["content"] == "well " * 300
    assert data_of(events, "session.warning") == data_of(events, "session.error") == small.refused == []
    assert small.asked == ["/v1/models", "/props"]


async def test_a_silent_cut_is_noticed_by_the_tokens_that_no_longer_grow(tmp_path: Path) -> None:
    small = SmallServer(silent=True)
    async with session_with(tmp_path, small) as (server, session):
        events = [
            event for _ in range(40) for event in await server.wire.prompt(session, "tell me " + "more " * 200)
        ]

    (warning,) = [data for data in data_of(events, "session.warning") if data["warningType"] == "context_window"]
    assert "seems to cut off" in warning["message"]
    assert data_of(events, "session.compaction_complete")
    assert data_of(events, "session.error") == []


@pytest.mark.parametrize(
    ("summary", "kept", "words"),
    [
        ("", "were dropped", "could not be summarized"),
        ("<overview>\nIt began well. " + "And so on. " * 30, "It began well.", "was cut off"),
    ],
)
async def test_a_session_whose_summary_fails_continues(tmp_path: Path, summary: str, kept: str, words: str) -> None:
    small = SmallServer(summary=summary)
    async with session_with(tmp_path, small) as (server, session):
        events = [event for _ in range(30) for event in await server.wire.prompt(session, "tell " + "more " * 500)]

    assert data_of(events, "session.error") == []
    summaries = [data.get("summaryContent", "") for data in data_of(events, "session.compaction_complete")]
    assert any(kept in made for made in summaries)
    warnings = [data["message"] for data in data_of(events, "session.warning")]
    assert any(words in warning for warning in warnings)


async def test_instructions_that_do_not_fit_are_named_as_the_reason(tmp_path: Path) -> None:
    small = SmallServer()
    async with small.server, running_server(tmp_path) as server:
        rules = {"mode": "append", "content": "rule " * 8000}
        session = await server.wire.create(at(small.server), model="m", systemMessage=rules)
        (error,) = data_of(await server.wire.prompt(session, "hi"), "session.error")

    assert "The instructions and" in error["message"]
    assert "of the 8,192 tokens of model 'm'" in error["message"]


@pytest.mark.parametrize(
    ("status", "error", "limit"),
    [
        (400, {"code": 400, "message": "the request exceeds the context size", "n_ctx": 1536}, 1536),
        (400, {"message": "request (2162 tokens) exceeds the available context size (2048 tokens), try"}, 2048),
        (400, {"message": "This model's maximum context length is 4096 tokens. However, you asked for 5000"}, 4096),
        (400, {"message": "prompt is too long: 210000 tokens > 200000 maximum"}, 200_000),
        (400, {"message": "Trying to keep the first 9000 tokens when context length of only 4096 is loaded"}, 4096),
        (422, {"message": "`inputs` must have less than 4095 tokens. Given: 5000"}, 4095),
        (422, {"message": "Prompt length 9001 is greater than max_seq_len 4096"}, 4096),
        (
            400,
            {"message": "The input token count exceeds the maximum number of tokens allowed (1048576)."},
            1_048_576,
        ),
        (400, {"message": "Reduce the length of the messages"}, None),
    ],
)
def test_the_limit_in_a_refusal_is_read(status: int, error: JsonObject, limit: int | None) -> None:
    found = failure_of_response(status, {}, json.dumps({"error": error}).encode())
    assert isinstance(found, ProviderContextError)
    assert found.limit == limit


def test_the_results_of_one_answer_take_half_of_a_small_prompt_at_most() -> None:
    results = [ToolResultBlock(f"c{number}", "view", "x" * 9000) for number in range(4)]
    short = ToolMessage([ToolResultBlock("c9", "view", "short")])
    messages = fit_results([AssistantMessage([]), ToolMessage(results), short], 4000)

    fitted = messages[1]
    assert isinstance(fitted, ToolMessage)
    assert sum(len(result.text) for result in fitted.results) <= 4 * 4000 // 2 + 4 * len(
        "\n[9000 characters omitted]"
    )
    assert all("characters omitted" in result.text for result in fitted.results)
    assert messages[2] is short
    whole: list[Message] = [AssistantMessage([]), ToolMessage(results)]
    assert fit_results(whole, 200_000) is whole


async def test_a_run_ends_after_compactions_between_which_nothing_new_was_called(tasks: TaskGroup) -> None:
    session = make_session(tasks, script=[]).session
    resolved = await session.services.models.resolve(session.settings)
    call = ToolUseBlock("c1", "fetch", '{"page": 1}', {"page": 1})
    messages = [ToolMessage([ToolResultBlock("c1", "fetch", "x" * 8000)])]
    progress = Progress()
    for compactions in range(MOST_IN_VAIN + 1):
        check_progress(progress, compactions, messages, resolved)
        progress.note([call])
    progress.note([ToolUseBlock("c2", "fetch", '{"page": 2}', {"page": 2})])
    for compactions in range(MOST_IN_VAIN + 1, 2 * MOST_IN_VAIN + 1):
        check_progress(progress, compactions, messages, resolved)
        progress.note([call])

    with pytest.raises(ProviderContextError, match=r"the results of 'fetch' \(about 2,000 tokens\)"):
        check_progress(progress, 2 * MOST_IN_VAIN + 1, messages, resolved)
