"""Plays a recorded conversation with a server and compares every message.

A transcript is a file of JSON lines, in the order in which things happened:

==================== =====================================================================================
line                 what it is
==================== =====================================================================================
``{"->": message}``  the client sends it
``{"<-": message}``  the server must have sent it, before the client sends anything more
``{"--": "kill"}``   the server is killed, and another one is started with the same files
==================== =====================================================================================

``jsonrpc`` is left out of the messages. What differs from run to run is replaced: ``<id-1>`` is the first id of
the file and always the same one; then there are ``<time>``, ``<folder>``, ``<version>``, and ``<n>`` for token
counts, sizes and durations. The client's lines say ``<id-1>`` and ``<folder>`` too, for what the server has told
before.

``jumpseat script --update FILE`` writes the server's lines anew; read the difference before you keep it. A new file
needs the client's lines, and behind each the last message that the client waits for.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from jumpseat.adapters.wire import as_object
from jumpseat.script.differences import Line, kind
from jumpseat.script.patterns import ScriptError
from jumpseat.script.target import Heard, Target, running

JsonObject: TypeAlias = dict[str, Any]

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_FIGURE: Final = re.compile(r"duration|timestamp|tokenLimit|\w*(?:Tokens|Ms|Bytes)")
_VERSION_KEYS: Final = ("version", "copilotVersion")
_BARRIER: Final = "barrier"
_DIRECTIONS: Final = ("->", "<-", "--")
_WAIT_S: Final = 10.0


def is_transcript(path: Path) -> bool:
    """Whether the file is a transcript, and not a script."""
    try:
        with path.open(encoding="utf-8") as file:
            return path.suffix == ".jsonl" and next(iter(json.loads(file.readline() or "{}")), "") in _DIRECTIONS
    except (OSError, ValueError):
        return False


def read(path: Path) -> list[Line]:
    """The lines of a transcript.

    Raises:
        ScriptError: the file is none.
    """
    out: list[Line] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            ((direction, message),) = json.loads(line).items()
        except (ValueError, AttributeError):
            direction, message = "", None
        if direction not in _DIRECTIONS:
            raise ScriptError(f"{str(path)!r}, line {number}: not a line of a transcript")
        out.append((direction, message))
    return out


def encoded(lines: list[Line]) -> list[str]:
    """The lines as they stand in a file."""
    return [json.dumps({direction: message}, ensure_ascii=False) for direction, message in lines]


def write(path: Path, lines: list[Line]) -> None:
    """Make a transcript of ``lines``."""
    path.write_text("".join(f"{line}\n" for line in encoded(lines)), encoding="utf-8")


@dataclass
class Played:
    """A conversation as it went. ``problems`` are what a server does wrong in any of them."""

    lines: list[Line] = field(default_factory=list[Line])
    conversation: list[Heard] = field(default_factory=list[Heard])
    problems: list[str] = field(default_factory=list[str])
    stderr: str = ""


async def play_transcript(
    lines: list[Line], folder: Path, command: Sequence[str], played: Played | None = None
) -> list[Line]:
    """Send what the client sends in ``lines``, and return all that was sent, from there and from here.

    ``played`` has it too, with the rest, also where it ends early.

    Raises:
        TranscriptError: an expected message did not come, or more came than is recorded.
    """
    seen = _Placeholders(folder)
    played = played or Played()
    out = played.lines
    for process in _processes(lines):
        async with running(command, folder) as server, _told_of(server, played):
            client = _Client(server, seen)
            for direction, group in groupby(process, key=lambda line: line[0]):
                messages = [message for _, message in group]
                if direction == "->":
                    for message in messages:
                        await client.send(message)
                    out += [("->", message) for message in messages]
                elif direction == "<-":
                    out += [("<-", message) for message in await client.receive(messages)]
                else:
                    out.append(("--", "kill"))
                    await server.kill()
            if unread := client.news():
                raise TranscriptError(f"nobody waits for what was sent last: {unread}")
    return out


@asynccontextmanager
async def _told_of(server: Target, played: Played) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        played.conversation += server.heard
        played.problems += server.problems
        played.stderr += server.stderr


class TranscriptError(Exception):
    """The conversation went another way than it was recorded."""


def _processes(lines: list[Line]) -> Iterator[list[Line]]:
    """The lines of one server process after the other."""
    process: list[Line] = []
    for line in lines:
        process.append(line)
        if line[0] == "--":
            yield process
            process = []
    yield process


class _Client:
    """What a transcript does with one server process."""

    def __init__(self, server: Target, seen: _Placeholders) -> None:
        self._server = server
        self._seen = seen
        self._read = 0
        self._barriers = 0

    async def send(self, message: JsonObject) -> None:
        await self._server.send(self._seen.put_in(message))

    async def receive(self, expected: list[JsonObject]) -> list[JsonObject]:
        """What is new when the last of ``expected`` has come, or something like it."""
        last = kind(expected[-1])
        count = sum(kind(one) == last for one in expected)
        await self._until(lambda: sum(kind(one) == last for one in self._new()) >= count, " ".join(map(str, last)))
        # Whatever the server had to say before it has said by the time it answers this.
        self._barriers += 1
        barrier = f"{_BARRIER}-{self._barriers}"
        await self._server.send({"id": barrier, "method": "ping"})
        await self._until(lambda: any(one.get("id") == barrier for one in self._new()), "answer to a ping")
        return self.news()

    async def _until(self, done: Callable[[], bool], what: str) -> None:
        if not await self._server.until(done, _WAIT_S):
            came = ", ".join(" ".join(map(str, kind(one))) for one in self._new()) or "nothing"
            told = f"; its stderr ends with: {stderr[-500:]}" if (stderr := self._server.stderr.strip()) else ""
            raise TranscriptError(f"no {what} within {_WAIT_S:g} s{told}\n  what came instead: {came}")

    def _new(self) -> list[JsonObject]:
        return [as_object(one) for one in self._server.incoming(self._read)]

    def news(self) -> list[JsonObject]:
        """The messages since the last time, as they stand in a transcript."""
        new, self._read = self._new(), len(self._server.heard)
        return [self._seen.replace(one) for one in new if not str(one.get("id")).startswith(_BARRIER)]


@dataclass
class _Placeholders:
    """What stands for what differs from run to run."""

    folder: Path
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def replace(self, message: JsonObject) -> JsonObject:
        """``message`` without what differs."""
        return {name: self._without("", value) for name, value in message.items() if name != "jsonrpc"}

    def put_in(self, value: Any) -> Any:
        """``value`` with the placeholders of known things replaced by them."""
        if isinstance(value, str):
            for real, name in [*self._names.items(), (str(self.folder), "<folder>")]:
                value = value.replace(name, real)
            return value
        if isinstance(value, list):
            return [self.put_in(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {name: self.put_in(one) for name, one in cast("JsonObject", value).items()}
        return value

    def _without(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            if key in _VERSION_KEYS:
                return "<version>"
            value = _TIME.sub("<time>", value.replace(str(self.folder), "<folder>"))
            return _ID.sub(lambda found: self._names.setdefault(found[0], f"<id-{len(self._names) + 1}>"), value)
        if isinstance(value, int) and not isinstance(value, bool) and _FIGURE.fullmatch(key):
            return "<n>"
        if isinstance(value, list):
            return [self._without(key, one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {name: self._without(name, one) for name, one in cast("JsonObject", value).items()}
        return value
