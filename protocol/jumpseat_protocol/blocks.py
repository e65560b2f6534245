"""Messages made of blocks: the conversation of a model call outside of a session.

A block has the same form in requests and in answers, so that the blocks of an answer can be stored and sent back.
Blocks of a provider's own tools carry ``provider`` and ``provider_data``: the same provider gets the data back
unchanged, other providers get the block as text.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field, StrictBool

from jumpseat_protocol.wire import WireModel

ExecutionSide: TypeAlias = Literal["client", "provider"]
"""The side that runs a tool: the caller of the model, or the provider."""


class Citation(WireModel):
    """A source for the characters ``start`` to ``end`` (exclusive) of the text block that holds the citation.

    ``kind`` is the provider's name for the form, such as ``url_citation``.
    """

    kind: str
    url: str | None = None
    title: str | None = None
    cited_text: str | None = None
    start: int | None = None
    end: int | None = None
    provider: str | None = None
    provider_data: Any = None


class SearchResult(WireModel):
    """A page found by a provider's web search. ``page_age`` is a date or an age, in the provider's words."""

    title: str | None = None
    url: str | None = None
    page_age: str | None = None
    snippet: str | None = None


class BlockBase(WireModel):
    """The members of all blocks, and helpers that return ``None`` for blocks without the value.

    ``provider`` is set on blocks that only one provider can read exactly; ``provider_data`` is the raw JSON of that
    provider.
    """

    provider: str | None = None
    provider_data: Any = None

    @property
    def block_type(self) -> str:
        """The type of the block, as in the field ``type``."""
        return cast("str", getattr(self, "type"))  # noqa: B009 - each subclass has its own literal

    @property
    def execution_side(self) -> ExecutionSide | None:
        """The side that runs the tool of a call or result; ``None`` for other blocks."""
        match self.block_type:
            case "tool_use" | "tool_result":
                return "client"
            case "web_search_use" | "web_search_result" | "hosted_tool_use" | "hosted_tool_result":
                return "provider"
            case _:
                return None

    def get_tool_use_id(self) -> str | None:
        """Return the id that connects a call and its result."""
        return getattr(self, "tool_use_id", None)

    def get_tool_name(self) -> str | None:
        """Return the name of the tool that is called."""
        return getattr(self, "tool_name", None)

    def get_tool_input(self) -> dict[str, Any] | None:
        """Return the arguments of a call."""
        return getattr(self, "input", None)

    def is_portable(self, provider: str | None = None) -> bool:
        """Return whether ``provider``, by default any provider, receives the block unchanged."""
        if self.execution_side == "provider" or self.provider_data is not None:
            return provider is not None and self.provider == provider
        return True


class TextBlock(BlockBase):
    type: Literal["text"] = "text"
    text: str
    citations: list[Citation] = Field(default_factory=list[Citation])


class ImageBlock(BlockBase):
    """``data`` is base64. ``alt_text`` is a line of text sent before the image, such as its file name."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str
    alt_text: str | None = None


class DocumentBlock(BlockBase):
    """``data`` is base64: a PDF, a text, or another type that the model reads."""

    type: Literal["document"] = "document"
    data: str
    mime_type: str
    title: str | None = None


class ToolResultBlock(BlockBase):
    """The result of the ``tool_use`` block with that id, sent in the user's message after the call."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str = Field(min_length=1)
    text: str = ""
    is_error: StrictBool = False
    images: list[ImageBlock] = Field(default_factory=list[ImageBlock])


class ReasoningBlock(BlockBase):
    """The model's reasoning; ``thinking`` is accepted as another name of the type."""

    type: Literal["reasoning", "thinking"] = "reasoning"
    text: str = ""


class ToolUseBlock(BlockBase):
    """A call that the caller runs.

    ``input_json`` is the model's own text where it differs from the compact JSON of ``input``. A call with a
    ``problem`` must not be run, because its arguments are not valid; send the problem as its result.
    """

    type: Literal["tool_use"] = "tool_use"
    tool_use_id: str = Field(min_length=1)
    tool_name: str = Field(min_length=1)
    input: dict[str, Any] = Field(default_factory=dict[str, Any])
    input_json: str | None = None
    problem: str | None = None


class WebSearchUseBlock(BlockBase):
    """A web search that the provider has run."""

    type: Literal["web_search_use"] = "web_search_use"
    tool_use_id: str
    tool_name: Literal["web_search"] = "web_search"
    input: dict[str, Any] = Field(default_factory=dict[str, Any])


class WebSearchResultBlock(BlockBase):
    """The pages that a provider's web search has found. ``text`` lists them for models of other providers."""

    type: Literal["web_search_result"] = "web_search_result"
    tool_use_id: str
    results: list[SearchResult] = Field(default_factory=list[SearchResult])
    text: str = ""
    is_error: StrictBool = False
    error_code: str | None = None


class HostedToolUseBlock(BlockBase):
    """A call of another tool that the provider has run, such as ``url_context`` or ``code_execution``."""

    type: Literal["hosted_tool_use"] = "hosted_tool_use"
    tool_use_id: str
    tool_name: str
    input: dict[str, Any] = Field(default_factory=dict[str, Any])


class HostedToolResultBlock(BlockBase):
    """The result of such a call in a readable form."""

    type: Literal["hosted_tool_result"] = "hosted_tool_result"
    tool_use_id: str
    text: str = ""
    is_error: StrictBool = False
    error_code: str | None = None


Block: TypeAlias = Annotated[
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ToolResultBlock
    | ReasoningBlock
    | ToolUseBlock
    | WebSearchUseBlock
    | WebSearchResultBlock
    | HostedToolUseBlock
    | HostedToolResultBlock,
    Field(discriminator="type"),
]


class Message(WireModel):
    """A message: its text or its blocks as ``content``. ``blocks`` is another name for blocks.

    ``text``, ``image``, ``document`` and ``tool_result`` are blocks of the user, all others of the assistant; a
    system message has only text.
    """

    role: Literal["system", "user", "assistant"]
    content: str | list[Block] | None = None
    blocks: list[Block] | None = None

    def all_blocks(self) -> list[Block]:
        """Return the blocks; a text is one block."""
        if isinstance(self.content, str):
            return [TextBlock(text=self.content)] if self.content else []
        return self.content if self.content is not None else self.blocks or []
