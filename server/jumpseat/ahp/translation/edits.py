"""Show the files that a tool call has changed in its result. Pure.

The diff in the result names the files and has the numbers of lines. Their contents are read from the session's log
of changes, by the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.ahp.states.values import Action, JsonObject, changed
from jumpseat.ahp.translation.changesets import call_uri, edit_of
from jumpseat.ahp.translation.events import Translator
from jumpseat.ahp.translation.turns import Call
from jumpseat.sessions.changesets import FileInSet, SideOfFile
from jumpseat_protocol import events

TOOLS: Final = frozenset({"apply_patch", "create", "edit"})
"""The tools whose detailed result is the diff of what they have changed."""
MOST: Final = 50
"""The files of one call that are shown."""
_HUNK: Final = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_NOTHING: Final = "/dev/null"


def with_edits(session_id: str, event: events.Event, translator: Translator) -> Iterator[Action]:
    """Return the actions for an event, of which the end of a call shows the files that the call has changed."""
    end, turn, diff, uri = event.payload, translator.turn, "", ""
    if isinstance(end, events.ToolExecutionComplete) and turn is not None:
        diff = _diff_of(end, turn.running(end.tool_call_id))
        uri = call_uri(session_id, end.interaction_id or turn.id, end.tool_call_id)
    for action in translator.actions(event):
        if diff and action["type"] == "chat/toolCallComplete":
            blocks = [{"type": "fileEdit", **edit_of(uri, file)} for file in _files(diff)]
            result: JsonObject = action["result"]
            content = [*blocks, *(result.get("content") or ())]
            action = {**action, "result": changed(result, content=content)}
        yield action


def _diff_of(end: events.ToolExecutionComplete, call: Call | None) -> str:
    if call is None or call.tool not in TOOLS or not end.success or end.result is None:
        return ""
    return end.result.detailed_content or ""


class _Diff(Struct):
    """A file of a diff, and the lines of its hunk that are still to come."""

    old: str
    new: str = ""
    added: int = 0
    removed: int = 0
    old_left: int = 0
    new_left: int = 0

    def take(self, line: str) -> bool:
        """Count a line of a hunk; return ``False`` if the hunk has ended."""
        if line.startswith("\\"):
            return True
        if (self.old_left, self.new_left) == (0, 0):
            return False
        self.added += line.startswith("+")
        self.removed += line.startswith("-")
        self.old_left -= not line.startswith("+")
        self.new_left -= not line.startswith("-")
        return True

    def file(self) -> FileInSet:
        unknown = SideOfFile(None, None)
        before, after = (None if name == _NOTHING else unknown for name in (self.old, self.new))
        name = (self.old if after is None else self.new)[len("a/") :]
        # Labels lack the slash at the beginning; paths of Windows have none.
        path = name if name[1:2] == ":" else f"/{name}"
        return FileInSet(Path(path), before, after, self.added, self.removed)


def _files(diff: str) -> list[FileInSet]:
    found: list[_Diff] = []
    for line in diff.split("\n"):
        if found and found[-1].new and found[-1].take(line):
            continue
        if line.startswith("--- ") and len(found) < MOST:
            found.append(_Diff(line.removeprefix("--- ")))
        elif line.startswith("+++ ") and found and not found[-1].new:
            found[-1].new = line.removeprefix("+++ ")
        elif found and (hunk := _HUNK.match(line)) is not None:
            old, new = hunk.groups(default="1")
            found[-1].old_left, found[-1].new_left = int(old), int(new)
    return [one.file() for one in found if one.new]
