"""The provider-neutral conversation: messages made of blocks.

A conversation is a list of :class:`Message`; an adapter turns it into its provider's wire form and back.
Blocks that only one provider understands keep ``provider`` (the adapter family that made them) and
``provider_data`` (its raw JSON), so that they can be replayed exactly to the provider that made them and
rewritten for every other one.
This module contains no JSON codec and no I/O.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat_protocol.structs import PartlyCompared

JsonObject: TypeAlias = dict[str, Any]


NATIVE: Final = "native"
"""Key in the ``provider_data`` of a tool call: the provider-specific call that was translated into it."""


class Citation(Struct):
    """A source cited for the characters ``start`` to ``end`` (exclusive) of the text block that holds it."""

    kind: str
    url: str | None = None
    title: str | None = None
    cited_text: str | None = None
    start: int | None = None
    end: int | None = None
    provider: str | None = None
    provider_data: Any = None


class TextBlock(Struct, gc=False):
    text: str
    citations: list[Citation] = field(default_factory=list[Citation])


class ReasoningBlock(Struct, gc=False):
    """The model's reasoning. ``provider_data`` carries signatures and encrypted forms for exact replay."""

    text: str
    provider: str | None = None
    provider_data: Any = None


class ImageBlock(Struct):
    """A base64-encoded image. ``label`` is a line of text sent before it, such as its file name."""

    data: str
    mime_type: str
    label: str | None = None


class DocumentBlock(Struct):
    """A base64-encoded document, such as a PDF or a text."""

    data: str
    mime_type: str
    title: str | None = None


class ToolUseBlock(Struct, gc=False):
    """A tool call requested by the model.

    ``arguments_json`` is the exact text written by the model; it is echoed to the model byte for byte.
    ``arguments`` is the same text parsed, or ``None`` where it is not a JSON object. A malformed call has a
    ``problem``: it is not run, and the problem is its result, so that the model can correct the call. ``dialect``
    is the tool's name in the terms of another agent, if the call was translated from them.
    """

    id: str
    name: str
    arguments_json: str
    arguments: JsonObject | None
    provider: str | None = None
    provider_data: Any = None
    problem: str | None = None
    dialect: str | None = None


class ToolResultBlock(Struct, gc=False):
    """The result of one :class:`ToolUseBlock`. ``images`` are sent to models with vision only."""

    tool_use_id: str
    tool_name: str
    text: str
    is_error: bool = False
    images: list[ImageBlock] = field(default_factory=list[ImageBlock])


class HostedToolUseBlock(Struct):
    """A call of a tool that the provider runs itself, such as web search or code execution."""

    id: str
    name: str
    input: JsonObject
    provider: str
    provider_data: Any = None


class SearchResult(Struct):
    """A page found by a provider's web search. ``page_age`` is a date or an age, in the provider's words."""

    title: str | None = None
    url: str | None = None
    page_age: str | None = None
    snippet: str | None = None


class HostedToolResultBlock(Struct):
    """The result of a provider-hosted tool. ``text`` is a readable form for other providers.

    ``results`` are the pages that a web search has found; ``None`` for other tools. ``error_code`` is the
    provider's name for a failure.
    """

    tool_use_id: str
    text: str
    provider: str
    is_error: bool = False
    provider_data: Any = None
    results: list[SearchResult] | None = None
    error_code: str | None = None


UserBlock: TypeAlias = TextBlock | ImageBlock | DocumentBlock
AssistantBlock: TypeAlias = TextBlock | ReasoningBlock | ToolUseBlock | HostedToolUseBlock | HostedToolResultBlock
Block: TypeAlias = UserBlock | AssistantBlock | ToolResultBlock


class _Message(PartlyCompared, Struct, kw_only=True):
    """The parts of all messages that are computed from their content, once; they are not compared.

    ``tokens`` is the estimate of ``conversation/tokens.py``, which every request asks for; ``universal`` is whether
    any model can receive the message unchanged, kept by ``conversation/portability.py`` for the same reason.
    """

    uncompared = ("tokens", "universal")
    tokens: int | None = None
    universal: bool | None = None

    def __post_init__(self) -> None:
        # A changed copy of a message has other estimates.
        self.tokens = self.universal = None


class UserMessage(_Message):
    blocks: list[UserBlock]
    role: Literal["user"] = "user"


class AssistantMessage(_Message):
    blocks: list[AssistantBlock]
    role: Literal["assistant"] = "assistant"

    def text(self) -> str:
        """Return all text of the message, joined without separators."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    def reasoning(self) -> str:
        """Return all readable reasoning of the message, joined without separators."""
        return "".join(block.text for block in self.blocks if isinstance(block, ReasoningBlock))

    def tool_uses(self) -> list[ToolUseBlock]:
        """Return the tool calls of the message in the model's order."""
        return [block for block in self.blocks if isinstance(block, ToolUseBlock)]


class ToolMessage(_Message):
    """The results of one assistant message, in the order of its calls."""

    results: list[ToolResultBlock]
    role: Literal["tool"] = "tool"


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage
