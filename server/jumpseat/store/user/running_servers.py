"""The servers of a home folder that serve health and metrics: ``running-servers.json``, for ``jumpseat status``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from jumpseat.agent.clock import utc_now
from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "running-servers.json"


class RunningServer(Struct, frozen=True):
    """A server that has not removed its entry; it may have been killed. ``started_at`` is an ISO 8601 timestamp."""

    pid: int
    metrics_port: int
    started_at: str


class RunningServers:
    """The file with an entry for each server, by its process id."""

    def __init__(self, home: Path) -> None:
        self._file = PrivateFile(home / FILE)

    def all(self) -> list[RunningServer]:
        """Return the servers in the order of their start."""
        servers = [_parse(pid, value) for pid, value in self._file.read().items()]
        return sorted((server for server in servers if server is not None), key=lambda server: server.started_at)

    def add_this(self, metrics_port: int) -> None:
        """Add this process.

        Raises:
            StoreError: the file cannot be written.
        """
        entry = {"metricsPort": metrics_port, "startedAt": utc_now()}
        self._change(lambda values: values.update({str(os.getpid()): entry}))

    def remove(self, pid: int) -> None:
        """Remove a server that has ended.

        Raises:
            StoreError: the file cannot be written.
        """
        self._change(lambda values: values.pop(str(pid), None))

    def _change(self, change: Callable[[dict[str, Any]], object]) -> None:
        self._file.change(change)


def _parse(pid: str, value: Any) -> RunningServer | None:
    if not isinstance(value, dict) or not pid.isdecimal():
        return None
    members = cast("dict[str, Any]", value)
    port, started_at = members.get("metricsPort"), members.get("startedAt")
    if not isinstance(port, int) or not isinstance(started_at, str):
        return None
    return RunningServer(int(pid), port, started_at)
