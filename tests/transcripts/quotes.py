"""Transcripts as quoted in the protocol's page: the kind of each message, and its essential fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from jumpseat_testkit.transcript import read

PAGE: Final = Path(__file__).parents[2] / "protocol" / "README.md"
KILLED: Final = "-- the server is killed, and another one is started"

_QUOTE: Final = re.compile(
    r"(\]\(\.\./tests/transcripts/(\w+)\.jsonl\)\n\n```text\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE
)

# Messages of every turn, which are quoted only in the plain turn.
_BESIDE: Final = {"pending_messages.modified", "assistant.usage", "session.usage_info", "session.lifecycle"}
_QUOTED_WHOLE: Final = "plain"
_OPENING: Final = {"connect", "ping", "session.create"}

_ANSWER_TO_A_QUESTION: Final = ("requestId", "result", "response")
_QUESTION: Final = ("question", "choices")
_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "abort": ("reason",),
    "assistant.idle": ("aborted",),
    "assistant.message": ("content", "toolRequests.toolCallId", "toolRequests.name"),
    "assistant.message_delta": ("deltaContent",),
    "assistant.reasoning": ("content",),
    "assistant.reasoning_delta": ("deltaContent",),
    "assistant.turn_end": ("turnId",),
    "assistant.turn_start": ("turnId",),
    "external_tool.completed": ("requestId",),
    "external_tool.requested": ("requestId", "toolCallId", "toolName", "arguments"),
    "model.call_failure": ("statusCode", "errorType"),
    "permission.completed": ("requestId", "result"),
    "permission.request": ("permissionRequest.kind", "permissionRequest.toolCallId"),
    "permission.requested": ("requestId", "permissionRequest.kind", "permissionRequest.toolCallId"),
    "result": ("messageId", "success", "answer", "wasFreeform", "result"),
    "session.error": ("errorType", "message"),
    "session.idle": ("aborted",),
    "session.lifecycle": ("type",),
    "session.permissions.handlePendingPermissionRequest": _ANSWER_TO_A_QUESTION,
    "session.resume": ("continuePendingWork", "sessionWasActive"),
    "session.send": ("prompt", "mode"),
    "session.tools.handlePendingToolCall": _ANSWER_TO_A_QUESTION,
    "tool.call": ("toolCallId", "toolName", "arguments"),
    "tool.execution_complete": ("toolCallId", "success", "result.content", "error"),
    "tool.execution_start": ("toolCallId", "toolName"),
    "user.message": ("content", "delivery"),
    "userInput.request": _QUESTION,
    "user_input.completed": ("answer",),
    "user_input.requested": _QUESTION,
}


def quoted(path: Path) -> str:
    """Return a transcript from its first prompt on, shortened."""
    beside: set[str] = set() if path.stem == _QUOTED_WHOLE else _BESIDE
    return "".join(
        f"{direction} {name}{_shown(name, values)}\n"
        for direction, name, values in _named(path)
        if name not in beside
    )


def quotes() -> dict[str, str]:
    """Return the quotes of the page, by the name of the transcript."""
    return {match[2]: match[3] for match in _QUOTE.finditer(PAGE.read_text(encoding="utf-8"))}


def write_quotes(folder: Path) -> None:
    """Update the quotes in the page."""
    text = PAGE.read_text(encoding="utf-8")
    text = _QUOTE.sub(lambda match: match[1] + quoted(folder / f"{match[2]}.jsonl") + match[4], text)
    PAGE.write_text(text, encoding="utf-8")


def _named(path: Path) -> Iterator[tuple[str, str, Any]]:
    """Return direction, name and content of each message; responses are named "result" or "error"."""
    opening: set[tuple[str, Any]] = set()
    prompted = False
    for direction, message in read(path):
        if direction == "--":
            yield "--", KILLED.removeprefix("-- "), None
        elif message.get("method") in _OPENING:
            opening.add(("<-", message["id"]))
        elif "method" not in message:
            part = "error" if "error" in message else "result"
            if (direction, message["id"]) not in opening:
                yield direction, part, message[part]
        elif message["method"] == "session.event":
            event = message["params"]["event"]
            if prompted:
                yield direction, event["type"], event["data"]
        else:
            prompted = prompted or message["method"] == "session.send"
            if prompted:
                yield direction, message["method"], message["params"]


def _shown(name: str, values: Any) -> str:
    shown = _picked(values, _TELLING[name]) if name in _TELLING and isinstance(values, dict) else None
    return f" {json.dumps(shown, ensure_ascii=False)}" if shown else ""


def _picked(value: Any, paths: Iterable[str]) -> Any:
    """Return the values at ``paths`` in an object, or in each object of an array; without paths, everything."""
    if isinstance(value, list):
        return [_picked(item, paths) for item in cast("list[Any]", value)]
    further: dict[str, list[str]] = {}
    for path in filter(None, paths):
        name, _, rest = path.partition(".")
        further.setdefault(name, []).append(rest)
    if not further:
        return value
    return {name: _picked(value[name], rest) for name, rest in further.items() if value.get(name) not in (None, [])}
