"""The bases of all wires: how a request is posted as JSON, and what the decoders of answers have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from hashlib import blake2s
from types import MappingProxyType
from typing import Any, ClassVar

from jumpseat.adapters.adapter import Adapter, Endpoint, HttpRequest
from jumpseat.adapters.wire import as_list, as_text, merge_headers
from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject
from jumpseat.agent.model import MOST_CALLS, TOO_MANY_CALLS, Completed, ModelRequest, StopReason, Usage
from jumpseat.errors import ProviderProtocolError


class JsonAdapter(Adapter):
    """An adapter that posts JSON. A bearer token wins over the key."""

    key_header: ClassVar[str | None] = None
    """The header of the key; without one, the key is sent as a bearer token."""

    wire_headers: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The headers that the wire requires."""

    def request(self, endpoint: Endpoint, request: ModelRequest) -> HttpRequest:
        return HttpRequest(
            url=self.url(endpoint, request),
            headers=self.headers(endpoint, request),
            body=self.body(endpoint, request),
        )

    @abstractmethod
    def url(self, endpoint: Endpoint, request: ModelRequest) -> str: ...

    @abstractmethod
    def body(self, endpoint: Endpoint, request: ModelRequest) -> JsonObject: ...

    def headers(self, endpoint: Endpoint, request: ModelRequest) -> dict[str, str]:
        return merge_headers(
            {
                "Content-Type": "application/json",
                "Accept": "text/event-stream" if request.stream else "application/json",
                "User-Agent": endpoint.user_agent,
                **self.wire_headers,
            },
            self.auth_headers(endpoint),
            self.extra_headers(endpoint, request),
            endpoint.headers,
            request.headers,
        )

    def auth_headers(self, endpoint: Endpoint) -> dict[str, str]:
        if endpoint.api_key and self.key_header is not None and not endpoint.bearer_token:
            return {self.key_header: endpoint.api_key}
        token = endpoint.bearer_token or endpoint.api_key
        return {"Authorization": f"Bearer {token}"} if token else {}

    def extra_headers(self, endpoint: Endpoint, request: ModelRequest) -> Mapping[str, str]:
        """Return the provider's own headers; those of the endpoint and of the request win over them."""
        return self.default_headers


def calls_of(value: Any) -> list[Any]:
    """Return the tool calls of one message of a stream; none if ``value`` is not an array.

    Raises:
        ProviderProtocolError: there are more than an answer may have.
    """
    calls = as_list(value)
    if len(calls) > MOST_CALLS:
        raise ProviderProtocolError(TOO_MANY_CALLS)
    return calls


def choices_of(value: Any) -> list[Any]:
    """Return the choices of one message.

    Raises:
        ProviderProtocolError: ``value`` is no array, or has more choices than an answer may have calls, of which
            each may be in a choice of its own.
    """
    if not isinstance(value, list):
        raise ProviderProtocolError("unexpected response format: expected an array of choices")
    choices = as_list(value)
    if len(choices) > MOST_CALLS:
        raise ProviderProtocolError(f"the answer has more than {MOST_CALLS} choices")
    return choices


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
