"""From a declaration to a call and back: what handlers get, in which order, and who wins."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, cast

import anyio
import pytest

from jumpseat.adapters.adapter import Endpoint, PreparedCall
from jumpseat.adapters.declared.declaration import Declaration, read_declaration
from jumpseat.adapters.declared.pipeline import DeclaredCaller
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.agent.blocks import (
    AssistantMessage,
    ImageBlock,
    JsonObject,
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
    ToolSchema,
    ToolSpec,
)
from jumpseat.declared.env import EnvResolver, MissingValueError
from jumpseat.errors import (
    AdapterError,
    InvalidRequestError,
    ProviderError,
    ProviderRequestError,
)
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply

pytestmark = pytest.mark.anyio

SECRET = "hidden-value-0123456789"  # not a real one


def declared(**fields: Any) -> Declaration:
    return read_declaration({"name": "mine", "url": "http://127.0.0.1:1/chat", **fields}, where="mine")


def caller(
    declaration: Declaration, *, wire: str | None = None, given: Mapping[str, Any] | None = None, base_url: str = ""
) -> DeclaredCaller:
    resolver = EnvResolver({"PATH": os.environ["PATH"], "THE_KEY": SECRET})
    loaded = load_adapter(wire) if wire else None
    return DeclaredCaller(declaration, loaded, resolver, given or {}, Endpoint(base_url))


def request(text: str = "hi", *, settings: Mapping[str, Any] | None = None, **fields: Any) -> ModelRequest:
    return ModelRequest("m", "be kind", [UserMessage([TextBlock(text)])], settings=settings or {}, **fields)


def nothing(*_: Any) -> None: ...


def returning(answer: Any) -> Callable[..., Any]:
    """Return a handler that always returns ``answer``."""

    def handler(*_: Any) -> Any:
        return answer

    return handler


def of_view(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return function


async def prepare(
    declaration: Declaration, wanted: ModelRequest | None = None, *, wire: str | None = None
) -> PreparedCall:
    return await caller(declaration, wire=wire, base_url="http://127.0.0.1:1/v1").prepare(wanted or request())


def unchanged_messages(_self: Any, messages: Any) -> dict[str, Any]:
    return {"messages": messages}


# --- the request ------------------------------------------------------------------------------------------------


async def test_earlier_parts_of_a_body_take_precedence_and_tables_are_merged() -> None:
    def build(name: str) -> Any:
        return returning({name: name, "who": name, "table": {name: 1, "who": name}})

    declaration = declared(
        body={"body": "body", "who": "body", "table": {"body": 1, "who": "body"}},
        handlers={
            "request": {
                "build_messages": build("messages"),
                "build_tools": build("tools"),
                "build_body": build("set_body"),
            },
            "parse_chat": nothing,
        },
        parameters={"who": "parameters", "table": {"who": "parameters"}},
    )

    exchange = await prepare(declaration, request(tools=[ToolSpec("t", "", ToolSchema.of({}))]))

    assert exchange.request.body == {
        "who": "parameters",
        "table": {"who": "parameters", "messages": 1, "tools": 1, "body": 1, "set_body": 1},
        "messages": "messages",
        "tools": "tools",
        "body": "body",
        "set_body": "set_body",
    }


async def test_the_wire_writes_the_parts_without_a_handler() -> None:
    declaration = declared(url=None, parameters={"safe_prompt": True, "stream_options": {"x": 1}})

    exchange = await prepare(declaration, wire="openai")

    assert exchange.request.url == "http://127.0.0.1:1/v1/chat/completions"
    assert exchange.request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True, "x": 1},
        "safe_prompt": True,
    }


async def test_a_part_written_by_a_handler_replaces_that_of_the_wire() -> None:
    declaration = declared(
        url=None,
        handlers={"form_messages": returning({"messages": ["mine"]}), "form_tools": nothing},
    )

    exchange = await prepare(declaration, request(tools=[ToolSpec("t", "", ToolSchema.of({}))]), wire="openai")

    assert exchange.request.body["messages"] == ["mine"]
    assert "tools" not in exchange.request.body


async def test_placeholders_are_replaced_in_address_headers_and_parameters_but_not_in_the_body() -> None:
    declaration = declared(
        url="${host}/v1/${model}:go",
        env={"host": "http://127.0.0.1:1", "key": "THE_KEY", "model": "schema.model.default", "none": "NOT_SET"},
        headers={"X-Key": "Key ${key}", "X-Made": of_view(lambda view: f"{view.name} ${{model}}")},
        parameters={"who": "${model}", "deep": {"who": "${model}", "n": 1}},
        body={"who_else": "${model}"},
        schema={"model": {"default": "other"}},
        handlers={"form_messages": nothing, "chat_output": nothing},
    )

    exchange = await prepare(declaration)

    assert exchange.request.url == "http://127.0.0.1:1/v1/m:go"
    assert exchange.request.headers["X-Key"] == f"Key {SECRET}"
    assert exchange.request.headers["X-Made"] == "mine m"
    assert exchange.request.body == {"who": "m", "deep": {"who": "m", "n": 1}, "who_else": "${model}"}
    assert SECRET in exchange.secrets


@pytest.mark.parametrize("field", ["url", "headers", "parameters"])
async def test_an_undefined_value_is_an_error_with_its_name(field: str) -> None:
    fields: dict[str, Any] = {
        "url": "http://x/${api_key}",
        "headers": {"A": "${api_key}"},
        "parameters": {"a": "${api_key}"},
    }
    declaration = declared(env={"api_key": "NOT_SET"}, handlers={"chat_output": nothing}, **{field: fields[field]})

    with pytest.raises(MissingValueError, match=r"\$\{api_key\} has no value: .* NOT_SET is not set"):
        await prepare(declaration)


async def test_a_header_with_a_missing_optional_value_is_omitted() -> None:
    declaration = declared(
        env={"key": {"value": "NOT_SET", "optional": True}},
        headers={"Authorization": "Bearer ${key}", "X-Off": False},
        handlers={"chat_output": nothing},
    )

    exchange = await prepare(declaration)

    assert not {"Authorization", "X-Off"} & set(exchange.request.headers)


async def test_headers_are_computed_after_the_body() -> None:
    def build_body(self: Any, payload: Any) -> None:
        self.headers["X-Messages"] = str(len(payload["messages"]))

    exchange = await prepare(declared(handlers={"set_body": build_body, "chat_output": nothing}))

    assert exchange.request.headers["X-Messages"] == "2"


async def test_setup_runs_before_values_are_resolved_and_can_change_their_source() -> None:
    def setup(self: Any) -> bool:
        assert self.env_replaced == {}
        self.env["key"] = "THE_KEY"
        return True

    declaration = declared(
        env={"key": "NOT_SET"}, headers={"A": "${key}"}, handlers={"setup": setup, "chat_output": nothing}
    )

    assert (await prepare(declaration)).request.headers["A"] == SECRET


async def test_setup_agrees_with_true_or_nothing_and_refuses_with_false() -> None:
    for answer in (None, True):
        await prepare(declared(handlers={"setup": returning(answer), "chat_output": nothing}))

    with pytest.raises(ProviderRequestError, match="adapter 'mine' refused the request: its setup returned false"):
        await prepare(declared(handlers={"setup": returning(False), "chat_output": nothing}))
    with pytest.raises(AdapterError, match="its handler setup must return true, or false to refuse the request"):
        await prepare(declared(handlers={"setup": returning("no"), "chat_output": nothing}))


@pytest.mark.parametrize("kind", [KeyError, SystemExit, GeneratorExit])
async def test_the_error_of_a_failing_handler_has_its_name_without_its_message(kind: type[BaseException]) -> None:
    def broken(*_: Any) -> None:
        raise kind(SECRET)

    with pytest.raises(AdapterError) as raised:
        await prepare(declared(handlers={"form_messages": broken, "chat_output": nothing}))

    place = f"test_pipeline.py:{broken.__code__.co_firstlineno + 1}"
    assert str(raised.value) == f"adapter 'mine': its handler build_messages failed ({kind.__name__} at {place})"


async def test_settings_are_written_as_mapped_and_a_message_can_override_them() -> None:
    declaration = declared(
        url=None,
        schema={
            "model": {"mapping": "parameters", "default": "large"},
            "temperature": {"mapping": "parameters", "type": "number", "default": 0.5},
            "reasoning.effort": {"mapping": "parameters", "default": "low"},
            "thinkingLevel": {"mapping": "body.generationConfig.thinkingConfig", "default": "high"},
            "unsent": {"default": "x"},
        },
    )
    first = await prepare(declaration, wire="openai")
    other = await prepare(declaration, request(settings={"temperature": 1.5}), wire="openai")

    assert (first.request.body["temperature"], other.request.body["temperature"]) == (0.5, 1.5)
    assert first.request.body["model"] == "m"
    assert first.request.body["reasoning"] == {"effort": "low"}
    assert first.request.body["generationConfig"] == {"thinkingConfig": {"thinkingLevel": "high"}}
    assert "unsent" not in first.request.body
    with pytest.raises(InvalidRequestError, match="unknown setting 'temp'"):
        await prepare(declaration, request(settings={"temp": 1}), wire="openai")


async def test_the_options_of_the_chosen_model_override_those_of_the_adapter() -> None:
    views: list[Any] = []

    def setup(self: Any) -> None:
        views.append((self.opts, self.model["meta"], self.model["formatted_name"]))

    declaration = declared(
        opts={"vision": True, "tools": True},
        schema={
            "model": {
                "choices": {"m": {"formatted_name": "M", "opts": {"vision": False}, "meta": {"context_window": 5}}}
            },
            "effort": {
                "enabled": of_view(lambda view: view.opts.get("can_reason")),
                "default": "x",
                "mapping": "parameters",
            },
        },
        handlers={"setup": setup, "chat_output": nothing},
    )

    exchange = await prepare(declaration)

    assert views == [({"vision": False, "tools": True}, {"context_window": 5}, "M")]
    assert "effort" not in exchange.request.body


async def test_a_session_overrides_address_and_key() -> None:
    declaration = declared(
        url=None,
        env={"base_url": "https://far.example", "api_key": "NOT_SET"},
    )

    exchange = await caller(
        declaration, wire="openai", given={"base_url": "http://127.0.0.1:1/mine/", "api_key": "k"}
    ).prepare(request())

    assert exchange.request.url == "http://127.0.0.1:1/mine/chat/completions"
    assert exchange.request.headers["Authorization"] == "Bearer k"


# --- the conversation in canonical form -------------------------------------------------------------------------


CONVERSATION = [
    UserMessage([TextBlock("look"), ImageBlock("aWk=", "image/png", "pic.png")]),
    AssistantMessage(
        [
            ReasoningBlock("hm", "mine", {"content": "hm", "signature": "s"}),
            ReasoningBlock("foreign", "other"),
            TextBlock("I look."),
            ToolUseBlock("c1", "weather", '{"city": "Paris"}', {"city": "Paris"}, "mine", {"extra_content": "e"}),
        ]
    ),
    ToolMessage([ToolResultBlock("c1", "weather", "sunny", is_error=True)]),
]

CALL = {
    "extra_content": "e",
    "_index": 0,
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Paris"}'},
}


async def test_handlers_see_the_conversation_in_canonical_form() -> None:
    declaration = declared(
        roles={"llm": "model", "user": "human"},
        handlers={"form_messages": unchanged_messages, "chat_output": nothing},
    )

    exchange = await prepare(declaration, ModelRequest("m", "be kind", list(CONVERSATION)))

    hidden = {"visible": False}
    assert exchange.request.body["messages"] == [
        {"role": "system", "content": "be kind"},
        {
            "role": "human",
            "content": "aWk=",
            "context": {"mimetype": "image/png", "path": "pic.png"},
            "opts": hidden,
            "_meta": {"tag": "image"},
        },
        {"role": "human", "content": "look"},
        {"role": "model", "content": "I look.", "reasoning": {"content": "hm", "signature": "s"}},
        {"role": "model", "tools": {"calls": [CALL]}, "opts": hidden},
        {
            "role": "tool",
            "content": "sunny",
            "tools": {"call_id": "c1", "name": "weather", "is_error": True},
            "opts": hidden,
        },
    ]


async def test_format_response_returns_the_message_for_a_tool_result() -> None:
    def format_response(self: Any, call: Any, output: str) -> dict[str, Any]:
        return {"role": self.roles["tool"], "content": f"{call['function']['name']}: {output}"}

    declaration = declared(
        roles={"tool": "function"},
        handlers={
            "form_messages": unchanged_messages,
            "chat_output": nothing,
            "tools": {"output_response": format_response},
        },
    )

    exchange = await prepare(declaration, ModelRequest("m", "", list(CONVERSATION)))

    assert exchange.request.body["messages"][-1] == {
        "role": "function",
        "content": "weather: sunny",
        "tools": {"is_error": True},
    }


# --- the answer -------------------------------------------------------------------------------------------------


def lines(*chunks: Any) -> Reply:
    return event_stream(*(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks))


def parse_chat(_self: Any, data: str | dict[str, Any], tools: list[Any]) -> dict[str, Any] | None:
    """A made-up wire: ``{"say": text}``, ``{"think": text}``, ``{"call": {...}}``, ``{"fail": text}``."""
    chunk = json.loads(data["body"] if isinstance(data, dict) else data[data.index("{") :])
    if "call" in chunk:
        tools.append(chunk["call"])
        return None
    if "fail" in chunk:
        return {"status": "error", "output": chunk["fail"]}
    output = {"role": "assistant", "content": chunk.get("say")}
    if "think" in chunk:
        output["reasoning"] = {"content": chunk["think"], "sig": chunk["sig"]}
    return {"status": "success", "output": output}


@pytest.fixture
async def transport() -> AsyncGenerator[HttpTransport]:
    async with HttpTransport() as transport:
        yield transport


async def talk(
    transport: HttpTransport,
    url: str,
    wanted: ModelRequest | None = None,
    *,
    wire: str | None = None,
    **fields: Any,
) -> list[ModelEvent]:
    declaration = declared(url=None if wire else url, **fields)
    model = HttpModel(caller(declaration, wire=wire, base_url=url), transport)
    async with model.stream(wanted or request()) as events:
        return [event async for event in events]


async def test_handlers_without_a_wire_decode_text_reasoning_calls_and_tokens(transport: HttpTransport) -> None:
    def build_reasoning(_self: Any, chunks: list[Any]) -> dict[str, Any]:
        return {"content": "".join(c["content"] for c in chunks), "sig": chunks[-1]["sig"]}

    def tokens(_self: Any, data: str) -> int | None:
        return cast("int | None", json.loads(data[5:]).get("tokens"))

    async with ModelServer(
        lines(
            {"think": "a", "sig": "1"},
            {"think": "b", "sig": "2"},
            {"say": "Hel"},
            {"say": "lo"},
            {"call": {"id": "c1", "name": "weather", "input": '{"city": '}},
            {"tokens": 12},
        )
    ) as server:
        events = await talk(
            transport,
            server.url,
            handlers={
                "response": {"parse_chat": parse_chat, "parse_tokens": tokens},
                "request": {"build_messages": unchanged_messages, "build_reasoning": build_reasoning},
            },
        )

    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hel", "lo"]
    assert [e.text for e in events if isinstance(e, ReasoningDelta)] == ["a", "b"]
    completed = events[-1]
    assert isinstance(completed, Completed)
    assert completed.message.blocks == [
        ReasoningBlock("ab", "mine", {"content": "ab", "sig": "2"}),
        TextBlock("Hello"),
        ToolUseBlock("c1", "weather", '{"city": ', None),
    ]
    assert completed.stop_reason == "tool_use"
    assert completed.usage is not None
    assert completed.usage.input_tokens == 12


async def test_format_calls_converts_the_collected_calls_to_canonical_ones(transport: HttpTransport) -> None:
    def format_calls(_self: Any, tools: list[Any]) -> list[Any]:
        return [{"id": t["id"], "function": {"name": t["n"], "arguments": t["a"]}, "sig": "s"} for t in tools]

    async with ModelServer(json_reply({"call": {"id": "c1", "n": "weather", "a": "{}"}})) as server:
        events = await talk(
            transport,
            server.url,
            handlers={"chat_output": parse_chat, "tools": {"format_tool_calls": format_calls}},
        )

    completed = events[-1]
    assert isinstance(completed, Completed)
    assert completed.message.blocks == [ToolUseBlock("c1", "weather", "{}", {}, "mine", {"sig": "s"})]


async def test_an_error_reported_by_a_handler_is_a_typed_error_with_secrets_masked(
    transport: HttpTransport,
) -> None:
    async with ModelServer(lines({"say": "x"}, {"fail": f"bad key {SECRET}"})) as server:
        with pytest.raises(ProviderError, match=r"bad key \[redacted\]"):
            await talk(
                transport,
                server.url,
                env={"key": "THE_KEY"},
                headers={"A": "${key}"},
                handlers={"chat_output": parse_chat},
            )


async def test_the_error_of_a_failing_parser_has_its_name(transport: HttpTransport) -> None:
    async with ModelServer(event_stream(b"data: no json\n\n")) as server:
        with pytest.raises(AdapterError, match=r"parse_chat failed \(ValueError at test_pipeline.py:\d+\)"):
            await talk(transport, server.url, handlers={"chat_output": parse_chat})


@pytest.mark.parametrize("name", ["parse_meta", "parse_extra", "parse_message_meta"])
async def test_fields_unknown_to_the_wire_reach_the_handler_under_each_of_its_names(
    transport: HttpTransport, name: str
) -> None:
    def parse_extra(_self: Any, data: Any) -> Any:
        data["output"]["reasoning"] = {"content": data["extra"]["inner_voice"]}
        return data

    async with ModelServer(
        lines(
            {"choices": [{"delta": {"role": "assistant", "content": "", "inner_voice": "hm"}}]},
            {"choices": [{"delta": {"content": "Hello"}}]},
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        )
    ) as server:
        events = await talk(transport, server.url, wire="openai", handlers={"response": {name: parse_extra}})

    assert [type(e) for e in events] == [ReasoningDelta, TextDelta, Completed]
    completed = events[-1]
    assert isinstance(completed, Completed)
    assert completed.message.blocks == [ReasoningBlock("hm", "mine"), TextBlock("Hello")]


async def test_the_content_of_a_delta_can_be_moved_to_its_reasoning(transport: HttpTransport) -> None:
    def parse_extra(data: Any) -> Any:
        if data["extra"].get("thinks"):
            data["output"] = {"reasoning": {"content": data["output"]["content"]}, "content": None}
        return data

    async with ModelServer(
        lines(
            {"choices": [{"delta": {"content": "hm", "thinks": True}}]},
            {"choices": [{"delta": {"content": "Hello", "thinks": False}}]},
            {"choices": [{"delta": {"content": "!"}, "finish_reason": "stop"}]},
        ),
        json_reply({"choices": [{"message": {"content": "hm", "thinks": True}, "finish_reason": "stop"}]}),
    ) as server:
        streamed = await talk(transport, server.url, wire="openai", handlers={"parse_extra": parse_extra})
        whole = await talk(transport, server.url, wire="openai", handlers={"parse_extra": parse_extra})

    assert [type(event) for event in streamed] == [ReasoningDelta, TextDelta, TextDelta, Completed]
    assert isinstance(streamed[-1], Completed)
    assert streamed[-1].message.blocks == [ReasoningBlock("hm", "mine"), TextBlock("Hello!")]
    assert isinstance(whole[-1], Completed)
    assert whole[-1].message.blocks == [ReasoningBlock("hm", "mine")]


# --- after the answer -------------------------------------------------------------------------------------------


def recorder() -> tuple[list[Any], dict[str, Any]]:
    log: list[Any] = []

    def on_exit(_self: Any, data: Any) -> None:
        log.append(("on_exit", data["status"], data["body"]))

    def teardown(_self: Any) -> None:
        log.append("teardown")

    return log, {"on_exit": on_exit, "teardown": teardown, "chat_output": parse_chat}


async def test_on_exit_and_then_teardown_run_after_the_answer(transport: HttpTransport) -> None:
    log, handlers = recorder()
    async with ModelServer(lines({"say": "x"})) as server:
        await talk(transport, server.url, handlers=handlers)

    assert log == [("on_exit", 200, ""), "teardown"]


async def test_on_exit_receives_the_body_of_an_error(transport: HttpTransport) -> None:
    log, handlers = recorder()
    async with ModelServer(json_reply({"error": "no"}, status=401)) as server:
        with pytest.raises(ProviderError):
            await talk(transport, server.url, handlers=handlers)

    assert log == [("on_exit", 401, '{"error": "no"}'), "teardown"]


async def test_a_cancelled_call_is_torn_down(transport: HttpTransport) -> None:
    log, handlers = recorder()
    async with ModelServer(event_stream(b'data: {"say": "x"}\n\n', ending="hang")) as server:
        model = HttpModel(caller(declared(url=server.url, handlers=handlers)), transport)
        with anyio.CancelScope() as scope:
            async with model.stream(request()) as events:
                async for _ in events:
                    scope.cancel()

    assert log == [("on_exit", 200, ""), "teardown"]


async def test_concurrent_calls_share_no_state(transport: HttpTransport) -> None:
    views: list[Any] = []

    def setup(self: Any) -> None:
        views.append(self)
        self.parameters["n"] = len(views)
        self.temp["n"] = len(views)

    declaration = declared(handlers={"setup": setup, "chat_output": parse_chat}, parameters={"deep": {"x": 1}})
    first, second = await prepare(declaration), await prepare(declaration)

    assert (first.request.body, second.request.body) == ({"deep": {"x": 1}, "n": 1}, {"deep": {"x": 1}, "n": 2})
    assert declaration.parameters == {"deep": {"x": 1}}


# --- a function in place of the network ---------------------------------------------------------------------------


def replaced(function: Callable[..., Any], **fields: Any) -> Declaration:
    return read_declaration(
        {"name": "mine", "env": {"base_url": "http://127.0.0.1:1", "api_key": SECRET}, **fields}
        | {"opts": {"request": function, **fields.get("opts", {})}},
        where="mine",
    )


async def told(declaration: Declaration, transport: HttpTransport) -> str:
    model = HttpModel(caller(declaration, wire="openai"), transport)
    async with model.stream(request("what?")) as events:
        last = [event async for event in events][-1]
    assert isinstance(last, Completed)
    return last.message.text()


def chunk(text: str, reason: str | None = None) -> JsonObject:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


async def test_a_function_in_place_of_the_network_receives_and_answers_the_call(transport: HttpTransport) -> None:
    received: list[Any] = []

    def whole(client: Any, payload: Any, _actions: Any, opts: Any) -> Any:
        received.append((client, payload, opts))
        message = {"content": "Whole."}
        return {"status": 200, "body": {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}}

    async def pieces(*_: Any) -> Any:
        for item in (chunk("In "), f"data: {json.dumps(chunk('pieces.', 'stop'))}", "data: [DONE]"):
            yield item

    async def lines(*_: Any) -> Any:
        return [json.dumps(chunk("Lines.", "stop"))]

    def called(_client: Any, _payload: Any, actions: Any, _opts: Any) -> None:
        actions.callback(None, chunk("Called.", "stop"))
        actions.callback(None, "data: [DONE]")
        actions.done()

    assert [await told(replaced(reply), transport) for reply in (whole, pieces, lines, called)] == [
        "Whole.",
        "In pieces.",
        "Lines.",
        "Called.",
    ]
    client, payload, opts = received[0]
    assert (client.method, client.url) == ("POST", "http://127.0.0.1:1/chat/completions")
    assert client.body["messages"][-1] == {"role": "user", "content": "what?"}
    assert client.headers["authorization"] == f"Bearer {SECRET}"
    assert payload["messages"][-1] == {"role": "user", "content": "what?"}
    assert opts == {"stream": True}


async def test_a_failing_function_in_place_of_the_network_is_a_typed_error(transport: HttpTransport) -> None:
    def raises(*_: Any) -> Any:
        raise ValueError(SECRET)

    async def breaks(*_: Any) -> Any:
        yield chunk("Half")
        raise ValueError(SECRET)

    def refuses(*_: Any) -> Any:
        return {"status": 429, "headers": {"Retry-After": "3"}, "body": {"error": {"message": f"no {SECRET}"}}}

    def reports(_client: Any, _payload: Any, actions: Any, _opts: Any) -> None:
        actions.callback("the line is dead")

    async def failing(function: Callable[..., Any]) -> ProviderError:
        with pytest.raises(ProviderError) as caught:
            await told(replaced(function), transport)
        assert SECRET not in str(caught.value)
        return caught.value

    assert "its opts.request failed (ValueError at test_pipeline.py:" in str(await failing(raises))
    assert "its opts.request failed (ValueError at test_pipeline.py:" in str(await failing(breaks))
    refused = await failing(refuses)
    assert (refused.status, refused.retryable, refused.retry_after_s) == (429, True, 3)
    assert "the line is dead" in str(await failing(reports))


async def test_on_exit_and_teardown_run_after_a_function(transport: HttpTransport) -> None:
    steps: list[str] = []

    def noted(name: str) -> Callable[..., None]:
        return lambda *_: steps.append(name)

    handlers = {name: noted(name) for name in ("setup", "on_exit", "teardown")}
    declaration = replaced(lambda *_: [chunk("ok", "stop")], handlers=handlers)

    assert await told(declaration, transport) == "ok"
    assert steps == ["setup", "on_exit", "teardown"]
