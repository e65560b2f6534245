"""A server with the language server of ``word_server.py``, and sessions that edit files for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.server import JsonObject, RunningServer, Wire, calls, scripted

WORD_SERVER: Final = Path(__file__).with_name("word_server.py")
DONE: Final[JsonObject] = {"text": "done"}
NOTED: Final = "Problems that this change may have brought:\n"


def word_config(project: Path, *args: str, **settings: Any) -> str:
    """Return the ``config.toml`` of a server that may use the language server for files ``*.words``.

    It waits long for diagnostics, so that results do not depend on the load of the machine.
    """
    lsp = {"defaults": False, "wait_s": 30.0, **settings}
    return "\n".join(
        [
            f"trusted_folders = [{json.dumps(str(project))}]",
            "[permissions]",
            "allow_unasked = true",
            "[lsp]",
            *(f"{name} = {json.dumps(value)}" for name, value in lsp.items()),
            "[lsp.words]",
            f"command = {json.dumps(sys.executable)}",
            f"args = {json.dumps([str(WORD_SERVER), *args])}",
            'extensions = {".words" = "words"}',
        ]
    )


def project_with(folder: Path, files: Mapping[str, str]) -> Path:
    """Create a project and return its folder."""
    project = folder / "project"
    project.mkdir()
    for name, text in files.items():
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return project


def edit(path: str, old: str, new: str, call_id: str = "call-1") -> JsonObject:
    """Return a turn that edits a file."""
    return calls("edit", call_id, path=path, old_str=old, new_str=new)


async def results(wire: Wire, project: Path, *turns: JsonObject) -> list[str]:
    """Run a prompt whose turns are scripted; return the results of its calls."""
    session = await wire.create(scripted(*turns, DONE), workingDirectory=str(project))
    return results_of(await wire.prompt(session))


def results_of(events: list[JsonObject]) -> list[str]:
    """Return the results of calls, as the model gets them."""
    completed = (event["data"] for event in events if event["type"] == "tool.execution_complete")
    return [data["result"]["content"] if "result" in data else data["error"]["message"] for data in completed]


def language_servers(server: RunningServer) -> list[int]:
    """Return the ids of the running language servers."""
    return [pid for pid in server.descendants() if is_word_server(pid)]


def is_word_server(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return len(words) > 1 and words[1].endswith(b"word_server.py")
