"""The part of an answer that clients have seen, over all attempts to get the whole answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, ReasoningBlock, TextBlock, UserMessage
from jumpseat.agent.clock import new_id
from jumpseat.agent.model import Completed, ModelRequest

CONTINUE: Final = (
    "<reminder>The connection broke in the middle of your answer above. Continue it exactly where it ends."
    " Repeat nothing, and do not mention the interruption.</reminder>"
)


class AnswerSoFar:
    """The streamed part of an answer.

    Another attempt gets new ids if no text was shown. Otherwise the model is asked to continue, and its text is
    added to the same message. A model that begins anew instead repeats the shown text, which is not shown twice.
    """

    def __init__(self) -> None:
        self.message_id = new_id()
        self.reasoning_id = new_id()
        # Whether the current attempt has streamed anything.
        self.anything = False
        self._shown: list[str] = []
        # The text of earlier attempts, and that of the current attempt while it may be a repetition of it.
        self._before = ""
        self._held: str | None = None
        self._repeated = False

    @property
    def text(self) -> str:
        """The text that clients have seen."""
        return "".join(self._shown)

    @property
    def has_text(self) -> bool:
        return bool(self._shown)

    def next_request(self, request: ModelRequest) -> ModelRequest:
        """Begin an attempt and return its request: ``request``, or one for the rest of the answer."""
        self.anything = self._repeated = False
        self.reasoning_id = new_id()
        self._before, self._held = self.text, None
        if not self._before.strip():
            self.message_id, self._before = new_id(), ""
            self._shown.clear()
            return request
        self._held = ""
        more = [AssistantMessage([TextBlock(self._before.rstrip())]), UserMessage([TextBlock(CONTINUE)])]
        return replace(request, messages=[*request.messages, *more])

    def add(self, text: str) -> str:
        """Add streamed text and return its part to show."""
        if self._held is not None:
            self._held += text
            if self._before.startswith(self._held):
                return ""
            self._repeated = self._held.startswith(self._before)
            text = self._held[len(self._before) :] if self._repeated else self._held
            self._held = None
        if text:
            self._shown.append(text)
        return text

    def completed(self, rest: Completed) -> Completed:
        """Return the whole answer, given the answer of the last attempt."""
        if not self._before or self._repeated:
            return rest
        blocks: Sequence[AssistantBlock] = rest.message.blocks
        if self._held:
            # The attempt ended within a repetition.
            blocks = [block for block in blocks if not isinstance(block, TextBlock)]
        return replace(rest, message=AssistantMessage(_with_text_first(self._before, blocks)))


def _with_text_first(text: str, blocks: Sequence[AssistantBlock]) -> list[AssistantBlock]:
    """Insert ``text`` before the first block other than reasoning, which providers expect at the beginning."""
    place = next((i for i, block in enumerate(blocks) if not isinstance(block, ReasoningBlock)), len(blocks))
    if place < len(blocks) and isinstance(first := blocks[place], TextBlock):
        citations = [
            replace(
                citation,
                start=None if citation.start is None else citation.start + len(text),
                end=None if citation.end is None else citation.end + len(text),
            )
            for citation in first.citations
        ]
        return [*blocks[:place], TextBlock(text + first.text, citations), *blocks[place + 1 :]]
    return [*blocks[:place], TextBlock(text), *blocks[place:]]
