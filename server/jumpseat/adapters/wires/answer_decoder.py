"""The part that the decoders of all wires share: the head of an answer, new ids for calls, and streams cut off."""

from __future__ import annotations

from hashlib import blake2s

from jumpseat.adapters.wire import as_text
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject
from jumpseat.agent.model import Completed, ModelRequest, StopReason, Usage
from jumpseat.errors import ProviderProtocolError


class AnswerDecoder:
    """Decodes one answer to ``request``; ``provider`` is the signature of its blocks."""

    def __init__(self, provider: str, request: ModelRequest) -> None:
        self._provider = provider
        self._turn = len(request.messages)
        self._announces = request.announce_blocks
        self._model: str | None = None
        self._response_id: str | None = None
        self._begun = False
        self._completed = False

    def _note_head(self, head: JsonObject) -> None:
        self._begun = True
        self._response_id = as_text(head.get("id")) or self._response_id
        self._model = as_text(head.get("model")) or self._model

    def _new_id(self, *place: object) -> str:
        """Create an id for a call without one: unique in its conversation, and stable across decodings."""
        seed = "|".join(map(str, (self._turn, *place)))
        return f"call_{blake2s(seed.encode(), digest_size=12).hexdigest()}"

    def _complete_with(
        self, blocks: list[AssistantBlock], stop_reason: StopReason, usage: Usage | None
    ) -> Completed:
        """Return the last event of the answer."""
        return Completed(AssistantMessage(blocks), stop_reason, usage, self._model, self._response_id)

    def _cut_off(self, begun: object) -> ProviderProtocolError:
        """Return the error for a stream that ended too early; ``begun``: after part of its answer has arrived."""
        when = "in the middle of its answer" if begun else "before it sent anything"
        return ProviderProtocolError(f"the provider ended the stream {when}")
