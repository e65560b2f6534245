"""``session.schedule.*``: scheduled prompts. Invalid entries are results with an ``error``, as clients expect."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

from jumpseat.agent.clock import iso_time
from jumpseat.agent.session.schedules import DEFAULT_ZONE, Schedule, Schedules
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat_protocol.schedule import (
    HasSelfPacedResult,
    ScheduleAddAtParams,
    ScheduleAddCronParams,
    ScheduleAddParams,
    ScheduleAddSelfPacedParams,
    ScheduleEntry,
    ScheduleListResult,
    ScheduleRearmParams,
    ScheduleResult,
    ScheduleStopParams,
    ScheduleStopResult,
)
from jumpseat_protocol.sessions import SessionParams


def list_(ctx: Context, params: SessionParams) -> ScheduleListResult:
    """Return the active schedules, oldest first."""
    return ScheduleListResult(entries=[_to_wire(entry) for entry in _of(ctx, params.session_id).entries()])


def add(ctx: Context, params: ScheduleAddParams) -> ScheduleResult:
    """Schedule a prompt after an interval, again and again if it is recurring."""
    schedules = _of(ctx, params.session_id)
    return _result(
        lambda: schedules.add(
            params.prompt,
            interval=params.interval,
            recurring=params.recurring,
            display_prompt=params.display_prompt,
        )
    )


def add_at(ctx: Context, params: ScheduleAddAtParams) -> ScheduleResult:
    """Schedule a prompt once."""
    schedules, at = _of(ctx, params.session_id), params.at
    if not isinstance(at, int | float) or isinstance(at, bool):
        return ScheduleResult(error="Invalid scheduled time.")
    if params.recurring:
        return ScheduleResult(error="A time does not recur: use an interval or a cron expression.")
    return _result(lambda: schedules.add(params.prompt, at_ms=at, display_prompt=params.display_prompt))


def add_cron(ctx: Context, params: ScheduleAddCronParams) -> ScheduleResult:
    schedules = _of(ctx, params.session_id)
    return _result(
        lambda: schedules.add(
            params.prompt,
            cron=params.cron,
            tz=params.tz or _local_zone(),
            recurring=params.recurring,
            display_prompt=params.display_prompt,
        )
    )


def add_self_paced(ctx: Context, params: ScheduleAddSelfPacedParams) -> ScheduleResult:
    schedules = _of(ctx, params.session_id)
    return _result(lambda: schedules.add(params.prompt, display_prompt=params.display_prompt))


def rearm_self_paced(ctx: Context, params: ScheduleRearmParams) -> ScheduleResult:
    """Set the time of the next run of a schedule that the model paces."""
    schedules = _of(ctx, params.session_id)
    return _result(lambda: schedules.rearm(params.id, params.at))


def has_self_paced(ctx: Context, params: SessionParams) -> HasSelfPacedResult:
    """Return whether the model paces a schedule."""
    return HasSelfPacedResult(has_self_paced=_of(ctx, params.session_id).has_self_paced)


def stop(ctx: Context, params: ScheduleStopParams) -> ScheduleStopResult:
    """Stop a schedule; a prompt that it has sent continues."""
    entry = _of(ctx, params.session_id).stop(params.id)
    return ScheduleStopResult(entry=None if entry is None else _to_wire(entry))


def hydrate(ctx: Context, params: SessionParams) -> None:
    """Do nothing more: the schedules of a live session are restored already."""
    _of(ctx, params.session_id)


def _of(ctx: Context, session_id: str) -> Schedules:
    return ctx.registry.live(session_id).schedules


def _result(change: Callable[[], Schedule]) -> ScheduleResult:
    try:
        return ScheduleResult(entry=_to_wire(change()))
    except InvalidRequestError as error:
        return ScheduleResult(error=str(error))


def _to_wire(entry: Schedule) -> ScheduleEntry:
    return ScheduleEntry(
        id=entry.id,
        prompt=entry.prompt,
        recurring=entry.recurring,
        next_run_at=iso_time(entry.next_run_at),
        display_prompt=entry.display_prompt,
        interval_ms=None if entry.interval_s is None else int(entry.interval_s * 1000),
        at=None if entry.at is None else int(entry.at * 1000),
        cron=entry.cron,
        tz=entry.tz,
        self_paced=True if entry.self_paced else None,
    )


def _local_zone() -> str:
    """Return the name of the machine's time zone, that of DEFAULT_ZONE if it is not known."""
    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        _, found, name = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")
        name = name if found else ""
    try:
        return str(ZoneInfo(name))
    except (ValueError, OSError, LookupError):
        return DEFAULT_ZONE
