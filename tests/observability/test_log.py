"""The log: at ``info`` it tells what happened, and never what was said."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from jumpseat.observability.log_files import FILES_PER_FOLDER
from jumpseat.observability.log_setup import JsonFormatter, TextFormatter
from jumpseat.system.log_fields import fields
from tests.support.callbacks import answering
from tests.support.model_server import ModelServer, Reply, json_reply
from tests.support.provided import at
from tests.support.server import RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

CANARY = "the-plan-for-thursday"


def entries(server: RunningServer) -> list[dict[str, Any]]:
    """Return the entries of a log in JSON."""
    return [json.loads(line) for line in server.stderr.splitlines() if line.startswith("{")]


def named(log: list[dict[str, Any]], message: str) -> list[dict[str, Any]]:
    return [entry for entry in log if entry["message"] == message]


async def run_everything(wire: Wire, provider: ModelServer, folder: Path) -> str:
    """Run a prompt with a retry, a tool that is allowed, one that is denied, and an MCP server that is dead."""
    session = await wire.create(
        at(provider),
        model="m",
        requestPermission=True,
        workingDirectory=str(folder),
        mcpServers={"dead": {"command": "/no/such/program", "args": [], "tools": ["*"]}},
    )
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": CANARY})
    asked = await wire.event("permission.requested", session=session)
    await wire.call(
        "session.permissions.handlePendingPermissionRequest",
        {"sessionId": session, "requestId": asked["data"]["requestId"], "result": {"kind": "reject"}},
    )
    await wire.event("session.idle", session=session, since=since)
    await wire.call("session.destroy", {"sessionId": session})
    return session


def calling(name: str, arguments: dict[str, Any]) -> Reply:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json_reply(
        {
            "choices": [{"message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }
    )


async def test_at_info_the_log_tells_what_happened_without_a_word_of_the_prompt(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    replies = (
        json_reply({"error": {"message": f"too busy for {CANARY}", "type": "server_error"}}, status=503),
        calling("bash", {"command": f"echo {CANARY}; exit 3"}),
    )
    async with (
        ModelServer(*replies) as provider,
        running_server(
            tmp_path,
            args=("--log-level", "info", "--log-format", "json"),
            config="[retry]\nfirst_wait_s = 0\n",
        ) as server,
    ):
        session = await run_everything(server.wire, provider, folder)
        wrong = await server.wire.error_of("session.send", {"sessionId": "none", "prompt": CANARY})
    log = entries(server)

    assert CANARY not in json.dumps(log)
    (start,) = named(log, "jumpseat starts")
    assert start["transport"] == "stdio"
    assert start["home"] == str(server.home)
    (created,) = named(log, "session created")
    assert (created["session"], created["client"], created["cwd"]) == (session, "stdio", str(folder))
    (failed,) = named(log, "model call failed")
    assert (failed["level"], failed["status"], failed["attempt"]) == ("warning", 503, 1)
    (called,) = named(log, "model call")
    assert (called["provider"], called["model"], called["attempt"]) == ("openai", "m", 2)
    assert (called["input_tokens"], called["output_tokens"]) == (11, 7)
    (refused,) = named(log, "tool call refused")
    assert (refused["tool"], refused["kind"], refused["decision"], refused["by"]) == (
        "bash",
        "shell",
        "rejected",
        "client",
    )
    (dead,) = named(log, "MCP server failed")
    assert dead["server"] == "dead"
    assert "/no/such/program" in dead["reason"]
    (unknown,) = named(log, "request refused")
    assert unknown["reason"] == wrong["message"]
    assert named(log, "session closed")
    assert named(log, "prompt done")


async def test_the_exit_code_of_a_command_and_who_allowed_it_are_logged(tmp_path: Path) -> None:
    provider = scripted(calls("bash", command="exit 3"), {"text": "done"})
    async with running_server(tmp_path, args=("--log-level", "info", "--yolo")) as server:
        session = await server.wire.create(provider)
        await server.wire.prompt(session)
    (line,) = [line for line in server.stderr.splitlines() if " tool call " in line]

    assert " INFO    tool call " in line
    assert "tool=bash" in line
    assert "decision=allowed by=operator" in line
    assert "exit=3" in line


async def test_a_call_that_a_hook_denies_is_logged_as_refused_by_it(tmp_path: Path) -> None:
    provider = scripted(calls("bash", command="true"), {"text": "done"})
    async with running_server(tmp_path, args=("--log-level", "info", "--log-format", "json")) as server:
        session = await server.wire.create(provider, hooks=True)
        async with answering(server.wire, {"preToolUse": [{"permissionDecision": "deny"}]}):
            await server.wire.prompt(session)
    (refused,) = named(entries(server), "tool call refused")

    assert (refused["tool"], refused["decision"], refused["by"]) == ("bash", "denied", "hook")


async def test_a_connection_failure_is_logged_with_the_address_and_a_hint_on_the_key_is_not_needed(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, config="[retry]\nattempts = 1\n") as server:
        session = await server.wire.create({"type": "openai", "baseUrl": "http://127.0.0.1:9/v1"}, model="m")
        await server.wire.prompt(session, CANARY)

    assert "model call failed" in server.stderr
    assert "127.0.0.1:9" in server.stderr
    assert CANARY not in server.stderr


@pytest.mark.parametrize("form", ["text", "json"])
async def test_debug_shows_the_messages_without_credentials(tmp_path: Path, form: str) -> None:
    provider = {
        **scripted({"text": "hi"}),
        "apiKey": "unusual-and-private",
        "headers": {"X-Any": "quite-hidden"},
        "baseUrl": "https://someone:pass@word-of-mine@127.0.0.1:1/v1?api_key=in-the-query&page=7",
    }
    filtered = ['a "quoted" one', "-----BEGIN-----\nfirst\r\nsecond\n-----END-----", "back\\slash"]
    async with running_server(tmp_path, args=("--log-level", "debug", "--log-format", form)) as server:
        arguments = ["--verbose", "--api-key", "in-an-argument", "--token=in-an-argument", "-pin-an-argument"]
        mcp = {"type": "local", "command": "false", "args": arguments, "tools": ["*"]}
        session = await server.wire.create(provider, gitHubToken="gho_of_somebody", mcpServers={"m": mcp})
        for address in (
            "htp:/other:pass-of-another@x",
            "other:pass-of-another@127.0.0.1:1/v1",
            "//x:pass-of-another@y",
        ):
            await server.wire.error_of(
                "session.create", {"provider": {**provider, "type": "openai", "baseUrl": address}}
            )
        await server.wire.call("secrets.addFilterValues", {"values": filtered})
        for value in filtered:
            # Part of the last one is behind the place where the message is cut.
            for before in ("", "x" * 3900):
                await server.wire.prompt(session, f"{before}{value}")
                await server.wire.error_of("session.send", {"sessionId": value, "prompt": "x"})

    assert "received" in server.stderr
    assert "session.create" in server.stderr
    assert "page=7" in server.stderr
    assert "--verbose" in server.stderr
    secrets = (
        "unusual-and-private",
        "quite-hidden",
        "gho_of_somebody",
        "someone",
        "word-of-mine",
        "in-the-query",
        "of-another",
        "in-an-argument",
    )
    for secret in (*secrets, "quoted", "first", "second", "BEGIN", "slash"):
        assert secret not in server.stderr, secret


async def test_a_wrong_token_is_logged_with_the_address_of_the_client(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, args=("--log-level", "info"), tcp=True, token="right") as server,
        server.connect(handshake=False) as wire,
    ):
        await wire.error_of("connect", {"token": "wrong-one"})

    (line,) = [line for line in server.stderr.splitlines() if "refused a client" in line]
    assert "client=127.0.0.1:" in line.replace("[::1]", "127.0.0.1").replace('"', "")
    assert "wrong-one" not in server.stderr


async def test_log_files_are_private_and_the_oldest_of_them_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(FILES_PER_FOLDER + 3):
        (folder / f"jumpseat-20200101T0000{number:02}-1.log").write_text("old")
    (folder / "mine.log").write_text("not a log of ours")
    async with running_server(tmp_path, args=("--log-level", "info", "--log-dir", str(folder))) as server:
        await server.wire.check_alive()

    names = sorted(os.listdir(folder))
    assert len(names) == FILES_PER_FOLDER + 1
    assert "mine.log" in names
    newest = folder / names[-2]
    assert "jumpseat starts" in newest.read_text()
    assert stat.S_IMODE(newest.stat().st_mode) == 0o600


def record(message: str, **values: Any) -> logging.LogRecord:
    found = logging.makeLogRecord(
        {"name": "root", "msg": message, "levelno": logging.INFO, "levelname": "INFO", **fields(**values)}
    )
    found.created = 0.5
    return found


def test_values_cannot_forge_entries_or_reach_a_terminal() -> None:
    entry = TextFormatter().format(record("refused\nfake entry", path="a b", tool='x" by=client\x1b[2J\n', ok=True))

    assert entry.splitlines() == [
        "1970-01-01T00:00:00.500Z INFO    refused",
        '    fake entry path="a b" tool="x\\" by=client\\u001b[2J\\n" ok=yes',
    ]


def test_entries_for_machines_are_one_object_per_line() -> None:
    entry = json.loads(JsonFormatter().format(record("model call", ms=3, cost_usd=0.25)))

    assert entry == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "info",
        "logger": "root",
        "message": "model call",
        "ms": 3,
        "cost_usd": 0.25,
    }
