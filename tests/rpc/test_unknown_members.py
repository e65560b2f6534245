"""Members that no type has: an error in our own methods, logged and ignored in those of the SDKs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from jumpseat.rpc.routes import EXTENSIONS, load_route, misspelled_extension
from jumpseat_protocol.members import UnknownMember, members_of, unknown_members
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.sdk_options import SENT
from jumpseat_protocol.sessions import SessionCreateParams, SessionSendParams
from tests.support.cases import all_cases
from tests.support.server import running_server, scripted


@pytest.mark.anyio
async def test_our_own_methods_refuse_unknown_members_and_name_the_nearest_known_one(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, dict[str, Any], str]] = {
        "at the top": ("jumpseat.adapters.get", {"nmae": "x"}, "nmae: unknown, did you mean 'name'?"),
        "nothing is near": ("jumpseat.adapters.list", {"zzz": 1}, "zzz: unknown, expected one of cwd"),
        "in an object": (
            "jumpseat.complete",
            {"prompt": "hi", "provider": {"type": "openai", "baseUlr": "http://x"}},
            "provider.baseUlr: unknown, did you mean 'baseUrl'?",
        ),
        "in an array": (
            "jumpseat.complete",
            {"messages": [{"role": "user", "contents": "hi"}]},
            "messages[0].contents: unknown, did you mean 'content'?",
        ),
        "in a union": (
            "jumpseat.complete",
            {"prompt": "hi", "responseFormat": {"type": "json_schema", "jsonSchema": {"name": "x", "scheme": {}}}},
            "responseFormat.jsonSchema.scheme: unknown, did you mean 'schema'?",
        ),
    }
    async with running_server(tmp_path) as server:
        with all_cases() as case:
            for name, (method, params, problem) in cases.items():
                with case(name):
                    error = await server.wire.error_of(method, params)
                    assert error == {"code": -32602, "message": f"Invalid params for {method}: {problem}"}


@pytest.mark.anyio
async def test_unknown_members_of_sdk_methods_are_ignored_and_logged_once_without_their_values(
    tmp_path: Path,
) -> None:
    async with running_server(tmp_path, args=["--log-level", "info"]) as server:
        provider = scripted({"text": "a"}, {"text": "b"}) | {"telepathy": "sk-1"}
        session = await server.wire.create(provider, tools=[{"name": "a", "colour": "sk-2"}], brandNew="sk-3")
        for _ in range(2):
            await server.wire.prompt(session, "hi", mood="sk-4")
        assert not [event for event in server.wire.events() if event["type"] == "session.warning"]

    assert sorted(re.findall(r"([\w.]+): the unknown member '(.*)' is ignored", server.stderr)) == [
        ("session.create", "brandNew"),
        ("session.create", "provider.telepathy"),
        ("session.create", "tools.*.colour"),
        ("session.send", "mood"),
    ]
    assert "sk-" not in server.stderr


@pytest.mark.anyio
async def test_a_misspelled_member_of_ours_in_a_method_of_the_sdks_is_a_warning(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted({"text": "a"}), adapterSetings={"temperature": 1})
        warnings = [
            event["data"]["message"] for event in server.wire.events() if event["type"] == "session.warning"
        ]
        assert warnings == [
            "session.create: unknown member 'adapterSetings' is ignored; did you mean 'adapterSettings'?"
        ]
        since = len(server.wire.messages)
        await server.wire.call("session.send", {"sessionId": session, "prompt": "hi", "tool_choise": {}})
        warning = await server.wire.event("session.warning", since=since)
        assert "'toolChoice'" in warning["data"]["message"]


def test_no_member_that_sdks_send_is_taken_for_a_misspelled_one_of_ours() -> None:
    for model in (SessionCreateParams, SessionSendParams):
        known = members_of((model,)).shown
        assert EXTENSIONS & set(known)
        for name in SENT[""].names.split():
            assert name in known or misspelled_extension(UnknownMember((name,), known)) is None, name


def test_the_members_of_every_method_are_known_at_any_depth() -> None:
    for method in CLIENT_REQUESTS:
        params = load_route(method).params
        assert unknown_members(params, {}) == []
        found = unknown_members(params, {"no such member": 1})
        assert [member.path for member in found] in ([("no such member",)], []), method
