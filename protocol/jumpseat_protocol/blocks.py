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
    """The text of the source that is cited."""
    start: int | None = None
    """Index of the first character that the source supports."""
    end: int | None = None
    """Index after the last such character."""
    provider: str | None = None
    """The provider that made the citation, if only it can read ``provider_data``."""
    provider_data: Any = None


class SearchResult(WireModel):
    """A page found by a provider's web search. ``page_age`` is a date or an age, in the provider's words."""

    title: str | None = None
    url: str | None = None
    page_age: str | None = None
    """When the page was last changed, in the provider's words."""
    snippet: str | None = None
    """The part of the page that matched."""


class BlockBase(WireModel):
    """The members of all blocks, and helpers that return ``None`` for blocks without the value.

    ``provider`` is set on blocks that only one provider can read exactly; ``provider_data`` is the raw JSON of that
    provider.
    """

    provider: str | None = None
    """The provider that alone can read ``provider_data``."""
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
    """A text in a message."""

    type: Literal["text"] = "text"
    text: str
    """The text."""
    citations: list[Citation] = Field(default_factory=list[Citation])
    """The sources that the text cites."""


class ImageBlock(BlockBase):
    """``data`` is base64. ``alt_text`` is a line of text sent before the image, such as its file name."""

    type: Literal["image"] = "image"
    data: str
    """The image in base64."""
    mime_type: str
    alt_text: str | None = None
    """Text sent before the image, such as its file name."""


class DocumentBlock(BlockBase):
    """``data`` is base64: a PDF, a text, or another type that the model reads."""

    type: Literal["document"] = "document"
    data: str
    """The document in base64."""
    mime_type: str
    title: str | None = None


class ToolResultBlock(BlockBase):
    """The result of the ``tool_use`` block with that id, sent in the user's message after the call."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str = Field(min_length=1)
    """The id of the call that this answers."""
    text: str = ""
    """The result as the model reads it."""
    is_error: StrictBool = False
    """Whether the call failed."""
    images: list[ImageBlock] = Field(default_factory=list[ImageBlock])
    """Images that belong to the result."""


class ReasoningBlock(BlockBase):
    """The model's reasoning; ``thinking`` is accepted as another name of the type."""

    type: Literal["reasoning", "thinking"] = "reasoning"
    text: str = ""
    """The reasoning, or its summary where the provider gives no more."""


class ToolUseBlock(BlockBase):
    """A call that the caller runs.

    ``input_json`` is the model's own text where it differs from the compact JSON of ``input``. A call with a
    ``problem`` must not be run, because its arguments are not valid; send the problem as its result.
    """

    type: Literal["tool_use"] = "tool_use"
    tool_use_id: str = Field(min_length=1)
    """The id of the call, which its result repeats."""
    tool_name: str = Field(min_length=1)
    input: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The arguments."""
    input_json: str | None = None
    """The arguments as the model wrote them, if that differs from the compact JSON of ``input``."""
    problem: str | None = None
    """What is wrong with the arguments. Such a call must not run."""


class WebSearchUseBlock(BlockBase):
    """A web search that the provider has run."""

    type: Literal["web_search_use"] = "web_search_use"
    tool_use_id: str
    """The id of the search, which its result repeats."""
    tool_name: Literal["web_search"] = "web_search"
    input: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The arguments of the search."""


class WebSearchResultBlock(BlockBase):
    """The pages that a provider's web search has found. ``text`` lists them for models of other providers."""

    type: Literal["web_search_result"] = "web_search_result"
    tool_use_id: str
    """The id of the search that this answers."""
    results: list[SearchResult] = Field(default_factory=list[SearchResult])
    """The pages found."""
    text: str = ""
    """The pages as text."""
    is_error: StrictBool = False
    """Whether the search failed."""
    error_code: str | None = None
    """The provider's code of the failure."""


class HostedToolUseBlock(BlockBase):
    """A call of another tool that the provider has run, such as ``url_context`` or ``code_execution``."""

    type: Literal["hosted_tool_use"] = "hosted_tool_use"
    tool_use_id: str
    """The id of the call, which its result repeats."""
    tool_name: str
    input: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The arguments."""


class HostedToolResultBlock(BlockBase):
    """The result of such a call in a readable form."""

    type: Literal["hosted_tool_result"] = "hosted_tool_result"
    tool_use_id: str
    """The id of the call that this answers."""
    text: str = ""
    """The result as text."""
    is_error: StrictBool = False
    """Whether the call failed."""
    error_code: str | None = None
    """The provider's code of the failure."""


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
    """Who the message is from."""
    content: str | list[Block] | None = None
    """The text of the message, or its blocks."""
    blocks: list[Block] | None = None
    """Another name of ``content`` for blocks."""

    def all_blocks(self) -> list[Block]:
        """Return the blocks; a text is one block."""
        if isinstance(self.content, str):
            return [TextBlock(text=self.content)] if self.content else []
        return self.content if self.content is not None else self.blocks or []
