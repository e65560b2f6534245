"""Calls that models write as text, in the forms that they were trained on."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.model_calls.call_finder import MAX_HELD_CHARS, EmbeddedCalls, WholeAnswer, find_calls
from jumpseat.agent.model_calls.dialects import translate
from jumpseat.agent.model_calls.written_calls.offered import Offered
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

pytestmark = pytest.mark.thorough


def tool(name: str, properties: dict[str, Any], *required: str) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return ToolSpec(name, "", ToolSchema.of(schema))


TEXT: Final = {"type": "string"}
TOOLS: Final = [
    tool("bash", {"command": TEXT, "timeout": {"type": "integer"}}, "command"),
    tool("view", {"path": TEXT, "view_range": {"type": "array", "items": {"type": "integer"}}}, "path"),
    tool("list_bash", {}),
]
LS: Final = '{"name": "bash", "arguments": {"command": "ls"}}'
VIEW: Final = '{"name": "view", "arguments": {"path": "a"}}'
BASH_CALL: Final = WrittenCall("bash", {"command": "ls"})
VIEW_CALL: Final = WrittenCall("view", {"path": "a"})
ARGS: Final = '{"command": "ls"}'

# Forms that are certain to be calls, also after other text.
CERTAIN: Final = [
    f"<tool_call>{LS}</tool_call>",
    f"<tool_call>\n{LS}\n",
    f"<tool_call>\n{{{LS}}}\n</tool_call>".replace("{{", "{").replace("}}}", "}}"),
    f"<tool_call>\n{LS}\n</tool_call><|im_end|>",
    "<tool_call>{'name': 'bash', 'arguments': {'command': 'ls'}}</tool_call>",
    '<tool_call>{"name": "bash", "arguments": {"command": "ls",}}</tool_call>',
    '<tool_call>{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}</tool_call>',
    '<tool_call>{"name": "bash", "command": "ls"}</tool_call>',
    '<tool_call>{"function": "bash", "parameters": {"command": "ls"}}</tool_call>',
    f"<tool_calls>[{LS}]</tool_calls>",
    f"<tool_calls>\n<tool_call>{LS}</tool_call>\n</tool_calls>",
    f"<function_call>{LS}</function_call>",
    f"<tools>\n{LS}\n</tools>",
    f"<TOOLCALL>[{LS}]</TOOLCALL>",
    f"<|tool_call|>[{LS}]<|/tool_call|>",
    f"<|action_start|><|plugin|>\n{LS}<|action_end|>",
    f"<tool_call>{LS}</tool_call>\n<tool_response>\na\n</tool_response>\nDone.",
    f"```tool_call\n<tool_call>{LS}</tool_call>\n```",
    f"```json\n{LS}\n```",
    f"```\n{LS}\n```\n",
    '```tool_code\nprint(default_api.bash(command="ls"))\n```',
    f"[TOOL_CALLS][{LS}]",
    f"[TOOL_CALLS] [{LS}]</s>",
    f"[TOOL_CALLS]bash[ARGS]{ARGS}",
    f"[TOOL_CALLS]bash[CALL_ID]abc123def[ARGS]{ARGS}",
    f"[TOOL_CALLS]bash{ARGS}",
    f"<|python_tag|>{LS}",
    '<|python_tag|>{"type": "function", "name": "bash", "parameters": {"command": "ls"}}<|eom_id|>',
    '<|python_tag|>bash.call(command="ls")<|eom_id|>',
    '<|python_start|>[bash(command="ls")]<|python_end|>',
    "<bash><command>ls</command></bash>",
    "<bash>\n  <command>\nls\n</command>\n</bash>",
    f"<function=bash>{ARGS}</function>",
    "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
    "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>\n<function=bash>\n<parameter=command>ls</parameter>\n</tool_call>",
    "<seed:tool_call><function=bash><parameter=command>ls</parameter></function></seed:tool_call>",
    "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "<tool_call>bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>",
    f"<tool_call>bash\n```json\n{ARGS}\n```\n</tool_call>",
    '<function_calls>\n<invoke name="bash">\n<parameter name="command">ls</parameter></invoke>\n</function_calls>',
    '<minimax:tool_call><invoke name="bash"><parameter name="command">ls</parameter></invoke></minimax:tool_call>',
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" string="true">ls'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n" + ARGS + "\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
    f"{ARGS}<|tool_call_end|><|tool_calls_section_end|>",
    f"<|channel|>commentary to=functions.bash<|message|>{ARGS}<|call|>",
    f"<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{ARGS}<|call|>",
    f"<|start|>assistant<|channel|>commentary to=functions.bash code<|message|>{ARGS}",
    f"<|start|>assistant to=functions.bash<|channel|>commentary json<|message|>{ARGS}<|call|>",
    f"commentary to=functions.bash json{ARGS}",
    f"assistantcommentary to=functions.bash json{ARGS}",
]
# Forms that are calls as the whole answer only.
WHOLE: Final = [
    LS,
    f"{LS}\n</tool_call>",
    '{"type": "function", "function": {"name": "Bash", "arguments": "{\\"command\\": \\"ls\\"}"}}',
    '{"name": "functions.bash", "parameters": {"command": "ls"}}',
    '{"tool_calls": [{"id": "1", "function": {"name": "bash", "arguments": {"command": "ls"}}}]}',
    f"[{LS}]",
    '[bash(command="ls")]',
    "[bash(command='ls',)]",
    '<tools><tool name="bash"><command>ls</command></tool></tools>',
]


def in_pieces(text: str, size: int, *, anywhere: bool) -> tuple[list[WrittenCall], str]:
    finder = EmbeddedCalls(Offered(TOOLS)) if anywhere else WholeAnswer(Offered(TOOLS))
    pieces = [piece for at in range(0, len(text), size) for piece in finder.feed(text[at : at + size])]
    pieces += finder.finish()
    calls = [piece for piece in pieces if isinstance(piece, WrittenCall)]
    return calls, "".join(piece for piece in pieces if isinstance(piece, str))


@pytest.mark.parametrize("written", [*CERTAIN, *WHOLE])
def test_a_whole_answer_in_a_known_form_is_a_call(written: str) -> None:
    for size in (1, 7, len(written)):
        assert in_pieces(written, size, anywhere=False) == ([BASH_CALL], "")
    assert find_calls(f"\n{written}\n", TOOLS)[0] == [BASH_CALL]


@pytest.mark.parametrize("written", CERTAIN)
def test_a_certain_form_is_found_at_the_end_of_an_answer_and_ordinary_code_is_an_example(written: str) -> None:
    text = f"I list the files.\n{written}"
    is_example = written.startswith(("```json", "```\n"))
    for size in (1, 7, 1000):
        found = in_pieces(text, size, anywhere=True)
        assert found == (([], text) if is_example else ([BASH_CALL], "I list the files.\n"))


@pytest.mark.parametrize("written", CERTAIN)
def test_text_around_a_call_makes_it_an_example(written: str) -> None:
    if "<tool_response>" in written:
        return
    text = f"The form is:\n{written.replace('<|im_end|>', '').replace('</s>', '')}\nThat was an example."
    text = text.replace("<|eom_id|>", "").replace("<｜end▁of▁sentence｜>", "")
    for size in (1, 7, 1000):
        assert in_pieces(text, size, anywhere=True) == ([], text)
        assert in_pieces(text, size, anywhere=False) == ([], text)


@pytest.mark.parametrize("written", [*CERTAIN, *WHOLE])
def test_a_call_in_code_is_an_example(written: str) -> None:
    for text in (f"Write `{written}`", f"```python\n{written}\n```", f"Like this:\n~~~\n{written}\n~~~\n"):
        if "\n" in written and text.startswith("Write"):
            continue
        if "`" in written:
            continue
        for size in (1, 7, 1000):
            assert in_pieces(text, size, anywhere=True) == ([], text)


@pytest.mark.parametrize(
    "written",
    [
        f"<tool_call>{LS}</tool_call>\n<tool_call>{VIEW}</tool_call>",
        f"<tool_call>\n{LS}\n{VIEW}\n</tool_call>",
        f"[TOOL_CALLS][{LS}, {VIEW}]",
        f"{LS}\n{VIEW}",
        f"{LS}; {VIEW}",
        f"{LS}\n</tool_call>\n<tool_call>\n{VIEW}",
        f'[TOOL_CALLS]bash[ARGS]{ARGS}[TOOL_CALLS]view[ARGS]{{"path": "a"}}',
        "<bash><command>ls</command></bash>\n<view><path>a</path></view>",
        '[bash(command="ls"), view(path="a")]',
        "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n"
        "<function=view>\n<parameter=path>\na\n</parameter>\n</function>",
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>\n"
        "<tool_call>view\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
        f"{ARGS}<|tool_call_end|><|tool_call_begin|>functions.view:1<|tool_call_argument_begin|>"
        '{"path": "a"}<|tool_call_end|><|tool_calls_section_end|>',
        f"```json\n[{LS}, {VIEW}]\n```",
    ],
)
def test_several_calls_keep_their_order(written: str) -> None:
    for size in (1, 7, 1000):
        assert in_pieces(written, size, anywhere=False) == ([BASH_CALL, VIEW_CALL], "")


def test_the_schema_decides_about_the_types_of_texts() -> None:
    for written in (
        "<bash><command>echo '<b>' && ls</command><timeout>5</timeout></bash>",
        "<function=bash><parameter=command>echo '<b>' && ls</parameter><parameter=timeout>5</parameter></function>",
        "<tool_call>bash\n<arg_key>command</arg_key><arg_value>echo '<b>' && ls</arg_value>\n"
        "<arg_key>timeout</arg_key><arg_value>5</arg_value></tool_call>",
    ):
        assert find_calls(written, TOOLS)[0] == [WrittenCall("bash", {"command": "echo '<b>' && ls", "timeout": 5})]
    assert find_calls('[view(path="a", view_range=[1, 2])]', TOOLS)[0] == [
        WrittenCall("view", {"path": "a", "view_range": [1, 2]})
    ]


def test_calls_without_arguments_are_taken() -> None:
    for written in (
        '<tool_call>{"name": "list_bash", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "list_bash"}</tool_call>',
        "<tool_call>list_bash\n</tool_call>",
        "<function=list_bash>\n</function>",
        '{"name": "list_bash", "parameters": {}}',
        "[list_bash()]",
    ):
        assert find_calls(written, TOOLS)[0] == [WrittenCall("list_bash", {})], written


def test_a_call_in_the_terms_of_another_agent_is_taken_in_a_certain_form_only() -> None:
    offered = Offered(TOOLS, translate)
    shell = '{"name": "run_shell_command", "arguments": {"cmd": "ls"}}'
    whole = WholeAnswer(offered)
    assert [*whole.feed(f"<tool_call>{shell}</tool_call>"), *whole.finish()] == [BASH_CALL]
    whole = WholeAnswer(offered)
    assert [*whole.feed(shell), *whole.finish()] == [shell]


@pytest.mark.parametrize(
    "written",
    [
        "Use `<tool_call>` for calls.",
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        '{"name": "bash", "description": "A shell"}',
        '{"type": "function", "function": {"name": "bash", "description": "", "parameters": {"type": "object"}}}',
        '{"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}',
        '<tools>\n{"type": "function", "function": {"name": "bash", "description": "A", "parameters": {}}}\n',
        '{"name": "bash", "version": "1.0.0", "dependencies": {}}',
        '{"name": "bash", "arguments": ["a"]}',
        f"```json\n{LS}\n```\nis how a call looks.",
        f"```python\n{LS}\n```",
        f"```xml\nThe form: <tool_call>{LS}</tool_call>\n```",
        "[bash](https://www.gnu.org/software/bash/)",
        "[bash(1)]",
        "<bash><command>ls</command><b>1</b></bash>",
        "<view><a>1</a></view>",
        '{"a": 1}',
        "[1, 2]",
        "[]",
        "{}",
        "",
    ],
)
def test_an_example_or_other_data_remains_text(written: str) -> None:
    assert find_calls(written, TOOLS)[:2] == ([], written)
    for size in (1, 7, 1000):
        assert in_pieces(written, size, anywhere=True) == ([], written)
        assert in_pieces(written, size, anywhere=False) == ([], written)


@pytest.mark.parametrize(
    "written",
    [
        '<tool_call>{"name": "bash", "arguments": {"command": "l',
        '<tool_call>{"name": "bash", "arguments": {"command": "a "quoted" word"}}</tool_call>',
        '[TOOL_CALLS]bash[ARGS]{"command": "l',
        '[TOOL_CALLS][{"name": "bash", "arguments": {"command": }}]',
        "<function=bash>\n<parameter=command>\nls",
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls",
        '<|channel|>commentary to=functions.bash<|message|>{"command": ls}<|call|>',
        '<invoke name="bash"><parameter name="command">ls',
        '{"name": "bash", "arguments": {"command": "l',
        '<|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command" "ls"}<|tool_call_end|>',
    ],
)
def test_a_malformed_call_has_a_problem(written: str) -> None:
    for size in (1, 7, 1000):
        calls, rest = in_pieces(written, size, anywhere=False)
        assert [(call.name, call.arguments, rest) for call in calls] == [("bash", None, "")]
        assert calls[0].problem


def test_text_is_shown_as_soon_as_it_cannot_become_a_call() -> None:
    for text, shown in (
        ("<t", ""),
        ("<tool_call>", ""),
        ("<table>", "<table>"),
        ('{"na', ""),
        ('{"name": "ba', ""),
        ('{"name": "bar', '{"name": "bar'),
        ('{"version', '{"version'),
        ("[b", ""),
        ("[bash]", "[bash]"),
        ("[link", "[link"),
        ("```js", ""),
        ("```python\n", "```python\n"),
        ('```json\n{"a": 1', '```json\n{"a": 1'),
    ):
        finder = WholeAnswer(Offered(TOOLS))
        assert "".join(str(piece) for mark in text for piece in finder.feed(mark)) == shown, text
    embedded = EmbeddedCalls(Offered(TOOLS))
    assert embedded.feed("Text <b>bold</b> [1] and\n<tool") == ["Text <b>bold</b> [1] and\n"]


def test_a_held_text_is_bounded() -> None:
    text = f'<tool_call>{{"name": "bash", "arguments": {{"command": "{"x" * 2 * MAX_HELD_CHARS}'
    for finder in (WholeAnswer(Offered(TOOLS)), EmbeddedCalls(Offered(TOOLS))):
        shown = [piece for at in range(0, len(text), 4096) for piece in finder.feed(text[at : at + 4096])]
        assert "".join(map(str, shown)) == text


def test_values_of_json_are_those_that_the_wire_takes() -> None:
    (call,), *_ = find_calls(
        '<tool_call>{"name": "bash", "arguments": {"command": "a", "timeout": 1' + "0" * 30 + "}}", TOOLS
    )
    assert json.dumps(call.arguments) == '{"command": "a", "timeout": 1e+30}'
