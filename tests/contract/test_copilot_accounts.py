"""The official SDKs open sessions with separate logins, which the Copilot API behind the server receives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.contract.hosts import Host
from tests.support.fake_copilot import ALICE, BOB, fake_copilot
from tests.support.toolchains import NEWEST_NPM_SDK, NEWEST_PYPI_SDK

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.parametrize("transport", ["stdio", "uri"])]

HOST = "https://github.com"


def gives(**answer: Any) -> dict[str, Any]:
    return {"kind": "token", "expiresIn": 8 * 3600, **answer}


async def test_each_session_has_its_own_login(host: Host) -> None:
    async with fake_copilot() as copilot:
        observations = await replace(host, environ=copilot.environ).run(
            "identify",
            "Hello",
            logins=[
                {"token": ALICE, "model": "by-chat"},
                {"token": BOB, "model": "by-responses"},
                {"token": "token-of-nobody", "model": "by-chat"},
                {"token": ALICE, "model": "by-messages"},
            ],
        )

    alice, bob, nobody, again = observations.report["logins"]
    assert [
        (session["login"], session["plan"], session["kind"], session["answer"]) for session in (alice, bob, again)
    ] == [
        ("alice", "individual_pro", "token", "chat/completions of alice"),
        ("bob", "business", "token", "responses of bob"),
        ("alice", "individual_pro", "token", "v1/messages of alice"),
    ]
    assert "401" in nobody["error"]
    assert "token-of-nobody" not in nobody["error"]
    assert observations.report["quota"]["chat"]["usedRequests"] == 25
    assert observations.stderr == []


async def test_a_host_provides_the_token_of_a_session_on_request(host: Host) -> None:
    if host.sdk.version not in (NEWEST_PYPI_SDK, NEWEST_NPM_SDK):
        pytest.skip("this version has no such callback")
    async with fake_copilot() as copilot:
        observations = await replace(host, environ=copilot.environ | {"GH_TOKEN": BOB}).run(
            "identify",
            "Hello",
            logins=[
                {"token": BOB, "model": "by-chat"},
                {"gives": gives(accessToken=ALICE), "model": "by-chat"},
                {"gives": {"kind": "cancelled"}, "model": "by-chat"},
                {"gives": gives(accessToken="token-of-nobody"), "model": "by-chat"},
                # Each use needs a new token: the check, the status and the prompt.
                {"gives": gives(accessToken=ALICE, expiresIn=60), "model": "by-chat"},
            ],
        )

    _, given, cancelled, bad, short = observations.report["logins"]
    assert (given["login"], given["kind"], given["answer"]) == (
        "alice",
        "token-provider",
        "chat/completions of alice",
    )
    assert given["asked"] == [{"host": HOST, "session": given["session"], "reason": "initial"}]
    assert "cancelled" in cancelled["error"]
    assert "401" in bad["error"]
    assert [request["reason"] for request in short["asked"]] == ["initial", "refresh", "refresh"]
    assert copilot.tokens_of("/chat/completions") == [BOB, ALICE, ALICE]
    assert observations.stderr == []
