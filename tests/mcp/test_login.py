"""Logins to MCP servers, from the terminal and by clients, against an authorization server on loopback."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import anyio
import httpx2
import pytest

from jumpseat.mcp.endpoints import Endpoints, NearerError
from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.login_server import LoginServer
from tests.support.mcp_servers import call, status, turn
from tests.support.model_server import ModelServer, text_reply
from tests.support.server import JsonObject, running_server, scripted

pytestmark = pytest.mark.anyio
YOLO = ("--yolo",)


class Terminal:
    """A process that runs ``jumpseat mcp``; ``said`` holds its output so far."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self.said = ""
        self._process = process

    async def address(self) -> str:
        """Return the address that the user has to open."""
        assert self._process.stdout is not None
        while not (match := re.search(r"^(http\S+)\n", self.said, re.MULTILINE)):
            self.said += (await self._process.stdout.receive()).decode()
        return match[1]

    async def end(self) -> tuple[int, str]:
        """Return the exit code and the whole output."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for stream in (self._process.stdout, self._process.stderr):
            async for chunk in stream:
                self.said += chunk.decode()
        assert "Traceback" not in self.said
        return await self._process.wait(), self.said


@asynccontextmanager
async def terminal(home: Path, *argv: str, **environ: str) -> AsyncGenerator[Terminal]:
    await anyio.Path(home).mkdir(exist_ok=True)
    command = [executable(), "mcp", *argv]
    env = {"PATH": os.defpath, "HOME": str(home), "COPILOT_HOME": str(home), **environ}
    process = await anyio.open_process(command, stdout=PIPE, stderr=PIPE, env=env, cwd=home)
    try:
        with anyio.fail_after(WAIT_S):
            yield Terminal(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.aclose()


def configured(home: Path, url: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "mcp-config.json").write_text(json.dumps({"mcpServers": {"far": {"url": f"{url}/mcp"}}}))


async def browse(address: str) -> httpx2.Response:
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        return await client.get(address)


async def log_in(home: Path, *argv: str, **environ: str) -> None:
    async with terminal(home, "login", *argv, **environ) as at:
        page = await browse(await at.address())
        assert (page.status_code, "You are logged in" in page.text) == (200, True)
        code, output = await at.end()
    assert code == 0, output
    assert "Logged in to" in output
    assert "access-" not in output


async def run(home: Path, *argv: str, **environ: str) -> tuple[int, str]:
    async with terminal(home, *argv, **environ) as at:
        return await at.end()


def stored(home: Path) -> dict[str, Any]:
    return json.loads((home / "mcp-tokens.json").read_text())


# --- logins at a terminal -----------------------------------------------------------------------------------------


async def test_a_login_at_the_terminal_works_in_every_session(tmp_path: Path) -> None:
    home, guard = tmp_path / "home", LoginServer()
    async with ModelServer(answer=guard) as far:
        configured(home, far.url)
        await log_in(home, "far")
        assert (home / "mcp-tokens.json").stat().st_mode & 0o777 == 0o600
        assert "yes" in (await run(home, "list"))[1]
        async with running_server(tmp_path, args=YOLO) as server:
            wire = server.wire
            session = await wire.create(scripted(*turn("far-go"), *turn("far-go")))
            await status(wire, session, "far", "connected")
            assert (await call(wire, session))[1] == "gone"
            # The token expires during the session, and is renewed without asking anybody.
            guard.valid = "another"
            assert (await call(wire, session))[1] == "gone"
            assert not [event for event in wire.events(session) if event["type"] == "mcp.oauth_required"]
            assert "access-" not in json.dumps(wire.messages)
        assert [grant["grant_type"] for grant in guard.grants] == ["authorization_code", "refresh_token"]
        assert stored(home)[f"{far.url}/mcp"]["access_token"] == "access-2"
        code, output = await run(home, "logout", "far")
        assert (code, output) == (0, "Logged out of far.\n")
        assert stored(home) == {}
        assert (await run(home, "logout", "far"))[1] == "There was no login to far.\n"
        async with running_server(tmp_path) as server:
            session = await server.wire.create(scripted({"text": "hi"}))
            await status(server.wire, session, "far", "needs-auth")


async def test_a_token_that_is_about_to_expire_is_renewed_before_it_is_sent(tmp_path: Path) -> None:
    home, guard = tmp_path / "home", LoginServer(expires_in=5)
    async with ModelServer(answer=guard) as far:
        configured(home, far.url)
        await log_in(home, "far")
        guard.expires_in = 3600
        assert "renewed at its next use" in (await run(home, "list"))[1]
        async with running_server(tmp_path) as server:
            session = await server.wire.create(scripted({"text": "hi"}))
            await status(server.wire, session, "far", "connected")
        sent = [request.headers.get("authorization") for request in far.requests if request.path == "/mcp"]
    assert "Bearer access-1" not in sent


async def test_a_client_is_asked_if_a_login_cannot_be_renewed(tmp_path: Path) -> None:
    home, guard = tmp_path / "home", LoginServer()
    async with ModelServer(answer=guard) as far:
        configured(home, far.url)
        await log_in(home, "far")
        guard.valid = guard.refresh = "revoked"
        async with running_server(tmp_path) as server:
            session = await server.wire.create(scripted({"text": "hi"}))
            await status(server.wire, session, "far", "needs-auth")
            await server.wire.until(lambda message: "requires a login" in str(message))
            # The user logs in again elsewhere, and the client reports that.
            await log_in(home, f"{far.url}/mcp")
            await server.wire.call("session.mcp.oauth.authenticationStateChanged", {"sessionId": session})
            await status(server.wire, session, "far", "connected")


async def test_a_session_with_tokens_in_memory_uses_no_stored_login(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with ModelServer(answer=LoginServer()) as far:
        configured(home, far.url)
        await log_in(home, "far")
        async with running_server(tmp_path) as server:
            wire = server.wire
            session = await wire.create(scripted({"text": "hi"}), mcpOAuthTokenStorage="in-memory")
            await status(wire, session, "far", "needs-auth")
            error = await wire.error_of("session.mcp.oauth.login", {"sessionId": session, "serverName": "far"})
    assert "'in-memory'" in error["message"]


async def test_a_token_is_sent_only_to_the_url_it_was_issued_for(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with ModelServer(answer=LoginServer()) as far, ModelServer(answer=LoginServer()) as other:
        configured(home, far.url)
        await log_in(home, "far")
        async with running_server(tmp_path) as server:
            servers: JsonObject = {"far": {"url": f"{other.url}/mcp"}}
            session = await server.wire.create(scripted({"text": "hi"}), mcpServers=servers)
            await status(server.wire, session, "far", "needs-auth")
        assert all("authorization" not in request.headers for request in other.requests)


async def test_only_the_browser_that_began_the_login_is_accepted(tmp_path: Path) -> None:
    home, guard = tmp_path / "home", LoginServer()
    async with ModelServer(answer=guard) as far, terminal(home, "login", f"{far.url}/mcp") as at:
        address = await at.address()
        callback = next(iter(guard.clients.values()))[0]
        for query in ("?code=stolen&state=guessed", "?code=stolen", "?error=access_denied&state=", ""):
            assert (await browse(callback + query)).status_code == 404
        assert (await browse(callback.replace("/callback", "/other"))).status_code == 404
        assert (await browse(address)).status_code == 200
        assert (await at.end())[0] == 0
    assert [grant["code"] for grant in guard.grants] == ["code-1"]


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        (LoginServer(denies=True), "access_denied"),
        (LoginServer(token_endpoint="http://thief.example/token"), "without encryption"),
        (LoginServer(registers=False), "--client-id"),
    ],
)
async def test_a_failed_login_has_a_reason_and_stores_nothing(
    tmp_path: Path, guard: LoginServer, expected: str
) -> None:
    async with ModelServer(answer=guard) as far, terminal(tmp_path, "login", f"{far.url}/mcp") as at:
        if guard.denies:
            assert (await browse(await at.address())).status_code == 400
        code, output = await at.end()
    assert code == 1
    assert expected in output
    assert not (tmp_path / "mcp-tokens.json").exists()


@pytest.mark.parametrize("named", ["registration_endpoint", "token_endpoint"])
async def test_a_server_on_the_internet_sends_no_login_to_services_of_this_machine(
    tmp_path: Path, named: str
) -> None:
    async with ModelServer(answer=lambda _: text_reply("")) as inner:
        guard = LoginServer()
        setattr(guard, named, f"{inner.url}/admin")
        async with ModelServer(answer=guard) as proxy:
            environ = {"http_proxy": proxy.url, "no_proxy": "127.0.0.1"}
            async with terminal(tmp_path, "login", "http://far.example/mcp", **environ) as at:
                code, output = await at.end()
        assert (code, inner.requests) == (1, [])
    assert "not on the public internet" in output


async def test_addresses_of_logins_are_not_nearer_than_the_server() -> None:
    near, far = "http://127.0.0.1:1/", "https://93.184.216.34/"
    cases = {
        (far, far): True, (far, "https://1.1.1.1/"): True, (far, "https://10.0.0.1/"): False, (far, near): False,
        (far, "http://[::1]/"): False, (far, "http://[::ffff:127.0.0.1]/"): False, (far, "http://0.0.0.0/"): False,
        ("https://10.0.0.1/", "https://10.0.0.2/"): True, ("https://10.0.0.1/", near): False,
        ("https://10.0.0.1/", "http://169.254.169.254/"): False, (near, "https://10.0.0.1/"): True,
    }  # fmt: skip
    for (server, named), allowed in cases.items():
        try:
            await Endpoints(server).check(named)
        except NearerError:
            assert not allowed, (server, named)
        else:
            assert allowed, (server, named)


async def test_a_registered_client_logs_in_with_its_secret(tmp_path: Path) -> None:
    home, guard = tmp_path / "home", LoginServer(registers=False)
    async with ModelServer(answer=guard) as far:
        configured(home, far.url)
        await log_in(home, "far", "--client-id", "ours", "--client-secret-env", "SECRET", SECRET="shh-it-is")
    (grant,) = guard.grants
    assert (grant["client_id"], grant["client_secret"]) == ("ours", "shh-it-is")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["login", "nowhere"], "unknown MCP server 'nowhere'"),
        (["login", "program"], "is a program"),
        (["login"], "required"),
        (["nonsense"], "unknown command 'nonsense' of jumpseat mcp, expected one of list, login, logout"),
        (["login", "https://example.com", "--client-secret-env", "UNSET"], "UNSET is not set"),
    ],
)
async def test_servers_without_login_are_usage_errors(tmp_path: Path, argv: list[str], expected: str) -> None:
    config = {"mcpServers": {"program": {"command": "x"}}}
    (tmp_path / "mcp-config.json").write_text(json.dumps(config))
    code, output = await run(tmp_path, *argv)
    assert code == 2
    assert output.startswith("error: ")
    assert expected.removeprefix("it ") in output


# --- by a client --------------------------------------------------------------------------------------------------


async def test_a_server_connects_after_a_login_by_a_client(tmp_path: Path) -> None:
    guard = LoginServer()
    async with ModelServer(answer=guard) as far, running_server(tmp_path, args=YOLO) as server:
        wire = server.wire
        session = await wire.create(scripted(*turn("far-go")), mcpServers={"far": {"url": f"{far.url}/mcp"}})
        await status(wire, session, "far", "needs-auth")
        await wire.until(lambda message: "requires a login" in str(message))
        params: JsonObject = {"sessionId": session, "serverName": "far", "callbackSuccessMessage": "<b>Welcome</b>"}
        address = (await wire.call("session.mcp.oauth.login", params))["authorizationUrl"]
        assert "&lt;b&gt;Welcome" in (await browse(address)).text
        await status(wire, session, "far", "connected")
        assert (await call(wire, session))[1] == "gone"
        # A server with a login needs no browser, unless a new login is forced.
        assert await wire.call("session.mcp.oauth.login", params) == {}
        again = await wire.call("session.mcp.oauth.login", {**params, "forceReauth": True})
        assert again["authorizationUrl"] != address


async def test_a_login_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    async with ModelServer(answer=LoginServer(registers=False)) as far, running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "hi"}), mcpServers={"far": {"url": f"{far.url}/mcp"}})
        await status(wire, session, "far", "needs-auth")
        error = await wire.error_of("session.mcp.oauth.login", {"sessionId": session, "serverName": "far"})
        await wire.check_alive()
    assert "client" in error["message"]
