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
    """The number of the entry."""
    prompt: str
    """The prompt."""
    recurring: StrictBool
    """Whether it runs more than once."""
    next_run_at: str
    """When it runs next, in ISO 8601."""
    display_prompt: str | None = None
    interval_ms: int | None = None
    """The time between two runs, in milliseconds."""
    at: int | None = None
    """When it runs, in ms since the epoch."""
    cron: str | None = None
    """When it runs, as a cron expression."""
    tz: str | None = None
    """The time zone of ``cron``."""
    self_paced: StrictBool | None = None
    """Whether the model decides on the next run."""


class ScheduleListResult(WireModel):
    entries: list[ScheduleEntry]
    """The entries."""


class ScheduleAddParams(WireModel):
    """``interval`` is ``30s``, ``5m``, ``2h`` or ``1d``; a bare number is in minutes."""

    session_id: str
    interval: str
    """The time between two runs, such as ``5m``."""
    prompt: str
    """The prompt."""
    recurring: StrictBool = True
    """Whether it runs more than once."""
    display_prompt: str | None = None


class ScheduleAddAtParams(WireModel):
    """``at`` is in milliseconds since the epoch; a time in the past is now. ``recurring`` is refused."""

    session_id: str
    at: Any
    """When it runs, in ms since the epoch."""
    prompt: str
    """The prompt."""
    recurring: StrictBool = False
    """Refused."""
    display_prompt: str | None = None


class ScheduleAddCronParams(WireModel):
    """``cron`` has five fields; ``tz`` is the name of a time zone, by default the server's."""

    session_id: str
    cron: str
    """When it runs: a cron expression of five fields."""
    prompt: str
    """The prompt."""
    recurring: StrictBool = True
    """Whether it runs more than once."""
    display_prompt: str | None = None
    tz: str | None = None
    """The time zone; by default, the server's."""


class ScheduleAddSelfPacedParams(WireModel):
    session_id: str
    prompt: str
    """The prompt."""
    display_prompt: str | None = None


class ScheduleRearmParams(WireModel):
    """``at`` is in milliseconds since the epoch."""

    session_id: str
    id: int
    """The number of the entry."""
    at: float
    """When it runs next, in ms since the epoch."""


class ScheduleResult(WireModel):
    """``error`` tells why there is no entry."""

    entry: ScheduleEntry | None = None
    """The entry."""
    error: str | None = None


class ScheduleStopParams(WireModel):
    session_id: str
    id: int
    """The number of the entry."""


class ScheduleStopResult(WireModel):
    """Without an entry if there was none with that id."""

    entry: ScheduleEntry | None = None
    """The entry that was stopped."""


class HasSelfPacedResult(WireModel):
    has_self_paced: StrictBool
    """Whether there is such an entry."""


METHODS: Final[Mapping[str, Method]] = {
    "session.schedule.list": Method(SessionParams, ScheduleListResult, "List the scheduled prompts."),
    "session.schedule.add": Method(
        ScheduleAddParams, ScheduleResult, "Schedule a prompt after an interval, once or again and again."
    ),
    "session.schedule.addAt": Method(ScheduleAddAtParams, ScheduleResult, "Schedule a prompt at a time."),
    "session.schedule.addCron": Method(
        ScheduleAddCronParams, ScheduleResult, "Schedule a prompt by a cron expression."
    ),
    "session.schedule.addSelfPaced": Method(
        ScheduleAddSelfPacedParams, ScheduleResult, "Send a prompt now, and again whenever the model asks for that."
    ),
    "session.schedule.rearmSelfPaced": Method(
        ScheduleRearmParams, ScheduleResult, "Set the next run of such a prompt."
    ),
    "session.schedule.hasSelfPaced": Method(
        SessionParams, HasSelfPacedResult, "Return whether there is such a prompt."
    ),
    "session.schedule.stop": Method(ScheduleStopParams, ScheduleStopResult, "Remove a scheduled prompt."),
    "session.schedule.hydrate": Method(
        SessionParams, None, "Do nothing: a resumed session has its schedules already."
    ),
}
