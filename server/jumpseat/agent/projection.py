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


class Projection:
    """The base of such state. Other events than those of :attr:`appliers` do not change it."""

    __slots__ = ()

    appliers: ClassVar[Appliers]

    def apply(self, payload: EventPayload | UnknownPayload) -> None:
        """Apply an event."""
        kind: type[Any] = type(payload)
        if (apply := self.appliers.get(kind)) is not None:
            apply(self, payload)
