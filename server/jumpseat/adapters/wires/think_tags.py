"""Reasoning that a server leaves in the text of an answer, between tags at its beginning.

Servers without a parser for the reasoning of a model pass on what the model writes: ``<think>...</think>``, or the
end tag alone if the prompt ends in the start tag. The first such answer of a conversation streams as text, and only
the whole answer is divided; later ones begin as reasoning, as all do with the option ``think_tags = "opened"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from jumpseat.adapters.adapter import Decoder
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject, Message, ReasoningBlock, TextBlock
from jumpseat.agent.model import BlockCompleted, Completed, ModelEvent, ReasoningDelta, TextDelta

_ENDS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "◁think▷": "◁/think▷",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|start|>assistant<|channel|>analysis<|message|>": "<|end|>",
}
# What gpt-oss writes before its answer, and between its reasoning and its answer.
_HEADS: Final = tuple(
    f"{start}<|channel|>{channel}<|message|>"
    for start in ("<|start|>assistant", "")
    for channel in ("final", "commentary")
)
_AFTER_THOUGHT: Final = (*_HEADS, *(start for start, end in _ENDS.items() if end == "<|end|>"))
_MOST_THOUGHTS: Final = 16
"""The thoughts of one answer that are separated: each is looked for in the rest of the text."""
_TAILS: Final = ("<|return|>", "<|end|>")
# The same where a server leaves out the marks of gpt-oss.
_BARE_ANALYSIS: Final = "analysis"
_BARE_NEXT: Final = ("assistantfinal", "assistantcommentary to=functions.")
# The end tag without its start tag.
_LONE_END: Final = re.compile(r"</(?:seed:)?think(?:ing)?>|</thought>|\[/THINK\]")
_SENTENCE_END: Final = frozenset(".!?\u2026\u3002\uff01\uff1f)")
_OPENING: Final = frozenset("([{<\"'`:=")
"""Characters after which a tag is quoted."""
_NO_ANSWER: Final = frozenset(".,;:!?)]}\"'`*")
"""Characters that follow a tag in prose, and do not begin an answer."""


class ThinkTagDecoder:
    """Turns the reasoning at the beginning of the text that ``inner`` decodes into reasoning."""

    def __init__(self, inner: Decoder, provider: str, opened: str | None = None) -> None:
        self._inner = inner
        self._provider = provider
        # The end tag of the thought that the prompt has begun, if it is known to do so.
        self._opened = opened
        # White space before a possible tag, the text that may be a part of a tag, and the end tag that is looked
        # for; empty after the reasoning.
        self._space: list[str] = []
        self._held = ""
        self._end: str | None = opened
        self._thoughts = 0
        self._announced = False
        # After a head of gpt-oss: the end of the text that may be a part of its last mark.
        self._tail: str | None = None

    def feed(self, event: str | None, data: str) -> list[ModelEvent]:
        return self._rewrite(self._inner.feed(event, data))

    def finish(self) -> list[ModelEvent]:
        return self._rewrite(self._inner.finish())

    def whole(self, body: JsonObject) -> list[ModelEvent]:
        return self._rewrite(self._inner.whole(body))

    def _rewrite(self, events: list[ModelEvent]) -> list[ModelEvent]:
        if self._end == "" and self._tail is None and not (events and type(events[-1]) is Completed):
            # The fast path: nearly every event of an answer. `Completed` is the last one.
            return events
        rewritten: list[ModelEvent] = []
        for event in events:
            match event:
                case TextDelta() if self._end != "" or self._tail is not None:
                    rewritten += self._without_tail(self._split(event.text) if self._end != "" else [event])
                case Completed():
                    if self._tail and self._tail not in _TAILS:
                        rewritten.append(TextDelta(self._tail))
                    self._tail = None
                    if held := self._take_held():
                        rewritten.append(ReasoningDelta(held) if self._end else TextDelta(held))
                    cut_off = event.stop_reason == "max_tokens"
                    message = self._separate(event.message, cut_off=cut_off)
                    if self._opened and self._end and message is event.message and message.text():
                        # It was streamed as reasoning, and is the answer.
                        rewritten.append(TextDelta(message.text()))
                    rewritten.append(replace(event, message=message))
                case BlockCompleted(block=TextBlock()) if not self._announced:
                    self._announced = True
                    blocks = self._separate(AssistantMessage([event.block])).blocks
                    rewritten += [BlockCompleted(block) for block in blocks]
                case _:
                    rewritten.append(event)
        return rewritten

    def _split(self, text: str) -> list[ModelEvent]:
        """Return the deltas for a piece of text at the beginning of the answer."""
        if self._end is None and not self._held:
            # Apart from the rest: a look at all of it with each piece would take quadratic time.
            begun = text.lstrip()
            if self._thoughts == 0:
                self._space.append(text[: len(text) - len(begun)])
            text = begun
        self._held += text
        if self._end is None:
            begun = self._held
            starts = self._starts()
            start = next((start for start in starts if begun.startswith(start)), None)
            if start is None:
                if any(start.startswith(begun) for start in starts):
                    return []
                return self._leave()
            self._space, self._held = [], begun.removeprefix(start)
            if start in _HEADS:
                self._tail = ""
                return self._leave()
            self._end = _ENDS[start]
        thought, closed, rest = self._held.partition(self._end)
        if closed:
            self._held, self._end = "", None
            self._thoughts += 1
            return [*([ReasoningDelta(thought)] if thought else []), *self._split(rest)]
        kept = _partial(self._held, self._end)
        thought, self._held = self._held[: len(self._held) - kept], self._held[len(self._held) - kept :]
        return [ReasoningDelta(thought)] if thought else []

    def _without_tail(self, deltas: list[ModelEvent]) -> list[ModelEvent]:
        """Hold back what may be the last mark of an answer of gpt-oss."""
        if self._tail is None:
            return deltas
        kept: list[ModelEvent] = []
        for delta in deltas:
            if not isinstance(delta, TextDelta):
                kept.append(delta)
                continue
            text = self._tail + delta.text
            size = max(len(tail) if text.endswith(tail) else _partial(text, tail) for tail in _TAILS)
            shown, self._tail = text[: len(text) - size], text[len(text) - size :]
            kept += [TextDelta(shown)] if shown else []
        return kept

    def _leave(self) -> list[ModelEvent]:
        """Pass on what is held; everything from here on is text."""
        self._end = ""
        text = self._take_held()
        return [TextDelta(text)] if text else []

    def _starts(self) -> tuple[str, ...]:
        """Return what may follow: only gpt-oss goes on thinking after a thought."""
        if self._thoughts == 0:
            return (*_ENDS, *_HEADS)
        return _AFTER_THOUGHT if self._thoughts < _MOST_THOUGHTS else _HEADS

    def _take_held(self) -> str:
        held = "".join([*self._space, self._held])
        self._space, self._held = [], ""
        return held

    def _separate(self, message: AssistantMessage, *, cut_off: bool = False) -> AssistantMessage:
        """Return the whole answer, maybe ``cut_off``, with its first text divided into reasoning and text."""
        at = next((at for at, block in enumerate(message.blocks) if isinstance(block, TextBlock)), None)
        if at is None or not isinstance(block := message.blocks[at], TextBlock):
            return message
        thought, rest, provider = *split_thought(block.text), self._provider
        lone = _find_lone_end(block.text) if thought is None else None
        if thought is None and self._opened and (cut_off or self._opened in block.text):
            thought, _, rest = (part.strip() for part in block.text.partition(self._opened))
            provider = self._opened
        elif lone is not None:
            thought, rest, provider = block.text[: lone.start()].strip(), block.text[lone.end() :].lstrip(), lone[0]
        if thought is None:
            return message
        found: list[AssistantBlock] = [ReasoningBlock(thought, provider)] if thought else []
        if rest:
            found.append(TextBlock(rest))
        return AssistantMessage([*message.blocks[:at], *found, *message.blocks[at + 1 :]])


def split_thought(text: str) -> tuple[str | None, str]:
    """Divide a text into the reasoning at its beginning, ``None`` without any, and the rest."""
    begun = text.lstrip()
    thoughts: list[str] = []
    starts: Iterable[str] = _ENDS
    while len(thoughts) < _MOST_THOUGHTS:
        start = next((start for start in starts if start in _ENDS and begun.startswith(start)), None)
        if start is None:
            break
        thought, _, rest = begun.removeprefix(start).partition(_ENDS[start])
        thoughts.append(thought.strip())
        begun, starts = rest.lstrip(), _AFTER_THOUGHT
    if thoughts or begun.startswith(_HEADS):
        return "\n\n".join(filter(None, thoughts)), _without_head(begun)
    if begun.startswith(_BARE_ANALYSIS):
        places = [at for mark in _BARE_NEXT if (at := begun.find(mark)) > 0]
        if places:
            at = min(places)
            return begun[len(_BARE_ANALYSIS) : at].strip(), begun[at:].removeprefix(_BARE_NEXT[0]).lstrip()
    return None, text


def opened_by_prompt(option: object, messages: Sequence[Message]) -> str | None:
    """Return the end tag of the thought that the prompt begins, as far as the last answer or the option shows.

    Reasoning that ended in such a tag has it as its provider, so that it is never sent back.
    """
    answer = next((message for message in reversed(messages) if isinstance(message, AssistantMessage)), None)
    for block in answer.blocks if answer is not None else ():
        if isinstance(block, ReasoningBlock) and block.provider and _LONE_END.fullmatch(block.provider):
            return block.provider
    return "</think>" if option == "opened" else None


def _find_lone_end(text: str) -> re.Match[str] | None:
    """Return the tag that ends the thought which the prompt has begun."""
    found = islice(_LONE_END.finditer(text), _MOST_THOUGHTS)
    return next((lone for lone in found if _ends_thought(text[: lone.start()], text[lone.end() :])), None)


def _ends_thought(before: str, after: str) -> bool:
    """Return whether an end tag between two texts ends the thought that the prompt has begun.

    In prose, a tag is in the middle of a sentence, in code, or named together with its start tag.
    """
    line = before[before.rfind("\n") + 1 :]
    fences = sum(part.lstrip(" ").startswith("```") for part in before.split("\n")) if "```" in before else 0
    if fences % 2 or line.count("`") % 2 or any(start in before for start in _ENDS):
        return False
    said, same_line = before.rstrip(), after.partition("\n")[0].strip()
    if same_line[:1] in _NO_ANSWER and same_line:
        return False
    if not line.strip():
        return not said.endswith(":")
    if said == before:
        # A word of prose and a tag have a blank between them.
        return said[-1] not in _OPENING
    if said[-1] in _SENTENCE_END:
        # After a sentence and a blank, the tag may begin the next one.
        return not same_line[:1].islower()
    return (
        not same_line
        and said[-1] != ":"
        and (not after.strip() or after.lstrip(" \t\r").startswith(("\n\n", "\n\r\n")))
    )


def _without_head(text: str) -> str:
    head = next((head for head in _HEADS if text.startswith(head)), None)
    if head is None:
        return text
    rest = text.removeprefix(head)
    return next((rest.removesuffix(tail) for tail in _TAILS if rest.endswith(tail)), rest)


def _partial(text: str, tag: str) -> int:
    """Return the length of the longest end of ``text`` that begins ``tag``."""
    return next((size for size in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-size:])), 0)
