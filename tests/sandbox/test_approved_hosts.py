"""Confined commands reach approved hosts through the proxy; a person decides about other hosts."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream, TaskStatus

from tests.agent.permissions.test_permissions_over_the_wire import (
    DONE,
    ONCE,
    REJECT,
    bash,
    data_of,
    open_session,
    run,
)
from tests.sandbox.parts import MECHANISMS
from tests.support.server import JsonObject, calls, running_server

pytestmark = [pytest.mark.anyio, pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")]

FOR_SESSION = {"kind": "approve-for-session"}
ORIGIN = "127.0.0.2"
"""An address of this host that programs reach through the proxy only, unlike 127.0.0.1."""

GET = (
    "python3 -c 'import sys, urllib.request, urllib.error\n"
    "try: print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())\n"
    "except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n"
    "except OSError as error: print(error)' {url}"
)
"""A command that loads a URL, through the proxy of the environment."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


class Origin:
    """An HTTP server that is also a proxy: it answers every request, and every request in a tunnel."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[str] = []

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with await anyio.create_tcp_listener(local_host=ORIGIN) as listener:
            self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
            task_status.started()
            await listener.serve(self._answer)

    async def _answer(self, client: SocketStream) -> None:
        async with client:
            data = b""
            try:
                while True:
                    while b"\r\n\r\n" not in data:
                        data += await client.receive()
                    head, _, data = data.partition(b"\r\n\r\n")
                    self.requests.append(head.decode().splitlines()[0])
                    if head.startswith(b"CONNECT"):
                        await client.send(b"HTTP/1.1 200 OK\r\n\r\n")
                    else:
                        await client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nreached")
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return


@asynccontextmanager
async def origin() -> AsyncGenerator[Origin, None]:
    served = Origin()
    async with anyio.create_task_group() as tasks:
        await tasks.start(served.serve)
        yield served
        tasks.cancel_scope.cancel()


def contents(events: list[JsonObject]) -> list[str]:
    return [data["result"]["content"] for data in data_of(events, "tool.execution_complete")]


async def test_a_listed_host_is_reached_and_a_host_that_a_person_rejects_is_not(
    tmp_path: Path, project: Path
) -> None:
    config = f'[sandbox]\nmode = "auto"\nhosts = ["{ORIGIN}"]\n[permissions]\nallow = ["sandboxed"]\n'
    async with origin() as served, running_server(tmp_path, config=config) as server:
        url = f"http://{ORIGIN}:{served.port}/a"
        other = f"http://other.example:{served.port}/"
        turns = [bash(GET.format(url=url)), bash(GET.format(url=other)), DONE]
        session = await open_session(server, project, *turns)
        events = await run(server.wire, session, REJECT)
        first, second = contents(events)
        assert "reached" in first
        assert "403 The sandbox: other.example is not among the hosts" in second
        assert "<the sandbox refused connecting to other.example>" in second
        (asked,) = data_of(events, "permission.requested")
        request = asked["permissionRequest"]
        assert (request["kind"], request["url"]) == ("url", other)
        assert request["intention"].startswith("Let a command connect: python3 -c")
        assert served.requests == ["GET /a HTTP/1.1"]


async def test_a_person_approves_a_host_once_or_for_the_session(tmp_path: Path, project: Path) -> None:
    config = '[sandbox]\nmode = "auto"\n[permissions]\nallow = ["sandboxed"]\n'
    async with origin() as served:
        # The proxy of the environment answers for hosts that do not exist.
        env = {"HTTPS_PROXY": f"http://{ORIGIN}:{served.port}"}
        async with running_server(tmp_path, config=config, env=env) as server:
            one, two = (GET.format(url=f"http://{name}.example/") for name in ("one", "two"))
            turns = [bash(f"{one}; {one}"), bash(one), bash(two), bash(two), DONE]
            session = await open_session(server, project, *turns)
            events = await run(server.wire, session, ONCE, ONCE, FOR_SESSION)
            assert [text.count("reached") for text in contents(events)] == [2, 1, 1, 1]
            assert served.requests[:2] == ["CONNECT one.example:80 HTTP/1.1", "GET / HTTP/1.1"]


async def test_an_approved_command_reaches_the_hosts_that_it_names(tmp_path: Path, project: Path) -> None:
    async with origin() as served:
        env = {"HTTPS_PROXY": f"http://{ORIGIN}:{served.port}"}
        async with running_server(tmp_path, config='[sandbox]\nmode = "auto"\n', env=env) as server:
            line = GET.format(url="http://named.example/")
            session = await open_session(server, project, bash(line), DONE)
            events = await run(server.wire, session, ONCE)
            assert "reached" in contents(events)[0]
            request = data_of(events, "permission.requested")[0]["permissionRequest"]
            assert (request["sandboxed"], request["sandboxHosts"]) == (True, ["named.example"])


async def test_an_approved_name_does_not_lead_to_a_private_address(tmp_path: Path, project: Path) -> None:
    config = '[sandbox]\nmode = "auto"\n[permissions]\nallow = ["sandboxed", "url"]\n'
    async with origin() as served, running_server(tmp_path, config=config) as server:
        line = GET.format(url=f"http://{ORIGIN}:{served.port}/")
        session = await open_session(server, project, bash(line), DONE)
        (text,) = contents(await run(server.wire, session))
        assert "502" in text
        assert "its address is private" in text
        assert served.requests == []


async def test_the_policy_of_a_session_allows_and_blocks_hosts(tmp_path: Path, project: Path) -> None:
    async with origin() as served:
        network: dict[str, Any] = {
            "allowOutbound": True,
            "allowedHosts": ["*.example"],
            "blockedHosts": ["bad.example"],
            "proxy": {"url": f"http://{ORIGIN}:{served.port}"},
        }
        sandbox = {"enabled": True, "userPolicy": {"network": network}}
        async with running_server(tmp_path) as server:
            names = ("good.example", "bad.example", "very.bad.example", "good.test")
            line = ";".join(GET.format(url=f"http://{name}/") for name in names)
            session = await open_session(server, project, bash(line), DONE, sandboxConfig=sandbox)
            (text,) = contents(await run(server.wire, session, ONCE))
        assert re.findall(r"^(?:reached|403)", text, re.MULTILINE) == ["reached", "403", "403", "403"]
        assert len(served.requests) == 2


async def test_a_deny_rule_closes_a_host_of_an_approved_command(tmp_path: Path, project: Path) -> None:
    config = f'[sandbox]\nhosts = ["{ORIGIN}"]\n[permissions]\nallow = ["sandboxed"]\ndeny = ["url({ORIGIN})"]\n'
    async with origin() as served, running_server(tmp_path, config=config) as server:
        script = GET.format(url=f"http://127.0.0.$((1 + 1)):{served.port}/")
        session = await open_session(server, project, bash(script), DONE)
        (text,) = contents(await run(server.wire, session, ONCE))
        assert "403" in text
        assert served.requests == []


async def test_a_command_reaches_the_server_that_another_command_has_started(tmp_path: Path, project: Path) -> None:
    config = '[sandbox]\nmode = "auto"\n[permissions]\nallow = ["sandboxed"]\n'
    (project / "file").write_text("from the other command")
    serve = (
        "import http.server, pathlib;"
        "s = http.server.ThreadingHTTPServer(('127.0.0.1', 8000), http.server.SimpleHTTPRequestHandler);"
        "pathlib.Path('ready').touch(); s.serve_forever()"
    )
    started = calls("bash", command=f'python3 -c "{serve}"', mode="async", detach=True)
    wait = f"while [ ! -e ready ]; do sleep 0.02; done; {GET.format(url='http://localhost:8000/file')}"
    async with running_server(tmp_path, config=config) as server:
        alone = bash("python3 -c \"import socket; socket.create_connection(('127.0.0.1', 9))\"")
        session = await open_session(server, project, started, bash(wait), alone, DONE)
        _, reached, refused = contents(await run(server.wire, session))
        assert "from the other command" in reached
        assert "<the sandbox refused connecting to a service at localhost that no command of this" in refused


async def test_nothing_but_the_proxy_leads_out(tmp_path: Path, project: Path) -> None:
    script = (
        "import os, socket, sys\n"
        "def attempt(name, act):\n"
        "    try:\n"
        "        act()\n"
        "        print(name, 'reached')\n"
        "    except OSError as error:\n"
        "        print(name, 'refused')\n"
        "def udp(address, family=socket.AF_INET):\n"
        "    with socket.socket(family, socket.SOCK_DGRAM) as s:\n"
        "        s.connect(address); s.send(b'x')\n"
        "port = int(sys.argv[1])\n"
        f"attempt('tcp', lambda: socket.create_connection(('{ORIGIN}', port), 2))\n"
        "attempt('loopback', lambda: socket.create_connection(('127.0.0.1', port), 2))\n"
        "attempt('public', lambda: socket.create_connection(('192.0.2.1', 80), 2))\n"
        "attempt('udp', lambda: udp(('192.0.2.1', 53)))\n"
        "attempt('ipv6', lambda: udp(('2001:db8::1', 53), socket.AF_INET6))\n"
        "attempt('name', lambda: socket.getaddrinfo('example.com', 80))\n"
        "attempt('namespace', lambda: os.listdir(f'/proc/{sys.argv[2]}/fd'))\n"
    )
    (project / "leave.py").write_text(script)
    config = '[sandbox]\nmode = "auto"\n[permissions]\nallow = ["sandboxed"]\n'
    async with origin() as served, running_server(tmp_path, config=config) as server:
        line = f"python3 leave.py {served.port} {server.process.pid}"
        session = await open_session(server, project, bash(line), DONE)
        (text,) = contents(await run(server.wire, session))
        assert text.count("refused") >= 7, text
        assert "reached" not in text
        assert served.requests == []


async def test_the_proxy_answers_invalid_requests_with_an_error(tmp_path: Path, project: Path) -> None:
    requests = {
        "no HTTP": "\\x00\\x01\\r\\n\\r\\n",
        "no URL": "GET /path HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "another scheme": "GET ftp://x.example/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "no port": "CONNECT x.example HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "a wrong port": "CONNECT x.example:99999 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "another wrong port": "CONNECT x.example:x HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "no host": "CONNECT :443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
        "a strange host": "CONNECT a/b\\\\c:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n",
    }
    script = (
        "import json, os, socket, urllib.parse\n"
        "proxy = urllib.parse.urlsplit(os.environ['HTTP_PROXY'])\n"
        "for name, data in json.load(open('requests.json')).items():\n"
        "    with socket.create_connection((proxy.hostname, proxy.port)) as client:\n"
        "        client.sendall(data.encode().decode('unicode_escape').encode('latin-1'))\n"
        "        print(name, client.recv(100).split()[1].decode(), sep=': ')\n"
    )
    (project / "requests.json").write_text(json.dumps(requests))
    (project / "send.py").write_text(script)
    config = '[sandbox]\nmode = "auto"\n[permissions]\nallow = ["sandboxed"]\n'
    async with running_server(tmp_path, config=config) as server:
        session = await open_session(server, project, bash("python3 send.py"), DONE)
        (text,) = contents(await run(server.wire, session))
    assert text.splitlines()[:-1] == [f"{name}: 400" for name in requests]
