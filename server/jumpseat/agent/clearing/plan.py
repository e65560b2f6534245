"""Decide which results of tools are cleared from a conversation, as functions of its messages alone.

Calls stay as they are, and so does the result of each: only its text and its pictures are replaced by a line. A
result that is cleared is too short to be cleared again, and what makes a result stale stays in the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from jumpseat.agent.blocks import (
    AssistantMessage,
    Message,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
)
from jumpseat.agent.clearing.calls import Reading, changed_by, reading_of
from jumpseat.agent.conversation.attachments import IMAGE_TOKENS
from jumpseat.agent.conversation.result_size import REPEATABLE
from jumpseat.agent.conversation.tokens import Messages, of_message, of_text

KEPT_ANSWERS: Final = 3
"""The latest answers with calls, whose results stay whatever they are."""

MIN_TOKENS: Final = 120
"""Results below this size stay: no line in place of a result is as long."""

NOTE_TOKENS: Final = 40
"""The estimated size of the line for a cleared result."""

CHANGED: Final = "the file was changed since"
REPEATED: Final = "a later call shows it"
OLD: Final = "it is old"


class Clearing(Struct, frozen=True):
    """A result to clear, with its call and the reason; ``freed`` is in tokens."""

    call: ToolUseBlock
    result: ToolResultBlock
    reason: str
    freed: int

    @property
    def must_be_saved(self) -> bool:
        """Return whether no other call shows the same: a command, or a tool of others, may never say it again."""
        return self.call.name not in REPEATABLE


def plan_clearing(messages: Sequence[Message], needed: int, cwd: str = "/") -> list[Clearing]:
    """Return the results to clear, in their order: all stale ones, and old ones until ``needed`` tokens are free.

    Pictures that no call shows again stay.
    """
    pairs = _pairs(messages)
    stale = _find_stale(pairs, cwd)
    kept = _first_kept(messages)
    chosen: dict[int, Clearing] = {}
    others: list[tuple[int, Clearing]] = []
    for number, (place, call, result) in enumerate(pairs):
        freed = of_text(result.text) + IMAGE_TOKENS * len(result.images)
        if place >= kept or freed < MIN_TOKENS:
            continue
        clearing = Clearing(call, result, stale.get(number, OLD), freed - NOTE_TOKENS)
        if number in stale:
            chosen[number] = clearing
        elif not (result.images and call.name not in REPEATABLE):
            others.append((number, clearing))
    free = sum(clearing.freed for clearing in chosen.values())
    for number, clearing in others:
        if free >= needed:
            break
        chosen[number] = clearing
        free += clearing.freed
    return [chosen[number] for number in sorted(chosen)]


def clearable_tokens(messages: Sequence[Message]) -> int:
    """Return the most tokens that a plan can free, quickly if only the last messages are new."""
    return _sizes(messages)[0]


def remaining_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of the answers and results before the latest ones that no clearing would free."""
    return _sizes(messages)[1]


def _sizes(messages: Sequence[Message]) -> tuple[int, int]:
    """Return the tokens before the latest answers that clearing may free, and those that last."""
    kept, begin, clearable, lasting = _first_kept(messages), 0, 0, 0
    if isinstance(messages, Messages) and messages.settled.measured <= (final := min(kept, messages.final)):
        settled = messages.settled
        for message in messages[settled.measured : final]:
            more, longer = _sizes_of(message)
            settled.clearable += more
            settled.lasting += longer
        begin = settled.measured = final
        clearable, lasting = settled.clearable, settled.lasting
    for message in messages[begin:kept]:
        more, longer = _sizes_of(message)
        clearable += more
        lasting += longer
    return clearable, lasting


def _sizes_of(message: Message) -> tuple[int, int]:
    if isinstance(message, AssistantMessage):
        return 0, of_message(message)
    clearable = lasting = 0
    if isinstance(message, ToolMessage):
        for result in message.results:
            size = of_text(result.text)
            lasting += size if size < MIN_TOKENS else NOTE_TOKENS
            size += IMAGE_TOKENS * len(result.images)
            clearable += size - NOTE_TOKENS if size >= MIN_TOKENS else 0
    return clearable, lasting


def changed_files(messages: Sequence[Message], cwd: str) -> list[str]:
    """Return the files that successful calls have changed, the latest ones last."""
    paths = [path for _, call, result in _pairs(messages) if not result.is_error for path in changed_by(call, cwd)]
    return list(reversed(dict.fromkeys(reversed(paths))))


def _pairs(messages: Sequence[Message]) -> list[tuple[int, ToolUseBlock, ToolResultBlock]]:
    """Return each call with its result and the number of the message that has the result."""
    pairs: list[tuple[int, ToolUseBlock, ToolResultBlock]] = []
    calls: list[ToolUseBlock] = []
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls = message.tool_uses()
        elif isinstance(message, ToolMessage):
            pairs += [(place, call, result) for call, result in zip(calls, message.results, strict=False)]
    return pairs


def _find_stale(pairs: Sequence[tuple[int, ToolUseBlock, ToolResultBlock]], cwd: str) -> dict[int, str]:
    """Return the reason why a result is out of date, by the number of its pair."""
    stale: dict[int, str] = {}
    changed: set[str] = set()
    later: dict[tuple[str, str], list[Reading]] = {}
    for number in range(len(pairs) - 1, -1, -1):
        _, call, result = pairs[number]
        reading = reading_of(call, cwd)
        if reading is not None:
            if any(reading.is_covered_by(other) for other in later.get(reading.source, ())):
                stale[number] = REPEATED
            elif reading.source[0] == "file" and reading.source[1] in changed:
                stale[number] = CHANGED
            elif not result.is_error:
                later.setdefault(reading.source, []).append(reading)
        if not result.is_error:
            changed.update(changed_by(call, cwd))
    return stale


def _first_kept(messages: Sequence[Message]) -> int:
    """Return the number of the first message whose results stay because they are new."""
    answers = 0
    for place in range(len(messages) - 1, -1, -1):
        answers += isinstance(messages[place], ToolMessage)
        if answers == KEPT_ANSWERS:
            return place
    return 0
