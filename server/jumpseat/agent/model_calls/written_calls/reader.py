"""Read a text from left to right for the forms of written calls.

All steps take time in proportion to the text that they read. Text may still be arriving: a step that depends on
more of it raises ``UnfinishedError``, so that the result does not depend on where the text is split.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model_calls.written_calls.literals import read_literal
from jumpseat.agent.model_calls.written_calls.offered import Offered
from jumpseat.agent.model_calls.written_calls.repair import clean, repair_arguments
from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

MOST_CALLS: Final = 256
"""The number of calls that are read in one text, also in vain."""

_SPACE: Final = re.compile(r"\s*+")
_BETWEEN: Final = re.compile(r"[\s,;]*+")
_NAME: Final = re.compile(r"[\w.:/-]++")
_NAMED: Final = re.compile(
    r"""["'](?:name|tool_name|tool|function|action)["']\s*+:\s*+["']([\w.:/-]{1,200}+)["']"""
)
_DECODER: Final = json.JSONDecoder(strict=False)

_NAMES: Final = ("name", "tool_name", "tool", "function", "action", "recipient_name")
_ARGUMENTS: Final = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs", "params")
_OTHERS: Final = frozenset({"type", "id", "index", "call_id", "tool_call_id"})


class OtherFormError(Exception):
    """The text is not in the form of the reader."""


class UnfinishedError(Exception):
    """More text is needed."""


class TooManyCallsError(Exception):
    """The text has more calls, or beginnings of calls, than any answer has."""


class Form(Struct, frozen=True):
    """A form of written calls.

    ``begins`` are the texts with which it begins, ``%s`` standing for the name of a tool. ``read`` reads one call,
    or several in one wrapper, and raises ``OtherFormError`` if it cannot. ``parser`` are the options with which
    servers parse the form. ``embedded`` is whether it may follow other text, and ``certain`` whether nothing else
    looks like it, so that other text may follow.
    """

    begins: tuple[str, ...]
    read: Callable[[Reader], list[WrittenCall]]
    parser: str
    embedded: bool = True
    certain: bool = True


class Passage(Struct):
    """A text as all its readers know it.

    ``places`` are where tokens come next: the offset of the search, and that of the token or -1. ``calls`` is the
    number of calls that were read, also in vain.
    """

    places: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    calls: int = 0


_Item: TypeAlias = Callable[[str, JsonObject], WrittenCall | None]


class Reader:
    """A position in a text. ``final`` is whether the text is complete.

    ``passage`` is shared by all readers of the text.
    """

    def __init__(
        self, text: str, at: int, offered: Offered, *, final: bool, passage: Passage | None = None
    ) -> None:
        self.text = text
        self.at = at
        self.offered = offered
        self.final = final
        self.cut_off = False
        self._passage = Passage() if passage is None else passage

    # --- steps --------------------------------------------------------------------------------------------------

    def ended(self) -> bool:
        if self.at < len(self.text):
            return False
        if not self.final:
            raise UnfinishedError
        return True

    def space(self) -> Reader:
        self.at = _end(_SPACE, self.text, self.at)
        return self

    def between(self) -> Reader:
        """Skip what models write between calls."""
        self.at = _end(_BETWEEN, self.text, self.at)
        return self

    def takes(self, *tokens: str) -> str:
        """Skip one of ``tokens`` and return it; return an empty string if none follows."""
        for token in tokens:
            if self.text.startswith(token, self.at):
                self.at += len(token)
                return token
        rest = self.text[self.at : self.at + 64]
        if not self.final and len(rest) < 64 and any(token.startswith(rest) for token in tokens):
            raise UnfinishedError
        return ""

    def needs(self, *tokens: str) -> str:
        token = self.takes(*tokens)
        if not token:
            raise OtherFormError
        return token

    def follows(self, *tokens: str) -> bool:
        """Return whether one of ``tokens`` follows, without skipping it."""
        at = self.at
        found = self.takes(*tokens)
        self.at = at
        return bool(found)

    def name(self) -> str:
        """Read the name of a tool or of a parameter."""
        found = _NAME.match(self.text, self.at)
        if found is None:
            self.ended()
            raise OtherFormError
        self.at = found.end()
        self.ended()
        return found[0]

    def tool_name(self) -> str:
        """Read the name of an offered tool, maybe with noise."""
        start = self.at
        try:
            return self.name()
        except UnfinishedError:
            if self.offered.may_become_name(self.text[start : self.at]):
                raise
            raise OtherFormError from None

    def until(self, *ends: str, again: str = "") -> str:
        """Return the text up to the first of ``ends``, which is skipped, or else all of it.

        A beginning of the same form (``again``) ends it, too: each of many beginnings would read the rest else.
        """
        at = self.at
        limit = self._find(again) if again else -1
        found = [(place, end) for end in ends if (place := self._find(end)) >= 0]
        if not found and limit < 0:
            if not self.final:
                raise UnfinishedError
            self.cut_off = True
        place, end = min(found, default=(len(self.text), ""))
        if 0 <= limit < place:
            place, end = limit, ""
        self.at = place + len(end)
        return self.text[at:place]

    def _find(self, token: str) -> int:
        """Return the offset of the next ``token``; each part of the text is searched once."""
        since, place = self._passage.places.get(token, (len(self.text) + 1, -1))
        if not (since <= self.at and (place < 0 or self.at <= place)):
            place = self.text.find(token, self.at)
            self._passage.places[token] = self.at, place
        return place

    # --- calls --------------------------------------------------------------------------------------------------

    def value(self) -> Any:
        """Read a JSON value.

        Raises:
            ValueError: there is none, and the position is unchanged.
            UnfinishedError: it may be complete with more text.
        """
        try:
            value, end = _DECODER.raw_decode(self.text, self.at)
            value = clean(value)
        except json.JSONDecodeError as error:
            if not self.final and (error.msg.startswith("Unterminated") or error.pos >= len(self.text) - 6):
                raise UnfinishedError from None
            raise
        except RecursionError:
            raise ValueError("nested too deeply") from None
        self.at = end
        return value

    def arguments(self, written: str, *ends: str, again: str = "") -> WrittenCall:
        """Read a JSON object with the arguments of the tool, up to one of ``ends`` if it is malformed."""
        start = self.at
        self.count()
        try:
            value = self.value()
        except ValueError:
            if self.offered.name_of(written) is None:
                raise OtherFormError from None
            source = self.until(*ends, again=again)
            given = repair_arguments(source) or read_object(source)
            if given is None:
                return self.malformed(written, source)
            return self._known(self.offered.call(written, given))
        if isinstance(value, str):
            value = repair_arguments(value)
        if not isinstance(value, dict):
            return self.malformed(written, self.text[start : self.at])
        return self._known(self.offered.call(written, cast("JsonObject", value)))

    def parameters(self, written: str, parameters: list[tuple[str, str]]) -> WrittenCall:
        """Return a call whose arguments are texts."""
        self.count()
        return self._known(self.offered.typed_call(written, parameters))

    def objects(self, *ends: str, again: str = "") -> list[WrittenCall]:
        """Read a JSON object with a name and arguments, or an array of them, up to one of ``ends`` if malformed."""
        self.count()
        try:
            value = self.value()
        except ValueError:
            source = self.until(*ends, again=again)
            given = repair_arguments(source) or read_object(source)
            if given is None:
                named = _NAMED.search(source, 0, 2000)
                return [self.malformed(named[1] if named else "", source)]
            value = given
        return [*calls_in(value, self.offered.call)]

    def malformed(self, written: str, source: str) -> WrittenCall:
        """Return a call that the model has to correct. The tool must be offered."""
        name = self.offered.name_of(written)
        if name is None:
            raise OtherFormError
        reason = "it is cut off" if self.cut_off else f"its arguments are not a JSON object: {source.strip()[:200]}"
        return WrittenCall(name, None, reason)

    def count(self) -> None:
        """Count a call that is about to be read.

        Raises:
            TooManyCallsError: there were too many.
        """
        self._passage.calls += 1
        if self._passage.calls > MOST_CALLS:
            raise TooManyCallsError

    def _known(self, call: WrittenCall | None) -> WrittenCall:
        if call is None:
            raise OtherFormError
        return call


def read_object(text: str) -> JsonObject | None:
    """Return the object that a text has in the notation of Python; ``None`` if it is anything else."""
    text = text.strip()
    try:
        value, at = read_literal(text, 0)
    except ValueError:
        return None
    return cast("JsonObject", value) if at == len(text) and isinstance(value, dict) else None


def calls_in(value: Any, call: _Item) -> Iterator[WrittenCall]:
    """Yield the calls in a JSON value.

    Raises:
        OtherFormError: a part of it is no call of an offered tool.
    """
    if isinstance(value, list) and value:
        for item in cast("list[Any]", value):
            yield from calls_in(item, call) if isinstance(item, dict) else calls_in(None, call)
        return
    if not isinstance(value, dict):
        raise OtherFormError
    written = cast("JsonObject", value)
    if written.keys() == {"tool_calls"} and isinstance(written["tool_calls"], list):
        yield from calls_in(written["tool_calls"], call)
        return
    if isinstance(function := written.get("function"), dict):
        written = cast("JsonObject", function)
    key = next((key for key in _NAMES if isinstance(written.get(key), str)), None)
    found = call(written[key], _arguments_of(written, key)) if key is not None else None
    if found is None:
        raise OtherFormError
    yield found


def _arguments_of(written: JsonObject, name_key: str) -> JsonObject:
    key = next((key for key in _ARGUMENTS if key in written), None)
    others = written.keys() - {name_key, key, *_OTHERS}
    if key is None:
        # The arguments beside the name.
        return {name: written[name] for name in written if name in others}
    if "description" in others:
        # The definition of a tool.
        raise OtherFormError
    arguments = written[key]
    if isinstance(arguments, str):
        arguments = repair_arguments(arguments) if arguments.strip() else {}
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise OtherFormError
    return cast("JsonObject", arguments)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found is not None else at
