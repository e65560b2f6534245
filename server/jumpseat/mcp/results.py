"""What a server's answer to a call means for the model, the user and the log."""

from __future__ import annotations

from typing import Any, Final

import mcp.types as types

from jumpseat.agent.blocks import ImageBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.tools.tool import ToolOutcome
from jumpseat_protocol.events import BinaryResult

MAX_BINARY_CHARS: Final = 14 * 1024 * 1024
"""Images and other data, as base64: what all of one result may weigh."""

VISIBLE: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images that models can look at."""


def outcome_of(result: types.CallToolResult, tool: str) -> ToolOutcome:
    """Texts are joined line by line; images reach the model, other data the user."""
    texts: list[str] = []
    outcome = ToolOutcome(text="")
    weight = 0

    def weighs(data: str, what: str) -> bool:
        nonlocal weight
        weight += len(data)
        if weight > MAX_BINARY_CHARS:
            texts.append(f"[{what} left out: the result is too large]")
        return weight <= MAX_BINARY_CHARS

    for block in result.content:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.ImageContent():
                if not weighs(block.data, "image"):
                    pass
                elif block.mimeType in VISIBLE:
                    outcome.images.append(ImageBlock(block.data, block.mimeType, label=f"Image from tool {tool}"))
                else:
                    outcome.resources.append(_binary(block.data, block.mimeType, None))
                    texts.append(f"[image of type {block.mimeType}, shown to the user]")
            case types.AudioContent():
                if weighs(block.data, "audio"):
                    outcome.resources.append(_binary(block.data, block.mimeType, None))
                    texts.append(f"[audio of type {block.mimeType}, given to the user]")
            case types.ResourceLink():
                about = f": {block.description}" if block.description else ""
                texts.append(f"[resource {block.name} at {block.uri}{about}]")
            case types.EmbeddedResource():
                resource = block.resource
                if isinstance(resource, types.TextResourceContents):
                    texts.append(resource.text)
                    continue
                kind = resource.mimeType or "application/octet-stream"
                if not weighs(resource.blob, "resource"):
                    pass
                elif kind in VISIBLE:
                    outcome.images.append(ImageBlock(resource.blob, kind, label=str(resource.uri)))
                else:
                    outcome.resources.append(_binary(resource.blob, kind, str(resource.uri)))
                    texts.append(f"[resource {resource.uri} of type {kind}, given to the user]")
    if not result.content and result.structuredContent is not None:
        texts.append(canonical_json(result.structuredContent))
    outcome.text = "\n".join(texts)
    if result.isError:
        outcome.status = "failure"
        outcome.text = outcome.error = outcome.text or f"The tool `{tool}` failed and did not say why."
    return outcome


def _binary(data: str, mime_type: str, description: str | None) -> BinaryResult:
    return BinaryResult(data=data, mime_type=mime_type, description=description, type="resource")


def as_json(value: Any) -> dict[str, Any]:
    """A value of the package in the form it has on the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
