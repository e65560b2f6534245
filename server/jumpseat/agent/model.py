"""What the loop needs of a model: one request in, one stream of model events out.

The loop talks to a :class:`Model`. HTTP providers become one through an adapter and ``adapters/transport/http.py``;
the scripted model is one directly. Nothing here knows JSON-RPC or HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from jumpseat.agent.blocks import AssistantMessage, JsonObject, Message

ReasoningEffort: TypeAlias = str
"""``low``, ``medium``, ``high``, ``xhigh``, ``max``, or whatever else a provider calls its levels."""

StopReason: TypeAlias = Literal[
    "end_turn", "tool_use", "max_tokens", "refusal", "content_filter", "stop_sequence", "pause_turn"
]
"""``refusal``: the model would not; ``content_filter``: a filter of the provider ended what it said.
``pause_turn``: the provider runs tools of its own and wants to be called again to go on."""


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """The MCP server that has a tool, and that server's name for it."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it, but for its ``origin``. ``parameters`` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject
    origin: ToolOrigin | None = None


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """How freely the model may call tools; ``name`` goes with ``specific``."""

    mode: Literal["auto", "required", "none", "specific"] = "auto"
    name: str | None = None
    parallel: bool | None = None


@dataclass(frozen=True, slots=True)
class HostedTool:
    """A tool that the provider runs itself, by our name for it; ``options`` are in the provider's words."""

    name: str
    options: JsonObject = field(default_factory=dict[str, Any])


StructuredOutput: TypeAlias = Literal["always", "without_tools", "never"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can be asked for beyond text and calls.

    ``hosted_tools`` are names of :class:`HostedTool`; ``structured_output`` tells when the form of an answer can be
    asked for in a field of its own. ``images`` tells whether it can be shown any. ``citations`` is whose form they
    have, of the two that clients know.
    """

    hosted_tools: frozenset[str] = frozenset()
    structured_output: StructuredOutput = "always"
    images: bool = True
    citations: Literal["anthropic", "openai"] | None = None


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """Structured output: the answer must satisfy ``schema``."""

    name: str
    schema: JsonObject
    description: str | None = None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model: everything a provider may need, in neutral form.

    ``model`` is the name on the provider's wire. ``settings`` are values for the ``schema`` of a declared adapter.
    ``headers`` are the caller's extra headers of this prompt
    and win over those of the endpoint. Limits are in tokens. ``unasked`` is a call that no user has asked for.
    """

    model: str
    system: str
    messages: list[Message]
    tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    tool_choice: ToolChoice | None = None
    hosted_tools: list[HostedTool] = field(default_factory=list[HostedTool])
    stream: bool = True
    vision: bool = True
    reasoning_effort: ReasoningEffort | None = None
    reasoning_summary: str | None = None
    max_output_tokens: int | None = None
    response_format: ResponseFormat | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    session_id: str | None = None
    interaction_id: str | None = None
    unasked: bool = False


CREDITS_PER_DOLLAR: Final = 100
"""GitHub's AI credits, in which the wire counts money:
https://docs.github.com/en/copilot/concepts/billing/usage-based-billing-for-individuals"""

NANO: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call; zero where the provider reports nothing.

    ``input_tokens`` is the whole prompt, parts read from or written to a cache included; ``output_tokens``
    includes reasoning. ``nano_aiu`` is what the Copilot API says the call took of the plan, in 10^-9 credits;
    ``cost`` is the price of the call where the provider tells it, in US dollars.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    nano_aiu: int = 0
    cost: float | None = None


ToolProtocol: TypeAlias = Literal["native", "xml"]
"""How a model is told of tools and calls them: as its provider's wire has it, or as XML in its text."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars per million tokens; ``None`` means unknown, or not offered."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def amounts(self) -> dict[str, float]:
        """What is known, by the names that clients know it by."""
        named = {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
        }
        return {name: amount for name, amount in named.items() if amount is not None}

    def of(self, usage: Usage) -> float:
        """What a call costs, in US dollars. Where the cache has no price of its own, it costs what input does."""
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        fresh = max(usage.input_tokens - read - written, 0)
        cached = read * (self.input if self.cache_read is None else self.cache_read)
        kept = written * (self.input if self.cache_write is None else self.cache_write)
        return (fresh * self.input + cached + kept + usage.output_tokens * self.output) / 1_000_000


DEFAULT_CONTEXT_WINDOW: Final = 128_000
"""In tokens, where nothing is known of a model."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model; ``None`` means unknown. Limits are in tokens.

    ``id`` is the name that clients use. ``tools`` tells whether its provider lets it call tools; ``tool_protocol``
    is what the user has decided. ``wires`` are the API paths that serve it, ``multiplier`` is its price in
    requests of the plan, ``price`` that in money, ``enabled`` tells whether it can be used as things are.
    """

    id: str
    name: str | None = None
    vendor: str | None = None
    vision: bool | None = None
    tools: bool | None = None
    tool_protocol: ToolProtocol | None = None
    reasoning: bool | None = None
    context_window: int | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    reasoning_efforts: tuple[str, ...] | None = None
    default_reasoning_effort: str | None = None
    wires: tuple[str, ...] | None = None
    enabled: bool = True
    multiplier: float | None = None
    price: Price | None = None

    @property
    def window(self) -> int:
        """The context window, or what is taken for it."""
        return self.context_window or DEFAULT_CONTEXT_WINDOW

    @property
    def prompt_limit(self) -> int:
        """What of the window a request can fill. Many providers keep room for the longest answer."""
        if self.max_prompt_tokens:
            return min(self.max_prompt_tokens, self.window)
        return self.window - min(self.max_output_tokens or 0, self.window // 2)


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call's arguments. ``name`` is known from the first piece on; the text may be empty."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of every successful stream, exactly once: the whole answer, normalised."""

    message: AssistantMessage
    stop_reason: StopReason
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Completed


class Model(Protocol):
    """A model that can be called.

    **Contract:** ``stream`` yields deltas only when ``request.stream`` is true, and ends with exactly one
    :class:`Completed`, or raises a :class:`~jumpseat.errors.ProviderError`. It does not retry: the loop does.
    Leaving the context cancels the request and releases its connection.
    """

    @property
    def adapter_name(self) -> str:
        """What the adapter is called."""
        ...

    @property
    def signs_as(self) -> str:
        """What blocks carry in ``provider`` that can be given back to this model exactly."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """What can be asked of ``model``, which is the name on the provider's wire."""
        ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Call the model.

        Raises:
            ProviderError: the call failed; its class and ``retryable`` say how.
        """
        ...
