"""Calls in the terms of other agents: translated where the meaning is certain, left alone elsewhere."""

from __future__ import annotations

import json
from typing import Any

from jumpseat.agent.blocks import AssistantMessage, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import Completed, ModelRequest, ToolSchema, ToolSpec
from jumpseat.agent.model_calls.arguments import repair_calls
from jumpseat.tools.builtin import builtin_tools
from jumpseat.tools.builtin.task import TOOL as TASK
from tests.support.cases import check_each

SPECS = [tool.spec for tool in builtin_tools()]


def translated(name: str, arguments: dict[str, Any], tools: list[ToolSpec] = SPECS) -> ToolUseBlock:
    call = ToolUseBlock("1", name, canonical_json(arguments), arguments)
    completed = Completed(AssistantMessage([call]), "tool_use")
    return repair_calls(completed, ModelRequest("m", "", [], tools=tools)).message.tool_uses()[0]


EDIT = {"path": "a", "old_str": "b", "new_str": "c"}
PATCH = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"
CALLS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "Claude": ("Edit", {"file_path": "a", "old_string": "b", "new_string": "c"}, "edit", EDIT),
    "opencode": ("edit", {"filePath": "a", "oldString": "b", "newString": "c"}, "edit", EDIT),
    "all places": (
        "edit",
        {"filePath": "a", "oldString": "b", "newString": "c", "replaceAll": True},
        "edit",
        {**EDIT, "replace_all": True},
    ),
    "several edits": (
        "MultiEdit",
        {
            "file_path": "a",
            "edits": [{"old_string": "b", "new_string": "c"}, {"old_string": "d", "new_string": "e"}],
        },
        "edit",
        {**EDIT, "edits": [{"old_str": "d", "new_str": "e"}]},
    ),
    "an editor": (
        "str_replace_editor",
        {"command": "str_replace", "path": "a", "old_str": "b", "new_str": "c"},
        "edit",
        EDIT,
    ),
    "an editor that views": (
        "str_replace_based_edit_tool",
        {"command": "view", "path": "a"},
        "view",
        {"path": "a"},
    ),
    "an editor that inserts": (
        "str_replace_editor",
        {"command": "insert", "path": "a", "insert_line": 2, "new_str": "c"},
        "edit",
        {"path": "a", "insert_line": 2, "new_str": "c", "old_str": ""},
    ),
    "a patch": ("apply-patch", {"patchText": PATCH}, "apply_patch", {"input": PATCH}),
    "a patch as words": ("shell", {"command": ["apply_patch", PATCH]}, "apply_patch", {"input": PATCH}),
    "a patch as an argument": ("bash", {"command": f"apply_patch '{PATCH}'"}, "apply_patch", {"input": PATCH}),
    "a patch in a command": (
        "bash",
        {"command": f"apply_patch <<'EOF'\n{PATCH}EOF\n"},
        "apply_patch",
        {"input": PATCH.rstrip()},
    ),
    "a patch in a shell": (
        "exec_command",
        {"cmd": ["bash", "-lc", f'applypatch << "PATCH"\n{PATCH}PATCH']},
        "apply_patch",
        {"input": PATCH.rstrip()},
    ),
    "a patch in another folder": (
        "bash",
        {"command": f"cd sub/x && apply_patch <<'EOF'\n{PATCH}EOF"},
        "apply_patch",
        {"input": PATCH.rstrip().replace("File: a", "File: sub/x/a")},
    ),
    "a patch with a working directory": (
        "shell",
        {"command": ["apply_patch", PATCH], "workdir": "/tmp/w"},
        "apply_patch",
        {"input": PATCH.replace("File: a", "File: /tmp/w/a")},
    ),
    "Write": ("Write", {"file_path": "a", "content": "b"}, "create", {"path": "a", "file_text": "b"}),
    "Read": ("Read", {"file_path": "a", "offset": 3, "limit": 2}, "view", {"path": "a", "view_range": [3, 4]}),
    "Gemini": ("run_shell_command", {"command": "ls"}, "bash", {"command": "ls"}),
    "codex": ("shell", {"command": ["bash", "-lc", "ls | wc"]}, "bash", {"command": "ls | wc"}),
    "codex with words": ("shell", {"command": ["ls", "a b"]}, "bash", {"command": "ls 'a b'"}),
    "noise": (
        "functions.Write<|channel|>json",
        {"filePath": "a", "content": ""},
        "create",
        {"path": "a", "file_text": ""},
    ),
    "lines from a first to a last": (
        "read_file",
        {"filePath": "a", "startLine": "3", "endLine": 9},
        "view",
        {"path": "a", "view_range": [3, 9]},
    ),
    "a command in another folder": (
        "run_shell_command",
        {"command": "ls; pwd", "directory": "a b"},
        "bash",
        {"command": "cd 'a b' && ls; pwd"},
    ),
    "a command behind": (
        "run_terminal_cmd",
        {"command": "ls", "is_background": True},
        "bash",
        {"command": "ls", "mode": "async"},
    ),
    "a search in some files, without case": (
        "grep_search",
        {"query": "a.b", "includePattern": "*.py", "isRegexp": False, "caseSensitive": False},
        "grep",
        {"pattern": "a\\.b", "glob": "*.py", "-i": True},
    ),
    "edits as JSON": (
        "MultiEdit",
        {"file_path": "a", "edits": '[{"old_string": "b", "new_string": "c"}]'},
        "edit",
        {**EDIT, "edits": []},
    ),
    "arguments in another one": (
        "Edit",
        {"input": {"filePath": "a", "oldString": "b", "newString": "c"}},
        "edit",
        EDIT,
    ),
    **{
        f"the folder of a command: {name} with {folder}": (
            name,
            {"command": "ls", folder: "a b"},
            "bash",
            {"command": "cd 'a b' && ls"},
        )
        for name in ("bash", "Bash", "functions.bash", "run_shell_command", "shell")
        for folder in ("cwd", "workdir", "dir_path", "directory", "workingDirectory", "folder", "path")
    },
    **{
        f"{name} of {' and '.join(lines)}": (
            name,
            {"path": "a", **lines},
            "view",
            {"path": "a", "view_range": meant},
        )
        for name in ("view", "View", "Read")
        for lines, meant in (
            ({"offset": 2, "limit": 3}, [2, 4]),
            ({"start_line": 2, "end_line": 4}, [2, 4]),
            ({"start_line_one_indexed": 2, "end_line_one_indexed_inclusive": 4}, [2, 4]),
            ({"limit": 3}, [1, 3]),
            ({"startLine": 2}, [2, -1]),
            ({"range": ["2", 4]}, [2, 4]),
        )
    },
    **{
        f"{name} with {key}": (name, {"pattern": "x", key: value}, name.lower(), {"pattern": "x", meant: value})
        for name, key, value, meant in (
            ("grep", "include", "*.py", "glob"),
            ("Grep", "filePattern", "*.py", "glob"),
            ("grep", "dir_path", "sub", "path"),
            ("grep", "cwd", "sub", "path"),
            ("grep", "ignore_case", True, "-i"),
            ("grep", "context_lines", 2, "-C"),
            ("grep", "max_results", 2, "head_limit"),
            ("glob", "dir", "sub", "path"),
            ("Glob", "directory", "sub", "path"),
        )
    },
    "a command of ours behind": (
        "bash",
        {"command": "ls", "run_in_background": True},
        "bash",
        {"command": "ls", "mode": "async"},
    ),
    "the output of a command": ("BashOutput", {"bash_id": "1"}, "read_bash", {"shellId": "1"}),
    "a namespace": ("functions.bash", {"command": "ls"}, "bash", {"command": "ls"}),
    "null for what is optional": (
        "Grep",
        {"query": "x", "path": None, "glob": None},
        "grep",
        {"pattern": "x"},
    ),
}


def test_a_command_that_does_more_than_to_apply_a_patch_stays_a_command() -> None:
    commands = {
        "another command": f"apply_patch <<'EOF'\n{PATCH}EOF\nrm -rf x",
        "two texts": f"apply_patch <<EOF\n{PATCH}EOF\napply_patch <<EOF\n{PATCH}EOF",
        "another folder after another command": f"make; cd x && apply_patch <<EOF\n{PATCH}EOF",
        "a pipe": f"apply_patch '{PATCH}' | tee x",
        "no patch": "apply_patch *** x",
    }

    def check(command: str) -> None:
        assert translated("bash", {"command": command}).name == "bash"

    check_each(commands, check)


def test_a_patch_in_place_of_json_is_the_argument() -> None:
    call = ToolUseBlock("1", "apply_patch", PATCH, None)
    cut_off = Completed(AssistantMessage([call]), "max_tokens")
    request = ModelRequest("m", "", [], tools=SPECS)

    (repaired,) = repair_calls(Completed(AssistantMessage([call]), "tool_use"), request).message.tool_uses()
    (refused,) = repair_calls(cut_off, request).message.tool_uses()
    assert (repaired.arguments, repaired.problem) == ({"input": PATCH}, None)
    assert refused.problem is not None


def test_calls_of_other_agents_are_translated_to_the_tools_that_are_offered() -> None:
    def check(case: tuple[str, dict[str, Any], str, dict[str, Any]]) -> None:
        name, arguments, meant, meant_arguments = case
        call = translated(name, arguments)
        assert (call.name, call.arguments) == (meant, meant_arguments)
        assert json.loads(call.arguments_json) == meant_arguments
        assert call.dialect is not None

    check_each(CALLS, check)


def test_a_relative_path_is_one_in_the_folder_of_the_call() -> None:
    cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("view", {"path": "a.py", "cwd": "/src"}, {"path": "/src/a.py"}),
        ("view", {"path": "a.py", "workdir": "src/"}, {"path": "src/a.py"}),
        ("view", {"path": "/a.py", "cwd": "/src"}, {"path": "/a.py"}),
        ("view", {"path": "~/a.py", "cwd": "/src"}, {"path": "~/a.py"}),
        ("Read", {"file_path": "a.py", "directory": "src"}, {"path": "src/a.py"}),
        ("edit", {**EDIT, "path": "../a", "working_directory": "src"}, {**EDIT, "path": "src/../a"}),
        ("create", {"path": "a", "file_text": "b", "cwd": "src"}, {"path": "src/a", "file_text": "b"}),
        ("grep", {"pattern": "x", "path": "a", "cwd": "src"}, {"pattern": "x", "path": "src/a"}),
        ("grep", {"pattern": "x", "cwd": "src"}, {"pattern": "x", "path": "src"}),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch", "cwd": "src"},
            {"input": "*** Begin Patch\n*** Delete File: src/a\n*** End Patch"},
        ),
    ]

    def check(case: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
        name, arguments, meant = case
        assert translated(name, arguments).arguments == meant

    check_each(dict(enumerate(cases)), check)


def test_calls_that_may_mean_something_else_are_left_alone() -> None:
    taken = [*SPECS, ToolSpec("shell", "", ToolSchema.of({"type": "object"}))]
    cases: dict[str, tuple[str, dict[str, Any], list[ToolSpec]]] = {
        "right": ("edit", EDIT, SPECS),
        "offered under this name": ("shell", {"command": ["ls"]}, taken),
        "incomplete": ("Edit2", {"file_path": "a", "old_string": "b"}, SPECS),
        "arguments of its own": (
            "bash",
            {"command": "ls", "cwd": "a"},
            [ToolSpec("bash", "", ToolSchema.of({"properties": {"command": {}, "cwd": {}}}))],
        ),
        "a range of its own": (
            "view",
            {"path": "a", "offset": 2, "limit": 1},
            [ToolSpec("view", "", ToolSchema.of({"properties": {"path": {}, "offset": {}, "limit": {}}}))],
        ),
        "any arguments": (
            "bash",
            {"command": "ls", "cwd": "a"},
            [ToolSpec("bash", "", ToolSchema.of({"properties": {"command": {}}, "additionalProperties": True}))],
        ),
        "values that fit no form": ("view", {"path": "a", "offset": "x", "limit": -1, "range": [1]}, SPECS),
        "a folder that is none": ("bash", {"command": "ls", "cwd": 1}, SPECS),
        "nothing like it": ("deploy", {"path": "a"}, SPECS),
        "not offered": (
            "Write",
            {"file_path": "a", "content": "b"},
            [spec for spec in SPECS if spec.name != "create"],
        ),
        "two arguments for one": ("edit", {"file": "a", "filename": "b", "old_str": "b", "new_str": "c"}, SPECS),
        "no such command of an editor": ("str_replace_editor", {"command": "undo_edit", "path": "a"}, SPECS),
    }

    def check(case: tuple[str, dict[str, Any], list[ToolSpec]]) -> None:
        name, arguments, tools = case
        call = translated(name, arguments, tools)
        assert (call.name, call.arguments, call.dialect) == (name, arguments, None)

    check_each(cases, check)


def test_arguments_are_taken_out_of_another_one_and_lists_out_of_text() -> None:
    assert translated("bash", {"arguments": '{"command": "ls"}'}).arguments == {"command": "ls"}
    assert translated("view", {"path": "a", "view_range": "[1, 5]"}).arguments == {
        "path": "a",
        "view_range": [1, 5],
    }
    schema = {"type": "object", "properties": {"input": {"type": "object"}, "text": {"type": "string"}}}
    own = [ToolSpec("run", "", ToolSchema.of(schema))]
    for arguments in ({"input": {"text": "a"}}, {"text": "[1]"}, {"input": "x"}):
        assert translated("run", arguments, own).arguments == arguments


def test_a_task_of_another_agent_gets_a_name() -> None:
    arguments = {"description": "Find the tests!", "prompt": "p", "subagent_type": "explore"}
    meant = {"description": "Find the tests!", "prompt": "p", "agent_type": "explore"}
    for tool in ("Task", "task", "Agent"):
        for name in ({}, {"name": "mine"}):
            call = translated(tool, {**arguments, **name}, [*SPECS, TASK.spec])
            assert (call.name, call.arguments) == ("task", {"name": "find-the-tests", **meant, **name})


def test_arguments_of_any_tool_may_be_spelled_differently() -> None:
    schema = {"type": "object", "properties": {"issueNumber": {"type": "integer"}}, "required": ["issueNumber"]}
    call = translated("github-get", {"issue_number": 3}, [ToolSpec("github-get", "", ToolSchema.of(schema))])
    assert call.arguments == {"issueNumber": 3}
