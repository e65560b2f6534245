"""The provider-neutral conversation: messages made of blocks.

A conversation is a list of :class:`Message`; an adapter turns it into its provider's wire form and back.
Blocks that only one provider understands keep ``provider`` (the adapter family that made them) and
``provider_data`` (its raw JSON), so that they can be replayed exactly to the provider that made them and
rewritten for every other one.
This module contains no JSON codec and no I/O.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final, Literal, TypeAlias

from jumpseat_protocol.lazy_dataclasses import dataclass

JsonObject: TypeAlias = dict[str, Any]


NATIVE: Final = "native"
"""Key in the ``provider_data`` of a tool call: the provider-specific call that was translated into it."""


@dataclass(slots=True)
class Citation:
    """A source cited for the characters ``start`` to ``end`` (exclusive) of the text block that holds it."""

    kind: str
    url: str | None = None
    title: str | None = None
    cited_text: str | None = None
    start: int | None = None
    end: int | None = None
    provider: str | None = None
    provider_data: Any = None


@dataclass(slots=True)
class TextBlock:
    text: str
    citations: list[Citation] = field(default_factory=list[Citation])


@dataclass(slots=True)
class ReasoningBlock:
    """The model's reasoning. ``provider_data`` carries signatures and encrypted forms for exact replay."""

    text: str
    provider: str | None = None
    provider_data: Any = None


@dataclass(slots=True)
class ImageBlock:
    """A base64-encoded image. ``label`` is a line of text sent before it, such as its file name."""

    data: str
    mime_type: str
    label: str | None = None


@dataclass(slots=True)
class DocumentBlock:
    """A base64-encoded document, such as a PDF or a text."""

    data: str
    mime_type: str
    title: str | None = None


@dataclass(slots=True)
class ToolUseBlock:
    """A tool call requested by the model.

    ``arguments_json`` is the exact text written by the model; it is echoed to the model byte for byte.
    ``arguments`` is the same text parsed, or ``None`` where it is not a JSON object. A malformed call has a
    ``problem``: it is not run, and the problem is its result, so that the model can correct the call.
    """

    id: str
    name: str
    arguments_json: str
    arguments: JsonObject | None
    provider: str | None = None
    provider_data: Any = None
    problem: str | None = None


@dataclass(slots=True)
class ToolResultBlock:
    """The result of one :class:`ToolUseBlock`. ``images`` are sent to models with vision only."""

    tool_use_id: str
    tool_name: str
    text: str
    is_error: bool = False
    images: list[ImageBlock] = field(default_factory=list[ImageBlock])


@dataclass(slots=True)
class HostedToolUseBlock:
    """A call of a tool that the provider runs itself, such as web search or code execution."""

    id: str
    name: str
    input: JsonObject
    provider: str
    provider_data: Any = None


@dataclass(slots=True)
class SearchResult:
    """A page found by a provider's web search. ``page_age`` is a date or an age, in the provider's words."""

    title: str | None = None
    url: str | None = None
    page_age: str | None = None
    snippet: str | None = None


@dataclass(slots=True)
class HostedToolResultBlock:
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


@dataclass(slots=True)
class UserMessage:
    blocks: list[UserBlock]
    role: Literal["user"] = "user"
    tokens: int | None = field(default=None, init=False, repr=False, compare=False)
    """The estimate of its tokens, kept by ``conversation/tokens.py``: every request asks for it again."""
    universal: bool | None = field(default=None, init=False, repr=False, compare=False)
    """Whether any model can receive it unchanged, kept by ``conversation/portability.py`` for the same reason."""


@dataclass(slots=True)
class AssistantMessage:
    blocks: list[AssistantBlock]
    role: Literal["assistant"] = "assistant"
    tokens: int | None = field(default=None, init=False, repr=False, compare=False)
    universal: bool | None = field(default=None, init=False, repr=False, compare=False)

    def text(self) -> str:
        """Return all text of the message, joined without separators."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    def reasoning(self) -> str:
        """Return all readable reasoning of the message, joined without separators."""
        return "".join(block.text for block in self.blocks if isinstance(block, ReasoningBlock))

    def tool_uses(self) -> list[ToolUseBlock]:
        """Return the tool calls of the message in the model's order."""
        return [block for block in self.blocks if isinstance(block, ToolUseBlock)]


@dataclass(slots=True)
class ToolMessage:
    """The results of one assistant message, in the order of its calls."""

    results: list[ToolResultBlock]
    role: Literal["tool"] = "tool"
    tokens: int | None = field(default=None, init=False, repr=False, compare=False)
    universal: bool | None = field(default=None, init=False, repr=False, compare=False)


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage
