"""``tools.*`` and ``session.tools.*``: tools, and the results of client tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, StrictBool, StrictInt

from jumpseat_protocol.server import EmptyResult, SuccessResult
from jumpseat_protocol.sessions import ClientTool, SessionParams
from jumpseat_protocol.wire import Method, NestedNulls, WireModel


class BinaryToolResult(WireModel):
    """``data`` is base64. Images are sent to models with vision; resources are only stored in the log."""

    data: str
    """The content in base64."""
    mime_type: str
    type: Literal["image", "resource"] | str = "image"
    description: str | None = None


class ToolResultObject(WireModel):
    """The full form of a result.

    ``text_result_for_llm`` is sent to the model. ``result_type`` is ``success``, ``failure``, ``rejected``,
    ``denied`` or ``timeout``; any other value counts as ``failure``. ``session_log`` is emitted as an event, and
    not sent to the model. ``tool_references`` are the results of a tool search.
    """

    text_result_for_llm: str = ""
    """The text that the model reads."""
    result_type: str = "success"
    """How the call ended."""
    error: str | None = None
    session_log: str | None = None
    """The result in the form that sessions show."""
    tool_telemetry: dict[str, Any] | None = None
    """Figures of the call."""
    tool_references: list[str] | None = None
    """The names of tools that the model gets from now on."""
    binary_results_for_llm: list[BinaryToolResult] = Field(default_factory=list[BinaryToolResult])
    """Images and other content that the model gets."""


class HandlePendingToolCallParams(WireModel):
    """Either a ``result``, which may be any JSON, or the message of an ``error``."""

    session_id: str
    request_id: str
    result: Any = None
    """The result: a string, a tool result, or any JSON."""
    error: str | None = None


class PendingToolRequest(WireModel):
    """A call of a client tool that waits for ``session.tools.handlePendingToolCall``."""

    request_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    """The arguments."""


class PendingToolRequests(WireModel):
    """The calls in the order in which they were requested."""

    items: list[PendingToolRequest]
    """The calls, in their order."""


class ToolsListParams(WireModel):
    model: str | None = None
    """The id of the model that the tools are for."""


class ToolsListResult(WireModel):
    """``tools``: ``{name, description, parameters}`` each."""

    tools: list[dict[str, Any]]
    """The tools."""


class SubagentSettingsEntry(WireModel):
    """Settings for sub-agents of one type, which override their definitions and calls.

    ``context_tier`` has no effect: the length of the context is that of the model.
    """

    stored_only: ClassVar[frozenset[str]] = frozenset({"contextTier"})

    model: str | None = Field(default=None, min_length=1)
    """The id of the model."""
    effort_level: str | None = Field(default=None, min_length=1)
    """How much the model reasons."""
    context_tier: Literal["inherit", "default", "long_context"] | None = None
    """Has no effect."""


class SubagentSettings(WireModel):
    """The user's settings for sub-agents; ``agents`` is keyed by ``agent_type``. Limits can only be lowered."""

    agents: dict[str, SubagentSettingsEntry] | None = None
    """Settings by type of agent."""
    disabled_subagents: list[str] | None = None
    """The types that are not offered."""
    max_concurrency: StrictInt | None = Field(default=None, ge=1)
    """How many may work at once."""
    max_depth: StrictInt | None = Field(default=None, ge=1)
    """How deep sub-agents may start others."""


class UpdateSubagentSettingsParams(SessionParams):
    """``subagents`` replaces the settings as a whole; ``null`` clears them."""

    subagents: SubagentSettings | None = None
    """The settings; ``null`` clears them."""


class SubagentSettingsResult(WireModel):
    """``subagents`` is ``null`` if there are no such settings."""

    sent_as_null = ("subagents",)

    subagents: SubagentSettings | None = None
    """The settings."""


class SetToolsParams(SessionParams):
    """``tools`` replaces all tools of the calling client; an empty list removes them."""

    tools: list[ClientTool]
    """The tools of the calling client."""


class ExecuteToolParams(SessionParams):
    """A call of a tool; without ``tool_call_id``, the server makes up an id."""

    name: str = Field(min_length=1)
    """The name of the tool."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The arguments."""
    tool_call_id: str | None = Field(default=None, min_length=1)


class BuiltinToolDescriptor(NestedNulls):
    """A built-in tool. ``input_schema`` is a JSON Schema; ``is_terminal`` says that the tool runs commands.

    The built-in tools of this server have neither titles, categories, instructions nor formats of their own.
    """

    sent_as_null = ("title", "instructions", "type", "format")

    name: str
    """The name of the tool."""
    title: str | None = None
    description: str
    instructions: str | None = None
    """Never set."""
    type: str | None = None
    format: dict[str, Any] | None = None
    """Never set."""
    input_schema: dict[str, Any]
    is_terminal: StrictBool
    """Whether it runs commands."""
    has_summarise_intention: StrictBool = False
    """Whether its calls say what they are for."""
    safe_for_telemetry: StrictBool = False
    """Whether its name may be reported."""


class BuiltinDescriptorsResult(WireModel):
    tools: list[BuiltinToolDescriptor]
    """The tools."""


class ToolsMetadataResult(WireModel):
    """``tools``: ``{name, description, input_schema}`` each, as in the next model request."""

    tools: list[dict[str, Any]]
    """The tools, as in the next model request."""


METHODS: Final[Mapping[str, Method]] = {
    "session.tools.listPendingRequests": Method(
        SessionParams, PendingToolRequests, "List the calls of client tools that wait for a result."
    ),
    "session.tools.handlePendingToolCall": Method(
        HandlePendingToolCallParams, SuccessResult, "Answer the call of a client tool."
    ),
    "session.tools.set": Method(SetToolsParams, EmptyResult, "Replace the tools of the calling client."),
    "session.tools.execute": Method(
        ExecuteToolParams,
        ToolResultObject,
        "Run a tool of the session beside the conversation, with its hooks and permissions.",
    ),
    "session.tools.getBuiltinDescriptors": Method(
        SessionParams, BuiltinDescriptorsResult, "Describe the built-in tools."
    ),
    "tools.list": Method(ToolsListParams, ToolsListResult, "List the built-in tools of a model."),
    "session.tools.initializeAndValidate": Method(
        SessionParams, EmptyResult, "Do nothing: tools are checked when a client brings them."
    ),
    "session.tools.getCurrentMetadata": Method(
        SessionParams,
        ToolsMetadataResult,
        "List the tools of the next model request, and those that later ones may have.",
    ),
    "session.tools.getSubagentSettings": Method(
        SessionParams, SubagentSettingsResult, "Return the user's settings for sub-agents."
    ),
    "session.tools.updateSubagentSettings": Method(
        UpdateSubagentSettingsParams, EmptyResult, "Replace the user's settings for sub-agents."
    ),
}
