"""Calls that models write as text, in the forms that they were trained on."""

from __future__ import annotations

from typing import Any, Final

import pytest

from jumpseat.agent.model_calls.written_calls import find_calls

TOOLS: Final[dict[str, Any]] = {
    "bash": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    },
    "view": {"type": "object", "properties": {"path": {"type": "string"}}},
}
LS: Final = '{"name": "bash", "arguments": {"command": "ls"}}'
BASH: Final = ("bash", {"command": "ls"})
VIEW: Final = ("view", {"path": "a"})


@pytest.mark.parametrize(
    "written",
    [
        f"<tool_call>{LS}</tool_call>",
        f"<tool_call>\n{LS}\n",
        f"<tool_calls>[{LS}]</tool_calls>",
        f"<function_call>{LS}</function_call>",
        f"<tools>\n{LS}\n</tools>",
        f"```json\n{LS}\n```",
        f"```\n{LS}\n```\n",
        f"```tool_call\n<tool_call>{LS}</tool_call>\n```",
        f"[TOOL_CALLS][{LS}]",
        '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
        '[TOOL_CALLS]bash{"command": "ls"}',
        f"<|python_tag|>{LS}",
        LS,
        '{"type": "function", "function": {"name": "Bash", "arguments": "{\\"command\\": \\"ls\\"}"}}',
        '{"name": "functions.bash", "parameters": {"command": "ls"}}',
        "<bash><command>ls</command></bash>",
        "<bash>\n  <command>\nls\n</command>\n</bash>",
        '<function=bash>{"command": "ls"}</function>',
        "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
        "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
    ],
)
@pytest.mark.parametrize("before", ["", "I list the files.\n"])
def test_a_call_in_a_known_form_is_found(written: str, before: str) -> None:
    if before and written.startswith("{"):
        # Without a wrapper, JSON in a text is an example.
        assert find_calls(before + written, TOOLS) == ([], before + written)
    else:
        assert find_calls(before + written, TOOLS) == ([BASH], before.strip())


@pytest.mark.parametrize(
    "written",
    [
        f'<tool_call>{LS}</tool_call>\n<tool_call>{{"name": "view", "arguments": {{"path": "a"}}}}</tool_call>',
        f'[TOOL_CALLS][{LS}, {{"name": "view", "arguments": {{"path": "a"}}}}]',
        f'{LS}\n{{"name": "view", "arguments": {{"path": "a"}}}}',
        '[TOOL_CALLS]bash[ARGS]{"command": "ls"}[TOOL_CALLS]view[ARGS]{"path": "a"}',
        "<bash><command>ls</command></bash>\n<view><path>a</path></view>",
    ],
)
def test_several_calls_keep_their_order(written: str) -> None:
    assert find_calls(written, TOOLS) == ([BASH, VIEW], "")


def test_the_schema_decides_about_the_types_of_elements() -> None:
    calls, _ = find_calls("<bash><command>echo '<b>' && ls</command><timeout>5</timeout></bash>", TOOLS)
    assert calls == [("bash", {"command": "echo '<b>' && ls", "timeout": 5})]


@pytest.mark.parametrize(
    "written",
    [
        "Use `<tool_call>` for calls.",
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "bash", "arguments": {"command": "l',
        '{"name": "bash", "description": "A shell"}',
        f"```json\n{LS}\n```\nis how a call looks.",
        f"```python\n{LS}\n```",
        f"```xml\nThe form: <tool_call>{LS}</tool_call>\n```",
        "<function=bash>\n<parameter=command>\nls",
        "<bash><command>ls",
        '{"a": 1}',
        "[1, 2]",
        "",
    ],
)
def test_an_example_or_an_incomplete_call_remains_text(written: str) -> None:
    assert find_calls(written, TOOLS) == ([], written)
