"""What tells one tool call from another: its main argument, and a summary of its result."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from jumpseat_transcript.words import line_count

SHELLS: Final = frozenset({"bash", "read_bash", "write_bash", "stop_bash"})

_MAIN_ARGUMENTS: Final = ("command", "path", "pattern", "query", "url", "question", "fact", "name", "shellId")


def main_argument(arguments: Any) -> str:
    """Return the most telling of a call's arguments, as it is."""
    if not isinstance(arguments, dict):
        return str(arguments) if arguments is not None else ""
    known = cast("dict[str, Any]", arguments)
    for name in _MAIN_ARGUMENTS:
        if isinstance(known.get(name), str):
            return known[name]
    return json.dumps(known, ensure_ascii=False) if known else ""


def count_changes(diff: str) -> str:
    """Count the lines that a unified diff of one file adds and removes: ``+2 -1``; empty without a diff."""
    lines = diff.split("\n")[2:]
    added, removed = sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)
    return f"+{added} -{removed}" if diff else ""


def split_shell_result(content: str) -> tuple[str, str, bool]:
    """Split a shell tool's result into output, status and failure. The status is the last line: ``<status>``."""
    output, _, status = content.rstrip().rpartition("\n")
    if not (status.startswith("<") and status.endswith(">")):
        return content, line_count(content), False
    code = status.removeprefix("<exited with exit code ").removesuffix(">")
    size = line_count(output) if output else "no output"
    if not code.lstrip("-").isdigit():
        return output, f"{status[1:-1].split(':')[0].split(' with')[0]}, {size}", False
    return output, size if code == "0" else f"exit code {code}, {size}", code != "0"


def without_last_number(content: str) -> str:
    """Return a file with numbered lines without the number behind its last line break, which has no line."""
    before, _, last = content.rpartition("\n")
    return before if before and last.rstrip(". ").isdecimal() and last.endswith(". ") else content
