"""Conversion of MCP tool results into outcomes for the model, the user and the log."""

from __future__ import annotations

from typing import Any, Final

import mcp.types as types

from jumpseat.agent.blocks import ImageBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.tools.tool import ToolOutcome
from jumpseat_protocol.events import BinaryResult
from jumpseat_protocol.json_values import MOST_DEPTH, is_too_deep

MAX_BINARY_CHARS: Final = 14 * 1024 * 1024
"""Limit on the images and other data of one result, in characters of base64."""

TOO_DEEP: Final = f"[structured result left out: it is nested more than {MOST_DEPTH} levels deep]"

_TRANSPORT_FIELDS: Final = {"result_type", "ttl_ms", "cache_scope"}

VISIBLE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images that models accept."""


def outcome_of(result: types.CallToolResult, tool: str) -> ToolOutcome:
    """Convert a tool result: join texts by newlines, give images to the model and other data to the user."""
    texts: list[str] = []
    outcome = ToolOutcome(text="")
    size = 0

    def fits(data: str, kind: str) -> bool:
        nonlocal size
        size += len(data)
        if size > MAX_BINARY_CHARS:
            texts.append(f"[{kind} left out: the result is too large]")
        return size <= MAX_BINARY_CHARS

    for block in result.content:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.ImageContent():
                if not fits(block.data, "image"):
                    pass
                elif block.mime_type in VISIBLE:
                    outcome.images.append(ImageBlock(block.data, block.mime_type, label=f"Image from tool {tool}"))
                else:
                    outcome.resources.append(_binary(block.data, block.mime_type, None))
                    texts.append(f"[image of type {block.mime_type}, shown to the user]")
            case types.AudioContent():
                if fits(block.data, "audio"):
                    outcome.resources.append(_binary(block.data, block.mime_type, None))
                    texts.append(f"[audio of type {block.mime_type}, given to the user]")
            case types.ResourceLink():
                about = f": {block.description}" if block.description else ""
                texts.append(f"[resource {block.name} at {block.uri}{about}]")
            case types.EmbeddedResource():
                resource = block.resource
                if isinstance(resource, types.TextResourceContents):
                    texts.append(resource.text)
                    continue
                kind = resource.mime_type or "application/octet-stream"
                if not fits(resource.blob, "resource"):
                    pass
                elif kind in VISIBLE:
                    outcome.images.append(ImageBlock(resource.blob, kind, label=str(resource.uri)))
                else:
                    outcome.resources.append(_binary(resource.blob, kind, str(resource.uri)))
                    texts.append(f"[resource {resource.uri} of type {kind}, given to the user]")
    if not result.content and result.structured_content is not None:
        too_deep = is_too_deep(result.structured_content)
        texts.append(TOO_DEEP if too_deep else canonical_json(result.structured_content))
    outcome.text = "\n".join(texts)
    if result.is_error:
        outcome.status = "failure"
        outcome.text = outcome.error = outcome.text or f"The tool `{tool}` failed without an error message."
    return outcome


def _binary(data: str, mime_type: str, description: str | None) -> BinaryResult:
    return BinaryResult(data=data, mime_type=mime_type, description=description, type="resource")


def as_json(value: Any) -> dict[str, Any]:
    """Return a model of the ``mcp`` package as JSON values, in its form on the wire.

    The fields about caching and about results that need input are left out: they are between us and the server.
    """
    return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_TRANSPORT_FIELDS)
