"""``hostedTools``: tools that providers run, in requests, events, the log and later requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

import pytest

from tests.adapters.golden import DATA
from tests.support.events import data_of
from tests.support.model_server import ModelServer, Reply, event_stream
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

SEARCHED: Final = {"queries": ["wetter köln"]}
RAN: Final = {"language": "PYTHON", "code": "print(6*7)"}
PROVIDERS: Final[dict[str, tuple[str, str, list[JsonObject], str, list[JsonObject]]]] = {
    "anthropic": (
        "web_search.sse",
        "web_search",
        [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}],
        "messages",
        [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": "https://a.example",
                        "title": "A",
                        "encrypted_content": "RU4=",
                        "page_age": None,
                    }
                ],
            },
        ],
    ),
    "openai_responses": (
        "web_search.sse",
        "web_search",
        [{"type": "web_search", "max_uses": 2}],
        "input",
        [
            {
                "id": "ws_1",
                "type": "web_search_call",
                "status": "completed",
                "action": {"type": "search", "query": "rain in Bonn"},
            }
        ],
    ),
    "gemini": (
        "code_execution.sse",
        "code_execution",
        [{"codeExecution": {"max_uses": 2}}],
        "contents",
        [
            {"executableCode": RAN, "thoughtSignature": "EvIBCu8BAb4+9vs="},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
        ],
    ),
    "gemini_interactions": (
        "google_search.sse",
        "web_search",
        [{"type": "google_search", "max_uses": 2}],
        "input",
        [
            {"type": "google_search_call", "id": "s1", "arguments": SEARCHED, "signature": "EvIBCu8BAb4+9vs="},
            {
                "type": "google_search_result",
                "call_id": "s1",
                "result": [{"search_suggestions": "<div/>"}],
                "is_error": False,
                "signature": "CiQBjz1rXw==",
            },
        ],
    ),
    "openrouter": (
        "web_search.sse",
        "web_search",
        [{"type": "openrouter:web_search", "parameters": {"max_uses": 2}}],
        "messages",
        [{"type": "reasoning.server_tool_call", "id": "st_1", "name": "web_search"}],
    ),
}
"""The recording, the tool, its wire form, the field of the conversation, and the values it must contain."""


def objects(value: Any) -> list[JsonObject]:
    """Return all objects inside ``value``, in order."""
    if isinstance(value, dict):
        table = cast("JsonObject", value)
        return [table, *(node for item in table.values() for node in objects(item))]
    return [node for item in cast("list[Any]", value) for node in objects(item)] if isinstance(value, list) else []


def unmarked(value: Any) -> Any:
    """Return ``value`` without cache marks, which differ from request to request."""
    if isinstance(value, dict):
        table = cast("JsonObject", value)
        return {key: unmarked(item) for key, item in table.items() if key != "cache_control"}
    return [unmarked(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def provider(kind: str, server: ModelServer) -> JsonObject:
    return {"type": kind, "baseUrl": server.url, "apiKey": "k"}


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_hosted_calls_are_events_and_go_back_unchanged_also_after_a_resume(tmp_path: Path, kind: str) -> None:
    recording, name, form, field, kept = PROVIDERS[kind]
    replies = [event_stream((DATA / kind / recording).read_bytes()) for _ in range(3)]
    options: JsonObject = {"model": "gpt-5", "streaming": True, "availableTools": []}
    async with ModelServer(*replies) as server, running_server(tmp_path) as ours:
        wire, model = ours.wire, provider(kind, server)
        session = await wire.create(model, hostedTools=[{"name": name, "max_uses": 2}], **options)
        events = await wire.prompt(session)
        await wire.prompt(session, "and then?")
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": model, **options})
        await wire.prompt(session, "and now?")

    first, second, third = (unmarked(request.json) for request in server.requests)
    assert [body["tools"] for body in (first, second, third)] == [form] * 3
    sent = second[field]
    assert third[field][: len(sent)] == sent
    answer = objects(sent[len(first[field]) :])
    assert [block for block in answer if block in kept] == kept
    assert not data_of(events, "session.warning") + data_of(events, "session.error")
    blocks = data_of(events, "assistant.message")[0]["providerBlocks"]
    assert (
        {"anthropic", "openai_responses", "gemini", "gemini_interactions", "openrouter"}
        >= {block["provider"] for block in blocks if "provider" in block}
        == {kind}
    )


async def test_citations_have_their_sources_and_cited_text(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    async with running_server(tmp_path) as ours:
        for kind in ("anthropic", "openai_responses", "openrouter", "gemini_interactions"):
            recording = (DATA / kind / PROVIDERS[kind][0]).read_bytes()
            async with ModelServer(event_stream(recording)) as server:
                session = await ours.wire.create(provider(kind, server), model="m", streaming=True)
                (message,) = data_of(await ours.wire.prompt(session), "assistant.message")
                found[kind] = message.get("citations")

    assert found == {
        "anthropic": {
            "sources": [{"id": "1", "provider": "anthropic", "title": "A", "url": "https://a.example"}],
            "spans": [{"startIndex": 0, "endIndex": 12, "references": [{"sourceId": "1", "citedText": "sunny"}]}],
        },
        "openai_responses": {
            "sources": [
                {"id": "1", "provider": "openai", "title": "A", "url": "https://a.example/?utm_source=openai"}
            ],
            "spans": [{"startIndex": 4, "endIndex": 9, "references": [{"sourceId": "1"}]}],
        },
        "openrouter": {
            "sources": [{"id": "1", "provider": "openai", "title": "Rain", "url": "https://a.example"}],
            "spans": [
                {"startIndex": 0, "endIndex": 9, "references": [{"sourceId": "1", "citedText": "It rained."}]}
            ],
        },
        # Clients accept only two names of providers.
        "gemini_interactions": None,
    }


@pytest.mark.parametrize("kind", ["anthropic", "openai_responses"])
async def test_citations_are_reported_for_every_provider_type(tmp_path: Path, kind: str) -> None:
    recording = event_stream((DATA / kind / PROVIDERS[kind][0]).read_bytes())
    async with ModelServer(*[recording] * 3) as server:
        table = f'[adapters.mine]\ntype = "{kind}"\nbase_url = "{server.url}"\nmodels = ["m"]\n'
        declared = {"name": "declared", "extends": kind, "env": {"base_url": server.url, "api_key": "k"}}
        named = {**provider(kind, server), "name": "alpha"}
        async with running_server(tmp_path, config=table) as ours:
            await ours.wire.call("jumpseat.adapters.register", {"declaration": declared})
            for options in (
                {"model": "mine/m"},
                {"model": "declared/m"},
                {"model": "alpha/m", "providers": [named]},
            ):
                params = {"streaming": True, **options}
                session = (await ours.wire.call("session.create", params))["sessionId"]
                (message,) = data_of(await ours.wire.prompt(session), "assistant.message")
                (source,) = message["citations"]["sources"]
                assert source["title"] == "A"


async def test_a_model_without_the_tool_is_called_without_it_and_the_client_is_warned_once(tmp_path: Path) -> None:
    async with running_server(tmp_path) as ours:
        model = scripted({"text": "one"}, {"text": "two"}, {"text": "three"})
        session = await ours.wire.create(model, hostedTools=["web_search", {"name": "quantum"}])
        events = [*await ours.wire.prompt(session), *await ours.wire.prompt(session)]
        params: JsonObject = {"sessionId": session, "prompt": "three", "hostedTools": []}
        await ours.wire.call("session.sendAndWait", params)

    (warning,) = data_of(events, "session.warning")
    assert warning["warningType"] == "hosted_tool"
    assert warning["message"].endswith("does not support these hosted tools: quantum, web_search.")
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["one", "two"]


async def test_the_hosted_tools_of_a_message_apply_only_to_its_run(tmp_path: Path) -> None:
    plain = event_stream((DATA / "anthropic" / "plain.sse").read_bytes())
    async with ModelServer(plain, plain, plain) as server, running_server(tmp_path) as ours:
        wire = ours.wire
        options: JsonObject = {"model": "claude-sonnet-5", "streaming": True, "availableTools": []}
        session = await wire.create(provider("anthropic", server), hostedTools=["search"], **options)
        runs: list[JsonObject] = [{"hostedTools": ["web_fetch"]}, {"hostedTools": []}, {}]
        for more in runs:
            await wire.call("session.sendAndWait", {"sessionId": session, "prompt": "go", **more})

    names = [[tool["name"] for tool in request.json.get("tools", [])] for request in server.requests]
    assert names == [["web_fetch"], [], ["web_search"]]
    betas = [request.headers.get("anthropic-beta") for request in server.requests]
    assert betas == ["web-fetch-2025-09-10", None, None]


async def test_a_hosted_tool_replaces_the_equivalent_built_in_one(tmp_path: Path) -> None:
    plain = event_stream((DATA / "anthropic" / "plain.sse").read_bytes())
    async with (
        ModelServer(plain, plain) as server,
        running_server(tmp_path, env={"TAVILY_API_KEY": "key"}) as ours,
    ):
        options: JsonObject = {"model": "claude-sonnet-5", "streaming": True}
        session = await ours.wire.create(provider("anthropic", server), **options)
        hosted = ["web_search", "url_context"]
        for more in ({"hostedTools": hosted}, {}):
            await ours.wire.call("session.sendAndWait", {"sessionId": session, "prompt": "go", **more})

    with_hosted, without = [request.json["tools"] for request in server.requests]
    # The provider refuses two tools with the same name.
    web = {tool["name"]: tool.get("type", "ours") for tool in with_hosted if tool["name"].startswith("web_")}
    assert web == {"web_search": "web_search_20250305", "web_fetch": "web_fetch_20250910"}
    assert len(with_hosted) == len(without) == len({tool["name"] for tool in without})
    assert {tool["name"] for tool in without if "input_schema" in tool} >= {"web_search", "web_fetch", "bash"}


async def test_an_answer_paused_by_hosted_tools_is_continued(tmp_path: Path) -> None:
    paused = event_stream((DATA / "anthropic" / "pause_turn.sse").read_bytes())
    plain = event_stream((DATA / "anthropic" / "plain.sse").read_bytes())
    async with ModelServer(paused, plain) as server, running_server(tmp_path) as ours:
        session = await ours.wire.create(
            provider("anthropic", server), model="claude-sonnet-5", streaming=True, hostedTools=["web_search"]
        )
        events = await ours.wire.prompt(session)

    first, second = (request.json["messages"] for request in server.requests)
    assert [message["role"] for message in second[len(first) :]] == ["assistant"]
    assert len(data_of(events, "assistant.message")) == 2
    assert not data_of(events, "session.error")


# --- tools that the model was trained on, and that run here -----------------------------------------------------


def tool_use(number: int, name: str, given: JsonObject) -> Reply:
    call_id = f"toolu_{number}"
    block: JsonObject = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    return stream(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )


def stream(*events: JsonObject) -> Reply:
    all_events = [*events, {"type": "message_stop"}]
    return event_stream(b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in all_events))


def done() -> Reply:
    text = {"type": "text", "text": "Done."}
    return stream(
        {"type": "content_block_start", "index": 0, "content_block": text},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    )


EDITOR: Final = "str_replace_based_edit_tool"
NATIVE: Final[list[tuple[str, JsonObject, str, JsonObject]]] = [
    (
        EDITOR,
        {"command": "create", "path": "a.txt", "file_text": "one\ntwo"},
        "create",
        {"path": "a.txt", "file_text": "one\ntwo"},
    ),
    (
        EDITOR,
        {"command": "str_replace", "path": "a.txt", "old_str": "one", "new_str": "uno"},
        "edit",
        {"path": "a.txt", "old_str": "one", "new_str": "uno"},
    ),
    (
        EDITOR,
        {"command": "insert", "path": "a.txt", "insert_line": 2, "insert_text": "tre"},
        "edit",
        {"path": "a.txt", "old_str": "", "new_str": "tre", "insert_line": 2},
    ),
    (EDITOR, {"command": "view", "path": "a.txt"}, "view", {"path": "a.txt"}),
    ("bash", {"command": "cat a.txt"}, "bash", {"command": "cat a.txt"}),
    ("bash", {"restart": True}, "bash", {"command": ":", "description": "Start a new shell"}),
]


async def native_session(wire: Wire, server: ModelServer, folder: Path, **options: Any) -> str:
    return await wire.create(
        provider("anthropic", server),
        model="claude-sonnet-5",
        streaming=True,
        workingDirectory=str(folder),
        hostedTools=["bash", "text_editor"],
        **options,
    )


async def test_native_tools_of_a_model_run_as_built_in_ones_and_go_back_unchanged(tmp_path: Path) -> None:
    replies = [tool_use(number, name, given) for number, (name, given, _, _) in enumerate(NATIVE)]
    folder = tmp_path / "work"
    folder.mkdir()
    async with (
        ModelServer(*replies, done(), done()) as server,
        running_server(tmp_path / "home", args=["--yolo"]) as ours,
    ):
        wire = ours.wire
        session = await native_session(wire, server, folder)
        events = await wire.prompt(session)
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session, "provider": provider("anthropic", server)})
        await wire.prompt(session, "again")
        other: JsonObject = {"type": "scripted", "script": {"prompts": [{"turns": [{"text": "Hello"}]}]}}
        await wire.call("session.resume", {"sessionId": session, "provider": other, "hostedTools": []})
        elsewhere = await wire.prompt(session, "and you?")

    # For another model they are ordinary calls: nothing is left out.
    assert not data_of(elsewhere, "session.warning") + data_of(elsewhere, "session.error")
    assert (folder / "a.txt").read_text() == "uno\ntwo\ntre\n"
    started = data_of(events, "tool.execution_start")
    assert [(start["toolName"], start["arguments"]) for start in started] == [
        (ours, args) for *_, ours, args in NATIVE
    ]
    assert all(completion["success"] for completion in data_of(events, "tool.execution_complete"))
    deltas = data_of(events, "assistant.tool_call_delta")
    assert {delta["toolName"] for delta in deltas} == {"create", "edit", "view", "bash"}
    names = [tool["name"] for tool in server.requests[0].json["tools"]]
    assert names[-2:] == ["bash", EDITOR]
    assert not {"view", "create", "edit"} & set(names)
    assert names.count("bash") == 1
    last = server.requests[-1].json["messages"]
    uses = [node for node in objects(last) if node.get("type") == "tool_use"]
    assert [(use["name"], use["input"]) for use in uses] == [(name, given) for name, given, *_ in NATIVE]
    results = {node["tool_use_id"]: node["content"] for node in objects(last) if node.get("type") == "tool_result"}
    assert results["toolu_4"].startswith("uno\ntwo\ntre\n")


async def test_native_tools_of_a_model_require_the_same_approval(tmp_path: Path) -> None:
    name, given, ours_name, _ = NATIVE[0]
    folder = tmp_path / "work"
    folder.mkdir()
    async with ModelServer(tool_use(1, name, given)) as server, running_server(tmp_path / "home") as ours:
        wire = ours.wire
        session = await native_session(wire, server, folder, requestPermission=True)
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await wire.event("permission.requested", session=session)
        answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": {"kind": "reject"}}
        await wire.call("session.permissions.handlePendingPermissionRequest", answer)
        await wire.event("session.idle", session=session)
        events = wire.events(session, since=since)

    assert request["data"]["permissionRequest"]["kind"] == "write"
    assert data_of(events, "tool.execution_start")[0]["toolName"] == ours_name
    assert not (folder / "a.txt").exists()


async def test_an_excluded_built_in_tool_is_not_offered_as_a_native_one(tmp_path: Path) -> None:
    async with ModelServer(done()) as server, running_server(tmp_path) as ours:
        session = await native_session(ours.wire, server, tmp_path, excludedTools=["bash", "edit"])
        events = await ours.wire.prompt(session)

    names = {tool["name"] for tool in server.requests[0].json["tools"]}
    assert not names & {"bash", "edit", EDITOR}
    assert {"view", "create"} <= names
    (warning,) = data_of(events, "session.warning")
    assert warning["message"].endswith("bash, text_editor.")


async def test_bash_and_the_editor_are_not_missing_where_our_functions_stand_for_them(tmp_path: Path) -> None:
    data = (DATA / "openai" / "plain.sse").read_bytes()
    async with ModelServer(*[event_stream(data)] * 2) as server, running_server(tmp_path) as ours:
        model = provider("openai", server)
        hosted = ["bash", "text_editor"]
        session = await ours.wire.create(model, model="m", streaming=True, hostedTools=hosted)
        offered = await ours.wire.prompt(session)
        session = await ours.wire.create(
            model, model="m", streaming=True, hostedTools=hosted, excludedTools=["bash"]
        )
        excluded = await ours.wire.prompt(session)

    functions = {tool["function"]["name"] for tool in server.requests[0].json["tools"]}
    assert {"bash", "view", "create", "edit"} <= functions
    assert not [event for event in offered if event["type"] == "session.warning"]
    (warning,) = data_of(excluded, "session.warning")
    assert warning["message"].endswith("does not support these hosted tools: bash.")


async def test_a_search_model_over_chat_completions_gets_the_options_of_its_search(tmp_path: Path) -> None:
    data = (DATA / "openai" / "annotations.sse").read_bytes()
    search = {"name": "web_search", "search_context_size": "low"}
    async with ModelServer(*[event_stream(data)] * 2) as server, running_server(tmp_path) as ours:
        model = provider("openai", server)
        session = await ours.wire.create(
            model, model="gpt-4o-search-preview", streaming=True, hostedTools=[search], availableTools=[]
        )
        events = await ours.wire.prompt(session)
        await ours.wire.prompt(session)

    first, second = (request.json for request in server.requests)
    assert first["web_search_options"] == {"search_context_size": "low"}
    assert not data_of(events, "session.warning")
    (message,) = data_of(events, "assistant.message")
    (found,) = [block for block in message["providerBlocks"] if block["type"] == "hosted_tool_result"]
    assert found["results"] == [{"title": "W", "url": "https://w.example", "snippet": "sun"}]
    # The wire has no form for a search that has run: the answer goes back as it was.
    assert second["messages"][2] == {"role": "assistant", "content": "Sunny."}
