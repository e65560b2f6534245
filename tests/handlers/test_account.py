"""Stored GitHub logins over the real wire: kept between processes, used by sessions, and never shown."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.fake_copilot import ALICE, BOB, FakeCopilot, fake_copilot
from tests.support.server import JsonObject, running_server

pytestmark = pytest.mark.anyio

HOST = "https://github.com"
BACKEND = Path(__file__).parents[1] / "support" / "keyring_backend"


@pytest.fixture
async def copilot() -> AsyncGenerator[FakeCopilot]:
    async with fake_copilot() as fake:
        yield fake


def login(token: str, **more: str) -> JsonObject:
    return {"host": HOST, "token": token, **more}


async def test_logins_are_kept_used_and_removed(tmp_path: Path, copilot: FakeCopilot) -> None:
    pytest.importorskip("keyring")
    config = tmp_path / "python_keyring" / "keyringrc.cfg"
    config.parent.mkdir()
    config.write_text(f"[backend]\ndefault-keyring=file_keyring.FileKeyring\nkeyring-path={BACKEND}\n")
    env = {
        **copilot.environ,
        "XDG_CONFIG_HOME": str(tmp_path),
        "FILE_KEYRING": str(tmp_path / "ring.json"),
    }
    async with running_server(tmp_path, env=env) as server:
        wire = server.wire
        assert await wire.call("account.getCurrentAuth") == {}
        assert await wire.call("account.login", login(ALICE, login="Alice")) == {"storedInVault": True}
        assert await wire.call("account.login", login(BOB)) == {"storedInVault": True}
        assert ALICE not in (server.home / "accounts.json").read_text()
    async with running_server(tmp_path, env=env) as server:
        wire = server.wire
        current = await wire.call("account.getCurrentAuth")
        users = await wire.call("account.getAllUsers")
        session = (await wire.call("session.create", {"model": "by-chat"}))["sessionId"]
        events = await wire.prompt(session)
        quota = await wire.call("account.getQuota", {"selectionId": users[1]["selectionId"]})
        left = await wire.call("account.logout", {"authInfo": current["authInfo"]})
        after = await wire.call("account.getCurrentAuth")
        last = await wire.call("account.logout", {"selectionId": users[1]["selectionId"]})
        end = await wire.call("account.getCurrentAuth")
    info = current["authInfo"]
    assert (info["type"], info["host"], info["login"]) == ("user", HOST, "bob")
    assert BOB not in json.dumps(current)
    assert [(user["authInfo"]["login"], user["token"]) for user in users] == [("bob", BOB), ("alice", ALICE)]
    assert [event["data"]["content"] for event in events if event["type"] == "assistant.message"] == [
        "chat/completions of bob"
    ]
    assert quota["quotaSnapshots"]["chat"]["entitlementRequests"] == 100
    assert (left, last) == ({"hasMoreUsers": True}, {"hasMoreUsers": False})
    assert (after["authInfo"]["login"], end) == ("alice", {})


async def test_without_a_keyring_one_login_is_in_a_private_file_and_in_no_log(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    env = {**copilot.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    async with running_server(tmp_path, env=env, args=["--log-level", "debug"]) as server:
        await server.wire.call("account.login", login(BOB))
        await server.wire.call("account.login", login(ALICE))
        file = server.home / "accounts.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert await server.wire.call("account.getAllUsers") == []
        assert (ALICE in file.read_text(), BOB in file.read_text()) == (True, False)
    assert "account.login" in server.stderr
    assert ALICE not in server.stderr


async def test_a_token_that_github_rejects_or_gives_to_another_user_is_not_stored(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        rejected = await wire.error_of("account.login", login("no-such-token", login="alice"))
        foreign = await wire.error_of("account.login", login(ALICE, login="bob"))
        unnamed = await wire.error_of("account.logout", {})
        unknown = await wire.error_of("account.logout", {"authInfo": {"type": "user", "host": HOST, "login": "x"}})
        assert await wire.call("account.getAllUsers") == []
    assert "401" in rejected["message"]
    assert foreign["message"] == "the token belongs to 'alice', not to 'bob'"
    assert unnamed["message"] == "Missing required account selection: set selectionId or authInfo"
    assert unknown["message"] == "there is no stored login 'x@github.com'"


async def test_a_session_changes_between_logins(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        session: JsonObject = {"sessionId": (await wire.call("session.create", {"model": "by-chat"}))["sessionId"]}

        async def shown() -> tuple[str | None, bool]:
            info = await wire.call("session.gitHubAuth.getCurrentAuthInfo", session)
            status = await wire.call("session.gitHubAuth.getStatus", session)
            return info and info["login"], status["isAuthenticated"]

        assert await shown() == (None, False)
        await wire.call("account.login", login(ALICE))
        assert await shown() == ("alice", True)
        await wire.call("session.gitHubAuth.login", {**session, **login(BOB, login="bob")})
        assert await shown() == ("bob", True)
        available = await wire.call("session.gitHubAuth.getAllAuthAvailable", session)
        auth = {"type": "user", "host": "github.com", "login": "Alice"}
        await wire.call("session.gitHubAuth.switchToAuth", {**session, "authInfo": auth})
        assert await shown() == ("alice", True)
        refreshed = await wire.call("session.gitHubAuth.refreshCopilotUser", session)
        await wire.call(
            "session.gitHubAuth.setCredentials", {**session, "credentials": {"type": "token", "token": "zz"}}
        )
        errors = await wire.call("session.gitHubAuth.lastAuthErrors", session)
        assert await wire.call("session.gitHubAuth.logout", session) is True
        assert await wire.call("session.gitHubAuth.logout", session) is False
        assert await wire.call("session.gitHubAuth.logoutUser", {**session, "authInfo": auth}) is True
        assert await wire.call("session.gitHubAuth.logoutUser", {**session, "authInfo": auth}) is False
        assert await shown() == (None, False)
    assert [status["login"] for status in available] == ["alice"]
    assert refreshed["copilotUser"]["copilot_plan"] == "individual_pro"
    assert len(errors) == 1


async def test_the_host_of_credentials_comes_back_as_it_was_given(tmp_path: Path, copilot: FakeCopilot) -> None:
    async with running_server(tmp_path, env=copilot.environ) as server:
        wire = server.wire
        session = {"sessionId": (await wire.call("session.create", {}))["sessionId"]}
        given = {"type": "user", "host": "github.com", "login": "me", "copilotUser": {"copilot_plan": "business"}}
        done = await wire.call("session.gitHubAuth.setCredentials", {**session, "credentials": given})
        status = await wire.call("session.gitHubAuth.getStatus", session)
        info = await wire.call("session.gitHubAuth.getCurrentAuthInfo", session)
        nothing = await wire.call("session.gitHubAuth.setCredentials", session)
    assert (done, nothing) == ({"success": True, "copilotUserResolved": True}, {"success": True})
    assert (status["host"], status["login"], status["copilotPlan"]) == ("github.com", "me", "business")
    assert info == given


async def test_a_token_of_the_environment_is_not_used_with_no_auto_login(
    tmp_path: Path, copilot: FakeCopilot
) -> None:
    env = {**copilot.environ, "GH_TOKEN": ALICE}
    for args, expected in (([], True), (["--no-auto-login"], False)):
        async with running_server(tmp_path, env=env, args=args) as server:
            session = {"sessionId": (await server.wire.call("session.create", {}))["sessionId"]}
            status = await server.wire.call("session.gitHubAuth.getStatus", session)
            process = await server.wire.call("account.getCurrentAuth")
        assert status["isAuthenticated"] is expected
        used = process.get("authInfo", {})
        assert (used.get("envVar"), used.get("token")) == (("GH_TOKEN", "") if expected else (None, None))
