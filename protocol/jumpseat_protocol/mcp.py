"""``mcp.*`` and ``session.mcp.*``: MCP servers of the user and of sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, Field, StrictBool

from jumpseat_protocol.limits import KeyText, PathText
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.sessions import Headers, SessionParams
from jumpseat_protocol.wire import Method, WireModel

McpStatus: TypeAlias = Literal[
    "connected", "failed", "needs-auth", "pending", "disabled", "stopped", "not_configured"
]


McpSource: TypeAlias = Literal["user", "workspace", "plugin", "builtin"]


class McpRemovedResult(WireModel):
    removed: StrictBool


class McpBuiltinNamesResult(WireModel):
    """The MCP servers that every session has, enabled or not."""

    names: list[str]


class McpServerParams(WireModel):
    session_id: str
    server_name: str


class McpStartParams(McpServerParams):
    """``config`` replaces the configuration of the server in this session. It is a :class:`McpServerConfig`."""

    config: dict[str, Any] | None = Field(default=None, repr=False)


class McpServerInfo(WireModel):
    name: str
    status: McpStatus
    source: McpSource | None = None
    source_plugin: str | None = None
    error: str | None = None


class McpServersResult(WireModel):
    servers: list[McpServerInfo]


class McpToolInfo(WireModel):
    """A tool, by its server's name for it."""

    name: str
    description: str | None = None


class McpToolsResult(WireModel):
    tools: list[McpToolInfo]


class McpRunningResult(WireModel):
    running: StrictBool


class McpMovedResult(WireModel):
    moved_to_background: StrictBool


class McpEnvModeParams(WireModel):
    """``direct``: the values of ``env`` are used as they are; ``indirect``: they are names of variables."""

    session_id: str
    mode: Literal["direct", "indirect"]


class McpEnvModeResult(WireModel):
    mode: Literal["direct", "indirect"]


class McpSamplingParams(WireModel):
    """``request`` is the ``params`` of an MCP ``sampling/createMessage``."""

    session_id: str
    request_id: str
    server_name: str
    mcp_request_id: Any = None
    request: dict[str, Any]


class McpSamplingResult(WireModel):
    action: Literal["success", "failure", "cancelled"]
    result: dict[str, Any] | None = None
    error: str | None = None


class McpRequestParams(WireModel):
    session_id: str
    request_id: str


class McpCancelSamplingResult(WireModel):
    cancelled: StrictBool


class HandlePendingSamplingParams(McpRequestParams):
    """``response`` is an MCP ``CreateMessageResult``; without it, the request is refused."""

    response: dict[str, Any] | None = None


class McpOauthToken(WireModel):
    """The token that the server requested. ``expires_in`` is in seconds."""

    kind: Literal["token"]
    access_token: KeyText = Field(min_length=1, repr=False)
    token_type: str | None = None
    expires_in: float | None = None


class McpOauthCancelled(WireModel):
    """The client provides no token."""

    kind: Literal["cancelled"]


McpOauthAnswer: TypeAlias = McpOauthToken | McpOauthCancelled


class HandlePendingOauthParams(McpRequestParams):
    result: McpOauthAnswer


class McpHeaders(WireModel):
    """Headers for the requests to a server. They take precedence over the configured ones."""

    kind: Literal["headers"]
    headers: Headers = Field(repr=False)


class McpHeadersNone(WireModel):
    """The client provides no headers for now."""

    kind: Literal["none"]


McpHeadersAnswer: TypeAlias = McpHeaders | McpHeadersNone


class HandlePendingHeadersParams(McpRequestParams):
    result: McpHeadersAnswer


class McpOauthLoginParams(McpServerParams):
    """``client_id`` takes precedence over the configured one; without either, this server registers a client."""

    force_reauth: StrictBool = False
    client_name: str | None = None
    callback_success_message: str | None = None
    client_id: str | None = None
    client_secret: KeyText | None = Field(default=None, repr=False)


class McpOauthLoginResult(WireModel):
    """The URL that the user has to open; unset if the server accepts the stored login."""

    authorization_url: str | None = None


class HeaderEntry(WireModel):
    name: str
    value: str


class McpHttpResponse(WireModel):
    """The response of a server. ``body`` is set if it is text and short."""

    status_code: int
    headers: list[HeaderEntry]
    body: str | None = None


class McpProbeResult(WireModel):
    """``authenticated`` means that the stored token was accepted. ``reason`` is set for ``needs-auth``."""

    status: Literal["no-auth-required", "authenticated", "needs-auth", "failed"]
    http_response: McpHttpResponse | None = None
    reason: Literal["initial", "refresh", "upscope"] | None = None
    www_authenticate_params: dict[str, str] | None = None
    error: str | None = None


class McpAuthChangedParams(WireModel):
    session_id: str
    server_name: str | None = None


class McpAppToolsParams(McpServerParams):
    origin_server_name: str


class McpAppCallParams(McpAppToolsParams):
    tool_name: str
    arguments: dict[str, Any] | None = None


class McpRawToolsResult(WireModel):
    """The tools in the form that the server sent."""

    tools: list[dict[str, Any]]


class McpHostContextParams(WireModel):
    session_id: str
    context: dict[str, Any]


class McpHostContextResult(WireModel):
    context: dict[str, Any]


class McpAppCapability(WireModel):
    advertised: StrictBool
    feature_flag_enabled: StrictBool
    session_has_mcp_apps: StrictBool


class McpAppServer(WireModel):
    connected: StrictBool
    tool_count: int
    tools_with_ui_meta: int
    sample_tool_names: list[str]


class McpDiagnoseResult(WireModel):
    capability: McpAppCapability
    server: McpAppServer


class McpPageParams(McpServerParams):
    cursor: str | None = None


class McpResourcesResult(WireModel):
    resources: list[dict[str, Any]]
    next_cursor: str | None = None


class McpResourceTemplatesResult(WireModel):
    resource_templates: list[dict[str, Any]]
    next_cursor: str | None = None


class McpPromptsResult(WireModel):
    prompts: list[dict[str, Any]]
    next_cursor: str | None = None


class McpResourceParams(McpServerParams):
    uri: str = Field(min_length=1)


class McpContentsResult(WireModel):
    contents: list[dict[str, Any]]


class McpPromptParams(McpServerParams):
    """``name`` is the older name of ``promptName``."""

    prompt_name: str = Field(validation_alias=AliasChoices("promptName", "name"))
    arguments: dict[str, str] | None = None


class McpConfigListResult(WireModel):
    servers: dict[str, dict[str, Any]]


class McpConfigParams(WireModel):
    """``config`` is a :class:`McpServerConfig`."""

    name: str = Field(min_length=1)
    config: dict[str, Any] = Field(repr=False)


class McpNameParams(WireModel):
    name: str = Field(min_length=1)


class McpNamesParams(WireModel):
    names: list[str]


class McpDiscoverParams(WireModel):
    working_directory: PathText | None = None


class McpDiscovered(WireModel):
    name: str
    type: Literal["stdio", "http", "sse"]
    source: McpSource
    source_plugin: str | None = None
    enabled: StrictBool


class McpDiscoverResult(WireModel):
    servers: list[McpDiscovered]


METHODS: Final[Mapping[str, Method]] = {
    "mcp.config.list": Method(EmptyParams, McpConfigListResult),
    "mcp.config.add": Method(McpConfigParams, None),
    "mcp.config.update": Method(McpConfigParams, None),
    "mcp.config.remove": Method(McpNameParams, None),
    "mcp.config.enable": Method(McpNamesParams, None),
    "mcp.config.disable": Method(McpNamesParams, None),
    "mcp.listBuiltinServerNames": Method(EmptyParams, McpBuiltinNamesResult),
    "mcp.discover": Method(McpDiscoverParams, McpDiscoverResult),
    "session.mcp.list": Method(SessionParams, McpServersResult),
    "session.mcp.listTools": Method(McpServerParams, McpToolsResult),
    "session.mcp.isServerRunning": Method(McpServerParams, McpRunningResult),
    "session.mcp.startServer": Method(McpStartParams, None),
    "session.mcp.restartServer": Method(McpStartParams, None),
    "session.mcp.stopServer": Method(McpServerParams, None),
    "session.mcp.enable": Method(McpServerParams, None),
    "session.mcp.disable": Method(McpServerParams, None),
    "session.mcp.reload": Method(SessionParams, None),
    "session.mcp.removeGitHub": Method(SessionParams, McpRemovedResult),
    "session.mcp.moveLoadingToBackground": Method(SessionParams, McpMovedResult),
    "session.mcp.setEnvValueMode": Method(McpEnvModeParams, McpEnvModeResult),
    "session.mcp.executeSampling": Method(McpSamplingParams, McpSamplingResult),
    "session.mcp.cancelSamplingExecution": Method(McpRequestParams, McpCancelSamplingResult),
    "session.ui.handlePendingSampling": Method(HandlePendingSamplingParams, SuccessResult),
    "session.mcp.oauth.handlePendingRequest": Method(HandlePendingOauthParams, SuccessResult),
    "session.mcp.headers.handlePendingHeadersRefreshRequest": Method(HandlePendingHeadersParams, SuccessResult),
    "session.mcp.oauth.authenticationStateChanged": Method(McpAuthChangedParams, None),
    "session.mcp.oauth.probe": Method(McpServerParams, McpProbeResult),
    "session.mcp.oauth.login": Method(McpOauthLoginParams, McpOauthLoginResult),
    "session.mcp.apps.callTool": Method(McpAppCallParams, dict),
    "session.mcp.apps.listTools": Method(McpAppToolsParams, McpRawToolsResult),
    "session.mcp.apps.readResource": Method(McpResourceParams, McpContentsResult),
    "session.mcp.apps.setHostContext": Method(McpHostContextParams, None),
    "session.mcp.apps.getHostContext": Method(SessionParams, McpHostContextResult),
    "session.mcp.apps.diagnose": Method(McpServerParams, McpDiagnoseResult),
    "session.mcp.resources.list": Method(McpPageParams, McpResourcesResult),
    "session.mcp.resources.listTemplates": Method(McpPageParams, McpResourceTemplatesResult),
    "session.mcp.resources.read": Method(McpResourceParams, McpContentsResult),
    "session.mcp.prompts.list": Method(McpPageParams, McpPromptsResult),
    "session.mcp.prompts.get": Method(McpPromptParams, dict),
}
