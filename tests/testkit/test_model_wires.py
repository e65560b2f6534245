"""The scripted model, as the official SDKs of providers read it."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

from jumpseat_testkit.model.script import Script
from jumpseat_testkit.model.server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

TURNS = [
    {"reasoning": "Let me add.", "tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]},
    {"text": "The sum is {{last_tool_result}}.", "usage": {"input": 7, "output": 5}},
]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def serve(**script: Any) -> ModelServer:
    return ModelServer(Script.model_validate(script))


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_completions(stream: bool) -> None:
    async with serve(turns=TURNS) as server, openai.AsyncOpenAI(base_url=server.url, api_key="none") as client:
        messages: list[Any] = [{"role": "user", "content": "add"}]
        tools: list[Any] = [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]

        async def ask() -> Any:
            if not stream:
                return await client.chat.completions.create(model="m", messages=messages, tools=tools)
            async with client.chat.completions.stream(model="m", messages=messages, tools=tools) as events:
                return await events.get_final_completion()

        first = (await ask()).choices[0]
        call = first.message.tool_calls[0]
        assert (first.finish_reason, call.function.name, call.function.arguments) == (
            "tool_calls",
            "add",
            '{"a":1,"b":2}',
        )
        messages += [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [call.model_dump(include={"id", "type", "function"})],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "3"},
        ]
        second = await ask()
        assert second.choices[0].message.content == "The sum is 3."
        assert second.usage.total_tokens == 12


@pytest.mark.parametrize("stream", [False, True])
async def test_responses(stream: bool) -> None:
    async with serve(turns=TURNS) as server, openai.AsyncOpenAI(base_url=server.url, api_key="none") as client:
        given: list[Any] = [{"role": "user", "content": "add"}]
        tools: list[Any] = [{"type": "function", "name": "add", "parameters": SCHEMA, "strict": False}]

        async def ask() -> Any:
            if not stream:
                return await client.responses.create(model="m", input=given, tools=tools)
            async with client.responses.stream(model="m", input=given, tools=tools) as events:
                return await events.get_final_response()

        first = await ask()
        reasoning, call = first.output
        assert reasoning.summary[0].text == "Let me add."
        assert (call.name, call.arguments) == ("add", '{"a":1,"b":2}')
        given += [
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
            {"type": "function_call_output", "call_id": call.call_id, "output": "3"},
        ]
        second = await ask()
        assert (second.output_text, second.status, second.usage.total_tokens) == ("The sum is 3.", "completed", 12)


@pytest.mark.parametrize("stream", [False, True])
async def test_messages_of_anthropic(stream: bool) -> None:
    async with (
        serve(turns=TURNS) as server,
        anthropic.AsyncAnthropic(base_url=server.anthropic_url, api_key="none") as client,
    ):
        messages: list[Any] = [{"role": "user", "content": "add"}]
        more: Any = {"model": "m", "max_tokens": 9, "tools": [{"name": "add", "input_schema": SCHEMA}]}

        async def ask() -> Any:
            api: Any = client.messages
            if not stream:
                return await api.create(messages=messages, **more)
            async with api.stream(messages=messages, **more) as events:
                return await events.get_final_message()

        first = await ask()
        thinking, call = first.content
        assert (first.stop_reason, thinking.thinking, call.input) == ("tool_use", "Let me add.", {"a": 1, "b": 2})
        messages += [
            {"role": "assistant", "content": [{"type": "tool_use", "id": call.id, "name": "add", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "3"}]},
        ]
        second = await ask()
        assert (second.content[0].text, second.usage.output_tokens) == ("The sum is 3.", 5)


async def test_a_script_decides_on_errors_and_on_broken_connections() -> None:
    turn = {"errors": [{"status": 429, "message": "slow down", "code": "rate"}, {}], "text": "ok"}
    async with (
        serve(turns=[turn]) as server,
        openai.AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.RateLimitError, match="slow down"):
            await client.responses.create(model="m", input="go")
        with pytest.raises(openai.APIConnectionError):
            await client.responses.create(model="m", input="go")
        assert (await client.responses.create(model="m", input="go")).output_text == "ok"
        answered: Any = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "again"}]
        with pytest.raises(openai.BadRequestError, match="ends after 1"):
            await client.responses.create(model="m", input=answered)
