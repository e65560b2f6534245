"""Chat completions by host and by option; the recordings cover the wire."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.wires.chat import ChatAdapter
from jumpseat.adapters.wires.ollama_chat import OllamaChatAdapter
from jumpseat.agent.blocks import AssistantMessage, Message, ReasoningBlock, TextBlock, ToolUseBlock, UserMessage
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.errors import ProviderProtocolError
from tests.adapters.conversations import REQUESTS
from tests.adapters.golden import decode_stream


def body(base_url: str = "http://local/v1", request: str = "reasoning_effort", **options: Any) -> dict[str, Any]:
    return ChatAdapter().request(Endpoint(base_url, options=options), REQUESTS[request]).body


def test_openai_gets_its_own_name_for_the_output_limit() -> None:
    assert "max_completion_tokens" in body("https://api.openai.com/v1")
    assert "max_tokens" in body("https://api.openai.com.example/v1")
    assert "limit" in body(max_tokens_field="limit")


def test_openai_gets_no_reasoning_back_because_it_refuses_unknown_fields() -> None:
    theirs = body("https://api.openai.com/v1", "of_all_providers")["messages"]
    others = body("http://local/v1", "of_all_providers")["messages"]
    silent = body("http://local/v1", "of_all_providers", replay_reasoning=False)["messages"]

    fields = {"reasoning_content", "reasoning_details", "reasoning"}
    assert not any(fields & set(message) for message in theirs)
    assert [bool(fields & set(message)) for message in others if message["role"] == "assistant"] == [
        False,
        True,
        True,
    ]
    assert silent == theirs


def test_plain_reasoning_goes_back_only_in_the_current_tool_loop() -> None:
    def answer(text: str) -> AssistantMessage:
        return AssistantMessage(
            [ReasoningBlock(text, "openai", {"field": "reasoning"}), ToolUseBlock("c", "t", "{}", {})]
        )

    prompt = UserMessage([TextBlock("p")])
    messages: list[Message] = [prompt, answer("old"), prompt, answer("new")]
    wire = ChatAdapter().messages(Endpoint("http://local"), ModelRequest("m", "", messages))

    assert [message.get("reasoning") for message in wire] == [None, None, None, "new"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"system_role": "developer"}, {"messages": [{"role": "developer", "content": "s"}]}),
        ({"stream_usage": False}, {"stream_options": None}),
        ({"reasoning_effort": False}, {"reasoning_effort": None}),
        ({"body": {"temperature": 0, "stream": False}}, {"temperature": 0, "stream": False}),
    ],
)
def test_options_change_the_request(options: dict[str, Any], expected: dict[str, Any]) -> None:
    written = body(**options)

    written["messages"] = written["messages"][:1]
    assert {key: written.get(key) for key in expected} == expected


def test_a_trailing_slash_of_the_base_url_is_not_doubled() -> None:
    written = ChatAdapter().request(Endpoint("http://local/v1/"), REQUESTS["prompt"])

    assert written.url == "http://local/v1/chat/completions"


def test_generated_call_ids_differ_from_turn_to_turn() -> None:
    answer = {"choices": [{"message": {"tool_calls": [{"function": {"name": "t", "arguments": "{}"}}] * 2}}]}
    ids: set[str] = set()
    for turn in range(3):
        request = ModelRequest("m", "", [UserMessage([])] * turn, stream=False)
        (done,) = ChatAdapter().decoder(request).whole(answer)
        assert isinstance(done, Completed)
        ids.update(use.id for use in done.message.tool_uses())

    assert len(ids) == 6


def test_a_delta_with_more_calls_than_an_answer_may_have_is_not_read() -> None:
    empty = "[" + ",".join(["{}"] * 2049) + "]"
    chat = decode_stream(ChatAdapter(), [b'data: {"choices":[{"delta":{"tool_calls":%s}}]}\n\n' % empty.encode()])
    ollama = decode_stream(OllamaChatAdapter(), [b'{"message":{"tool_calls":%s}}\n' % empty.encode()], lines=True)
    for outcome in (chat, ollama):
        assert isinstance(outcome.error, ProviderProtocolError)
        assert "more than 2048 tool calls" in str(outcome.error)


def test_answers_with_more_choices_than_calls_are_not_read() -> None:
    choices = b'{"choices": [%b]}' % b",".join([b'{"delta": {"content": "a"}}'] * 2049)
    streamed = decode_stream(ChatAdapter(), [b"data: %b\n\n" % choices])
    assert isinstance(streamed.error, ProviderProtocolError)
    assert "more than 2048 choices" in str(streamed.error)
    with pytest.raises(ProviderProtocolError, match="more than 2048 choices"):
        ChatAdapter().decoder(ModelRequest("m", "", [], stream=False)).whole(orjson.loads(choices))
