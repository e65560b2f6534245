"""``resourceRead``, ``resourceList``, ``resourceResolve``, ``resourceRequest`` and ``completions``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from jumpseat.ahp.live import files
from jumpseat.ahp.live.door import Peer
from jumpseat.ahp.live.errors import PERMISSION_DENIED, AhpError
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.attachments import path_of, uri_of
from jumpseat.ahp.translation.uris import owner_of
from jumpseat.commands.completions import complete
from jumpseat.errors import SessionNotFoundError
from jumpseat_protocol.completions import CompletionItem


async def read(connection: Peer, params: JsonObject) -> JsonObject:
    """Return the content of a file in a folder of a session."""
    path, as_text = _path(params), params.get("encoding") != "base64"
    if (answer := await _elsewhere(connection, "resourceRead", path, params)) is not None:
        return answer
    folders = connection.door.folders(path, connection.rights)
    return await anyio.to_thread.run_sync(partial(files.read, path, folders, as_text=as_text))


async def list_entries(connection: Peer, params: JsonObject) -> JsonObject:
    """Return the entries of a folder of a session."""
    path = _path(params)
    if (answer := await _elsewhere(connection, "resourceList", path, params)) is not None:
        return answer
    folders = connection.door.folders(path, connection.rights)
    return {"entries": await anyio.to_thread.run_sync(files.list_entries, path, folders)}


async def resolve(connection: Peer, params: JsonObject) -> JsonObject:
    """Return whether there is a file or folder, and what is known about it."""
    path = _path(params)
    if (answer := await _elsewhere(connection, "resourceResolve", path, params)) is not None:
        return answer
    folders = connection.door.folders(path, connection.rights)
    return {"uri": uri_of(path), **await anyio.to_thread.run_sync(files.resolve, path, folders)}


async def request(connection: Peer, params: JsonObject) -> JsonObject:
    """Tell whether a file can be read. Nothing can be written.

    Raises:
        AhpError: the file cannot be read, or is to be written.
    """
    if params.get("write"):
        raise AhpError(PERMISSION_DENIED, "files are read only")
    await resolve(connection, params)
    return {}


async def completions(connection: Peer, params: JsonObject) -> JsonObject:
    """Return the slash commands and files that a user may mean.

    Raises:
        AhpError: a param has the wrong form.
        SessionNotFoundError: there is no such chat.
    """
    uri, text, offset = params.get("channel"), params.get("text"), params.get("offset")
    if not isinstance(uri, str) or not isinstance(text, str):
        raise AhpError.invalid("channel and text: expected strings")
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise AhpError.invalid("offset: expected an unsigned integer")
    mirror = await connection.door.open(uri, connection.rights)
    if mirror is None:
        answer = await connection.door.ask(owner_of(uri) or "", connection.rights, "completions", params)
        if answer is not None:
            return answer
        raise SessionNotFoundError(uri)
    found = await complete(mirror.context, mirror.session, text, offset)
    return {"items": [_item(one, mirror.session.settings.cwd) for one in found]}


async def _elsewhere(connection: Peer, method: str, path: str, params: JsonObject) -> JsonObject | None:
    """Return the answer of another host, if the path is in the folder of a session there."""
    door, rights = connection.door, connection.rights
    session_id = door.session_elsewhere(path, rights)
    return None if session_id is None else await door.ask(session_id, rights, method, params)


def _item(found: CompletionItem, cwd: Path) -> JsonObject:
    attachment: JsonObject = {"type": "simple", "label": found.label or found.insert_text}
    if found.kind == "document":
        path = cwd / found.insert_text.removeprefix("@")
        attachment = {"type": "resource", "label": path.name, "uri": uri_of(str(path))}
        attachment["displayKind"] = "file"
    item: JsonObject = {"insertText": found.insert_text, "attachment": attachment}
    if found.range_start is not None and found.range_end is not None:
        item |= {"rangeStart": found.range_start, "rangeEnd": found.range_end}
    return item


def _path(params: JsonObject) -> str:
    uri: Any = params.get("uri")
    path = path_of(uri) if isinstance(uri, str) else None
    if path is None:
        raise AhpError(PERMISSION_DENIED, "only file: URIs can be read")
    return path
