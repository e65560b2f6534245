"""The examples in docs/terminal.md work unchanged, and its tables are complete."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from jumpseat_terminal.commands import COMMANDS
from jumpseat_terminal.options import parse_chat
from jumpseat_terminal.rules import parse_rule
from tests.support.forked import executable
from tests.terminal.terminal import Place

PAGE = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text()

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


def consoles() -> list[str]:
    """Return the console sessions in the page."""
    return re.findall(r"^```console\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_examples_of_run_print_the_output_in_the_page(tmp_path: Path) -> None:
    place = Place(tmp_path, SCRIPT)
    env = place.env()
    env["PATH"] = f"{Path(executable()).parent}:{env['PATH']}"
    _, example = consoles()
    parts = re.split(r"^\$ (.*)\n", example, flags=re.MULTILINE)[1:]
    assert len(parts) == 12
    for command, output in zip(parts[::2], parts[1::2], strict=True):
        process = subprocess.run(
            ["sh", "-c", command],
            capture_output=True,
            text=True,
            env=env,
            cwd=place.project,
            timeout=30,
            check=False,
        )
        assert process.stdout == output, (command, process.stderr)


def test_the_result_in_the_page_has_all_fields(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```json\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    actual = json.loads(Place(tmp_path, SCRIPT).run("-p", "x", "--output-format", "json").stdout)
    shown = json.loads(example)
    assert list(shown) == list(actual)
    assert list(shown["usage"]) == list(actual["usage"])


def test_chat_accepts_the_arguments_in_the_page() -> None:
    lines = [line.split("#")[0].split() for line in consoles()[0].splitlines()]
    assert all(words[:3] == ["$", "jumpseat", "chat"] for words in lines)
    found = [parse_chat(words[3:]) for words in lines]
    assert (found[1].latest, found[2].resume, found[3].model) == (True, "", "openai/gpt-5")


def test_the_page_names_every_command() -> None:
    named = {
        name for row in re.findall(r"^\| (`/.*?) \| ", PAGE, re.MULTILINE) for name in re.findall(r"/(\w+)", row)
    }
    # The row of /thinking contains an escaped bar, which the pattern does not match.
    assert named | {"thinking"} == set(COMMANDS)


def test_the_rules_in_the_page_are_valid() -> None:
    rows = PAGE.split("### Rules")[1].split("\n\n")[2].splitlines()[2:]
    rules = [rule for row in rows for rule in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(rules) == 15
    assert all(parse_rule(rule) for rule in rules)
