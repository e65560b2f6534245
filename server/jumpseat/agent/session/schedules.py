"""The scheduled prompts of a session: once, at intervals, by a cron expression, or when the model says so.

The events of the log are their only storage: a resumed session has the entries that were created and not cancelled.
A due entry sends its prompt, which steers a running one; the next run counts from the end of the last.

Cron expressions have five fields (minute, hour, day of month, month, day of week), evaluated in a time zone. A
field is ``*``, a number, a range ``1-5``, any of these with a step ``/15``, or a list of them. Months and days of
the week have English names, too; Sunday is 0 or 7. If both days are restricted, either fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import ClassVar, Final, Literal
from zoneinfo import ZoneInfo

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from jumpseat.agent.clock import Clock
from jumpseat.agent.projection import Appliers, Projection
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat_protocol import events

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

MAX_DAYS: Final = 366 * 8 + 2
"""Days to look ahead: 29 February may be eight years away."""


class Cron(Struct, frozen=True):
    """A parsed expression; ``any_day`` and ``any_weekday`` tell which of the two days are not restricted."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def next_after(self, seconds: float, zone: ZoneInfo) -> float | None:
        """Return the first time after ``seconds`` since the epoch that fits, or ``None`` if there is none.

        Local times that a change of the clock skips do not occur; of those that occur twice, the first counts.
        """
        day = datetime.fromtimestamp(seconds, zone).date()
        for _ in range(MAX_DAYS):
            if self._fits(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                        at = local.timestamp()
                        if at > seconds and _exists(local):
                            return at
            day += timedelta(days=1)
        return None

    def _fits(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        fits_day, fits_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return fits_day and fits_weekday
        return fits_day or fits_weekday


def parse_cron(text: str) -> Cron:
    """Parse an expression.

    Raises:
        ValueError: the expression is invalid.
    """
    fields = text.split()
    if len(fields) != 5:
        raise ValueError(f"expected 5 fields, found {len(fields)}")
    minutes, hours, days, months, weekdays = fields
    return Cron(
        tuple(sorted(_parse(minutes, 0, 59))),
        tuple(sorted(_parse(hours, 0, 23))),
        frozenset(_parse(days, 1, 31)),
        frozenset(_parse(months, 1, 12, MONTHS)),
        frozenset(day % 7 for day in _parse(weekdays, 0, 7, DAYS)),
        days.startswith("*"),
        weekdays.startswith("*"),
    )


def _parse(field: str, low: int, high: int, names: Sequence[str] = ()) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        if slash and (not _is_number(step) or int(step) == 0):
            raise ValueError(f"invalid step in {part!r}")
        first, dash, last = span.partition("-")
        if span == "*":
            begin, end = low, high
        else:
            begin = _value(first, low, names)
            end = _value(last, low, names) if dash else high if slash else begin
        if not low <= begin <= end <= high:
            raise ValueError(f"{part!r} is not within {low}-{high}")
        found.update(range(begin, end + 1, int(step) if slash else 1))
    return found


def _value(text: str, low: int, names: Sequence[str]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + (low if low else 0)
    if not _is_number(text):
        raise ValueError(f"{text!r} is not a number")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _exists(local: datetime) -> bool:
    return local.astimezone(UTC).astimezone(local.tzinfo).replace(fold=0) == local


MOST: Final = 50
"""Limit of the entries of one session."""

MIN_INTERVAL_S: Final = 10
MAX_INTERVAL_S: Final = 86_400
DEFAULT_ZONE: Final = "Etc/UTC"

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "": 60}

LONGEST_SLEEP_S: Final = 3600.0
"""The clock of the system may be changed, and is looked at again after this time."""

SELF_PACED: Final = (
    "This is a task that you pace yourself. Work on it now. If there is more to do later, call manage_schedule with"
    ' action "wakeup", id {id} and the seconds until then, before you end your turn; otherwise the schedule ends.'
)


class Schedule(Struct):
    """An entry; exactly one of its interval, its time, its cron expression and ``self_paced`` is set.

    Times are in seconds since the epoch. ``next_run_at`` is that of the running prompt while ``running``.
    """

    id: int
    prompt: str
    recurring: bool
    next_run_at: float
    display_prompt: str | None = None
    interval_s: float | None = None
    at: float | None = None
    cron: str | None = None
    tz: str | None = None
    self_paced: bool = False
    rearmed: bool = False
    running: bool = False


class Schedules(Struct, Projection):
    """The entries of one session. ``send`` queues a prompt, ``emit`` publishes an event."""

    tasks: TaskGroup
    clock: Clock
    send: Callable[[Prompt, Literal["immediate"]], None]
    emit: Callable[[events.EventPayload], object]
    _entries: dict[int, Schedule] = field(default_factory=dict[int, Schedule])
    _last_id: int = 0
    # Set at the next change; `None` while no task waits for one.
    _changed: anyio.Event | None = None
    _scope: anyio.CancelScope | None = None
    _closed: bool = False

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[Schedule]:
        """Return the entries, oldest first."""
        return list(self._entries.values())

    @property
    def has_self_paced(self) -> bool:
        """Return whether the model paces an entry."""
        return any(entry.self_paced for entry in self._entries.values())

    # --- adding and removing --------------------------------------------------------------------------------------

    def add(
        self,
        prompt: str,
        *,
        interval: str | None = None,
        at_ms: float | None = None,
        cron: str | None = None,
        tz: str | None = None,
        recurring: bool = True,
        display_prompt: str | None = None,
    ) -> Schedule:
        """Create an entry; without a time, the model paces it.

        Raises:
            InvalidRequestError: the prompt or the time is invalid, or there are too many entries.
        """
        if not prompt.strip():
            raise InvalidRequestError("Prompt cannot be empty.")
        if len(self._entries) >= MOST:
            raise InvalidRequestError(f"There are {MOST} schedules already: stop one first.")
        interval_ms = None if interval is None else int(parse_interval(interval) * 1000)
        if cron is not None:
            _next_cron(cron, tz or DEFAULT_ZONE, self.clock.now())
        if at_ms is not None and not 0 <= at_ms < 1e14:
            raise InvalidRequestError("Invalid scheduled time.")
        self_paced = interval is None and at_ms is None and cron is None
        self.emit(
            events.SessionScheduleCreated(
                id=self._last_id + 1,
                prompt=prompt,
                display_prompt=display_prompt,
                interval_ms=interval_ms,
                at=None if at_ms is None else int(at_ms),
                cron=cron,
                tz=tz if cron is not None else None,
                recurring=at_ms is None and recurring,
                self_paced=True if self_paced else None,
            )
        )
        self.start()
        return self._entries[self._last_id]

    def stop(self, entry_id: int) -> Schedule | None:
        """Remove an entry and return it; a prompt that it has sent continues."""
        entry = self._entries.get(entry_id)
        if entry is not None:
            self.emit(events.SessionScheduleCancelled(id=entry_id))
        return entry

    def rearm(self, entry_id: int, at_ms: float) -> Schedule:
        """Set the time of the next run of an entry that the model paces.

        Raises:
            InvalidRequestError: there is no such entry, or the time is invalid.
        """
        entry = self._entries.get(entry_id)
        if entry is None or not entry.self_paced:
            raise InvalidRequestError(f"No active schedule with id {entry_id}.")
        if not 0 <= at_ms < 1e14:
            raise InvalidRequestError("Invalid scheduled time.")
        self.emit(events.SessionScheduleRearmed(id=entry_id, next_run_at=int(at_ms)))
        return entry

    def _create(self, payload: events.SessionScheduleCreated) -> None:
        self._last_id = max(self._last_id, payload.id)
        entry = Schedule(
            id=payload.id,
            prompt=payload.prompt,
            recurring=bool(payload.recurring),
            next_run_at=0,
            display_prompt=payload.display_prompt,
            interval_s=None if payload.interval_ms is None else payload.interval_ms / 1000,
            at=None if payload.at is None else payload.at / 1000,
            cron=payload.cron,
            tz=payload.tz,
            self_paced=bool(payload.self_paced),
        )
        try:
            entry.next_run_at = self._first_run(entry)
        except InvalidRequestError:
            return  # a log of another version, or a time zone that this machine does not know
        self._entries[payload.id] = entry
        self._notify()

    def _cancel(self, payload: events.SessionScheduleCancelled) -> None:
        self._entries.pop(payload.id, None)
        self._notify()

    def _rearm(self, payload: events.SessionScheduleRearmed) -> None:
        if (entry := self._entries.get(payload.id)) is not None:
            entry.next_run_at, entry.rearmed = payload.next_run_at / 1000, True
        self._notify()

    appliers: ClassVar[Appliers] = {
        events.SessionScheduleCreated: _create,
        events.SessionScheduleCancelled: _cancel,
        events.SessionScheduleRearmed: _rearm,
    }

    # --- running --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to wait for the entries, if there are any; called when the session is ready for prompts."""
        if self._entries and self._scope is None and not self._closed:
            self._scope = anyio.CancelScope()
            self.tasks.start_soon(self._run, self._scope)

    def close(self) -> None:
        """Wait for the entries no longer; they stay in the log."""
        self._closed = True
        if self._scope is not None:
            self._scope.cancel()

    async def _run(self, scope: anyio.CancelScope) -> None:
        with scope:
            async with anyio.create_task_group() as runs:
                while True:
                    changed = self._changed = self._changed or anyio.Event()
                    waiting = [entry for entry in self._entries.values() if not entry.running]
                    now = self.clock.now()
                    for entry in [entry for entry in waiting if entry.next_run_at <= now]:
                        entry.running, entry.rearmed = True, False
                        runs.start_soon(self._fire, entry)
                    times = [entry.next_run_at for entry in waiting if not entry.running]
                    pause_s = min([LONGEST_SLEEP_S, *(at - now for at in times)])
                    async with anyio.create_task_group() as either:

                        async def sleep(cancel: Callable[[], None], seconds: float) -> None:
                            await self.clock.sleep(seconds)
                            cancel()

                        either.start_soon(sleep, either.cancel_scope.cancel, pause_s)
                        await changed.wait()
                        either.cancel_scope.cancel()

    async def _fire(self, entry: Schedule) -> None:
        """Send the prompt of an entry, and set its next run when that has ended."""
        text = f"[Scheduled prompt #{entry.id}]\n{entry.prompt}"
        if entry.self_paced:
            text = f"{text}\n\n{SELF_PACED.format(id=entry.id)}"
        shown = f"[Scheduled prompt #{entry.id}]\n{entry.display_prompt or entry.prompt}"
        prompt = Prompt(text, display_text=shown, source=f"schedule-{entry.id}")
        try:
            self.send(prompt, "immediate")
            if not entry.recurring:
                self.stop(entry.id)
            await prompt.run.done.wait()
            if entry.id not in self._entries:
                return
            if entry.self_paced and not entry.rearmed:
                self.stop(entry.id)
            elif not entry.self_paced:
                entry.next_run_at = self._first_run(entry)
        except JumpseatError:
            # The session is closing, or its log cannot be written: the entry is due again after a resume.
            return
        entry.running = False
        self._notify()

    def _first_run(self, entry: Schedule) -> float:
        """Return the time of the next run, from now on."""
        now = self.clock.now()
        if entry.cron is not None:
            return _next_cron(entry.cron, entry.tz or DEFAULT_ZONE, now)
        if entry.at is not None:
            return entry.at
        return now if entry.interval_s is None else now + entry.interval_s

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None


def parse_interval(text: str) -> int:
    """Return the seconds of an interval such as ``30s``, ``5m``, ``2h`` or ``1d``; a bare number is in minutes.

    Raises:
        InvalidRequestError: the interval is invalid, too short or too long.
    """
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", text.strip().lower(), re.ASCII)
    if found is None or int(found[1]) == 0:
        raise InvalidRequestError(f'Invalid interval "{text[:100]}". Try 30s, 5m, 2h, or 1d.')
    seconds = int(found[1]) * _UNITS[found[2]]
    if seconds < MIN_INTERVAL_S:
        raise InvalidRequestError(f"Minimum interval is {MIN_INTERVAL_S}s.")
    if seconds > MAX_INTERVAL_S:
        raise InvalidRequestError("Maximum interval is 1d.")
    return seconds


def _next_cron(expression: str, tz: str, now: float) -> float:
    try:
        at = parse_cron(expression).next_after(now, ZoneInfo(tz))
    except (ValueError, OSError, LookupError, OverflowError):
        at = None
    if at is None:
        raise InvalidRequestError(f'Invalid cron expression "{expression[:100]}".')
    return at
