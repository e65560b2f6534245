"""The state of the server: what metrics, ``jumpseat status`` and readiness checks show."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec.structs import asdict

from jumpseat.agent.session.session import Session
from jumpseat.observability.settings import Gauge
from jumpseat.sessions.idle import Activity, activity_of
from jumpseat_protocol.version import __version__

# With less space on the disk of the home folder, a server is not ready for further clients.
LEAST_FREE_BYTES: Final = 16 << 20


class Replica(Protocol):
    """The server's part in a cluster."""

    def gauges(self) -> Sequence[Gauge]:
        """Return the numbers of the replica that metrics show."""
        ...

    def problems(self) -> Sequence[str]:
        """Return the reasons why no new client should be sent to the replica."""
        ...


class ServerState:
    """The state of the server with the home folder ``home``, read when it is asked for.

    ``connections`` is the number of clients, ``is_ending`` whether the process was asked to end. ``replica`` is
    ``None`` without a cluster.
    """

    def __init__(
        self,
        home: Path,
        sessions: Callable[[], Iterable[Session]],
        connections: Callable[[], int],
        is_ending: Callable[[], bool],
        replica: Replica | None,
    ) -> None:
        self._home = home
        self._sessions = sessions
        self._connections = connections
        self._is_ending = is_ending
        self._replica = replica

    def gauges(self) -> list[Gauge]:
        """Return the numbers that metrics show."""

        def gauge(name: str, unit: str, description: str, read: Callable[[Activity], int]) -> Gauge:
            return Gauge(name, unit, description, lambda: read(activity_of(self._sessions())))

        return [
            gauge("jumpseat.sessions", "{session}", "Live sessions.", lambda now: now.sessions),
            gauge("jumpseat.prompts.running", "{prompt}", "Sessions that run a prompt.", lambda now: now.running),
            gauge("jumpseat.prompts.waiting", "{prompt}", "Prompts in queues.", lambda now: now.waiting),
            gauge("jumpseat.questions.open", "{question}", "Unanswered questions.", lambda now: now.questions),
            Gauge("jumpseat.connections", "{connection}", "Connected clients.", self._connections),
            *(self._replica.gauges() if self._replica is not None else ()),
        ]

    def status(self) -> dict[str, Any]:
        """Return the state of the server as a JSON object."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "home": str(self._home),
            "ready": not self.problems(),
            "connections": self._connections(),
            **asdict(activity_of(self._sessions())),
        }

    def problems(self) -> list[str]:
        """Return the reasons why no new client should be sent to this server."""
        problems = ["the server is ending"] if self._is_ending() else []
        if self._replica is not None:
            problems += self._replica.problems()
        if not os.access(self._home, os.W_OK):
            problems.append(f"the folder {str(self._home)!r} is not writable")
        elif (free := shutil.disk_usage(self._home).free) < LEAST_FREE_BYTES:
            problems.append(f"only {free >> 20} MiB are free in {str(self._home)!r}")
        return problems
