"""``session.schedule.*``: prompts that the session sends itself at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class ScheduleEntry(WireModel):
    """``next_run_at`` is ISO 8601, ``at`` in milliseconds since the epoch."""

    id: int
    prompt: str
    recurring: StrictBool
    next_run_at: str
    display_prompt: str | None = None
    interval_ms: int | None = None
    at: int | None = None
    cron: str | None = None
    tz: str | None = None
    self_paced: StrictBool | None = None


class ScheduleListResult(WireModel):
    entries: list[ScheduleEntry]


class ScheduleAddParams(WireModel):
    """``interval`` is ``30s``, ``5m``, ``2h`` or ``1d``; a bare number is in minutes."""

    session_id: str
    interval: str
    prompt: str
    recurring: StrictBool = True
    display_prompt: str | None = None


class ScheduleAddAtParams(WireModel):
    """``at`` is in milliseconds since the epoch; a time in the past is now. ``recurring`` is refused."""

    session_id: str
    at: Any
    prompt: str
    recurring: StrictBool = False
    display_prompt: str | None = None


class ScheduleAddCronParams(WireModel):
    """``cron`` has five fields; ``tz`` is the name of a time zone, by default the server's."""

    session_id: str
    cron: str
    prompt: str
    recurring: StrictBool = True
    display_prompt: str | None = None
    tz: str | None = None


class ScheduleAddSelfPacedParams(WireModel):
    session_id: str
    prompt: str
    display_prompt: str | None = None


class ScheduleRearmParams(WireModel):
    """``at`` is in milliseconds since the epoch."""

    session_id: str
    id: int
    at: float


class ScheduleResult(WireModel):
    """``error`` tells why there is no entry."""

    entry: ScheduleEntry | None = None
    error: str | None = None


class ScheduleStopParams(WireModel):
    session_id: str
    id: int


class ScheduleStopResult(WireModel):
    """Without an entry if there was none with that id."""

    entry: ScheduleEntry | None = None


class HasSelfPacedResult(WireModel):
    has_self_paced: StrictBool


METHODS: Final[Mapping[str, Method]] = {
    "session.schedule.list": Method(SessionParams, ScheduleListResult),
    "session.schedule.add": Method(ScheduleAddParams, ScheduleResult),
    "session.schedule.addAt": Method(ScheduleAddAtParams, ScheduleResult),
    "session.schedule.addCron": Method(ScheduleAddCronParams, ScheduleResult),
    "session.schedule.addSelfPaced": Method(ScheduleAddSelfPacedParams, ScheduleResult),
    "session.schedule.rearmSelfPaced": Method(ScheduleRearmParams, ScheduleResult),
    "session.schedule.hasSelfPaced": Method(SessionParams, HasSelfPacedResult),
    "session.schedule.stop": Method(ScheduleStopParams, ScheduleStopResult),
    "session.schedule.hydrate": Method(SessionParams, None),
}
