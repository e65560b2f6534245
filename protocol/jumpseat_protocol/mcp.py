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
    """Whether there was something to remove."""


class McpBuiltinNamesResult(WireModel):
    """The MCP servers that every session has, enabled or not."""

    names: list[str]
    """The names of the servers."""


class McpServerParams(WireModel):
    session_id: str
    server_name: str


class McpStartParams(McpServerParams):
    """``config`` replaces the configuration of the server in this session. It is a :class:`McpServerConfig`."""

    config: dict[str, Any] | None = Field(default=None, repr=False)
    """The configuration to use instead in this session."""


class McpServerInfo(WireModel):
    """An MCP server of the session."""

    name: str
    """The name of the server."""
    status: McpStatus
    """The state of its connection."""
    source: McpSource | None = None
    """Where its configuration comes from."""
    source_plugin: str | None = None
    """The plugin that brings it."""
    error: str | None = None


class McpServersResult(WireModel):
    servers: list[McpServerInfo]
    """The servers."""


class McpToolInfo(WireModel):
    """A tool, by its server's name for it."""

    name: str
    """The server's name for the tool."""
    description: str | None = None


class McpToolsResult(WireModel):
    tools: list[McpToolInfo]
    """The tools."""


class McpRunningResult(WireModel):
    running: StrictBool
    """Whether the server runs."""


class McpMovedResult(WireModel):
    moved_to_background: StrictBool
    """Whether the call goes on in the background."""


class McpEnvModeParams(WireModel):
    """``direct``: the values of ``env`` are used as they are; ``indirect``: they are names of variables."""

    session_id: str
    mode: Literal["direct", "indirect"]
    """Whether the values of ``env`` are used as they are, or are names of variables."""


class McpEnvModeResult(WireModel):
    mode: Literal["direct", "indirect"]
    """Whether the values of ``env`` are used as they are, or are names of variables."""


class McpSamplingParams(WireModel):
    """``request`` is the ``params`` of an MCP ``sampling/createMessage``."""

    session_id: str
    request_id: str
    server_name: str
    mcp_request_id: Any = None
    """The id of the server's request."""
    request: dict[str, Any]
    """The params of an MCP ``sampling/createMessage``."""


class McpSamplingResult(WireModel):
    action: Literal["success", "failure", "cancelled"]
    """How it ended."""
    result: dict[str, Any] | None = None
    """An MCP ``CreateMessageResult``."""
    error: str | None = None


class McpRequestParams(WireModel):
    session_id: str
    request_id: str


class McpCancelSamplingResult(WireModel):
    cancelled: StrictBool
    """Whether there was a request to cancel."""


class HandlePendingSamplingParams(McpRequestParams):
    """``response`` is an MCP ``CreateMessageResult``; without it, the request is refused."""

    response: dict[str, Any] | None = None
    """An MCP ``CreateMessageResult``; without it, the request is refused."""


class McpOauthToken(WireModel):
    """The token that the server requested. ``expires_in`` is in seconds."""

    kind: Literal["token"]
    access_token: KeyText = Field(min_length=1, repr=False)
    """The token."""
    token_type: str | None = None
    """The kind of token, such as ``Bearer``."""
    expires_in: float | None = None
    """Its lifetime in seconds."""


class McpOauthCancelled(WireModel):
    """The client provides no token."""

    kind: Literal["cancelled"]


McpOauthAnswer: TypeAlias = McpOauthToken | McpOauthCancelled


class HandlePendingOauthParams(McpRequestParams):
    result: McpOauthAnswer
    """The token, or that there is none."""


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
    """The headers, or that there are none."""


class McpOauthLoginParams(McpServerParams):
    """``client_id`` takes precedence over the configured one; without either, this server registers a client."""

    force_reauth: StrictBool = False
    """Whether to log in again although a login is stored."""
    client_name: str | None = None
    callback_success_message: str | None = None
    """What the browser shows after the login."""
    client_id: str | None = None
    """The OAuth client to use."""
    client_secret: KeyText | None = Field(default=None, repr=False)
    """Its secret."""


class McpOauthLoginResult(WireModel):
    """The URL that the user has to open; unset if the server accepts the stored login."""

    authorization_url: str | None = None
    """The page that the person has to open."""


class HeaderEntry(WireModel):
    """A header of HTTP."""

    name: str
    """The name of the header."""
    value: str
    """Its value."""


class McpHttpResponse(WireModel):
    """The response of a server. ``body`` is set if it is text and short."""

    status_code: int
    """The HTTP status."""
    headers: list[HeaderEntry]
    body: str | None = None
    """The body, if it is text and short."""


class McpProbeResult(WireModel):
    """``authenticated`` means that the stored token was accepted. ``reason`` is set for ``needs-auth``."""

    status: Literal["no-auth-required", "authenticated", "needs-auth", "failed"]
    """Whether the server can be used."""
    http_response: McpHttpResponse | None = None
    """What the server answered."""
    reason: Literal["initial", "refresh", "upscope"] | None = None
    """Why a login is needed."""
    www_authenticate_params: dict[str, str] | None = None
    """The parameters of the server's ``WWW-Authenticate`` header."""
    error: str | None = None


class McpAuthChangedParams(WireModel):
    session_id: str
    server_name: str | None = None


class McpAppToolsParams(McpServerParams):
    origin_server_name: str
    """The server of the app that asks."""


class McpAppCallParams(McpAppToolsParams):
    tool_name: str
    arguments: dict[str, Any] | None = None
    """The arguments."""


class McpRawToolsResult(WireModel):
    """The tools in the form that the server sent."""

    tools: list[dict[str, Any]]
    """The tools, in the form that the server sent."""


class McpHostContextParams(WireModel):
    session_id: str
    context: dict[str, Any]
    """What apps may know of the client, such as its theme."""


class McpHostContextResult(WireModel):
    context: dict[str, Any]
    """What apps may know of the client."""


class McpAppCapability(WireModel):
    """The ability to show apps of MCP servers, or the reason why it is missing."""

    advertised: StrictBool
    """Whether a client has declared that it shows apps."""
    feature_flag_enabled: StrictBool
    """Whether apps are switched on."""
    session_has_mcp_apps: StrictBool
    """Whether a server of the session has apps."""


class McpAppServer(WireModel):
    """A server and its tools with apps."""

    connected: StrictBool
    """Whether the server is connected."""
    tool_count: int
    """How many tools it has."""
    tools_with_ui_meta: int
    """How many of them have an app."""
    sample_tool_names: list[str]
    """Some of their names."""


class McpDiagnoseResult(WireModel):
    capability: McpAppCapability
    """What the session can show."""
    server: McpAppServer
    """What the server has."""


class McpPageParams(McpServerParams):
    cursor: str | None = None


class McpResourcesResult(WireModel):
    resources: list[dict[str, Any]]
    """The resources, in the form that the server sent."""
    next_cursor: str | None = None
    """Where the next page begins; missing on the last one."""


class McpResourceTemplatesResult(WireModel):
    resource_templates: list[dict[str, Any]]
    """The templates, in the form that the server sent."""
    next_cursor: str | None = None
    """Where the next page begins; missing on the last one."""


class McpPromptsResult(WireModel):
    prompts: list[dict[str, Any]]
    """The prompts, in the form that the server sent."""
    next_cursor: str | None = None
    """Where the next page begins; missing on the last one."""


class McpResourceParams(McpServerParams):
    uri: str = Field(min_length=1)
    """The URI of the resource."""


class McpContentsResult(WireModel):
    contents: list[dict[str, Any]]
    """The contents, in the form that the server sent."""


class McpPromptParams(McpServerParams):
    """``name`` is the older name of ``promptName``."""

    prompt_name: str = Field(validation_alias=AliasChoices("promptName", "name"))
    """The name of the prompt."""
    arguments: dict[str, str] | None = None
    """Its arguments."""


class McpConfigListResult(WireModel):
    servers: dict[str, dict[str, Any]]
    """The configurations by name."""


class McpConfigParams(WireModel):
    """``config`` is a :class:`McpServerConfig`."""

    name: str = Field(min_length=1)
    """The name of the server."""
    config: dict[str, Any] = Field(repr=False)
    """Its configuration."""


class McpNameParams(WireModel):
    name: str = Field(min_length=1)
    """The name of the server."""


class McpNamesParams(WireModel):
    names: list[str]
    """The names of the servers."""


class McpDiscoverParams(WireModel):
    working_directory: PathText | None = None


class McpDiscovered(WireModel):
    """An MCP server that was found in a configuration."""

    name: str
    """The name of the server."""
    type: Literal["stdio", "http", "sse"]
    source: McpSource
    """Where its configuration was found."""
    source_plugin: str | None = None
    """The plugin that brings it."""
    enabled: StrictBool


class McpDiscoverResult(WireModel):
    servers: list[McpDiscovered]
    """The servers."""


METHODS: Final[Mapping[str, Method]] = {
    "mcp.config.list": Method(EmptyParams, McpConfigListResult, "List the configured MCP servers."),
    "mcp.config.add": Method(McpConfigParams, None, "Add an MCP server to the configuration."),
    "mcp.config.update": Method(McpConfigParams, None, "Change an MCP server in the configuration."),
    "mcp.config.remove": Method(McpNameParams, None, "Remove an MCP server from the configuration."),
    "mcp.config.enable": Method(McpNamesParams, None, "Switch MCP servers on in new sessions."),
    "mcp.config.disable": Method(McpNamesParams, None, "Switch MCP servers off in new sessions."),
    "mcp.listBuiltinServerNames": Method(
        EmptyParams, McpBuiltinNamesResult, "List the MCP servers that every session has."
    ),
    "mcp.discover": Method(
        McpDiscoverParams, McpDiscoverResult, "Find MCP servers in projects, plugins and the home."
    ),
    "session.mcp.list": Method(SessionParams, McpServersResult, "List the MCP servers of the session."),
    "session.mcp.listTools": Method(McpServerParams, McpToolsResult, "List the tools of an MCP server."),
    "session.mcp.isServerRunning": Method(McpServerParams, McpRunningResult, "Return whether an MCP server runs."),
    "session.mcp.startServer": Method(McpStartParams, None, "Start an MCP server."),
    "session.mcp.restartServer": Method(McpStartParams, None, "Restart an MCP server."),
    "session.mcp.stopServer": Method(McpServerParams, None, "Stop an MCP server."),
    "session.mcp.enable": Method(McpServerParams, None, "Switch an MCP server on in the session."),
    "session.mcp.disable": Method(McpServerParams, None, "Switch an MCP server off in the session."),
    "session.mcp.reload": Method(
        SessionParams, None, "Read the configuration of MCP servers again, and start failed servers again."
    ),
    "session.mcp.removeGitHub": Method(
        SessionParams, McpRemovedResult, "Remove GitHub's MCP server from the session."
    ),
    "session.mcp.moveLoadingToBackground": Method(
        SessionParams, McpMovedResult, "Let the session begin before its MCP servers have started."
    ),
    "session.mcp.setEnvValueMode": Method(
        McpEnvModeParams, McpEnvModeResult, "Decide how the values of `env` are read."
    ),
    "session.mcp.executeSampling": Method(
        McpSamplingParams, McpSamplingResult, "Run a server's sampling request with the session's model."
    ),
    "session.mcp.cancelSamplingExecution": Method(McpRequestParams, McpCancelSamplingResult, "Cancel such a run."),
    "session.ui.handlePendingSampling": Method(
        HandlePendingSamplingParams, SuccessResult, "Answer a server's request for a model's answer."
    ),
    "session.mcp.oauth.handlePendingRequest": Method(
        HandlePendingOauthParams, SuccessResult, "Give the token that a server requires."
    ),
    "session.mcp.headers.handlePendingHeadersRefreshRequest": Method(
        HandlePendingHeadersParams, SuccessResult, "Give the headers that a server requires."
    ),
    "session.mcp.oauth.authenticationStateChanged": Method(
        McpAuthChangedParams, None, "Connect again to servers that failed for want of a token."
    ),
    "session.mcp.oauth.probe": Method(
        McpServerParams, McpProbeResult, "Find out whether a server requires a login."
    ),
    "session.mcp.oauth.login": Method(
        McpOauthLoginParams, McpOauthLoginResult, "Start a login, which the person finishes in a browser."
    ),
    "session.mcp.apps.callTool": Method(McpAppCallParams, dict, "Call a tool for an app of an MCP server."),
    "session.mcp.apps.listTools": Method(
        McpAppToolsParams, McpRawToolsResult, "List the tools that an app may call."
    ),
    "session.mcp.apps.readResource": Method(McpResourceParams, McpContentsResult, "Read a resource for an app."),
    "session.mcp.apps.setHostContext": Method(McpHostContextParams, None, "Set what apps may know of the client."),
    "session.mcp.apps.getHostContext": Method(
        SessionParams, McpHostContextResult, "Return what apps may know of the client."
    ),
    "session.mcp.apps.diagnose": Method(
        McpServerParams, McpDiagnoseResult, "Return why apps of a server are shown or not."
    ),
    "session.mcp.resources.list": Method(McpPageParams, McpResourcesResult, "List the resources of an MCP server."),
    "session.mcp.resources.listTemplates": Method(
        McpPageParams, McpResourceTemplatesResult, "List the templates of resources of an MCP server."
    ),
    "session.mcp.resources.read": Method(McpResourceParams, McpContentsResult, "Read a resource of an MCP server."),
    "session.mcp.prompts.list": Method(McpPageParams, McpPromptsResult, "List the prompts of an MCP server."),
    "session.mcp.prompts.get": Method(McpPromptParams, dict, "Return a prompt of an MCP server."),
}
