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
    result_type: str = "success"
    error: str | None = None
    session_log: str | None = None
    tool_telemetry: dict[str, Any] | None = None
    tool_references: list[str] | None = None
    binary_results_for_llm: list[BinaryToolResult] = Field(default_factory=list[BinaryToolResult])


class HandlePendingToolCallParams(WireModel):
    """Either a ``result``, which may be any JSON, or the message of an ``error``."""

    session_id: str
    request_id: str
    result: Any = None
    error: str | None = None


class PendingToolRequest(WireModel):
    """A call of a client tool that waits for ``session.tools.handlePendingToolCall``."""

    request_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any = None


class PendingToolRequests(WireModel):
    """The calls in the order in which they were requested."""

    items: list[PendingToolRequest]


class ToolsListParams(WireModel):
    model: str | None = None


class ToolsListResult(WireModel):
    """``tools``: ``{name, description, parameters}`` each."""

    tools: list[dict[str, Any]]


class SubagentSettingsEntry(WireModel):
    """Settings for sub-agents of one type, which override their definitions and calls.

    ``context_tier`` has no effect: the length of the context is that of the model.
    """

    stored_only: ClassVar[frozenset[str]] = frozenset({"contextTier"})

    model: str | None = Field(default=None, min_length=1)
    effort_level: str | None = Field(default=None, min_length=1)
    context_tier: Literal["inherit", "default", "long_context"] | None = None


class SubagentSettings(WireModel):
    """The user's settings for sub-agents; ``agents`` is keyed by ``agent_type``. Limits can only be lowered."""

    agents: dict[str, SubagentSettingsEntry] | None = None
    disabled_subagents: list[str] | None = None
    max_concurrency: StrictInt | None = Field(default=None, ge=1)
    max_depth: StrictInt | None = Field(default=None, ge=1)


class UpdateSubagentSettingsParams(SessionParams):
    """``subagents`` replaces the settings as a whole; ``null`` clears them."""

    subagents: SubagentSettings | None = None


class SubagentSettingsResult(WireModel):
    """``subagents`` is ``null`` if there are no such settings."""

    sent_as_null = ("subagents",)

    subagents: SubagentSettings | None = None


class SetToolsParams(SessionParams):
    """``tools`` replaces all tools of the calling client; an empty list removes them."""

    tools: list[ClientTool]


class ExecuteToolParams(SessionParams):
    """A call of a tool; without ``tool_call_id``, the server makes up an id."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    tool_call_id: str | None = Field(default=None, min_length=1)


class BuiltinToolDescriptor(NestedNulls):
    """A built-in tool. ``input_schema`` is a JSON Schema; ``is_terminal`` says that the tool runs commands.

    The built-in tools of this server have neither titles, categories, instructions nor formats of their own.
    """

    sent_as_null = ("title", "instructions", "type", "format")

    name: str
    title: str | None = None
    description: str
    instructions: str | None = None
    type: str | None = None
    format: dict[str, Any] | None = None
    input_schema: dict[str, Any]
    is_terminal: StrictBool
    has_summarise_intention: StrictBool = False
    safe_for_telemetry: StrictBool = False


class BuiltinDescriptorsResult(WireModel):
    tools: list[BuiltinToolDescriptor]


class ToolsMetadataResult(WireModel):
    """``tools``: ``{name, description, input_schema}`` each, as in the next model request."""

    tools: list[dict[str, Any]]


METHODS: Final[Mapping[str, Method]] = {
    "session.tools.listPendingRequests": Method(SessionParams, PendingToolRequests),
    "session.tools.handlePendingToolCall": Method(HandlePendingToolCallParams, SuccessResult),
    "session.tools.set": Method(SetToolsParams, EmptyResult),
    "session.tools.execute": Method(ExecuteToolParams, ToolResultObject),
    "session.tools.getBuiltinDescriptors": Method(SessionParams, BuiltinDescriptorsResult),
    "tools.list": Method(ToolsListParams, ToolsListResult),
    "session.tools.initializeAndValidate": Method(SessionParams, EmptyResult),
    "session.tools.getCurrentMetadata": Method(SessionParams, ToolsMetadataResult),
    "session.tools.getSubagentSettings": Method(SessionParams, SubagentSettingsResult),
    "session.tools.updateSubagentSettings": Method(UpdateSubagentSettingsParams, EmptyResult),
}
