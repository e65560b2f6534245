"""The messages of a conversation as an adapter has written them, kept for the next request.

Each request repeats the whole conversation. Without this memory, its translation and encoding would take longer
with every turn. What is kept is bounded by a budget of the process: the sessions that called no model for the
longest time lose it first, and their next request is written anew.
"""

from __future__ import annotations

import itertools
import json
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any, Final, TypeAlias, TypeVar, cast

import orjson

from jumpseat.agent.blocks import JsonObject, Message

MIN_MESSAGES: Final = 64
"""Shorter conversations are written anew faster than it is worth the memory."""

BUDGET_BYTES: Final = 32 * 1024 * 1024
"""The size of everything that a process keeps."""

MAX_TAIL: Final = 64
"""The number of messages that are not yet joined with the ones before them."""

MIN_PART_BYTES: Final = 1024
"""Shorter written values are copied faster than they are handled one by one."""

_PLACE_TEXT: Final = b"\0"
_PLACE: Final = orjson.Fragment(_PLACE_TEXT)
"""The place of a written value; JSON has no such character, in strings neither."""

MAX_FORMS: Final = 4
"""The number of wires, or variants of one, for which a session keeps its messages."""


F = TypeVar("F", bound="_Form")


class WrittenParts:
    """The JSON of one or several elements of an array, without brackets."""

    __slots__ = ("json",)

    def __init__(self, encoded: bytes) -> None:
        self.json = encoded

    def with_field(self, name: str, value: JsonObject) -> WrittenParts:
        """Return a copy in which the last element, an object that is not empty, has one field more."""
        return WrittenParts(b"%b,%b:%b}" % (self.json[:-1], orjson.dumps(name), orjson.dumps(value)))

    def read(self) -> list[Any]:
        """Return the elements."""
        return cast("list[Any]", json.loads(b"[%b]" % self.json))


class WrittenValue:
    """The JSON of one value."""

    __slots__ = ("json",)

    def __init__(self, encoded: bytes) -> None:
        self.json = encoded

    def read(self) -> Any:
        """Return the value; each call makes another one."""
        return json.loads(self.json)


def encode(value: Any) -> bytes:
    """Encode a JSON value, in which arrays may have :class:`WrittenParts`, and all may have :class:`WrittenValue`.

    Raises:
        TypeError, ValueError, RecursionError: the value is not JSON.
    """
    return b"".join(encode_in_parts(value))


def encode_in_parts(value: Any) -> list[bytes]:
    """Encode a JSON value as :func:`encode` does, without copies of the larger written values in it.

    Raises:
        TypeError, ValueError, RecursionError: the value is not JSON.
    """
    written: list[bytes] = []

    def default(value: Any) -> orjson.Fragment:
        if not isinstance(value, WrittenParts | WrittenValue):
            raise TypeError(f"type is not JSON serializable: {type(value).__name__}")
        if len(value.json) < MIN_PART_BYTES:
            return orjson.Fragment(value.json)
        written.append(value.json)
        return _PLACE

    try:
        text = orjson.dumps(value, default=default, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # A lone surrogate in a tool's output, or an integer beyond 64 bits, must not end a session.
        return [json.dumps(plain(value), ensure_ascii=False).encode("utf-8", "replace")]
    if not written:
        return [text]
    *between, end = text.split(_PLACE_TEXT)
    return [*itertools.chain.from_iterable(zip(between, written, strict=True)), end]


def plain(value: Any) -> Any:
    """Copy a JSON value with all :class:`WrittenParts` and :class:`WrittenValue` in it replaced by objects."""
    if isinstance(value, WrittenValue):
        return value.read()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("JsonObject", value).items()}
    if not isinstance(value, list):
        return value
    items: list[Any] = []
    for item in cast("list[Any]", value):
        items += item.read() if isinstance(item, WrittenParts) else [plain(item)]
    return items


Write: TypeAlias = Callable[[Message], list[JsonObject]]
"""Writes one message; the result depends on the message alone."""


def write_anew(messages: Sequence[Message], write: Write) -> list[Any]:
    """Return all messages as elements of one array."""
    return [part for message in messages for part in write(message)]


class _Form:
    """The messages of a conversation in one form."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._written: list[WrittenParts | None] = []
        self.size = 0

    def each(self, messages: Sequence[Message], write: Write) -> list[WrittenParts | None]:
        """Return each message as it is written, ``None`` where nothing is."""
        self._update(messages, write)
        return self._written

    def _update(self, messages: Sequence[Message], write: Write) -> None:
        kept = self._drop(self._count_common(messages))
        for message in messages[kept:]:
            parts = write(message)
            written = WrittenParts(encode(parts)[1:-1]) if parts else None
            self._messages.append(message)
            self._written.append(written)
            self.size += 0 if written is None else len(written.json)

    def _count_common(self, messages: Sequence[Message]) -> int:
        """Return the number of messages at the beginning that are already written."""
        most = min(len(messages), len(self._messages))
        same = map(is_, messages, self._messages)
        return most if all(same) else next(n for n in range(most) if messages[n] is not self._messages[n])

    def _drop(self, kept: int) -> int:
        """Forget the messages after the first ``kept``, or more; return the number of the others."""
        self.size -= sum(0 if written is None else len(written.json) for written in self._written[kept:])
        del self._messages[kept:], self._written[kept:]
        return kept


class _JoinedForm(_Form):
    """The messages as elements of one array; all but the last are one text."""

    def __init__(self) -> None:
        super().__init__()
        self._head: list[WrittenParts] = []
        # The number of messages in the head.
        self._joined = 0

    def all(self, messages: Sequence[Message], write: Write) -> list[WrittenParts]:
        """Return the elements of the array."""
        self._update(messages, write)
        tail = [written for written in self._written[self._joined :] if written is not None]
        if len(tail) > MAX_TAIL:
            text = b",".join(written.json for written in (*self._head, *tail))
            self.size += len(text) - sum(len(written.json) for written in (*self._head, *tail))
            self._head, self._joined, tail = [WrittenParts(text)], len(self._messages), []
            self._written = [None] * self._joined
        return [*self._head, *tail]

    def _drop(self, kept: int) -> int:
        if kept < self._joined:
            self.size -= sum(len(written.json) for written in self._head)
            kept, self._joined, self._head = 0, 0, []
        return super()._drop(kept)


class WrittenMessages:
    """The messages of one conversation in the forms of the last requests.

    A form names everything that the written messages depend on besides the messages.
    """

    def __init__(self, budget: WrittenBudget) -> None:
        self._budget = budget
        # The form that was used last comes last.
        self._forms: dict[Hashable, _Form] = {}

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return sum(form.size for form in self._forms.values())

    def write(self, form: Hashable, messages: Sequence[Message], write: Write) -> list[Any]:
        """Return all messages as elements of one array."""
        if len(messages) < MIN_MESSAGES:
            self._forms.pop(form, None)
            return write_anew(messages, write)
        found = self._forms.get(form)
        if not isinstance(found, _JoinedForm):
            found = _JoinedForm()
        return self._keep(form, found).all(messages, write)

    def write_each(self, form: Hashable, messages: Sequence[Message], write: Write) -> list[list[Any]]:
        """Return the elements of each message."""
        if len(messages) < MIN_MESSAGES:
            self._forms.pop(form, None)
            return [write(message) for message in messages]
        found = self._keep(form, self._forms.get(form) or _Form())
        return [[] if written is None else [written] for written in found.each(messages, write)]

    def _keep(self, name: Hashable, form: F) -> F:
        self._forms.pop(name, None)
        self._forms[name] = form
        while len(self._forms) > MAX_FORMS:
            del self._forms[next(iter(self._forms))]
        return form

    def end(self) -> None:
        """Keep to the budget, at the end of a request."""
        if self._forms:
            self._budget.apply(self)

    def forget(self) -> None:
        self._forms.clear()


class WrittenBudget:
    """Bounds what all sessions of a process keep together."""

    def __init__(self, limit: int = BUDGET_BYTES) -> None:
        """``limit`` is in bytes."""
        self._limit = limit
        self._owners: OrderedDict[int, tuple[weakref.ref[WrittenMessages], int]] = OrderedDict()
        self.size = 0

    def apply(self, owner: WrittenMessages) -> None:
        """Count what ``owner`` keeps, and make those forget that have not been counted for the longest time."""
        key = id(owner)
        self._drop(key)
        self._owners[key] = weakref.ref(owner, lambda _: self._drop(key)), owner.size
        self.size += owner.size
        while self.size > self._limit:
            oldest, (reference, _) = next(iter(self._owners.items()))
            if (forgetful := reference()) is not None:
                forgetful.forget()
            self._drop(oldest)

    def _drop(self, key: int) -> None:
        _, size = self._owners.pop(key, (None, 0))
        self.size -= size
