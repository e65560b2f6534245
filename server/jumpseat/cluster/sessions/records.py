"""The records of a session: messages on its subject, from which its folder can be made again.

A message holds events (lines of JSON), the new content of a file, the cut of the log at an event, or the claim of a
new owner. Its header ``Jumpseat-Kind`` names the kind; content that is too large for one message continues in the
next. Files above :data:`LARGE_BYTES` are objects, which a record names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.cluster.nats.connection import Stored
from jumpseat.errors import StoreError
from jumpseat.store.session.event_log import parse_record
from jumpseat.system.file_trees import delete_folder, walk
from jumpseat.system.private_files import create_private_folder, owner_only

Kind: TypeAlias = Literal["events", "file", "append", "object", "remove", "cut", "claim", "several"]

KIND: Final = "Jumpseat-Kind"
EPOCH: Final = "Jumpseat-Epoch"
NAME: Final = "Jumpseat-Name"
MORE: Final = "Jumpseat-More"
PART: Final = "Jumpseat-Part"
VERSION: Final = "Jumpseat-Version"
FORMAT: Final = "1"
"""Increased when earlier versions must not open a session with such records. Kinds that they may skip keep it."""
LARGE_BYTES: Final = 128 << 10
LOG: Final = "events.jsonl"


class Record(Struct, frozen=True):
    """One change of a session. ``name`` is that of a file; ``data`` is its content, lines of events, or an id."""

    kind: Kind
    data: bytes
    name: str = ""

    def headers(self, epoch: int, part: int = 0, *, more: bool = False) -> dict[str, str]:
        """Return the headers of a message with this record, or with a part of it."""
        headers = {KIND: self.kind, EPOCH: str(epoch), VERSION: FORMAT}
        if self.name:
            # Headers are ASCII.
            headers[NAME] = json.dumps(self.name)
        if part:
            headers[PART] = str(part)
        if more:
            headers[MORE] = "1"
        return headers


class Content(Struct):
    """A session as its records describe it.

    ``objects`` are the names of the objects with large files; ``files`` has what was appended to them since.
    """

    events: list[bytes] = field(default_factory=list[bytes])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    objects: dict[str, str] = field(default_factory=dict[str, str])
    epoch: int = 0
    seq: int = 0

    @property
    def exists(self) -> bool:
        """Return whether anything was ever logged."""
        return bool(self.events)


class Folder:
    """Applies the records of a session in their order."""

    def __init__(self) -> None:
        self.content = Content()
        self._part: list[bytes] = []

    def add(self, message: Stored) -> None:
        """Apply a message.

        Raises:
            StoreError: a later version, whose records this one cannot read, has stored it.
        """
        content, headers = self.content, message.headers
        if (version := headers.get(VERSION, FORMAT)) != FORMAT:
            raise StoreError(
                f"a later version of jumpseat has stored the session, with records of format {version}"
            )
        content.seq = message.seq
        content.epoch = max(content.epoch, int(headers.get(EPOCH) or 0))
        kind = headers.get(KIND)
        if kind == "claim":
            # What the owner before has not completed.
            self._part.clear()
            return
        number = int(headers.get(PART) or 0)
        if number == 0:
            self._part.clear()
        elif number != len(self._part):
            # The rest of what was never complete.
            return
        self._part.append(message.data)
        if MORE in headers:
            return
        data = b"".join(self._part)
        self._part.clear()
        name = json.loads(headers.get(NAME, '""'))
        self._apply(kind, name, data)

    def _apply(self, kind: str | None, name: str, data: bytes) -> None:
        content = self.content
        match kind:
            case "several":
                for record in separated(data):
                    self._apply(record.kind, record.name, record.data)
            case "events":
                content.events += data.splitlines(keepends=True)
            case "file":
                content.files[name] = data
                content.objects.pop(name, None)
            case "append":
                content.files[name] = content.files.get(name, b"") + data
            case "object":
                content.objects[name] = data.decode()
                content.files.pop(name, None)
            case "remove":
                content.files.pop(name, None)
                content.objects.pop(name, None)
            case "cut":
                cut(content.events, data.decode())
            case _:
                # Of a later version, which has decided that others may leave it out.
                pass


def cut(lines: list[bytes], event_id: str) -> None:
    """Remove the event with an id and all later ones."""
    for place in range(len(lines) - 1, -1, -1):
        if event_id.encode() in lines[place]:
            record = parse_record(lines[place])
            if record is not None and record.get("id") == event_id:
                del lines[place:]
                return


def is_large(record: Record) -> bool:
    """Return whether a file becomes an object: the records of a session are read as a whole."""
    return record.kind == "file" and len(record.data) > LARGE_BYTES


def joined(records: Sequence[Record]) -> Record:
    """Return one record of several; neighbouring events become one."""
    if len(records) == 1:
        return records[0]
    merged: list[Record] = []
    for kind, group in groupby(records, key=lambda record: record.kind):
        if kind == "events":
            merged.append(Record("events", b"".join(record.data for record in group)))
        else:
            merged += group
    if len(merged) == 1:
        return merged[0]
    chunks: list[bytes] = []
    for record in merged:
        head = {"kind": record.kind, "name": record.name, "bytes": len(record.data)}
        chunks += (json.dumps(head).encode(), b"\n", record.data)
    return Record("several", b"".join(chunks))


def separated(data: bytes) -> Iterable[Record]:
    """Yield the records of which one consists."""
    start = 0
    while start < len(data):
        end = data.index(b"\n", start) + 1
        head = json.loads(data[start:end])
        start = end + head["bytes"]
        yield Record(head["kind"], data[end:start], head["name"])


def parts(data: bytes, most_bytes: int) -> Iterable[tuple[bytes, bool]]:
    """Yield the parts of a content that fit into messages, each with whether more follow."""
    if len(data) <= most_bytes:
        yield data, False
        return
    for start in range(0, len(data), most_bytes):
        yield data[start : start + most_bytes], start + most_bytes < len(data)


def object_name(session_id: str, epoch: int, seq: int, file: str) -> str:
    """Return the name of the object with a large file, whose record follows the message ``seq`` of the session."""
    return f"{session_id}/{epoch}-{seq}-{file}"


def records_of(folder: Path) -> list[Record]:
    """Return the records that make a session's folder."""
    records: list[Record] = []
    for parent, _, names in walk(folder):
        for name in sorted(names):
            path = Path(parent, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not path.is_file() or relative.endswith((".lock", ".tmp")):
                continue
            if relative != LOG:
                records.append(Record("file", path.read_bytes(), relative))
    # A session without a log does not exist.
    if (log := folder / LOG).is_file():
        records += [Record("events", line) for line in log.read_bytes().splitlines(keepends=True)]
    return records


def write_folder(folder: Path, content: Content, objects: dict[str, bytes]) -> None:
    """Make a session's folder again from its content and the contents of its large files.

    Raises:
        StoreError: the stored name of a file leads out of the folder.
    """
    files = {name: objects.get(name, b"") + content.files.get(name, b"") for name in {**content.files, **objects}}
    if content.events:
        files[LOG] = b"".join(content.events)
    delete_folder(folder)
    create_private_folder(folder)
    for name, data in files.items():
        path = folder / name
        # Names come from the records, which others may have written.
        if ".." in path.relative_to(folder).parts:
            raise StoreError(f"invalid name of a stored file: {name!r}")
        if path.parent != folder:
            create_private_folder(path.parent)
        with open(path, "wb", opener=owner_only) as file:
            file.write(data)
