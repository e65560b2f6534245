"""Functions that all adapters share to read and write JSON and headers. Pure, no I/O."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from jumpseat.agent.blocks import (
    AssistantBlock,
    Citation,
    DocumentBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
    Message,
    SearchResult,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.errors import ProviderProtocolError
from jumpseat.parsing.json_text import MOST_CONTAINERS, TooManyContainersError, check_containers, read_json
from jumpseat_protocol.json_values import as_list as as_list
from jumpseat_protocol.json_values import as_object as as_object
from jumpseat_protocol.json_values import as_text as as_text
from jumpseat_protocol.json_values import parse_arguments as parse_arguments


def messages_before_tool_loop(messages: Sequence[Message]) -> int:
    """Return the number of messages up to the last one of the user; the current tool loop follows."""
    for position in range(len(messages), 0, -1):
        if isinstance(messages[position - 1], UserMessage):
            return position
    return 0


def parse_json(text: str | bytes) -> Any:
    """Parse the JSON of a provider's answer.

    Raises:
        ProviderProtocolError: ``text`` is not JSON, or has too many arrays and objects.
    """
    try:
        if len(text) > MOST_CONTAINERS:
            check_containers(text.encode("utf-8", "replace") if isinstance(text, str) else text)
        return orjson.loads(text)
    except TooManyContainersError as error:
        raise ProviderProtocolError(f"the provider's answer has {error.msg}") from None
    except orjson.JSONDecodeError:
        # The slow path: lone surrogates, and bytes that are not UTF-8.
        whole = text if isinstance(text, str) else text.decode("utf-8", "replace")
        try:
            return read_json(whole.encode("utf-8", "replace"))
        except orjson.JSONDecodeError:
            raise ProviderProtocolError(f"expected JSON from the provider, got {one_line(whole)!r}") from None


def parse_object(text: str | bytes) -> JsonObject:
    """Parse JSON that must be an object.

    Raises:
        ProviderProtocolError: ``text`` is not a JSON object.
    """
    value = parse_json(text)
    if not isinstance(value, dict):
        whole = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise ProviderProtocolError(f"expected a JSON object from the provider, got {one_line(whole)!r}")
    return cast("JsonObject", value)


def arguments_text(block: ToolUseBlock) -> str:
    """Return the arguments of a call as the JSON text of an object.

    Valid arguments are the model's own text, byte for byte: a changed text breaks prompt caches and recorded
    matches. Anything else is wrapped in an object, because servers that parse arguments would refuse the
    conversation from then on.
    """
    valid = block.arguments is not None and block.arguments_json.strip()
    return block.arguments_json if valid else dump_json(arguments_object(block))


def arguments_object(block: ToolUseBlock) -> JsonObject:
    """Return the arguments of a call for a wire that takes objects only.

    The model should see its own text even if that is not an object.
    """
    if block.arguments is not None:
        return block.arguments
    return {"invalid_json": block.arguments_json} if block.arguments_json.strip() else {}


def document_text(document: DocumentBlock) -> str | None:
    """Return a document as text, after its title; ``None`` if it is not text."""
    if not document.mime_type.startswith("text/"):
        return None
    text = decode_text(document.data)
    return f"{document.title}\n{text}" if document.title else text


def dump_json(value: Any) -> str:
    """Serialize ``value`` as compact JSON, with its keys in their order."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def one_line(text: str, limit: int = 16_000) -> str:
    """Join the lines of ``text`` and cut it at ``limit`` characters.

    For errors, which are cut to a readable length later, after secrets are masked.
    """
    line = " ".join(text[: limit * 2].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def as_count(value: Any) -> int:
    """Return ``value`` as an integer if it is a number, else zero."""
    return int(value) if isinstance(value, (int, float)) else 0


def as_flag(value: Any) -> bool | None:
    """Return ``value`` if it is a boolean, else ``None``."""
    return value if isinstance(value, bool) else None


def as_limit(value: Any) -> int | None:
    """Return ``value`` as an integer if it is a number of at least 1, else ``None``."""
    number = as_amount(value)
    return int(number) if number is not None and number >= 1 else None


def as_amount(value: Any) -> float | None:
    """Return ``value`` if it is a finite number of at least 0, else ``None``."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Merge headers; a later layer wins, and the case of names does not matter."""
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name.lower()] = (name, value)
    return dict(merged.values())


def data_url(data: str, mime_type: str) -> str:
    """Return a data URL for base64 ``data``."""
    return f"data:{mime_type};base64,{data}"


def decode_text(data: str) -> str:
    """Decode base64 ``data`` as UTF-8 text; return ``data`` itself if it is not base64."""
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return data


def hosted_as_text(block: AssistantBlock) -> str:
    """Describe a hosted tool call or result for a provider that did not run it; return "" for other blocks."""
    if isinstance(block, HostedToolUseBlock):
        return f"I used the {block.name} tool with {dump_json(block.input)}."
    if isinstance(block, HostedToolResultBlock):
        outcome = "failed" if block.is_error else "returned"
        return f"The tool {outcome}: {block.text}" if block.text else ""
    return ""


def search_rows(found: list[SearchResult]) -> str:
    """Return the pages of a search as text, one per line."""
    rows = [f"{page.title} ({page.url})" if page.title and page.url else page.title or page.url for page in found]
    return "\n".join(row for row in rows if row)


def cited_pages(citations: Iterable[Citation], *, quoted: bool = False) -> list[SearchResult]:
    """Return the pages that an answer cites, each once.

    With ``quoted``, the cited texts are from the pages and become snippets; with some providers, they are parts of
    the answer.
    """
    pages: dict[str, SearchResult] = {}
    for citation in citations:
        if citation.url:
            page = pages.setdefault(citation.url, SearchResult(citation.title, citation.url))
            page.title = page.title or citation.title
            if quoted:
                page.snippet = page.snippet or citation.cited_text
    return list(pages.values())


def nano_aiu(beside_usage: JsonObject) -> int:
    """Read the cost of a call of the Copilot API, in nano AI units; it stands beside ``usage`` on all its wires."""
    return as_count(as_object(beside_usage.get("copilot_usage")).get("total_nano_aiu"))
