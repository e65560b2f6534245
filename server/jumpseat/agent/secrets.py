"""Mask secrets in events, logs and errors: values that clients have registered."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.model import BlockCompleted, Completed, ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta
from jumpseat.errors import InvalidRequestError

MASK: Final = "[redacted]"
MIN_LENGTH: Final = 4
MOST_CHARS: Final = 16 * 1024
"""The characters that a client registers at once."""
# Tools print values of several lines, such as keys, line by line: each line is a secret by itself.
MIN_LINE_LENGTH: Final = 16

GROUP_VALUES: Final = 200
"""The values that one pattern finds."""
PREFIX_CHARS: Final = 32
"""The characters of a value that are in the pattern: it takes a microsecond to compile each of them."""

T = TypeVar("T")


class _Group(Struct):
    """Secrets that one pattern finds by their first characters, the longest first."""

    values: list[str]
    prefixes: set[str]
    pattern: re.Pattern[str]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where secrets begin and end in a text, from left to right, without those inside of others."""
        at = 0
        while (found := self.pattern.search(text, at)) is not None:
            start = found.start()
            value = next((value for value in self.values if text.startswith(value, start)), None)
            at = start + (1 if value is None else len(value))
            if value is not None:
                yield start, at


def _group(values: Iterable[str]) -> _Group:
    # Longest first: otherwise a secret that is a prefix of another would leave the rest of it visible.
    ordered = sorted(values, key=len, reverse=True)
    prefixes = {value[:PREFIX_CHARS] for value in ordered}
    return _Group(ordered, prefixes, re.compile("|".join(map(re.escape, sorted(prefixes, key=len, reverse=True)))))


class Secrets:
    """The secrets of the process, shared by all sessions. Calling it masks a string; it is false while empty.

    Data written or sent before a secret was added stays unmasked.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        # Only the pattern of the last group is made anew for a value: a server may get a token for each session.
        self._groups: list[_Group] = []

    def __bool__(self) -> bool:
        return bool(self._known)

    def register(self, values: Sequence[str]) -> None:
        """Mask the values of a client from now on. See :meth:`add`.

        Raises:
            InvalidRequestError: a value is too short, or there are too many.
        """
        if sum(map(len, values)) > MOST_CHARS:
            raise InvalidRequestError(f"the values of one request may have {MOST_CHARS} characters together")
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """Mask these values from now on, in plain and in JSON-escaped form. Empty values are ignored.

        Raises:
            InvalidRequestError: a value is so short that it would occur by chance; no value is added then.
        """
        found: set[str] = set()
        for value in filter(None, (value.strip() for value in values)):
            if len(value) < MIN_LENGTH:
                raise InvalidRequestError(f"a secret must have at least {MIN_LENGTH} characters")
            found.update((value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]))
            # No key is longer, and the lines of a book would take long to look for.
            lines = (line.strip() for line in value.splitlines()) if len(value) <= MOST_CHARS else ()
            found.update(line for line in lines if len(line) >= MIN_LINE_LENGTH)
        new = sorted(found - self._known)
        self._known.update(new)
        for at in range(0, len(new), GROUP_VALUES):
            values = new[at : at + GROUP_VALUES]
            if self._groups and len(self._groups[-1].values) + len(values) <= GROUP_VALUES:
                values = [*self._groups.pop().values, *values]
            self._groups.append(_group(values))

    def __call__(self, text: str) -> str:
        parts: list[str] = []
        done = 0
        for start, end in self._spans(text):
            parts += (text[done:start], MASK)
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def mask(self, value: T) -> T:
        """Mask all strings in ``value`` except ids in dataclasses; return ``value`` itself if nothing is masked."""
        return cast("T", self._mask_value(value)) if self._known else value

    def split(self, text: str) -> tuple[str, str]:
        """Split ``text`` into a masked part and an unmasked rest that may be the beginning of a secret."""
        done = 0
        for start, end in self._spans(text):
            # The leftmost secret wins, even if another one begins within it.
            if (begun := self._begun(text, done)) <= start:
                return self(text[:begun]), text[begun:]
            done = end
        begun = self._begun(text, done)
        return self(text[:begun]), text[begun:]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where secrets begin and end in a text; those that overlap are one."""
        if len(self._groups) == 1:
            return list(self._groups[0].spans(text))
        joined: list[tuple[int, int]] = []
        for start, end in sorted(span for group in self._groups for span in group.spans(text)):
            if joined and start < joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        return joined

    def _begun(self, text: str, start: int) -> int:
        """Return the first place from which on the text is the beginning of a secret; the length without one."""
        best = len(text)
        for value in (value for group in self._groups for value in group.values):
            head = value[:MIN_LENGTH]
            place = text.find(head, max(start, len(text) - len(value) + 1), best + len(head))
            while 0 <= place < best and not value.startswith(text[place:]):
                place = text.find(head, place + 1, best + len(head))
            best = place if 0 <= place < best else best
            # Only a part of the head may be there.
            for place in range(max(start, len(text) - len(head) + 1), best):
                if value.startswith(text[place:]):
                    best = place
                    break
        return best

    def mask_records(self, records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Mask events in wire form, which may have been logged before a secret was added."""
        if not self._known:
            return list(records)
        return [{**record, "data": self.mask(record.get("data"))} for record in records]

    def _mask_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            masked = [self._mask_value(item) for item in cast("list[Any]", value)]
            return masked if masked != value else cast("list[Any]", value)
        if isinstance(value, dict):
            record = {
                self._mask_value(key): self._mask_value(item) for key, item in cast("dict[Any, Any]", value).items()
            }
            return record if record != value else cast("dict[Any, Any]", value)
        if isinstance(value, Struct):
            changes = {
                name: masked
                for name in value.__struct_fields__
                if not name.endswith("_id")
                and (masked := self._mask_value(old := getattr(value, name))) is not old
                and masked != old
            }
            return replace(value, **changes) if changes else value
        return value


class MaskedStream:
    """Masks a text that arrives in pieces, including secrets split across pieces."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that is safe to show; a possible beginning of a secret is held back."""
        safe, self._held = self._secrets.split(self._held + piece)
        return safe

    def flush(self) -> str:
        """Return the text held back, at the end of the stream."""
        rest, self._held = self._held, ""
        return self._secrets(rest)


Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


class MaskedDeltas:
    """Masks the deltas of one answer. A possible beginning of a secret is held back."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        # By the type of the delta and, for deltas of a tool call, its id.
        self._streams: dict[tuple[type[Delta], str], tuple[MaskedStream, Delta]] = {}

    def feed(self, delta: Delta) -> Delta:
        """Return the delta with all text that is safe to show by now."""
        key = (type(delta), delta.id if isinstance(delta, ToolCallDelta) else "")
        stream = self._streams[key][0] if key in self._streams else MaskedStream(self._secrets)
        self._streams[key] = (stream, delta)
        return _with_text(delta, stream.feed(delta.arguments if isinstance(delta, ToolCallDelta) else delta.text))

    def flush(self) -> Iterator[Delta]:
        """Yield deltas with the text held back, at the end of the answer."""
        for stream, delta in self._streams.values():
            if text := stream.flush():
                yield _with_text(delta, text)


class MaskedEvents:
    """The events of one answer, with secrets masked. Implements the iterator of a model's stream."""

    def __init__(self, events: AsyncIterator[ModelEvent], secrets: Secrets) -> None:
        self._events = events
        self._secrets = secrets
        self._deltas = MaskedDeltas(secrets)
        self._ready: deque[ModelEvent] = deque()

    def __aiter__(self) -> MaskedEvents:
        return self

    async def __anext__(self) -> ModelEvent:
        while not self._ready:
            event = await anext(self._events)
            if isinstance(event, Completed):
                self._ready.extend(self._deltas.flush())
                self._ready.append(self._secrets.mask(event))
            elif isinstance(event, BlockCompleted):
                self._ready.append(self._secrets.mask(event))
            else:
                delta = self._deltas.feed(event)
                # The first delta of a tool call may have no text, others only if all of it is held back.
                if isinstance(delta, ToolCallDelta) or delta.text:
                    self._ready.append(delta)
        return self._ready.popleft()


def _with_text(delta: Delta, text: str) -> Delta:
    return replace(delta, arguments=text) if isinstance(delta, ToolCallDelta) else replace(delta, text=text)
