"""``jumpseat script --record --session``: scripts of stored sessions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from jumpseat.adapters.wire import as_object
from jumpseat.cli.commands import print_text
from jumpseat.store.session.event_log import read_log
from jumpseat.store.session.options import FILE as OPTIONS
from jumpseat.store.session.sessions import SessionFolder, SessionStore
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.record.client import write_file
from jumpseat_testkit.record.recorder import record_session


def record_stored(home: Path, text: str, file: Path, *, everything: bool) -> int:
    """Write the script of the session whose id begins with ``text``."""
    return anyio.run(_record_stored, home, text, file, everything)


async def _record_stored(home: Path, text: str, file: Path, everything: bool) -> int:
    # The store starts no task here, because nothing writes events.
    async with anyio.create_task_group() as tasks:
        folder = _find(SessionStore(home, tasks), text)
        events = list(read_log(folder.log.path).records)
        write_file(file, record_session(events, _read_options(folder.path / OPTIONS), everything=everything))
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
