"""The client against the real server, over stdio and TCP, with the scripted model."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from jumpseat_client import (
    Client,
    HandshakeError,
    JumpseatClientError,
    PermissionDecision,
    PermissionRequest,
    ProviderConfig,
    RpcError,
    ServerGoneError,
    SessionAborted,
    SessionFailed,
    ToolContext,
    approve_all,
    connect_stdio,
    connect_tcp,
    reject,
    tool,
)
from jumpseat_protocol.events import (
    AssistantMessage,
    MessageDelta,
    SessionIdle,
    ToolExecutionComplete,
    UserMessage,
)
from jumpseat_protocol.permissions import ReadPermission
from jumpseat_protocol.version import __version__
from tests.support.forked import executable
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio


def scripted(*turns: dict[str, Any]) -> ProviderConfig:
    return ProviderConfig(type="scripted", script={"turns": list(turns)})


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def unconfined_home(home: Path) -> Path:
    """The home folder of a server whose commands see its process."""
    home.mkdir()
    (home / "config.toml").write_text('[sandbox]\nmode = "off"\n')
    return home


@asynccontextmanager
async def server(home: Path) -> AsyncGenerator[Client]:
    with anyio.fail_after(WAIT_S):
        async with connect_stdio([executable()], env={"COPILOT_HOME": str(home)}) as client:
            yield client


async def test_server_reports_its_versions_and_an_empty_home(home: Path) -> None:
    async with server(home) as client:
        assert client.server_version == __version__
        pong = await client.ping("hi")
        assert (pong.message, pong.protocol_version) == ("pong: hi", 3)
        assert (await client.status()).version == __version__
        assert await client.last_session_id() is None
        assert await client.list_sessions() == []


async def test_unknown_method_is_an_error_with_its_code(home: Path) -> None:
    async with server(home) as client:
        with pytest.raises(RpcError, match="Unhandled method") as caught:
            await client.request("no.such")
        assert caught.value.code == -32601


async def test_ask_and_stream_return_the_models_text(home: Path) -> None:
    async with server(home) as client:
        session = await client.create_session(
            provider=scripted({"text": "one two"}, {"text": "three four five"}), streaming=True
        )
        assert await session.ask("count") == "one two"
        payloads = [event.payload async for event in session.stream("go on")]
        assert isinstance(payloads[0], UserMessage)
        assert isinstance(payloads[-1], SessionIdle)
        deltas = [payload.delta_content for payload in payloads if isinstance(payload, MessageDelta)]
        assert len(deltas) > 1
        assert "".join(deltas) == "three four five"


async def test_concurrent_prompts_get_their_own_answers(home: Path) -> None:
    answers: dict[str, str] = {}
    async with server(home) as client:
        script = {"prompts": [{"turns": [{"text": "you said {{last_user}}"}]}]}
        session = await client.create_session(provider=ProviderConfig(type="scripted", script=script))

        async def ask(prompt: str) -> None:
            answers[prompt] = await session.ask(prompt)

        async with anyio.create_task_group() as tasks:
            for prompt in ("first", "second", "third"):
                tasks.start_soon(ask, prompt)
    assert answers == {"first": "you said first", "second": "you said second", "third": "you said third"}


async def test_stored_messages_are_decoded(home: Path) -> None:
    async with server(home) as client:
        session = await client.create_session(provider=scripted({"text": "hello"}))
        await session.ask("hi")
        events = await session.messages()
    assert events[0].type == "session.start"
    assert not any(event.ephemeral for event in events)
    texts = [e.payload.content for e in events if isinstance(e.payload, UserMessage | AssistantMessage)]
    assert texts == ["hi", "hello"]


@tool
async def double(n: int, ctx: ToolContext) -> str:
    """Double a number."""
    mode = await ctx.session.request("session.mode.get")
    if n < 0:
        raise ValueError("secret text")
    return f"{2 * n} in mode {mode}"


async def test_tool_is_called_and_may_call_the_server(home: Path) -> None:
    async with server(home) as client:
        session = await client.create_session(
            provider=scripted(calling("double", n=21), {"text": "It is {{last_tool_result}}"}),
            tools=[double],
            on_permission=approve_all,
        )
        assert await session.ask("double 21") == "It is 42 in mode interactive"


async def test_invalid_arguments_and_exceptions_of_a_tool_reach_the_model_as_failures(home: Path) -> None:
    async with server(home) as client:
        session = await client.create_session(
            provider=scripted(
                calling("double", n="many"),
                {"text": "{{last_tool_result}}"},
                calling("double", n=-1),
                {"text": "{{last_tool_result}}"},
            ),
            tools=[double],
            on_permission=approve_all,
        )
        answer = await session.ask("double many")
        assert "n" in answer
        assert "integer" in answer
        answer = await session.ask("double -1")
        assert "Tool execution failed" in answer
        assert "secret text" not in answer
        failed = [e.payload for e in await session.messages() if isinstance(e.payload, ToolExecutionComplete)]
        assert [payload.success for payload in failed] == [False, False]


async def test_rejection_ends_the_turn_and_rejection_with_feedback_does_not(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content of a")
    requests: list[PermissionRequest] = []
    decisions = [reject(), reject("use the other file")]

    async def decide(request: PermissionRequest) -> PermissionDecision:
        requests.append(request)
        return decisions.pop(0)

    async with server(home) as client:
        session = await client.create_session(
            provider=scripted(calling("view", path="a.txt"), calling("view", path="a.txt"), {"text": "fine"}),
            on_permission=decide,
            working_directory=str(tmp_path),
        )
        # The model's last message had the tool call and no text.
        assert await session.ask("look") == ""
        assert await session.ask("look again") == "fine"
        errors = [
            e.payload.error.message
            for e in await session.messages()
            if isinstance(e.payload, ToolExecutionComplete) and e.payload.error
        ]
    assert errors == [
        "The user rejected this tool call.",
        "The user rejected this tool call. User feedback: use the other file",
    ]
    assert [type(request) for request in requests] == [ReadPermission, ReadPermission]


async def test_approve_all_setting_skips_permission_requests(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("content of a")
    async with server(home) as client:
        session = await client.create_session(
            provider=scripted(calling("view", path="a.txt"), {"text": "{{last_tool_result}}"}),
            working_directory=str(tmp_path),
        )
        await session.set_approve_all(True)
        assert "content of a" in await session.ask("look")


async def test_abort_ends_the_prompt_and_stops_the_tool(home: Path) -> None:
    started, stopped = anyio.Event(), anyio.Event()

    @tool(skip_permission=True)
    async def hang() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    async with server(home) as client:
        session = await client.create_session(provider=scripted(calling("hang"), {"text": "back"}), tools=[hang])

        async def abort() -> None:
            await started.wait()
            await session.abort()
            await stopped.wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(abort)
            with pytest.raises(SessionAborted):
                await session.ask("wait")
        assert await session.ask("still there?") == "back"


async def test_model_failure_is_raised_with_its_type(home: Path) -> None:
    async with server(home) as client:
        failing = {"when": "fail", "turns": [{"errors": [{"status": 401, "message": "bad key"}]}]}
        script = {"prompts": [failing, {"turns": [{"text": "better"}]}]}
        session = await client.create_session(provider=ProviderConfig(type="scripted", script=script))
        with pytest.raises(SessionFailed, match="bad key") as caught:
            await session.ask("fail")
        assert (caught.value.error_type, caught.value.status_code) == ("authentication", 401)
        assert await session.ask("again") == "better"


async def test_second_process_resumes_the_session(home: Path) -> None:
    async with server(home) as client:
        session = await client.create_session(provider=scripted({"text": "one"}))
        await session.ask("first prompt")
    async with server(home) as client:
        assert await client.last_session_id() == session.id
        assert [(listed.session_id, listed.summary) for listed in await client.list_sessions()] == [
            (session.id, "first prompt")
        ]
        resumed = await client.resume_session(session.id, provider=scripted({"text": "one"}, {"text": "two"}))
        assert await resumed.ask("second prompt") == "two"
        await client.delete_session(session.id)
        with pytest.raises(JumpseatClientError, match="could not delete session"):
            await client.delete_session(session.id)
        with pytest.raises(RpcError, match="Session not found"):
            await client.resume_session(session.id)


async def test_settings_of_a_running_session_can_change(home: Path) -> None:
    async with server(home) as client:
        session = await client.create_session(provider=scripted({"text": "{{model}}"}), model="first")
        await session.set_mode("plan")
        assert await session.request("session.mode.get") == "plan"
        await session.set_model("second")
        assert await session.ask("which model") == "second"
        await session.detach()
        with pytest.raises(RpcError, match="Session not found"):
            await session.send("anyone?")


async def test_killed_server_is_reported_with_its_exit(unconfined_home: Path) -> None:
    async with server(unconfined_home) as client:
        session = await client.create_session(provider=scripted(calling("bash", command="kill -9 $PPID")))
        await session.set_approve_all(True)
        with pytest.raises(ServerGoneError, match=r"the server exited with code -9|closed its output"):
            await session.ask("go")
        with pytest.raises(ServerGoneError):
            await client.ping()


async def test_unknown_option_is_named_in_the_error(home: Path) -> None:
    with anyio.fail_after(WAIT_S), pytest.raises(HandshakeError, match="--nonexistent"):
        async with connect_stdio([executable()], args=["--nonexistent"], env={"COPILOT_HOME": str(home)}):
            pass


@asynccontextmanager
async def listening(home: Path, token: str) -> AsyncGenerator[int]:
    """Start a server on a free port and yield the port."""
    command = [executable(), "--headless", "--port", "0"]
    env = {**os.environ, "COPILOT_HOME": str(home), "COPILOT_CONNECTION_TOKEN": token}
    with anyio.fail_after(WAIT_S):
        async with await anyio.open_process(command, stdin=DEVNULL, stdout=PIPE, stderr=None, env=env) as process:
            assert process.stdout is not None
            line = ""
            stdout = TextReceiveStream(process.stdout)
            while not (found := re.search(r"listening on port (\d+)\n", line)):
                line += await stdout.receive()
            try:
                yield int(found.group(1))
            finally:
                process.terminate()
                await process.wait()


async def test_two_clients_share_a_session_over_tcp(home: Path) -> None:
    async with listening(home, "sesame") as port:
        async with (
            connect_tcp("127.0.0.1", port, token="sesame") as first,
            connect_tcp("127.0.0.1", port, token="sesame") as second,
        ):
            session = await first.create_session(
                provider=scripted(calling("double", n=4), {"text": "{{last_tool_result}}"}, {"text": "bye"}),
                on_permission=approve_all,
            )
            # The second client provides the tool; the first sends the prompt and approves.
            other = await second.resume_session(session.id, tools=[double])
            async with other.events() as events:
                assert await session.ask("double 4") == "8 in mode interactive"
                heard = [event.type async for event in until_idle(events)]
            assert "external_tool.requested" in heard
        # Both clients have left; the server has not.
        async with connect_tcp("127.0.0.1", port, token="sesame") as three:
            assert (await three.ping("still there")).message == "pong: still there"


async def until_idle(events: Any) -> AsyncGenerator[Any]:
    async for event in events:
        yield event
        if event.type == "session.idle":
            return


async def test_wrong_token_is_refused(home: Path) -> None:
    async with listening(home, "sesame") as port:
        with pytest.raises(HandshakeError, match="AUTHENTICATION_FAILED"):
            async with connect_tcp("127.0.0.1", port, token="wrong"):
                pass
