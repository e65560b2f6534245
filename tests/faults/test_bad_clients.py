"""Clients that stop reading, die, stop the server, or abort at a bad moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat_protocol.envelope import AUTHENTICATION_FAILED, METHOD_NOT_FOUND, encode_frame
from tests.support.events import data_of
from tests.support.limits import WAIT_S
from tests.support.server import (
    JsonObject,
    RunningServer,
    Wire,
    calls,
    frame,
    request,
    running_server,
    scripted,
    wait_until_gone,
)

pytestmark = pytest.mark.anyio

INTERRUPTED = "The execution of this tool, or a previous tool was interrupted."
LOOKUP: JsonObject = {"name": "lookup", "skipPermission": True}
SLEEPS = "echo started; sleep 300"
# The shell and its children ignore SIGTERM.
STUBBORN = "trap '' TERM; echo started; sleep 300"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Return the event loop, as for all tests, but with module scope."""
    return "asyncio"


async def answer(wire: Wire, session: str, request_id: str, result: Any) -> bool:
    params = {"sessionId": session, "requestId": request_id, "result": result}
    return (await wire.call("session.tools.handlePendingToolCall", params))["success"]


async def decide(wire: Wire, session: str, request_id: str, kind: str) -> bool:
    params = {"sessionId": session, "requestId": request_id, "result": {"kind": kind}}
    return (await wire.call("session.permissions.handlePendingPermissionRequest", params))["success"]


async def run_bash(wire: Wire, command: str) -> str:
    """Return a session in which ``command`` is running."""
    session = await wire.create(scripted(calls("bash", command=command), {"text": "done"}))
    await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    await wire.call("session.send", {"sessionId": session, "prompt": "go"})
    await wire.event("tool.execution_partial_result", session=session)
    return session


# --- clients that stop reading or go away -------------------------------------------------------------------------


# A busy machine needs long to write so much.
@pytest.mark.timeout(120)
async def test_a_client_that_stops_reading_uses_bounded_memory_and_delays_no_other(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True, limit_s=110) as server,
        server.connect() as stuck,
        server.connect() as other,
    ):
        # Some 60 MiB of deltas, and an answer of less than one.
        session = await stuck.create(scripted({"deltas": ["words "] * 150_000}), streaming=True)
        before = server.rss_bytes()
        await stuck.call("session.send", {"sessionId": session, "prompt": "talk"})
        stuck.stop_reading()
        own = await other.create(scripted({"text": "quick"}))
        assert data_of(await other.prompt(own), "assistant.message")[0]["content"] == "quick"
        # The server waits for the stalled client once; then its run ends, and all clients are notified.
        since = len(other.messages)
        for _ in range(8):
            with anyio.move_on_after(WAIT_S / 2):
                await other.until(
                    lambda message: (
                        message.get("method") == "session.lifecycle" and message["params"]["sessionId"] == session
                    ),
                    since=since,
                )
                break
        else:
            pytest.fail("the session of the stuck client has not ended")
        assert server.rss_bytes() - before < 48 << 20
        # When it reads again, it gets everything, the last deltas as one, before the message and the end.
        stuck.resume_reading()
        await stuck.event("session.idle", session=session)
        message = await stuck.event("assistant.message", session=session)
        assert len(message["data"]["content"]) == 900_000
        kinds = [event["type"] for event in stuck.events(session)]
        deltas = data_of(stuck.events(session), "assistant.message_delta")
        assert "".join(delta["deltaContent"] for delta in deltas) == message["data"]["content"]
        assert len(deltas) < 150_000
        assert "assistant.message_delta" not in kinds[kinds.index("assistant.message") :]


@pytest.mark.timeout(120)
async def test_a_session_does_not_wait_for_a_client_if_another_one_keeps_up(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True, limit_s=110) as server,
        server.connect() as stuck,
        server.connect() as other,
    ):
        provider = scripted({"deltas": ["words "] * 40_000})
        session = await stuck.create(provider, streaming=True)
        await other.call("session.resume", {"sessionId": session, "provider": provider, "streaming": True})
        stuck.stop_reading()
        await stuck.ask("session.send", {"sessionId": session, "prompt": "talk"})
        for _ in range(8):
            with anyio.move_on_after(WAIT_S / 2):
                await other.event("session.idle", session=session)
                break
        # The server would have logged that it has waited for the client that does not read.
        assert "stopped reading" not in server.stderr
        stuck.resume_reading()
        await stuck.event("session.idle", session=session)
        for wire in (other, stuck):
            deltas = data_of(wire.events(session), "assistant.message_delta")
            assert "".join(delta["deltaContent"] for delta in deltas) == "words " * 40_000
        assert len(deltas) < 40_000


async def test_a_client_that_dies_after_half_a_frame_affects_no_other(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as dying:
            await dying.send(frame(request(1, "ping"))[:-5])
        await other.check_alive()


async def test_a_session_whose_client_dies_during_a_stream_can_be_resumed_by_another(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        own = await other.create(scripted(calls("lookup"), {"text": "mine"}), tools=[LOOKUP])
        await other.call("session.send", {"sessionId": own, "prompt": "go"})
        request = await other.event("external_tool.requested", session=own)
        async with server.connect() as dying:
            session = await dying.create(
                scripted({"deltas": ["one ", "two "], "hang": True}, {"text": "back"}), streaming=True
            )
            await dying.call("session.send", {"sessionId": session, "prompt": "talk"})
            await dying.event("assistant.message_delta", deltaContent="two ")
        assert await answer(other, own, request["data"]["requestId"], "ok")
        await other.event("session.idle", session=own)
        await other.call("session.resume", {"sessionId": session})
        await other.call("session.abort", {"sessionId": session})
        await other.event("session.idle", session=session, aborted=True)
        # The scripted model counts the answers in the conversation; the truncated one is not among them.
        await other.call(
            "session.resume", {"sessionId": session, "provider": scripted({"text": "back"}), "streaming": False}
        )
        assert data_of(await other.prompt(session), "assistant.message")[0]["content"] == "back"


async def test_another_client_can_answer_the_call_of_a_client_that_died(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as dying:
            session = await dying.create(
                scripted(calls("lookup"), {"text": "found {{last_tool_result}}"}), tools=[LOOKUP]
            )
            await dying.call("session.send", {"sessionId": session, "prompt": "go"})
            request = await dying.event("external_tool.requested")
        params = {"sessionId": session, "continuePendingWork": True, "tools": [LOOKUP]}
        await other.call("session.resume", params)
        assert await answer(other, session, request["data"]["requestId"], "gold")
        await other.event("assistant.message", session=session, content="found gold")
        await other.event("session.idle", session=session)


async def test_nothing_runs_after_a_client_died_during_an_approval_until_another_decides(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as dying:
            turns = scripted(calls("bash", command="touch ran"), {"text": "done"})
            session = await dying.create(turns, requestPermission=True, workingDirectory=str(project))
            await dying.call("session.send", {"sessionId": session, "prompt": "go"})
            request = await dying.event("permission.requested")
        await other.check_alive()
        assert not (project / "ran").exists()
        params = {"sessionId": session, "continuePendingWork": True, "requestPermission": True}
        await other.call("session.resume", params)
        pending = await other.call("session.permissions.pendingRequests", {"sessionId": session})
        assert [item["requestId"] for item in pending["items"]] == [request["data"]["requestId"]]
        assert not (project / "ran").exists()
        assert await decide(other, session, pending["items"][0]["requestId"], "approve-once")
        await other.event("session.idle", session=session)
        assert (project / "ran").exists()
        assert not await decide(other, session, pending["items"][0]["requestId"], "reject")


async def test_a_client_that_detaches_and_disconnects_at_once_still_ends_its_commands(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as leaving:
            behind: JsonObject = {"name": "bash", "arguments": {"command": STUBBORN, "mode": "async"}}
            ahead: JsonObject = {"name": "bash", "arguments": {"command": STUBBORN}}
            session = await leaving.create(scripted({"tool_calls": [behind]}, {"tool_calls": [ahead]}))
            await leaving.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
            await leaving.call("session.send", {"sessionId": session, "prompt": "go"})
            await leaving.event("tool.execution_partial_result")
            commands = server.descendants()
            assert len(commands) >= 2
            await leaving.send(frame(request("bye", "session.detach", {"sessionId": session})))
        for pid in commands:
            await wait_until_gone(pid)
        # A process that a command has started since then ends with it, but not before it.
        for pid in server.descendants():
            await wait_until_gone(pid)
        # The session can be resumed like any other.
        await other.call("session.resume", {"sessionId": session})
        await other.call("session.detach", {"sessionId": session})
        assert not list(server.log_of(session).parent.glob("inuse.*"))


# --- the end of the server ----------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(folder: Path, transport: str) -> AsyncGenerator[tuple[RunningServer, Wire]]:
    async with running_server(folder, tcp=transport == "tcp") as server:
        if transport == "stdio":
            yield server, server.wire
        else:
            async with server.connect() as wire:
                yield server, wire


def stored_types(server: RunningServer, session: str) -> list[str]:
    """Return the types of the events in the session's log."""
    return [json.loads(line)["type"] for line in server.log_of(session).read_text().splitlines()]


async def check_one_result(folder: Path, server: RunningServer, session: str) -> None:
    """Check that the call has one result: of the ended server, or of the next one if its time was too short.

    A server that had no time left says so in its log.
    """
    logged = stored_types(server, session).count("tool.execution_complete")
    async with running_server(folder) as after:
        await after.wire.call("session.resume", {"sessionId": session, "provider": scripted()})
        assert stored_types(after, session).count("tool.execution_complete") == 1
    assert logged == 1 or "the session is closed" in server.stderr


@pytest.mark.parametrize("command", [SLEEPS, STUBBORN], ids=["polite", "stubborn"])
async def test_the_end_of_stdin_ends_a_running_command_and_the_server_in_time(tmp_path: Path, command: str) -> None:
    async with running_server(tmp_path) as server:
        session = await run_bash(server.wire, command)
        assert server.descendants()
        await server.close_stdin()
        assert await server.exit_code() == 0
        assert server.descendants() == []
        await check_one_result(tmp_path, server, session)


CLOSED = "stdin and stdout must be open: the protocol uses them"
FULL = "cannot write to stdout: No space left on device"


@pytest.mark.parametrize("mode", ["--stdio", "--acp"])
@pytest.mark.parametrize("stdin", ["pipe", "file"])
@pytest.mark.parametrize(
    ("stdout", "problem"),
    [
        ("pipe", None),
        ("file", None),
        ("/dev/null", None),
        ("/dev/full", FULL),
        ("closed", CLOSED),
        ("read only", "stdout cannot be written: the protocol uses it"),
    ],
)
def test_stdin_and_stdout_may_be_of_any_kind(
    tmp_path: Path, mode: str, stdin: str, stdout: str, problem: str | None
) -> None:
    if stdout == "/dev/full" and not Path(stdout).exists():
        pytest.skip("needs /dev/full")
    method, params = ("initialize", {"protocolVersion": 1}) if mode == "--acp" else ("ping", {"message": "hello"})
    message = request(1, method, params)
    asked = json.dumps(message).encode() + b"\n" if mode == "--acp" else frame(message)
    (tmp_path / "in").write_bytes(asked)
    (tmp_path / "out").touch()
    targets = {"pipe": "", "file": ">out", "closed": ">&-", "read only": "1<out"}
    source = "cat in | " if stdin == "pipe" else ""
    process = run_server(
        tmp_path,
        f"{source}$0 --headless {mode} {'' if stdin == 'pipe' else '<in'} {targets.get(stdout, f'>{stdout}')}",
    )

    expected = f"error: {problem}\n" if problem else ""
    assert (process.returncode, process.stderr) == (1 if problem else 0, expected)
    assert process.stdout.count('"result"') == (stdout == "pipe")
    # No file but that of stdout has the answer, whatever descriptors are used again.
    answered = {path.name for path in tmp_path.rglob("*") if path.is_file() and b'"result"' in path.read_bytes()}
    assert answered == ({"out"} if stdout == "file" else set())


@pytest.mark.parametrize("mode", ["--stdio", "--acp"])
@pytest.mark.parametrize(
    ("stdin", "problem"),
    [
        ("</dev/null", None),
        ("<empty", None),
        ("<&-", CLOSED),
        ("0>empty", "stdin cannot be read: the protocol uses it"),
    ],
)
def test_a_server_that_cannot_read_stdin_exits_at_once(
    tmp_path: Path, mode: str, stdin: str, problem: str | None
) -> None:
    (tmp_path / "empty").touch()
    process = run_server(tmp_path, f"exec $0 --headless {mode} {stdin}")
    expected = f"error: {problem}\n" if problem else ""
    assert (process.returncode, process.stdout, process.stderr) == (1 if problem else 0, "", expected)


SHUTDOWN = b'{"jsonrpc": "2.0", "id": 1, "method": "runtime.shutdown", "params": {}}'

ENDS = """
import os, sys
from jumpseat.__main__ import main

given, end = os.readlink("/proc/self/fd/0"), os._exit

def tell(code):
    links = [f"/proc/self/fd/{number}" for number in range(256)]
    is_open = any(os.path.islink(link) and os.readlink(link) == given for link in links)
    os.write(2, f"{code}: stdin is {'open' if is_open else 'closed'}\\n".encode())
    end(0)

os._exit = tell
try:
    main()
except SystemExit as error:
    tell(error.code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the files of the process in /proc")
@pytest.mark.parametrize(
    ("args", "requests", "code"),
    [
        (["--no-such-option"], b"", 2),
        (["--stdio", "--log-dir", "/dev/null/x"], b"", 1),
        (["--stdio"], encode_frame(SHUTDOWN), 0),
    ],
    ids=["arguments", "start", "shutdown"],
)
def test_stdin_is_closed_before_stdout_so_that_a_late_request_fails_at_once(
    tmp_path: Path, args: list[str], requests: bytes, code: int
) -> None:
    environ = {"PATH": os.defpath, "HOME": str(tmp_path)}
    command = [sys.executable, "-c", ENDS, "--headless", *args]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ, cwd=tmp_path
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(requests)
        process.stdin.flush()
        assert process.stderr.read().decode().endswith(f"{code}: stdin is closed\n")


def run_server(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the shell in which ``$0`` is the server."""
    return subprocess.run(
        ["sh", "-c", command, Path(sys.executable).with_name("jumpseat")],
        cwd=folder,
        env={"PATH": os.defpath, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("transport", ["stdio", "tcp"])
async def test_requests_before_the_end_of_the_input_get_their_responses(tmp_path: Path, transport: str) -> None:
    async with serving(tmp_path, transport) as (server, wire):
        session = await wire.create(scripted({"text": "x" * 4_000_000}))
        await wire.prompt(session)
        hello = [{"role": "user", "content": "hello"}]
        asked = [
            *(request(f"new {n}", "session.create", {"sessionId": f"s{n}"}) for n in range(3)),
            request("large", "session.getMessages", {"sessionId": session}),
            request(
                "hangs",
                "jumpseat.complete",
                {"provider": scripted({"hang": True}), "model": "m", "messages": hello},
            ),
        ]
        since = len(wire.messages)
        wire.stop_reading()
        await wire.send(b"".join(map(frame, asked)))
        await (server.close_stdin() if transport == "stdio" else wire.end())
        wire.resume_reading()
        with anyio.fail_after(WAIT_S):
            await wire.ended.wait()
        answered = [message["id"] for message in wire.messages[since:] if "id" in message]
        (hanging,) = [message for message in wire.messages if message.get("id") == "hangs"]
        assert hanging["error"]["message"] == "request cancelled"
        assert sorted(answered) == sorted(message["id"] for message in asked)
        assert transport == "tcp" or await server.exit_code() == 0


async def test_the_end_of_stdin_during_a_stream_is_logged(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"deltas": ["one "], "hang": True}), streaming=True)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "talk"})
        await server.wire.event("assistant.message_delta")
        await server.close_stdin()
        assert await server.exit_code() == 0
        assert stored_types(server, session)[-2:] == ["abort", "assistant.turn_end"]


async def test_after_the_end_of_stdin_during_an_approval_nothing_runs(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(
            scripted(calls("bash", command="touch ran"), {"text": "done"}), requestPermission=True
        )
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await server.wire.event("permission.requested")
        await server.close_stdin()
        assert await server.exit_code() == 0
        assert not (tmp_path / "ran").exists()
        await check_one_result(tmp_path, server, session)


@pytest.mark.parametrize(
    ("number", "transport", "command"),
    [
        pytest.param(signal.SIGTERM, "stdio", SLEEPS, id="SIGTERM on stdio, polite command"),
        pytest.param(signal.SIGTERM, "tcp", STUBBORN, id="SIGTERM over TCP, stubborn command"),
        pytest.param(signal.SIGINT, "stdio", STUBBORN, id="SIGINT on stdio, stubborn command"),
        pytest.param(signal.SIGINT, "tcp", SLEEPS, id="SIGINT over TCP, polite command"),
    ],
)
async def test_a_signal_ends_a_running_command_and_the_server_in_time(
    tmp_path: Path, number: signal.Signals, transport: str, command: str
) -> None:
    async with serving(tmp_path, transport) as (server, wire):
        session = await run_bash(wire, command)
        server.signal(number)
        assert await server.exit_code() == 0
        assert server.descendants() == []
        await check_one_result(tmp_path, server, session)


async def test_a_host_that_repeats_its_signal_until_the_end_changes_nothing(tmp_path: Path) -> None:
    for attempt in range(5):
        async with serving(tmp_path / str(attempt), "tcp") as (server, wire):
            await wire.prompt(await wire.create(scripted({"text": "hello"})))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(terminate_again_and_again, server)
                assert await server.exit_code() == 0
                tasks.cancel_scope.cancel()
            assert server.stderr == ""


async def terminate_again_and_again(server: RunningServer) -> None:
    for _ in range(100):
        server.signal(signal.SIGTERM)
        await anyio.sleep(0.001)


@pytest.mark.parametrize("transport", ["stdio", "tcp"])
@pytest.mark.parametrize("command", [SLEEPS, STUBBORN], ids=["polite", "stubborn"])
async def test_shutdown_is_answered_before_the_process_exits_in_time(
    tmp_path: Path, transport: str, command: str
) -> None:
    async with serving(tmp_path, transport) as (server, wire):
        session = await run_bash(wire, command)
        assert await wire.call("runtime.shutdown", {}) is None
        assert await server.exit_code() == 0
        assert server.descendants() == []
        await check_one_result(tmp_path, server, session)


async def test_shutdown_ends_the_server_even_if_its_client_does_not_wait(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server:
        async with server.connect() as wire:
            await run_bash(wire, STUBBORN)
            await wire.send(frame(request("bye", "runtime.shutdown", {})))
        assert await server.exit_code() == 0


async def test_shutdown_is_answered_even_if_much_output_is_unread(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire, server.connect() as watcher:
        session = await wire.create(scripted({"text": "x" * 4_000_000}))
        await wire.prompt(session)
        wire.stop_reading()
        answers = [
            request("all", "session.getMessages", {"sessionId": session}),
            request("bye", "runtime.shutdown"),
        ]
        since = len(watcher.messages)
        await wire.send(b"".join(map(frame, answers)))
        await watcher.check_alive()
        assert len(watcher.messages) > since
        wire.resume_reading()
        assert len(str((await wire.response("all"))["result"])) > 4_000_000
        assert (await wire.response("bye"))["result"] is None
        assert await server.exit_code() == 0


async def test_shutdown_does_not_wait_for_a_client_that_stopped_reading(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as wire, server.connect() as stuck:
        session = await stuck.create(scripted({"text": "x" * 8_000_000}))
        since = len(wire.messages)
        stuck.stop_reading()
        await stuck.ask("session.send", {"sessionId": session, "prompt": "talk"})
        await wire.until(lambda message: message.get("method") == "session.lifecycle", since=since)
        assert await wire.call("runtime.shutdown", {}) is None
        assert await server.exit_code() == 0


# --- the handshake ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [{}, {"token": ""}, {"token": "sesam"}, {"token": "sesame "}, {"token": "ü"}], ids=repr
)
async def test_a_wrong_token_is_refused_and_gives_no_access(tmp_path: Path, params: JsonObject) -> None:
    async with (
        running_server(tmp_path, tcp=True, token="sesame") as server,
        server.connect(handshake=False) as wire,
        server.connect(token="sesame") as trusted,
    ):
        error = await wire.error_of("connect", params)
        assert error["code"] == AUTHENTICATION_FAILED
        assert "AUTHENTICATION_FAILED" in error["message"]
        assert "sesame" not in error["message"]
        for method in ("ping", "session.list", "session.create", "runtime.shutdown", "account.getQuota"):
            assert "AUTHENTICATION_FAILED" in (await wire.error_of(method, {}))["message"]
        # It gets no notifications, and may try again.
        session = await trusted.create(scripted({"text": "hello"}))
        await trusted.prompt(session)
        assert all("error" in message for message in wire.messages)
        await wire.call("connect", {"token": "sesame"})
        await wire.check_alive()


async def test_an_unknown_method_before_the_handshake_is_refused(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, tcp=True, token="sesame") as server,
        server.connect(handshake=False) as wire,
    ):
        assert (await wire.error_of("no.such.method", {}))["code"] == METHOD_NOT_FOUND


async def test_a_second_handshake_is_answered_like_the_first(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        again = await server.wire.call("connect", {"token": "any token will do where none is set"})
        assert (again["ok"], again["protocolVersion"]) == (True, 3)
        await server.wire.check_alive()


# --- aborts -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningServer]:
    """Run one server for all tests of aborts, so that traces of one test affect the next."""
    async with running_server(tmp_path_factory.mktemp("aborts"), tcp=True, limit_s=60) as server:
        yield server


async def test_an_abort_before_the_turn_has_started_ends_it_as_aborted(server: RunningServer) -> None:
    async with server.connect() as wire:
        session = await wire.create(scripted({"hang": True}))
        await wire.send(
            frame(request("send", "session.send", {"sessionId": session, "prompt": "go"}))
            + frame(request("abort", "session.abort", {"sessionId": session}))
        )
        assert (await wire.response("abort"))["result"] == {"success": True}
        await wire.event("session.idle", aborted=True)
        kinds = [event["type"] for event in wire.events()]
        assert kinds.count("user.message") == kinds.count("abort") == kinds.count("session.idle") == 1


async def test_an_abort_when_idle_and_a_second_abort_change_nothing(server: RunningServer) -> None:
    async with server.connect() as wire:
        session = await wire.create(scripted({"hang": True}))
        assert await wire.call("session.abort", {"sessionId": session}) == {"success": True}
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("assistant.turn_start")
        both = [await wire.ask("session.abort", {"sessionId": session}) for _ in range(2)]
        for request_id in both:
            assert (await wire.response(request_id))["result"] == {"success": True}
        assert await wire.call("session.abort", {"sessionId": session}) == {"success": True}
        await wire.check_alive()
        kinds = [event["type"] for event in wire.events()]
        assert kinds.count("abort") == kinds.count("session.idle") == 1
        assert kinds[-1] == "session.idle"


async def test_a_prompt_after_an_abort_is_answered(server: RunningServer) -> None:
    async with server.connect() as wire:
        script = {"prompts": [{"when": "wait", "turns": [{"hang": True}]}, {"turns": [{"text": "back"}]}]}
        session = await wire.create({"type": "scripted", "script": script})
        await wire.call("session.send", {"sessionId": session, "prompt": "wait"})
        await wire.event("assistant.turn_start")
        await wire.call("session.abort", {"sessionId": session})
        events = await wire.prompt(session, "again")
        assert data_of(events, "assistant.message")[0]["content"] == "back"
        assert "aborted" not in data_of(events, "session.idle")[0]


async def test_a_prompt_sent_directly_after_an_abort_is_not_dropped(server: RunningServer) -> None:
    async with server.connect() as wire:
        script = {"prompts": [{"when": "wait", "turns": [{"hang": True}]}, {"turns": [{"text": "back"}]}]}
        session = await wire.create({"type": "scripted", "script": script})
        for number in range(2):
            await wire.call("session.send", {"sessionId": session, "prompt": f"wait {number}"})
        await wire.event("assistant.turn_start")
        await wire.send(
            frame(request("abort", "session.abort", {"sessionId": session}))
            + frame(request("again", "session.send", {"sessionId": session, "prompt": "again"}))
        )
        await wire.event("assistant.message", content="back")
        assert (await wire.response("abort"))["result"] == {"success": True}
        sent = (await wire.response("again"))["result"]["messageId"]
        await wire.until(
            lambda message: (
                message.get("method") == "session.event"
                and message["params"]["event"]["type"] == "session.idle"
                and "aborted" not in message["params"]["event"]["data"]
            )
        )
        events = wire.events(session)
        # The queued prompt was dropped; the one after the abort was answered in its own run.
        assert [data["content"] for data in data_of(events, "user.message")] == ["wait 0", "again"]
        assert data_of(events, "user.message")[1]["messageId"] == sent
        assert [data.get("aborted") for data in data_of(events, "session.idle")] == [True, None]


async def aborted(wire: Wire, session: str) -> list[JsonObject]:
    """Abort the run and return its events, which must end with exactly one ``session.idle``."""
    await wire.call("session.abort", {"sessionId": session})
    await wire.event("session.idle", session=session, aborted=True)
    await wire.check_alive()
    events = wire.events(session)
    assert [event["type"] for event in events].count("session.idle") == 1
    assert events[-1]["type"] == "session.idle"
    kinds = [event["type"] for event in events if not event.get("ephemeral")]
    assert kinds[-2:] == ["abort", "assistant.turn_end"]
    return events


def interrupted(events: list[JsonObject], *call_ids: str) -> None:
    """Assert that each call has exactly one result, an interruption."""
    completed = data_of(events, "tool.execution_complete")
    assert sorted(data["toolCallId"] for data in completed) == sorted(call_ids)
    for data in completed:
        assert data["success"] is False
        assert data["error"]["message"] == INTERRUPTED


async def test_an_abort_completes_a_pending_client_tool_call_once(server: RunningServer) -> None:
    async with server.connect() as wire:
        session = await wire.create(scripted(calls("lookup"), {"text": "next"}), tools=[LOOKUP])
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await wire.event("external_tool.requested")
        interrupted(await aborted(wire, session), "call-1")
        assert not await answer(wire, session, request["data"]["requestId"], "too late")
        events = await wire.prompt(session)
        assert data_of(events, "assistant.message")[0]["content"] == "next"
        assert data_of(events, "tool.execution_complete") == []


async def test_an_abort_completes_a_call_that_awaits_permission_once_without_running_it(
    server: RunningServer, tmp_path: Path
) -> None:
    async with server.connect() as wire:
        session = await wire.create(
            scripted(calls("bash", command="touch ran")), requestPermission=True, workingDirectory=str(tmp_path)
        )
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        request = await wire.event("permission.requested")
        interrupted(await aborted(wire, session), "call-1")
        assert not await decide(wire, session, request["data"]["requestId"], "approve-once")
        pending = await wire.call("session.permissions.pendingRequests", {"sessionId": session})
        assert pending["items"] == []
        await wire.check_alive()
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", [SLEEPS, STUBBORN], ids=["polite", "stubborn"])
async def test_an_abort_ends_the_whole_process_group_of_a_command(server: RunningServer, command: str) -> None:
    async with server.connect() as wire:
        session = await run_bash(wire, f"({command}) & wait")
        assert len(server.descendants()) >= 2
        events = await aborted(wire, session)
        assert server.descendants() == []
        interrupted(events, "call-1")


async def test_an_abort_completes_each_of_several_open_calls_once(server: RunningServer) -> None:
    async with server.connect() as wire:
        several: JsonObject = {
            "tool_calls": [
                {"id": "quick", "name": "lookup", "arguments": {}},
                {"id": "asked", "name": "lookup", "arguments": {}},
                {"id": "shell", "name": "bash", "arguments": {"command": SLEEPS}},
                {"id": "again", "name": "bash", "arguments": {"command": SLEEPS}},
            ]
        }
        session = await wire.create(scripted(several, {"text": "next"}), tools=[LOOKUP], requestPermission=True)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        quick = await wire.event("external_tool.requested", toolCallId="quick")
        assert await answer(wire, session, quick["data"]["requestId"], "ok")
        await wire.event("tool.execution_complete", toolCallId="quick", success=True)
        requested = await wire.until(
            lambda message: (
                message.get("method") == "session.event"
                and message["params"]["event"]["type"] == "permission.requested"
                and message["params"]["event"]["data"]["permissionRequest"]["toolCallId"] == "shell"
            )
        )
        await decide(wire, session, requested["params"]["event"]["data"]["requestId"], "approve-once")
        await wire.event("tool.execution_partial_result", toolCallId="shell")
        events = await aborted(wire, session)
        assert server.descendants() == []
        interrupted([e for e in events if e["data"].get("toolCallId") != "quick"], "asked", "shell", "again")
        assert data_of(await wire.prompt(session), "assistant.message")[0]["content"] == "next"
