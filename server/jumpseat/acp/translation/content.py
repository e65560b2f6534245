"""Convert prompts between ACP's content blocks and a session's text with attachments. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from jumpseat.acp.translation.params import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.attachments import problem_of


def prompt_of(blocks: list[ContentBlock]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text and the attachments of a prompt.

    Links to files become attachments, which the model reads if it needs them. Embedded files become text, because
    they may differ from the files on the disk.

    Raises:
        InvalidRequestError: a block is audio, or an attachment is invalid.
    """
    texts: list[str] = []
    attachments: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        match block:
            case TextBlock():
                texts.append(block.text)
            case ImageBlock():
                attachments.append(_blob(block.data, block.mime_type, _name_of(block.uri) if block.uri else None))
            case ResourceLinkBlock():
                path = path_of(block.uri)
                if path is None:
                    texts.append(f"[{block.title or block.name or block.uri}]({block.uri})")
                else:
                    kind = "directory" if block.uri.endswith("/") else "file"
                    name = block.name or _name_of(block.uri)
                    attachments.append({"type": kind, "path": path, "displayName": name})
            case ResourceBlock():
                _embed(block.resource, texts, attachments)
            case AudioBlock():
                raise InvalidRequestError(f"prompt.{place}: audio is not supported")
        if attachments and (problem := problem_of(attachments[-1])) is not None:
            raise InvalidRequestError(f"prompt.{place}.{problem}")
    return "\n".join(texts), attachments


def text_of(blocks: list[ContentBlock]) -> str:
    """Return the text of content blocks, without attachments."""
    return prompt_of(blocks)[0]


def blocks_of(text: str, attachments: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Return a prompt as content blocks, for editors that show the history."""
    blocks: list[dict[str, Any]] = [text_block(text)] if text else []
    for item in attachments or ():
        match item.get("type"):
            case "blob" if isinstance(item.get("data"), str) and str(item.get("mimeType")).startswith("image/"):
                blocks.append({"type": "image", "data": item["data"], "mimeType": item["mimeType"]})
            case "file" | "directory" if isinstance(item.get("path"), str):
                name = str(item.get("displayName") or Path(item["path"]).name)
                blocks.append({"type": "resource_link", "uri": uri_of(item["path"]), "name": name})
            case _:
                name = item.get("displayName") or item.get("title") or item.get("url") or item.get("type")
                blocks.append(text_block(f"[{name}]"))
    return blocks


def text_block(text: str) -> dict[str, Any]:
    """Return a content block of text."""
    return {"type": "text", "text": text}


def path_of(uri: str) -> str | None:
    """Return the path of a ``file:`` URI or of a plain absolute path, or ``None`` for other URIs."""
    if uri.startswith("/"):
        return uri
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" and parts.path else None


def uri_of(path: str) -> str:
    """Return the ``file:`` URI of an absolute path; a relative path is only quoted."""
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


def _embed(resource: Resource, texts: list[str], attachments: list[dict[str, Any]]) -> None:
    if resource.text is not None:
        path = path_of(resource.uri) or resource.uri
        texts.append(f'\n<file path="{path}">\n{resource.text}\n</file>')
    elif resource.blob is not None:
        kind = resource.mime_type or "application/octet-stream"
        attachments.append(_blob(resource.blob, kind, _name_of(resource.uri)))


def _blob(data: str, mime_type: str, name: str | None) -> dict[str, Any]:
    blob = {"type": "blob", "data": data, "mimeType": mime_type}
    return {**blob, "displayName": name} if name else blob


def _name_of(uri: str) -> str:
    return unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2] or uri
