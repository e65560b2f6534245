"""Tool calls from the answer to their results, in a real session with a scripted model and a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.blocks import ToolMessage
from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.tools.builtin.bash import TOOL as BASH
from jumpseat.tools.builtin.bash import BashArgs, run_bash
from jumpseat.tools.builtin.glob import TOOL as GLOB
from jumpseat.tools.builtin.view import TOOL as VIEW
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome
from jumpseat_protocol import events
from jumpseat_protocol.permissions import PermissionRequest, ReadPermission
from jumpseat_protocol.sessions import ClientTool, LargeOutputConfig
from tests.support.limits import WAIT_S
from tests.support.sessions import MadeSession, make_session

pytestmark = pytest.mark.anyio

Run = Callable[[ToolContext, "CountArgs"], Awaitable[ToolOutcome]]


class CountArgs(ToolArgs):
    """Arguments of the built-in tool of these tests."""

    count: int
    unit: str = "apples"


def builtin(name: str, run: Run, *, permission: PermissionRequest | None = None) -> BuiltinTool[CountArgs]:
    return BuiltinTool(
        name=name,
        description="Count",
        args=CountArgs,
        run=run,
        intention=lambda args: f"Count {args.unit}",
        permission=lambda _ctx, _args: permission,
    )


async def counted(_ctx: ToolContext, args: CountArgs) -> ToolOutcome:
    return ToolOutcome(f"{args.count} {args.unit}")


def tool(name: str, **fields: Any) -> ClientTool:
    return ClientTool(name=name, skip_permission=True, **fields)


def calls(*named: tuple[str, dict[str, Any] | str]) -> list[dict[str, Any]]:
    """Return a script: an answer with the calls ``c1``, ``c2``..., then the answer ``done``."""
    made = [
        {"id": f"c{number}", "name": name, "arguments": arguments}
        for number, (name, arguments) in enumerate(named, 1)
    ]
    return [{"tool_calls": made}, {"text": "done"}]


def result(made: MadeSession) -> events.ToolExecutionComplete:
    (completed,) = made.client.payloads(events.ToolExecutionComplete)
    return completed


def results_for_model(made: MadeSession) -> list[str]:
    """Return the results that the model received."""
    (message,) = [message for message in made.session.conversation.messages() if isinstance(message, ToolMessage)]
    return [block.text for block in message.results]


async def test_a_builtin_tool_runs_and_its_intention_is_shown(tasks: TaskGroup) -> None:
    made = make_session(tasks, script=calls(("count", {"count": 3})), builtin=[builtin("count", counted)])
    await made.ask("go")

    assert result(made) == events.ToolExecutionComplete(
        tool_call_id="c1",
        success=True,
        result=events.ToolResult(content="3 apples"),
        turn_id="0",
        jumpseat_decision=events.CallDecision(by="tool"),
    )
    assert made.client.payloads(events.AssistantMessage)[0].tool_requests == [
        events.ToolRequest(
            tool_call_id="c1", name="count", arguments={"count": 3}, intention_summary="Count apples"
        )
    ]


async def test_an_unknown_tool_is_answered_with_the_available_names(tasks: TaskGroup) -> None:
    text = "Tool 'report_intent' does not exist. Available tools that can be called are count, ask."
    made = make_session(
        tasks, script=calls(("report_intent", {})), builtin=[builtin("count", counted)], tools=[tool("ask")]
    )
    await made.ask("go")

    assert result(made) == events.ToolExecutionComplete(
        tool_call_id="c1", success=False, error=events.ToolError(message=text, code="failure"), turn_id="0"
    )
    assert results_for_model(made) == [text]


async def test_an_unknown_tool_in_a_session_without_tools_lists_none(tasks: TaskGroup) -> None:
    made = make_session(tasks, script=calls(("ask", {})))
    await made.ask("go")

    assert results_for_model(made) == ["Tool 'ask' does not exist."]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [("{oops", ": "), ("[1]", " but an array"), ('"text"', " but a string"), ('{"count": 1', ": ")],
)
async def test_arguments_that_are_not_a_json_object_are_an_error_and_the_model_sees_its_own_text(
    tasks: TaskGroup,
    arguments: str,
    what: str,
) -> None:
    made = make_session(tasks, script=calls(("count", arguments)), builtin=[builtin("count", counted)])
    await made.ask("go")

    (text,) = results_for_model(made)
    assert text.startswith(f"The arguments of `count` are not a JSON object{what}")
    assert text.endswith(". Send the call again with valid JSON.")
    assert made.client.payloads(events.AssistantMessage)[0].tool_requests == [
        events.ToolRequest(tool_call_id="c1", name="count", arguments={}, arguments_json=arguments)
    ]


async def test_unambiguous_arguments_are_repaired_and_the_model_sees_the_repaired_ones(tasks: TaskGroup) -> None:
    made = make_session(tasks, script=calls(("count", '{"count": 1,}')), builtin=[builtin("count", counted)])
    await made.ask("go")

    assert results_for_model(made) == ["1 apples"]
    (call,) = made.client.payloads(events.AssistantMessage)[0].tool_requests
    assert (call.arguments, call.arguments_json) == ({"count": 1}, None)


async def test_invalid_arguments_name_every_field(tasks: TaskGroup) -> None:
    made = make_session(
        tasks, script=calls(("count", {"count": "many", "unit": 7})), builtin=[builtin("count", counted)]
    )
    await made.ask("go")

    assert results_for_model(made) == [
        "Invalid arguments for `count`: count: expected an integer, got a string; unit: expected a string, got an"
        " integer"
    ]


async def test_a_crash_in_a_tool_is_a_failed_call_without_details(
    tasks: TaskGroup,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def crash(_ctx: ToolContext, _args: CountArgs) -> ToolOutcome:
        raise RuntimeError("secret detail")

    text = 'Failed to execute `count` tool with arguments: {"count":1} due to error: Error: Tool execution failed'
    made = make_session(tasks, script=calls(("count", {"count": 1})), builtin=[builtin("count", crash)])
    await made.ask("go")

    assert result(made) == events.ToolExecutionComplete(
        tool_call_id="c1",
        success=False,
        result=events.ToolResult(content=text),
        error=events.ToolError(message="Tool execution failed", code="failure"),
        turn_id="0",
        jumpseat_decision=events.CallDecision(by="tool"),
    )
    assert results_for_model(made) == [text]
    assert made.client.payloads(events.AssistantMessage)[-1].content == "done"
    assert "secret detail" in caplog.text


async def test_parallel_calls_overlap_complete_as_they_finish_and_keep_their_order_in_the_conversation(
    tasks: TaskGroup,
) -> None:
    script = calls(("ask", {"n": 1}), ("ask", {"n": 2}), ("ask", {"n": 3}))
    made = make_session(tasks, script=script, tools=[tool("ask")])
    made.send("go")
    await made.client.wait_for(events.ExternalToolRequested, 3)
    first, second, third = made.client.payloads(events.ExternalToolRequested)
    for count, (request, answer) in enumerate([(third, "C"), (first, "A"), (second, "B")], 1):
        assert made.answer_tool(request, answer)
        await made.client.wait_for(events.ToolExecutionComplete, count)
    await made.idle()

    assert [request.arguments for request in (first, second, third)] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [completion.tool_call_id for completion in made.client.payloads(events.ToolExecutionComplete)] == [
        "c3",
        "c1",
        "c2",
    ]
    assert results_for_model(made) == ["A", "B", "C"]
    assert made.client.types(persisted_only=True) == [
        "user.message",
        "assistant.turn_start",
        "assistant.message",
        *["tool.execution_start"] * 3,
        *["external_tool.requested"] * 3,
        *["external_tool.completed", "tool.execution_complete"] * 3,
        "assistant.turn_end",
        "assistant.turn_start",
        "assistant.message",
        "assistant.turn_end",
    ]


async def test_a_builtin_tool_and_a_client_tool_run_at_the_same_time(tasks: TaskGroup) -> None:
    inside = anyio.Event()

    async def wait(_ctx: ToolContext, _args: CountArgs) -> ToolOutcome:
        await inside.wait()
        return ToolOutcome("waited")

    made = make_session(
        tasks,
        script=calls(("wait", {"count": 1}), ("ask", {})),
        builtin=[builtin("wait", wait)],
        tools=[tool("ask")],
    )
    made.send("go")
    request = await made.client.wait_for(events.ExternalToolRequested)
    inside.set()
    await made.client.wait_for(events.ToolExecutionComplete)
    made.answer_tool(request, "answered")
    await made.idle()

    assert results_for_model(made) == ["waited", "answered"]


async def test_two_calls_with_one_id_both_get_their_results(tasks: TaskGroup) -> None:
    script = [
        {"tool_calls": [{"id": "c", "name": "count", "arguments": {"count": n}} for n in (1, 2)]},
        {"text": "done"},
    ]
    made = make_session(tasks, script=script, builtin=[builtin("count", counted)])
    await made.ask("go")

    assert results_for_model(made) == ["1 apples", "2 apples"]


async def test_a_rejection_ends_the_turn_after_the_other_calls(tasks: TaskGroup) -> None:
    made = make_session(
        tasks,
        script=calls(("read", {"count": 1}), ("ask", {})),
        builtin=[builtin("read", counted, permission=ReadPermission(intention="Read", path="/etc"))],
        tools=[tool("ask")],
    )
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "reject"})
    await made.client.wait_for(events.ToolExecutionComplete)
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "fine")
    await made.idle()

    rejected, answered = made.client.payloads(events.ToolExecutionComplete)
    assert rejected == events.ToolExecutionComplete(
        tool_call_id="c1",
        success=False,
        error=events.ToolError(message="The user rejected this tool call.", code="rejected"),
        turn_id="0",
    )
    assert answered.success
    assert len(made.client.payloads(events.AssistantMessage)) == 1


async def test_a_rejection_with_feedback_reaches_the_model_and_the_turn_continues(tasks: TaskGroup) -> None:
    text = "The user rejected this tool call. User feedback: use less"
    made = make_session(tasks, script=calls(("ask", {})), tools=[ClientTool(name="ask", description="Ask")])
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "reject", "feedback": "use less"})
    await made.idle()

    assert result(made).error == events.ToolError(message=text, code="denied")
    assert results_for_model(made) == [text]
    assert made.client.payloads(events.AssistantMessage)[-1].content == "done"
    assert made.client.payloads(events.ExternalToolRequested) == []


async def test_a_call_changed_by_the_user_runs_changed_and_the_model_is_informed(tasks: TaskGroup) -> None:
    made = make_session(
        tasks,
        script=calls(("count", {"count": 3})),
        builtin=[builtin("count", counted, permission=ReadPermission(intention="Count", path="/x"))],
    )
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "approve-once", "modifiedArgs": {"count": 2, "unit": "pears"}})
    await made.idle()

    assert result(made).result == events.ToolResult(content="2 pears")
    assert result(made).effective_arguments == {"count": 2, "unit": "pears"}
    assert len(made.client.payloads(events.PermissionRequested)) == 1
    message = made.client.payloads(events.UserMessage)[-1]
    assert message.source == "hook"
    assert '{"count":3}' in message.content
    assert '{"count":2,"unit":"pears"}' in message.content


async def test_invalid_arguments_from_the_user_are_reported(tasks: TaskGroup) -> None:
    made = make_session(
        tasks,
        script=calls(("count", {"count": 3})),
        builtin=[builtin("count", counted, permission=ReadPermission(intention="Count", path="/x"))],
    )
    made.send("go")
    made.decide(
        await made.client.wait_for(events.PermissionRequested),
        {"kind": "approve-once", "modifiedArgs": {"count": "many"}},
    )
    await made.idle()

    assert not result(made).success
    assert "count" in results_for_model(made)[0]
    assert results_for_model(made)[0].startswith("Invalid arguments for `count`")


async def test_a_client_tool_is_announced_then_approved_then_run(tasks: TaskGroup) -> None:
    script = calls(("ask", {"q": 1}))
    made = make_session(tasks, script=script, tools=[ClientTool(name="ask", description="Ask")])
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    assert made.client.types()[-2:] == ["tool.execution_start", "permission.requested"]
    made.decide(request, {"kind": "approve-once"})
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "yes")
    await made.idle()

    assert request.permission_request.tool_call_id == "c1"
    start = made.client.types().index("tool.execution_start")
    assert made.client.types()[start : start + 6] == [
        "tool.execution_start",
        "permission.requested",
        "permission.completed",
        "external_tool.requested",
        "external_tool.completed",
        "tool.execution_complete",
    ]


async def test_the_success_of_a_terminal_tool_ends_the_turn_and_its_failure_does_not(tasks: TaskGroup) -> None:
    for answer, answers in (
        ({"textResultForLlm": "ok"}, 1),
        ({"textResultForLlm": "no", "resultType": "failure"}, 2),
    ):
        made = make_session(tasks, script=calls(("end", {})), tools=[tool("end", is_terminal=True)])
        made.send("go")
        made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), answer)
        await made.idle()

        assert len(made.client.payloads(events.AssistantMessage)) == answers


async def test_a_client_tool_can_override_a_builtin_one(tasks: TaskGroup) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    override = tool("view", description="Mine", parameters=schema, overrides_built_in_tool=True)
    made = make_session(tasks, script=calls(("view", {"path": "x"})), builtin=[VIEW, GLOB], tools=[override])
    made.send("go")
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "from the client")
    await made.idle()

    assert results_for_model(made) == ["from the client"]
    assert made.session.tools.specs() == [GLOB.spec, ToolSpec("view", "Mine", ToolSchema.of(schema))]


async def test_a_client_tool_with_the_name_of_a_builtin_one_must_declare_the_override(
    tasks: TaskGroup,
) -> None:
    with pytest.raises(InvalidRequestError, match="'view' has the name of a built-in tool") as caught:
        make_session(tasks, builtin=[VIEW], tools=[tool("view")])

    assert "overridesBuiltInTool" in str(caught.value)


async def test_a_client_tool_without_a_schema_takes_no_arguments(tasks: TaskGroup) -> None:
    made = make_session(tasks, tools=[tool("ask")])

    assert made.session.tools.specs() == [ToolSpec("ask", "", ToolSchema.of({"type": "object", "properties": {}}))]


async def test_a_filtered_tool_is_neither_offered_nor_run(tasks: TaskGroup) -> None:
    settings = SessionSettings.of(Path("/project"), available_tools=["builtin:*"], excluded_tools=["glob"])
    made = make_session(
        tasks, script=calls(("ask", {})), settings=settings, builtin=[BASH, VIEW, GLOB], tools=[tool("ask")]
    )
    await made.ask("go")

    assert made.session.tools.specs() == [BASH.spec, VIEW.spec]
    assert results_for_model(made) == [
        "Tool 'ask' does not exist. Available tools that can be called are bash, view."
    ]


async def test_every_call_has_one_completion_when_the_run_is_cancelled(tasks: TaskGroup) -> None:
    waiting = anyio.Event()

    async def hang(_ctx: ToolContext, _args: CountArgs) -> ToolOutcome:
        waiting.set()
        await anyio.sleep_forever()
        raise AssertionError

    made = make_session(
        tasks,
        script=calls(("ask", {}), ("count", {"count": 2}), ("hang", {"count": 1}), ("gated", {})),
        builtin=[builtin("hang", hang), builtin("count", counted)],
        tools=[tool("ask"), ClientTool(name="gated")],
    )
    made.send("go")
    request = await made.client.wait_for(events.ExternalToolRequested)
    gated = await made.client.wait_for(events.PermissionRequested)
    await made.client.wait_for(events.ToolExecutionComplete)
    with anyio.fail_after(WAIT_S):
        await waiting.wait()
        await made.session.abort("user_initiated")

    completed = made.client.payloads(events.ToolExecutionComplete)
    interrupted = events.ToolError(message=INTERRUPTED, code="failure")
    assert {completion.tool_call_id: completion.error for completion in completed} == {
        "c1": interrupted,
        "c2": None,
        "c3": interrupted,
        "c4": interrupted,
    }
    assert len(completed) == 4
    assert results_for_model(made) == [INTERRUPTED, "2 apples", INTERRUPTED, INTERRUPTED]
    assert not made.answer_tool(request, "late")
    assert not made.decide(gated, {"kind": "approve-once"})
    assert made.client.types()[-5:] == [
        "abort",
        "pending_messages.modified",
        "assistant.turn_end",
        "assistant.idle",
        "session.idle",
    ]


async def test_an_oversized_output_goes_to_a_file_beside_the_session(tasks: TaskGroup, tmp_path: Path) -> None:
    settings = SessionSettings.of(tmp_path, large_output=LargeOutputConfig(max_size_bytes=10))
    made = make_session(tasks, script=calls(("ask", {})), settings=settings, tools=[tool("ask")])
    made.send("go")
    made.answer_tool(await made.client.wait_for(events.ExternalToolRequested), "x" * 11)
    await made.idle()

    (saved,) = (tmp_path / "temp").iterdir()
    assert saved.read_text() == "x" * 11
    (text,) = results_for_model(made)
    assert text.startswith(f"Output too large to read at once (0.0 KB). Saved to: {saved}\n")


async def test_a_shell_call_lists_the_paths_its_command_touches(tasks: TaskGroup, tmp_path: Path) -> None:
    made = make_session(
        tasks,
        script=calls(("bash", {"command": "echo hi > out.txt", "description": "Say hi"})),
        settings=SessionSettings(cwd=tmp_path),
        builtin=[BASH],
    )
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "user-not-available"})
    await made.idle()

    (start,) = made.client.payloads(events.ToolExecutionStart)
    assert start.shell_tool_info == events.ShellToolInfo(
        possible_paths=["out.txt"], has_write_file_redirection=True
    )
    assert results_for_model(made) == ["Permission denied and could not request permission from user"]
    assert not (tmp_path / "out.txt").exists()


async def test_arguments_that_violate_a_clients_schema_are_an_error_without_a_request_to_the_client(
    tasks: TaskGroup,
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}
    made = make_session(tasks, script=calls(("add", {"a": "x"})), tools=[tool("add", parameters=schema)])
    await made.ask("go")

    assert results_for_model(made) == [
        "Invalid arguments for `add`: a: 'x' is not of type 'integer'; arguments: 'b' is a required property"
    ]
    assert made.client.payloads(events.ExternalToolRequested) == []
    assert made.client.payloads(events.PermissionRequested) == []


async def test_a_command_that_starts_while_its_run_is_aborted_does_not_keep_the_session_from_being_idle(
    tasks: TaskGroup, tmp_path: Path
) -> None:
    async def start(ctx: ToolContext, _args: CountArgs) -> ToolOutcome:
        _ = made.session.abort("user_initiated")
        # Starting a process cannot be cancelled at any moment.
        outcomes: list[ToolOutcome] = []
        with anyio.CancelScope(shield=True):
            outcomes.append(await run_bash(ctx, BashArgs.model_validate({"command": "sleep 60", "mode": "async"})))
        return outcomes[0]

    made = make_session(
        tasks,
        script=calls(("start", {"count": 1})),
        builtin=[builtin("start", start)],
        settings=SessionSettings(cwd=tmp_path),
        approve_all=True,
    )
    await made.ask("go")
    await made.ask("again")

    assert [idle.aborted for idle in made.client.payloads(events.SessionIdle)] == [True, None]
    await made.session.close(0)
