"""Find the written calls in the text of an answer while it streams, and pass on the rest.

A text that may become a call is held back only as long as it may, and at most ``MAX_HELD_CHARS``. It is read again
each time it has grown by a quarter, so that the time is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Final, TypeAlias

from msgspec import Struct

from jumpseat.agent.model import ToolSpec
from jumpseat.agent.model_calls.written_calls.forms import all_forms
from jumpseat.agent.model_calls.written_calls.offered import Offered
from jumpseat.agent.model_calls.written_calls.reader import (
    Form,
    OtherFormError,
    Passage,
    Reader,
    TooManyCallsError,
    UnfinishedError,
)
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall
from jumpseat.agent.model_calls.xml_tools.place import TAILS, Place

MAX_HELD_CHARS: Final = 256 * 1024
_STEPS: Final = 20_000
_STEPS_OF_ATTEMPT: Final = 20
"""The number of marks that are looked at in one answer, and what an attempt to read a call counts for."""
_READ_AT_ONCE: Final = 512
"""Held text up to this length is read again with each delta."""

Piece: TypeAlias = str | WrittenCall

_OF_EXAMPLES: Final = ("", "json", "xml")
"""Labels of code that may be an example; others mark a call."""
_SENTENCE_END: Final = re.compile(r"[.!?:…。][ \t]*\Z")


class Group(Struct, frozen=True):
    """Calls that follow each other, in the same form. ``end`` is the offset of the text after them.

    ``ends_answer`` is whether nothing else follows.
    """

    calls: list[WrittenCall]
    form: Form
    end: int
    ends_answer: bool


class WholeAnswer:
    """Finds calls in an answer that consists of calls alone."""

    def __init__(self, offered: Offered) -> None:
        self.form: Form | None = None
        self._offered = offered
        self._held = ""
        self._next_try = 0
        self._done = False
        self._called = False

    @property
    def is_text(self) -> bool:
        """Return whether the answer is no call, whatever follows."""
        return self._done and not self._called

    def feed(self, text: str) -> list[Piece]:
        """Add text and return the pieces known so far, in order."""
        if self._done:
            return [] if self._called else [text]
        self._held += text
        return self._try(final=False) if len(self._held) >= self._next_try else []

    def finish(self) -> list[Piece]:
        """Return the remaining pieces at the end of the answer."""
        return [] if self._done or not self._held else self._try(final=True)

    def _try(self, *, final: bool) -> list[Piece]:
        start = len(self._held) - len(self._held.lstrip())
        if start == len(self._held) and not final:
            return []
        try:
            group = read_group(self._held, start, self._offered, all_forms(), final=final)
        except UnfinishedError:
            if len(self._held) <= MAX_HELD_CHARS:
                self._next_try = next_try(self._held)
                return []
            group = None
        except TooManyCallsError:
            group = None
        self._done = True
        held, self._held = self._held, ""
        if group is None or not group.ends_answer:
            return [held] if held else []
        self._called, self.form = True, group.form
        return [*group.calls]


class EmbeddedCalls:
    """Finds calls that begin an answer or end it, outside of code. Code after prose is an example."""

    def __init__(self, offered: Offered) -> None:
        self.form: Form | None = None
        self._offered = offered
        self._forms = [form for form in all_forms() if form.embedded]
        tokens = [token for form in self._forms for token in begins_of(form, offered)]
        self._steps = 0
        self._longest = max(map(len, tokens))
        self._tokens = tokens
        self._mark = re.compile(f"{_any_of(tokens)}|`+|~+")
        self._held = ""
        self._next_try = 0
        self._out: list[Piece] = []
        self._dropping = False
        self._place = Place()
        # The text of the current line, cut to its end.
        self._line = ""
        self._ticks = 0
        self._fence = ""
        self._passage = Passage()

    def feed(self, text: str) -> list[Piece]:
        """Add text and return the pieces known so far, in order."""
        self._held += text
        if len(self._held) >= self._next_try:
            self._go(final=False)
        return self._take()

    def finish(self) -> list[Piece]:
        """Return the remaining pieces at the end of the answer."""
        self._go(final=True)
        return self._take()

    def _take(self) -> list[Piece]:
        out, self._out = self._out, []
        return out

    def _go(self, *, final: bool) -> None:
        text, at = self._held, 0
        self._passage = Passage()
        self._next_try = 0
        while at < len(text) and not self._dropping:
            after = self._step(text, at, final=final)
            if after is None:
                if len(text) - at > MAX_HELD_CHARS:
                    self._show(text[at : at + 1])
                    at += 1
                    continue
                self._next_try = next_try(text[at:])
                break
            at = after
        self._held = "" if self._dropping else text[at:]

    def _step(self, text: str, at: int, *, final: bool) -> int | None:
        """Go on at ``at`` and return the next position; ``None`` if more text is needed."""
        if self._fence:
            return self._in_code(text, at)
        if self._steps > _STEPS:
            self._show(text[at:])
            return len(text)
        self._steps += 1
        found = self._mark.search(text, at)
        if found is None:
            held = 0 if final else self._possible_beginning(text, at)
            self._show(text[at : len(text) - held])
            return len(text) - held if not held or len(text) - held > at else None
        if found.start() > at:
            self._show(text[at : found.start()])
            return found.start()
        mark = found[0]
        if mark[0] in "`~" and found.end() == len(text) and not final:
            return None
        opens_code = mark[0] in "`~" and len(mark) >= 3 and self._place.may_open_code
        may_begin = opens_code if mark[0] in "`~" else self._may_begin(mark)
        if not may_begin or self._ticks or self._place.is_example:
            self._show(mark)
            return found.end()
        try:
            group = read_group(text, at, self._offered, self._forms, final=final, passage=self._passage)
        except UnfinishedError:
            return None
        except TooManyCallsError:
            self._steps = _STEPS + 1
            return at
        self._steps += _STEPS_OF_ATTEMPT
        label = text[found.end() : found.end() + 16].partition("\n")[0].strip().lower()
        is_example = opens_code and self._place.shown and label in _OF_EXAMPLES
        if (
            group is not None
            and not is_example
            and (group.ends_answer or (group.form.certain and not self._place.shown))
        ):
            self.form = self.form or group.form
            self._out += group.calls
            self._line = ""
            self._dropping = group.ends_answer
            return group.end
        if opens_code:
            self._fence = mark
            self._show(mark, code=True)
            self._line = "info"
            return found.end()
        end = found.end() if group is None else group.end
        self._show(text[at:end])
        return end

    def _may_begin(self, mark: str) -> bool:
        """Return whether a call may begin here: at the beginning of a line or after a sentence, or with a token."""
        return (
            not self._line.strip() or mark.startswith(("<|", "<｜", "[T")) or bool(_SENTENCE_END.search(self._line))
        )

    def _possible_beginning(self, text: str, at: int) -> int:
        """Return the length of the end of a text that may be the beginning of a mark."""
        for start in range(max(at, len(text) - self._longest), len(text)):
            tail = text[start:]
            if any(token.startswith(tail) for token in self._tokens):
                return len(tail)
        return 0

    def _in_code(self, text: str, at: int) -> int:
        end = text.find("\n", at) + 1
        line = (self._line + text[at:end])[:200].strip()
        if end and len(line) >= len(self._fence) and not line.strip(self._fence[0]):
            self._fence = ""
        elif end:
            mark = self._fence[0]
            closing = re.compile(rf"^[ \t]*+{mark}{{{len(self._fence)},}}+[ \t\r]*+\n", re.MULTILINE).search(
                text, end
            )
            end = closing.end() if closing is not None else 0
            self._fence = "" if closing is not None else self._fence
        self._show(text[at : end or len(text)], code=True)
        return end or len(text)

    def _show(self, text: str, *, code: bool = False) -> None:
        if not text:
            return
        self._out.append(text)
        if code:
            self._place.pass_code()
        else:
            self._place.add(text)
        _, newline, line = text.rpartition("\n")
        if newline:
            self._line, self._ticks = line[-200:], 0
        else:
            self._line = (self._line + line)[-200:]
        if text[0] == "`" and not self._fence and not text.strip("`"):
            self._ticks = 0 if self._ticks == len(text) else self._ticks or len(text)


def _any_of(tokens: Collection[str]) -> str:
    """Return a pattern for the longest of ``tokens``, which tries few of them at a character that begins many."""
    heads = groupby(sorted(tokens), key=lambda token: token[:2])
    ends = {head: sorted((token[2:] for token in group), key=len, reverse=True) for head, group in heads}
    return "|".join(f"{re.escape(head)}(?:{'|'.join(map(re.escape, rests))})" for head, rests in ends.items())


def read_group(
    text: str,
    at: int,
    offered: Offered,
    forms: Sequence[Form],
    *,
    final: bool,
    passage: Passage | None = None,
) -> Group | None:
    """Read calls that follow each other at ``at``; return ``None`` if there is none.

    Raises:
        UnfinishedError: it depends on more text.
    """
    calls: list[WrittenCall] = []
    first: Form | None = None
    passage = Passage() if passage is None else passage
    end = at
    while True:
        reader = Reader(text, end, offered, final=final, passage=passage)
        if first is not None:
            while reader.between().takes("</tool_call>"):
                pass
            if reader.ended():
                return Group(calls, first, len(text), ends_answer=True)
            if reader.takes(*TAILS):
                return Group(calls, first, reader.at, ends_answer=True)
        found = _read_one(reader, forms)
        if found is None:
            return None if first is None else Group(calls, first, end, ends_answer=False)
        form, some = found
        first = first or form
        calls += some
        end = reader.at


def _read_one(reader: Reader, forms: Sequence[Form]) -> tuple[Form, list[WrittenCall]] | None:
    start, unfinished = reader.at, False
    rest = reader.text[start : start + 64]
    partial = not reader.final and len(rest) < 64
    for form in forms:
        begins = begins_of(form, reader.offered)
        if not rest.startswith(begins) and not (partial and any(token.startswith(rest) for token in begins)):
            continue
        reader.at, reader.cut_off = start, False
        try:
            return form, form.read(reader)
        except OtherFormError:
            pass
        except UnfinishedError:
            unfinished = True
    reader.at = start
    if unfinished:
        raise UnfinishedError
    return None


def begins_of(form: Form, offered: Offered) -> tuple[str, ...]:
    """Return the texts with which a form begins, for the tools on offer."""
    if "%s" not in form.begins[0]:
        return form.begins
    return tuple(token % name for token in form.begins for name in offered.specs)


def next_try(held: str) -> int:
    """Return the length at which a held text is read again."""
    return 0 if len(held) < _READ_AT_ONCE else len(held) * 5 // 4


def find_calls(text: str, tools: Sequence[ToolSpec]) -> tuple[list[WrittenCall], str, Form | None]:
    """Return the calls in a whole text, the rest of the text, and the form of the first call."""
    offered = Offered(tools)
    whole, embedded = WholeAnswer(offered), EmbeddedCalls(offered)
    pieces = [*whole.feed(text), *whole.finish()]
    if whole.form is None:
        pieces = [*embedded.feed(text), *embedded.finish()]
    calls = [piece for piece in pieces if isinstance(piece, WrittenCall)]
    rest = "".join(piece for piece in pieces if isinstance(piece, str))
    return calls, rest, whole.form or embedded.form
