"""The messages of a server in the streams whose order counts, and the first place where a run leaves its log.

Between two channels, the order depends on the moment; within one, it does not. Deltas are compared as their joined
text, because their limits depend on the moment, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from jumpseat_protocol.json_values import as_object, as_text
from jumpseat_testkit.client_log import Entry, JsonObject
from jumpseat_testkit.counterparts import Counterparts
from jumpseat_testkit.patterns import preview

_DELTAS: Final = frozenset(("chat/delta", "chat/reasoning", "chat/toolCallDelta"))
_OF_THE_MOMENT: Final = frozenset(
    (
        "root/agentsChanged",
        "root/progress",
        "root/sessionSummaryChanged",
        "session/customizationsChanged",
        "session/customizationUpdated",
        "session/customizationRemoved",
        "session/mcpServerStateChanged",
        "session/ready",
    )
)
"""Actions and notifications that depend on the machine, the configuration or the moment: they may come or not."""


class Item(Struct):
    """A message of a stream, or joined deltas, which are in several lines."""

    line: int
    message: JsonObject
    is_whole: bool = True

    @property
    def text(self) -> str:
        """The joined text of deltas."""
        return as_text(_action(self.message).get("content"))


class Deviation(Struct, frozen=True):
    """The first line of a stream that the run does not have, in a description for people."""

    line: int
    text: str


class Need(Struct, frozen=True):
    """How much of a stream a client has seen: its items, and the characters of the last one if that is a delta."""

    items: int
    chars: int


class _Stream(Struct):
    logged: list[Item] = field(default_factory=list[Item])
    got: list[JsonObject] = field(default_factory=list[JsonObject])
    compared: int = 0


class Streams:
    """The streams of a log, and of the run so far."""

    def __init__(self, entries: Iterable[Entry], counterparts: Counterparts) -> None:
        self.deviation: Deviation | None = None
        self.may_go_on = False
        """Set when the client is done: a log may end before the server has sent everything."""
        self.needs: dict[int, dict[str, Need]] = {}
        """What the client has seen before each of its lines, of the streams that went on since its line before."""
        self._counterparts = counterparts
        self._streams: dict[str, _Stream] = {}
        self.end: dict[str, Need] = {}
        """What the client has seen after its last line."""
        for entry in entries:
            if entry.from_client:
                self.needs[entry.line], self.end = self.end, {}
            elif (name := stream_of(entry.message)) is not None:
                stream = self._streams.setdefault(name, _Stream())
                _append_logged(stream.logged, Item(entry.line, entry.message, entry.is_whole))
                self.end[name] = Need(len(stream.logged), len(stream.logged[-1].text))

    def receive(self, message: JsonObject) -> None:
        """Take a message of the server, and compare it with that of the log."""
        if (name := stream_of(message)) is None:
            return
        stream = self._streams.setdefault(name, _Stream())
        if stream.got and (joined := _joined(stream.got[-1], message)) is not None:
            stream.got[-1] = joined
        else:
            self._compare(name, stream, len(stream.got))
            stream.got.append(message)
            if not _is_delta(message):
                self._compare(name, stream, len(stream.got))

    def has(self, needs: Mapping[str, Need]) -> bool:
        """Return whether all of this was received."""
        return all(self._has(self._streams[name], need) for name, need in needs.items())

    def _has(self, stream: _Stream, need: Need) -> bool:
        if len(stream.got) != need.items:
            return len(stream.got) > need.items
        last = stream.got[-1]
        return not _is_delta(last) or len(as_text(_action(last).get("content"))) >= need.chars

    def finish(self) -> None:
        """Compare the rest, at the end of the run."""
        for name, stream in self._streams.items():
            self._compare(name, stream, len(stream.got))
            if len(stream.got) < len(stream.logged):
                missing = stream.logged[len(stream.got)]
                self._deviate(missing.line, f"the server did not send {described(missing.message)}")

    def _compare(self, name: str, stream: _Stream, end: int) -> None:
        for place in range(stream.compared, end):
            got = stream.got[place]
            if place >= len(stream.logged):
                if self.may_go_on:
                    break
                behind = stream.logged[-1].line if stream.logged else 0
                self._deviate(behind, f"the server also sent {described(got)}\n  {preview(got, 1000)}")
                continue
            logged = stream.logged[place]
            if described(logged.message) != described(got):
                text = f"expected {described(logged.message)}, got {described(got)}\n  {preview(got, 1000)}"
                self._deviate(logged.line, text)
            elif logged.is_whole and (found := self._counterparts.differences(logged.message, got)):
                text = "".join(f"\n  {difference}" for difference in found)
                self._deviate(logged.line, f"{described(logged.message)}:{text}")
        stream.compared = max(stream.compared, end)

    def _deviate(self, line: int, text: str) -> None:
        if self.deviation is None or line < self.deviation.line:
            self.deviation = Deviation(line, text)


def stream_of(message: JsonObject) -> str | None:
    """Return the name of the stream that a message is in, ``None`` if it may come or not."""
    params = as_object(message.get("params"))
    if "method" not in message:
        return f"response {message.get('id')!r}"
    kind = as_text(_action(message).get("type")) or as_text(message["method"])
    if kind in _OF_THE_MOMENT:
        return None
    if message["method"] == "action":
        return f"{'refusals of ' if 'rejectionReason' in params else ''}{params.get('channel')}"
    return f"{message['method']} {params.get('session') or ''}"


def described(message: Mapping[str, Any]) -> str:
    """Describe a message of the server in a few words."""
    params = as_object(message.get("params"))
    if "method" not in message:
        return f"the {'error' if 'error' in message else 'result'} of request {message.get('id')!r}"
    if message["method"] != "action":
        return str(message["method"])
    refused = "the refusal of " if "rejectionReason" in params else ""
    return f"{refused}{_action(message).get('type')} on {params.get('channel')}"


def _action(message: Mapping[str, Any]) -> JsonObject:
    return as_object(as_object(message.get("params")).get("action"))


def _is_delta(message: JsonObject) -> bool:
    return _action(message).get("type") in _DELTAS


def _append_logged(items: list[Item], item: Item) -> None:
    if items and (joined := _joined(items[-1].message, item.message)) is not None:
        items[-1] = Item(items[-1].line, joined, items[-1].is_whole and item.is_whole)
    else:
        items.append(item)


def _joined(before: JsonObject, message: JsonObject) -> JsonObject | None:
    """Return two deltas of the same part or call as one, ``None`` if they are none."""
    one, other = _action(before), _action(message)
    if not _is_delta(message) or {**one, "content": ""} != {**other, "content": ""}:
        return None
    action = {**other, "content": as_text(one.get("content")) + as_text(other.get("content"))}
    return {**message, "params": {**as_object(message.get("params")), "action": action}}
