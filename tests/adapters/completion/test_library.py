"""Model calls from Python without a server: the configuration, the defaults and the errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from jumpseat import (
    CompleteParams,
    ConfigError,
    InvalidRequestError,
    Message,
    ProviderConfig,
    ProviderError,
    ReasoningBlock,
    TextBlock,
    complete_sync,
    open_models,
)
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, event_stream, json_reply

pytestmark = pytest.mark.anyio

ANSWER: Final[dict[str, Any]] = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}
SCRIPTED: Final = ProviderConfig(type="scripted", script={"turns": [{"text": "Hello!"}]})


async def test_the_home_folder_the_variables_and_the_configuration_can_be_given(tmp_path: Path) -> None:
    async with ModelServer(*[json_reply(ANSWER)] * 3) as server:
        adapter = {"type": "openai", "base_url": server.url, "api_key_env": "MY_KEY", "models": ["m"]}
        lines = "\n".join(f"{key} = {value!r}" for key, value in adapter.items())
        (tmp_path / "config.toml").write_text(f"[adapters.mine]\n{lines}\n")
        async with open_models(home=tmp_path, environ={"MY_KEY": "one"}) as models:
            by_file = await models.complete(model="mine/m", prompt="a")
            with pytest.raises(ConfigError, match="unknown adapter 'theirs'"):
                await models.complete(adapter="theirs", prompt="a")
        given = {"adapters": {"mine": adapter}}
        environ = {"MY_KEY": "two"}
        async with open_models(home=tmp_path / "none", environ=environ, config=given, model="mine/m") as own:
            await own.complete(prompt="a")
            await own.complete(CompleteParams(prompt="a", temperature=0.5), adapter="mine")

    assert by_file.text == "Hi."
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer one"] + ["Bearer two"] * 2
    assert server.requests[2].json["temperature"] == 0.5
    with pytest.raises(ConfigError, match=r"config: adapters\.a"):
        async with open_models(config={"adapters": {"a": {"base_url": 1}}}):
            pass


async def test_errors_name_the_problem(tmp_path: Path) -> None:
    async with open_models(home=tmp_path, environ={}, provider=SCRIPTED) as models:
        with pytest.raises(InvalidRequestError, match="promt: unknown, did you mean 'prompt'"):
            await models.complete(promt="a")  # pyright: ignore[reportCallIssue]
        with pytest.raises(InvalidRequestError, match="either prompt or messages"):
            await models.complete()
        with pytest.raises(InvalidRequestError, match=r"expected CompleteParams or keyword arguments .*, got str"):
            await models.complete("a")  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidRequestError, match="stream: not an option"):
            await models.complete(prompt="a", stream=True)  # pyright: ignore[reportCallIssue]
        nested: list[dict[str, Any]] = [
            {"messages": [{"role": "user", "contents": "a"}]},
            {"tool_choice": {"toolname": "a"}},
            {"provider": {"type": "openai", "base_ulr": "http://x"}},
        ]
        for options, expected in zip(nested, ("content", "tool_name", "base_url"), strict=True):
            with pytest.raises(InvalidRequestError, match=f"unknown, did you mean '{expected}'"):
                await models.complete(prompt="a", **options)
        with pytest.raises(InvalidRequestError, match=r"messages\[0\].contents: unknown"):
            await models.portability(nested[0]["messages"])
        failing = ProviderConfig(type="openai", base_url="http://127.0.0.1:1")
        with pytest.raises(ProviderError, match="cannot connect"):
            await models.complete(provider=failing, model="m", prompt="a")


async def test_leaving_a_stream_closes_the_connection_to_the_provider(tmp_path: Path) -> None:
    head = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    async with ModelServer(event_stream(head, ending="hang")) as server:
        provider = ProviderConfig(type="openai", base_url=server.url)
        async with open_models(home=tmp_path, environ={}, provider=provider, model="m") as models:
            async with models.stream(prompt="hi") as answer:
                event = await anext(answer)
            with anyio.fail_after(WAIT_S):
                await server.wait_for_hang_up()
    assert event.delta is not None
    assert (event.delta.text, answer.result) == ("Hel", None)


async def test_the_report_on_a_switch_counts_positions_as_given(tmp_path: Path) -> None:
    signed = ReasoningBlock(text="Hm.", provider="anthropic", provider_data={"signature": "x"})
    messages = [
        Message(role="system", content="Be brief."),
        Message(role="user", content="a"),
        Message(role="assistant", blocks=[signed, TextBlock(text="b")]),
    ]
    async with open_models(home=tmp_path, environ={}, provider=SCRIPTED) as models:
        report = await models.portability(messages)
    assert [(b.message, b.block, b.outcome) for b in report.blocks] == [
        (0, 0, "kept"),
        (1, 0, "kept"),
        (2, 0, "dropped"),
        (2, 1, "kept"),
    ]


def test_a_call_without_an_event_loop() -> None:
    assert complete_sync(prompt="Hi", provider=SCRIPTED).text == "Hello!"
