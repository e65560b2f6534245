"""The log of a session: writing, reading, and repair after a crash."""

from __future__ import annotations

import itertools
import os
import resource
import stat
from pathlib import Path

import anyio
import orjson
import pytest
from anyio.abc import TaskGroup

from jumpseat.errors import StoreError
from jumpseat.store.session.event_log import FileEventLog, LogSyncer, Replay, read_log, repair_log
from jumpseat_protocol import events
from tests.support.cases import check_each
from tests.support.limits import WAIT_S
from tests.support.logs import in_parts, parts_of, replay_of

NOW = "2026-01-01T00:00:00.000Z"

on_linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are told by /proc")


def event(text: str, number: int = 1) -> events.Event:
    return events.Event.of(f"id-{number}", NOW, None, events.SessionInfo(info_type="x", message=text))


def open_files(path: Path) -> int:
    """Return the number of descriptors of this process for ``path``."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return sum(link.is_symlink() and os.path.realpath(link) == str(path) for link in links)


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


@pytest.fixture
def log(path: Path, tasks: TaskGroup) -> FileEventLog:
    return FileEventLog(path, LogSyncer(tasks))


@pytest.mark.anyio
async def test_append_writes_one_line_before_it_returns(log: FileEventLog, path: Path) -> None:
    assert log.size_bytes() == 0
    log.append(event("one\ntwo", 1))
    log.append(event("é🙂", 2))

    lines = event("one\ntwo", 1).encode() + b"\n" + event("é🙂", 2).encode() + b"\n"
    assert content_of(path) == lines
    assert log.size_bytes() == len(lines)
    assert read_log(path) == replay_of([event("one\ntwo", 1).wire(), event("é🙂", 2).wire()])


@pytest.mark.anyio
async def test_only_the_user_can_read_the_file(log: FileEventLog, path: Path) -> None:
    log.append(event("secret"))

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@on_linux
@pytest.mark.anyio
async def test_the_file_is_open_only_while_the_session_is_busy(log: FileEventLog, path: Path) -> None:
    log.append(event("one"))
    log.append(event("two"))
    assert open_files(path) == 1
    log.sync_soon()
    log.sync_soon()
    with anyio.fail_after(WAIT_S):
        while open_files(path):
            await anyio.wait_all_tasks_blocked()
    log.append(event("three"))
    log.sync()
    log.sync()

    assert open_files(path) == 0
    assert [record["data"]["message"] for record in read_log(path).records] == ["one", "two", "three"]


@on_linux
@pytest.mark.anyio
async def test_a_log_that_is_still_written_does_not_keep_others_open(tmp_path: Path, tasks: TaskGroup) -> None:
    syncer = LogSyncer(tasks)
    quiet = [FileEventLog(tmp_path / f"{number}.jsonl", syncer) for number in range(9)]
    busy = FileEventLog(tmp_path / "busy.jsonl", syncer)
    for log in (busy, *quiet):
        log.append(event("one"))
        log.sync_soon()
    with anyio.fail_after(WAIT_S):
        while any(open_files(log.path) for log in quiet):
            busy.append(event("more"))
            await anyio.wait_all_tasks_blocked()
    assert open_files(busy.path) == 1
    with anyio.fail_after(WAIT_S):
        while open_files(busy.path):
            await anyio.wait_all_tasks_blocked()


@on_linux
@pytest.mark.anyio
async def test_logs_that_are_due_already_are_synced_at_once(tmp_path: Path, tasks: TaskGroup) -> None:
    hours = itertools.count()
    syncer = LogSyncer(tasks, lambda: 3600.0 * next(hours))
    logs = [FileEventLog(tmp_path / f"{number}.jsonl", syncer) for number in range(3)]
    for log in logs:
        log.append(event("one"))
        log.sync_soon()
    with anyio.fail_after(WAIT_S):
        while any(open_files(log.path) for log in logs):
            await anyio.wait_all_tasks_blocked()


@pytest.mark.anyio
async def test_two_processes_may_write_to_one_log(log: FileEventLog, path: Path, tasks: TaskGroup) -> None:
    other = FileEventLog(path, LogSyncer(tasks))
    for number in range(3):
        log.append(event("mine", number))
        other.append(event("theirs", number))
    log.sync()
    other.sync()

    assert [record["data"]["message"] for record in read_log(path).records] == ["mine", "theirs"] * 3


@pytest.mark.anyio
async def test_a_log_that_cannot_be_opened_is_a_store_error(tmp_path: Path, tasks: TaskGroup) -> None:
    with pytest.raises(StoreError, match="cannot write the session log: No such file or directory"):
        FileEventLog(tmp_path / "missing" / "events.jsonl", LogSyncer(tasks)).append(event("x"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.anyio
async def test_a_full_disk_is_a_store_error(tasks: TaskGroup) -> None:
    log = FileEventLog(Path("/dev/full"), LogSyncer(tasks))
    with pytest.raises(StoreError, match="cannot write the session log: No space left on device"):
        log.append(event("x"))
    log.sync()


@pytest.mark.anyio
async def test_a_partly_written_line_is_removed_before_the_next_one(log: FileEventLog, path: Path) -> None:
    log.append(event("before"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.size_bytes() + 20, hard))
    try:
        with pytest.raises(StoreError, match="cannot write the session log"):
            log.append(event("does not fit"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append(event("after"))

    assert read_log(path) == replay_of([event("before").wire(), event("after").wire()])


def test_a_missing_log_is_empty(path: Path) -> None:
    assert read_log(path) == repair_log(path) == replay_of([])
    assert not path.exists()


def test_a_log_that_cannot_be_read_is_a_store_error(path: Path) -> None:
    path.mkdir()

    for read in (read_log, repair_log):
        with pytest.raises(StoreError, match="cannot read the session log: Is a directory"):
            read(path)


WHOLE = event("whole").encode()


@pytest.mark.parametrize(
    ("content", "messages", "torn_bytes", "mended"),
    [
        (b"", [], 0, b""),
        (WHOLE + b"\n", ["whole"], 0, WHOLE + b"\n"),
        (WHOLE, ["whole"], 0, WHOLE + b"\n"),
        (WHOLE[:-1], [], len(WHOLE) - 1, b""),
        (WHOLE + b"\n" + WHOLE[:9], ["whole"], 9, WHOLE + b"\n"),
        (WHOLE + b"\n" + WHOLE, ["whole", "whole"], 0, WHOLE + b"\n" + WHOLE + b"\n"),
        (WHOLE + b"\n\0\0\0", ["whole"], 3, WHOLE + b"\n"),
        (WHOLE + b"\n{}", ["whole"], 2, WHOLE + b"\n"),
        (
            b"\n[1]\n\xff\n{}\n" + WHOLE + b'\n{"type":7}\n',
            ["whole"],
            0,
            b"\n[1]\n\xff\n{}\n" + WHOLE + b'\n{"type":7}\n',
        ),
    ],
    ids=["empty", "whole", "no end", "torn", "torn second", "second without end", "nulls", "no event", "rubbish"],
)
def test_a_torn_last_line_is_removed_or_completed(
    path: Path, content: bytes, messages: list[str], torn_bytes: int, mended: bytes
) -> None:
    path.write_bytes(content)
    expected = replay_of([orjson.loads(event(message).encode()) for message in messages], torn_bytes)

    assert read_log(path) == expected
    assert path.read_bytes() == content
    assert repair_log(path) == expected
    assert path.read_bytes() == mended
    assert read_log(path) == Replay(expected.records, 0)


@pytest.mark.thorough
def test_the_events_of_a_log_as_json_are_those_that_can_be_read(path: Path) -> None:
    rubbish = (b"\n", b"[1]\n", WHOLE[:-1] + b"\n", b'{"type":7}\n', b'{"type":"x","\xff":1}\n')
    # Of one part and of several, some of which end with nothing but rubbish.
    logs = [WHOLE, b"", *rubbish, b"".join((*rubbish, WHOLE, b"\n")) * 3000]
    logs += [(WHOLE + b"\n") * number + b"\n" * 9000 for number in (1, 9000, 20_000)]
    for content in logs:
        path.write_bytes(content)
        for records in (read_log(path).records, repair_log(path).records):
            assert [*map(parts_of, records.stored())] == [*map(in_parts, records)]
            assert orjson.loads(b"[%b]" % b"".join(records.json())) == [*records]


@pytest.mark.anyio
async def test_a_log_that_was_torn_anywhere_can_be_appended_to(tmp_path: Path, tasks: TaskGroup) -> None:
    def check(kept: int) -> None:
        path = tmp_path / f"{kept}.jsonl"
        log = FileEventLog(path, LogSyncer(tasks))
        write(path, WHOLE + b"\n" + WHOLE[:kept])
        replay = repair_log(path)
        log.append(event("after"))
        log.sync()

        assert read_log(path) == replay_of([*replay.records, event("after").wire()])
        assert len(list(replay.records)) == (2 if kept == len(WHOLE) else 1)

    check_each({kept: kept for kept in range(len(WHOLE) + 1)}, check)
