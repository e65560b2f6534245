"""The interface of a model: one request in, one stream of model events out.

The loop calls a :class:`Model`. An HTTP provider becomes one through an adapter and ``adapters/transport/http.py``;
the scripted model implements the interface directly. A :class:`RewritingModel` wraps another model. Nothing here
knows JSON-RPC or HTTP.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

import anyio.to_thread
import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantBlock, AssistantMessage, JsonObject, Message, TextBlock
from jumpseat.agent.encoded_history import Write, WrittenMessages, WrittenValue, encode, write_anew
from jumpseat_protocol.structs import Discreet

ReasoningEffort: TypeAlias = str
"""``low``, ``medium``, ``high``, ``xhigh``, ``max``, or another level of the provider."""

StopReason: TypeAlias = Literal[
    "end_turn", "tool_use", "max_tokens", "refusal", "content_filter", "stop_sequence", "pause_turn"
]
"""``refusal``: the model declined to answer; ``content_filter``: a filter of the provider stopped the answer.
``pause_turn``: the provider is running hosted tools and has to be called again to continue."""


class ToolOrigin(Struct, frozen=True):
    """The MCP server that provides a tool, and that server's name for the tool."""

    server: str
    tool: str


Translate: TypeAlias = Callable[[JsonObject], JsonObject | None]
"""Converts a schema to the form of a wire, without changing it; returns ``None`` if the wire sends none."""


class ToolSchema(WrittenValue):
    """The JSON Schema of a tool's arguments, an object, and the forms in which it was sent.

    A schema is sent in every request and looked into seldom, and its text takes about a third of the memory of its
    objects.
    """

    __slots__ = ("_translations", "_unchanged_by")

    def __init__(self, encoded: bytes) -> None:
        super().__init__(encoded)
        # Most schemas have the form of most wires.
        self._unchanged_by: Translate | None = None
        self._translations: dict[Translate, WrittenValue | None] | None = None

    @classmethod
    def of(cls, schema: JsonObject) -> ToolSchema:
        """Encode a schema.

        Raises:
            TypeError, ValueError, RecursionError: the schema is not JSON.
        """
        return cls(_encode(schema))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolSchema) and self.json == other.json

    def __hash__(self) -> int:
        return hash(self.json)

    def read(self) -> JsonObject:
        return cast("JsonObject", orjson.loads(self.json))

    def translated(self, translate: Translate) -> WrittenValue | None:
        """Return the schema as ``translate``, a function of a module, converts it; kept for the next call."""
        if translate is self._unchanged_by:
            return self
        kept = self._translations
        if kept is None or translate not in kept:
            schema = self.read()
            made = translate(schema)
            if made is schema:
                self._unchanged_by = translate
                return self
            kept = {**(kept or {}), translate: None if made is None else WrittenValue(_encode(made))}
            self._translations = kept
        return kept[translate]


def _encode(schema: JsonObject) -> bytes:
    # A copy, because orjson returns up to twice the memory that the text takes.
    return bytes(memoryview(encode(schema)))


class ToolSpec(Struct, frozen=True):
    """A tool offered to a model. ``schema`` describes its arguments, an object; ``origin`` is not sent.

    ``strict`` asks for arguments that follow the schema exactly, on wires that have such a mode. ``grammar``, in
    Lark's notation, describes the only argument, a text: a wire that has free-form tools may offer one.
    """

    name: str
    description: str
    schema: ToolSchema
    origin: ToolOrigin | None = None
    strict: bool | None = None
    grammar: str | None = None

    @property
    def parameters(self) -> JsonObject:
        """The schema as an object, which each access decodes anew."""
        return self.schema.read()


class ToolChoice(Struct, frozen=True):
    """The constraint on tool calls in the answer; ``name`` is set in mode ``specific``."""

    mode: Literal["auto", "required", "none", "specific"] = "auto"
    name: str | None = None
    parallel: bool | None = None


class HostedTool(Struct, frozen=True):
    """A tool that the provider runs itself, or that its models were trained on.

    ``name`` is ours; ``options`` are the provider's. Calls of the second kind are translated to calls of our own
    tools unless ``untranslated`` is set.
    """

    name: str
    options: JsonObject = field(default_factory=dict[str, Any])
    untranslated: bool = False


StructuredOutput: TypeAlias = Literal["always", "without_tools", "never"]

EditsContext: TypeAlias = Literal["clears", "compacts"]
"""What a provider does with a conversation that grows too long: it clears old results, or compacts all of it."""


class Capabilities(Struct, frozen=True):
    """The features of a model beyond text and tool calls.

    ``hosted_tools`` are names of :class:`HostedTool`. ``structured_output`` is when a request can carry a response
    format. ``images`` is whether the model takes images. ``citations`` is the provider whose citation format the
    model uses, of the two that clients know. ``limits_calls`` is whether a request can ask for one tool call at a
    time. ``drops_tools`` is the reason why requests contain no tools, for the user; empty if they do.
    ``reports_cost`` is whether answers state what they cost. ``edits_context`` is set if the provider shall shorten
    long conversations itself.
    """

    hosted_tools: frozenset[str] = frozenset()
    structured_output: StructuredOutput = "always"
    images: bool = True
    citations: Literal["anthropic", "openai"] | None = None
    limits_calls: bool = True
    drops_tools: str = ""
    reports_cost: bool = False
    edits_context: EditsContext | None = None


class ContextEditing(Struct, frozen=True):
    """The settings by which a provider shortens a conversation. ``begin`` and ``at_least`` are in tokens.

    From ``begin`` on, it compacts the conversation, or clears old results of tools: ``at_least`` so many tokens,
    but not the latest ``kept`` results, nor those of the tools ``spared``.
    """

    begin: int
    at_least: int = 0
    kept: int = 0
    spared: tuple[str, ...] = ()


class ResponseFormat(Struct, frozen=True):
    """Structured output: the answer must satisfy ``schema``."""

    name: str
    schema: JsonObject
    description: str | None = None
    strict: bool | None = None


class SubAgentRef(Struct, frozen=True):
    """The sub-agent that sends a request; ``parent`` is the id of the sub-agent that started it, if any."""

    id: str
    parent: str | None = None


class ModelRequest(Discreet, Struct, frozen=True):
    """A provider-neutral model request.

    ``model`` is the name on the provider's wire. ``settings`` are values for the ``schema`` of a declared adapter.
    ``headers`` are the prompt's extra headers and override those of the endpoint. Limits are in tokens.
    ``unasked`` marks a request that no user has initiated. ``agent`` is set for requests of sub-agents. With
    ``announce_blocks``, a streamed answer contains :class:`BlockCompleted` as far as the adapter knows the end of
    a block. ``context_editing`` asks providers that can to shorten the conversation. ``written`` is what the
    adapter has written for earlier requests of the conversation; without it, all of the request is plain JSON.
    """

    hidden = ("written",)
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
    agent: SubAgentRef | None = None
    unasked: bool = False
    announce_blocks: bool = False
    context_editing: ContextEditing | None = None
    written: WrittenMessages | None = None

    def write(self, form: Hashable, messages: Sequence[Message], write: Write) -> list[Any]:
        """Write messages of this request as elements of one array; see :class:`WrittenMessages`."""
        if self.written is None:
            return write_anew(messages, write)
        return self.written.write(form, messages, write)

    def write_each(self, form: Hashable, write: Write) -> list[list[Any]]:
        """Write the elements of each message of this request; see :class:`WrittenMessages`."""
        if self.written is None:
            return [write(message) for message in self.messages]
        return self.written.write_each(form, self.messages, write)

    def write_schema(self, tool: ToolSpec, translate: Translate) -> Any:
        """Write the schema of a tool as ``translate`` converts it; ``None`` if that is the result.

        The translation is kept with the tool, so ``translate`` must be a function of a module.
        """
        return translate(tool.parameters) if self.written is None else tool.schema.translated(translate)


CREDITS_PER_DOLLAR: Final = 100
"""GitHub's AI credits, the wire's unit of money:
https://docs.github.com/en/copilot/concepts/billing/usage-based-billing-for-individuals"""

NANO: Final = 1_000_000_000


class Usage(Struct, frozen=True):
    """The tokens used by one model call; zero where the provider reports nothing.

    ``input_tokens`` is the whole prompt, including parts read from or written to a cache; ``output_tokens``
    includes reasoning. ``nano_aiu`` is the charge to the plan reported by the Copilot API, in 10^-9 credits;
    ``cost`` is the price of the call in US dollars where the provider reports it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    nano_aiu: int = 0
    cost: float | None = None


ToolProtocol: TypeAlias = Literal["native", "xml"]
"""The way in which tools are offered and called: through the provider's API, or as XML in the text."""


EditTools: TypeAlias = Literal["edit", "apply_patch"]
"""The built-in tools that change files: ``edit`` and ``create``, or ``apply_patch`` in place of both."""


class Price(Struct, frozen=True):
    """The prices of a model in US dollars per million tokens; ``None`` means unknown, or not offered."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def amounts(self) -> dict[str, float]:
        """Return the known prices by their wire names."""
        named = {
            "input": self.input,
            "output": self.output,
            "cacheRead": self.cache_read,
            "cacheWrite": self.cache_write,
        }
        return {name: amount for name, amount in named.items() if amount is not None}

    def total(self, usage: Usage) -> float:
        """Return the price of a call in US dollars. Cached tokens without a price cost as much as input."""
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        fresh = max(usage.input_tokens - read - written, 0)
        read_cost = read * (self.input if self.cache_read is None else self.cache_read)
        write_cost = written * (self.input if self.cache_write is None else self.cache_write)
        return (fresh * self.input + read_cost + write_cost + usage.output_tokens * self.output) / 1_000_000


DEFAULT_CONTEXT_WINDOW: Final = 128_000
"""The context window assumed for an unknown model, in tokens."""


class ModelInfo(Struct, frozen=True):
    """The known facts about a model; ``None`` means unknown. Limits are in tokens.

    ``id`` is the name that clients use. ``tools`` is whether the provider accepts tools for it; ``tool_protocol``
    is the user's choice, and ``edit_tools`` too. ``context_editing`` is whether the provider takes the request for
    it. ``wires`` are the API paths of the model. ``multiplier`` is its price in requests of the plan, ``price``
    its price in money. ``enabled`` is whether the account can use it now.
    """

    id: str
    name: str | None = None
    vendor: str | None = None
    vision: bool | None = None
    tools: bool | None = None
    tool_protocol: ToolProtocol | None = None
    edit_tools: EditTools | None = None
    reasoning: bool | None = None
    context_editing: bool | None = None
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
        """The context window in tokens, the largest prompt if only that is known, or the default."""
        return self.context_window or self.max_prompt_tokens or DEFAULT_CONTEXT_WINDOW

    @property
    def token_limit(self) -> int:
        """The tokens that a conversation may take: the window, or the largest prompt if that is less."""
        return min(self.max_prompt_tokens or self.window, self.window)

    @property
    def prompt_limit(self) -> int:
        """The largest prompt in tokens. Many providers reserve room in the window for the longest answer."""
        if self.max_prompt_tokens:
            return min(self.max_prompt_tokens, self.window)
        return self.window - min(self.max_output_tokens or 0, self.window // 2)


class TextDelta(Struct, frozen=True):
    text: str


class ReasoningDelta(Struct, frozen=True):
    text: str


class ToolCallDelta(Struct, frozen=True):
    """A piece of a call's arguments. ``name`` is set from the first piece on; ``arguments`` may be empty."""

    id: str
    name: str
    arguments: str


class BlockCompleted(Struct, frozen=True):
    """A finished block of the answer, equal to the one in ``Completed``. Blocks are announced in their order.

    Only requests with ``announce_blocks`` get these events, and the last blocks may be in ``Completed`` only.
    """

    block: AssistantBlock


class Cleared(Struct, frozen=True):
    """The results of tools that a provider has left out of a request, and their tokens."""

    results: int
    tokens: int


class Completed(Struct, frozen=True):
    """The whole, normalised answer: the last event of every successful stream.

    ``written_for`` is set if the model wrote its calls as text: the options with which servers parse them.
    ``cleared`` is what the provider has left out of the request.
    """

    message: AssistantMessage
    stop_reason: StopReason
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    written_for: str | None = None
    cleared: Cleared | None = None


ModelEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | BlockCompleted | Completed


class Model(Protocol):
    """A model that can be called.

    **Contract:** ``stream`` yields deltas only when ``request.stream`` is true, and ends with exactly one
    :class:`Completed`, or raises a :class:`~jumpseat.errors.ProviderError`. It does not retry; the loop does.
    Leaving the context cancels the request and releases its connection.
    """

    @property
    def adapter_name(self) -> str:
        """The name of the adapter."""
        ...

    @property
    def signs_as(self) -> str:
        """The ``provider`` of blocks that can be sent back to this model unchanged."""
        ...

    def capabilities(self, model: str) -> Capabilities:
        """Return the features of ``model``, named as on the provider's wire."""
        ...

    def stream(self, request: ModelRequest) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Call the model.

        Raises:
            ProviderError: the call failed; its class and ``retryable`` give the kind of failure.
        """
        ...


class RewritingModel:
    """A model that sends rewritten requests to ``inner`` and rewrites the events of its answers."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    @property
    def adapter_name(self) -> str:
        return self.inner.adapter_name

    @property
    def signs_as(self) -> str:
        return self.inner.signs_as

    def capabilities(self, model: str) -> Capabilities:
        return self.inner.capabilities(model)

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        """Return the request to ``inner`` for ``request``."""
        raise NotImplementedError

    def rewriter_for(self, request: ModelRequest) -> Rewriter | None:
        """Return the rewriter for the events of the answer to ``request``; ``None`` leaves them unchanged."""
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        """See :meth:`jumpseat.agent.model.Model.stream`."""
        rewriter = self.rewriter_for(request)
        rewritten = self.rewrite_request(request)
        if rewriter is not None and rewritten.announce_blocks:
            # The rewriter replaces blocks of the whole answer.
            rewritten = replace(rewritten, announce_blocks=False)
        async with self.inner.stream(rewritten) as events:
            yield events if rewriter is None else _Rewritten(events, rewriter)


MOST_CALLS: Final = 2048
"""The tool calls of one answer. Each is stored and gets its result, also if it does not run."""

TOO_MANY_CALLS: Final = f"the answer has more than {MOST_CALLS} tool calls"

MAX_AT_ONCE_CHARS: Final = 4 * 1024
"""Limit of the text that is rewritten on the event loop; more takes a thread."""


class Rewriter:
    """Rewrites the events of one answer.

    Once ``passes`` is true, events other than the last one are not given to it any more, and stay as they are.
    """

    passes = False

    def events_for(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """Return the events to yield in place of ``event``, possibly none."""
        raise NotImplementedError


class _Rewritten:
    def __init__(self, events: AsyncIterator[ModelEvent], rewriter: Rewriter) -> None:
        self._events = events
        self._rewriter = rewriter
        self._waiting: deque[ModelEvent] = deque()

    def __aiter__(self) -> AsyncIterator[ModelEvent]:
        return self

    async def __anext__(self) -> ModelEvent:
        while not self._waiting:
            event = await anext(self._events)
            if self._rewriter.passes and type(event) is not Completed:
                return event
            if _text_chars(event) < MAX_AT_ONCE_CHARS:
                self._waiting += self._rewriter.events_for(event)
            else:
                self._waiting += await anyio.to_thread.run_sync(self._events_for, event)
        return self._waiting.popleft()

    def _events_for(self, event: ModelEvent) -> list[ModelEvent]:
        # Some rewriters work before they return, others with each event that is taken.
        return list(self._rewriter.events_for(event))


def _text_chars(event: ModelEvent) -> int:
    match event:
        case TextDelta():
            return len(event.text)
        case Completed():
            return sum(len(block.text) for block in event.message.blocks if isinstance(block, TextBlock))
        case _:
            return 0


def provider_request(model: Model, request: ModelRequest) -> ModelRequest:
    """Return the request that reaches the provider for ``request``, after all rewriting."""
    while isinstance(model, RewritingModel):
        request, model = model.rewrite_request(request), model.inner
    return request
