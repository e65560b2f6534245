"""Plays a recorded conversation with the server and compares every message.

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

``UPDATE_TRANSCRIPTS=1 pytest tests/transcripts`` writes the server's lines anew, and what the protocol's page
quotes of them; read the difference before you keep it. A new file needs the client's lines, and behind each the
last message that the client waits for.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from tests.support.server import JsonObject, RunningServer, frame, running_server

Line: TypeAlias = tuple[str, Any]
"""``->``, ``<-`` or ``--``, and what goes with it."""

FOLDER: Final = Path(__file__).parent
UPDATE: Final = bool(os.environ.get("UPDATE_TRANSCRIPTS"))

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_FIGURE: Final = re.compile(r"duration|timestamp|tokenLimit|\w*(?:Tokens|Ms|Bytes)")
_VERSION_KEYS: Final = ("version", "copilotVersion")
_BARRIER: Final = "barrier"


def transcripts() -> list[Path]:
    """All recorded conversations."""
    return sorted(FOLDER.glob("*.jsonl"))


def read(path: Path) -> list[Line]:
    """The lines of a transcript."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [next(iter(line.items())) for line in lines]


async def check(path: Path, folder: Path) -> None:
    """Play ``path`` with a server whose files are in ``folder``: it sends what is recorded, and nothing else."""
    recorded = read(path)
    played = await play(recorded, folder)
    if UPDATE:
        write(path, played)
    else:
        difference = "\n".join(
            difflib.unified_diff(encoded(recorded), encoded(played), "recorded", "played", lineterm="", n=1)
        )
        assert played == recorded, f"{path.name} (UPDATE_TRANSCRIPTS=1 writes it anew):\n{difference}"


def encoded(lines: list[Line]) -> list[str]:
    """The lines as they stand in a file."""
    return [json.dumps({direction: message}, ensure_ascii=False) for direction, message in lines]


def write(path: Path, lines: list[Line]) -> None:
    """Make a transcript of ``lines``."""
    path.write_text("".join(f"{line}\n" for line in encoded(lines)), encoding="utf-8")


async def play(lines: list[Line], folder: Path) -> list[Line]:
    """Send what the client sends in ``lines``, and return all that was sent, from there and from here."""
    seen = _Placeholders(folder)
    out: list[Line] = []
    for process in _processes(lines):
        async with running_server(folder, handshake=False) as server:
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
        unread = client.news()
        assert not unread, f"nobody waits for what was sent last: {unread}"
    return out


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

    def __init__(self, server: RunningServer, seen: _Placeholders) -> None:
        self._wire = server.wire
        self._seen = seen
        self._read = 0
        self._barriers = 0

    async def send(self, message: JsonObject) -> None:
        await self._wire.send(frame({"jsonrpc": "2.0", **self._seen.put_in(message)}))

    async def receive(self, expected: list[JsonObject]) -> list[JsonObject]:
        """What is new when the last of ``expected`` has come, or something like it."""
        last = _kind(expected[-1])
        count = sum(_kind(one) == last for one in expected)

        def fits(_message: JsonObject) -> bool:
            return sum(_kind(one) == last for one in self._wire.messages[self._read :]) >= count

        await self._wire.until(fits, since=self._read, what=f"message {last} to end with")
        # Whatever the server had to say before it has said by the time it answers this.
        self._barriers += 1
        barrier = f"{_BARRIER}-{self._barriers}"
        await self._wire.send(frame({"jsonrpc": "2.0", "id": barrier, "method": "ping"}))
        await self._wire.response(barrier)
        return self.news()

    def news(self) -> list[JsonObject]:
        """The messages since the last time, as they stand in a transcript."""
        new = self._wire.messages[self._read :]
        self._read += len(new)
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


def _kind(message: JsonObject) -> tuple[Any, ...]:
    """What a message is, whatever it says."""
    if "method" not in message:
        return ("answer to", message.get("id"))
    if message["method"] == "session.event":
        return ("event", message["params"]["event"]["type"])
    return ("call of", message["method"])
