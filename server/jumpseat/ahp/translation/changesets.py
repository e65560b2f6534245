"""The changesets of a session: their addresses, and files and operations as clients see them. Pure.

There is one for all changes of a session and one for each turn. Contents are read from addresses of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from mimetypes import guess_type
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from jumpseat.ahp.states.values import JsonObject, present
from jumpseat.ahp.translation.attachments import uri_of
from jumpseat.ahp.translation.uris import session_uri
from jumpseat.sessions.changesets import FileInSet, Side, SideOfFile
from jumpseat.sessions.file_changes import Undone

UNDO: Final = "undo"
"""The id of the only operation."""
_WHOLE: Final = "session"
_TURN: Final = "turn/"
_CALL: Final = "call/"
_CONTENT: Final = "/content/"
_SIDES: Final[tuple[Side, ...]] = ("before", "after")
_NAMED: Final = 5
"""The files left alone that the answer to an undo names."""


class ContentAddress(NamedTuple):
    """The address of a content: the URI of a changeset, the path of the file, and the side of the change."""

    changeset: str
    path: Path
    side: Side


def catalogue(session_id: str) -> list[JsonObject]:
    """Return the changesets that a session has."""
    begin = f"{session_uri(session_id)}/changeset/"
    return [
        {"label": "Changes of the session", "uriTemplate": f"{begin}{_WHOLE}", "changeKind": "session"},
        {"label": "Changes of the turn", "uriTemplate": f"{begin}{_TURN}{{turnId}}", "changeKind": "turn"},
    ]


def call_uri(session_id: str, interaction_id: str, call_id: str) -> str:
    """Return the address of the changes of a tool call, which are shown in its result only."""
    call = "/".join(quote(name, safe="") for name in (interaction_id, call_id))
    return f"{session_uri(session_id)}/changeset/{_CALL}{call}"


def call_of(uri: str) -> tuple[str, str] | None:
    """Return the interaction and the call whose changes have an address; ``None`` if it is a changeset."""
    name = uri.partition("/changeset/")[2]
    if not name.startswith(_CALL):
        return None
    # Clients may have decoded the address: ids of calls have no slashes.
    interaction, _, call = name.removeprefix(_CALL).rpartition("/")
    return unquote(interaction), unquote(call)


def turn_of(uri: str, turns: Iterable[str]) -> str | None:
    """Return the turn whose changeset has a URI, ``None`` if that is the one of the whole session.

    Raises:
        ValueError: the URI is of neither.
    """
    name = uri.partition("/changeset/")[2]
    if name == _WHOLE:
        return None
    part = name.removeprefix(_TURN)
    if name.startswith(_TURN):
        # Clients may expand the template with or without escapes.
        for turn in turns:
            if part in (turn, quote(turn, safe="")):
                return turn
    raise ValueError(uri)


def content_address(uri: str) -> ContentAddress | None:
    """Return the content of a changeset that a URI stands for; ``None`` if it has another form."""
    if not uri.startswith("ahp-session:"):
        return None
    for side in _SIDES:
        changeset, found, path = uri.partition(f"{_CONTENT}{side}/")
        if found and path:
            # Some clients write the slashes of the path without escapes.
            return ContentAddress(changeset, Path(os.fsdecode(unquote_to_bytes(path))), side)
    return None


def shown_files(uri: str, files: Iterable[FileInSet]) -> list[JsonObject]:
    """Return the files of the changeset with a URI for clients."""
    return [{"id": uri_of(str(file.path)), "edit": edit_of(uri, file)} for file in files]


def edit_of(uri: str, file: FileInSet) -> JsonObject:
    """Return the change of a file for clients; ``uri`` is that of the changeset which has the contents."""
    diff = {"added": file.added, "removed": file.removed} if file.added or file.removed else None
    before, after = _side(uri, file, "before", file.before), _side(uri, file, "after", file.after)
    return present({"before": before, "after": after, "diff": diff})


def _side(uri: str, file: FileInSet, side: Side, found: SideOfFile | None) -> JsonObject | None:
    if found is None:
        return None
    content = {
        "uri": f"{uri}{_CONTENT}{side}/{quote(os.fsencode(file.path), safe='')}",
        "sizeHint": found.size,
        "contentType": guess_type(file.path.name)[0],
        # The same address has another content after the next change.
        "nonce": found.digest and found.digest[:32],
    }
    return {"uri": uri_of(str(file.path)), "content": present(content)}


def operations(*, status: str) -> list[JsonObject]:
    """Return what can be done with a changeset."""
    return [
        {
            "id": UNDO,
            "label": "Undo",
            "description": "Give the files the contents that they had before the changes",
            "scopes": ["changeset", "resource"],
            "confirmation": "Undo the changes? Files that have changed since stay as they are.",
            "status": status,
        }
    ]


def message_of(outcome: Undone) -> str:
    """Return the outcome of an undo for people."""
    if not outcome.undone and not outcome.left:
        return "There is nothing to undo."
    count = len(outcome.undone)
    done = f"{count} file{'' if count == 1 else 's'} undone." if count else "No file was undone."
    reasons = [f"{path} {reason}." for path, reason in list(outcome.left.items())[:_NAMED]]
    if (more := len(outcome.left) - _NAMED) > 0:
        reasons.append(f"{more} more were left alone, too.")
    return " ".join([done, *reasons])
