"""Hooks over the real wire: their inputs and effects, and that a failing hook stops nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from tests.support.callbacks import SILENT, THROWS, AnsweringClient, Whole, answering, server_request
from tests.support.events import data_of
from tests.support.fake_openai import MODEL, Answer, FakeOpenAI, calls, fake_openai, says, texts
from tests.support.limits import WAIT_S
from tests.support.server import JsonObject, RunningServer, Wire, running_server, scripted
from tests.support.server import calls as scripted_call

pytestmark = pytest.mark.anyio

Opening = Literal["created", "resumed"]
HOOKS_OF_A_RUN = (
    "userPromptSubmitted",
    "userPromptTransformed",
    "sessionStart",
    "preToolUse",
    "postToolUse",
    "agentStop",
)


@pytest.fixture(params=["created", "resumed"])
def opening(request: pytest.FixtureRequest) -> Opening:
    """Return how the client with the hooks opens its session."""
    return request.param


class Scene:
    """A session with hooks, its client and its model."""

    def __init__(self, wire: Wire, client: AnsweringClient, model: FakeOpenAI, session: str, folder: Path) -> None:
        self.wire = wire
        self.client = client
        self.model = model
        self.session = session
        self.folder = folder

    async def run(self, prompt: str = "Go ahead") -> list[JsonObject]:
        return await self.wire.prompt(self.session, prompt)

    def requests(self) -> list[JsonObject]:
        """Return the model requests since this client opened the session."""
        return [request for request in self.model.requests if "Go ahead" in str(request["messages"])]


@asynccontextmanager
async def opened(
    folder: Path,
    opening: Opening,
    turns: Sequence[Answer],
    hooks: dict[str, list[Any]] | None = None,
    *,
    approve_all: bool = True,
    config: str | None = None,
    **options: Any,
) -> AsyncGenerator[Scene]:
    (folder / "note.txt").write_text("a note\n")
    (folder / "other.txt").write_text("something else\n")
    async with (
        fake_openai({"Warm up": [says("-")], "Go ahead": turns}) as model,
        running_server(folder, config=config) as server,
    ):
        wire = server.wire
        setup: JsonObject = {
            "provider": {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"},
            "model": MODEL,
        }
        if opening == "created":
            session = await wire.create(**setup, hooks=True, **options)
        else:
            session = await wire.create(**setup)
            await wire.prompt(session, "Warm up")
            await wire.call("session.detach", {"sessionId": session})
            await wire.call("session.resume", {"sessionId": session, **setup, "hooks": True, **options})
        if approve_all:
            await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        async with answering(wire, hooks) as client:
            yield Scene(wire, client, model, session, folder)


# --- inputs of hooks ----------------------------------------------------------------------------------------------


async def test_the_hooks_of_a_session_are_called_in_order(tmp_path: Path, opening: Opening) -> None:
    async with opened(tmp_path, opening, [calls("view", path="note.txt"), says("Seen.")]) as scene:
        events = await scene.run()
        await scene.wire.call("session.detach", {"sessionId": scene.session})
    assert scene.client.names() == [*HOOKS_OF_A_RUN, "sessionEnd"]
    for _, given in scene.client.requests:
        assert given["sessionId"] == scene.session
        assert given["cwd"] == str(tmp_path)
        assert isinstance(given["timestamp"], int)
        assert given["timestamp"] > 1_700_000_000_000
    told = dict(scene.client.requests)
    source = {"created": "new", "resumed": "resume"}[opening]
    assert (told["sessionStart"]["source"], told["sessionStart"]["initialPrompt"]) == (source, "Go ahead")
    assert told["userPromptSubmitted"]["prompt"] == told["userPromptTransformed"]["prompt"] == "Go ahead"
    assert "<current_datetime>" in told["userPromptTransformed"]["transformedPrompt"]
    assert (told["preToolUse"]["toolName"], told["preToolUse"]["toolArgs"]) == ("view", {"path": "note.txt"})
    assert (told["postToolUse"]["toolName"], told["postToolUse"]["toolArgs"]) == ("view", {"path": "note.txt"})
    assert told["postToolUse"]["toolResult"]["resultType"] == "success"
    assert "a note" in told["postToolUse"]["toolResult"]["textResultForLlm"]
    assert (told["agentStop"]["stopReason"], told["agentStop"]["stop_hook_active"]) == ("end_turn", False)
    assert Path(told["agentStop"]["transcriptPath"]).name == "events.jsonl"
    assert told["sessionEnd"]["reason"] == "complete"
    assert [start["hookType"] for start in data_of(events, "hook.start")] == list(HOOKS_OF_A_RUN)
    assert [end["success"] for end in data_of(events, "hook.end")] == [True] * len(HOOKS_OF_A_RUN)
    kinds = [event["data"].get("hookType", event["type"]) for event in events]
    assert kinds.index("tool.execution_start") < kinds.index("preToolUse") < kinds.index("postToolUse")
    assert kinds.index("postToolUse") < kinds.index("tool.execution_complete")


async def test_session_start_is_called_once(tmp_path: Path, opening: Opening) -> None:
    async with opened(tmp_path, opening, [says("One."), says("Two.")]) as scene:
        await scene.run()
        await scene.run()
        assert scene.client.names().count("sessionStart") == 1


async def test_session_start_of_a_joining_client_reports_a_resume(tmp_path: Path) -> None:
    quiet = scripted(*[{"text": "-"}] * 2)
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first:
        session = await first.create(quiet)
        await first.prompt(session)
        async with server.connect() as second, answering(second) as client:
            await second.call("session.resume", {"sessionId": session, "provider": quiet, "hooks": True})
            await second.prompt(session, "again")
    (start,) = client.inputs("sessionStart")
    assert (start["source"], start["initialPrompt"]) == ("resume", "again")


async def test_session_end_is_called_only_for_the_client_that_detaches(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as stays:
        session = await stays.create(scripted({"text": "-"}), hooks=True)
        async with server.connect() as leaves, answering(leaves) as leaving, answering(stays) as staying:
            await leaves.call("session.resume", {"sessionId": session})
            await leaves.call("session.detach", {"sessionId": session})
            assert leaving.names() == staying.names() == []
            await leaves.call("session.resume", {"sessionId": session, "hooks": True})
            await leaves.call("session.detach", {"sessionId": session})
            assert leaving.names() == ["sessionEnd"]
            assert staying.names() == []
            await stays.call("session.destroy", {"sessionId": session})
            assert staying.names() == ["sessionEnd"]


async def test_session_end_is_called_once_if_a_client_detaches_twice(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "-"}), hooks=True)
        first = await wire.ask("session.detach", {"sessionId": session})
        second = await wire.ask("session.detach", {"sessionId": session})
        async with answering(wire) as client:
            assert (await wire.response(first))["result"] == {"success": True}
            assert (await wire.response(second))["result"] == {"success": True}
    assert client.names() == ["sessionEnd"]


@pytest.mark.parametrize(
    ("method", "extra", "reason"),
    [
        ("session.shutdown", {}, "complete"),
        ("session.shutdown", {"type": "error", "reason": "x"}, "error"),
        ("runtime.shutdown", None, "user_exit"),
    ],
)
async def test_session_end_is_called_before_a_shutdown_is_answered(
    tmp_path: Path, method: str, extra: JsonObject | None, reason: str
) -> None:
    async with running_server(tmp_path) as server, answering(server.wire) as client:
        session = await server.wire.create(scripted({"text": "-"}), hooks=True)
        await server.wire.call(method, {} if extra is None else {"sessionId": session, **extra})
        assert [given["reason"] for given in client.inputs("sessionEnd")] == [reason]


async def test_a_session_is_closed_if_its_client_hangs_up_during_session_end(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as other:
        async with server.connect() as wire:
            session = await wire.create(scripted(scripted_call("bash", command="sleep 100")), hooks=True)
            await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
            async with answering(wire, {"sessionEnd": [SILENT]}):
                await wire.call("session.send", {"sessionId": session, "prompt": "go"})
                await wire.event("tool.execution_start")
                while not server.descendants():
                    await other.check_alive()
                await wire.ask("session.detach", {"sessionId": session})
                await server_request(wire, "sessionEnd")
        with anyio.fail_after(WAIT_S):
            while server.descendants():
                await other.check_alive()
        error = await other.error_of("session.mode.get", {"sessionId": session})
    assert error["message"] == f"Session not found: {session}"


# --- changes by hooks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"permissionDecision": "deny"}, "No reason provided"),
        ({"permissionDecision": "deny", "permissionDecisionReason": "not on Fridays"}, "not on Fridays"),
        ({"permissionDecision": "deny", "permissionDecisionReason": 5, "modifiedArgs": "-"}, "No reason provided"),
        (Whole({"error": None, "result": {"output": {"permissionDecision": "deny"}}}), "No reason provided"),
    ],
)
@pytest.mark.parametrize("tool", ["view", "no_such_tool"])
async def test_a_denial_reaches_the_model_and_the_call_does_not_run(
    tmp_path: Path, opening: Opening, answer: Any, reason: str, tool: str
) -> None:
    turns = [calls(tool, path="note.txt"), says("As you wish.")]
    async with opened(tmp_path, opening, turns, {"preToolUse": [answer]}) as scene:
        events = await scene.run()
    assert texts(scene.requests()[-1], "tool") == [f"Denied by preToolUse hook: {reason}"]
    assert [completion["success"] for completion in data_of(events, "tool.execution_complete")] == [False]
    assert "postToolUse" not in scene.client.names()
    assert "postToolUseFailure" not in scene.client.names()
    assert data_of(events, "assistant.message")[-1]["content"] == "As you wish."


async def test_an_allowance_replaces_the_permission_request(tmp_path: Path, opening: Opening) -> None:
    turns = [calls("view", path="note.txt"), says("Seen.")]
    hooks = {"preToolUse": [{"permissionDecision": "allow"}]}
    async with opened(tmp_path, opening, turns, hooks, approve_all=False) as scene:
        events = await scene.run()
    assert data_of(events, "permission.requested") == []
    assert [completion["success"] for completion in data_of(events, "tool.execution_complete")] == [True]


@pytest.mark.parametrize("decision", ["approve-once", "reject"])
async def test_a_hook_can_leave_the_decision_to_the_user(tmp_path: Path, opening: Opening, decision: str) -> None:
    turns = [calls("view", path="note.txt"), says("Seen.")]
    answer = {"permissionDecision": "ask", "permissionDecisionReason": "is this wise?"}
    scenery = opened(tmp_path, opening, turns, {"preToolUse": [answer]}, approve_all=False, requestPermission=True)
    async with scenery as scene:
        wire = scene.wire
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": scene.session, "prompt": "Go ahead"})
        data = (await wire.event("permission.requested"))["data"]
        await wire.call(
            "session.permissions.handlePendingPermissionRequest",
            {
                "sessionId": scene.session,
                "requestId": data["requestId"],
                "result": {"kind": decision},
            },
        )
        await wire.event("session.idle", since=since)
        events = wire.events(scene.session, since=since)
    request = data["permissionRequest"]
    assert (request["kind"], request["hookMessage"]) == ("hook", "is this wise?")
    assert (request["toolName"], request["toolArgs"]) == ("view", {"path": "note.txt"})
    assert len(data_of(events, "permission.requested")) == 1
    assert [completion["success"] for completion in data_of(events, "tool.execution_complete")] == [
        decision == "approve-once"
    ]


async def test_changed_arguments_are_run_and_sent_to_the_model_as_its_own(tmp_path: Path, opening: Opening) -> None:
    turns = [calls("view", path="note.txt"), says("Seen.")]
    hooks = {"preToolUse": [{"modifiedArgs": {"path": "other.txt"}}]}
    async with opened(tmp_path, opening, turns, hooks) as scene:
        await scene.run()
    assert ["something else" in text for text in texts(scene.requests()[-1], "tool")] == [True]
    (call,) = [call for message in scene.requests()[-1]["messages"] for call in message.get("tool_calls", [])]
    assert call["function"]["arguments"] == '{"path":"other.txt"}'
    assert scene.client.inputs("postToolUse")[0]["toolArgs"] == {"path": "other.txt"}


async def test_a_changed_result_reaches_the_model_and_the_events(tmp_path: Path, opening: Opening) -> None:
    turns = [calls("view", path="note.txt"), says("Seen.")]
    change = {"modifiedResult": {"textResultForLlm": "changed"}, "additionalContext": "Mind the gap."}
    async with opened(tmp_path, opening, turns, {"postToolUse": [change]}) as scene:
        events = await scene.run()
    assert texts(scene.requests()[-1], "tool") == ["changed"]
    assert texts(scene.requests()[-1], "user")[-1] == "Mind the gap."
    assert [completion["result"] for completion in data_of(events, "tool.execution_complete")] == [
        {"content": "changed"}
    ]


async def test_a_hook_gets_the_whole_result_and_a_terminal_tool_stays_terminal(tmp_path: Path) -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png", "description": "a dot"}
    result = {"textResultForLlm": "out", "resultType": "success", "binaryResultsForLlm": [image]}
    hooks = {"postToolUse": [{"modifiedResult": result | {"textResultForLlm": "changed"}}]}
    scenery = opened(tmp_path, "created", [calls("finish")], hooks, tools=[{"name": "finish", "isTerminal": True}])
    async with scenery as scene:
        wire = scene.wire
        await wire.call("session.send", {"sessionId": scene.session, "prompt": "Go ahead"})
        request = (await wire.event("external_tool.requested"))["data"]
        await wire.call(
            "session.tools.handlePendingToolCall",
            {"sessionId": scene.session, "requestId": request["requestId"], "result": result},
        )
        await wire.event("session.idle")
        completion = await wire.event("tool.execution_complete")
        assert "session.error" not in [event["type"] for event in wire.events()]
    assert scene.client.inputs("postToolUse")[0]["toolResult"] == result
    assert completion["data"]["result"]["content"] == "changed"
    assert completion["data"]["result"]["binaryResultsForLlm"][0]["data"] == "aGk="
    assert len(scene.requests()) == 1


async def test_a_failed_call_calls_the_failure_hook_instead(tmp_path: Path, opening: Opening) -> None:
    turns = [calls("view", path="missing.txt"), says("Not there.")]
    hooks = {"postToolUseFailure": [{"additionalContext": "Look elsewhere."}]}
    async with opened(tmp_path, opening, turns, hooks) as scene:
        await scene.run()
    (told,) = scene.client.inputs("postToolUseFailure")
    assert (told["toolName"], told["toolArgs"]) == ("view", {"path": "missing.txt"})
    assert "does not exist" in told["error"]
    assert scene.client.inputs("postToolUse") == []
    assert [message["role"] for message in scene.requests()[-1]["messages"][-2:]] == ["tool", "user"]
    assert texts(scene.requests()[-1], "user")[-1] == (
        'Tool "view" failed. Additional guidance from postToolUseFailure hooks:\nLook elsewhere.'
    )


async def test_a_hook_can_change_a_prompt_and_add_context(tmp_path: Path, opening: Opening) -> None:
    hooks = {
        "userPromptSubmitted": [{"modifiedPrompt": "Go ahead, gently", "additionalContext": "It is late."}],
        "sessionStart": [{"additionalContext": "We use tabs."}],
    }
    async with opened(tmp_path, opening, [says("Done.")], hooks) as scene:
        events = await scene.run()
    late, tabs, prompt = texts(scene.requests()[-1], "user")[-3:]
    assert (late, tabs) == ("It is late.", "We use tabs.")
    assert "Go ahead, gently" in prompt
    assert data_of(events, "user.message")[-1]["content"] == "Go ahead"


async def test_a_hook_can_replace_the_text_for_the_model(tmp_path: Path, opening: Opening) -> None:
    hooks = {"userPromptTransformed": [{"modifiedTransformedPrompt": "Go ahead, I say"}]}
    async with opened(tmp_path, opening, [says("Done.")], hooks) as scene:
        events = await scene.run()
    assert texts(scene.requests()[-1], "user")[-1] == "Go ahead, I say"
    (said,) = data_of(events, "user.message")
    assert (said["content"], said["transformedContent"]) == ("Go ahead", "Go ahead, I say")


async def test_a_run_continues_if_a_hook_blocks_its_end(tmp_path: Path, opening: Opening) -> None:
    hooks = {"agentStop": [{"decision": "block", "reason": "Test it too."}]}
    async with opened(tmp_path, opening, [says("Done."), says("Tested.")], hooks) as scene:
        events = await scene.run()
    assert texts(scene.requests()[-1], "user")[-1] == "Test it too."
    assert [hook_input["stop_hook_active"] for hook_input in scene.client.inputs("agentStop")] == [False, True]
    assert [message["content"] for message in data_of(events, "assistant.message")] == ["Done.", "Tested."]
    assert len(data_of(events, "session.idle")) == 1


async def test_an_error_hook_can_retry_a_call_and_notify_the_user(tmp_path: Path, opening: Opening) -> None:
    failing = scripted({"text": "At last.", "errors": [{"status": 400, "message": "no"}] * 2})
    answer = {"errorHandling": "retry", "retryCount": 2, "userNotification": "Trying again."}
    config = "[retry]\nfirst_wait_s = 0\n"
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        session = await wire.create(failing, **({"hooks": True} if opening == "created" else {}))
        if opening == "resumed":
            await wire.call("session.resume", {"sessionId": session, "hooks": True})
        async with answering(wire, {"errorOccurred": [answer]}) as client:
            events = await wire.prompt(session)
    (told,) = client.inputs("errorOccurred")
    assert (told["errorContext"], told["recoverable"]) == ("model_call", False)
    assert "no" in told["error"]
    assert [info["message"] for info in data_of(events, "session.info")] == ["Trying again."]
    assert data_of(events, "assistant.message")[-1]["content"] == "At last."
    assert data_of(events, "session.error") == []


async def test_the_attempts_that_an_error_hook_requests_are_limited(tmp_path: Path) -> None:
    failing = scripted({"text": "-", "errors": [{"status": 400, "message": "no"}] * 50})
    again = [{"errorHandling": "retry", "retryCount": 3}] * 50
    async with running_server(tmp_path, config="[retry]\nfirst_wait_s = 0\n") as server:
        session = await server.wire.create(failing, hooks=True)
        async with answering(server.wire, {"errorOccurred": again}) as client:
            events = await server.wire.prompt(session)
    assert client.names().count("errorOccurred") == 1
    assert len(data_of(events, "model.call_failure")) == 4
    assert len(data_of(events, "session.error")) == 1


async def test_attempts_that_a_hook_requests_have_the_usual_delay(tmp_path: Path) -> None:
    failing = scripted({"text": "-", "errors": [{"status": 400, "message": "no"}] * 50})
    config = "[retry]\nfirst_wait_s = 100\nlongest_wait_s = 100\n"
    async with running_server(tmp_path, config=config) as server:
        wire = server.wire
        session = await wire.create(failing, hooks=True)
        async with answering(wire, {"errorOccurred": [{"errorHandling": "retry", "retryCount": 40}]}):
            await wire.call("session.send", {"sessionId": session, "prompt": "go"})
            await wire.event("hook.end", hookType="errorOccurred")
            await wire.check_alive()
            await wire.call("session.abort", {"sessionId": session})
            await wire.event("session.idle", aborted=True)
    assert len([event for event in wire.events() if event["type"] == "model.call_failure"]) == 1


async def test_an_unknown_model_calls_the_error_hook(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = (await server.wire.call("session.create", {"hooks": True}))["sessionId"]
        async with answering(server.wire, {}) as client:
            events = await server.wire.prompt(session)
    assert [hook_input["errorContext"] for hook_input in client.inputs("errorOccurred")] == ["model_call"]
    assert len(data_of(events, "session.error")) == 1


# --- failing hooks ------------------------------------------------------------------------------------------------

NONSENSE: list[Any] = [
    THROWS,
    {"permissionDecision": "perhaps", "decision": "maybe", "additionalContext": 5, "modifiedPrompt": ["x"]},
    "a string",
    17,
    [],
    Whole({"result": None}),
    Whole({"result": []}),
    Whole({"result": "-"}),
    Whole({"error": None, "result": {}}),
    Whole({"error": "no object"}),
    Whole({}),
]


@pytest.mark.parametrize("answer", NONSENSE, ids=str)
async def test_failing_hooks_and_invalid_answers_have_no_effect(tmp_path: Path, answer: Any) -> None:
    hooks = {name: [answer] for name in (*HOOKS_OF_A_RUN, "sessionEnd")}
    async with opened(tmp_path, "created", [calls("view", path="note.txt"), says("Seen.")], hooks) as scene:
        events = await scene.run()
        await scene.wire.call("session.detach", {"sessionId": scene.session})
    assert scene.client.names() == [*HOOKS_OF_A_RUN, "sessionEnd"]
    assert [completion["success"] for completion in data_of(events, "tool.execution_complete")] == [True]
    assert [message["content"] for message in data_of(events, "user.message")] == ["Go ahead"]
    assert data_of(events, "assistant.message")[-1]["content"] == "Seen."
    assert "threw" not in str(data_of(events, "hook.end"))


async def test_hooks_that_do_not_answer_in_time_have_no_effect(tmp_path: Path, opening: Opening) -> None:
    hooks = {name: [SILENT] for name in (*HOOKS_OF_A_RUN, "sessionEnd")}
    turns = [calls("view", path="note.txt"), says("Seen.")]
    async with opened(tmp_path, opening, turns, hooks, config="[hooks]\ntimeout_s = 0.25\n") as scene:
        events = await scene.run()
        await scene.wire.call("session.detach", {"sessionId": scene.session})
    assert scene.client.names() == [*HOOKS_OF_A_RUN, "sessionEnd"]
    assert {end["success"] for end in data_of(events, "hook.end")} == {False}
    assert data_of(events, "assistant.message")[-1]["content"] == "Seen."


@pytest.mark.parametrize("hook", HOOKS_OF_A_RUN)
async def test_a_run_continues_if_its_client_dies_during_a_hook(tmp_path: Path, hook: str) -> None:
    (tmp_path / "note.txt").write_text("a note\n")
    turns = scripted(scripted_call("view", path="note.txt"), {"text": "Seen."})
    async with running_server(tmp_path, tcp=True) as server, server.connect() as watcher:
        session = await watcher.create(turns)
        await watcher.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        async with _dying_client(server, session, turns, hook) as dying:
            await watcher.call("session.send", {"sessionId": session, "prompt": "go"})
            await server_request(dying, hook)
        answer = await watcher.event("assistant.message", content="Seen.")
        await watcher.event("session.idle")
    ends = [event["data"] for event in watcher.events() if event["type"] == "hook.end"]
    assert [end["success"] for end in ends if end["hookType"] == hook] == [False]
    assert answer["data"]["content"] == "Seen."


@asynccontextmanager
async def _dying_client(
    server: RunningServer, session: str, provider: JsonObject, hook: str
) -> AsyncGenerator[Wire]:
    """Join with a client that answers hooks up to ``hook`` and then hangs up."""
    async with server.connect() as wire:
        await wire.call("session.resume", {"sessionId": session, "provider": provider, "hooks": True})
        async with answering(wire, {hook: [SILENT]}):
            yield wire


@pytest.mark.parametrize("hook", HOOKS_OF_A_RUN)
async def test_an_abort_does_not_wait_for_a_hook(tmp_path: Path, hook: str) -> None:
    turns = [calls("view", path="note.txt"), says("Seen."), says("Again.")]
    async with opened(tmp_path, "resumed", turns, {hook: [SILENT]}) as scene:
        wire = scene.wire
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": scene.session, "prompt": "Go ahead"})
        await server_request(wire, hook)
        assert await wire.call("session.abort", {"sessionId": scene.session}) == {"success": True}
        await wire.event("session.idle", aborted=True, since=since)
        await wire.until(lambda message: message.get("method") == "$/cancelRequest", since=since)
        events = wire.events(scene.session, since=since)
        assert data_of(events, "abort") == [{"reason": "user_initiated"}]
        assert [start["hookType"] for start in data_of(events, "hook.start")] == [
            end["hookType"] for end in data_of(events, "hook.end")
        ]
        assert len(data_of(events, "tool.execution_start")) == len(data_of(events, "tool.execution_complete"))
        # The next prompt works at once.
        assert data_of(await scene.run(), "session.idle") == [{"mode": "interactive"}]
