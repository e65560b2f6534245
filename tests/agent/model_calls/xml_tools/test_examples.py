"""Examples of calls in answers about tools are no calls, and calls after a sentence are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pytest

from jumpseat.agent.model_calls.call_finder import find_calls
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.tools.builtin import builtin_tools

pytestmark = pytest.mark.thorough

TOOLS: Final = [tool.spec for tool in builtin_tools()]
SCHEMAS: Final = {tool.name: tool.parameters for tool in TOOLS}

LONE: Final = '<tool name="view"><path>a.txt</path></tool>'
OWN: Final = f"<tools>\n{LONE}\n</tools>"
ONE_LINE: Final = f"<tools>{LONE}</tools>"
OTHERS: Final = (
    '<tool_call>\n{"name": "view", "arguments": {"path": "a.txt"}}\n</tool_call>',
    "<tool_call>\n<function=view>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
    "<function=view>\n<parameter=path>\na.txt\n</parameter>\n</function>",
    '[TOOL_CALLS] [{"name": "view", "arguments": {"path": "a.txt"}}]',
    '[TOOL_CALLS]view[ARGS]{"path": "a.txt"}',
    '<|python_tag|>{"name": "view", "parameters": {"path": "a.txt"}}',
    "<tool_call>view\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n</tool_call>",
    '<|channel|>commentary to=functions.view <|constrain|>json<|message|>{"path": "a.txt"}<|call|>',
    '<function_calls>\n<invoke name="view"><parameter name="path">a.txt</parameter>\n</invoke>\n</function_calls>',
    "<view><path>a.txt</path></view>",
)
ALL: Final = (OWN, ONE_LINE, LONE, *OTHERS)


def taken(text: str, size: int | None = None) -> tuple[int, str]:
    """Return the number of calls that a model without native calls makes by an answer, and what is shown."""
    scanner = Scanner(SCHEMAS)
    step = size or len(text)
    pieces = [piece for at in range(0, len(text), step) for piece in scanner.feed(text[at : at + step])]
    pieces += scanner.finish()
    calls = sum(len(piece.tools) for piece in pieces if isinstance(piece, Block))
    shown = "".join(piece for piece in pieces if isinstance(piece, str))
    if calls:
        return calls, shown
    others, shown, _ = find_calls(shown, TOOLS)
    return len(others), shown


def indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


def examples(call: str) -> Iterator[str]:
    """Yield passages that show a call, and run none whatever follows."""
    for fence in ("```", "~~~", "````"):
        for label in ("", "xml", "html", "python", "text"):
            yield f"{fence}{label}\n{call}\n{fence}"
    yield f"````markdown\n```xml\n{call}\n```\n````"
    yield f"~~~\n```\n{call}\n```\n~~~"
    yield "\n" + indented(call, "    ")
    yield "\n" + indented(call, "\t")
    yield "\n    # a comment\n\n" + indented(call, "    ")
    yield indented(call, "> ")
    yield indented(f"```xml\n{call}\n```", "> ")
    yield "- Item:\n" + indented(f"```xml\n{call}\n```", "  ")
    yield "- ```xml\n" + indented(f"{call}\n```", "  ")
    yield "1. ```\n" + indented(f"{call}\n```", "   ")
    yield f"<!-- {call} -->"
    yield f"<!--\n\n{call}\n\n-->"
    if "\n" not in call:
        yield f"Write `{call}` for it."
        yield f"Write ``{call}`` for it."
        yield f"Write {call} for it."
        yield f"| view | {call} |"
    yield f"<pre>\n{call}\n</pre>"
    yield f"It is written as\n{call}\nwhich reads the file."


BEFORE: Final = (
    "To look at a file, one writes:\n",
    "# Calls\n\nFor example\n",
    "形式は次の通りです。\n",
    "Voici :\n\n",
)
AFTER: Final = ("\nThat would show it.", "\n\n# More\n\nSee `view`.", "\nand so on.\n", "\n\n以上です。")


@pytest.mark.parametrize("call", ALL)
def test_an_example_with_text_before_and_after_is_shown(call: str) -> None:
    for example in examples(call):
        for before, after in zip(BEFORE, AFTER, strict=True):
            text = f"{before}{example}{after}"
            for answer in (text, text.replace("\n", "\r\n")):
                assert taken(answer) == (0, answer), answer


@pytest.mark.parametrize("call", ALL)
def test_calls_in_quotations_and_comments_are_examples_at_the_end_of_an_answer_too(call: str) -> None:
    for example in (indented(call, "> "), f"<!--\n{call}\n-->"):
        assert taken(f"For example:\n{example}")[0] == 0


@pytest.mark.parametrize("call", ALL)
def test_a_call_after_a_sentence_is_run(call: str) -> None:
    for before in ("I look at the file.\n\n", "I look at the file:\n", "**Plan**\n\n1. I look\n2. I edit\n\n", ""):
        for after in ("", "\n", "\r\n\n  \n"):
            for answer in (before + call + after, (before + call + after).replace("\n", "\r\n")):
                assert taken(answer)[0] == 1, answer


@pytest.mark.parametrize("call", [OWN, ONE_LINE, LONE])
def test_a_call_in_a_fence_is_run_if_it_begins_or_ends_the_answer(call: str) -> None:
    for fence in ("```xml\n", "```\n", "~~~\n"):
        block = f"{fence}{call}\n{fence[:3]}"
        assert taken(f"I look.\n\n{block}") == taken(f"I look.\n\n{block}\n \n") == (1, "I look.\n\n")
        assert taken(f"I look:\n{fence}{call}") == (1, "I look:\n"), "the fence is never closed"
        assert taken(f"{block}\nI wait.") == (1, "I wait.")
        assert taken(f"I look twice:\n{block}\n\n{block}\n")[0] == 2
        assert taken(f"I look:\n{block}\n<tool_result>\nabc\n</tool_result>\nDone.")[0] == 1
        assert taken(f"I look:\n{block}<|im_end|>")[0] == 1
        assert taken(f"One:\n{block}\nTwo:\n{block}\n") == (1, f"One:\n{block}\nTwo:\n")


def test_tools_between_sentences_are_run_and_within_one_they_are_shown() -> None:
    assert taken(f"I look.\n{OWN}\nThen I wait.") == (1, "I look.\nThen I wait.")
    assert taken(f"I look:\n{OWN}\n\nThen I wait.") == (1, "I look:\nThen I wait.")
    for text in (f"Use {ONE_LINE} to look.", f"Use\n{OWN}\nto look.", f"For example:\n{LONE}\nShows a file."):
        assert taken(text) == (0, text)


# --- ordinary answers ---------------------------------------------------------------------------------------------

PROSE: Final = (
    "The server takes calls from the text of an answer.",
    "A model writes the name of the tool and its arguments:",
    "Install it with `pip install example`, then run `example --help`.",
    "## How it works",
    "- first, the request is sent\n- then, the answer is read",
    "1. Open the file.\n2. Change it.",
    "> I get the error below when I use the parser.",
    "| tool | what it does |\n|---|---|\n| `view` | shows a file |",
    "Closes #12. The cause is a missing `</tool_call>` in the template.",
    "Das Format sieht so aus:",
    "如下所示:",
    "See [the guide](https://example.com/tools) for more.",
)
OTHER_CODE: Final = ("```sh\nls -la\n```", "```python\nprint('<tools>')\n```", "    make test", "~~~\nplain\n~~~")


def ordinary_answers(count: int) -> Iterator[str]:
    """Yield answers about tools, such as of READMEs, tutorials and issues: they end in text."""
    choose = random.Random(36)
    shown = {call: [*examples(call)] for call in ALL}
    for _ in range(count):
        parts = [choose.choice(PROSE)]
        for _ in range(choose.randint(1, 4)):
            parts.append(choose.choice(shown[choose.choice(ALL)]))
            parts.append(choose.choice(PROSE))
            if choose.random() < 0.3:
                parts += [choose.choice(OTHER_CODE), choose.choice(PROSE)]
        text = "\n\n".join(parts)
        yield text if choose.random() < 0.8 else text.replace("\n", "\r\n")


def _check(answers: Iterator[str], *, by_character: bool) -> None:
    for answer in answers:
        assert taken(answer) == (0, answer)
        if by_character:
            assert taken(answer, 1) == (0, answer)


@pytest.mark.thorough
def test_ordinary_answers_about_tools_run_nothing() -> None:
    _check(ordinary_answers(200), by_character=True)


@pytest.mark.thorough
def test_ten_thousand_blocks_in_ordinary_answers_about_tools_run_nothing() -> None:
    _check(ordinary_answers(4_000), by_character=False)
