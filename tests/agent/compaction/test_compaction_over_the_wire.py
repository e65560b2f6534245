"""Compaction of conversations over the real wire, with a provider on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.events import data_of
from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply
from tests.support.pictures import PNG_BASE64
from tests.support.provided import at, says
from tests.support.server import JsonObject, RunningServer, running_server

pytestmark = pytest.mark.anyio

SUMMARY = (
    "<overview>\nA talk about dragons.\n</overview>\n\n<history>\n1. Asked.\n</history>\n\n"
    "<checkpoint_title>Talk about dragons</checkpoint_title>"
)
FIRST_WORDS = "Please create a detailed summary of the conversation so far. The history is being compacted"
NOW: JsonObject = {"infiniteSessions": {"backgroundCompactionThreshold": 0, "bufferExhaustionThreshold": 0}}
SOON: JsonObject = {"infiniteSessions": {"backgroundCompactionThreshold": 0, "bufferExhaustionThreshold": 1}}
TOO_LONG: JsonObject = {"error": {"code": "context_length_exceeded", "message": "too long"}}


@dataclass
class Provider:
    """Answers prompts with ``replies``, then with ``answer N`` and ``more``; answers requests for a summary with
    ``summaries``, then with :data:`SUMMARY`. ``refuses`` selects the requests that are too long.
    """

    summaries: list[Reply] = field(default_factory=list[Reply])
    refuses: Callable[[JsonObject], bool] = lambda _body: False
    refused: Reply = field(default_factory=lambda: json_reply(TOO_LONG, status=400))
    more: str = ""
    replies: list[Reply] = field(default_factory=list[Reply])
    answers: int = 0
    summing_up: asyncio.Event = field(default_factory=asyncio.Event)
    server: ModelServer = field(init=False)

    def __post_init__(self) -> None:
        self.server = ModelServer(answer=self._answer)

    def _answer(self, request: SeenRequest) -> Reply:
        if request.method == "GET":
            return json_reply({}, status=404)
        if self.refuses(request.json):
            return self.refused
        if is_summary(request):
            self.summing_up.set()
            return self.summaries.pop(0) if self.summaries else says(SUMMARY)
        if self.replies:
            return self.replies.pop(0)
        self.answers += 1
        return says(f"answer {self.answers}{self.more}")

    @property
    def asked_for_summaries(self) -> list[list[tuple[str, str]]]:
        return [texts_of(request) for request in self._calls if is_summary(request)]

    @property
    def asked(self) -> list[list[tuple[str, str]]]:
        return [texts_of(request) for request in self._calls if not is_summary(request)]

    @property
    def _calls(self) -> list[SeenRequest]:
        # A long prompt asks the server for its window.
        return [request for request in self.server.requests if request.method == "POST"]


def is_summary(request: SeenRequest) -> bool:
    return is_summary_body(request.json)


def is_summary_body(body: JsonObject) -> bool:
    last = body["messages"][-1]
    return last["role"] == "user" and str(last["content"]).startswith(FIRST_WORDS)


def texts_of(request: SeenRequest) -> list[tuple[str, str]]:
    """Return roles and texts after the system message, prompts without the text around them."""
    return [(message["role"], _bare(str(message["content"]))) for message in request.json["messages"][1:]]


def _bare(text: str) -> str:
    return text.split("</current_datetime>")[-1].split("<reminder>")[0].strip()


def compacted(*prompts: str, summary: str = SUMMARY) -> tuple[str, str]:
    text = "\n".join(f"<user_message>\n{prompt}\n</user_message>" for prompt in prompts)
    return "user", (
        "Some of the conversation history has been summarized to free up context.\n\n"
        "You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
        f"{text}\n\nHere is a summary of the prior context:\n<summary>\n{summary}\n</summary>"
    )


@asynccontextmanager
async def serving(folder: Path, provider: Provider) -> AsyncGenerator[RunningServer]:
    async with provider.server, running_server(folder) as server:
        yield server


async def open_session(server: RunningServer, provider: Provider, **options: Any) -> str:
    return await server.wire.create(at(provider.server), model="m", **options)


# --- automatic compactions --------------------------------------------------------------------------------------


async def test_a_filling_context_is_compacted_while_the_session_works(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **SOON)
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
        compaction = (await server.wire.event("session.compaction_complete"))["data"]
        await server.wire.prompt(session, "three")
        usage = data_of(server.wire.events(), "session.usage_info")

    (started,) = data_of(server.wire.events(), "session.compaction_start")
    first, second, third = provider.asked
    assert first == [("user", "one")]
    assert second == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]
    (request,) = provider.asked_for_summaries
    assert request[:-1] == second
    assert third == [compacted("one", "two"), ("assistant", "answer 2"), ("user", "three")]
    assert (compaction["success"], compaction["summaryContent"], compaction["trigger"]) == (
        True,
        SUMMARY,
        "threshold",
    )
    assert (started["trigger"], started["model"]) == ("threshold", "m")
    assert started["conversationTokens"] > 0
    assert compaction["compactionTokensUsed"]["inputTokens"] > started["conversationTokens"]
    assert compaction["tokensRemoved"] == max(
        0, compaction["preCompactionTokens"] - compaction["postCompactionTokens"]
    )
    assert compaction["postCompactionTokens"] in [info["currentTokens"] for info in usage]


async def test_a_turn_without_room_waits_for_the_compaction(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
    assert provider.asked == [[("user", "one")], [compacted("one", "two")]]
    kinds = [event["type"] for event in server.wire.events()]
    assert kinds.index("session.compaction_complete") < len(kinds) - 1 - kinds[::-1].index("assistant.message")


async def test_a_conversation_is_not_compacted_again_before_it_has_grown(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        for prompt in ("one", "two", "three", "four"):
            await server.wire.prompt(session, prompt)
        # A tenth of the 128,000 tokens has to be new.
        await server.wire.prompt(session, "word " * 20_000)
    assert len(provider.asked_for_summaries) == 2
    assert [summary[0] for summary in provider.asked_for_summaries][1] == compacted("one", "two")
    assert provider.asked[-1] == [compacted("one", "two", "three", "four"), ("user", ("word " * 20_000).strip())]


async def test_without_compaction_a_request_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    provider = Provider(refuses=lambda body: len(body["messages"]) > 4)
    async with serving(tmp_path, provider) as server:
        off = {"infiniteSessions": {**NOW["infiniteSessions"], "enabled": False}}
        session = await open_session(server, provider, **off)
        for prompt in ("one", "two", "three"):
            await server.wire.prompt(session, prompt)
    assert data_of(server.wire.events(), "session.compaction_start") == []
    (error,) = data_of(server.wire.events(), "session.error")
    assert error["errorType"] == "context_limit"


async def test_a_request_refused_as_too_long_is_compacted_and_sent_again(tmp_path: Path) -> None:
    """The context window of the model is unknown. The request for the summary must be shortened as well."""
    provider = Provider(refuses=lambda body: len(json.dumps(body["messages"])) > 80_000)
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        long = "word " * 6_000
        for prompt in (f"one {long}", f"two {long}", f"three {long}"):
            await server.wire.prompt(session, prompt)
    assert data_of(server.wire.events(), "session.error") == []
    (started,) = data_of(server.wire.events(), "session.compaction_start")
    assert started["trigger"] == "context_limit_retry"
    assert [message["content"] for message in data_of(server.wire.events(), "assistant.message")] == [
        "answer 1",
        "answer 2",
        "answer 3",
    ]
    assert provider.asked[-1][-1][0] == "user"
    assert "three word" in provider.asked[-1][-1][1]
    # The summarized text is complete, except for the middle of long texts.
    summed_up = provider.asked_for_summaries[-1]
    assert [text.split(" ")[0] for _, text in summed_up[:-1:2]] == ["one", "two", "three"]
    assert "characters omitted]" in summed_up[0][1]


async def test_a_failed_summary_changes_nothing(tmp_path: Path) -> None:
    gone = json_reply({"error": {"message": "no such thing"}}, status=404)
    provider = Provider(summaries=[gone])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        for prompt in ("one", "two", "three"):
            await server.wire.prompt(session, prompt)
    (compaction,) = data_of(server.wire.events(), "session.compaction_complete")
    assert (compaction["success"], compaction["statusCode"]) == (False, 404)
    assert "no such thing" in compaction["error"]
    assert data_of(server.wire.events(), "session.error") == []
    assert [len(messages) for messages in provider.asked] == [1, 3, 5]


async def test_a_model_that_calls_tools_instead_of_summarizing_is_asked_again_without_tools(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "view", "arguments": "{}"}}
    message = {"role": "assistant", "content": "I will look.", "tool_calls": [call]}
    goes_on = json_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    provider = Provider(summaries=[goes_on])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW, toolChoice={"mode": "required"})
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
    choices = [request.json.get("tool_choice") for request in provider.server.requests if is_summary(request)]
    assert choices == [None, "none"]
    (compaction,) = data_of(server.wire.events(), "session.compaction_complete")
    assert (compaction["success"], compaction["summaryContent"]) == (True, SUMMARY)
    assert data_of(server.wire.events(), "tool.execution_start") == []
    (warning,) = data_of(server.wire.events(), "session.warning")
    assert "asked again" in warning["message"]


async def test_a_refusal_while_a_summary_fails_is_followed_by_another_summary(tmp_path: Path) -> None:
    refused = asyncio.Event()

    def refuses(body: JsonObject) -> bool:
        if is_summary_body(body) or len(body["messages"]) <= 5:
            return False
        refused.set()
        return True

    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]})
    held = Reply([body[:1].encode(), body[1:].encode()], headers={"Content-Type": "application/json"}, gate=refused)
    provider = Provider(summaries=[held, says("")], refuses=refuses)
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **SOON)
        for prompt in ("one", "two", "three"):
            await server.wire.prompt(session, prompt)
    assert data_of(server.wire.events(), "session.error") == []
    outcomes = [data["success"] for data in data_of(server.wire.events(), "session.compaction_complete")]
    assert outcomes == [False, True]
    assert provider.asked[-1] == [compacted("one", "two", "three")]


async def test_a_summary_with_headings_in_place_of_tags_is_not_requested_again(tmp_path: Path) -> None:
    provider = Provider(summaries=[says("## Overview\nDragons.\n\n## Next steps\nNone.")])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
        await server.wire.call("session.history.compact", {"sessionId": session})
    assert len(provider.asked_for_summaries) == 1
    assert data_of(server.wire.events(), "session.warning") == []


async def test_a_busy_provider_is_asked_again_for_the_summary(tmp_path: Path) -> None:
    busy = json_reply({"error": {"message": "busy"}}, status=503, headers={"Retry-After": "0"})
    provider = Provider(summaries=[busy])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
    assert [
        compaction["success"] for compaction in data_of(server.wire.events(), "session.compaction_complete")
    ] == [True]


async def test_the_tokens_of_a_summary_count_as_usage(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 700, "completion_tokens": 30}
    provider = Provider(summaries=[says(SUMMARY, usage=usage)])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
        metrics = await server.wire.call("session.usage.getMetrics", {"sessionId": session})
    used = data_of(server.wire.events(), "session.compaction_complete")[0]["compactionTokensUsed"]
    assert (used["inputTokens"], used["outputTokens"], used["model"]) == (700, 30, "m")
    assert metrics["modelMetrics"]["m"]["requests"]["count"] == 3
    assert metrics["modelMetrics"]["m"]["usage"]["inputTokens"] == 700


async def test_the_current_prompt_and_its_context_are_not_summarized(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        await server.wire.prompt(session, "one")
        picture = {"type": "blob", "data": PNG_BASE64, "mimeType": "image/png"}
        await server.wire.prompt(session, "two", attachments=[picture])
        await server.wire.prompt(session, "three")
    (compaction,) = data_of(server.wire.events(), "session.compaction_complete")
    assert compaction["success"] is True
    second = provider.server.requests[-2].json["messages"][1:]
    assert second[0]["content"] == compacted("one")[1]
    assert [part["type"] for part in second[1]["content"]] == ["text", "image_url"]


async def test_the_request_to_correct_a_structured_answer_is_not_summarized(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    form = {"type": "json_schema", "jsonSchema": {"name": "f", "schema": schema}}
    provider = Provider(replies=[says("answer"), says("no json"), says('{"n": 1}')])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW)
        await server.wire.prompt(session, "one")
        await server.wire.prompt(session, "word " * 15_000, responseFormat=form)
    assert data_of(server.wire.events(), "session.error") == []
    assert "JSON" in provider.asked[-1][-1][1]


async def test_prompts_do_not_fill_a_small_context_window(tmp_path: Path) -> None:
    window = 8_192
    provider = Provider(refuses=lambda body: len(json.dumps(body)) > window * 4)
    async with serving(tmp_path, provider) as server:
        limits = {"limits": {"max_context_window_tokens": window, "max_output_tokens": 500}}
        session = await open_session(server, provider, modelCapabilities=limits)
        for number in range(8):
            await server.wire.prompt(session, f"{number} " + "word " * 1_400)
        await server.wire.prompt(session, "short")
    assert data_of(server.wire.events(), "session.error") == []
    assert provider.answers == 9
    assert provider.asked[-1][-1] == ("user", "short")


async def test_a_turn_continues_if_the_summary_arrives_during_its_request(tmp_path: Path) -> None:
    gate = asyncio.Event()
    late = Reply([b" ", json.dumps(TOO_LONG).encode()], status=400, gate=gate)
    provider = Provider(replies=[says("answer 1"), late, says("answer 2")])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **SOON)
        await server.wire.prompt(session, "one")
        since = len(server.wire.messages)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "two"})
        await server.wire.event("session.compaction_complete", since=since)
        gate.set()
        await server.wire.event("session.idle", since=since)
    assert data_of(server.wire.events(), "session.error") == []
    assert len(data_of(server.wire.events(), "session.compaction_start")) == 1
    assert provider.asked[-1] == [compacted("one", "two")]


async def test_a_truncated_summary_is_not_used(tmp_path: Path) -> None:
    cut = json_reply({"choices": [{"message": {"content": "<overview>\nThe user wa"}, "finish_reason": "length"}]})
    provider = Provider(summaries=[cut, cut])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        await server.wire.prompt(session, "one")
        result = await server.wire.call("session.history.compact", {"sessionId": session})
        metrics = await server.wire.call("session.usage.getMetrics", {"sessionId": session})
    assert result["success"] is False
    assert "returned no summary" in data_of(server.wire.events(), "session.compaction_complete")[0]["error"]
    # The tokens they used are still counted.
    assert metrics["modelMetrics"]["m"]["requests"]["count"] == 3


async def test_nothing_is_compacted_after_the_limits_are_used_up(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    costly = says("answer", usage=usage, copilot_usage={"total_nano_aiu": 31 * 10**9})
    provider = Provider(replies=[costly])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, sessionLimits={"maxAiCredits": 30})
        await server.wire.prompt(session, "one")
        refused = [
            await server.wire.error_of(f"session.history.{name}", {"sessionId": session})
            for name in ("compact", "summarizeForHandoff")
        ]
    assert all("used up" in error["message"] for error in refused)
    assert provider.asked_for_summaries == []


async def test_the_tokens_of_a_summary_count_against_the_limits_of_its_turn(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    costly = says(SUMMARY, usage=usage, copilot_usage={"total_nano_aiu": 31 * 10**9})
    provider = Provider(summaries=[costly])
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider, **NOW, sessionLimits={"maxAiCredits": 30})
        for prompt in ("one", "two"):
            await server.wire.prompt(session, prompt)
    assert [error["errorType"] for error in data_of(server.wire.events(), "session.error")] == ["quota"]
    assert len(provider.asked) == 1


async def test_a_required_tool_is_required_again_after_the_compaction(tmp_path: Path) -> None:
    refused = json_reply(TOO_LONG, status=400)
    provider = Provider(replies=[says("answer 1"), refused, calls_tool("c1"), says("done")])
    async with serving(tmp_path, provider) as server:
        tools = [{"name": "look", "skipPermission": True}]
        session = await open_session(server, provider, tools=tools)
        await server.wire.prompt(session, "one")
        since = len(server.wire.messages)
        choice = {"mode": "required"}
        await server.wire.call("session.send", {"sessionId": session, "prompt": "two", "toolChoice": choice})
        tool_call = await server.wire.event("external_tool.requested", since=since)
        answer = {"requestId": tool_call["data"]["requestId"], "result": "seen"}
        await server.wire.call("session.tools.handlePendingToolCall", {"sessionId": session, **answer})
        await server.wire.event("session.idle", since=since)
    choices = [request.json.get("tool_choice") for request in provider.server.requests if not is_summary(request)]
    assert choices == [None, "required", "required", None]


async def test_a_provider_that_refuses_tools_can_summarize(tmp_path: Path) -> None:
    no_tools = {"error": {"message": "registry.ollama.ai/library/m does not support tools"}}
    provider = Provider()
    provider.refused = json_reply(no_tools, status=400)
    provider.refuses = lambda body: bool(body.get("tools")) and is_summary_body(body)
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        await server.wire.prompt(session, "one")
        result = await server.wire.call("session.history.compact", {"sessionId": session})
    assert result["success"] is True
    assert [warning["warningType"] for warning in data_of(server.wire.events(), "session.warning")] == [
        "tool_protocol"
    ]


# --- requested compactions --------------------------------------------------------------------------------------


async def test_a_client_can_compact_the_conversation_and_gets_the_summary(tmp_path: Path) -> None:
    provider = Provider(more=" word" * 2000)
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        await server.wire.prompt(session, "one")
        result = await server.wire.call(
            "session.history.compact", {"sessionId": session, "customInstructions": "Keep the numbers."}
        )
        attribution = (await server.wire.call("session.metadata.getContextAttribution", {"sessionId": session}))[
            "contextAttribution"
        ]
        await server.wire.prompt(session, "two")
    (request,) = provider.asked_for_summaries
    assert request[-1][1].endswith("Keep the numbers.")
    (compaction,) = data_of(server.wire.events(), "session.compaction_complete")
    assert (compaction["trigger"], compaction["customInstructions"]) == ("manual", "Keep the numbers.")
    assert result["success"] is True
    assert result["summaryContent"] == SUMMARY
    assert result["messagesRemoved"] == 1
    window = result["contextWindow"]
    assert window["messagesLength"] == 2
    assert result["tokensRemoved"] == compaction["preCompactionTokens"] - window["currentTokens"]
    assert attribution["compactions"] == {"count": 1}
    assert attribution["compactionThreshold"] == round(0.8 * attribution["promptTokenLimit"])
    assert provider.asked[-1] == [compacted("one"), ("user", "two")]


async def test_the_command_compacts_and_reports_the_freed_tokens(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        empty = await server.wire.error_of("session.commands.invoke", {"sessionId": session, "name": "compact"})
        await server.wire.prompt(session, "one")
        about = {"sessionId": session, "name": "/compact", "input": "Keep names."}
        result = await server.wire.call("session.commands.invoke", about)
        since = len(server.wire.messages)
        await server.wire.call("session.commands.enqueue", {"sessionId": session, "command": "/compact"})
        await server.wire.event("session.idle", since=since)
        warned = data_of(server.wire.events(), "session.warning")
    assert "nothing to compact" in empty["message"]
    assert result["kind"] == "text"
    assert result["text"].startswith("The conversation was compacted from about ")
    assert provider.asked_for_summaries[0][-1][1].endswith("Keep names.")
    # A conversation that consists of its summary.
    assert [warning["message"] for warning in warned] == ["/compact: there is nothing to compact yet"]


async def test_a_summary_for_a_handoff_changes_nothing(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        session = await open_session(server, provider)
        await server.wire.prompt(session, "one")
        handoff = await server.wire.call("session.history.summarizeForHandoff", {"sessionId": session})
        await server.wire.prompt(session, "two")
    assert handoff == {"summary": SUMMARY}
    assert data_of(server.wire.events(), "session.compaction_start") == []
    assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]


async def test_prompts_wait_for_a_requested_compaction(tmp_path: Path) -> None:
    gate = asyncio.Event()
    held = Reply([b" ", json.dumps({"choices": [{"message": {"content": SUMMARY}}]}).encode()], gate=gate)
    provider = Provider(summaries=[held])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        await wire.prompt(session, "one")
        request_id = await wire.ask("session.history.compact", {"sessionId": session})
        await wire.event("session.compaction_start")
        second = await wire.error_of("session.history.compact", {"sessionId": session})
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "two"})
        await wire.event("assistant.turn_start", since=since)
        busy = await wire.error_of("session.history.compact", {"sessionId": session})
        gate.set()
        assert (await wire.response(request_id))["result"]["success"] is True
        await wire.event("session.idle", since=since)
    assert "already being compacted" in second["message"]
    assert "while a prompt is running" in busy["message"]
    assert provider.asked[-1] == [compacted("one"), ("user", "two")]


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("session.history.abortManualCompaction", {"aborted": True}),
        ("session.history.cancelBackgroundCompaction", {"cancelled": False}),
        ("session.abort", None),
    ],
)
async def test_a_requested_compaction_can_be_aborted(tmp_path: Path, method: str, answer: Any) -> None:
    provider = Provider(summaries=[Reply(silent=True, ending="hang")])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        await wire.prompt(session, "one")
        request_id = await wire.ask("session.history.compact", {"sessionId": session})
        await provider.summing_up.wait()
        said = await wire.call(method, {"sessionId": session})
        if answer is not None:
            assert said == answer
        if answer == {"cancelled": False}:
            await wire.call("session.abort", {"sessionId": session})
        result = (await wire.response(request_id))["result"]
        await provider.server.wait_for_hang_up()
        again = await wire.call("session.history.abortManualCompaction", {"sessionId": session})
        await wire.prompt(session, "two")
    assert result == {"success": False, "tokensRemoved": 0, "messagesRemoved": 0}
    (compaction,) = data_of(wire.events(), "session.compaction_complete")
    assert (compaction["success"], compaction["error"]) == (False, "it was cancelled")
    assert again == {"aborted": False}
    assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]


async def test_an_abort_ends_a_turn_and_the_compaction_it_waits_for(tmp_path: Path) -> None:
    provider = Provider(summaries=[Reply(silent=True, ending="hang")])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider, **NOW)
        await wire.prompt(session, "one")
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "two"})
        await provider.summing_up.wait()
        manual = await wire.call("session.history.abortManualCompaction", {"sessionId": session})
        await wire.call("session.abort", {"sessionId": session})
        await wire.event("session.idle", since=since, aborted=True)
        await provider.server.wait_for_hang_up()
        kinds = [event["type"] for event in wire.events(since=since)]
    assert manual == {"aborted": False}
    assert kinds.index("session.compaction_complete") < kinds.index("session.idle")
    assert kinds.count("session.compaction_complete") == 1


async def test_a_background_compaction_can_be_cancelled_while_the_turn_continues(tmp_path: Path) -> None:
    provider = Provider(summaries=[Reply(silent=True, ending="hang")])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider, **NOW)
        await wire.prompt(session, "one")
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "two"})
        await wire.event("session.compaction_start", since=since)
        cancelled = await wire.call("session.history.cancelBackgroundCompaction", {"sessionId": session})
        await wire.event("session.idle", since=since)
    assert cancelled == {"cancelled": True}
    assert data_of(wire.events(), "session.error") == []
    assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]


async def test_a_running_compaction_ends_when_its_client_detaches(tmp_path: Path) -> None:
    provider = Provider(summaries=[Reply(silent=True, ending="hang")])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        await wire.prompt(session, "one")
        request_id = await wire.ask("session.history.compact", {"sessionId": session})
        await provider.summing_up.wait()
        await wire.call("session.destroy", {"sessionId": session})
        assert (await wire.response(request_id))["result"]["success"] is False
        await provider.server.wait_for_hang_up()
        await wire.call("session.resume", {"sessionId": session, "provider": at(provider.server), "model": "m"})
        await wire.prompt(session, "two")
    assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]


async def test_a_closed_session_is_not_compacted(tmp_path: Path) -> None:
    """The client that rewrites the system message does not answer, and disconnects."""
    provider = Provider()
    slow = {"systemMessage": {"mode": "customize", "sections": {"tone": {"action": "transform"}}}}
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        await wire.prompt(session, "one")
        about = {"sessionId": session, "provider": at(provider.server), "model": "m"}
        await wire.call("session.resume", {**about, **slow})
        request_id = await wire.ask("session.history.compact", {"sessionId": session})
        question = await wire.until(
            lambda message: str(message.get("method")).endswith("transform"), what="the question"
        )
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {**about, "systemMessage": {"mode": "append"}})
        await wire.answer(question, {"sections": {}})
        error = (await wire.response(request_id))["error"]
        await wire.prompt(session, "two")
        stored = server.log_of(session).read_text()
    assert "not found" in error["message"]
    assert "compaction" not in stored
    assert provider.asked_for_summaries == []


async def test_copilot_is_told_that_a_request_is_a_compaction(tmp_path: Path) -> None:
    async with fake_copilot() as copilot, running_server(tmp_path, env=copilot.environ) as server:
        session = await server.wire.call("session.create", {"gitHubToken": ALICE, "model": "by-chat", **NOW})
        session_id = session["sessionId"]
        for prompt in ("one", "two"):
            await server.wire.prompt(session_id, prompt)
        await server.wire.call("session.history.compact", {"sessionId": session_id})
        calls = [request for request in copilot.server.requests if request.path.endswith("/chat/completions")]
    initiators = [call.headers["x-initiator"] for call in calls if is_summary(call)]
    assert initiators[0] == "agent"
    assert initiators[-1] == "user"


# --- after compactions ------------------------------------------------------------------------------------------


async def test_a_resumed_session_continues_from_the_summary_with_its_thresholds(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider, **NOW)
        for prompt in ("one", "two"):
            await wire.prompt(session, prompt)
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": at(provider.server)})
        await wire.prompt(session, "three")
        history = (await wire.call("session.getMessages", {"sessionId": session}))["events"]
    # It is compacted again, because its growth since the last time is unknown.
    assert provider.asked_for_summaries[1][:-1] == [
        compacted("one", "two"),
        ("assistant", "answer 2"),
        ("user", "three"),
    ]
    assert provider.asked[-1] == [compacted("one", "two", "three")]
    # The earlier messages can still be read.
    assert [event["data"]["content"] for event in history if event["type"] == "user.message"] == [
        "one",
        "two",
        "three",
    ]


async def test_a_kill_during_a_compaction_leaves_the_conversation_unchanged(
    tmp_path: Path,
) -> None:
    provider = Provider(summaries=[Reply(silent=True, ending="hang")])
    async with provider.server:
        async with running_server(tmp_path) as server:
            session = await open_session(server, provider)
            await server.wire.prompt(session, "one")
            await server.wire.ask("session.history.compact", {"sessionId": session})
            await server.wire.event("session.compaction_start")
            await server.kill()
        async with running_server(tmp_path) as server:
            about = {"sessionId": session, "provider": at(provider.server), "model": "m"}
            await server.wire.call("session.resume", about)
            await server.wire.prompt(session, "two")
    assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "two")]


async def test_truncating_before_a_compaction_restores_the_conversation(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)

        async def compact() -> str:
            await wire.call("session.history.compact", {"sessionId": session})
            history = (await wire.call("session.getMessages", {"sessionId": session}))["events"]
            return [event["id"] for event in history if event["type"] == "session.compaction_start"][-1]

        async def checkpoints() -> list[int]:
            found = await wire.call("session.workspaces.listCheckpoints", {"sessionId": session})
            return [checkpoint["number"] for checkpoint in found["checkpoints"]]

        await wire.prompt(session, "one")
        first = await compact()
        await wire.prompt(session, "two")
        second = await compact()
        assert await checkpoints() == [1, 2]
        fork = (await wire.call("sessions.fork", {"sessionId": session, "toEventId": second}))["sessionId"]
        await wire.call("session.history.truncate", {"sessionId": session, "eventId": second})
        assert await checkpoints() == [1]
        await wire.prompt(session, "three")
        assert provider.asked[-1] == [
            compacted("one"),
            ("user", "two"),
            ("assistant", "answer 2"),
            ("user", "three"),
        ]
        await wire.call("session.history.truncate", {"sessionId": session, "eventId": first})
        assert await checkpoints() == []
        await wire.prompt(session, "four")
        assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "four")]

        about = {"sessionId": fork, "provider": at(provider.server), "model": "m"}
        await wire.call("session.resume", about)
        session = fork
        assert await checkpoints() == [1]
        await wire.prompt(fork, "five")
        assert provider.asked[-1][0] == compacted("one")


async def test_truncating_stops_a_compaction_of_removed_messages(tmp_path: Path) -> None:
    provider = Provider(summaries=[Reply(silent=True, ending="hang")])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        for prompt in ("one", "two"):
            await wire.prompt(session, prompt)
        request_id = await wire.ask("session.history.compact", {"sessionId": session})
        await wire.event("session.compaction_start")
        second = [event["id"] for event in wire.events() if event["type"] == "user.message"][1]
        await wire.call("session.history.truncate", {"sessionId": session, "eventId": second})
        assert (await wire.response(request_id))["result"]["success"] is False
        await wire.prompt(session, "three")
    assert provider.asked[-1] == [("user", "one"), ("assistant", "answer 1"), ("user", "three")]


async def test_each_summary_is_stored_as_a_file_that_clients_can_read(tmp_path: Path) -> None:
    # A summary without sections is requested again.
    provider = Provider(summaries=[says(SUMMARY), *[says("No sections at all.")] * 2])
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        about = {"sessionId": session}
        assert await wire.call("session.workspaces.listCheckpoints", about) == {"checkpoints": []}
        for prompt in ("one", "two"):
            await wire.prompt(session, prompt)
            assert "checkpointNumber" not in server.log_of(session).read_text() or prompt == "two"
            await wire.call("session.history.compact", about)
        checkpoints = (await wire.call("session.workspaces.listCheckpoints", about))["checkpoints"]
        texts = [
            (await wire.call("session.workspaces.readCheckpoint", {**about, "number": number}))["content"]
            for number in (1, 2, 3)
        ]
        workspace = (await wire.call("session.workspaces.getWorkspace", about))["workspace"]
    folder = server.log_of(session).parent / "checkpoints"
    assert checkpoints == [
        {"number": 1, "title": "Talk about dragons", "filename": "001-talk-about-dragons.md"},
        {"number": 2, "title": "Conversation so far", "filename": "002-conversation-so-far.md"},
    ]
    assert texts == [f"# Talk about dragons\n\n{SUMMARY}\n", "# Conversation so far\n\nNo sections at all.\n", None]
    assert workspace["summary_count"] == 2
    compaction = data_of(wire.events(), "session.compaction_complete")
    assert [completion["checkpointNumber"] for completion in compaction] == [1, 2]
    assert [Path(completion["checkpointPath"]) for completion in compaction] == [
        folder / checkpoint["filename"] for checkpoint in checkpoints
    ]
    index = (folder / "index.md").read_text()
    assert "- 1: [Talk about dragons](001-talk-about-dragons.md)" in index


async def test_secrets_stay_out_of_summaries(tmp_path: Path) -> None:
    key = "hunter2-is-the-password"
    provider = Provider(summaries=[says(f"<overview>The key is {key}.</overview>")])
    async with serving(tmp_path, provider) as server:
        await server.wire.call("secrets.addFilterValues", {"values": [key]})
        session = await open_session(server, provider)
        await server.wire.prompt(session, "one")
        result = await server.wire.call("session.history.compact", {"sessionId": session})
        stored = "".join(path.read_text() for path in server.log_of(session).parent.rglob("*") if path.is_file())
    assert result["summaryContent"] == "<overview>The key is [redacted].</overview>"
    assert key not in stored


async def test_a_write_error_loses_the_file_and_not_the_summary(tmp_path: Path) -> None:
    provider = Provider()
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider)
        await wire.prompt(session, "one")
        folder = server.log_of(session).parent / "checkpoints"
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        folder.write_text("in the way")
        result = await wire.call("session.history.compact", {"sessionId": session})
        await wire.prompt(session, "two")
    assert result["success"] is True
    (compaction,) = data_of(wire.events(), "session.compaction_complete")
    assert (compaction["checkpointNumber"], compaction.get("checkpointPath")) == (1, None)
    assert provider.asked[-1] == [compacted("one"), ("user", "two")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"backgroundCompactionThreshold": 1.5},
        {"bufferExhaustionThreshold": -0.1},
        {"enabled": "yes"},
        {"backgroundCompactionThreshold": "most"},
    ],
    ids=str,
)
async def test_invalid_thresholds_are_refused(tmp_path: Path, wrong: JsonObject) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"infiniteSessions": wrong})
    assert error["code"] == -32602
    assert f"infiniteSessions.{next(iter(wrong))}" in error["message"]


async def test_a_summary_replaces_the_messages_that_existed_at_its_start(tmp_path: Path) -> None:
    """A turn with tools continues while its beginning is summarized."""
    gate = asyncio.Event()
    held = Reply([b" ", json.dumps({"choices": [{"message": {"content": SUMMARY}}]}).encode()], gate=gate)
    provider = Provider(
        summaries=[held], replies=[says("answer 1"), calls_tool("c1"), calls_tool("c2"), says("done")]
    )
    async with serving(tmp_path, provider) as server:
        wire = server.wire
        session = await open_session(server, provider, **SOON, tools=[{"name": "look", "skipPermission": True}])
        await wire.prompt(session, "one")
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "two"})
        for number in (1, 2):
            request = await wire.event("external_tool.requested", since=since, toolCallId=f"c{number}")
            if number == 2:
                gate.set()
                with anyio.fail_after(WAIT_S):
                    await wire.event("session.compaction_complete", since=since)
            await wire.call(
                "session.tools.handlePendingToolCall",
                {"sessionId": session, "requestId": request["data"]["requestId"], "result": f"seen {number}"},
            )
        await wire.event("session.idle", since=since)
    assert [message[0] for message in provider.asked[-1]] == ["user", "assistant", "tool", "assistant", "tool"]
    assert provider.asked[-1][0] == compacted("one", "two")
    assert [message[1] for message in provider.asked[-1] if message[0] == "tool"] == ["seen 1", "seen 2"]
    assert data_of(wire.events(), "session.error") == []


def calls_tool(call_id: str) -> Reply:
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
