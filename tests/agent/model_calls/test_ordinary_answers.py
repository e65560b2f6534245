"""No ordinary answer is a call: 10,000 code blocks from the packages and the sources of this checkout."""

from __future__ import annotations

import random
import re
import sysconfig
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.model_calls.call_finder import find_calls
from jumpseat.agent.model_calls.xml_tools.reader import Block
from jumpseat.agent.model_calls.xml_tools.scanner import Scanner
from jumpseat.tools.builtin import builtin_tools

BLOCKS: Final = 10_000
FENCED: Final = re.compile(r"^[ \t]*```[^\n`]*\n.*?^[ \t]*```", re.DOTALL | re.MULTILINE)
BEFORE: Final = "Here it is:"
LABELS: Final = ("", "json", "xml", "python", "tool_code", "html", "toml")
TOOLS: Final[list[ToolSpec]] = [tool.spec for tool in builtin_tools()]

# What an answer about tools may contain: definitions, schemas, configuration and results, no call.
ABOUT_TOOLS: Final = [
    '{"type": "function", "function": {"name": "bash", "description": "Run", "parameters": {"type": "object"}}}',
    '{"name": "view", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}',
    '{"name": "bash", "version": "5.2", "arguments": []}',
    '{"tool": "grep", "options": {"color": true}}',
    '[{"name": "edit", "kind": "write"}, {"name": "view", "kind": "read"}]',
    '{"tools": {"bash": {"command": "ls"}}}',
    "<tools>\n  <tool>bash</tool>\n</tools>",
    "<task><target>build</target></task>",
    "<view>\n  <button>OK</button>\n</view>",
    "<tool_call> begins a call, and </tool_call> ends it.",
    "[TOOL_CALLS] is a token of Mistral.",
    "[view](docs/view.md), [edit](docs/edit.md)",
    "[grep(pattern), view(path)]",
    "<function=NAME><parameter=KEY>VALUE</parameter></function>",
    "<|channel|>final<|message|>Hello",
]


def answers() -> Iterator[str]:
    """Yield answers with and around blocks of code, those of this project first."""
    yield from ABOUT_TOOLS
    shuffled = random.Random(36)
    for block in islice(blocks(), BLOCKS):
        label = shuffled.choice(LABELS)
        yield block
        yield f"```{label}\n{block}\n```"
        yield f"{BEFORE}\n\n```{label}\n{block}\n```\n\nIt calls `view`."


def blocks() -> Iterator[str]:
    root = Path(__file__).parents[3]
    packages = Path(sysconfig.get_path("purelib"))
    # The pages about written calls contain calls.
    calls = {"xml-tools.md", "test_written_calls.py", "test_xml_tools.py", "test_model.py", "test_scanner.py"}
    texts = [*sorted(root.glob("docs/**/*.md")), *sorted(root.glob("*.md")), *sorted(packages.glob("*/METADATA"))]
    for path in texts:
        if path.name in calls:
            continue
        for fenced in FENCED.finditer(path.read_text("utf-8", "replace")):
            yield fenced[0].strip().partition("\n")[2].rpartition("\n")[0]
    for path in (*sorted(root.glob("tests/**/*.py")), *sorted(packages.glob("**/*.py"))):
        if path.name in calls:
            continue
        lines = path.read_text("utf-8", "replace").splitlines()
        for at in range(0, min(len(lines), 400), 20):
            yield "\n".join(lines[at : at + 20])


@pytest.mark.thorough
def test_ordinary_answers_contain_no_calls() -> None:
    schemas = {tool.name: tool.parameters for tool in TOOLS}
    found = [answer for answer in answers() if find_calls(answer, TOOLS)[0]]
    assert found == []
    examples = [answer for answer in answers() if answer.startswith(BEFORE)]
    assert len(examples) == BLOCKS
    assert [example for example in examples if written_in_xml(example, schemas)] == []


def written_in_xml(answer: str, schemas: Mapping[str, JsonObject]) -> bool:
    scanner = Scanner(schemas)
    return any(isinstance(piece, Block) for piece in [*scanner.feed(answer), *scanner.finish()])
