"""Calls and text in an answer, however it is split into pieces."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from jumpseat.agent.model_calls.xml_tools.arguments import read_calls
from jumpseat.agent.model_calls.xml_tools.reader import MAX_BLOCK_CHARS, MAX_DEPTH, Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner

TOOLS: Final[dict[str, dict[str, Any]]] = {
    "editor": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["add", "update", "delete"]},
            "buffer": {"type": "integer"},
            "line": {"type": "integer"},
            "start_line": {"type": "integer"},
            "end_line": {"type": "integer"},
            "code": {"type": "string"},
        },
    },
    "run": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    "free": {"type": "object", "properties": {}},
}

Call = tuple[str, dict[str, Any] | None]


def scan(text: str, *cuts: int) -> tuple[str, list[Call], list[str]]:
    """Return the visible text, the calls, and the problems of malformed calls, with ``text`` split at ``cuts``."""
    scanner = Scanner(TOOLS)
    pieces: list[str | Block] = []
    for start, end in zip((0, *cuts), (*cuts, len(text)), strict=True):
        pieces += scanner.feed(text[start:end])
    pieces += scanner.finish()
    blocks = [piece for piece in pieces if isinstance(piece, Block)]
    written = [call for block in blocks for tool in block.tools for call in read_calls(tool)]
    problems = [call.problem for call in written if call.problem] + [
        block.problem for block in blocks if block.problem
    ]
    shown = "".join(piece for piece in pieces if isinstance(piece, str))
    return shown, [(call.name, call.arguments) for call in written], problems


def calls_in(text: str) -> list[Call]:
    shown, calls, problems = scan(text)
    assert (shown.strip(), problems) == ("", [])
    return calls


def visible_text(text: str) -> str:
    out, calls, problems = scan(text)
    assert (calls, problems) == ([], [])
    return out


def problem(text: str) -> str:
    _, _, (problem,) = scan(text)
    return problem


# --- the dialects of the older tools ------------------------------------------------------------------------------


def test_a_call_in_the_oldest_form_names_its_tool_in_an_element() -> None:
    text = "<tool><name>run</name><parameters><inputs><command>ls -l</command></inputs></parameters></tool>"
    assert calls_in(text) == calls_in(f"```xml\n{text}\n```") == [("run", {"command": "ls -l"})]


def test_the_type_and_elements_of_an_action_are_parameters() -> None:
    text = """
```xml
<tools>
  <tool name="editor">
    <action type="update">
      <start_line>2</start_line>
      <end_line>2</end_line>
      <buffer>7</buffer>
      <code><![CDATA[    return "a" < "b"]]></code>
    </action>
  </tool>
</tools>
```
"""
    expected = {"action": "update", "start_line": 2, "end_line": 2, "buffer": 7, "code": '    return "a" < "b"'}
    assert calls_in(text) == [("editor", expected)]


def test_each_action_of_a_tool_is_a_call_in_order() -> None:
    text = """<tools>
  <tool name="free">
    <action type="one"><data>1st</data></action>
    <action type="two"><data>2nd</data></action>
  </tool>
  <tool name="nothing"></tool>
  <tool name="run"><action><command>make test</command><flag>testing</flag></action></tool>
</tools>"""
    assert calls_in(text) == [
        ("free", {"data": "1st", "type": "one"}),
        ("free", {"data": "2nd", "type": "two"}),
        ("nothing", {}),
        ("run", {"command": "make test", "flag": "testing"}),
    ]


BLOCK: Final = '<tools><tool name="run"><command>ls</command></tool></tools>'
LONE: Final = '<tool name="run"><command>ls</command></tool>'


def test_an_answer_may_contain_several_blocks_and_text_around_them() -> None:
    text = f"```xml\n{BLOCK}\n```\n\nThen I wait: {BLOCK}\nAnd so on.\n```\n{BLOCK}\n```"
    out, calls, problems = scan(text)
    assert out == "Then I wait: And so on.\n"
    assert (calls, problems) == ([("run", {"command": "ls"})] * 3, [])


@pytest.mark.parametrize(
    "call",
    [
        f"```xml\n{BLOCK}\n```",
        f"~~~~\r\n<!-- a call -->\r\n{BLOCK}\r\n~~~~\r\n",
        f"```\n{LONE}\n{LONE}\n```\n\n```xml\n{BLOCK}\n```",
        f"```xml\n{BLOCK}\n<other/>\n```",
        f"\n    {BLOCK}",
        f"1. So:\n\n\t{BLOCK}\n\n\t{BLOCK}",
        LONE,
        f"{LONE}\n\n{LONE}",
    ],
)
def test_below_text_calls_that_may_be_examples_end_the_answer(call: str) -> None:
    example = f"A call looks like this:\n{call}\nNow you know."
    assert visible_text(example) == example
    assert scan(example, *range(1, len(example))) == scan(example)
    if "<other/>" not in call:
        _, calls, problems = scan(f"A call looks like this:\n{call}\n \n")
        assert (set(map(str, calls)), problems) == ({str(("run", {"command": "ls"}))}, [])


def test_an_example_does_not_keep_the_call_below_it_from_running() -> None:
    example = f"So:\n```xml\n{BLOCK}\n```\n"
    assert scan(f"{example}{BLOCK}") == (example, [("run", {"command": "ls"})], [])


def test_an_action_without_a_type_is_a_parameter() -> None:
    text = '<tool name="editor"><action>delete</action><buffer> 3 </buffer></tool>'
    assert calls_in(text) == [("editor", {"action": "delete", "buffer": 3})]


def test_parameters_may_be_attributes_or_json() -> None:
    assert calls_in('<tool name="run" id="7" command="ls"/>') == [("run", {"command": "ls"})]
    assert calls_in('<tool name="run"><arguments>{"command": "ls"}</arguments></tool>') == [
        ("run", {"command": "ls"})
    ]
    named = '<tool name="run"><parameter name="command">a &amp;&amp; b</parameter></tool>'
    assert calls_in(named) == [("run", {"command": "a && b"})]


# --- verbatim texts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("<![CDATA[ <b>&amp;</b>\n ]]>", " <b>&amp;</b>\n "),
        ("\n  <![CDATA[x]]>\n  ", "x"),
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"),
        ("<![CDATA[</command></tool></tools>]]>", "</command></tool></tools>"),
        ("a &lt; b &amp;&amp; c &#62; d &#x41; &copy; &#0; &#1114112;", "a < b && c > d A &copy; &#0; &#1114112;"),
        ("if a < b && c: # &amp;", "if a < b && c: # &amp;"),
        ("<div class='x'>hi</div>", "<div class='x'>hi</div>"),
        ("<command>inner</command> and <command/>", "<command>inner</command> and <command/>"),
        ("\n    indented\n  less\n  ", "    indented\n  less"),
        ("  ls  ", "ls"),
        ("<!-- not a comment -->", "<!-- not a comment -->"),
        ("```\ncode\n```", "```\ncode\n```"),
        ("", ""),
        ("é 🎉 日本", "é 🎉 日本"),
    ],
)
def test_a_text_is_taken_verbatim(written: str, meant: str) -> None:
    text = f'<tools><tool name="run"><command>{written}</command></tool></tools>'
    assert calls_in(text) == calls_in(f"```xml\n{text}\n```\n") == [("run", {"command": meant})]


@pytest.mark.parametrize(
    "text",
    [
        "if a < b:\n    <T> and </tools>",
        "<toolsmith/> <tools> hammer </tools> <tools/> <tools></tools>",
        "Write `<tools><tool name=\"run\">` to call a tool, or ``<tools> <tool name='run'/>``.",
        'Inline <tool name="run"/> is no call.',
        '<tool name="hammer"><weight>2</weight></tool>',
        '```html\n<tools><tool name="run"/></tools>\n```\n',
        "```xml\n<project>\n  <tool name='run'/>\n</project>\n```\n",
        '~~~python\n```xml\n<tools><tool name="run"/></tools>\n```\n~~~\n',
        "```\nplain\n```\nand ```xml``` inline",
        "```xml\n",
        "```xm",
        "``",
        "<tools>",
        "<tools>\n  <to",
        '<tool name="ru',
        "<tool><name>run",
        "<!-- <tools",
        "<tool_result>x</tool_result>",
        "1. a\n   ```sh\n   ls\n   ```\n2. b < c",
    ],
)
def test_text_that_only_looks_like_a_call_is_shown(text: str) -> None:
    assert visible_text(text) == text


def test_invented_results_are_dropped() -> None:
    text = '<tool name="run"><command>ls</command></tool>\n<tool_result name="run">\nfile\n</tool_result>\nDone!'
    assert calls_in(text) == [("run", {"command": "ls"})]


def test_other_code_in_the_same_code_block_remains_a_code_block() -> None:
    out, calls, _ = scan('```xml\n<tools><tool name="free"/></tools>\n<other/>\n```\nend')
    assert (out, calls) == ("```xml\n<other/>\n```\nend", [("free", {})])


# --- malformed blocks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('<tools>\n<tool name="run">\n<command>x</command>\n</tol>\n</tools>', "line 4: </tol> where </tool>"),
        ('<tools><tool name="run"></tool> oops </tools>', "line 1: there is text between the calls"),
        ('<tools><tool name="free"><a><b></a></b></tool></tools>', "</a> where </b> was expected"),
        ('<tools><tool name="free"/><other/></tools>', "<other> where <tool> was expected"),
        ('<tools><tool name="free"><!DOCTYPE x [<!ENTITY a "b">]></tool></tools>', "entity definitions"),
        ('<tools><tool name="free"><?php ?></tool></tools>', "declarations"),
        ('<tools><tool name="run"><command>a</command><command>b</command></tool></tools>', "is given 2 times"),
        ('<tools><tool name="run">ls</tool></tools>', "text where parameters were expected: 'ls'"),
        ('<tools><tool name="run">now <command>ls</command></tool></tools>', "text between the parameters: 'now'"),
        ("<tools><tool ><command>ls</command></tool></tools>", "does not name its tool"),
        ('<tools><tool name="run"><command>ls', "<command> is never closed"),
        ('<tools><tool name="run"><command><![CDATA[ls</command></tool></tools>', "<command> is never closed"),
        ('<tools><tool name="run"><command>ls</command>', "<tool> is never closed"),
        ('<tools><tool name="free"><a <b></tool></tools>', "a tag in <tool> is not well-formed"),
    ],
)
def test_the_problem_of_a_malformed_call_is_named(text: str, what: str) -> None:
    out, calls, problems = scan(text)
    assert out == ""
    assert [arguments for _, arguments in calls if arguments is not None] == []
    assert what in problems[0]


def test_the_answer_continues_after_a_malformed_block() -> None:
    bad = '<tools><tool name="free"></x></tool></tools>'
    assert scan(f"A.\n{bad}\nb")[0] == "A.\nb"
    assert scan('```xml\n<tools><tool name="free"></x>\n```\nb')[0] == "b"


def test_calls_before_one_that_is_cut_off_are_valid() -> None:
    text = '<tools><tool name="run"><command>a</command></tool>\n<tool name="run"><command>b'
    _, calls, problems = scan(text)
    assert (calls, problems) == ([("run", {"command": "a"})], ["<command> is never closed"])
    assert calls_in(text[: text.index("\n")]) == [("run", {"command": "a"})]
    assert calls_in(f"```xml\n{text[: text.index(chr(10))]}\n```\n") == [("run", {"command": "a"})]


@pytest.mark.thorough
def test_depth_number_and_size_are_limited_and_parsing_takes_linear_time() -> None:
    inside = '<tools><tool name="free">{}</tool></tools>'
    deep = MAX_DEPTH + 1
    assert "nested" in problem(inside.format("<a>" * deep + "</a>" * deep))
    assert "elements" in problem(inside.format("<a/>" * 30_000))
    assert "longer than" in problem(inside.format("<a>" + "x" * (MAX_BLOCK_CHARS + 10) + "</a>"))
    # Each of these would take minutes if text were scanned repeatedly.
    for tail in ("<a " * 60_000, "&lt;" * 60_000, "<" * 60_000, "<![CDATA[" * 20_000, "</" * 60_000):
        text = '<tools><tool name="run"><command>' + tail
        scanner = Scanner(TOOLS)
        for start in range(0, len(text), 7):
            scanner.feed(text[start : start + 7])
        (block,) = scanner.finish()
        assert isinstance(block, Block)
        assert block.problem


# --- pieces -------------------------------------------------------------------------------------------------------

PARTS: Final = (
    '<tools><tool name="run"><command>ls</command></tool></tools>',
    '<tools>\n <!-- c --> <tool name="editor"><action type="add"><code><![CDATA[a]]> b]]></code></action></tool>',
    '<tool><name>free</name><parameters><x a="1>2"><y/></x></parameters></tool>',
    '<tool name="hammer"/>',
    '<tools><tool name="run"><command>a <command a="b">c</command> < d</command></tool></tools>',
    '<tools><tool name="free"></oops></tool></tools>',
    "<tools>", "</tools>", "<tool ", "</tool>", "<command>", "</command>", "<tool_result>", "<", ">", "&lt;",
    "<!--", "-->", "<![CDATA[", "]]>", '"', "'", "`", "``", "```xml\n", "```\n", "```python\n", "~~~\n", "\n",
    "\n\n", "  ", "\n    ", "text", '<?xml version="1.0"?>', " name='run'", "é",
)  # fmt: skip


@pytest.mark.thorough
def test_the_result_does_not_depend_on_where_an_answer_is_split() -> None:
    choose = random.Random(7)
    for _ in range(3000):
        text = "".join(choose.choices(PARTS, k=choose.randint(1, 9)))
        whole = scan(text)
        assert scan(text, *range(1, len(text))) == whole, text
        for _ in range(3):
            cuts = sorted(choose.choices(range(len(text) + 1), k=3))
            assert scan(text, *cuts) == whole, (text, cuts)


def test_only_a_possible_beginning_of_a_call_is_held_back() -> None:
    def held(text: str) -> str:
        scanner = Scanner(TOOLS)
        out = "".join(piece for piece in scanner.feed(text) if isinstance(piece, str))
        return text[len(out) :]

    assert held("a < b and more") == ""
    assert held("a <") == "<"
    assert held("a <too") == "<too"
    assert held("a <toot") == ""
    assert held("a <tools>\n ") == "<tools>\n "
    assert held("a <tools>\n x") == ""
    assert held("x\n```xml\n") == "```xml\n"
    assert held("x\n```xml\n<p") == ""
    assert held("x\n```py") == ""
    assert held("x\n``") == "``"
    assert held("x ``") == ""
    assert held("```py\n```xml\n<tools><tool") == ""
    assert held('<tool name="hammer"') == '<tool name="hammer"'
    assert held('<tool name="hammer">') == ""
