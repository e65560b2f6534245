"""Values of the process that metrics show."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct


class Gauge(Struct, frozen=True):
    """A value that is read when metrics are collected."""

    name: str
    unit: str
    description: str
    read: Callable[[], float]
