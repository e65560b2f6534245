"""The scripted model: valid scripts, and the errors of invalid ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.adapters.scripted import Script, ScriptedModel, load_script
from jumpseat.agent.blocks import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.model import (
    Completed,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolSchema,
    ToolSpec,
    Usage,
)
from jumpseat.errors import (
    ConfigError,
    ProviderOverloadedError,
    ProviderQuotaError,
    ProviderRateLimitError,
    ProviderRequestError,
    ProviderTransportError,
)
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio


def model(**script: Any) -> ScriptedModel:
    return ScriptedModel(Script.model_validate(script))


def prompt(text: str) -> UserMessage:
    return UserMessage([TextBlock(text)])


def wrapped(text: str) -> UserMessage:
    return prompt(f"<current_datetime>2026-01-01</current_datetime>\n\n{text}\n\n<reminder>be nice</reminder>")


def reply(text: str) -> AssistantMessage:
    return AssistantMessage([TextBlock(text)])


def result(text: str) -> ToolMessage:
    return ToolMessage([ToolResultBlock("c", "t", text)])


async def play(model: ScriptedModel, *messages: Message, stream: bool = False, **request: Any) -> list[ModelEvent]:
    with anyio.fail_after(WAIT_S):
        async with model.stream(
            ModelRequest("m", request.pop("system", ""), [*messages], stream=stream, **request)
        ) as events:
            return [event async for event in events]


async def text_of(model: ScriptedModel, *messages: Message, **request: Any) -> str:
    (done,) = await play(model, *messages, **request)
    assert isinstance(done, Completed)
    return done.message.text()


async def test_a_turn_streams_reasoning_words_and_calls_and_ends_with_one_completed_event() -> None:
    turn = {
        "reasoning": "Hm, so",
        "text": "Hello  big\nworld ",
        "tool_calls": [
            {"name": "add", "arguments": {"b": 2, "a": 1}},
            {"name": "raw", "arguments": "{oops", "id": "x"},
        ],
        "usage": {"input": 10, "output": 5, "cache_read": 3},
    }
    events = await play(model(turns=[turn]), prompt("hi"), stream=True)

    assert events == [
        ReasoningDelta("Hm, "),
        ReasoningDelta("so"),
        TextDelta("Hello  "),
        TextDelta("big\n"),
        TextDelta("world "),
        ToolCallDelta("call_1_1", "add", '{"b":2,"a":1}'),
        ToolCallDelta("x", "raw", "{oops"),
        Completed(
            AssistantMessage(
                [
                    ReasoningBlock("Hm, so", "scripted"),
                    TextBlock("Hello  big\nworld "),
                    ToolUseBlock("call_1_1", "add", '{"b":2,"a":1}', {"b": 2, "a": 1}),
                    ToolUseBlock("x", "raw", "{oops", None),
                ]
            ),
            "tool_use",
            Usage(10, 5, 3),
        ),
    ]


async def test_deltas_are_streamed_as_written() -> None:
    events = await play(model(turns=[{"deltas": ["He", "llo"], "delay_ms": 0.1}]), prompt("hi"), stream=True)

    assert events == [TextDelta("He"), TextDelta("llo"), Completed(reply("Hello"), "end_turn")]


async def test_without_streaming_there_is_only_the_completed_event() -> None:
    events = await play(model(turns=[{"text": "a b", "stop_reason": "refusal", "delay_ms": 0.1}]), prompt("hi"))

    assert events == [Completed(reply("a b"), "refusal")]


async def test_the_turn_follows_from_the_conversation_so_a_resumed_session_continues() -> None:
    script = [{"text": "one"}, {"text": "two"}, {"text": "three"}]
    history = [prompt("a"), reply("x"), prompt("b")]

    assert await text_of(model(turns=script), *history) == "two"
    assert await text_of(model(turns=script), *history, reply("y"), prompt("c")) == "three"


async def test_after_the_last_turn_the_script_fails_or_repeats() -> None:
    history = [prompt("a"), reply("x"), prompt("b"), reply("y"), prompt("c")]

    with pytest.raises(ProviderRequestError, match="the script has no turn 3, it ends after 1"):
        await play(model(turns=[{"text": "one"}]), *history)
    assert await text_of(model(turns=[{"text": "one"}], after_last="repeat"), *history) == "one"


async def test_prompts_match_patterns_and_their_turns_are_counted_from_there() -> None:
    scripted = model(
        prompts=[
            {"when": "^never$", "turns": []},
            {"when": "encr[iy]pt", "turns": [{"text": "first"}, {"text": "second: {{last_tool_result}}"}]},
            {"turns": [{"text": "you said {{ last_user }} to {{model}}"}]},
        ]
    )
    history = [wrapped("Hello"), reply("h"), wrapped("Please ENCRYPT it")]

    assert await text_of(scripted, wrapped("Hello there")) == "you said Hello there to m"
    assert await text_of(scripted, *history) == "first"
    assert await text_of(scripted, *history, reply("s"), result("42")) == "second: 42"


async def test_user_messages_other_than_prompts_do_not_count() -> None:
    scripted = model(prompts=[{"when": "picture", "turns": [{"text": "one"}, {"text": "two"}]}])
    extra = prompt('<skill-context name="x">other words</skill-context>')

    assert await text_of(scripted, wrapped("See the picture"), reply("s"), result("ok"), extra) == "two"


async def test_a_prompt_without_a_match_is_named() -> None:
    with pytest.raises(ProviderRequestError, match="no prompt that matches 'Hello'"):
        await play(model(prompts=[{"when": "bye", "turns": []}]), wrapped("Hello"))


async def test_placeholders_are_also_replaced_in_arguments() -> None:
    call = {"name": "t", "arguments": {"q": ["{{last_user}}"], "n": 1, "o": {"m": "{{model}}"}}}
    (done,) = await play(model(turns=[{"tool_calls": [call]}]), prompt('say "x"'))

    assert isinstance(done, Completed)
    assert done.message.tool_uses()[0].arguments == {"q": ['say "x"'], "n": 1, "o": {"m": "m"}}


async def test_ids_of_calls_differ_from_turn_to_turn() -> None:
    turn = {"tool_calls": [{"name": "t"}, {"name": "t"}]}
    scripted = model(turns=[turn, turn])
    first, second = [await play(scripted, *history) for history in ([prompt("a")], [prompt("a"), reply("x")])]

    ids = [
        use.id
        for (completion,) in (first, second)
        if isinstance(completion, Completed)
        for use in completion.message.tool_uses()
    ]
    assert ids == ["call_1_1", "call_1_2", "call_2_1", "call_2_2"]


async def test_scripted_errors_fail_the_first_attempts_of_each_session() -> None:
    errors = [
        {"status": 429, "message": "slow", "code": "rate_limited", "retry_after_s": 0},
        {"status": 503},
        {"status": 402},
        {"message": "gone"},
    ]
    scripted = model(turns=[{"text": "at last", "errors": errors}])

    with pytest.raises(ProviderRateLimitError, match="slow") as caught:
        await play(scripted, prompt("a"), session_id="s1")
    assert (caught.value.code, caught.value.status, caught.value.retry_after_s) == ("rate_limited", 429, 0)
    for kind in (ProviderOverloadedError, ProviderQuotaError, ProviderTransportError):
        with pytest.raises(kind):
            await play(scripted, prompt("a"), session_id="s1")
    with pytest.raises(ProviderRateLimitError):
        await play(scripted, prompt("a"), session_id="s2")
    assert await text_of(scripted, prompt("a"), session_id="s1") == "at last"


@pytest.mark.parametrize(
    ("expect", "complaint"),
    [
        ({"user": "goodbye"}, r"turn 1 of the script expected 'goodbye' in the last prompt, got 'hello you'"),
        ({"user": "/^you/"}, r"'/\^you/' in the last prompt"),
        ({"system": "strict"}, r"'strict' in the system message, got 'be brief'"),
        ({"tool_result": "43"}, r"'43' in the last tool result, got '42'"),
        ({"model": "other"}, r"the model 'other', got 'm'"),
        ({"tools": ["add", "sub", "mul"]}, r"the tools sub, mul on offer, got add$"),
    ],
)
async def test_an_unmet_expectation_fails_without_retry_and_shows_expected_and_actual(
    expect: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ProviderRequestError, match=complaint) as caught:
        await play(
            model(turns=[{"text": "x", "expect": expect}]),
            prompt("hello you"),
            result("42"),
            system="be brief",
            tools=[ToolSpec("add", "", ToolSchema.of({}))],
        )
    assert not caught.value.retryable


async def test_a_turn_with_met_expectations_is_answered() -> None:
    expect = {"user": "/^hel+o/", "system": "brief", "tool_result": "4", "model": "m", "tools": ["add"]}
    scripted = model(turns=[{"text": "fine", "expect": expect}])

    tools = [ToolSpec("add", "", ToolSchema.of({})), ToolSpec("sub", "", ToolSchema.of({}))]
    assert await text_of(scripted, prompt("hello"), result("42"), system="be brief", tools=tools) == "fine"


async def test_a_hanging_turn_streams_its_deltas_and_can_be_cancelled() -> None:
    scripted = model(turns=[{"deltas": ["so far"], "hang": True}])
    heard: list[ModelEvent] = []
    with anyio.fail_after(WAIT_S):
        async with scripted.stream(ModelRequest("m", "", [prompt("a")])) as events:
            async for event in events:
                heard.append(event)
                break
            with anyio.move_on_after(0.25) as scope:
                await anext(events)

    assert heard == [TextDelta("so far")]
    assert scope.cancelled_caught


@pytest.mark.parametrize("name", ["script.yaml", "script.json"])
def test_a_script_is_read_from_yaml_and_json(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"turns": [{"text": "Grüße"}], "after_last": "repeat"}', encoding="utf-8")

    assert load_script(path) == Script.model_validate({"turns": [{"text": "Grüße"}], "after_last": "repeat"})


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("turns: [{txt: x}]", r"turns\[0\]\.txt: unknown, did you mean 'text'\?"),
        (
            "turns: [{}, {tool_calls: [{arguments: {}}]}]",
            r"turns\[1\]\.tool_calls\[0\]\.name: required, but missing",
        ),
        ("turns: [{text: a, deltas: [b]}]", r"turns\[0\]: .*either 'text' or 'deltas'"),
        ("turns: []\nprompts: []", r"the whole: .*either 'turns' or 'prompts'"),
        ("{}", r"the whole: .*either 'turns' or 'prompts'"),
        ("- a", r"the whole: expected an object"),
        ("", r"the whole: expected an object"),
        ("prompts: [{when: '(', turns: []}]", r"prompts\[0\]\.when: .*not a regular expression"),
        ("turns: [{expect: {user: '/(/'}}]", r"turns\[0\]\.expect\.user: .*not a regular expression"),
        ("turns: [{errors: [{status: 200}]}]", r"turns\[0\]\.errors\[0\]\.status: "),
        ("turns: [{stop_reason: stop}]", r"turns\[0\]\.stop_reason: "),
        ("after_last: never\nturns: []", r"after_last: "),
        ("turns: [a: b: c", r"is not YAML: "),
    ],
)
def test_an_error_in_a_script_names_file_and_field(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=rf"odd\.yaml.*{complaint}"):
        load_script(path)


def test_an_unreadable_script_is_reported_with_its_path(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match=r"cannot read the script '.*missing\.yaml': No such file"):
        load_script(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match=r"cannot read the script '.*binary\.yaml': not UTF-8"):
        load_script(binary)
