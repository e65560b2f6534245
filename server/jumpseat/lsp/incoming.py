"""Messages of a language server as JSON objects, in bounded time.

A message may have sixteen mebibytes, and making objects of it would hold up the process for a second, in a thread
too. So only the outline of a large message is read, and what is too large inside of it is left out.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec.json
from msgspec import UNSET, Raw, Struct, UnsetType

from jumpseat.parsing.json_text import read_json, repair_surrogates

LARGEST_PART: Final = 2 << 20
"""Bytes of parameters, diagnostics or a result that are read."""

TOO_LARGE: Final = "the answer is too large"


class _Published(Struct):
    """The parameters of ``textDocument/publishDiagnostics``."""

    uri: str
    diagnostics: Raw
    version: int | None = None


class _Outline(Struct):
    """A message, its large members unread."""

    id: int | str | None = None
    method: str | None = None
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


def read_message(body: bytes, most_diagnostics: int) -> dict[str, Any]:
    """Return a message.

    Of more diagnostics than ``most_diagnostics``, and of any that are too large, one too many is left, so that they
    count as too many. An answer that is too large becomes an error.

    Raises:
        ValueError: the message is not an object in JSON, or is too large.
    """
    message = _whole(body) if len(body) <= LARGEST_PART else _outlined(body, most_diagnostics)
    for whole, part in (("params", "diagnostics"), ("result", "items")):
        members = message.get(whole)
        listed = cast("dict[str, Any]", members).get(part) if isinstance(members, dict) else None
        if isinstance(listed, list):
            del listed[most_diagnostics + 1 :]
    return message


def _whole(body: bytes) -> dict[str, Any]:
    data = read_json(body)
    if not isinstance(data, dict):
        raise ValueError("not an object")
    return cast("dict[str, Any]", data)


def _outlined(body: bytes, most_diagnostics: int) -> dict[str, Any]:
    try:
        try:
            outline = msgspec.json.decode(body, type=_Outline)
        except msgspec.DecodeError:
            outline = msgspec.json.decode(repair_surrogates(body), type=_Outline)
        if outline.method is None:
            # What remains of a large answer is its failure.
            error = UNSET if outline.error is UNSET else _part(outline.error)
            return {"id": outline.id, "error": error or {"code": -32603, "message": TOO_LARGE}}
        if outline.method != "textDocument/publishDiagnostics" or outline.params is UNSET:
            raise ValueError("too large")
        published = msgspec.json.decode(outline.params, type=_Published)
        diagnostics = _part(published.diagnostics)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if diagnostics is None:
        spot = {"line": 0, "character": 0}
        diagnostics = [{"range": {"start": spot, "end": spot}, "message": ""}] * (most_diagnostics + 1)
    params = {"uri": published.uri, "version": published.version, "diagnostics": diagnostics}
    return {"method": outline.method, "params": params}


def _part(text: Raw) -> Any:
    """Return a part of a message; ``None`` if it is too large."""
    data = bytes(text)
    return None if len(data) > LARGEST_PART else read_json(data)
