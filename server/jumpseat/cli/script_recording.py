"""``jumpseat script --record``: scripts of stored sessions, and of clients that are talking to their servers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from jumpseat.adapters.wire import as_object
from jumpseat.cli.commands import print_text
from jumpseat.script.patterns import ScriptError
from jumpseat.script.protocols import PROTOCOLS, name_of
from jumpseat.script.record.live import Conversation, record_live
from jumpseat.script.record.recorder import record_conversation, record_session
from jumpseat.store.session.event_log import read_log
from jumpseat.store.session.options import FILE as OPTIONS
from jumpseat.store.session.sessions import SessionFolder, SessionStore


def record_stored(home: Path, text: str, file: Path, *, everything: bool) -> int:
    """Write the script of the session whose id begins with ``text``."""
    return anyio.run(_record_stored, home, text, file, everything)


async def _record_stored(home: Path, text: str, file: Path, everything: bool) -> int:
    # The store starts no task here, because nothing writes events.
    async with anyio.create_task_group() as tasks:
        folder = _find(SessionStore(home, tasks), text)
        events = list(read_log(folder.log.path).records)
        _write(file, record_session(events, _read_options(folder.path / OPTIONS), everything=everything))
        print_text(f"{file}: {len(events)} events of the session {folder.path.name}")
    return 0


def _find(store: SessionStore, text: str) -> SessionFolder:
    if text == "last":
        latest = store.last_id()
        found = [] if latest is None else [store.folder(latest)]
    else:
        found = [folder for folder in store.iter_stored() if folder.path.name.startswith(text)]
    if len(found) != 1:
        raise ScriptError(f"{len(found) or 'no'} sessions have an id that begins with {text!r}")
    return found[0]


def _read_options(path: Path) -> Mapping[str, Any]:
    try:
        return as_object(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def record_client(command: Sequence[str] | None, file: Path, *, everything: bool) -> int:
    """Serve the client on standard input and output by ``command``, and write the script of what they say."""

    def write(conversation: Conversation) -> None:
        sent = [message for direction, message in conversation.messages if direction == "->"]
        if sent:
            folders = _folders(sent)
            text = record_conversation(
                conversation.messages,
                name_of(sent),
                folders,
                everything=everything,
                about="Recorded from a client.",
            )
            _write(file, text)

    return anyio.run(record_live, command or PROTOCOLS["copilot"].command, write)


def _folders(sent: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the folders of the conversation by what stands in their places."""
    found = {os.environ["COPILOT_HOME"]: "${folder}/home"} if os.environ.get("COPILOT_HOME") else {}
    for message in sent:
        params = as_object(message.get("params"))
        for path in (params.get("workingDirectory"), params.get("cwd")):
            if isinstance(path, str) and len(path) > 1:
                found[path] = "${folder}"
    return {**found, str(Path.cwd()): "${folder}"}


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScriptError(f"cannot write {str(file)!r}: {error.strerror or error}") from None
