"""``Client.complete`` and ``Client.stream`` with a real server."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat_client import Client, JumpseatClientError, ProviderConfig, RpcError, connect_stdio
from jumpseat_client.blocks import AnswerStream, CompleteParams
from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, event_stream

pytestmark = pytest.mark.anyio

SCRIPTED = ProviderConfig(type="scripted", script={"turns": [{"reasoning": "Hm.", "text": "One two three."}]})


@pytest.fixture
async def client(tmp_path: Path) -> AsyncGenerator[Client]:
    env = {"HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    async with connect_stdio([str(executable())], env=env) as connected:
        yield connected


async def test_options_take_precedence_over_params(client: Client) -> None:
    answer = await client.complete(CompleteParams(prompt="a", model="other"), provider=SCRIPTED, model="mine")
    assert (answer.text, answer.model) == ("One two three.", "mine")


async def test_misspelled_options_are_refused_before_anything_is_sent(client: Client) -> None:
    messages: Any = [{"role": "user", "contents": "a"}]
    with pytest.raises(JumpseatClientError, match=r"messages\[0\]\.contents: unknown, did you mean 'content'\?"):
        await client.complete(provider=SCRIPTED, messages=messages)
    choice: Any = {"toolname": "a"}
    with pytest.raises(JumpseatClientError, match=r"tool_choice\.toolname: unknown, did you mean 'tool_name'"):
        async with client.stream(provider=SCRIPTED, prompt="a", tool_choice=choice):
            pass


async def test_streams_of_one_client_run_side_by_side(client: Client) -> None:
    texts: dict[int, str] = {}

    async def read(number: int) -> None:
        async with client.stream(provider=SCRIPTED, prompt=str(number)) as answer:
            deltas = [event.delta async for event in answer if event.delta is not None]
        assert answer.result is not None
        texts[number] = "".join(delta.text or "" for delta in deltas if delta.delta_type == "text_delta")

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(read, number)
    assert texts == dict.fromkeys(range(5), "One two three.")


async def test_leaving_a_stream_ends_the_call_of_the_provider(client: Client) -> None:
    head = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    async with ModelServer(event_stream(head, ending="hang")) as server:
        provider = ProviderConfig(type="openai", base_url=server.url)
        async with client.stream(provider=provider, model="m", prompt="hi") as answer:
            event = await anext(answer)
        with anyio.fail_after(WAIT_S):
            await server.wait_for_hang_up()
    assert event.delta is not None
    assert (event.delta.text, answer.result) == ("Hel", None)


async def test_a_failure_is_raised_where_the_answer_is_read(client: Client) -> None:
    failing = ProviderConfig(type="openai", base_url="http://127.0.0.1:1")

    async def read(answer: AnswerStream) -> None:
        async for _ in answer:
            pass

    async with client.stream(provider=failing, model="m", prompt="hi") as answer:
        with pytest.raises(RpcError, match="cannot connect"):
            await read(answer)
    with pytest.raises(RpcError, match="cannot connect"):
        await client.complete(provider=failing, model="m", prompt="hi")
    with pytest.raises(JumpseatClientError, match="top_p: Input should be a valid number"):
        await client.complete(CompleteParams(prompt="a"), top_p="much")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ZeroDivisionError):
        async with client.stream(provider=SCRIPTED, prompt="hi"):
            raise ZeroDivisionError
