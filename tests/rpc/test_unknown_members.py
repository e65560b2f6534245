"""Members that no type has: an error in our own methods, a warning or a refusal in those of the SDKs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jumpseat.rpc.routes import EXTENSIONS, load_route, meant_for_provider, misspelled_extension
from jumpseat_protocol.envelope import UNSUPPORTED
from jumpseat_protocol.members import UnknownMember, members_of, unknown_members
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.sdk_options import SENT
from jumpseat_protocol.sessions import SessionCreateParams, SessionSendParams
from tests.support.cases import all_cases
from tests.support.server import JsonObject, RunningServer, running_server, scripted


@pytest.mark.anyio
async def test_our_own_methods_refuse_unknown_members_and_name_the_nearest_known_one(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, dict[str, Any], str]] = {
        "at the top": ("jumpseat.adapters.get", {"nmae": "x"}, "nmae: unknown, did you mean 'name'?"),
        "nothing is near": ("jumpseat.adapters.list", {"zzz": 1}, "zzz: unknown, expected one of cwd"),
        "in an object": (
            "jumpseat.complete",
            {"prompt": "hi", "provider": {"type": "openai", "baseUlr": "http://x"}},
            "provider.baseUlr: unknown, did you mean 'baseUrl'?",
        ),
        "in an array": (
            "jumpseat.complete",
            {"messages": [{"role": "user", "contents": "hi"}]},
            "messages[0].contents: unknown, did you mean 'content'?",
        ),
        "in a union": (
            "jumpseat.complete",
            {"prompt": "hi", "responseFormat": {"type": "json_schema", "jsonSchema": {"name": "x", "scheme": {}}}},
            "responseFormat.jsonSchema.scheme: unknown, did you mean 'schema'?",
        ),
    }
    async with running_server(tmp_path) as server:
        with all_cases() as case:
            for name, (method, params, problem) in cases.items():
                with case(name):
                    error = await server.wire.error_of(method, params)
                    assert error == {"code": -32602, "message": f"Invalid params for {method}: {problem}"}


def warnings_of(server: RunningServer) -> list[str]:
    """Return the messages of the warnings so far."""
    return [event["data"]["message"] for event in server.wire.events() if event["type"] == "session.warning"]


@pytest.mark.anyio
async def test_a_session_names_its_options_without_effect_in_one_warning_and_none_of_their_values(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, args=["--log-level", "info"]) as server:
        provider = scripted({"text": "a"}, {"text": "b"}) | {"telepathy": "sk-1", "transport": "websockets"}
        session = await server.wire.create(
            provider,
            tools=[{"name": "a", "colour": "sk-2"}, {"name": "b", "colour": "sk-2"}],
            brandNew="sk-3",
            workingDirectry="sk-4",
            contextTier="long_context",
        )
        assert warnings_of(server) == [
            "session.create: without effect: "
            "'brandNew' (unknown to this server), "
            "'contextTier' (the window is that of the model), "
            "'provider.telepathy' (unknown to this server), "
            "'provider.transport' (providers are called over HTTP), "
            "'tools[0].colour' (unknown to this server), "
            "'workingDirectry' (unknown to this server, did you mean 'workingDirectory'?)"
        ]
        for _ in range(2):
            await server.wire.prompt(session, "hi", mood="sk-5")
        assert warnings_of(server)[1:] == ["session.send: without effect: 'mood' (unknown to this server)"]
        # A member is named once in a session, whichever request has it.
        await server.wire.call("session.options.update", {"sessionId": session, "contextTier": "long_context"})
        await server.wire.call("session.options.update", {"sessionId": session, "shell": {"processFlags": ["-x"]}})
        assert [text.partition(" (")[0] for text in warnings_of(server)[2:]] == [
            "session.options.update: without effect: 'shell'"
        ]

    logged = re.findall(r"([\w.]+): the member '(.*?)' is ignored", server.stderr)
    assert logged.count(("session.create", "tools.*.colour")) == 1
    assert "sk-" not in server.stderr


@pytest.mark.anyio
async def test_members_that_are_only_stored_are_named_too(tmp_path: Path) -> None:
    servers = {"one": {"command": "true", "autoApprove": ["x"], "oidc": True, "sourcePath": "x"}}
    async with running_server(tmp_path) as server:
        session = await server.wire.create(
            scripted({"text": "a"}),
            mcpServers=servers,
            customAgents=[{"name": "a", "prompt": "p", "mcpServers": servers}],
        )
        agents = {"explore": {"contextTier": "long_context"}, "task": {"contextTier": "inherit"}}
        settings = {"sessionId": session, "subagents": {"agents": agents}}
        await server.wire.call("session.tools.updateSubagentSettings", settings)
        stored = await server.wire.call("session.tools.getSubagentSettings", {"sessionId": session})
        assert stored["subagents"]["agents"] == agents
        opened, updated = warnings_of(server)
        assert re.findall(r"'([\w.\[\]]+)'", opened) == [
            "customAgents[0].mcpServers.one.autoApprove",
            "mcpServers.one.autoApprove",
            "mcpServers.one.oidc",
        ]
        assert re.findall(r"'([\w.\[\]]+)'", updated) == ["subagents.agents.explore.contextTier"]


@pytest.mark.anyio
async def test_options_that_ask_for_what_the_server_does_are_no_warning(tmp_path: Path) -> None:
    neutral = {"isExperimentalMode": True, "toolFilterPrecedence": "excluded", "envValueMode": "direct"}
    absent: dict[str, Any] = {
        "imageGeneration": {"enabled": False},
        "requestExtensions": False,
        "openCanvases": [],
        "ofTomorrow": 0,
    }
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "a"}), **neutral, **absent, contextTier=None)
        patch: dict[str, Any] = {"coauthorEnabled": False, "manageScheduleEnabled": False, "installedPlugins": []}
        await server.wire.call("session.options.update", {"sessionId": session, **patch})
        assert warnings_of(server) == []


@pytest.mark.anyio
async def test_requests_with_a_restriction_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "a"}))
        agent = {"name": "a", "prompt": "p", "hooks": {"preToolUse": [{"command": "deny"}]}}
        cases: dict[str, tuple[str, dict[str, Any], str]] = {
            "an installation": (
                "session.mcp.enable",
                {"serverName": "x", "expectedInstallationId": "i"},
                "expected",
            ),
            "hooks of an agent": ("session.options.update", {"customAgents": [agent]}, "customAgents[0].hooks"),
            "masked values": (
                "session.options.update",
                {"sandboxConfig": {"credentials": {"x": 1}}},
                "credentials",
            ),
            "the cloud": ("session.create", {"cloud": {}}, "cloud"),
            "one of tomorrow": ("session.send", {"prompt": "hi", "requireQuota": 3}, "requireQuota"),
            "another": ("session.name.set", {"name": "x", "expectedName": "y"}, "expectedName"),
        }
        with all_cases() as case:
            for name, (method, params, problem) in cases.items():
                with case(name):
                    error = await server.wire.error_of(method, {**params, "sessionId": session})
                    assert error["code"] == UNSUPPORTED
                    assert problem in error["message"]
        assert await server.wire.call("session.name.get", {"sessionId": session}) == {"name": None}
        # Where nothing is done, nothing can be restricted.
        transfer = {"toSessionId": session, "expectedFromSessionId": "x"}
        assert (await server.wire.call("sessions.transferRemoteControl", transfer))["transferred"] is False
        assert not [event for event in server.wire.events() if event["type"] == "user.message"]


@pytest.mark.anyio
async def test_a_misspelled_member_of_ours_in_a_method_of_the_sdks_is_a_warning(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "a"}), adapterSetings={"temperature": 1})
        assert warnings_of(server) == [
            "session.create: without effect: 'adapterSetings' (did you mean 'adapterSettings'?)"
        ]
        await server.wire.prompt(session, "hi", tool_choise={"mode": "none"})
        assert "'toolChoice'" in warnings_of(server)[1]


@pytest.mark.anyio
async def test_a_misspelled_member_of_a_provider_is_an_error_by_every_way(tmp_path: Path) -> None:
    good = {"type": "openai", "apiKey": "k"}
    named = {**good, "name": "own", "baseUrl": "http://127.0.0.1:1"}
    cases: dict[str, tuple[JsonObject, str]] = {
        **{
            name: (
                {"provider": {**good, name: "http://127.0.0.1:1"}},
                f"provider.{name}: unknown, did you mean 'baseUrl'?",
            )
            for name in (
                "baseURL",
                "base_Url",
                "baseUri",
                "api_base",
                "apiBase",
                "base",
                "endpoint",
                "host",
                "serverUrl",
                "gateway",
                "upstream",
            )
        },
        **{
            name: ({"provider": {"type": "openai", name: "k"}}, f"provider.{name}: unknown, did you mean 'apiKey'?")
            for name in ("apikey", "key", "secret", "auth_token")
        },
        "type": ({"provider": {"tpye": "anthropic"}}, "provider.tpye: unknown, did you mean 'type'?"),
        "headers": ({"provider": {**good, "header": {"a": "b"}}}, "did you mean 'headers'?"),
        "in Azure": ({"provider": {**good, "azure": {"apiVersoin": "1"}}}, "provider.azure.apiVersoin: unknown"),
        "named": ({"providers": [{**named, "baseURL": "http://x"}]}, "providers[0].baseURL: unknown, did you mean"),
        "model": (
            {"providers": [named], "models": [{"id": "m", "provider": "own", "wireModle": "x"}]},
            "models[0].wireModle: unknown, did you mean 'wireModel'?",
        ),
        "whole": ({"provder": good}, "provder: unknown, did you mean 'provider'?"),
        "outside": ({"baseUrl": "http://x"}, "baseUrl: unknown, did you mean 'provider.baseUrl'?"),
        "another name outside": ({"endpoint": "http://x"}, "endpoint: unknown, did you mean 'provider.baseUrl'?"),
        "another name": ({"byok": {"type": "openai", "apiKey": "k"}}, "byok: unknown, did you mean 'provider'?"),
        "of an agent": (
            {"customAgents": [{"name": "a", "prompt": "x", "provider": {"api_key": "k"}}]},
            "customAgents[0].provider: unknown, did you mean 'provider'?",
        ),
    }
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "ok"}))
        ways = {
            "session.create": {},
            "session.resume": {"sessionId": session},
            "session.options.update": {"sessionId": session},
        }
        with all_cases() as case:
            for method, more in ways.items():
                for name, (params, message) in cases.items():
                    with case((method, name)):
                        error = await wire.error_of(method, {**more, **params})
                        assert message in error["message"]
            with case("provider that is added"):
                added = {"sessionId": session, "providers": [{**named, "api_base": "http://x"}]}
                error = await wire.error_of("session.provider.add", added)
                assert "providers[0].api_base: unknown, did you mean 'baseUrl'?" in error["message"]
            with case("not near"):
                await wire.create({**scripted({"text": "ok"}), "colour": "blue"})


def test_no_member_that_sdks_send_is_taken_for_one_of_a_provider() -> None:
    for path, (models, names) in SENT.items():
        known = members_of(models).shown
        for name in set(names.split()) - set(known):
            shape = (*filter(None, path.split(".")), name)
            assert meant_for_provider("session.create", UnknownMember(shape, known, shape)) is None, name


def test_no_member_that_sdks_send_is_taken_for_a_misspelled_one_of_ours() -> None:
    for model in (SessionCreateParams, SessionSendParams):
        known = members_of((model,)).shown
        assert EXTENSIONS & set(known)
        for name in SENT[""].names.split():
            assert name in known or misspelled_extension(UnknownMember((name,), known)) is None, name


def test_the_members_of_every_method_are_known_at_any_depth() -> None:
    for method in CLIENT_REQUESTS:
        params = load_route(method).params
        assert unknown_members(params, {}) == []
        found = unknown_members(params, {"no such member": 1})
        assert [member.path for member in found] in ([("no such member",)], []), method
