"""The examples in docs/terminal.md work unchanged, and its tables are complete."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from jumpseat_terminal.commands.table import COMMANDS
from jumpseat_terminal.options import parse_chat
from jumpseat_terminal.rules import parse_rule
from tests.support.forked import executable
from tests.support.pages import code_blocks
from tests.support.toolchains import ROOT
from tests.terminal.terminal import Place

PAGE = "docs/terminal.md"
TEXT = (ROOT / PAGE).read_text()

SCRIPT = {
    "prompts": [
        {
            "when": "Write",
            "turns": [
                {
                    "text": "I will write it.",
                    "tool_calls": [{"name": "create", "arguments": {"path": "a.txt", "file_text": "a"}}],
                },
                {"text": "Done."},
            ],
        },
        {"turns": [{"text": "Hello!"}]},
    ]
}


def test_the_examples_of_run_print_the_documented_output(tmp_path: Path) -> None:
    place = Place(tmp_path, SCRIPT)
    env = place.env()
    env["PATH"] = f"{Path(executable()).parent}:{env['PATH']}"
    _, example = code_blocks(PAGE, "console")
    parts = re.split(r"^\$ (.*)\n", example, flags=re.MULTILINE)[1:]
    assert len(parts) == 12
    for command, output in zip(parts[::2], parts[1::2], strict=True):
        process = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            env=env,
            cwd=place.project,
            timeout=120,
            check=False,
        )
        assert process.stdout == output, (command, process.stderr)


def test_the_documented_result_has_every_field_of_a_real_one(tmp_path: Path) -> None:
    (example,) = code_blocks(PAGE, "json")
    actual = json.loads(Place(tmp_path, SCRIPT).run("-p", "x", "--output-format", "json").stdout)
    documented = json.loads(example)
    assert list(documented) == list(actual)
    assert list(documented["usage"]) == list(actual["usage"])


def test_chat_accepts_the_documented_arguments() -> None:
    lines = [line.split("#")[0].split() for line in code_blocks(PAGE, "console")[0].splitlines()]
    assert all(words[:3] == ["$", "jumpseat", "chat"] for words in lines)
    options = [parse_chat(words[3:]) for words in lines]
    assert (options[1].latest, options[2].resume, options[3].model) == (True, "", "openai/gpt-5")


def test_every_command_is_documented() -> None:
    documented = {
        name
        for row in re.findall(r"^\| (`/.*?`) \| ", TEXT, re.MULTILINE)
        for name in re.findall(r"/([\w-]+)", row)
    }
    assert documented == set(COMMANDS)


def test_the_documented_rules_are_valid() -> None:
    rows = TEXT.split("### Rules")[1].split("\n\n")[2].splitlines()[2:]
    rules = [rule for row in rows for rule in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(rules) == 15
    assert all(parse_rule(rule) for rule in rules)
