"""Scheduled prompts over the real wire; their times with a clock of the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.schedules import Schedules
from jumpseat_protocol import events
from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

ANSWERS = scripted(*({"text": f"Answer {number}"} for number in range(1, 9)))


async def call(wire: Wire, session: str, method: str, **params: Any) -> Any:
    return await wire.call(f"session.schedule.{method}", {"sessionId": session, **params})


class FakeClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self._moved = anyio.Event()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        until = self.time + seconds
        while self.time < until:
            await self._moved.wait()

    def move(self, seconds: float) -> None:
        self.time += seconds
        self._moved.set()
        self._moved = anyio.Event()


async def test_a_prompt_recurs_after_the_end_of_its_last_run(tasks: TaskGroup) -> None:
    clock = FakeClock()
    sent, receive = anyio.create_memory_object_stream[Prompt](10)
    emitted: list[events.EventPayload] = []

    def emit(payload: events.EventPayload) -> None:
        emitted.append(payload)
        schedules.apply(payload)

    schedules = Schedules(tasks, clock, lambda prompt, _mode: sent.send_nowait(prompt), emit)
    entry = schedules.add("look", interval="30s")
    clock.move(29)
    await anyio.wait_all_tasks_blocked()
    assert receive.statistics().current_buffer_used == 0
    clock.move(1)
    first = await receive.receive()
    assert (first.text, first.source) == ("[Scheduled prompt #1]\nlook", "schedule-1")
    # It is not sent again while it runs.
    clock.move(100)
    await anyio.wait_all_tasks_blocked()
    assert receive.statistics().current_buffer_used == 0
    first.run.end()
    await anyio.wait_all_tasks_blocked()
    assert entry.next_run_at == clock.now() + 30
    clock.move(30)
    second = await receive.receive()
    assert schedules.stop(1) is entry
    second.run.end()
    clock.move(100)
    await anyio.wait_all_tasks_blocked()
    assert (receive.statistics().current_buffer_used, len(schedules)) == (0, 0)
    assert [payload.type for payload in emitted] == ["session.schedule_created", "session.schedule_cancelled"]
    schedules.close()
    sent.close()
    receive.close()


async def test_a_prompt_is_sent_at_its_time_and_its_schedule_ends(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(ANSWERS)
        added = await call(server.wire, session, "addAt", at=1000, prompt="at prompt", displayPrompt="At!")
        assert (added["entry"]["recurring"], added["entry"]["nextRunAt"]) == (False, "1970-01-01T00:00:01.000Z")
        message = await server.wire.event("user.message")
        assert (message["data"]["content"], message["data"]["source"]) == (
            "[Scheduled prompt #1]\nAt!",
            "schedule-1",
        )
        assert "at prompt" in message["data"]["transformedContent"]
        await server.wire.event("session.schedule_cancelled", id=1)
        await server.wire.event("session.idle")
        assert await call(server.wire, session, "list") == {"entries": []}


async def test_schedules_survive_a_restart_and_run_without_the_user(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(ANSWERS)
        await server.wire.prompt(session)
        hourly = (await call(server.wire, session, "add", interval="1h", prompt="hourly"))["entry"]
        assert (hourly["intervalMs"], hourly["recurring"]) == (3_600_000, True)
        cron = (await call(server.wire, session, "addCron", cron="0 9 * * 1", prompt="weekly", tz="Asia/Tokyo"))[
            "entry"
        ]
        assert (cron["tz"], cron["nextRunAt"][11:]) == ("Asia/Tokyo", "00:00:00.000Z")
        stopped = (await call(server.wire, session, "add", interval="10", prompt="gone", recurring=False))["entry"]
        assert (await call(server.wire, session, "stop", id=stopped["id"]))["entry"]["prompt"] == "gone"
    log = server.log_of(session)
    # A time that came while no server ran.
    due = {"type": "session.schedule_created", "data": {"id": 7, "prompt": "due", "at": 1000}, "id": "x"}
    due |= {"timestamp": "2026-01-01T00:00:00.000Z", "parentId": None}
    log.write_text(log.read_text() + json.dumps(due) + "\n")
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", {"sessionId": session, "provider": ANSWERS})
        assert (await server.wire.event("user.message"))["data"]["source"] == "schedule-7"
        await server.wire.event("session.idle")
        entries = (await call(server.wire, session, "list"))["entries"]
        assert [(entry["id"], entry["prompt"]) for entry in entries] == [(1, "hourly"), (2, "weekly")]
        assert (await call(server.wire, session, "add", interval="1d", prompt="next"))["entry"]["id"] == 8


async def test_the_model_paces_a_task_or_ends_it(tmp_path: Path) -> None:
    script = scripted(
        calls("manage_schedule", action="wakeup", id=1, seconds=0), {"text": "More"}, {"text": "Done"}
    )
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script)
        assert await call(wire, session, "hasSelfPaced") == {"hasSelfPaced": False}
        assert (await call(wire, session, "addSelfPaced", prompt="watch it"))["entry"]["selfPaced"] is True
        await wire.event("session.schedule_rearmed", id=1)
        # The second run asks for no further one.
        await wire.event("session.schedule_cancelled", id=1)
        prompts = [event["data"] for event in wire.events(session) if event["type"] == "user.message"]
        assert [prompt["content"] for prompt in prompts] == ["[Scheduled prompt #1]\nwatch it"] * 2
        assert await call(wire, session, "hasSelfPaced") == {"hasSelfPaced": False}


async def test_bad_schedules_are_results_with_an_error(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(ANSWERS)
        bad: list[tuple[str, dict[str, Any], str]] = [
            ("add", {"interval": "2s", "prompt": "x"}, "Minimum interval is 10s."),
            ("add", {"interval": "400d", "prompt": "x"}, "Maximum interval is 1d."),
            ("add", {"interval": "abc", "prompt": "x"}, 'Invalid interval "abc". Try 30s, 5m, 2h, or 1d.'),
            ("add", {"interval": "1h", "prompt": " "}, "Prompt cannot be empty."),
            ("addAt", {"at": "soon", "prompt": "x"}, "Invalid scheduled time."),
            (
                "addAt",
                {"at": 1000, "prompt": "x", "recurring": True},
                "A time does not recur: use an interval or a cron expression.",
            ),
            ("addCron", {"cron": "bad", "prompt": "x"}, 'Invalid cron expression "bad".'),
            ("addCron", {"cron": "0 0 30 2 *", "prompt": "x"}, 'Invalid cron expression "0 0 30 2 *".'),
            (
                "addCron",
                {"cron": "* * * * *", "tz": "No/Zone", "prompt": "x"},
                'Invalid cron expression "* * * * *".',
            ),
            ("rearmSelfPaced", {"id": 5, "at": 1}, "No active schedule with id 5."),
        ]
        for method, params, problem in bad:
            assert await call(server.wire, session, method, **params) == {"error": problem}, params
        assert await call(server.wire, session, "stop", id=9) == {}
        for number in range(50):
            assert "entry" in await call(server.wire, session, "add", interval="1h", prompt=str(number))
        assert "50 schedules" in (await call(server.wire, session, "add", interval="1h", prompt="x"))["error"]
        error = await server.wire.error_of("session.schedule.add", {"sessionId": session, "prompt": "x"})
        assert error["code"] == -32602
