"""Play a recorded conversation against a server and compare every message.

A transcript is a JSON Lines file, in the order of the conversation:

==================== =====================================================================================
line                 meaning
==================== =====================================================================================
``{"->": message}``  a message of the client
``{"<-": message}``  a message of the server, sent before the client's next message
``{"--": "kill"}``   the server is killed, and another is started with the same files
==================== =====================================================================================

The messages are without ``jsonrpc``. Values that differ between runs are replaced by placeholders: ``<id-1>`` for
the first id of the file, ``<id-2>`` for the second; ``<time>``, ``<folder>`` and ``<version>``; ``<n>`` for token
counts, sizes, durations and the numbers of actions. The client's messages may have ``<folder>``, and ids that the
server has sent before.

``jumpseat script --update FILE`` replaces the server's lines; review the diff. A new file needs the client's
messages, each followed by the last message of the server to wait for.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.differences import Line, message_kind
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.protocols import PROTOCOLS, Protocol
from jumpseat_testkit.target import Target, WireMessage, running_server

JsonObject: TypeAlias = dict[str, Any]

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_MEASUREMENT_KEY: Final = re.compile(r"duration|timestamp|tokenLimit|fromSeq|[sS]erverSeq|\w*(?:Tokens|Ms|Bytes)")
_VERSION_KEYS: Final = ("version", "copilotVersion")
_BARRIER: Final = "barrier"
_DIRECTIONS: Final = ("->", "<-", "--")
_WAIT_S: Final = 10.0


def is_transcript(path: Path) -> bool:
    """Return whether the file is a transcript rather than a script."""
    try:
        with path.open(encoding="utf-8") as file:
            return path.suffix == ".jsonl" and next(iter(json.loads(file.readline() or "{}")), "") in _DIRECTIONS
    except (OSError, ValueError):
        return False


def read(path: Path) -> list[Line]:
    """Read the lines of a transcript.

    Raises:
        ScriptError: the file is not a transcript.
    """
    out: list[Line] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            ((direction, message),) = json.loads(line).items()
        except (ValueError, AttributeError):
            direction, message = "", None
        if direction not in _DIRECTIONS:
            raise ScriptError(f"{str(path)!r}, line {number}: expected an object with one field, ->, <- or --")
        out.append((direction, message))
    return out


def encode_lines(lines: list[Line]) -> list[str]:
    """Encode lines as JSON."""
    return [json.dumps({direction: message}, ensure_ascii=False) for direction, message in lines]


def write(path: Path, lines: list[Line]) -> None:
    """Write ``lines`` as a transcript."""
    path.write_text("".join(f"{line}\n" for line in encode_lines(lines)), encoding="utf-8")


class Playback(Struct):
    """A played conversation. ``problems`` are violations of the rules of every conversation."""

    lines: list[Line] = field(default_factory=list[Line])
    conversation: list[WireMessage] = field(default_factory=list[WireMessage])
    problems: list[str] = field(default_factory=list[str])
    stderr: str = ""


async def play_transcript(
    lines: list[Line],
    folder: Path,
    command: Sequence[str],
    playback: Playback | None = None,
    protocol: Protocol = PROTOCOLS["copilot"],
) -> list[Line]:
    """Send the client's messages in ``lines`` and return the played conversation.

    ``playback`` is filled, too, even if the conversation ends early. ``protocol`` is that of the conversation.

    Raises:
        TranscriptError: an expected message was not received, or messages followed the last recorded one.
    """
    placeholders = _Placeholders(folder)
    playback = playback or Playback()
    out = playback.lines
    for process in _processes(lines):
        async with (
            running_server(command, folder, protocol=protocol) as server,
            _collect_traffic(server, playback),
        ):
            client = _Client(server, placeholders, protocol)
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
            if unread := client.take_unread():
                raise TranscriptError(f"unexpected messages after the last recorded one: {unread}")
    return out


@asynccontextmanager
async def _collect_traffic(server: Target, playback: Playback) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        playback.conversation += server.traffic
        playback.problems += server.problems
        playback.stderr += server.stderr


class TranscriptError(Exception):
    """The played conversation differs from the recorded one."""


def _processes(lines: list[Line]) -> Iterator[list[Line]]:
    """Yield the lines of each server process."""
    process: list[Line] = []
    for line in lines:
        process.append(line)
        if line[0] == "--":
            yield process
            process = []
    yield process


class _Client:
    """The client of a transcript, connected to one server process."""

    def __init__(self, server: Target, placeholders: _Placeholders, protocol: Protocol) -> None:
        self._server = server
        self._protocol = protocol
        self._placeholders = placeholders
        self._read = 0
        self._barriers = 0

    async def send(self, message: JsonObject) -> None:
        await self._server.send(self._placeholders.restore(message))

    async def receive(self, expected: list[JsonObject]) -> list[JsonObject]:
        """Return all unread messages after a message of the kind of the last ``expected`` one was received."""
        last = message_kind(expected[-1])
        count = sum(message_kind(message) == last for message in expected)
        await self._until(
            lambda: sum(message_kind(message) == last for message in self._unread()) >= count,
            " ".join(map(str, last)),
        )
        # The response to a ping follows all messages that the server had still to send.
        self._barriers += 1
        barrier = f"{_BARRIER}-{self._barriers}"
        await self._server.send(
            {"id": barrier, "method": self._protocol.ping.method, "params": dict(self._protocol.ping.params)}
        )
        await self._until(
            lambda: any(message.get("id") == barrier for message in self._unread()), "response to a ping"
        )
        return self.take_unread()

    async def _until(self, done: Callable[[], bool], what: str) -> None:
        if not await self._server.until(done, _WAIT_S):
            came = ", ".join(" ".join(map(str, message_kind(message))) for message in self._unread()) or "nothing"
            note = f"; end of its stderr: {stderr[-500:]}" if (stderr := self._server.stderr.strip()) else ""
            raise TranscriptError(
                f"the server sent no {what} within {_WAIT_S:g} s{note}\n  received instead: {came}"
            )

    def _unread(self) -> list[JsonObject]:
        return [as_object(message) for message in self._server.incoming(self._read)]

    def take_unread(self) -> list[JsonObject]:
        """Return the messages since the last call, as in a transcript."""
        new, self._read = self._unread(), len(self._server.traffic)
        return [
            self._placeholders.replace(message)
            for message in new
            if not str(message.get("id")).startswith(_BARRIER)
        ]


class _Placeholders(Struct):
    """Placeholders for values that differ between runs."""

    folder: Path
    _names: dict[str, str] = field(default_factory=dict[str, str])

    def replace(self, message: JsonObject) -> JsonObject:
        """Replace values that differ between runs by placeholders."""
        return {name: self._mask_value("", value) for name, value in message.items() if name != "jsonrpc"}

    def restore(self, value: Any) -> Any:
        """Replace the placeholders in ``value`` by their values."""
        if isinstance(value, str):
            for real, name in [*self._names.items(), (str(self.folder), "<folder>")]:
                value = value.replace(name, real)
            return value
        if isinstance(value, list):
            return [self.restore(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {name: self.restore(item) for name, item in cast("JsonObject", value).items()}
        return value

    def _mask_value(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            if key in _VERSION_KEYS:
                return "<version>"
            value = _TIME.sub("<time>", value.replace(str(self.folder), "<folder>"))
            return _ID.sub(lambda found: self._names.setdefault(found[0], f"<id-{len(self._names) + 1}>"), value)
        if isinstance(value, int) and not isinstance(value, bool) and _MEASUREMENT_KEY.fullmatch(key):
            return "<n>"
        if isinstance(value, list):
            return [self._mask_value(key, item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {name: self._mask_value(name, item) for name, item in cast("JsonObject", value).items()}
        return value
