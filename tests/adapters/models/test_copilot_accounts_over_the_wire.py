"""GitHub identities of sessions with the Copilot API: tokens from options and callbacks, and login status."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_copilot import ALICE, BOB, FakeCopilot, fake_copilot
from tests.support.server import Wire, frame, running_server

pytestmark = pytest.mark.anyio

REGISTRATION = "registration-1"
EIGHT_HOURS_S = 8 * 3600
BYOK = {"type": "openai", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "sk-x"}


@pytest.fixture
async def copilot() -> AsyncGenerator[FakeCopilot]:
    async with fake_copilot() as fake:
        yield fake


async def open_session(wire: Wire, **options: Any) -> str:
    return (await wire.call("session.create", options))["sessionId"]


async def status(wire: Wire, session: str) -> dict[str, Any]:
    return await wire.call("session.gitHubAuth.getStatus", {"sessionId": session})


async def answer_to_prompt(wire: Wire, session: str) -> str:
    """Return the answer to a prompt."""
    events = await wire.prompt(session)
    failures = [event["data"]["message"] for event in events if event["type"] == "session.error"]
    assert failures == []
    return next(event["data"]["content"] for event in events if event["type"] == "assistant.message")


async def refused_model(wire: Wire, session: str) -> str:
    """Return the error message of a prompt that fails."""
    events = await wire.prompt(session)
    [error] = [event["data"] for event in events if event["type"] == "session.error"]
    assert error["errorType"] == "authentication"
    return error["message"]


async def asked_for_token(wire: Wire, since: int, **answer: Any) -> dict[str, Any]:
    """Answer the next request for a token; returns its params."""
    request = await wire.until(
        lambda message: message.get("method") == "gitHubToken.getToken", since=since, what="gitHubToken.getToken"
    )
    await wire.send(frame({"jsonrpc": "2.0", "id": request["id"], **answer}))
    return request["params"]


def token(value: str, expires_in: float = EIGHT_HOURS_S, **more: Any) -> dict[str, Any]:
    return {"kind": "token", "accessToken": value, "expiresIn": expires_in, **more}


# --- given tokens -------------------------------------------------------------------------------------------------


async def test_each_session_has_the_identity_of_its_token(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        alice, bob = await open_session(wire, gitHubToken=ALICE), await open_session(wire, gitHubToken=BOB)
        statuses = [await status(wire, session) for session in (alice, bob)]
        heard = [await answer_to_prompt(wire, session) for session in (alice, bob)]
        listing = [await wire.call("session.model.list", {"sessionId": session}) for session in (alice, bob)]
        older = await wire.call("session.auth.getStatus", {"sessionId": bob})

    assert [(status["login"], status["copilotPlan"]) for status in statuses] == [
        ("alice", "individual_pro"),
        ("bob", "business"),
    ]
    assert all(
        (status["isAuthenticated"], status["authType"], status["host"]) == (True, "token", "https://github.com")
        for status in statuses
    )
    assert heard == ["chat/completions of alice", "chat/completions of bob"]
    assert [answer["list"][-1]["id"] for answer in listing] == ["only-for-alice", "only-for-bob"]
    assert older == statuses[1]
    files = "".join(path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert "token-of-" not in files
    assert "token-of-" not in server.stderr


@pytest.mark.parametrize("bad", ["token-of-nobody", "token\r\nX-Evil: 1", "töken", " "])
async def test_an_invalid_token_creates_no_session(tmp_path: Path, copilot: FakeCopilot, bad: str) -> None:
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": ALICE}) as server:
        error = await server.wire.error_of("session.create", {"gitHubToken": bad, "sessionId": "s"})
        left = await server.wire.call("session.list", {})
        # The id can be used again.
        assert await open_session(server.wire, gitHubToken=BOB, sessionId="s") == "s"

    assert bad.strip() == "" or bad not in error["message"]
    assert left == {"sessions": []}
    if bad == "token-of-nobody":
        assert "401 Unauthorized" in error["message"]


async def test_a_session_without_a_token_has_the_identity_of_the_process_if_any(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        nobody = await status(server.wire, await open_session(server.wire))
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": ALICE}) as server:
        ambient = await status(server.wire, await open_session(server.wire))

    assert nobody == {"isAuthenticated": False, "statusMessage": "Not authenticated"}
    assert (ambient["login"], ambient["authType"]) == ("alice", "env")


async def test_a_resumed_session_keeps_its_identity_unless_a_client_changes_it(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        session = await open_session(wire, gitHubToken=ALICE)
        await answer_to_prompt(wire, session)
        await wire.call("session.resume", {"sessionId": session})
        kept = await status(wire, session)
        await wire.error_of("session.resume", {"sessionId": session, "gitHubToken": "token-of-nobody"})
        still = await status(wire, session)
        await wire.call("session.resume", {"sessionId": session, "gitHubToken": BOB})
        changed = await status(wire, session)
        await wire.call("session.destroy", {"sessionId": session})
        await wire.call("session.resume", {"sessionId": session})
        cold = await status(wire, session)

    assert [status.get("login") for status in (kept, still, changed, cold)] == ["alice", "alice", "bob", None]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("model", "wire_name"),
    [("by-chat", "chat/completions"), ("by-responses", "responses"), ("by-messages", "v1/messages")],
)
async def test_a_model_is_called_over_the_wire_in_its_list_entry(
    tmp_path: Path, copilot: FakeCopilot, model: str, wire_name: str, *, streaming: bool
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        session = await open_session(server.wire, gitHubToken=ALICE, model=model, streaming=streaming)
        assert await answer_to_prompt(server.wire, session) == f"{wire_name} of alice"
        assert await answer_to_prompt(server.wire, session) == f"{wire_name} of alice"

    paths = [request.path for request in copilot.server.requests]
    # The list is requested once, the user only at the start of the session.
    assert paths == ["/github/copilot_internal/user", "/tenant/models", *[f"/tenant/{wire_name}"] * 2]
    assert copilot.server.requests[-1].json["model"] == model


async def test_the_api_address_of_the_operator_wins_over_that_of_github(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    env = {
        "COPILOT_DEBUG_GITHUB_API_URL": f"{copilot.server.url}/github",
        "COPILOT_API_URL": f"{copilot.server.url}/tenant/",
    }
    elsewhere = {"api": "http://127.0.0.1:9", "telemetry": "http://127.0.0.1:9"}
    async with running_server(tmp_path, env=env) as server:
        wire = server.wire
        session = await open_session(wire)
        credentials = {"type": "token", "token": BOB, "copilotUser": {"login": "bob", "endpoints": elsewhere}}
        await wire.call("session.gitHubAuth.setCredentials", {"sessionId": session, "credentials": credentials})
        assert await answer_to_prompt(wire, session) == "chat/completions of bob"


# --- credentials --------------------------------------------------------------------------------------------------


async def test_new_credentials_apply_from_the_next_request_on(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        session = await open_session(wire, gitHubToken=ALICE)
        heard = [await answer_to_prompt(wire, session)]
        for kind in ("token", "env", "gh-cli"):
            credentials = {"type": kind, "host": "https://github.com", "token": BOB, "envVar": "GH_TOKEN"}
            params = {"sessionId": session, "credentials": credentials}
            done = await wire.call("session.gitHubAuth.setCredentials", params)
            assert done == {"success": True, "copilotUserResolved": False}
            identity = await status(wire, session)
            assert (identity["login"], identity["authType"], identity["copilotPlan"]) == ("bob", kind, "business")
        heard.append(await answer_to_prompt(wire, session))
        assert await wire.call("session.gitHubAuth.setCredentials", {"sessionId": session}) == {"success": True}
        heard.append(await answer_to_prompt(wire, session))

    assert heard == ["chat/completions of alice", "chat/completions of bob", "chat/completions of bob"]


async def test_a_login_without_a_token_never_uses_the_token_of_another_user(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": ALICE}) as server:
        wire = server.wire
        session = await open_session(wire)
        user = {"login": "carol", "copilot_plan": "individual_pro", "endpoints": {"api": copilot.server.url}}
        credentials = {"type": "user", "host": "https://github.com", "login": "carol", "copilotUser": user}
        await wire.call("session.gitHubAuth.setCredentials", {"sessionId": session, "credentials": credentials})
        identity = await status(wire, session)
        message = await refused_model(wire, session)

    assert identity == {
        "isAuthenticated": True,
        "authType": "user",
        "host": "https://github.com",
        "login": "carol",
        "copilotPlan": "individual_pro",
        "statusMessage": "Logged in as carol",
    }
    assert "the credentials of 'carol' contain no token" in message
    assert copilot.server.requests == []


@pytest.mark.parametrize(
    ("credentials", "text"),
    [
        ({"type": "hmac", "hmac": "s"}, "credentials.type 'hmac' is not supported"),
        ({"type": "api-key", "apiKey": "s"}, "credentials.type 'api-key' is not supported"),
        ({"type": "token"}, "credentials.token is required"),
        ({"type": "telepathy"}, "credentials.type"),
        ("token", "credentials"),
    ],
)
async def test_invalid_credentials_are_refused_and_change_nothing(
    tmp_path: Path, copilot: FakeCopilot, credentials: Any, text: str
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        session = await open_session(server.wire, gitHubToken=ALICE)
        params = {"sessionId": session, "credentials": credentials}
        error = await server.wire.error_of("session.gitHubAuth.setCredentials", params)
        assert (await status(server.wire, session))["login"] == "alice"

    assert text in error["message"]


async def test_the_quota_is_that_of_the_given_token_or_of_the_process(tmp_path: Path, copilot: FakeCopilot) -> None:
    expected = {
        "chat": {
            "isUnlimitedEntitlement": False,
            "entitlementRequests": 100,
            "usedRequests": 25,
            "remainingPercentage": 75.0,
            "usageAllowedWithExhaustedQuota": True,
            "overage": 2.0,
            "overageAllowedWithExhaustedQuota": True,
            "resetDate": "2026-04-30T00:00:00Z",
        }
    }
    async with running_server(tmp_path, env=copilot.environ) as server:
        nobody = await server.wire.error_of("account.getQuota", {})
        given = await server.wire.call("account.getQuota", {"gitHubToken": ALICE})
        bad = await server.wire.error_of("account.getQuota", {"gitHubToken": "token-of-nobody"})
        unknown = await server.wire.error_of("account.getQuota", {"selectionId": "a"})
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": BOB}) as server:
        ambient = await server.wire.call("account.getQuota", {})

    assert given == ambient == {"quotaSnapshots": expected}
    assert copilot.tokens_of("/user") == [ALICE, "token-of-nobody", BOB]
    assert "Not authenticated" in nobody["message"]
    assert "401 Unauthorized" in bad["message"]
    assert unknown["message"] == "there is no stored login 'a'"


async def test_models_are_listed_for_the_given_token(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": ALICE}) as server:
        lists = [await server.wire.call("models.list", params) for params in ({}, {"gitHubToken": BOB})]
        session = await open_session(server.wire)
        await server.wire.call("session.model.list", {"sessionId": session})
        requests_before = len(copilot.tokens_of("/models"))
        await server.wire.call("session.model.list", {"sessionId": session, "skipCache": True})

    assert [answer["models"][-1]["id"] for answer in lists] == ["only-for-alice", "only-for-bob"]
    assert (requests_before, len(copilot.tokens_of("/models"))) == (2, 3)


async def test_the_endpoint_of_a_session_suffices_for_a_call(tmp_path: Path, copilot: FakeCopilot) -> None:
    env = copilot.environ | {"COPILOT_ALLOW_GET_PROVIDER_ENDPOINT": "true"}
    async with running_server(tmp_path, env=env) as server:
        wire = server.wire
        session = await open_session(wire, gitHubToken=ALICE)
        chat = await wire.call("session.provider.getEndpoint", {"sessionId": session})
        other = await wire.call("session.provider.getEndpoint", {"sessionId": session, "modelId": "by-messages"})
        byok = await open_session(wire, provider=BYOK)
        own = await wire.call("session.provider.getEndpoint", {"sessionId": byok})

    assert (chat["type"], chat["wireApi"], chat["baseUrl"]) == (
        "openai",
        "completions",
        f"{copilot.server.url}/tenant",
    )
    assert chat["apiKey"] == ALICE
    assert chat["headers"]["Authorization"] == f"Bearer {ALICE}"
    assert {"Copilot-Integration-Id", "X-GitHub-Api-Version", "X-Interaction-Id", "User-Agent"} <= chat[
        "headers"
    ].keys()
    assert (other["type"], other.get("wireApi")) == ("anthropic", None)
    assert own == {
        "type": "openai",
        "wireApi": "completions",
        "baseUrl": BYOK["baseUrl"],
        "apiKey": "sk-x",
        "headers": {},
    }


# --- tokens requested from the client -----------------------------------------------------------------------------


async def start_session(wire: Wire, **options: Any) -> tuple[int, Any]:
    since = len(wire.messages)
    options = {"gitHubTokenProviderRegistrationId": REGISTRATION, **options}
    return since, await wire.ask("session.create", options)


async def test_a_token_is_requested_when_the_session_opens_and_reused_while_valid(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": BOB}) as server:
        wire = server.wire
        since, creating = await start_session(wire, sessionId="s")
        params = await asked_for_token(wire, since, result=token(ALICE, tokenType="Bearer"))
        await wire.response(creating)
        identity = await status(wire, "s")
        heard = [await answer_to_prompt(wire, "s") for _ in range(2)]
        token_requests = [message for message in wire.messages if message.get("method") == "gitHubToken.getToken"]

    assert params == {
        "registrationId": REGISTRATION,
        "host": "https://github.com",
        "sessionId": "s",
        "reason": "initial",
    }
    assert (identity["login"], identity["authType"]) == ("alice", "token-provider")
    assert heard == ["chat/completions of alice"] * 2
    assert len(token_requests) == 1
    files = "".join(path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert "token-of-" not in files
    assert REGISTRATION not in files


async def test_a_token_with_an_hour_or_less_left_is_replaced_before_it_is_used(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        since, creating = await start_session(wire)
        await asked_for_token(wire, since, result=token(ALICE, 3600))
        session = (await wire.response(creating))["result"]["sessionId"]
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        token_request = await asked_for_token(wire, since, result=token(BOB))
        answer = await wire.event("assistant.message", session=session)
        assert (token_request["sessionId"], token_request["reason"]) == (session, "refresh")
        assert answer["data"]["content"] == "chat/completions of bob"
        await wire.event("session.idle", session=session)
        assert await answer_to_prompt(wire, session) == "chat/completions of bob"

    assert copilot.tokens_of("/chat/completions") == [BOB, BOB]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"result": {"kind": "cancelled"}}, "the request was cancelled"),
        ({"error": {"code": -32603, "message": "no network"}}, "no network"),
        ({"result": {"kind": "token", "accessToken": ALICE}}, "accessToken and expiresIn"),
        ({"result": {"kind": "token", "accessToken": "", "expiresIn": 9000}}, "accessToken and expiresIn"),
        ({"result": {"kind": "token", "expiresIn": 9000}}, "accessToken and expiresIn"),
        ({"result": token(ALICE, 0)}, "accessToken and expiresIn"),
        ({"result": token(ALICE, -1)}, "could not be read"),
        ({"result": token(ALICE, tokenType="mac")}, "tokenType"),
        ({"result": token("token\nX-Evil: 1")}, "printable ASCII"),
        ({"result": token("token-of-nobody")}, "401 Unauthorized"),
        ({"result": None}, "could not be read"),
        ({"result": "token"}, "could not be read"),
    ],
)
async def test_without_the_requested_token_no_session_is_created(
    tmp_path: Path, copilot: FakeCopilot, answer: dict[str, Any], text: str
) -> None:
    async with running_server(tmp_path, env=copilot.environ | {"GH_TOKEN": BOB}) as server:
        wire = server.wire
        since, creating = await start_session(wire, sessionId="s")
        await asked_for_token(wire, since, **answer)
        error = (await wire.response(creating))["error"]
        await wire.error_of("session.send", {"sessionId": "s", "prompt": "hi"})
        await wire.check_alive()

    assert text in error["message"]
    assert ALICE not in str(error)
    assert BOB not in copilot.tokens_of("/user")


async def test_a_failed_resume_keeps_the_identity_of_the_session(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        since, creating = await start_session(wire, sessionId="s")
        await asked_for_token(wire, since, result=token(ALICE))
        await wire.response(creating)
        answers: list[tuple[dict[str, Any], str]] = [({"kind": "cancelled"}, "alice"), (token(BOB), "bob")]
        for answer, login in answers:
            since = len(wire.messages)
            params = {"sessionId": "s", "gitHubTokenProviderRegistrationId": "registration-2"}
            resuming = await wire.ask("session.resume", params)
            token_request = await asked_for_token(wire, since, result=answer)
            resumed = await wire.response(resuming)
            assert (token_request["registrationId"], token_request["reason"]) == ("registration-2", "initial")
            assert ("error" in resumed) == (login == "alice")
            assert (await status(wire, "s"))["login"] == login


async def test_a_token_and_a_callback_for_tokens_exclude_each_other(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        params = {"gitHubToken": ALICE, "gitHubTokenProviderRegistrationId": REGISTRATION}
        error = await server.wire.error_of("session.create", params)

    assert "mutually exclusive" in error["message"]


async def test_a_client_that_disconnects_instead_of_providing_a_token_leaves_no_session(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, tcp=True, env=copilot.environ) as server, server.connect() as other:
        async with server.connect() as leaving:
            since, _ = await start_session(leaving, sessionId="s")
            await leaving.until(lambda message: message.get("method") == "gitHubToken.getToken", since=since)
        await other.error_of("session.send", {"sessionId": "s", "prompt": "hi"})
        assert await open_session(other, sessionId="s", gitHubToken=BOB) == "s"


async def test_the_token_of_a_session_with_its_own_provider_is_not_checked_with_github(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        since, creating = await start_session(server.wire, provider=BYOK, model="m")
        await asked_for_token(server.wire, since, result=token("token-of-nobody"))
        assert "result" in await server.wire.response(creating)

    assert copilot.server.requests == []
