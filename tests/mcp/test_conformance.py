"""The official conformance suite for clients, against a session with the suite's server.

docs/mcp.md lists the scenarios that are left out, with the reasons.

https://github.com/modelcontextprotocol/conformance
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import httpx2
import pytest

from tests.support.server import JsonObject, Wire, calls, running_server, scripted
from tests.support.toolchains import missing, require_npm

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

SUITE: Final = "0.1.16"
NODE: Final = "24.21.0"
NEEDED_NODE: Final = 22

CALLS: Final[dict[str, JsonObject]] = {
    "initialize": {"text": "nothing to call"},
    "tools_call": calls("far-add_numbers", a=5, b=3),
    "elicitation-sep1034-client-defaults": calls("far-test_client_elicitation_defaults"),
    "sse-retry": calls("far-test_reconnection"),
}
"""The first turn of each scenario; in all others, a login precedes a call."""

LOGINS: Final = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "scope-from-www-authenticate"),
    *("scope-from-scopes-supported", "scope-omitted-when-undefined", "scope-retry-limit"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration"),
    *("2025-03-26-oauth-endpoint-fallback", "resource-mismatch", "offline-access-scope"),
    "offline-access-not-supported",
)
SERVICES: Final = ("client-credentials-basic", "client-credentials-jwt")
"""Logins without a person."""
# The suite tells the client its server and its data, and waits until the client exits.
CLIENT: Final = '#!/bin/sh\nprintf "%s\\n%s\\n" "$1" "$MCP_CONFORMANCE_CONTEXT" > told\ncat end\n'


def node() -> str:
    """Return a Node.js that is new enough for the suite: that of the machine, or one from the package index."""
    found = shutil.which("node")
    if found is not None:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.removeprefix("v").partition(".")[0]) >= NEEDED_NODE:
            return found
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform) or missing("Node.js 22 is not there")
    package = f"node-{system}-{'arm64' if platform.machine() in ('arm64', 'aarch64') else 'x64'}"
    return str(require_npm(package, NODE) / "node_modules" / package / "bin" / "node")


@pytest.mark.parametrize("scenario", [*CALLS, *(f"auth/{name}" for name in (*LOGINS, *SERVICES))])
async def test_a_scenario_of_the_suite_passes(tmp_path: Path, scenario: str) -> None:
    suite = require_npm("@modelcontextprotocol/conformance", SUITE) / "node_modules" / "@modelcontextprotocol"
    for name in ("told", "end"):
        os.mkfifo(tmp_path / name)
    client = tmp_path / "client"
    client.write_text(CLIENT)
    client.chmod(0o700)
    command = [node(), str(suite / "conformance" / "dist" / "index.js"), "client"]
    options = ["--command", str(client), "--scenario", scenario, "--timeout", "60000"]
    checking = partial(
        subprocess.run, [*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    outputs: list[subprocess.CompletedProcess[str]] = []

    async def check() -> None:
        outputs.append(await anyio.to_thread.run_sync(checking))
        tell(tmp_path / "told", "\n\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check)
        url, context, *_ = (await anyio.Path(tmp_path / "told").read_text()).split("\n")
        given: JsonObject = json.loads(context or "{}")
        service = await configure(tmp_path, url, given) if scenario.removeprefix("auth/") in SERVICES else {}
        async with running_server(tmp_path, args=["--yolo"], **service) as server:
            await play(server.wire, scenario, None if service else url, given)
        tell(tmp_path / "end", "")
    assert outputs[0].returncode == 0, outputs[0].stdout


def tell(pipe: Path, text: str) -> None:
    """Write to a pipe if anybody reads it."""
    with suppress(OSError):
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        os.write(descriptor, text.encode())
        os.close(descriptor)


async def configure(folder: Path, url: str, context: JsonObject) -> JsonObject:
    """Return the options of a server whose file has the credentials of a service."""
    parts = httpx2.URL(url)
    async with httpx2.AsyncClient() as client:
        found = await client.get(parts.copy_with(path=f"/.well-known/oauth-protected-resource{parts.path}"))
    settings: JsonObject = {
        "url": url,
        "oauthGrantType": "client_credentials",
        "oauthClientId": context["client_id"],
        "oauthIssuer": found.json()["authorization_servers"][0],
    }
    if "private_key_pem" in context:
        (folder / "key.pem").write_text(context["private_key_pem"])
        settings["oauthPrivateKeyFile"] = str(folder / "key.pem")
        settings["oauthSigningAlgorithm"] = context["signing_algorithm"]
    else:
        settings["oauthClientSecretEnv"] = "SERVICE_SECRET"
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    config = "\n".join(["[mcp.servers.far]", *lines, ""])
    return {"config": config, "env": {"SERVICE_SECRET": context.get("client_secret", "")}}


async def play(wire: Wire, scenario: str, url: str | None, context: JsonObject) -> None:
    """Connect a session to the server of a scenario, log in if it requires that, and call its tool.

    ``url`` is ``None`` for a server in a file.
    """
    turns = (CALLS.get(scenario, calls("far-test-tool")), {"text": "end"})
    options: JsonObject = {"requestElicitation": True, "requestPermission": False}
    servers = {} if url is None else {"far": {"url": url}}
    session = await wire.create(scripted(*turns), mcpServers=servers, **options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accept_forms, wire, session)
        if await connects(wire, session, context):
            await wire.prompt(session)
        tasks.cancel_scope.cancel()


async def connects(wire: Wire, session: str, context: JsonObject) -> bool:
    """Wait for the server, and log in if it requires that; return whether it is connected."""
    loaded = (await wire.event("session.mcp_servers_loaded", session=session))["data"]["servers"]
    if all(server["status"] != "needs-auth" for server in loaded):
        return True
    names = {"client_id": "clientId", "client_secret": "clientSecret"}
    client = {names[name]: value for name, value in context.items() if name in names}
    params: JsonObject = {"sessionId": session, "serverName": "far", **client}
    reply = await wire.response(await wire.ask("session.mcp.oauth.login", params))
    if "error" in reply:
        return False
    since = len(wire.messages)
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        await browser.get(reply["result"]["authorizationUrl"])

    def settles(message: JsonObject) -> bool:
        event = message.get("params", {}).get("event", {})
        is_change = event.get("type") == "session.mcp_server_status_changed"
        return is_change and event["data"]["status"] in ("connected", "needs-auth", "failed")

    changed = await wire.until(settles, since=since)
    return changed["params"]["event"]["data"]["status"] == "connected"


async def accept_forms(wire: Wire, session: str) -> None:
    """Accept each form without a value."""
    since = 0
    while True:
        asked = await wire.event("elicitation.requested", session=session, since=since)
        since = len(wire.messages)
        params = {"sessionId": session, "requestId": asked["data"]["requestId"]}
        result: JsonObject = {"action": "accept", "content": {}}
        await wire.call("session.ui.handlePendingElicitation", {**params, "result": result})
