"""What clients of the Agent Client Protocol over a network get by their tokens, and what they cannot take away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest
from anyio.abc import TaskStatus

from jumpseat.acp import draft_routes, v1_routes
from jumpseat.acp.remote.http import MOST_ABSENT
from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from tests.acp.test_remote import TOKEN, Place, greeting, serving
from tests.support.cases import all_cases
from tests.support.certificates import certificate as certificate
from tests.support.editor import Editor, Schemas
from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.server import JsonObject

pytestmark = pytest.mark.anyio

CONFIG: Final = """
[adapters.fake]
type = "scripted"
script = "script.json"
models = ["one"]
[adapters.openai]
base_url = "http://models.internal:8000/v1"
models = ["m"]
"""
UNKNOWN: Final = "00000000-0000-0000-0000-000000000000"
OPENING: Final = frozenset({"initialize", "session/new", "session/list", "session/prompt"})
"""The methods that name no session, and the one that is tried last."""


@asynccontextmanager
async def shared(folder: Path, schemas: Schemas) -> AsyncGenerator[tuple[Place, Mapping[str, str]]]:
    """Run a server with the tokens of Ada, Bob and an administrator, who has the right ``all``."""
    tokens = ConnectionTokenFile(folder / "home")
    texts = {name: tokens.add(name, all_sessions=name == "admin") for name in ("ada", "bob", "admin")}
    async with serving(folder, schemas, token=None, without_token=(), config=CONFIG) as place:
        yield place, texts


def params_of(session: str, folder: Path) -> JsonObject:
    """Return params that fit each method about a session."""
    mode = "https://agentclientprotocol.com/protocol/session-modes#plan"
    return {
        "sessionId": session,
        "cwd": str(folder),
        "mcpServers": [],
        "prompt": [{"type": "text", "text": "hi"}],
        "modeId": mode,
        "modelId": "fake/one",
        "configId": "mode",
        "type": "id",
        "value": mode,
        "title": "taken",
    }


async def answer(editor: Editor, method: str, params: JsonObject) -> str:
    number = await editor.ask(method, params)
    message = await editor.until(lambda message: message.get("id") == number and "method" not in message)
    return str({"result": message.get("result"), "error": message.get("error")})


@pytest.mark.parametrize("version", [1, 2])
async def test_no_method_tells_a_session_of_another_token_from_an_unknown_one(
    tmp_path: Path, schemas: Schemas, draft_schemas: Schemas, version: int
) -> None:
    routes = v1_routes.REQUESTS if version == 1 else draft_routes.REQUESTS
    methods = [*sorted({name for name in routes if name.startswith("session/")} - OPENING), "session/prompt"]
    async with shared(tmp_path, schemas) as (place, tokens), place.over("web", tokens["ada"]) as ada:
        await ada.call("initialize", greeting())
        session = await ada.new(tmp_path)
        assert (await ada.say(session, "hi"))["stopReason"] == "end_turn"
        other = Place(place.server, place.web_port, schemas if version == 1 else draft_schemas)
        async with other.over("web", tokens["bob"]) as bob:
            hello = {"capabilities": {}, "info": {"name": "test", "version": "1"}} if version == 2 else {}
            await bob.call("initialize", {**greeting(), "protocolVersion": version, **hello})
            with all_cases() as case:
                for method in methods:
                    with case(method):
                        expected = await answer(bob, method, params_of(UNKNOWN, tmp_path))
                        assert "Invalid params" not in expected
                        assert (await answer(bob, method, params_of(session, tmp_path))).replace(
                            session, UNKNOWN
                        ) == expected
            assert (await bob.call("session/list", {}))["sessions"] == []
        listed = (await ada.call("session/list", {}))["sessions"]
        assert [(one["sessionId"], one.get("title")) for one in listed] == [(session, "hi")]


async def test_a_connection_over_http_is_that_of_its_token_alone(tmp_path: Path, schemas: Schemas) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting()}
    ask: JsonObject = {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}}
    async with shared(tmp_path, schemas) as (place, tokens), httpx2.AsyncClient(timeout=WAIT_S) as client:
        url = f"http://127.0.0.1:{place.web_port}/acp"
        of = {name: {"Authorization": f"Bearer {token}"} for name, token in tokens.items()}
        greeted = await client.post(url, json=hello, headers=of["ada"])
        number = {"Acp-Connection-Id": greeted.headers["Acp-Connection-Id"]}
        for name in ("bob", "admin"):
            tries: tuple[tuple[str, dict[str, Any]], ...] = (
                ("POST", {"json": ask}),
                ("GET", {"headers": {"Accept": "text/event-stream"}}),
                ("DELETE", {}),
            )
            for method, given in tries:
                headers = {**of[name], **number, **given.pop("headers", {})}
                refused = await client.request(method, url, headers=headers, **given)
                assert refused.status_code == 404, (name, method)
        # Nobody can fill the server with connections that have no socket: the oldest one ends.
        for _ in range(MOST_ABSENT):
            await client.post(url, json=hello, headers=of["bob"])
        assert (await client.post(url, json=ask, headers={**of["ada"], **number})).status_code == 202
        for _ in range(MOST_ABSENT):
            await client.post(url, json=hello, headers=of["ada"])
        assert (await client.post(url, json=ask, headers={**of["ada"], **number})).status_code == 404


async def test_streams_count_among_the_connections_of_a_server(tmp_path: Path, schemas: Schemas) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting()}
    async with (
        serving(tmp_path, schemas, file_handles=128) as place,
        httpx2.AsyncClient(timeout=WAIT_S) as client,
        anyio.create_task_group() as tasks,
    ):
        url = f"http://127.0.0.1:{place.web_port}/acp"
        token = {"Authorization": f"Bearer {TOKEN}"}
        greeted = await client.post(url, json=hello, headers=token)
        number = {"Acp-Connection-Id": greeted.headers["Acp-Connection-Id"]}

        async def stream(name: str, *, task_status: TaskStatus[bool]) -> None:
            headers = {**token, **number, "Acp-Session-Id": name, "Accept": "text/event-stream"}
            try:
                async with client.stream("GET", url, headers=headers) as response:
                    task_status.started(response.status_code == 200)
                    await anyio.sleep_forever()
            except httpx2.HTTPError:
                task_status.started(False)

        # Half of the file handles are left to sessions; one connection of the limit has no socket.
        opened = [await tasks.start(stream, f"session-{number}") for number in range(70)]
        assert opened == [True] * 63 + [False] * 7
        tasks.cancel_scope.cancel()


async def test_addresses_and_names_of_providers_are_shown_to_operators_only(
    tmp_path: Path, schemas: Schemas
) -> None:
    async with shared(tmp_path, schemas) as (place, tokens):
        for name, sees in (("admin", True), ("ada", False)):
            async with place.over("web", tokens[name]) as editor:
                await editor.call("initialize", greeting())
                status = await editor.call("auth/status", {})
                assert status["state"] == "authenticated"
                assert bool(status["accounts"]) is sees
                assert ("models.internal" in str(await editor.call("providers/list", {}))) is sees


async def test_a_request_that_is_no_http_leaves_no_token_in_the_log(tmp_path: Path, schemas: Schemas) -> None:
    async with serving(tmp_path, schemas, args=["--log-level", "debug"]) as place:
        for request in (
            f"POST /acp?tkn={TOKEN} x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            f"POST /acp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization Bearer {TOKEN}\r\n\r\n",
            f"GET /acp?tkn={TOKEN} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
            f"GET /ahp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\x01\r\n\r\n",
        ):
            async with await anyio.connect_tcp("127.0.0.1", place.web_port) as stream:
                await stream.send(request.encode())
                with anyio.fail_after(WAIT_S):
                    while True:
                        try:
                            await stream.receive()
                        except (anyio.EndOfStream, anyio.BrokenResourceError):
                            break
        assert "no HTTP" in place.server.stderr
        assert TOKEN not in place.server.stderr


@pytest.mark.parametrize("way", ["wss", "tcps"])
async def test_the_bridge_speaks_tls_with_servers_whose_certificate_it_knows(
    tmp_path: Path, schemas: Schemas, certificate: tuple[Path, Path], way: str
) -> None:
    args = ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1])]
    async with serving(tmp_path, schemas, args=args) as place:
        port = place.web_port if way == "wss" else place.server.port
        url = f"{way}://127.0.0.1:{port}"
        trusting = ["--tls-ca", str(certificate[0])]
        async with place.bridged(url, tmp_path, options=trusting) as (editor, _process):
            await editor.initialize()
            session = await editor.new(tmp_path)
            assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"
            assert editor.answer_text(session) == "ok"
        # Neither a certificate of somebody else nor one for another name gets the token.
        for address, options in ((url, ()), (url.replace("127.0.0.1", "localhost"), trusting)):
            ended = await anyio.run_process(
                [executable(), "acp", "--connect", address, *options],
                input=b"",
                env={"PATH": "/usr/bin:/bin", "COPILOT_CONNECTION_TOKEN": TOKEN},
                check=False,
            )
            assert ended.returncode == 1
            assert "the certificate of the server is not valid" in ended.stderr.decode()
        assert TOKEN not in place.server.stderr
