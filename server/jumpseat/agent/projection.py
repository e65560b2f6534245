"""State that is a function of the events of a session.

A projection names the types of events that change it, with a method for each. What restores a session from its log
decodes the events of these types alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

from jumpseat_protocol.events import EventPayload, Payload, UnknownPayload

Appliers: TypeAlias = Mapping[type[Payload], Callable[[Any, Any], None]]
"""Methods that apply events, by the type of the payload."""


Parts: TypeAlias = Mapping[type[Payload], tuple[tuple[str, Callable[[Any, Any], None]], ...]]
"""What changes the parts of a whole, by the type of the payload: names of parts, and methods of theirs."""


class Projection:
    """The base of such state. Other events than those of :attr:`appliers` do not change it."""

    __slots__ = ()

    appliers: ClassVar[Appliers]

    def apply(self, payload: EventPayload | UnknownPayload) -> None:
        """Apply an event."""
        kind: type[Any] = type(payload)
        if (apply := self.appliers.get(kind)) is not None:
            apply(self, payload)


def parts_changed(**parts: type[Projection]) -> Parts:
    """Return which of some parts change with each event. The order of the parts is kept."""
    kinds = dict.fromkeys(kind for part in parts.values() for kind in part.appliers)
    return {
        kind: tuple((name, part.appliers[kind]) for name, part in parts.items() if kind in part.appliers)
        for kind in kinds
    }
