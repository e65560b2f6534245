"""Small pieces that every adapter needs at the edge to JSON and HTTP. Pure functions, no I/O."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import (
    AssistantBlock,
    HostedToolResultBlock,
    HostedToolUseBlock,
    JsonObject,
)
from jumpseat.errors import ProviderProtocolError

_LONE_SURROGATE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def parse_json(text: str | bytes) -> Any:
    """Parse an answer's JSON.

    Raises:
        ProviderProtocolError: it is not JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # Some servers cut an emoji in two and send each half as its own escape, which strict JSON refuses.
        whole = text if isinstance(text, str) else text.decode("utf-8", "replace")
        try:
            return orjson.loads(_LONE_SURROGATE.sub(r"\\ufffd", whole))
        except orjson.JSONDecodeError:
            raise ProviderProtocolError(f"expected JSON from the provider, got {one_line(whole)!r}") from None


def parse_object(text: str | bytes) -> JsonObject:
    """Parse JSON that must be an object.

    Raises:
        ProviderProtocolError: it is not.
    """
    value = parse_json(text)
    if not isinstance(value, dict):
        whole = text if isinstance(text, str) else text.decode("utf-8", "replace")
        raise ProviderProtocolError(f"expected a JSON object from the provider, got {one_line(whole)!r}")
    return cast("JsonObject", value)


def parse_arguments(text: str) -> JsonObject | None:
    """The arguments of a tool call as an object; no text at all means none, ``None`` means not a JSON object."""
    if not text.strip():
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


def dump_json(value: Any) -> str:
    """``value`` as compact JSON with its keys in the order they have."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def one_line(text: str, limit: int = 16_000) -> str:
    """``text`` on one line, which is cut at ``limit`` characters.

    For errors: they are cut to a readable length later, when the secrets in them are covered.
    """
    line = " ".join(text[: limit * 2].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def as_object(value: Any) -> JsonObject:
    """``value`` if it is an object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """``value`` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """``value`` if it is a number, else zero."""
    return int(value) if isinstance(value, (int, float)) else 0


def as_flag(value: Any) -> bool | None:
    """``value`` if it is a truth, else unknown."""
    return value if isinstance(value, bool) else None


def as_limit(value: Any) -> int | None:
    """``value`` if it is a number from 1 on, else unknown."""
    number = as_amount(value)
    return int(number) if number is not None and number >= 1 else None


def as_amount(value: Any) -> float | None:
    """``value`` if it is a number from 0 on, else unknown."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def merge_headers(*layers: Mapping[str, str]) -> dict[str, str]:
    """Headers of all layers; a later layer wins, whatever the case of its names."""
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name.lower()] = (name, value)
    return dict(merged.values())


def data_url(data: str, mime_type: str) -> str:
    """A data URL for base64 ``data``."""
    return f"data:{mime_type};base64,{data}"


def decode_text(data: str) -> str:
    """The text inside base64 ``data``; what is not base64 is taken as it is."""
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return data


def hosted_as_text(block: AssistantBlock) -> str:
    """What a provider-hosted tool did, in a sentence for a provider that did not run it; empty for other blocks."""
    if isinstance(block, HostedToolUseBlock):
        return f"I used the {block.name} tool with {dump_json(block.input)}."
    if isinstance(block, HostedToolResultBlock):
        outcome = "failed" if block.is_error else "returned"
        return f"The tool {outcome}: {block.text}" if block.text else ""
    return ""


def nano_aiu(beside_usage: JsonObject) -> int:
    """What a call of the Copilot API took of the plan: it is told beside ``usage``, on all its wires."""
    return as_count(as_object(beside_usage.get("copilot_usage")).get("total_nano_aiu"))
