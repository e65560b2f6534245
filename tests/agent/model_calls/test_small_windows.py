"""Small windows: their server is asked for them before the first request, and they decide about the tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.events import data_of
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply, text_reply
from tests.support.provided import at
from tests.support.server import JsonObject, running_server

pytestmark = pytest.mark.anyio

MINIMAL = {"bash", "create", "edit", "grep", "view"}
NO_ANSWER = Reply(ending="hang", silent=True)
PATIENT = f"[limits]\nserver_question_s = {WAIT_S}\n"


class Provider:
    """A model that only says hello. ``said`` are the answers of its server to questions, by path."""

    def __init__(self, said: dict[str, Reply]) -> None:
        self.said = said
        self.server = ModelServer(answer=self._answer, lists=True)

    def _answer(self, request: SeenRequest) -> Reply:
        if request.method == "GET":
            return self.said.get(request.path, text_reply("unknown", status=404))
        message = {"role": "assistant", "content": "hello"}
        return json_reply({"choices": [{"message": message, "finish_reason": "stop"}]})

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.server.requests if request.method == "GET"]

    @property
    def offered(self) -> list[set[str]]:
        """The tools of each request."""
        posts = (request.json for request in self.server.requests if request.method == "POST")
        return [{tool["function"]["name"] for tool in post["tools"]} for post in posts]


def vllm(window: int) -> dict[str, Reply]:
    entry = {"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": window}
    return {"/v1/models": json_reply({"data": [entry]})}


def llama(window: int) -> dict[str, Reply]:
    state = {"default_generation_settings": {"n_ctx": window}}
    listed = {"data": [{"id": "model.gguf", "owned_by": "llamacpp"}]}
    return {"/v1/models": json_reply(listed), "/props": json_reply(state)}


def lm_studio(window: int) -> dict[str, Reply]:
    listed = {"data": [{"id": "m", "owned_by": "organization_owner"}]}
    loaded = {"data": [{"id": "m", "loaded_context_length": window}]}
    return {"/v1/models": json_reply(listed), "/api/v0/models": json_reply(loaded)}


def ollama(window: int) -> dict[str, Reply]:
    listed = {"data": [{"id": "m", "owned_by": "library"}]}
    running = {"models": [{"model": "m:latest", "context_length": window}]}
    return {"/v1/models": json_reply(listed), "/api/ps": json_reply(running)}


@pytest.mark.parametrize("says", [vllm, llama, lm_studio, ollama])
@pytest.mark.parametrize("named", ["session", "configuration"])
async def test_a_small_window_that_the_server_tells_decides_the_tools_of_the_first_request(
    tmp_path: Path, says: Callable[[int], dict[str, Reply]], named: str
) -> None:
    provider = Provider(says(8000))
    async with provider.server:
        adapter = PATIENT + f'[adapters.f]\ntype = "openai_compatible"\nbase_url = "{provider.server.url}/v1"\n'
        async with running_server(tmp_path, config=adapter) as server:
            own = at(provider.server) if named == "session" else None
            for _ in range(2):
                session = await server.wire.create(own, model="m" if own else "f/m")
                events = [*await server.wire.prompt(session), *await server.wire.prompt(session)]
                (told,) = data_of(events, "session.info")
                assert "its window is 8,000 tokens" in told["message"]
    assert provider.offered == [MINIMAL] * 4
    assert provider.asked == list(provider.said)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"/v1/models": NO_ANSWER},
        {"/v1/models": text_reply("Loading model", status=503)},
        {"/v1/models": json_reply({"data": []})},
        {"/v1/models": json_reply(["?"])},
        vllm(64_000),
    ],
)
async def test_a_server_that_names_no_small_window_is_asked_once_and_gets_the_usual_tools(
    tmp_path: Path, said: dict[str, Reply]
) -> None:
    provider = Provider(said)
    waits = "[limits]\nserver_question_s = 0.1\n" if NO_ANSWER in said.values() else PATIENT
    async with provider.server, running_server(tmp_path, config=waits) as server:
        for _ in range(2):
            session = await server.wire.create(at(provider.server), model="m")
            events = [*await server.wire.prompt(session), *await server.wire.prompt(session)]
            assert not {event["type"] for event in events} & {"session.info", "session.warning", "session.error"}
    assert all(tools > MINIMAL for tools in provider.offered)
    assert provider.asked == ["/v1/models"]


async def test_no_question_precedes_requests_of_models_whose_window_or_tools_are_known(tmp_path: Path) -> None:
    provider = Provider(vllm(8000))
    known: list[tuple[JsonObject, JsonObject]] = [
        ({"maxPromptTokens": 7000}, {"model": "m"}),
        ({}, {"model": "gpt-5"}),
        ({"apiKeyCommand": "echo key"}, {"model": "m"}),
        ({}, {"model": "m", "availableTools": ["view"]}),
        ({}, {"model": "m", "availableTools": ["@default"]}),
    ]
    async with provider.server, running_server(tmp_path) as server:
        for options, session_options in known:
            session = await server.wire.create(at(provider.server, **options), **session_options)
            await server.wire.prompt(session)
    assert provider.asked == []


@pytest.mark.parametrize("chosen", ["session", "argument", "configuration"])
async def test_the_usual_tools_are_offered_in_a_small_window_to_whoever_chooses_them(
    tmp_path: Path, chosen: str
) -> None:
    provider = Provider({})
    config = '[tools]\noffered = "default"\n' if chosen == "configuration" else None
    args = ("--tools", "default") if chosen == "argument" else ()
    options: JsonObject = {"availableTools": ["@default"]} if chosen == "session" else {}
    async with provider.server, running_server(tmp_path, config=config, args=args) as server:
        session = await server.wire.create(at(provider.server, maxPromptTokens=7000), model="m", **options)
        assert data_of(await server.wire.prompt(session), "session.info") == []
    (offered,) = provider.offered
    assert offered > MINIMAL
    assert "call_tools" not in offered


async def test_a_resumed_session_does_not_say_again_that_its_model_gets_few_tools(tmp_path: Path) -> None:
    provider = Provider({})
    async with provider.server:
        own = at(provider.server, maxPromptTokens=7000)
        async with running_server(tmp_path) as server:
            session = await server.wire.create(own, model="m")
            assert len(data_of(await server.wire.prompt(session), "session.info")) == 1
        async with running_server(tmp_path) as server:
            await server.wire.call("session.resume", {"sessionId": session, "provider": own, "model": "m"})
            assert data_of(await server.wire.prompt(session), "session.info") == []
    assert provider.offered == [MINIMAL] * 2
