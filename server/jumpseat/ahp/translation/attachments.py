"""Convert the attachments of prompts between a session and AHP. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlsplit

from jumpseat.ahp.states.values import JsonObject
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.attachments import problem_of


def of_prompt(items: Sequence[dict[str, Any]] | None) -> list[JsonObject] | None:
    """Return the attachments of a prompt for clients, ``None`` if there are none."""
    return [_shown(item) for item in items] if items else None


def _shown(item: dict[str, Any]) -> JsonObject:
    label = str(item.get("displayName") or item.get("title") or item.get("url") or item.get("type"))
    match item.get("type"):
        case "blob" if isinstance(item.get("data"), str):
            content_type = str(item.get("mimeType") or "application/octet-stream")
            return {"type": "embeddedResource", "label": label, "data": item["data"], "contentType": content_type}
        case "file" | "directory" if isinstance(item.get("path"), str):
            label = str(item.get("displayName") or Path(item["path"]).name)
            return {"type": "resource", "label": label, "uri": uri_of(item["path"])}
        case _:
            return {"type": "simple", "label": label}


def to_prompt(message: JsonObject) -> tuple[str, list[dict[str, Any]]]:
    """Return the text and the attachments of a message from a client.

    Simple attachments have a text for the model, which is added to that of the message.

    Raises:
        InvalidRequestError: an attachment is invalid, or of a type that is not supported.
    """
    texts = [message["text"]]
    found: list[dict[str, Any]] = []
    items: list[JsonObject] = message.get("attachments") or []
    for place, item in enumerate(items):
        label = str(item.get("label") or "")
        match item.get("type"):
            case "simple":
                texts.append(str(item.get("modelRepresentation") or label))
            case "embeddedResource":
                blob = {"type": "blob", "data": item.get("data"), "mimeType": item.get("contentType")}
                found.append(blob | ({"displayName": label} if label else {}))
            case "resource" if (path := path_of(str(item.get("uri")))) is not None:
                kind = "directory" if path.endswith("/") else "file"
                found.append({"type": kind, "path": path, "displayName": label or Path(path).name})
            case "resource":
                texts.append(f"[{label}]({item.get('uri')})")
            case _:
                kind = str(item.get("type"))[:50]
                raise InvalidRequestError(f"attachments.{place}: type {kind!r} is not supported")
        if found and (problem := problem_of(found[-1])) is not None:
            raise InvalidRequestError(f"attachments.{place}.{problem}")
    return "\n".join(texts), found


def path_of(uri: str) -> str | None:
    """Return the path of a ``file:`` URI, or ``None`` for other URIs."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or not parts.path:
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    # Paths of Windows begin with a drive.
    return path[1:] if path[2:3] == ":" and os.name == "nt" else path


def uri_of(path: str) -> str:
    """Return the ``file:`` URI of an absolute path."""
    # Names of files may be bytes that are no text.
    quoted = quote(os.fsencode(path if path.startswith("/") else path.replace("\\", "/")))
    return f"file://{quoted}" if path.startswith("/") else f"file:///{quoted}"
