"""The outcome of a command for people, from the results of ``bash`` and its companions. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from jumpseat.agent.interfaces import EXITED, RUNNING, STARTED
from jumpseat_protocol.events import ToolExecutionComplete

SHELL: Final = "bash"
"""The tool that runs commands."""
READERS: Final = frozenset(("read_bash", "write_bash", "stop_bash"))
"""The tools for a command that runs in the background; their argument ``shellId`` names it."""

_CODE: Final = re.compile("-?[0-9]{1,10}")


class Outcome(NamedTuple):
    """The output in a result, and the exit code of the command, or the id of the shell in which it runs on."""

    output: str
    exit_code: int | None = None
    shell_id: str | None = None


def outcome_of(end: ToolExecutionComplete) -> Outcome | None:
    """Return what the result of a call tells about a command; ``None`` if the command has not run."""
    if end.result is None:
        return None
    lines = end.result.content.split("\n")
    for place in range(len(lines) - 1, -1, -1):
        line, output = lines[place], "\n".join(lines[:place])
        if not line.startswith("<") or not line.endswith(">"):
            break
        if line.startswith(EXITED):
            found = _CODE.fullmatch(line[len(EXITED) : -1])
            return Outcome(output, int(found[0]) if found is not None else None)
        for begin in (RUNNING, STARTED):
            if line.startswith(begin):
                return Outcome(output, shell_id=line[len(begin) : -1].partition(";")[0])
    return Outcome(end.result.content) if end.success else None
