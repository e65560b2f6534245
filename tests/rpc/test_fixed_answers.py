"""Methods without an implementation: a fixed answer, or an error that is not "unhandled"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat_protocol import coverage
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.unsupported import NEUTRAL_ANSWERS, REFUSALS, UNSUPPORTED_REQUESTS
from tests.support.server import Wire, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"})
TABLES: list[frozenset[str]] = [
    frozenset(CLIENT_REQUESTS),
    frozenset(NEUTRAL_ANSWERS),
    frozenset(REFUSALS),
    UNSUPPORTED_REQUESTS,
]


def of_session(method: str) -> bool:
    return method.startswith("session.")


async def outcomes(wire: Wire, methods: list[str], session: str) -> dict[str, dict[str, Any]]:
    """Return the responses to ``methods``, called with the params that their fixed answers apply to."""
    request_ids: dict[str, int] = {}
    for method in methods:
        answer = NEUTRAL_ANSWERS.get(method)
        params: dict[str, Any] = {**answer.only, **dict.fromkeys(answer.needs, "any")} if answer else {}
        request_ids[method] = await wire.ask(
            method, params | ({"sessionId": session} if method.startswith(("session.", "sessions.")) else {})
        )
    return {method: await wire.response(request) for method, request in request_ids.items()}


def test_no_method_is_in_two_tables() -> None:
    names = [name for table in TABLES for name in table]
    assert len(names) == len(set(names))


def test_the_coverage_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "coverage.md"
    assert page.read_text() == coverage.page(), "run python -m jumpseat_protocol.coverage > docs/coverage.md"


async def test_neutral_methods_return_the_answers_of_the_table(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        methods = [name for name, answer in NEUTRAL_ANSWERS.items() if not answer.echoes]
        answers = await outcomes(server.wire, methods, session)
    assert {name: answer.get("result", answer) for name, answer in answers.items()} == {
        name: NEUTRAL_ANSWERS[name].result for name in methods
    }


async def test_neutral_and_refused_methods_reject_unknown_sessions(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        methods = [name for name in (*NEUTRAL_ANSWERS, *REFUSALS) if of_session(name)]
        answers = await outcomes(server.wire, methods, "nobody")
        of_server = await server.wire.error_of("sessions.reloadPluginHooks", {"sessionId": "nobody"})
        none_at_all = await server.wire.error_of("session.tasks.list")
        of_server_none_at_all = await server.wire.error_of("sessions.reloadPluginHooks", {})
    assert {answer["error"]["message"] for answer in answers.values()} == {"Session not found: nobody"}
    assert of_server["message"] == "Session not found: nobody"
    assert none_at_all["code"] == -32602
    assert of_server_none_at_all["code"] == -32602


async def test_a_fixed_answer_is_limited_to_the_params_it_applies_to(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        for method, params in (
            ("session.remote.enable", {"mode": "on"}),
            ("session.remote.enable", {}),
            ("sessions.setAdditionalPlugins", {"plugins": [{"name": "x"}]}),
            ("sessions.setRemoteControlSteering", {"enabled": True}),
        ):
            error = await server.wire.error_of(method, {"sessionId": session, **params})
            assert error == {"code": -32000, "message": f"{method} is not supported by this server"}


async def test_the_required_params_of_a_fixed_answer_are_validated(tmp_path: Path) -> None:
    needs = {name: answer.needs for name, answer in NEUTRAL_ANSWERS.items() if answer.needs}
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        for method, names in needs.items():
            about = {"sessionId": session} if of_session(method) else {}
            for wrong in ({}, {names[0]: 7}, {names[0]: None}):
                error = await server.wire.error_of(method, {**about, **wrong})
                assert (error["code"], names[0] in error["message"]) == (-32602, True), method


async def test_params_that_are_not_an_object_are_rejected_by_every_kind_of_method(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for method in (*NEUTRAL_ANSWERS, *(name for name in CLIENT_REQUESTS if name != "runtime.shutdown")):
            for params in ("text", [1, 2], 7, False):
                error = await server.wire.error_of(method, params)
                assert (error["code"], method) == (-32602, method)


async def test_an_echo_returns_the_given_params(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        for mode in ("direct", "indirect"):
            params = {"sessionId": session, "mode": mode}
            assert await server.wire.call("session.mcp.setEnvValueMode", params) == {"mode": mode}


async def test_refusals_have_the_messages_that_clients_know(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO)
        answers = await outcomes(server.wire, list(REFUSALS), session)
    assert {name: answer["error"]["message"] for name, answer in answers.items()} == REFUSALS


async def test_unsupported_methods_are_refused_by_name_and_only_unknown_ones_are_unhandled(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        answers = await outcomes(server.wire, sorted(UNSUPPORTED_REQUESTS), "any")
        unknown = await server.wire.error_of("session.makeCoffee", {})
        await server.wire.check_alive()
    assert {name: answer["error"] for name, answer in answers.items()} == {
        name: {"code": -32000, "message": f"{name} is not supported by this server"}
        for name in UNSUPPORTED_REQUESTS
    }
    assert unknown["code"] == -32601
    assert "session.makeCoffee" in unknown["message"]
