"""The mistakes of small models, and how often the simulated one makes each.

``PUBLISHED`` rates were reported of real models and agents, those per run converted to steps. The others are
assumptions: the reports say that the mistake occurs, and not how often. The page about the lab names the sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any, Final

PUBLISHED: Final[Mapping[str, float]] = {
    # 46 of 201 edits of one agent failed. A model with 32 billion parameters had such an edit in 28 % of exercises.
    "old_text": 0.23,
    # 52 % of runs had an edit that broke the code. With nine edits in a run, that is 8 % of edits.
    "broken_edit": 0.08,
    # 2.4 % and 8.5 % of the runs of two models ended with nothing. With four steps in a run, 2 % of steps are 8 %.
    "empty_answer": 0.02,
}
ASSUMED: Final[Mapping[str, float]] = {
    "foreign_name": 0.08,
    "wrong_path": 0.05,
    "null_argument": 0.10,
    "malformed_json": 0.05,
    "written_call": 0.05,
    "repeated_call": 0.05,
}
RATES: Final[Mapping[str, float]] = {**PUBLISHED, **ASSUMED}

LOOKS_AGAIN: Final = 0.25
"""How often a model looks again after a refusal that shows it nothing; otherwise it repeats itself.

After a failed edit, 57 % of the next attempts together were successful; with three of them, that is 25 % of each.
"""

FOREIGN: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "view": ("Read", {"path": "file_path"}),
    "edit": ("Edit", {"path": "file_path", "old": "old_string", "new": "new_string"}),
    "create": ("Write", {"path": "file_path", "text": "content"}),
    "run": ("execute_command", {"command": "command"}),
}
"""The tools by which models know an agent that they were trained on, and the names of their arguments."""


def drawn(rng: Random, *slips: str) -> str:
    """Return the mistake to make, or an empty text: at most one of some."""
    place = rng.random()
    for slip in slips:
        place -= RATES[slip]
        if place < 0:
            return slip
    return ""


def misremember(text: str, rng: Random) -> str:
    """Return the text to replace as a model remembers it: with another indentation, other quotes, or numbers."""
    lines = text.splitlines(keepends=True)
    ways = [
        "".join(line.rstrip("\n") + "  \n" if line.endswith("\n") else line + "  " for line in lines),
        "".join(f"{number:>4}\t{line}" for number, line in enumerate(lines, 11)),
    ]
    if (margin := min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)) > 0:
        ways += ["".join(line[margin:] for line in lines)] * 2
    if re.search(r"(?m)^ {4}", text):
        ways.append(re.sub(r"(?m)^((?: {4})+)", lambda found: "\t" * (len(found[1]) // 4), text))
    if '"' in text:
        ways.append(re.sub(r'"([^"]*)"', r"“\1”", text))
    if len(lines) > 1:
        ways.append("\n".join(text.split("\n")).replace("\n", "\n\n", 1))
    return rng.choice(ways)


def break_code(text: str) -> str | None:
    """Leave out the last bracket; return ``None`` if there is none."""
    places = [place for place, char in enumerate(text) if char in ")]}"]
    return text[: places[-1]] + text[places[-1] + 1 :] if places else None


def malform(arguments: Mapping[str, Any], rng: Random) -> str:
    """Write arguments as no parser of JSON takes them, or as JSON in a string."""
    text = json.dumps(arguments)
    return rng.choice([f"{text[:-1]},}}", f"```json\n{text}\n```", json.dumps(text)])


def written(name: str, arguments: Mapping[str, Any], rng: Random) -> str:
    """Write a call as the text of an answer."""
    call = json.dumps({"name": name, "arguments": arguments})
    fields = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return rng.choice(
        [
            f"<tool_call>\n{call}\n</tool_call>",
            f"<tool_call>\n<function={name}>\n{fields}</function>\n</tool_call>",
            f"[TOOL_CALLS][{call}]",
        ]
    )
