"""Sessions against a fake server: prompts, tools, permissions and unknown events."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from jumpseat_client import (
    Client,
    Event,
    PermissionDecision,
    PermissionRequest,
    ProviderConfig,
    ServerGoneError,
    Session,
    SessionAborted,
    SessionFailed,
    ToolContext,
    UnknownPermission,
    approve_all,
    no_result,
    reject,
    tool,
)
from jumpseat_protocol.events import AssistantMessage, SessionIdle, UnknownPayload, UserMessage
from jumpseat_protocol.permissions import ReadPermission
from jumpseat_protocol.sessions import SpecificToolChoice, TextFormat
from tests.client.peer import SESSION, Peer, connected
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio

TOOL_CALL = {"requestId": "x1", "sessionId": SESSION, "toolCallId": "t1", "toolName": "shout"}
READ = {"kind": "read", "intention": "Read it", "path": "/a", "toolCallId": "t1"}


async def create(client: Client, peer: Peer, **settings: Any) -> Session:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.answer_create)
        return await client.create_session(session_id=SESSION, **settings)
    raise AssertionError("unreachable")


async def play(peer: Peer, *events: tuple[str, dict[str, Any]]) -> None:
    """Accept a prompt as message m1, then emit ``events``."""
    await peer.answer("session.send", {"messageId": "m1"})
    for kind, data in events:
        peer.emit(kind, data)


def message(content: str) -> tuple[str, dict[str, Any]]:
    return "assistant.message", {"messageId": "a1", "content": content}


MINE = ("user.message", {"content": "hi", "messageId": "m1"})
IDLE = ("session.idle", {"mode": "interactive"})


async def test_settings_are_sent_under_their_wire_names() -> None:
    sent: list[dict[str, Any]] = []
    async with connected() as (client, peer), anyio.create_task_group() as tasks:

        async def answer() -> None:
            sent.append(await peer.answer_create())

        tasks.start_soon(answer)
        session = await client.create_session(
            session_id=SESSION,
            model="m",
            provider=ProviderConfig(type="scripted", script="s.yaml"),
            working_directory="/w",
            tool_choice=SpecificToolChoice(mode="specific", tool_name="add"),
            hosted_tools=["web_search", {"name": "web_fetch", "max_uses": 2}],
            response_format=TextFormat(type="text"),
            extra={"enableSkills": False},
        )
        assert session.workspace_path == "/w"
    assert sent == [
        {
            "sessionId": SESSION,
            "tools": [],
            "requestPermission": False,
            "model": "m",
            "provider": {"type": "scripted", "headers": {}, "script": "s.yaml"},
            "workingDirectory": "/w",
            "toolChoice": {"mode": "specific", "toolName": "add"},
            "hostedTools": ["web_search", {"name": "web_fetch", "max_uses": 2}],
            "responseFormat": {"type": "text"},
            "enableSkills": False,
        }
    ]


async def test_events_before_the_response_to_create_are_received() -> None:
    heard: list[Event] = []
    async with connected() as (client, peer):
        peer.emit("session.start", {"sessionId": SESSION})
        await create(client, peer, on_event=heard.append)
    assert [event.type for event in heard] == ["session.start"]


async def test_ask_returns_the_last_text_of_its_own_turn() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:
        session = await create(client, peer)
        # The end of an earlier prompt arrives first and must not count.
        tasks.start_soon(play, peer, message("old"), IDLE, MINE, message("thinking"), message("done"), IDLE)
        with anyio.fail_after(WAIT_S):
            assert await session.ask("hi") == "done"


async def test_ask_ignores_messages_of_sub_agents() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:
        session = await create(client, peer)

        async def answer() -> None:
            await play(peer, MINE, message("mine"))
            peer.emit(*message("theirs"), agentId="agent-1")
            peer.emit(*IDLE)

        tasks.start_soon(answer)
        with anyio.fail_after(WAIT_S):
            assert await session.ask("hi") == "mine"


async def test_failed_prompt_raises_after_the_session_is_idle() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:
        session = await create(client, peer)
        error = {"errorType": "rate_limit", "message": "slow down", "statusCode": 429}
        tasks.start_soon(play, peer, MINE, ("session.error", error), IDLE)
        with anyio.fail_after(WAIT_S), pytest.raises(SessionFailed, match="slow down") as caught:
            await session.ask("hi")
        assert (caught.value.error_type, caught.value.status_code) == ("rate_limit", 429)


async def test_aborted_prompt_raises_even_if_it_never_started() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:
        session = await create(client, peer)
        tasks.start_soon(play, peer, ("session.idle", {"mode": "interactive", "aborted": True}))
        with anyio.fail_after(WAIT_S), pytest.raises(SessionAborted):
            await session.ask("hi")


async def test_stream_yields_events_from_the_prompt_to_idle() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:
        session = await create(client, peer)
        tasks.start_soon(play, peer, MINE, ("brand.new", {"x": 1}), message("done"), IDLE)
        with anyio.fail_after(WAIT_S):
            payloads = [event.payload async for event in session.stream("hi")]
        assert payloads == [
            UserMessage(content="hi", message_id="m1"),
            UnknownPayload(type="brand.new", data={"x": 1}),
            AssistantMessage(message_id="a1", content="done"),
            SessionIdle(mode="interactive"),
        ]


async def test_lost_server_ends_an_event_iteration_with_an_error() -> None:
    async with connected() as (client, peer):
        session = await create(client, peer)
        async with session.events() as events:
            peer.emit(*IDLE)
            peer.disconnect()
            with anyio.fail_after(WAIT_S):
                assert (await anext(events)).type == "session.idle"
                with pytest.raises(ServerGoneError):
                    await anext(events)


async def test_detach_ends_event_iterations_quietly() -> None:
    async with connected() as (client, peer), anyio.create_task_group() as tasks:
        session = await create(client, peer)
        async with session.events() as events:
            tasks.start_soon(peer.answer, "session.detach", {"success": True})
            with anyio.fail_after(WAIT_S):
                await session.detach()
                assert [event async for event in events] == []


def test_events_keep_fields_that_their_class_does_not_have() -> None:
    record = {
        "id": "1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "parentId": "0",
        "type": "session.idle",
        "data": {"mode": "plan", "new": [1]},
        "ephemeral": True,
        "agentId": "a",
    }
    event = Event.decode(record)
    assert event == Event(
        id="1",
        timestamp="2026-01-01T00:00:00.000Z",
        parent_id="0",
        payload=SessionIdle(mode="plan"),
        data={"mode": "plan", "new": [1]},
        ephemeral=True,
        agent_id="a",
    )


def test_malformed_events_are_decoded_as_unknown() -> None:
    assert Event.decode({"type": "session.idle", "data": {"mode": 5}}).payload == UnknownPayload(
        type="session.idle", data={"mode": 5}
    )
    assert Event.decode({}).payload == UnknownPayload(type="", data={})


@tool
async def shout(text: str) -> str:
    if not text:
        raise ValueError("secret")
    return text.upper()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"text": "hello"}, {"result": "HELLO"}),
        ({"text": ""}, {"error": "shout raised ValueError"}),
        (
            {},
            {
                "result": {
                    "textResultForLlm": "Invalid arguments for tool 'shout': text: Field required",
                    "resultType": "failure",
                    "error": "Invalid arguments for tool 'shout': text: Field required",
                    "binaryResultsForLlm": [],
                }
            },
        ),
    ],
)
async def test_tool_call_is_answered(arguments: dict[str, Any], answer: dict[str, Any]) -> None:
    async with connected() as (client, peer):
        await create(client, peer, tools=[shout])
        peer.emit("external_tool.requested", {**TOOL_CALL, "arguments": arguments})
        params = await peer.answer("session.tools.handlePendingToolCall", {"success": True})
    assert params == {"sessionId": SESSION, "requestId": "x1", **answer}


async def test_tools_run_concurrently_and_may_call_the_server() -> None:
    both_run = anyio.Event()

    @tool
    async def wait() -> str:
        await both_run.wait()
        return "waited"

    @tool
    async def call_back(ctx: ToolContext) -> str:
        answer = await ctx.session.request("session.mode.get")
        both_run.set()
        return answer

    async with connected() as (client, peer):
        await create(client, peer, tools=[wait, call_back])
        peer.emit("external_tool.requested", {**TOOL_CALL, "requestId": "x1", "toolName": "wait"})
        peer.emit(
            "external_tool.requested", {**TOOL_CALL, "requestId": "x2", "toolCallId": "t2", "toolName": "call_back"}
        )
        await peer.answer("session.mode.get", "plan")
        answers = [await peer.answer("session.tools.handlePendingToolCall", {"success": True}) for _ in range(2)]
    assert {answer["requestId"]: answer["result"] for answer in answers} == {"x1": "waited", "x2": "plan"}


async def test_tool_is_cancelled_when_the_server_completes_its_call() -> None:
    started, stopped = anyio.Event(), anyio.Event()

    @tool
    async def hang() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    async with connected() as (client, peer):
        await create(client, peer, tools=[hang])
        peer.emit("external_tool.requested", {**TOOL_CALL, "toolName": "hang"})
        with anyio.fail_after(WAIT_S):
            await started.wait()
            peer.emit("tool.execution_complete", {"toolCallId": "t1", "success": False})
            await stopped.wait()


async def test_call_of_another_clients_tool_is_ignored() -> None:
    async with connected() as (client, peer):
        await create(client, peer, tools=[shout])
        peer.emit("external_tool.requested", {**TOOL_CALL, "toolName": "theirs"})
        # The next message is the response to this request, not one to the call.
        peer.send(id=1, method="nothing")
        assert "error" in await peer.receive()


async def test_permission_is_answered_by_the_handler() -> None:
    requests: list[PermissionRequest] = []

    async def decide(request: PermissionRequest) -> PermissionDecision:
        requests.append(request)
        if isinstance(request, UnknownPermission):
            raise ValueError("what is this")
        return reject("not that one")

    async with connected() as (client, peer):
        await create(client, peer, on_permission=decide)
        peer.emit("permission.requested", {"requestId": "p1", "permissionRequest": READ})
        method = "session.permissions.handlePendingPermissionRequest"
        first = await peer.answer(method, {"success": True})
        peer.emit("permission.requested", {"requestId": "p2", "permissionRequest": {"kind": "magic", "wand": 1}})
        second = await peer.answer(method, {"success": True})
    assert requests == [
        ReadPermission(intention="Read it", path="/a", tool_call_id="t1"),
        UnknownPermission("magic", {"kind": "magic", "wand": 1}),
    ]
    assert first == {
        "sessionId": SESSION,
        "requestId": "p1",
        "result": {"kind": "reject", "feedback": "not that one"},
    }
    assert second["result"] == {"kind": "user-not-available"}


async def test_permission_settled_by_a_hook_or_left_to_others_gets_no_response() -> None:
    async def abstain(_request: PermissionRequest) -> PermissionDecision:
        return no_result()

    async with connected() as (client, peer):
        await create(client, peer, on_permission=abstain)
        peer.emit("permission.requested", {"requestId": "p1", "permissionRequest": READ, "resolvedByHook": True})
        peer.emit("permission.requested", {"requestId": "p2", "permissionRequest": READ})
        peer.send(id=1, method="nothing")
        assert "error" in await peer.receive()


async def test_permission_handler_is_cancelled_when_another_client_answers() -> None:
    started, withdrawn = anyio.Event(), anyio.Event()

    async def think(_request: PermissionRequest) -> PermissionDecision:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        raise AssertionError("unreachable")

    async with connected() as (client, peer):
        await create(client, peer, on_permission=think)
        peer.emit("permission.requested", {"requestId": "p1", "permissionRequest": READ})
        with anyio.fail_after(WAIT_S):
            await started.wait()
            peer.emit("permission.completed", {"requestId": "p1", "result": {"kind": "approved"}})
            await withdrawn.wait()


async def test_approve_all_approves() -> None:
    assert await approve_all(UnknownPermission("magic", {})) == PermissionDecision(kind="approve-once")
