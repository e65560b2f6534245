"""The text a prompt becomes before it goes to the model.

A date, the prompt, a reminder, references to what is attached, a blank line between the parts. The recorded
conversations of the Copilot SDK's own test suite fix the blank lines, so the reminder goes out with every prompt. A
prompt is wrapped once and kept that way: re-dating old prompts would break the providers' prompt caches.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

REMINDER: Final = "<reminder>Answer the user's request; use tools only where they help.</reminder>"

READ_BYTES: Final = 1 << 20


def wrap_prompt(prompt: str, attachments: list[dict[str, Any]], now: str, cwd: Path) -> str:
    """The full text of a user message. ``now`` is an ISO 8601 time."""
    selections = [part for item in attachments if (part := _selection(item)) is not None]
    files = [part for item in attachments if (part := _tagged_file(item, cwd)) is not None]
    references = [part for item in attachments if (part := _github_reference(item)) is not None]
    parts = [*selections, f"<current_datetime>{now}</current_datetime>", prompt, REMINDER]
    if files:
        parts.append("<tagged_files>\n" + "\n".join(files) + "\n</tagged_files>")
    if references:
        parts.append("<github_references>\n" + "\n".join(references) + "\n</github_references>")
    return "\n\n".join(parts)


def _selection(item: dict[str, Any]) -> str | None:
    if item.get("type") != "selection":
        return None
    selection: Any = item.get("selection")
    start: Any = cast("dict[str, Any]", selection).get("start") if isinstance(selection, dict) else None
    line: Any = cast("dict[str, Any]", start).get("line") if isinstance(start, dict) else None
    where = f" (line {line + 1})" if isinstance(line, int) else ""
    name = Path(str(item.get("displayName") or item.get("filePath") or "")).name
    return (
        "<ide_selection>\nThe user has the following text selected in their IDE."
        " This may or may not be related to their request.\n"
        f"File: {name}{where}\n```\n{item.get('text', '')}\n```\n</ide_selection>"
    )


def _tagged_file(item: dict[str, Any], cwd: Path) -> str | None:
    if item.get("type") not in ("file", "directory") or not isinstance(item.get("path"), str):
        return None
    shown: str = item["path"]
    path = cwd / shown
    if item["type"] == "directory":
        try:
            return f"* {shown} ({sum(1 for _ in path.iterdir())} items)"
        except (OSError, ValueError):
            return f"* {shown}"
    try:
        lines = _count_lines(path)
    except (OSError, ValueError):
        return f"* {shown}"
    span: Any = item.get("lineRange")
    if isinstance(span, dict):
        start: Any = cast("dict[str, Any]", span).get("start")
        end: Any = cast("dict[str, Any]", span).get("end")
        which = f"line {start}" if start == end else f"lines {start}-{end}"
        return f"* {shown} ({which} of {lines} lines)"
    return f"* {shown} ({lines} lines)"


def _count_lines(path: Path) -> int:
    """How many lines a text file has, a last one without an end included.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or no path at all: a pipe must not be waited for.
    """
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file")
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            lines, last = lines + piece.count(b"\n"), piece
    return lines if last.endswith(b"\n") else lines + 1


def _github_reference(item: dict[str, Any]) -> str | None:
    if item.get("type") != "github_reference":
        return None
    kind, state = item.get("referenceType"), item.get("state")
    return f"#{item.get('number')} - {item.get('title')} [{kind}] [{state}] ({item.get('url')})"
