"""``jumpseat.complete`` and ``jumpseat.portability``: model calls without a session, from blocks to blocks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypedDict

from pydantic import AliasChoices, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_snake

from jumpseat_protocol.blocks import Block, Message
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.members import UnknownMember, unknown_members
from jumpseat_protocol.portability import Portability
from jumpseat_protocol.sessions import HostedToolConfig, ProviderConfig, ResponseFormatConfig, ToolName
from jumpseat_protocol.tool_definitions import Tool
from jumpseat_protocol.wire import Method, WireModel, WireStruct

EVENT: Final = "jumpseat.complete.event"
"""The notification with a piece of a streamed answer."""


class ToolChoice(WireModel):
    """The constraint on tool calls in the answer; ``tool_name`` is set in mode ``specific``.

    ``parallel`` sets whether the model may request several calls at once, if the provider has that option.
    """

    mode: Literal["auto", "required", "none", "specific"] = "auto"
    """Whether the model may, must or must not call tools."""
    tool_name: str | None = Field(default=None, min_length=1)
    parallel: StrictBool | None = None
    """Whether it may make several calls at once."""


class ModelChoice(WireModel):
    """The model of a call.

    The model is that of ``adapter``, or of ``provider`` as in ``session.create``, or the one that a session with
    that ``model`` would use. ``cwd`` selects the adapters of a project.
    """

    adapter: str | None = Field(default=None, min_length=1)
    """The name of an adapter."""
    provider: ProviderConfig | None = None
    """A provider, as in ``session.create``."""
    model: str | None = Field(default=None, min_length=1)
    """The id of the model."""
    cwd: PathText | None = Field(default=None, min_length=1)


class CompleteParams(ModelChoice):
    """A model call outside of any session. Unknown members are errors.

    ``messages`` is a conversation that ends with a message of the user; ``prompt`` is short for one such message.
    ``hosted_tools`` are tools that the provider runs, by our names; ``tools`` may contain them as well.
    ``settings`` (or ``adapter_settings``) are values for the ``schema`` of the model's adapter; ``temperature``,
    ``top_p``, ``top_k``, ``seed`` and ``stop`` are short for those of every provider. ``max_output_tokens`` limits
    the answer. With ``stream``, the answer arrives in notifications that carry ``stream_id``, which the client
    chooses and which is unique among its running requests.
    """

    model_config = ConfigDict(extra="forbid")

    prompt: str | None = None
    """A prompt, in place of ``messages``."""
    messages: list[Message] | None = None
    """The conversation, which ends with a message of the user."""
    tools: list[Tool] = Field(default_factory=list[Tool])
    """The tools that the model may call."""
    tool_choice: ToolChoice | None = None
    hosted_tools: list[ToolName | HostedToolConfig] = Field(default_factory=list[ToolName | HostedToolConfig])
    settings: dict[str, Any] = Field(
        default_factory=dict[str, Any], validation_alias=AliasChoices("settings", "adapterSettings")
    )
    """Settings of the adapter, by name."""
    temperature: float | None = None
    """How freely the model chooses words."""
    top_p: float | None = None
    """The share of likely words that the model chooses from."""
    top_k: int | None = None
    """The number of likely words that the model chooses from."""
    seed: int | None = None
    """A number that makes answers more alike."""
    stop: list[str] | None = None
    """Texts at which the answer ends."""
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of the answer."""
    response_format: ResponseFormatConfig | None = None
    stream: StrictBool = False
    """Whether the answer is sent in parts while it is made."""
    stream_id: str | None = Field(default=None, min_length=1)
    """The id that the parts carry."""


class CompleteUsage(WireModel):
    """Numbers of tokens. ``input_tokens`` is the whole prompt; ``output_tokens`` includes reasoning."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    """The tokens of reasoning among the output."""


class CompleteResult(WireModel):
    """``text`` is that of all text blocks. ``usage`` is unset if the provider does not report it.

    ``provider`` is the name that the blocks of this provider carry. ``cost_usd`` is as reported by the provider, or
    computed from known prices. ``warnings`` name features that the model is known to lack.
    """

    text: str
    """The text of the answer."""
    blocks: list[Block]
    """The answer in blocks."""
    model: str
    """The id of the model that answered."""
    provider: str
    """The name that blocks of this provider carry."""
    stop_reason: str
    """Why the answer ended."""
    usage: CompleteUsage | None = None
    """The tokens of the call."""
    cost_usd: float | None = None
    """The price of the call in US dollars, if it is known."""
    response_id: str | None = None
    """The provider's id of the answer."""
    warnings: list[str] = Field(default_factory=list[str])
    """What could not be sent as asked."""


DeltaType: TypeAlias = Literal["text_delta", "reasoning_delta", "tool_call_start", "input_json_delta"]


class CompleteDelta(WireStruct):
    """A piece of the answer: a ``text`` or reasoning, the start of a tool call, or a piece of the call's input."""

    delta_type: DeltaType
    """What this is a part of."""
    text: str | None = None
    """The next part of the text."""
    tool_call_id: str | None = None
    tool_call_name: str | None = None
    """The name of the tool that is called."""
    input_json_delta: str | None = None
    """The next part of the arguments, as JSON text."""


class CompleteEvent(WireModel):
    """Either a ``delta``, or a finished ``block``. Each block of the answer arrives once, in order."""

    stream_id: str = ""
    """The id that the request gave."""
    delta: CompleteDelta | None = None
    """The next part."""
    block: Block | None = None
    """A block that is complete."""


class PortabilityParams(ModelChoice):
    """The conversation of ``session_id``, or ``messages``, and a target model.

    Without ``adapter``, ``provider`` and ``model``, the target is the session's own model.
    """

    session_id: str | None = None
    messages: list[Message] | None = None
    """A conversation, in place of a session."""


class CompleteOptions(TypedDict, total=False):
    """The members of :class:`CompleteParams` as keyword arguments."""

    adapter: str
    provider: ProviderConfig
    model: str
    cwd: str
    prompt: str
    messages: Sequence[Message]
    tools: Sequence[Tool]
    tool_choice: ToolChoice
    hosted_tools: Sequence[str | HostedToolConfig]
    settings: Mapping[str, Any]
    temperature: float
    top_p: float
    top_k: int
    seed: int
    stop: Sequence[str]
    reasoning_effort: str
    reasoning_summary: str
    max_output_tokens: int
    response_format: ResponseFormatConfig


def options_problem(params: object, options: Mapping[str, Any]) -> str | None:
    """Return the first argument of a call from Python that has an unknown name, or cannot be given there.

    Args:
        params: the positional argument, ``None`` or :class:`CompleteParams`.
        options: the keyword arguments. Objects in them may be dictionaries, with names of the wire or of Python.
    """
    if not (params is None or isinstance(params, CompleteParams)):
        return f"expected CompleteParams or keyword arguments such as prompt=, got {type(params).__name__}"
    if not {"stream", "stream_id", "streamId"}.isdisjoint(options):
        return "stream: not an option of a call from Python; the function stream streams the answer"
    unknown = unknown_members(CompleteParams, dict(options))
    if not unknown:
        return None
    known = (to_snake(name) for name in unknown[0].known)
    return str(UnknownMember(unknown[0].path, tuple(name for name in known if name not in ("stream", "stream_id"))))


class AnswerStream:
    """An iterator over a streamed answer: its deltas and finished blocks.

    Attributes:
        result: the whole answer, once the iteration has ended.
    """

    def __init__(self, pieces: AsyncIterator[CompleteEvent | CompleteResult]) -> None:
        self.result: CompleteResult | None = None
        self._pieces = pieces

    def __aiter__(self) -> AnswerStream:
        return self

    async def __anext__(self) -> CompleteEvent:
        if self.result is not None:
            raise StopAsyncIteration
        piece = await anext(self._pieces)
        if isinstance(piece, CompleteResult):
            self.result = piece
            raise StopAsyncIteration
        return piece


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.complete": Method(CompleteParams, CompleteResult, "Call a model outside of any session."),
    "jumpseat.portability": Method(
        PortabilityParams, Portability, "Return what another model would get of a conversation."
    ),
}
