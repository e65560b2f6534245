"""The folder of a session is made again from its records, whatever was cut, replaced or left incomplete."""

from __future__ import annotations

from jumpseat.cluster.nats.connection import Stored
from jumpseat.cluster.nats.names import session_of, token_of
from jumpseat.cluster.sessions.records import Folder, Record, joined, parts


def folder_of(*records: Record, most_bytes: int = 1 << 20) -> Folder:
    folder, seq = Folder(), 0
    for record in records:
        for number, (part, more) in enumerate(parts(record.data, most_bytes)):
            seq += 1
            folder.add(Stored(seq, part, record.headers(7, number, more=more)))
    return folder


def event(number: int) -> bytes:
    return b'{"type":"user.message","id":"event-%d"}\n' % number


def test_events_and_files_in_one_message_are_those_of_single_messages() -> None:
    records = [
        Record("events", event(1)),
        Record("events", event(2)),
        Record("file", b"old", "plan.md"),
        Record("file", b"new", "plan.md"),
        Record("append", b"er", "plan.md"),
        Record("file", b"gone", "notes/é 1.txt"),
        Record("remove", b"", "notes/é 1.txt"),
        Record("events", event(3)),
    ]
    alone, together = folder_of(*records).content, folder_of(joined(records)).content
    assert alone.events == together.events == [event(1), event(2), event(3)]
    assert alone.files == together.files == {"plan.md": b"newer"}
    assert alone.epoch == 7


def test_a_cut_removes_an_event_and_all_later_ones() -> None:
    content = folder_of(*(Record("events", event(n)) for n in range(5)), Record("cut", b"event-3")).content
    assert content.events == [event(0), event(1), event(2)]


def test_what_an_owner_has_not_completed_is_left_out() -> None:
    whole = Record("file", b"0123456789" * 3, "large.txt")
    messages = [
        Stored(n + 1, part, whole.headers(1, n, more=more)) for n, (part, more) in enumerate(parts(whole.data, 10))
    ]
    folder = Folder()
    folder.add(messages[0])
    folder.add(Stored(4, b"replica", Record("claim", b"").headers(2)))
    folder.add(messages[2])
    assert folder.content.files == {}
    folder = Folder()
    for message in [messages[0], *messages]:
        folder.add(message)
    assert folder.content.files == {"large.txt": whole.data}


def test_any_session_id_is_one_token_of_a_subject() -> None:
    for session_id in ("plain-1_A", "with space", "dots.and*>", "=padded", "é😀"):
        token = token_of(session_id)
        assert not set(token) & set(" .*>")
        assert session_of(token) == session_id
