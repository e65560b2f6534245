"""Functions for the handlers of declared adapters, which may import them::

    from jumpseat.adapters import utilities as utils

    def build_messages(self, messages):
        return {"messages": utils.merge_messages(utils.merge_system_messages(messages))}

    def parse_chat(self, data):
        piece = json.loads(utils.clean_streamed_data(data))

Messages are those that handlers get and return: tables with ``role`` and ``content``. No function changes its
arguments, except :func:`add_header` and :func:`remove_header`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from jumpseat.agent.blocks import JsonObject

__all__ = [
    "add_header",
    "clean_streamed_data",
    "filter_out_messages",
    "map_roles",
    "merge_messages",
    "merge_system_messages",
    "model",
    "model_choice",
    "remove_header",
]


def clean_streamed_data(data: str | Mapping[str, Any]) -> str:
    """Return the JSON in a line of a stream (``data: {...}``), or the body of a whole answer (``{status, body}``).

    A line without an object is returned unchanged.
    """
    if isinstance(data, Mapping):
        return str(data.get("body") or "")
    start = data.find("{")
    return data[start:] if start > 0 else data


def merge_messages(
    messages: Iterable[Mapping[str, Any]],
    allowed_keys: Collection[str] = ("tools",),
    ignored_roles: Collection[str] = ("tool",),
) -> list[JsonObject]:
    """Merge neighbouring messages of one role, so that the roles alternate.

    Strings are joined by a blank line, lists concatenated. Merged messages have ``role``, ``content`` and the
    ``allowed_keys``, of which the last value stays. Messages of ``ignored_roles`` are never merged.
    """
    merged: list[JsonObject] = []
    for message in messages:
        extra = {key: message[key] for key in allowed_keys if message.get(key)}
        role, content = message.get("role"), message.get("content")
        last = merged[-1] if merged else None
        if last is None or last["role"] != role or role in ignored_roles:
            merged.append({"role": role, "content": content, **extra})
        else:
            last.update(content=_join(last["content"], content), **extra)
    return merged


def _join(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_list(first), *_as_list(second)]


def _as_list(content: Any) -> list[Any]:
    return list(cast("Sequence[Any]", content)) if isinstance(content, (list, tuple)) else [content]


def merge_system_messages(messages: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Join all system messages with spaces into one, and put it first."""
    kept = [dict(message) for message in messages]
    texts = [str(message.get("content") or "") for message in kept if message.get("role") == "system"]
    rest = [message for message in kept if message.get("role") != "system"]
    return [{"role": "system", "content": " ".join(texts)}, *rest] if texts else rest


def filter_out_messages(message: Mapping[str, Any], allowed_words: Collection[str]) -> JsonObject:
    """Return a message with the ``allowed_words`` of its keys only."""
    return {key: value for key, value in message.items() if key in allowed_words}


def map_roles(roles: Mapping[str, str], messages: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Return the messages with their roles replaced by those that ``roles`` gives for them."""
    return [
        {**message, "role": roles.get(str(role).lower(), role)} if (role := message.get("role")) else dict(message)
        for message in messages
    ]


def add_header(headers: dict[str, Any], key: str, value: str) -> None:
    """Add a value to a header that is a comma-separated list, unless the list contains it."""
    entries = _entries(headers.get(key))
    if value not in entries:
        headers[key] = ",".join([*entries, value])


def remove_header(headers: dict[str, Any], key: str, value: str) -> None:
    """Remove a value from a header that is a comma-separated list, and the header if nothing is left."""
    entries = [entry for entry in _entries(headers.get(key)) if entry != value]
    if entries:
        headers[key] = ",".join(entries)
    else:
        headers.pop(key, None)


def _entries(header: Any) -> list[str]:
    return [entry.strip() for entry in str(header).split(",")] if header else []


def model(adapter: Any) -> str:
    """Return the name of the adapter's model in use."""
    return str(adapter.model["name"])


def model_choice(adapter: Any) -> JsonObject:
    """Return the details of the adapter's model in use: ``{name, vendor, formatted_name, opts, meta}``."""
    return dict(adapter.model)
