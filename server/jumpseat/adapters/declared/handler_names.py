"""The handlers of a declared adapter: their current and older names, and how they are found.

A handler may be in its group (``response.parse_chat``) or at the top level (``chat_output``), under its current or
an older name; both forms may be mixed. Each is looked up separately, so that replacing one affects no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import kind_of
from jumpseat_protocol.members import hint

Handler: TypeAlias = Callable[..., Any]

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "lifecycle": {
        "setup": (),
        "on_exit": (),
        "teardown": (),
    },
    "request": {
        "build_parameters": ("form_parameters",),
        "build_messages": ("form_messages",),
        "build_tools": ("form_tools",),
        "build_structured_output": ("form_structured_output",),
        "build_reasoning": ("form_reasoning",),
        "build_body": ("set_body",),
    },
    "response": {
        "parse_chat": ("chat_output",),
        "parse_inline": ("inline_output",),
        "parse_tokens": ("tokens",),
        "parse_meta": ("parse_message_meta", "parse_extra"),
    },
    "tools": {
        "format_calls": ("format_tool_calls",),
        "format_response": ("output_response", "output_tool_call"),
    },
}
"""Groups of current names, each with its older names; the first name found applies."""

RESOLVE: Final = "resolve"
"""A handler at the top level only, which runs once when the adapter is first used."""


def read_handlers(raw: Mapping[str, Any], where: str = "handlers") -> dict[str, Handler]:
    """Return the handlers in ``raw`` by their current names.

    Handlers in groups take precedence over those at the top level; ``None`` means no handler.

    Raises:
        ConfigError: a name is unknown, or a handler is not callable.
    """
    found: dict[str, Handler] = {}
    known = {RESOLVE}
    for group, names in GROUPS.items():
        inside: Any = raw.get(group, {})
        if not isinstance(inside, Mapping):
            raise ConfigError(f"{where}.{group}: expected a table of handlers")
        grouped = cast("Mapping[str, Any]", inside)
        for name, older in names.items():
            known |= {name, *older}
            candidates = [(f"{where}.{group}.{key}", grouped.get(key)) for key in (name, *older)]
            candidates += [(f"{where}.{key}", raw.get(key)) for key in (name, *older)]
            for place, value in candidates:
                if value is not None:
                    found[name] = _callable(place, value)
                    break
        unknown = sorted(set(grouped) - {key for name, older in names.items() for key in (name, *older)})
        if unknown:
            raise ConfigError(f"{where}.{group}.{unknown[0]}: unknown handler, {hint(unknown[0], names)}")
    if raw.get(RESOLVE) is not None:
        found[RESOLVE] = _callable(f"{where}.{RESOLVE}", raw[RESOLVE])
    unknown = sorted(set(raw) - known - set(GROUPS))
    if unknown:
        raise ConfigError(f"{where}.{unknown[0]}: unknown handler, {hint(unknown[0], known | set(GROUPS))}")
    return found


def _callable(place: str, value: Any) -> Handler:
    if not callable(value):
        raise ConfigError(f"{place}: expected a function, got {kind_of(value)}")
    return cast("Handler", value)
