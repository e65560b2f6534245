"""JSON-RPC of one connection, in memory: pygls carries each message, and each override of it is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import anyio
import orjson
import pytest
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from jumpseat.errors import ClientCallError, ClientRefusedError, InvalidRequestError
from jumpseat.parsing.json_text import MOST_CONTAINERS
from jumpseat.rpc.json_rpc_peer import MAX_OPEN_REQUESTS, Dialect, JsonRpcPeer, OutgoingId
from jumpseat_protocol.envelope import (
    INTERNAL_ERROR,
    INVALID_OPERATION,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
)
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio

Message = dict[str, Any]

NOTIFYING = Dialect("$/stop", "requestId", notifications=("noted",))


class Wire:
    """A peer, the methods it serves and the messages it has sent."""

    def __init__(self, tasks: TaskGroup, dialect: Dialect | None = None, mask: Callable[[str], str] = str) -> None:
        self.sent: list[Message] = []
        self.methods: dict[str, Callable[[Any], Any]] = {"ping": lambda params: {"echo": params}}
        self.peer = JsonRpcPeer(self._keep, tasks, mask, dialect or Dialect())
        self.peer.find = self.methods.get

    def _keep(self, body: bytes) -> None:
        self.sent.append(orjson.loads(body))

    def receive(self, **members: Any) -> None:
        self.peer.receive(orjson.dumps({"jsonrpc": "2.0", **members}))

    def request(self, method: str, params: Any = None, msg_id: int | str = 1) -> None:
        self.receive(id=msg_id, method=method, params=params)

    async def until_sent(self, count: int) -> None:
        with anyio.fail_after(WAIT_S):
            while len(self.sent) < count:
                await checkpoint()


@pytest.fixture
def wire(tasks: TaskGroup) -> Wire:
    return Wire(tasks)


@contextmanager
def pygls_calls() -> Generator[set[str]]:
    """Collect the names of the functions of pygls that run inside the block."""
    names: set[str] = set()

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call" and "/pygls/" in frame.f_code.co_filename:
            names.add(frame.f_code.co_qualname.removeprefix("JsonRPCProtocol."))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(before)


async def hang(_params: Any) -> None:
    await anyio.sleep_forever()


@pytest.mark.thorough
async def test_requests_beyond_a_limit_are_refused_until_others_end(wire: Wire) -> None:
    wire.methods["hang"] = hang
    for number in range(MAX_OPEN_REQUESTS + 2):
        wire.request("hang", msg_id=number)
    await wire.until_sent(2)
    assert [message["id"] for message in wire.sent] == [MAX_OPEN_REQUESTS, MAX_OPEN_REQUESTS + 1]
    assert {message["error"]["code"] for message in wire.sent} == {INVALID_REQUEST}
    wire.receive(method="$/cancelRequest", params={"id": 7})
    await wire.until_sent(3)
    wire.request("hang", msg_id="again")
    await checkpoint()
    assert len(wire.sent) == 3


# --- pygls carries each kind of message ---------------------------------------------------------------------------

INCOMING = {"structure_message"}
OUTGOING = {"_serialize_message"}
RUNNING = {"_get_handler", "_execute_handler"}


async def test_pygls_carries_a_request_and_its_response(wire: Wire) -> None:
    with pygls_calls() as names:
        wire.request("ping", {"a": 1})
    assert wire.sent == [{"jsonrpc": "2.0", "id": 1, "result": {"echo": {"a": 1}}}]
    assert names >= INCOMING | RUNNING | OUTGOING | {"_handle_request", "_send_handler_result", "_send_response"}
    assert "FeatureManager.feature.<locals>.decorator" in names


async def test_pygls_looks_a_known_method_up_in_its_own_table(wire: Wire) -> None:
    wire.request("ping")
    wire.peer.find = lambda _method: None
    with pygls_calls() as names:
        wire.request("ping", msg_id=2)
    assert wire.sent[1]["result"] == {"echo": None}
    assert "FeatureManager.features" in names


async def test_pygls_carries_a_request_whose_handler_is_a_coroutine(wire: Wire) -> None:
    async def later(params: Any) -> Any:
        await checkpoint()
        return params

    wire.methods["later"] = later
    with pygls_calls() as names:
        wire.request("later", 5)
        await wire.until_sent(1)
    assert wire.sent == [{"jsonrpc": "2.0", "id": 1, "result": 5}]
    assert names >= INCOMING | RUNNING | OUTGOING | {"_handle_request", "_send_handler_result", "_send_response"}


async def test_pygls_carries_a_notification_in_and_out(tasks: TaskGroup) -> None:
    wire = Wire(tasks, NOTIFYING)
    noted: list[Any] = []
    wire.methods["noted"] = noted.append
    with pygls_calls() as names:
        wire.receive(method="noted", params={"a": 1})
        wire.peer.notify("told", {"b": 2})
    assert noted == [{"a": 1}]
    assert wire.sent == [{"jsonrpc": "2.0", "method": "told", "params": {"b": 2}}]
    # Notifications are encoded without `_serialize_message`.
    assert names >= INCOMING | RUNNING | {"_handle_notification", "_check_handler_result", "notify"}


async def test_pygls_carries_a_request_of_ours_and_its_response(wire: Wire, tasks: TaskGroup) -> None:
    results: list[Any] = []

    async def ask() -> None:
        results.append(await wire.peer.ask("question", {"a": 1}))

    with pygls_calls() as names:
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await wire.until_sent(1)
            wire.receive(id=1, result={"b": 2})
    assert wire.sent == [{"jsonrpc": "2.0", "id": 1, "method": "question", "params": {"a": 1}}]
    assert results == [{"b": 2}]
    assert names >= INCOMING | OUTGOING | {"send_request_async", "send_request", "_handle_response"}


async def test_pygls_carries_a_cancellation(wire: Wire) -> None:
    wire.methods["hang"] = hang
    wire.request("hang", msg_id="h")
    await checkpoint()
    with pygls_calls() as names:
        wire.receive(method="$/cancelRequest", params={"id": "h"})
        await wire.until_sent(1)
    error = {"code": REQUEST_CANCELLED, "message": "request cancelled"}
    assert wire.sent == [{"jsonrpc": "2.0", "id": "h", "error": error}]
    assert names >= INCOMING | OUTGOING | {"_handle_notification", "_handle_cancel_notification"}
    assert names >= {"_send_handler_result", "_send_response", "JsonRpcException.to_response_error"}


async def test_pygls_refuses_an_unknown_method(wire: Wire) -> None:
    with pygls_calls() as names:
        wire.request("no.such")
    error = {"code": METHOD_NOT_FOUND, "message": "Unhandled method no.such"}
    assert wire.sent == [{"jsonrpc": "2.0", "id": 1, "error": error}]
    assert names >= INCOMING | OUTGOING | {"_handle_request", "_send_response"}


# --- each override is needed --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"no identifier": 1, "class": 2, "nested": {"jsonrpc": "2.0", "id": 7, "method": "ping"}},
        {"type_name": "x"},
        [1, 2],
        None,
    ],
)
async def test_params_reach_the_handler_as_they_were_sent(wire: Wire, params: Any) -> None:
    wire.request("ping", params)
    assert wire.sent[0]["result"] == {"echo": params}


async def test_a_request_with_a_stray_error_member_is_still_a_request(wire: Wire) -> None:
    wire.receive(id=1, method="ping", error={"code": 1, "message": "x"})
    assert wire.sent[0]["result"] == {"echo": None}


async def test_encoded_json_is_sent_as_it_is(wire: Wire) -> None:
    wire.peer.notify("told", {"event": orjson.Fragment(b'{"a":1}')})
    assert wire.sent[0]["params"] == {"event": {"a": 1}}


async def test_the_same_id_on_both_sides_stands_for_two_requests(wire: Wire, tasks: TaskGroup) -> None:
    wire.methods["hang"] = hang
    results: list[Any] = []

    async def ask() -> None:
        results.append(await wire.peer.ask("question", {}))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await wire.until_sent(1)
        wire.request("hang", msg_id=1)
        wire.request("ping", msg_id=2)
        wire.receive(method="$/cancelRequest", params={"id": 1})
        await wire.until_sent(3)
        wire.receive(id=1, result="answer")
    assert results == ["answer"]
    assert [message["id"] for message in wire.sent] == [1, 2, 1]
    assert wire.sent[2]["error"]["code"] == REQUEST_CANCELLED


def test_an_outgoing_id_equals_no_id_of_a_peer() -> None:
    table: dict[Any, str] = {1: "theirs", OutgoingId(1): "ours"}
    assert table == {1: "theirs", OutgoingId(1): "ours"}
    assert len(table) == 2
    assert orjson.dumps(OutgoingId(1)) == b"1"


async def test_a_request_that_is_no_longer_awaited_is_cancelled_and_forgotten(wire: Wire) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(wire.peer.ask, "question", None)
        await wire.until_sent(1)
        group.cancel_scope.cancel()
    assert wire.sent[1] == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
    wire.receive(id=1, result="too late")
    assert len(wire.sent) == 2
    wire.peer.close()


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"error": {"code": -32000, "message": "no"}}, "no"),
        ({"error": {"message": "no code"}}, "no code"),
        ({"error": {"code": "x", "message": 7}}, "7"),
        ({"error": "only a string"}, "the client answered with an error"),
        ({"error": {}}, "the client answered with an error"),
    ],
)
async def test_an_error_response_of_any_form_fails_the_request(wire: Wire, response: Message, message: str) -> None:
    failures: list[str] = []

    async def ask() -> None:
        with pytest.raises(ClientCallError) as caught:
            await wire.peer.ask("question", {})
        failures.append(str(caught.value))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await wire.until_sent(1)
        wire.receive(id=1, **response)
    assert failures == [message]


@pytest.mark.parametrize("response", [{"result": None}, {}, {"error": None}])
async def test_a_null_result_may_be_left_out(wire: Wire, response: Message) -> None:
    results: list[Any] = []

    async def ask() -> None:
        results.append(await wire.peer.ask("question", {}))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await wire.until_sent(1)
        wire.receive(id=1, **response)
    assert results == [None]


async def test_a_closed_connection_fails_our_requests_and_cancels_those_of_the_peer(wire: Wire) -> None:
    ended = anyio.Event()

    async def work(_params: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    wire.methods["work"] = work
    wire.request("work", msg_id="w")

    async def ask() -> None:
        with pytest.raises(ClientCallError, match="the client has disconnected"):
            await wire.peer.ask("question", {})

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await wire.until_sent(1)
            wire.peer.close()
        await ended.wait()
    with pytest.raises(ClientCallError, match="'question'"):
        await wire.peer.ask("question", {})


async def test_a_cancelled_request_may_finish_what_it_shields(wire: Wire) -> None:
    finished: list[str] = []

    async def work(_params: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
                finished.append("clean")

    wire.methods["work"] = work
    wire.request("work")
    await checkpoint()
    wire.receive(method="$/cancelRequest", params={"id": 1})
    await wire.until_sent(1)
    assert finished == ["clean"]


async def test_a_cancellation_that_comes_before_the_handler_starts_is_not_lost(wire: Wire) -> None:
    wire.methods["hang"] = hang
    wire.request("hang")
    wire.receive(method="$/cancelRequest", params={"id": 1})
    await wire.until_sent(1)
    assert wire.sent[0]["error"]["code"] == REQUEST_CANCELLED


async def test_the_id_of_a_cancelled_request_is_in_use_until_its_response(wire: Wire) -> None:
    wire.methods["hang"] = hang
    wire.request("hang")
    wire.receive(method="$/cancelRequest", params={"id": 1})
    wire.request("ping")
    await wire.until_sent(2)
    assert [message["error"]["code"] for message in wire.sent] == [INVALID_REQUEST, REQUEST_CANCELLED]
    wire.request("ping")
    assert "result" in wire.sent[2]


async def test_the_response_precedes_what_a_task_of_its_handler_sends(wire: Wire, tasks: TaskGroup) -> None:
    async def announce() -> None:
        wire.peer.notify("announced", {})

    async def work(_params: Any) -> str:
        tasks.start_soon(announce)
        return "done"

    wire.methods["work"] = work
    wire.request("work")
    await wire.until_sent(2)
    assert [message.get("method") for message in wire.sent] == [None, "announced"]


async def test_handlers_are_tasks_of_the_group_of_the_connection() -> None:
    ended: list[str] = []

    async def work(_params: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("work")

    async with anyio.create_task_group() as group:
        wire = Wire(group)
        wire.methods["work"] = work
        wire.request("work")
        await checkpoint()
        group.cancel_scope.cancel()
    assert ended == ["work"]


@pytest.mark.parametrize("params", [None, [], {}, {"id": []}, {"id": None}, {"id": 99}, {"id": True}])
async def test_a_cancellation_of_nothing_is_ignored(wire: Wire, params: Any) -> None:
    wire.methods["hang"] = hang
    wire.request("hang", msg_id=1)
    wire.receive(method="$/cancelRequest", params=params)
    await checkpoint()
    wire.request("ping", msg_id=2)
    assert [message["id"] for message in wire.sent] == [2]


async def test_a_dialect_names_its_notifications_and_its_cancellation(tasks: TaskGroup) -> None:
    wire = Wire(tasks, NOTIFYING)
    wire.methods |= {"hang": hang, "noted": lambda _params: None}
    wire.request("hang", msg_id=1)
    wire.receive(method="$/cancelRequest", params={"id": 1})
    wire.receive(method="ping", params={})
    wire.receive(method="unknown", params={})
    assert wire.sent == []
    wire.request("noted", msg_id=2)
    assert wire.sent[0]["error"] == {"code": METHOD_NOT_FOUND, "message": "Unhandled method noted"}
    wire.receive(method="$/stop", params={"requestId": 1})
    await wire.until_sent(2)
    assert wire.sent[1]["error"]["code"] == REQUEST_CANCELLED


async def test_a_failing_notification_is_logged_and_not_answered(
    tasks: TaskGroup, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(tasks, NOTIFYING)

    def fail(_params: Any) -> None:
        raise InvalidRequestError("the reason")

    wire.methods["noted"] = fail
    wire.receive(method="noted")
    assert wire.sent == []
    assert "the reason" in caplog.text


async def test_invoking_a_method_needs_no_request(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    taken: list[Any] = []

    def take(params: Any) -> None:
        taken.append(params)
        raise InvalidRequestError("the reason")

    wire.methods["take"] = take
    wire.peer.invoke("take", {"a": 1})
    wire.peer.invoke("no.such", {})
    assert taken == [{"a": 1}]
    assert wire.sent == []
    assert "the reason" in caplog.text


@pytest.mark.parametrize("later", [False, True], ids=["plain", "coroutine"])
async def test_an_exception_becomes_the_error_of_the_table(tasks: TaskGroup, *, later: bool) -> None:
    wire = Wire(tasks, mask=lambda text: text.replace("secret", "***"))

    def fail(_params: Any) -> None:
        raise InvalidRequestError("a secret reason")

    async def fail_later(params: Any) -> None:
        await checkpoint()
        fail(params)

    wire.methods["fail"] = fail_later if later else fail
    wire.request("fail")
    await wire.until_sent(1)
    assert wire.sent[0]["error"] == {"code": INVALID_OPERATION, "message": "a *** reason"}


@pytest.mark.parametrize("result", [object(), "\ud83d"], ids=["no JSON", "lone surrogate"])
@pytest.mark.parametrize("later", [False, True], ids=["plain", "coroutine"])
async def test_a_result_that_cannot_be_encoded_is_an_internal_error_without_traceback(
    wire: Wire, result: Any, *, later: bool
) -> None:
    async def return_later(_params: Any) -> Any:
        return result

    wire.methods["broken"] = return_later if later else lambda _params: result
    wire.request("broken")
    await wire.until_sent(1)
    assert wire.sent == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": INTERNAL_ERROR, "message": "Internal error"}}
    ]


async def test_a_lookup_that_fails_is_an_internal_error_without_traceback(wire: Wire) -> None:
    def fail(_method: str) -> None:
        raise RuntimeError("/a/path")

    wire.peer.find = fail
    wire.request("ping")
    assert wire.sent[0]["error"] == {"code": INTERNAL_ERROR, "message": "Internal error"}


async def test_pygls_logs_no_message(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    wire.request("ping", "a secret prompt")
    wire.request("no.such", "a secret prompt", msg_id=2)
    wire.peer.notify("told", "a secret prompt")
    wire.receive(id=5, result="a secret prompt")
    assert len(wire.sent) == 3
    assert "secret" not in caplog.text


async def test_an_unknown_method_that_resembles_a_known_one_gets_a_suggestion(wire: Wire) -> None:
    meant = {
        "session.crate": "session.create",
        "sesion.sendAndWiat": "session.sendAndWait",
        "session.modle.getCurrent": "session.model.getCurrent",
        "connct": "connect",
    }
    for method in meant:
        wire.request(method)
    wire.request("session.fly" + "x" * 100_000)
    texts = [message["error"]["message"] for message in wire.sent]
    assert texts[:-1] == [f"Unhandled method {name}, did you mean {known!r}?" for name, known in meant.items()]
    assert "did you mean" not in texts[-1]


async def test_params_by_position_are_one_object_or_an_array(wire: Wire) -> None:
    params: list[list[Any]] = [[{"a": 1}], [None], [], [1], [[]], [{}, {}]]
    for given in params:
        wire.receive(id=len(wire.sent), method="ping", params=given)
    echoed = [message["result"]["echo"] for message in wire.sent]
    assert echoed == [{"a": 1}, None, None, [1], [[]], [{}, {}]]


async def test_messages_with_too_many_arrays_get_an_error_with_their_id_and_end_requests_of_ours(
    wire: Wire, tasks: TaskGroup
) -> None:
    many: list[Any] = [[]] * (MOST_CONTAINERS + 1)
    wire.receive(id="a", method="ping", params=many)
    wire.receive(method="ping", params=many)
    wire.receive(id=99, result=many)
    problem = "the message has more than 100000 arrays and objects"
    refused = {"code": INVALID_REQUEST, "message": problem}
    assert [(sent["id"], sent["error"]) for sent in wire.sent] == [("a", refused), (None, refused), (99, refused)]
    failures: list[Exception] = []

    async def ask() -> None:
        try:
            await wire.peer.ask("tool.call", {})
        except ClientRefusedError as error:
            failures.append(error)

    tasks.start_soon(ask)
    await wire.until_sent(4)
    wire.receive(id=wire.sent[3]["id"], result=many)
    with anyio.fail_after(WAIT_S):
        while not failures:
            await checkpoint()
    assert str(failures[0]) == "the answer of the client has more than 100000 arrays and objects"
