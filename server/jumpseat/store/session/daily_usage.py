"""The usage of sessions by day and model, so that sums over all sessions read no logs.

``workspace.yaml`` has the days of one session as JSON: ``{day: {model: [calls, input, output, cache_read,
cache_write, dollars]}}``. A day is one of the local calendar of the server. Usage is of the day on which it is
stored, a moment after the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import orjson

from jumpseat.agent.clock import local_day
from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.store.session.workspace import Workspace, parse_workspace

Days: TypeAlias = dict[str, dict[str, ModelUsage]]
"""The usage of each day and model."""

_COUNTS: Final = ("calls", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def add_to_days(workspace: Workspace, total: Mapping[str, ModelUsage], day: str) -> str | None:
    """Return the days of a session as JSON: its usage is ``total`` now, and has grown on ``day``."""
    stored = workspace.model_usage()
    growth = {
        model: grown
        for model, used in total.items()
        if (grown := used.minus(stored[model]) if model in stored else used).calls > 0
    }
    if not growth:
        return workspace.usage_days
    days = parse_days(workspace.usage_days)
    _add(days.setdefault(day, {}), growth)
    return encode_days(days).decode()


def encode_days(days: Days) -> bytes:
    """Return days as JSON."""
    return orjson.dumps(
        {day: {model: _encode(used) for model, used in models.items()} for day, models in days.items()}
    )


def days_of(workspace: Workspace) -> Days:
    """Return the usage of a session by day; what has no day, as of older servers, is of the day of its creation."""
    days = parse_days(workspace.usage_days)
    dated: dict[str, ModelUsage] = {}
    for models in days.values():
        _add(dated, models)
    rest = {
        model: left
        for model, used in workspace.model_usage().items()
        if (left := used.minus(dated[model]) if model in dated else used).calls > 0
    }
    if rest:
        _add(days.setdefault(workspace.created_at[:10], {}), rest)
    return days


class UsageOfSessions:
    """Sums the usage of the sessions in the folder ``root``. Remembers those of the last sum; for one thread."""

    def __init__(self, root: Path, workspace_file: str) -> None:
        self._root = root
        self._file = workspace_file
        self._known: dict[str, tuple[tuple[int, int], Workspace | None]] = {}

    def workspaces(self, names: Iterator[str], since_s: float) -> Iterator[Workspace]:
        """Yield ``workspace.yaml`` of the sessions that have changed since a Unix time; blocks on files."""
        known, self._known = self._known, {}
        for name in names:
            path = self._root / name / self._file
            try:
                state = path.stat()
            except OSError:
                continue
            if state.st_mtime < since_s:
                continue
            key = (state.st_mtime_ns, state.st_ino)
            entry = known.get(name)
            if entry is None or entry[0] != key:
                entry = (key, _read(path, name))
            self._known[name] = entry
            if entry[1] is not None:
                yield entry[1]


def sum_days(each: Iterable[Days], first_day: str) -> Days:
    """Return the usage of all sessions from a day on."""
    total: Days = {}
    for days in each:
        for day, models in days.items():
            if day >= first_day:
                _add(total.setdefault(day, {}), models)
    return total


def day_before(now_s: float, days: int) -> tuple[str, float]:
    """Return the local day that is ``days`` before a Unix time, and the earliest time that may belong to it."""
    at = now_s - days * 86_400
    # A day has up to 25 hours.
    return local_day(at), at - 25 * 3600


def _read(path: Path, name: str) -> Workspace | None:
    try:
        return parse_workspace(name, path.read_bytes())
    except OSError:
        return None


def _add(sums: dict[str, ModelUsage], more: Mapping[str, ModelUsage]) -> None:
    for model, used in more.items():
        sums[model] = used.plus(sums[model]) if model in sums else used


def _encode(used: ModelUsage) -> list[int | float | None]:
    return [*(getattr(used, name) for name in _COUNTS), used.dollars]


def parse_days(text: str | bytes | None) -> Days:
    """Return stored days; without those that other programs have damaged."""
    try:
        stored: Any = orjson.loads(text or "{}")
    except ValueError:
        return {}
    days: Days = {}
    for day, models in cast("dict[str, Any]", stored).items() if isinstance(stored, dict) else ():
        for model, values in cast("dict[str, Any]", models).items() if isinstance(models, dict) else ():
            if (used := _decode(values)) is not None:
                days.setdefault(day, {})[model] = used
    return days


def _decode(values: Any) -> ModelUsage | None:
    if not isinstance(values, list):
        return None
    *counts, dollars = cast("list[Any]", values) or [None]
    if len(counts) != len(_COUNTS) or not all(type(value) is int for value in counts):
        return None
    if dollars is not None and not (isinstance(dollars, int | float) and math.isfinite(dollars)):
        return None
    return ModelUsage(**dict(zip(_COUNTS, counts, strict=True)), dollars=dollars)
