"""Values of the process that metrics show."""

from __future__ import annotations

from collections.abc import Callable

from jumpseat_protocol.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value that is read when metrics are collected."""

    name: str
    unit: str
    description: str
    read: Callable[[], float]
