"""The numbers that a replica shows: metrics, and its heartbeat for ``jumpseat cluster status``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jumpseat.cluster.sessions.ownership import Ownerships
from jumpseat.observability.settings import Gauge


def gauges(ownerships: Ownerships, relayed: Callable[[], int]) -> list[Gauge]:
    """Return the metrics of a replica. ``relayed`` returns the number of requests sent to other replicas."""
    counters = ownerships.counters

    def gauge(name: str, unit: str, description: str, read: Callable[[], float]) -> Gauge:
        return Gauge(f"jumpseat.cluster.{name}", unit, description, read)

    return [
        gauge("owned", "{session}", "Sessions of this replica.", lambda: len(ownerships.owned())),
        gauge("relayed", "{request}", "Requests sent to other replicas.", relayed),
        gauge("takeovers", "{session}", "Sessions taken over.", lambda: counters.takeovers),
        gauge("lost", "{session}", "Sessions lost to others.", lambda: counters.lost),
        gauge("appends", "{message}", "Messages stored.", lambda: counters.appends),
        gauge("append.median", "s", "Median time of the latest appends.", lambda: _append_s(ownerships, 0.5)),
        gauge("append.p99", "s", "99th percentile of the latest appends.", lambda: _append_s(ownerships, 0.99)),
    ]


def heartbeat(ownerships: Ownerships) -> dict[str, Any]:
    """Return the part of a heartbeat about the sessions that a replica owns."""
    counters = ownerships.counters
    has_appends = bool(counters.append_s)
    return {
        "owned": len(ownerships.owned()),
        "takeovers": counters.takeovers,
        "lost": counters.lost,
        "appends": counters.appends,
        "appendMs": round(_append_s(ownerships, 0.5) * 1000, 3) if has_appends else None,
        "appendP99Ms": round(_append_s(ownerships, 0.99) * 1000, 3) if has_appends else None,
    }


def _append_s(ownerships: Ownerships, share: float) -> float:
    """Return a quantile of the durations of the latest appends, in seconds."""
    appends = sorted(ownerships.counters.append_s)
    return appends[int(len(appends) * share)] if appends else 0.0
