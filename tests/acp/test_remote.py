"""Remote clients of the Agent Client Protocol: over WebSockets and TCP, with tokens, beside other clients."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any, Final

import anyio
import httpx2
import pytest
from anyio.abc import Process, TaskGroup, TaskStatus
from anyio.streams.stapled import StapledByteStream
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.support.cases import all_cases
from tests.support.editor import CONFIG, Editor, Schemas, option
from tests.support.forked import executable
from tests.support.limits import WAIT_S
from tests.support.ports import closed_port
from tests.support.server import JsonObject, RunningServer, calls, running_server
from tests.support.tcp_forwarder import forwarder

pytestmark = pytest.mark.anyio

TOKEN: Final = "an-acp-token"
"""The connection token of the servers of these tests."""


JSON: Final = {"Content-Type": "application/json"}
PLAIN: Final = {"Content-Type": "text/plain"}


class WebSocketEnd(anyio.abc.ByteStream):
    """A WebSocket as a stream of lines."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client

    async def receive(self, max_bytes: int = 65536) -> bytes:
        from websockets.exceptions import ConnectionClosed

        try:
            message = await self._client.recv(decode=False)
        except ConnectionClosed:
            raise anyio.EndOfStream from None
        return message + b"\n"

    async def send(self, item: bytes) -> None:
        await self._client.send(item.decode())

    async def send_eof(self) -> None:
        await self._client.close()

    async def aclose(self) -> None:
        await self._client.close()


class Place:
    """A running server, and the ways to its doors."""

    def __init__(self, server: RunningServer, web_port: int, schemas: Schemas) -> None:
        self.server = server
        self.web_port = web_port
        self._schemas = schemas

    @asynccontextmanager
    async def over(self, way: str, token: str = TOKEN) -> AsyncGenerator[Editor]:
        """Connect an editor that has not sent anything yet."""
        if way == "tcp":
            stream = await anyio.connect_tcp("127.0.0.1", self.server.port or 0)
            async with stream, self.talking(stream) as editor:
                yield editor
        else:
            headers = {"Authorization": f"Bearer {token}"}
            address = f"ws://127.0.0.1:{self.web_port}/acp"
            async with connect(address, proxy=None, additional_headers=headers) as client:
                assert client.response is not None
                assert client.response.headers["Acp-Connection-Id"]
                async with self.talking(WebSocketEnd(client)) as editor:
                    yield editor

    @asynccontextmanager
    async def talking(self, stream: Any) -> AsyncGenerator[Editor]:
        editor = Editor(stream, self._schemas)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(editor.read)
            tasks.start_soon(editor.answer_questions)
            yield editor
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def bridged(
        self, url: str, folder: Path, token: str = TOKEN, options: Sequence[str] = ()
    ) -> AsyncGenerator[tuple[Editor, Process]]:
        """Start the bridge as an editor would."""
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "COPILOT_CONNECTION_TOKEN": token}
        command = [executable(), "acp", "--connect", url, *options]
        async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            async with self.talking(StapledByteStream(process.stdin, process.stdout)) as editor:
                yield editor, process
                await process.stdin.aclose()
                with anyio.fail_after(WAIT_S):
                    assert await process.wait() == 0

    @asynccontextmanager
    async def editor(self, way: str = "web") -> AsyncGenerator[Editor]:
        """Connect an editor with the token, and introduce it."""
        async with self.over(way) as editor:
            await editor.call("initialize", greeting(TOKEN if way == "tcp" else None))
            yield editor


def greeting(token: str | None = None) -> JsonObject:
    meta = {"_meta": {"jumpseat": {"token": token}}} if token is not None else {}
    return {"protocolVersion": 1, "clientCapabilities": {}, **meta}


@asynccontextmanager
async def serving(
    folder: Path, schemas: Schemas, prompts: Sequence[JsonObject] = (), **options: Any
) -> AsyncGenerator[Place]:
    (folder / "home").mkdir(parents=True, exist_ok=True)
    script = {"prompts": list(prompts)} if prompts else {"turns": [{"text": "ok"}]}
    (folder / "home" / "script.json").write_text(json.dumps({**script, "after_last": "repeat"}))
    options = {"config": CONFIG, "token": TOKEN, **options}
    args = ["--ws-port", "0", *options.pop("args", ())]
    async with running_server(folder, tcp=True, args=args, handshake=False, **options) as server:
        line = await server.next_line()
        yield Place(server, int(line.removeprefix("jumpseat serves WebSocket clients on port ")), schemas)


@pytest.mark.parametrize("way", ["web", "tcp"])
async def test_an_editor_works_over_a_network_and_comes_back_to_its_session(
    tmp_path: Path, schemas: Schemas, way: str
) -> None:
    async with serving(tmp_path, schemas) as place:
        async with place.editor(way) as editor:
            session = await editor.new(tmp_path)
            assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"
            assert editor.answer_text(session) == "ok"
        async with place.editor(way) as editor:
            listed = (await editor.call("session/list", {}))["sessions"]
            assert [one["sessionId"] for one in listed] == [session]
            await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
            assert editor.answer_text(session) == "ok"


async def test_without_the_token_nothing_is_served(tmp_path: Path, schemas: Schemas) -> None:
    async with serving(tmp_path, schemas) as place:
        for token in ("", "wrong"):
            with pytest.raises(InvalidStatus) as refused:
                async with place.over("web", token=token):
                    pass
            assert refused.value.response.status_code == 403
        with pytest.raises(InvalidStatus):
            async with connect(
                f"ws://127.0.0.1:{place.web_port}/acp?tkn={TOKEN}",
                proxy=None,
                origin=Origin("https://evil.example"),
            ):
                pass
        async with place.over("tcp") as editor:
            for params in (greeting(), greeting("wrong")):
                error = await editor.error_of("initialize", params)
                assert error["code"] == -32000
                assert "_meta.jumpseat.token" in error["message"]
            assert (await editor.error_of("session/list", {}))["code"] == -32000
            await editor.call("initialize", greeting(TOKEN))
            await editor.call("session/list", {})
        assert TOKEN not in place.server.stderr


async def test_a_turn_goes_on_when_the_connection_of_its_editor_is_cut(tmp_path: Path, schemas: Schemas) -> None:
    script = [{"when": "make", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Made."}]}]
    async with serving(tmp_path, schemas, script) as place:
        async with place.editor() as editor:
            session = await editor.new(tmp_path)
            await editor.begin(session, "make")
            await editor.question("session/request_permission")
            await editor.hang_up()
        async with place.editor() as editor:
            editor.answers["session/request_permission"] = option("allow_once")
            await editor.call("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
            await editor.until(lambda _message: "Made." in editor.answer_text(session))
            assert (tmp_path / "made.txt").read_text() == "x"


async def test_two_editors_and_an_sdk_client_see_the_same_turn_and_the_first_answer_counts(
    tmp_path: Path, schemas: Schemas
) -> None:
    script = [{"when": "make", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Made."}]}]
    async with (
        serving(tmp_path, schemas, script) as place,
        place.editor("web") as first,
        place.editor("tcp") as second,
        place.server.connect(token=TOKEN) as sdk,
    ):
        session = await first.new(tmp_path)
        opening: JsonObject = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await second.call("session/load", opening)
        await sdk.call("session.resume", {"sessionId": session, "requestPermission": True})
        prompt = await first.begin(session, "make")
        asked = [await editor.question("session/request_permission") for editor in (first, second)]
        await sdk.event("permission.requested")
        chosen = next(one for one in asked[1]["params"]["options"] if one["kind"] == "allow_once")
        await second.answer(asked[1], option(chosen["optionId"]))
        # The editor that was too slow is told, and its late answer changes nothing.
        await first.until(lambda message: message.get("method") == "$/cancel_request")
        await first.answer(asked[0], option("reject_once"))
        assert (await first.response(prompt))["result"]["stopReason"] == "end_turn"
        await sdk.event("session.idle")
        for editor in (first, second):
            await editor.until(lambda _message, one=editor: "Made." in one.answer_text(session))
        await sdk.event("assistant.message", content="Made.")
        assert (tmp_path / "made.txt").read_text() == "x"


@pytest.mark.parametrize("way", ["web", "tcp"])
async def test_the_bridge_comes_back_after_a_cut_and_the_session_goes_on(
    tmp_path: Path, schemas: Schemas, way: str
) -> None:
    script = [
        {"when": "make", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Made."}]},
        {"when": "hi", "turns": [{"text": "Hello."}]},
    ]
    async with serving(tmp_path, schemas, script) as place:
        port = place.web_port if way == "web" else place.server.port or 0
        async with forwarder(port) as way_in:
            url = f"{'ws' if way == 'web' else 'tcp'}://127.0.0.1:{way_in.port}"
            async with place.bridged(url, tmp_path) as (editor, _process):
                await editor.initialize()
                session = await editor.new(tmp_path)
                assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"
                prompt = await editor.begin(session, "make")
                asked = await editor.question("session/request_permission")
                way_in.cut()
                lost = (await editor.response(prompt))["error"]["message"]
                assert lost == "the connection to the server was lost: the outcome of the request is not known"
                withdrawn = await editor.until(lambda message: message.get("method") == "$/cancel_request")
                assert withdrawn["params"]["requestId"] == asked["id"]
                # An answer that comes too late belongs to no question of the new connection.
                await editor.answer(asked, option("reject_once"))
                again = await editor.question("session/request_permission", since=editor.messages.index(withdrawn))
                await editor.answer(again, option("allow_once"))
                await editor.until(lambda _message: "Made." in editor.answer_text(session))
                assert (tmp_path / "made.txt").read_text() == "x"
                assert (await editor.say(session, "hi"))["stopReason"] == "end_turn"
        assert TOKEN not in place.server.stderr


async def test_the_bridge_says_why_there_is_no_connection_and_shows_no_secret(
    tmp_path: Path, schemas: Schemas
) -> None:
    async with serving(tmp_path, schemas) as place:
        with closed_port() as closed, all_cases() as case:
            for url, token, expected in (
                (f"ws://127.0.0.1:{place.web_port}", "wrong-secret", "the server refused the connection token"),
                (f"wss://127.0.0.1:{place.web_port}", TOKEN, "does the server use TLS?"),
                (f"tcps://127.0.0.1:{place.server.port}", TOKEN, "does the server use TLS?"),
                (f"ws://127.0.0.1:{place.web_port}/other", TOKEN, "expected a WebSocket for ACP, got HTTP status"),
                (f"ws://127.0.0.1:{closed}", TOKEN, "is the server running?"),
                (f"tcp://127.0.0.1:{closed}", TOKEN, "is the server running?"),
                (f"ws://127.0.0.1:{place.web_port}/acp?tkn={TOKEN}", TOKEN, "expected a URL without a token"),
                ("tcp://127.0.0.1", TOKEN, "expected wss://HOST[:PORT]"),
            ):
                with case(url):
                    environ = {"PATH": "/usr/bin:/bin", "COPILOT_CONNECTION_TOKEN": token}
                    ended = await anyio.run_process(
                        [executable(), "acp", "--connect", url], input=b"", env=environ, check=False
                    )
                    said = ended.stderr.decode()
                    assert ended.returncode != 0
                    assert said.startswith("error: ")
                    assert said.count("\n") == 1
                    assert expected in said
                    assert token not in said


class HttpEnd(anyio.abc.ByteStream):
    """A connection over streamable HTTP as a stream of lines: it opens the stream of each session that it sees."""

    def __init__(self, client: httpx2.AsyncClient, url: str, tasks: TaskGroup) -> None:
        self._client = client
        self._url = url
        self._tasks = tasks
        self.headers: dict[str, str] = {}
        self._opened: set[str] = set()
        self._arrived, self._lines = anyio.create_memory_object_stream[bytes](1000)

    async def send(self, item: bytes) -> None:
        for body in item.splitlines():
            params: JsonObject = json.loads(body).get("params") or {}
            session = str(params.get("sessionId", ""))
            if session:
                await self._open(session)
            headers = {**self.headers, **({"Acp-Session-Id": session} if session else {})}
            response = await self._client.post(
                self._url, content=body, headers={**headers, "Content-Type": "application/json"}
            )
            if self.headers:
                assert (response.status_code, response.content) == (202, b"")
            else:
                assert response.status_code == 200
                self.headers["Acp-Connection-Id"] = response.headers["Acp-Connection-Id"]
                await self._arrived.send(response.content + b"\n")
                await self._open("")

    async def _open(self, session: str) -> None:
        if session not in self._opened:
            self._opened.add(session)
            await self._tasks.start(self._follow, session)

    async def _follow(self, session: str, *, task_status: TaskStatus[None]) -> None:
        headers = {
            **self.headers,
            "Accept": "text/event-stream",
            **({"Acp-Session-Id": session} if session else {}),
        }
        async with self._client.stream("GET", self._url, headers=headers) as response:
            assert response.status_code == 200
            task_status.started()
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    await self._arrived.send(line.removeprefix("data: ").encode() + b"\n")

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._lines.receive()

    async def send_eof(self) -> None:
        """Do nothing: the connection is ended by a request."""

    async def aclose(self) -> None:
        await self._client.delete(self._url, headers=self.headers)
        self._tasks.cancel_scope.cancel()
        self._arrived.close()
        self._lines.close()


async def test_an_editor_works_over_streamable_http(tmp_path: Path, schemas: Schemas) -> None:
    script = [{"when": "make", "turns": [calls("create", path="made.txt", file_text="x"), {"text": "Made."}]}]
    async with serving(tmp_path, schemas, script) as place:
        url = f"http://127.0.0.1:{place.web_port}/acp"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as client,
            anyio.create_task_group() as tasks,
        ):
            end = HttpEnd(client, url, tasks)
            async with place.talking(end) as editor:
                await editor.initialize()
                session = await editor.new(tmp_path)
                prompt = await editor.begin(session, "make")
                asked = await editor.question("session/request_permission")
                await end.send(
                    json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": option("allow_once")}).encode()
                )
                assert (await editor.response(prompt))["result"]["stopReason"] == "end_turn"
                assert editor.answer_text(session) == "Made."
                assert (tmp_path / "made.txt").read_text() == "x"
                await end.aclose()
            gone = await client.get(url, headers={**end.headers, "Accept": "text/event-stream"})
            assert gone.status_code == 404


async def test_wrong_http_requests_get_the_status_that_the_specification_names(
    tmp_path: Path, schemas: Schemas
) -> None:
    async with serving(tmp_path, schemas) as place, httpx2.AsyncClient(timeout=WAIT_S) as client:
        url = f"http://127.0.0.1:{place.web_port}/acp"
        ours = {"Authorization": f"Bearer {TOKEN}"}
        ping: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting()}
        greeted = await client.post(url, json=hello, headers=ours)
        mine = {**ours, "Acp-Connection-Id": greeted.headers["Acp-Connection-Id"]}
        events = {"Accept": "text/event-stream"}
        requests: tuple[tuple[str, str, JsonObject, int], ...] = (
            ("no token", "POST", {"json": hello}, 403),
            ("a wrong token", "POST", {"json": hello, "headers": {"Authorization": "Bearer x"}}, 403),
            ("another origin", "POST", {"json": hello, "headers": {**ours, "Origin": "https://evil.org"}}, 403),
            ("another host", "POST", {"json": hello, "headers": {**ours, "Host": "evil.org"}}, 403),
            ("no connection", "POST", {"json": ping, "headers": ours}, 400),
            ("unknown", "POST", {"json": ping, "headers": {**ours, "Acp-Connection-Id": "x"}}, 404),
            ("a batch", "POST", {"json": [ping], "headers": mine}, 501),
            (
                "no JSON",
                "POST",
                {"content": b"{", "headers": {**mine, "Content-Type": "application/json"}},
                400,
            ),
            (
                "another type",
                "POST",
                {"content": b"{}", "headers": {**mine, "Content-Type": "text/plain"}},
                415,
            ),
            ("no events", "GET", {"headers": {**mine, "Accept": "application/json"}}, 406),
            ("a stream of nothing", "GET", {"headers": {**ours, **events}}, 400),
            ("an unknown stream", "GET", {"headers": {**ours, **events, "Acp-Connection-Id": "x"}}, 404),
            ("an unknown end", "DELETE", {"headers": {**ours, "Acp-Connection-Id": "x"}}, 404),
            ("another path", "POST", {"json": ping, "headers": ours}, 404),
            ("the end", "DELETE", {"headers": mine}, 202),
            ("after the end", "POST", {"json": ping, "headers": mine}, 404),
        )
        with all_cases() as case:
            for name, method, options, status in requests:
                with case(name):
                    address = url if name != "another path" else url.replace("/acp", "/other")
                    answer = await client.request(method, address, **options)
                    assert answer.status_code == status
        assert TOKEN not in place.server.stderr
