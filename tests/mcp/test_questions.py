"""Requests of MCP servers to the clients of a session, over the real wire: tokens, forms, sampling; and hooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.callbacks import answering
from tests.support.guarded_mcp_server import guarded
from tests.support.mcp_servers import call, list_servers, remote, session_with, status, stdio, turn
from tests.support.model_server import ModelServer, Reply, SeenRequest, json_reply
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)


# --- tokens -------------------------------------------------------------------------------------------------------


async def asked_for_token(wire: Wire, session: str, answer: JsonObject, *, since: int = 0) -> JsonObject:
    request = (await wire.event("mcp.oauth_required", session=session, since=since))["data"]
    params = {"sessionId": session, "requestId": request["requestId"], "result": answer}
    assert await wire.call("session.mcp.oauth.handlePendingRequest", params) == {"success": True}
    assert await wire.call("session.mcp.oauth.handlePendingRequest", params) == {"success": False}
    return request


async def guarded_session(wire: Wire, url: str) -> str:
    session = await wire.create(scripted(*turn("far-go")), mcpServers={"far": {"url": f"{url}/mcp"}})
    interest = {"sessionId": session, "eventType": "mcp.oauth_required"}
    await wire.call("session.eventLog.registerInterest", interest)
    return session


async def test_a_client_provides_a_token_and_one_with_more_scope_for_a_call(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await guarded_session(wire, far.url)
        first = await asked_for_token(wire, session, {"kind": "token", "accessToken": "one"})
        await status(wire, session, "far", "connected")
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        second = await asked_for_token(wire, session, {"kind": "token", "accessToken": "two"}, since=since)
        completion = await wire.event("tool.execution_complete", session=session)
        await wire.event("session.idle", session=session)
    assert (first["reason"], second["reason"]) == ("initial", "upscope")
    assert first["wwwAuthenticateParams"]["scope"] == "read"
    assert first["resourceMetadata"] == '{"resource":"here","scopes_supported":["read"]}'
    assert second["wwwAuthenticateParams"] == {"scope": "write", "error": "insufficient_scope"}
    assert second["resourceMetadata"] == first["resourceMetadata"]
    assert completion["data"]["result"]["content"] == "gone"
    assert "authorization" not in next(request for request in far.requests if "well-known" in request.path).headers


async def test_without_a_token_the_server_waits_for_one(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await guarded_session(wire, far.url)
        await asked_for_token(wire, session, {"kind": "cancelled"})
        await status(wire, session, "far", "needs-auth", since=0)
        await wire.until(lambda message: "requires a login" in str(message))
        since = len(wire.messages)
        await wire.call("session.mcp.oauth.authenticationStateChanged", {"sessionId": session})
        await asked_for_token(wire, session, {"kind": "token", "accessToken": "one"}, since=since)
        await status(wire, session, "far", "connected")


async def test_a_missing_token_affects_only_its_server(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        provider = scripted({"text": "hi"})
        session = await server.wire.create(provider, mcpServers={"far": {"url": f"{far.url}/mcp"}})
        await status(server.wire, session, "far", "needs-auth")
        await server.wire.prompt(session)


async def test_a_server_that_waits_for_a_token_asks_a_client_that_is_interested_later(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "hi"}), mcpServers={"far": {"url": f"{far.url}/mcp"}})
        await status(wire, session, "far", "needs-auth")
        interest = {"sessionId": session, "eventType": "mcp.oauth_required"}
        await wire.call("session.eventLog.registerInterest", interest)
        await asked_for_token(wire, session, {"kind": "token", "accessToken": "one"})
        await status(wire, session, "far", "connected")


async def test_a_probe_returns_whether_a_server_requires_a_token(tmp_path: Path) -> None:
    async with ModelServer(answer=guarded) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await guarded_session(wire, far.url)
        probe = {"sessionId": session, "serverName": "far"}
        request = (await wire.event("mcp.oauth_required", session=session))["data"]
        before = await wire.call("session.mcp.oauth.probe", probe)
        params = {"sessionId": session, "requestId": request["requestId"]}
        token = {"kind": "token", "accessToken": "one"}
        await wire.call("session.mcp.oauth.handlePendingRequest", params | {"result": token})
        await status(wire, session, "far", "connected")
        after = await wire.call("session.mcp.oauth.probe", probe)
        assert len([event for event in wire.events(session) if event["type"] == "mcp.oauth_required"]) == 1
    assert (before["status"], before["reason"]) == ("needs-auth", "initial")
    assert before["wwwAuthenticateParams"]["scope"] == "read"
    assert (before["httpResponse"]["statusCode"], before["httpResponse"]["body"]) == (401, "{}")
    assert (after["status"], after["httpResponse"]["statusCode"]) == ("authenticated", 200)


async def test_a_failed_probe_has_a_reason(tmp_path: Path) -> None:
    async with (
        remote("http") as open_url,
        remote("sse") as sse_url,
        ModelServer(answer=lambda _request: json_reply({}, status=500)) as broken,
        running_server(tmp_path) as server,
    ):
        servers = {
            "program": stdio(),
            "open": {"url": open_url},
            "sse": {"type": "sse", "url": sse_url},
            "broken": {"url": f"{broken.url}/mcp"},
            "gone": {"url": "http://127.0.0.1:1/mcp"},
        }
        wire = server.wire
        session = await wire.create(scripted({"text": "hi"}), mcpServers=servers)

        async def probed(name: str) -> JsonObject:
            return await wire.call("session.mcp.oauth.probe", {"sessionId": session, "serverName": name})

        assert (await probed("open"))["status"] == (await probed("sse"))["status"] == "no-auth-required"
        assert [(await probed(name))["status"] for name in ("broken", "gone")] == ["failed", "failed"]
        for name, problem in (("program", "not a remote server"), ("nobody", "is not configured")):
            error = await wire.error_of("session.mcp.oauth.probe", {"sessionId": session, "serverName": name})
            assert problem in error["message"]


# --- headers ------------------------------------------------------------------------------------------------------

HEADERS_ASKED = "mcp.headers_refresh_required"


class WantsKey:
    """A server that refuses requests without a valid ``X-Key``."""

    def __init__(self, *good: str) -> None:
        self.good = {*good}

    def __call__(self, request: SeenRequest) -> Reply:
        if request.headers.get("x-key") not in self.good:
            return json_reply({}, status=403)
        return guarded(replace(request, headers={**request.headers, "authorization": "Bearer two"}))


def keys(key: str) -> JsonObject:
    return {"kind": "headers", "headers": {"x-KEY": key, "Accept": "nothing", "Mcp-Session-Id": "mine"}}


async def give_headers(wire: Wire, session: str, answer: JsonObject, *, since: int = 0) -> str:
    """Answer the next request for headers; return its reason."""
    request = (await wire.event(HEADERS_ASKED, session=session, since=since))["data"]
    params = {"sessionId": session, "requestId": request["requestId"], "result": answer}
    method = "session.mcp.headers.handlePendingHeadersRefreshRequest"
    assert await wire.call(method, params) == {"success": True}
    assert await wire.call(method, params) == {"success": False}
    completion = (await wire.event("mcp.headers_refresh_completed", session=session, since=since))["data"]
    assert completion == {"requestId": request["requestId"], "outcome": answer["kind"]}
    return request["reason"]


async def headers_session(wire: Wire, url: str, ttl_ms: int, key: str = "stale") -> str:
    config = {"type": "http", "url": f"{url}/mcp", "headersRefreshTtlMs": ttl_ms, "headers": {"X-Key": key}}
    # The server must not be started before the client is interested: it may need no new headers.
    options: JsonObject = {"mcpServers": {"far": config}, "disabledMcpServers": ["far"]}
    session = await wire.create(scripted(*turn("far-go")), **options)
    await wire.call("session.eventLog.registerInterest", {"sessionId": session, "eventType": HEADERS_ASKED})
    await wire.call("session.mcp.enable", {"sessionId": session, "serverName": "far"})
    return session


async def test_a_client_provides_headers_and_new_ones_after_a_refusal(tmp_path: Path) -> None:
    wants = WantsKey("first")
    async with ModelServer(answer=wants) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await headers_session(wire, far.url, 3_600_000)
        assert await give_headers(wire, session, keys("first")) == "startup"
        await status(wire, session, "far", "connected")
        wants.good = {"second"}
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        assert await give_headers(wire, session, keys("second"), since=since) == "auth-failed"
        completion = await wire.event("tool.execution_complete", session=session)
        await wire.event("session.idle", session=session)
    assert completion["data"]["result"]["content"] == "gone"
    assert all(request.headers["accept"] != "nothing" for request in far.requests)
    assert all(request.headers.get("mcp-session-id") != "mine" for request in far.requests)


async def test_expired_headers_are_requested_again(tmp_path: Path) -> None:
    async with ModelServer(answer=WantsKey("first")) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await headers_session(wire, far.url, 0)
        assert await give_headers(wire, session, keys("first")) == "startup"
        since = next(
            place for place, message in enumerate(wire.messages) if "mcp.headers_refresh_completed" in str(message)
        )
        assert await give_headers(wire, session, keys("first"), since=since + 1) == "ttl-expired"


async def test_configured_headers_are_used_if_the_client_has_none(tmp_path: Path) -> None:
    async with ModelServer(answer=WantsKey("own")) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await headers_session(wire, far.url, 3_600_000, "own")
        assert await give_headers(wire, session, {"kind": "none"}) == "startup"
        await status(wire, session, "far", "connected")
        # A session whose client does not answer requests for headers.
        config = {"url": f"{far.url}/mcp", "headersRefreshTtlMs": 1, "headers": {"X-Key": "own"}}
        other = await wire.create(scripted(), mcpServers={"far": config})
        await status(wire, other, "far", "connected")
        assert not [event for event in wire.events(other) if event["type"] == HEADERS_ASKED]


# --- forms, models, hooks -----------------------------------------------------------------------------------------


async def test_a_client_shows_the_form_of_a_server(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await session_with(wire, "testing", stdio(), *turn("testing-ask"), requestElicitation=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        form = (await wire.event("elicitation.requested"))["data"]
        result = {"action": "accept", "content": {"colour": "blue"}}
        params = {"sessionId": session, "requestId": form["requestId"], "result": result}
        await wire.call("session.ui.handlePendingElicitation", params)
        completion = await wire.event("tool.execution_complete")
        await wire.event("session.idle")
    assert (form["message"], form["mode"], form["elicitationSource"]) == ("Which colour?", "form", "testing")
    assert form["requestedSchema"]["properties"]["colour"]["type"] == "string"
    assert completion["data"]["result"]["content"] == "accept blue"


@pytest.mark.parametrize("tool", ["testing-ask", "testing-think"])
async def test_requests_without_an_interested_client_are_refused_at_once(tmp_path: Path, tool: str) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        session = await session_with(server.wire, "testing", stdio(), *turn(tool))
        completion, text = await call(server.wire, session)
    assert completion["success"] is False
    assert "client" in text


async def test_a_client_runs_a_model_for_a_sampling_request(tmp_path: Path) -> None:
    async with running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        prompts = [
            {"when": "What is", "turns": [{"text": "four"}]},
            {"when": ".", "turns": [*turn("testing-think")]},
        ]
        provider = {"type": "scripted", "script": {"prompts": prompts}}
        session = await wire.create(provider, mcpServers={"testing": stdio()})
        await status(wire, session, "testing", "connected")
        interest = {"sessionId": session, "eventType": "sampling.requested"}
        await wire.call("session.eventLog.registerInterest", interest)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = (await wire.event("sampling.requested"))["data"]
        ids = {"sessionId": session, "requestId": request["requestId"]}
        params = {
            **ids,
            "serverName": "testing",
            "mcpRequestId": request["mcpRequestId"],
            "request": request["request"],
        }
        unknown = await wire.call("session.mcp.executeSampling", {**params, "mcpRequestId": "x"})
        ran = await wire.call("session.mcp.executeSampling", params)
        answered = await wire.call("session.ui.handlePendingSampling", {**ids, "response": ran["result"]})
        completion = await wire.event("tool.execution_complete")
        await wire.event("sampling.completed", requestId=request["requestId"])
        await wire.event("session.idle")
    assert unknown["action"] == "failure"
    assert request["request"]["messages"][0]["content"]["text"] == "What is 2+2?"
    assert (ran["action"], ran["result"]["content"]["text"]) == ("success", "four")
    assert answered == {"success": True}
    assert completion["data"]["result"]["content"] == "four"


async def test_a_hook_sees_a_call_and_sets_its_meta(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, args=YOLO) as server,
        answering(server.wire, {"preMcpToolCall": [{"metaToUse": {"by": "hook"}}]}) as client,
    ):
        session = await session_with(server.wire, "testing", stdio(), *turn("testing-meta"), hooks=True)
        _, text = await call(server.wire, session)
        hook_inputs = client.inputs("preMcpToolCall")
    assert text == "hook"
    assert (hook_inputs[0]["serverName"], hook_inputs[0]["toolName"], hook_inputs[0]["arguments"]) == (
        "testing",
        "meta",
        {},
    )


# --- the user's own servers ---------------------------------------------------------------------------------------


async def test_every_session_has_the_stored_servers_of_the_user(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("mcp.config.add", {"name": "mine", "config": {**stdio(), "displayName": "Mine"}})
        await wire.call("mcp.config.add", {"name": "other", "config": stdio()})
        again = await wire.error_of("mcp.config.add", {"name": "mine", "config": stdio()})
        await wire.call("mcp.config.update", {"name": "mine", "config": stdio(tools=["pid"])})
        await wire.call("mcp.config.disable", {"names": ["other"]})
        listing = await wire.call("mcp.config.list", {})
        discovered = await wire.call("mcp.discover", {"workingDirectory": str(tmp_path)})
        session = await wire.create(scripted({"text": "hi"}))
        await status(wire, session, "mine", "connected")
        servers = (await list_servers(wire, {"sessionId": session}))["servers"]
        await wire.call("mcp.config.remove", {"name": "mine"})
        missing = await wire.error_of("mcp.config.remove", {"name": "mine"})
    assert listing["servers"]["mine"]["tools"] == ["pid"]
    assert {mcp_server["name"]: mcp_server["enabled"] for mcp_server in discovered["servers"]} == {
        "mine": True,
        "other": False,
    }
    assert {mcp_server["name"]: (mcp_server["status"], mcp_server["source"]) for mcp_server in servers} == {
        "mine": ("connected", "user"),
        "other": ("disabled", "user"),
    }
    assert "already configured" in again["message"]
    assert "is not configured" in missing["message"]
    assert (tmp_path / "home" / "mcp-config.json").stat().st_mode & 0o777 == 0o600


async def test_a_stored_server_is_returned_as_it_was_given(tmp_path: Path) -> None:
    config: JsonObject = {
        "type": "http",
        "url": "http://localhost:1/mcp",
        "headers": {"X-Team": "seats"},
        "tools": ["*"],
        "timeout": 5000,
        "oauthClientId": "client",
        "oauthPublicClient": True,
        "oauthGrantType": "client_credentials",
    }
    async with running_server(tmp_path) as server:
        await server.wire.call("mcp.config.add", {"name": "remote", "config": config})
        stored = (await server.wire.call("mcp.config.list", {}))["servers"]["remote"]
    assert stored == config
    assert isinstance(stored["timeout"], int), "5000.0 is no integer to the typed SDKs"
