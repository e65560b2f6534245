"""What the functions of a declared tool can see, change and tell."""

# These tests call functions of tools with arbitrary signatures.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from anyio.abc import TaskGroup

from jumpseat_protocol import events
from jumpseat_protocol.permissions import ShellPermission
from tests.tools.declared.runs import completed, results, session_of

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]


async def test_setup_can_change_the_entries_of_cmds(tasks: TaskGroup, tmp_path: Path) -> None:
    def setup(self: Any) -> None:
        self.cmds[0].append("two")
        self.cmds[1]["cmd"][1] = "${text}"
        self.cmds.append(["echo", "four"])

    tool = {
        "cmds": [["echo", "${text}"], {"cmd": ["echo", "x"], "flag": "done", "cwd": "sub"}, 'echo "${text}"'],
        "parameters": {"text": {"type": "string"}},
        "handlers": {"setup": setup},
    }
    (tmp_path / "sub").mkdir()
    made = session_of(tasks, {"t": tool}, ("t", {"text": "one"}), cwd=tmp_path, approve_all=False)
    made.send("go")
    request = await made.client.wait_for(events.PermissionRequested)
    made.decide(request, {"kind": "approve-once"})
    await made.idle()

    # What a handler writes is not filled, because it may come from the model.
    shown = "echo one two && echo '${text}' && text=one; echo \"${text}\" && echo four"
    assert isinstance(request.permission_request, ShellPermission)
    assert request.permission_request.full_command_text == shown
    outputs = [part.split("\n")[1] for part in results(made)[0].split("\n\n")]
    assert outputs == ["one two", "${text}", "one", "four"]


async def test_output_functions_get_the_command_as_it_ran(tasks: TaskGroup) -> None:
    seen: list[Any] = []

    def success(self: Any, tools: Any, cmd: Any, stdout: Any) -> None:
        seen.append((cmd, stdout[-1], tools.stdout == stdout, list(tools.stderr)))

    def error(self: Any, stderr: Any, meta: Any) -> None:
        seen.append((meta["cmd"], stderr, meta["tools"].stderr == stderr))

    tool = {
        "cmds": [["echo", "${text}"], "echo no >&2; false"],
        "parameters": {"text": {"type": "string"}},
        "output": {"success": success, "error": error},
    }
    function = {"cmds": [lambda args: "x"], "output": {"success": success}}
    made = session_of(tasks, {"t": tool, "f": function}, ("t", {"text": "a b"}), ("f", {"n": 1}))
    await made.ask("go")

    assert seen == [
        (["echo", "a b"], ["a b"], True, []),
        (["sh", "-c", "echo no >&2; false"], [["no"]], True),
        ({"n": 1}, "x", True, []),
    ]


async def test_a_failed_command_reaches_the_model_where_the_error_function_adds_nothing(tasks: TaskGroup) -> None:
    def success(self: Any, tools: Any) -> None:
        tools.chat.add_tool_output(self, "The first has worked")

    tool = {
        "cmds": [["echo", "one"], "echo broken >&2; exit 3"],
        "output": {"success": success, "error": lambda self: None},
    }
    made = session_of(tasks, {"t": tool}, ("t", {}))
    await made.ask("go")

    report = "$ echo broken >&2; exit 3\n<stderr>\nbroken\n</stderr>\n<exited with exit code 3>"
    assert results(made) == [f"The first has worked\n\n{report}"]


@pytest.mark.parametrize("outcome", ["success", "error", "rejected", "cancelled"])
async def test_the_texts_of_output_functions_reach_model_and_user_in_every_outcome(
    tasks: TaskGroup, outcome: str
) -> None:
    def tell(self: Any, tools: Any) -> None:
        tools.chat.add_tool_output(self, "for the model", "for the user")

    status = "error" if outcome == "error" else "success"
    tool = {"cmds": [lambda args: {"status": status, "data": "data"}], "output": {outcome: tell}}
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    made.send("go")
    decision = {"rejected": "reject", "cancelled": "cancelled"}.get(outcome, "approve-once")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": decision})
    await made.idle()

    (completion,) = completed(made)
    assert completion.result == events.ToolResult(content="for the model", detailed_content="for the user")
    assert results(made) == ["for the model"]


async def test_a_text_for_a_cancelled_call_is_shown_to_the_user_too(tasks: TaskGroup) -> None:
    tool = {"cmds": [["true"]], "parameters": {"path": {"type": "string"}}, "output": {"cancelled": "Not ${path}"}}
    made = session_of(tasks, {"t": tool}, ("t", {"path": "a"}), ("t", {"path": "b"}), approve_all=False)
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "cancelled"})
    await made.idle()

    assert [completion.result for completion in completed(made)] == [
        events.ToolResult(content=text, detailed_content=text) for text in ("Not a", "Not b")
    ]


async def test_functions_can_notify_the_user_and_not_the_model(tasks: TaskGroup) -> None:
    def setup(self: Any, tools: Any) -> None:
        tools.notify("setup function called")

    async def work(self: Any, args: Any) -> str:
        self.notify("half done", 3)
        return "done"

    def on_exit(self: Any) -> None:
        self.chat.notify("on_exit function called", "error")

    made = session_of(tasks, {"t": {"cmds": [work], "handlers": {"setup": setup, "on_exit": on_exit}}}, ("t", {}))
    await made.ask("go")

    (info,) = made.client.payloads(events.SessionInfo)
    assert (info.info_type, info.message) == ("tool", "setup function called")
    warnings = [(one.warning_type, one.message) for one in made.client.payloads(events.SessionWarning)]
    assert warnings == [("tool", "half done"), ("tool", "on_exit function called")]
    assert results(made) == ["done"]


async def test_on_exit_of_a_cancelled_call_can_notify_the_user(tasks: TaskGroup) -> None:
    def on_exit(self: Any, tools: Any) -> None:
        tools.notify("cleaned up")

    tool = {"cmds": [lambda: "done"], "handlers": {"on_exit": on_exit}}
    made = session_of(tasks, {"t": tool}, ("t", {}), approve_all=False)
    made.send("go")
    made.decide(await made.client.wait_for(events.PermissionRequested), {"kind": "cancelled"})
    await made.idle()

    assert [info.message for info in made.client.payloads(events.SessionInfo)] == ["cleaned up"]


async def test_the_commands_can_be_reached_in_the_manner_of_2024_too(tasks: TaskGroup) -> None:
    def setup(self: Any) -> None:
        self.tool.cmds.append(["echo", self.tool.args["text"]])

    tool = {"parameters": {"text": {"type": "string"}}, "handlers": {"setup": setup}}
    made = session_of(tasks, {"t": tool}, ("t", {"text": "a b"}))
    await made.ask("go")

    assert results(made) == ["a b\n<exited with exit code 0>"]


async def test_functions_see_the_declaration_of_the_tool(tasks: TaskGroup) -> None:
    def look(self: Any, args: Any, output_handler: Any) -> None:
        output_handler(self.tool["description"] + self.tool["opts"]["mine"])

    tool = {"description": "Look", "cmds": [look]}
    made = session_of(tasks, {"t": {**tool, "opts": {"mine": "!"}}}, ("t", {}))
    await made.ask("go")

    assert results(made) == ["Look!"]


LENIENT = {
    "n": {"type": "integer"},
    "x": {"type": "number", "optional": True},
    "yes": {"type": ["boolean", "null"], "optional": True},
    "text": {"type": "string", "optional": True},
    "list": {"type": "array", "items": {"type": "integer"}, "optional": True},
}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"n": "21"}, {"n": 21}),
        (
            {"n": " -3 ", "x": "1.5", "yes": "true", "text": "7", "list": ["1", 2]},
            {"n": -3, "x": 1.5, "yes": True, "text": "7", "list": [1, 2]},
        ),
        ({"n": 1, "text": "1"}, {"n": 1, "text": "1"}),
    ],
)
async def test_numbers_in_strings_are_taken_as_numbers(
    tasks: TaskGroup, given: dict[str, Any], taken: dict[str, Any]
) -> None:
    seen: list[Any] = []
    made = session_of(tasks, {"t": {"parameters": LENIENT, "cmds": [seen.append]}}, ("t", given))
    await made.ask("go")

    assert seen == [taken]


async def test_other_invalid_arguments_are_refused_as_they_are(tasks: TaskGroup) -> None:
    made = session_of(tasks, {"t": {"parameters": LENIENT, "cmds": [lambda args: "ran"]}}, ("t", {"n": "21x"}))
    await made.ask("go")

    assert results(made) == ["Invalid arguments for `t`: /n: '21x' is not of type 'integer'"]
