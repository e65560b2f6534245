"""Named connection tokens: each client sees only the sessions of its token, whatever method it calls."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.rpc.routes import SERVER_WIDE, load_route
from jumpseat.store.user.connection_tokens import FILE, ConnectionTokenFile
from jumpseat_protocol.envelope import AUTHENTICATION_FAILED
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.unsupported import NEUTRAL_ANSWERS, REFUSALS
from tests.protocol.samples import sample
from tests.support.cases import all_cases
from tests.support.commands import run_command
from tests.support.limits import WAIT_S
from tests.support.server import JsonObject, RunningServer, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

UNKNOWN = "no-such-session"

# Methods without a session that are for everybody: they show nothing of a session and change nothing that lasts.
FOR_EVERYBODY = frozenset(
    {
        *("connect", "ping", "status.get", "auth.getStatus", "account.getQuota", "account.getCurrentAuth"),
        *("agents.discover", "agents.getDiscoveryPaths", "instructions.discover", "instructions.getDiscoveryPaths"),
        *(
            "mcp.discover",
            "mcp.listBuiltinServerNames",
            "skills.discover",
            "skills.getDiscoveryPaths",
            "tools.list",
        ),
        *("models.getBuiltInCatalog", "models.list", "models.listTokenPriceUnits"),
        # Sums over the sessions of the token, without their ids; tests/handlers/jumpseat/test_web.py.
        "jumpseat.web.usage",
        # For the sessions of the connection alone.
        "sessionFs.setProvider",
        *("jumpseat.complete", "jumpseat.adapters.list", "jumpseat.adapters.get"),
        *("jumpseat.tools.list", "jumpseat.tools.get"),
        # Without a UI, there is no session in the foreground.
        "session.getForeground",
    }
)
# Methods that list sessions, or find them without their ids, with params that fit every session.
LISTS: Mapping[str, JsonObject] = {
    "session.list": {},
    "session.getLastId": {},
    "sessions.list": {},
    "sessions.listNonEmptySessionIds": {},
    "sessions.getLastForContext": {},
    "sessions.getSizes": {},
    "sessions.pruneOld": {"olderThanDays": 0, "dryRun": True, "includeNamed": True},
}
# Methods that create sessions.
CREATING = frozenset({"session.create", "sessions.open"})


@asynccontextmanager
async def shared_server(folder: Path) -> AsyncGenerator[tuple[RunningServer, dict[str, str]]]:
    """Run a server with the tokens of Ada, Bob and an administrator, who has the right ``all``."""
    tokens = ConnectionTokenFile(folder / "home")
    texts = {name: tokens.add(name, all_sessions=name == "admin") for name in ("ada", "bob", "admin")}
    async with running_server(folder, tcp=True, without_token=(), limit_s=60) as server:
        yield server, texts


def takes_session(method: str) -> bool:
    if method in NEUTRAL_ANSWERS or method in REFUSALS:
        return method.startswith(("session.", "sessions."))
    fields = load_route(method).params.model_fields
    return not {"session_id", "session_ids", "sessions"}.isdisjoint(fields)


def params_of(method: str, session_id: str) -> JsonObject:
    """Return valid params of a method for a session."""
    if method in CLIENT_REQUESTS:
        params = sample(load_route(method).params, optional=False).wire()
    else:
        answer = NEUTRAL_ANSWERS.get(method)
        params = dict.fromkeys(answer.needs if answer else (), "x")
    if method in CLIENT_REQUESTS and "session_ids" in load_route(method).params.model_fields:
        return {**params, "sessionIds": [session_id]}
    if method == "sessions.enrichMetadata":
        times = {"startTime": "2025-01-01T00:00:00.000Z", "modifiedTime": "2025-01-01T00:00:00.000Z"}
        return {"sessions": [{"sessionId": session_id, "isRemote": False, **times}]}
    return {**params, "sessionId": session_id}


def test_every_method_is_about_a_session_or_the_server_or_for_everybody() -> None:
    unclear = {
        method
        for method in CLIENT_REQUESTS
        if not takes_session(method)
        and method not in {*SERVER_WIDE, *FOR_EVERYBODY, *LISTS, *CREATING, "sessions.findByPrefix"}
    }
    assert unclear == set()
    assert set(CLIENT_REQUESTS) >= SERVER_WIDE


async def test_no_method_tells_a_session_of_another_token_from_an_unknown_one(tmp_path: Path) -> None:
    async with (
        shared_server(tmp_path) as (server, tokens),
        running_server(tmp_path) as other,
        server.connect(token=tokens["ada"]) as ada,
        server.connect(token=tokens["bob"]) as bob,
    ):
        live = await ada.create(scripted({"text": "hello"}, {"text": "still mine"}))
        await ada.prompt(live)
        stored = await ada.create(scripted({"text": "hello"}))
        await ada.prompt(stored)
        await ada.call("session.detach", {"sessionId": stored})
        elsewhere = await ada.create(scripted({"text": "hello"}))
        await ada.prompt(elsewhere)
        await ada.call("session.detach", {"sessionId": elsewhere})
        await other.wire.call("session.resume", {"sessionId": elsewhere})
        sessions = {live: "live", stored: "stored", elsewhere: "live in another process"}
        methods = [
            method
            for method in [*CLIENT_REQUESTS, *NEUTRAL_ANSWERS, *REFUSALS]
            if takes_session(method) and method not in CREATING
        ]
        assert len(methods) > 150
        since = len(ada.messages)
        with all_cases() as case:
            for method in methods:
                expected = await answer(bob, method, UNKNOWN)
                for session, state in sessions.items():
                    with case(f"{method}: {state}"):
                        assert "Invalid params" not in expected, expected
                        found = await answer(bob, method, session)
                        assert found.replace(session, UNKNOWN) == expected
        for kind in ("resume", "attach"):
            for session in (*sessions, live[:-1]):
                opened = await bob.call("sessions.open", {"kind": kind, "sessionId": session})
                assert opened["status"] == "not_found"
        for session in sessions:
            assert "already exists" in (await bob.error_of("session.create", {"sessionId": session}))["message"]
        # Nothing happened to the sessions.
        assert ada.events(since=since) == []
        for session in (stored, elsewhere):
            await ada.call("session.resume", {"sessionId": session})
        assert [event["type"] for event in await ada.prompt(live)][-1] == "session.idle"


async def answer(wire: Wire, method: str, session_id: str) -> str:
    """Return the result or the error of a method, as JSON."""
    response = await wire.response(await wire.ask(method, params_of(method, session_id)))
    return json.dumps(response.get("result", response.get("error")), sort_keys=True)


async def test_lists_and_notifications_show_only_the_sessions_of_the_token(tmp_path: Path) -> None:
    async with (
        shared_server(tmp_path) as (server, tokens),
        server.connect(token=tokens["ada"]) as ada,
        server.connect(token=tokens["bob"]) as bob,
        server.connect(token=tokens["admin"]) as admin,
    ):
        own = await bob.create(scripted({"text": "hello"}))
        await bob.prompt(own)
        session = await ada.create(scripted({"text": "hello"}))
        await ada.prompt(session)
        await ada.call("session.detach", {"sessionId": session})
        with all_cases() as case:
            for method, params in {**LISTS, "sessions.findByPrefix": {"prefix": session[:10]}}.items():
                with case(method):
                    assert session not in json.dumps(await bob.call(method, params))
                    assert session in json.dumps(await admin.call(method, params))
        assert (await bob.call("sessions.pruneOld", {"olderThanDays": 0}))["deleted"] == []
        assert (await ada.call("session.list", {}))["sessions"][0]["sessionId"] == session
        copy = (await admin.call("sessions.fork", {"sessionId": session}))["sessionId"]
        assert copy not in json.dumps(await ada.call("session.list", {}))
        await ada.call("session.delete", {"sessionId": session})
        await bob.check_alive()
        await admin.check_alive()
        assert session not in json.dumps(bob.messages)
        told = [message["params"]["type"] for message in lifecycle(admin, session)]
        assert (told[0], told[-1]) == ("session.created", "session.deleted")


def lifecycle(wire: Wire, session: str) -> list[JsonObject]:
    return [
        message
        for message in wire.messages
        if message.get("method") == "session.lifecycle" and message["params"]["sessionId"] == session
    ]


async def test_a_session_belongs_to_its_token_after_a_restart_too(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as (server, tokens), server.connect(token=tokens["ada"]) as ada:
        session = await ada.create(scripted({"text": "hello"}))
        await ada.prompt(session)
    async with running_server(tmp_path) as alone:
        anonymous = await alone.wire.create(scripted({"text": "hello"}))
        await alone.wire.prompt(anonymous)
        # Whoever runs the server may do everything.
        await alone.wire.call("session.resume", {"sessionId": session})
    async with running_server(tmp_path, tcp=True, without_token=()) as server:
        for name, visible in {"ada": {session}, "bob": set[str](), "admin": {session, anonymous}}.items():
            async with server.connect(token=tokens[name]) as wire:
                found = {entry["sessionId"] for entry in (await wire.call("session.list", {}))["sessions"]}
                assert found == visible, name
                for known in (session, anonymous):
                    response = await wire.response(await wire.ask("session.resume", {"sessionId": known}))
                    assert ("result" in response) is (known in visible), name


async def test_what_concerns_all_clients_needs_the_right_all(tmp_path: Path) -> None:
    async with (
        shared_server(tmp_path) as (server, tokens),
        server.connect(token=tokens["ada"]) as ada,
        server.connect(token=tokens["admin"]) as admin,
    ):
        with all_cases() as case:
            for method in SERVER_WIDE:
                with case(method):
                    refusal = await ada.error_of(method, {})
                    assert refusal["message"].endswith("the connection token needs the right 'all'")
                    if method != "runtime.shutdown":
                        assert "right 'all'" not in await answer(admin, method, UNKNOWN)
        session = await ada.create(
            scripted(calls("bash", command="true"), {"text": "done"}), requestPermission=True
        )
        await ada.call("session.send", {"sessionId": session, "prompt": "go"})
        asked = (await ada.event("permission.requested"))["data"]["requestId"]
        params: dict[str, Any] = {"sessionId": session, "requestId": asked}
        for kind in ("approve-for-location", "approve-permanently"):
            decision = {"kind": kind, "approval": {"kind": "write"}}
            refusal = await ada.error_of(
                "session.permissions.handlePendingPermissionRequest", {**params, "result": decision}
            )
            assert "right 'all'" in refusal["message"]
        rules = {"sessionId": session, "scope": "location", "add": [{"kind": "write"}]}
        assert "right 'all'" in (await ada.error_of("session.permissions.modifyRules", rules))["message"]
        assert not (server.home / "approvals.json").exists()
        decision = {"kind": "approve-once"}
        await ada.call("session.permissions.handlePendingPermissionRequest", {**params, "result": decision})
        await ada.event("session.idle")


async def test_a_revoked_token_loses_its_connections_and_others_keep_theirs(tmp_path: Path) -> None:
    async with (
        shared_server(tmp_path) as (server, tokens),
        server.connect(token=tokens["ada"]) as ada,
        server.connect(token=tokens["bob"]) as bob,
    ):
        file = ConnectionTokenFile(server.home)
        assert file.revoke("ada")
        # A new token with the same name is a different token.
        again = file.add("ada", all_sessions=False)
        with anyio.fail_after(WAIT_S):
            await ada.ended.wait()
        await bob.check_alive()
        async with server.connect(handshake=False) as wire:
            assert (await wire.error_of("connect", {"token": tokens["ada"]}))["code"] == AUTHENTICATION_FAILED
            await wire.call("connect", {"token": again})
        assert "its token 'ada' is revoked" in server.stderr


async def test_a_connection_cannot_change_its_token(tmp_path: Path) -> None:
    async with shared_server(tmp_path) as (server, tokens), server.connect(token=tokens["ada"]) as ada:
        for token in (tokens["bob"], tokens["admin"], None):
            assert (await ada.error_of("connect", {"token": token}))["code"] == AUTHENTICATION_FAILED
        await ada.call("connect", {"token": tokens["ada"]})


async def test_a_server_without_any_token_makes_one_and_prints_it(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True, without_token=()) as server:
        made = (await server.next_line()).removeprefix("connection token: ").strip()
        assert len(made) == 43
        async with server.connect(handshake=False) as wire:
            for token in ("", made[:-1], made.swapcase()):
                assert (await wire.error_of("connect", {"token": token}))["code"] == AUTHENTICATION_FAILED
            await wire.call("connect", {"token": made})
            await wire.check_alive()
        # A token that is added later is valid at once.
        named = ConnectionTokenFile(server.home).add("ada", all_sessions=False)
        async with server.connect(token=named) as wire:
            await wire.check_alive()
    assert made not in server.stderr


def test_tokens_are_made_listed_and_revoked_and_only_their_hashes_are_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*argv: str) -> tuple[int, str, str]:
        code = run_command(["token", *argv], {"COPILOT_HOME": str(tmp_path)})
        out, err = capsys.readouterr()
        return code, out, err

    code, token, _ = run("add", "ada")
    assert (code, len(token)) == (0, 44)
    assert run("add", "admin", "--all")[0] == 0
    assert run("add", "ada")[::2] == (2, "error: there is a token 'ada' already: revoke it first\n")
    assert run("add", "../ada")[2].startswith("error: invalid name '../ada'")
    file = tmp_path / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.strip() not in file.read_text()
    listed = json.loads(run("list", "--json")[1])
    assert [(entry["name"], entry["all"]) for entry in listed] == [("ada", False), ("admin", True)]
    assert run("revoke", "ada")[:2] == (0, "Revoked ada.\n")
    assert run("revoke", "ada")[::2] == (2, "error: there is no token 'ada'\n")
    assert "ada" not in run("list")[1].replace("admin", "")
    assert ConnectionTokenFile(tmp_path).find(token.strip()) is None


def test_a_damaged_file_of_tokens_lets_nobody_in(tmp_path: Path) -> None:
    file = ConnectionTokenFile(tmp_path)
    text = file.add("ada", all_sessions=True)
    stored = json.loads((tmp_path / FILE).read_text())["ada"]
    damaged: list[Any] = [
        {**stored, "sha256": None},
        {**stored, "sha256": "x"},
        {**stored, "sha256": ""},
        "x",
        None,
    ]
    for value in damaged:
        (tmp_path / FILE).write_text(json.dumps({"ada": value}))
        assert file.find(text) is None
    (tmp_path / FILE).write_text("{")
    assert file.all() == []
