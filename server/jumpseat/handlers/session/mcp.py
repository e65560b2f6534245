"""``session.mcp.*``: the MCP servers of a session, their tools, prompts, resources, apps and logins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio

from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.mcp.catalogue import check_server
from jumpseat.mcp.host import McpHost
from jumpseat.sessions.context import Context
from jumpseat.sessions.mcp_requests import loaded_mcp_host, mcp_host, page_params, request_mcp_server, sample
from jumpseat.sessions.mcp_servers import enable_server, listed_servers
from jumpseat_protocol.mcp import (
    HandlePendingHeadersParams,
    HandlePendingOauthParams,
    McpAppCallParams,
    McpAppCapability,
    McpAppServer,
    McpAppToolsParams,
    McpAuthChangedParams,
    McpCancelSamplingResult,
    McpContentsResult,
    McpDiagnoseResult,
    McpEnvModeParams,
    McpEnvModeResult,
    McpHostContextParams,
    McpHostContextResult,
    McpMovedResult,
    McpOauthLoginParams,
    McpOauthLoginResult,
    McpPageParams,
    McpProbeResult,
    McpPromptParams,
    McpPromptsResult,
    McpRawToolsResult,
    McpRemovedResult,
    McpRequestParams,
    McpResourceParams,
    McpResourcesResult,
    McpResourceTemplatesResult,
    McpRunningResult,
    McpSamplingParams,
    McpSamplingResult,
    McpServerParams,
    McpServersResult,
    McpStartParams,
    McpToolInfo,
    McpToolsResult,
)
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams


async def resources_list(ctx: Context, params: McpPageParams) -> McpResourcesResult:
    """Return one page of a server's resources."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    request = types.ListResourcesRequest(params=page_params(params.cursor))
    result = await request_mcp_server(host, params.server_name, request, types.ListResourcesResult)
    return McpResourcesResult.model_validate(result)


async def resources_list_templates(ctx: Context, params: McpPageParams) -> McpResourceTemplatesResult:
    """Return one page of a server's resource templates."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    request = types.ListResourceTemplatesRequest(params=page_params(params.cursor))
    result = await request_mcp_server(host, params.server_name, request, types.ListResourceTemplatesResult)
    return McpResourceTemplatesResult.model_validate(result)


async def resources_read(ctx: Context, params: McpResourceParams) -> McpContentsResult:
    """Return the contents of a resource. The MCP server reads it; this process opens no file for it.

    Raises:
        InvalidRequestError: ``uri`` is not a URI, or the server is not connected or refuses.
    """
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types
    from pydantic import AnyUrl, ValidationError

    try:
        AnyUrl(params.uri)
    except ValidationError:
        raise InvalidRequestError(f"uri: expected a URI, got {params.uri[:200]!r}") from None
    request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=params.uri))
    unknown = f"resource {params.uri[:200]!r} not found on MCP server {params.server_name!r}"
    result = await request_mcp_server(host, params.server_name, request, types.ReadResourceResult, unknown=unknown)
    return McpContentsResult.model_validate(result)


def list_(ctx: Context, params: SessionParams) -> McpServersResult:
    """Return all servers of the session, in the order in which their tools are offered."""
    return McpServersResult(servers=listed_servers(ctx, ctx.registry.live(params.session_id)))


def list_tools(ctx: Context, params: McpServerParams) -> McpToolsResult:
    """Return the enabled tools of a server, by the server's own names for them."""
    connection = mcp_host(
        ctx, params.session_id, f"MCP server {params.server_name!r} is not connected"
    ).connection_to(params.server_name)
    return McpToolsResult(
        tools=[McpToolInfo(name=tool.name, description=tool.description) for tool in connection.tools]
    )


def is_server_running(ctx: Context, params: McpServerParams) -> McpRunningResult:
    """Return whether a server is connected."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return McpRunningResult(running=host is not None and host.running(params.server_name))


async def start_server(ctx: Context, params: McpStartParams) -> None:
    """Start a server, with ``config`` in place of its configuration if given. Its status tells the outcome."""
    host = ctx.mcp.get_or_create(ctx.registry.live(params.session_id))
    await host.start(params.server_name, _config(params))


async def restart_server(ctx: Context, params: McpStartParams) -> None:
    """Restart the server, with ``config`` in place of its configuration if given."""
    host, config = ctx.mcp.get_or_create(ctx.registry.live(params.session_id)), _config(params)
    if host.entry(params.server_name) is not None:
        await host.stop(params.server_name)
    await host.start(params.server_name, config)


async def stop_server(ctx: Context, params: McpServerParams) -> None:
    """Stop a server, and offer its tools no longer."""
    await mcp_host(ctx, params.session_id, "No MCP host initialized").stop(params.server_name)


async def enable(ctx: Context, params: McpServerParams) -> None:
    """Start a disabled server. Does nothing if it is running."""
    session = ctx.registry.live(params.session_id)
    await enable_server(ctx, session, params.server_name, "No MCP host initialized")


async def disable(ctx: Context, params: McpServerParams) -> None:
    """Stop a server in this session until it is enabled again."""
    await mcp_host(ctx, params.session_id, "No MCP host initialized").stop(params.server_name)


def remove_git_hub(ctx: Context, params: SessionParams) -> McpRemovedResult:
    """Take GitHub's own server from the session, whose client has configured it."""
    session = ctx.registry.live(params.session_id)
    if session.settings.options.github_mcp_tool_config is None:
        return McpRemovedResult(removed=False)
    session.settings.set_options(github_mcp_tool_config=None)
    ctx.registry.store_options(session)
    ctx.mcp.begin(session)
    return McpRemovedResult(removed=True)


async def reload(ctx: Context, params: SessionParams) -> None:
    host = mcp_host(ctx, params.session_id, "MCP config reload not available")
    failed = [server.name for server in host.servers() if server.status == "failed"]
    host.begin()
    for name in failed:
        if any(server.name == name and server.status == "failed" for server in host.servers()):
            await host.start(name)


def move_loading_to_background(ctx: Context, params: SessionParams) -> McpMovedResult:
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return McpMovedResult(moved_to_background=host is not None and host.stop_waiting())


def set_env_value_mode(ctx: Context, params: McpEnvModeParams) -> McpEnvModeResult:
    """Set how ``env`` of the session's own servers is interpreted, from their next start on."""
    ctx.mcp.get_or_create(ctx.registry.live(params.session_id)).env_mode = params.mode
    return McpEnvModeResult(mode=params.mode)


async def execute_sampling(ctx: Context, params: McpSamplingParams) -> McpSamplingResult:
    """Run a server's sampling request with the session's model, and return the response to the client.

    The call is the client's permission, so the request must be open. The server gets no answer from it.
    """
    session = ctx.registry.live(params.session_id)
    host = ctx.mcp.get(session)
    questions = host.questions if host else None
    open_requests = questions.samplings.open() if questions else []
    requested = (params.server_name, params.mcp_request_id)
    if host is None or all(
        (request.question.server, request.question.mcp_request_id) != requested for request in open_requests
    ):
        return McpSamplingResult(action="failure", error="There is no such sampling request.")
    if params.request_id in host.sampling_runs:
        return McpSamplingResult(action="failure", error="This sampling request is already running.")
    with anyio.CancelScope() as scope:
        host.sampling_runs[params.request_id] = scope
        try:
            return McpSamplingResult(action="success", result=await sample(session, params.request))
        except JumpseatError as error:
            return McpSamplingResult(action="failure", error=f"The sampling request failed: {error}")
        finally:
            del host.sampling_runs[params.request_id]
    return McpSamplingResult(action="cancelled")


def cancel_sampling_execution(ctx: Context, params: McpRequestParams) -> McpCancelSamplingResult:
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    scope = host.sampling_runs.get(params.request_id) if host else None
    if scope is not None:
        scope.cancel()
    return McpCancelSamplingResult(cancelled=scope is not None)


def _config(params: McpStartParams) -> McpServerConfig | None:
    return None if params.config is None else check_server(params.server_name, params.config)


SAMPLES: Final = 5
"""The number of names of tools with a user interface that ``diagnose`` returns."""


async def apps_call_tool(ctx: Context, params: McpAppCallParams) -> dict[str, Any]:
    """Call a tool of an app's own server, and return MCP's ``CallToolResult``.

    Nobody is asked, since the client shows the app; what rules and plan mode forbid to the model, an app cannot do
    either.
    """
    host = _apps_host(ctx, params.session_id)
    _check_origin(params)
    name = params.server_name
    tool = host.tool_of(name, params.tool_name)
    from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
    from jumpseat.mcp.failures import NotConnectedError
    from jumpseat.mcp.results import as_json

    arguments = params.arguments or {}
    if host.session.reads_only and not tool.is_read_only:
        raise InvalidRequestError(f"the session is in plan mode, and {params.tool_name!r} may change something")
    await host.session.permissions.check_rules(tool.permission(arguments), tool.name)
    try:
        return as_json(await tool.connection.call(params.tool_name, arguments))
    except NotConnectedError as error:
        raise InvalidRequestError(str(error)) from None
    except RefusedError as error:
        raise InvalidRequestError(f"MCP server {name!r} refused: {error}") from None
    except CallTimeoutError:
        raise InvalidRequestError(f"MCP server {name!r} did not answer in time") from None
    except ServerGoneError:
        raise InvalidRequestError(f"MCP server {name!r} ended before it answered") from None


def apps_list_tools(ctx: Context, params: McpAppToolsParams) -> McpRawToolsResult:
    """Return the tools of an app's own server, as the server describes them."""
    host = _apps_host(ctx, params.session_id)
    _check_origin(params)
    connection = host.connection_to(params.server_name)
    from jumpseat.mcp.results import as_json

    return McpRawToolsResult(tools=[as_json(tool) for tool in connection.tools])


async def apps_read_resource(ctx: Context, params: McpResourceParams) -> McpContentsResult:
    """Return the contents of a server's resource, which apps are made of."""
    return await resources_read(ctx, params)


def apps_set_host_context(ctx: Context, params: McpHostContextParams) -> None:
    """Store the client's display context for the life of the session."""
    ctx.mcp.get_or_create(ctx.registry.live(params.session_id)).app_context = params.context


def apps_get_host_context(ctx: Context, params: SessionParams) -> McpHostContextResult:
    """Return the display context that a client has stored."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return McpHostContextResult(context=host.app_context if host else {})


def apps_diagnose(ctx: Context, params: McpServerParams) -> McpDiagnoseResult:
    """Return the facts that decide whether a server's apps are shown."""
    session = ctx.registry.live(params.session_id)
    host = ctx.mcp.get(session)
    connected = host is not None and host.running(params.server_name)
    tools = host.connection_to(params.server_name).tools if host is not None and connected else []
    with_ui = [tool.name for tool in tools if _has_ui(tool.meta or {})]
    return McpDiagnoseResult(
        capability=McpAppCapability(
            advertised=session.settings.options.request_mcp_apps,
            feature_flag_enabled=True,
            session_has_mcp_apps=session.settings.options.request_mcp_apps,
        ),
        server=McpAppServer(
            connected=connected,
            tool_count=len(tools),
            tools_with_ui_meta=len(with_ui),
            sample_tool_names=with_ui[:SAMPLES],
        ),
    )


def _has_ui(meta: Mapping[str, Any]) -> bool:
    """Return whether the metadata of a tool names an app, also in the earlier form: ``ui/resourceUri``."""
    return any(value for key, value in meta.items() if key == "ui" or key.startswith("ui/"))


def _apps_host(ctx: Context, session_id: str) -> McpHost:
    if not ctx.registry.live(session_id).settings.options.request_mcp_apps:
        raise InvalidRequestError("mcp-apps is not available: the session was opened without requestMcpApps")
    return mcp_host(ctx, session_id, "mcp-apps is not available: the session has no MCP servers")


def _check_origin(params: McpAppToolsParams) -> None:
    if params.origin_server_name != params.server_name:
        raise InvalidRequestError(
            "originServerName must equal serverName: an app may only use the tools of its own server"
        )


def headers_handle_pending_headers_refresh_request(
    ctx: Context, params: HandlePendingHeadersParams
) -> SuccessResult:
    """Answer a server's request for headers. Only the first answer counts; others get ``success: false``."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    answered = host is not None and host.credentials.headers.answer(params.request_id, params.result)
    return SuccessResult(success=answered)


def oauth_handle_pending_request(ctx: Context, params: HandlePendingOauthParams) -> SuccessResult:
    """Answer a server's request for a token. Only the first answer counts; others get ``success: false``."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    return SuccessResult(
        success=host is not None and host.credentials.oauth.answer(params.request_id, params.result)
    )


def oauth_authentication_state_changed(ctx: Context, params: McpAuthChangedParams) -> None:
    """Reconnect to servers that failed because they had no token: to all, or to the named one."""
    if (host := ctx.mcp.get(ctx.registry.live(params.session_id))) is not None:
        host.retry_auth(params.server_name)


async def oauth_login(ctx: Context, params: McpOauthLoginParams) -> McpOauthLoginResult:
    """Start a login. The user opens the returned URL; this process receives the result on a loopback port.

    Raises:
        InvalidRequestError: the server does not support logins.
    """
    host = mcp_host(ctx, params.session_id, "MCP host is not available")
    return McpOauthLoginResult(
        authorization_url=await host.login(
            params.server_name,
            again=params.force_reauth,
            client_name=params.client_name,
            client_id=params.client_id,
            client_secret=params.client_secret,
            success=params.callback_success_message,
        )
    )


async def oauth_probe(ctx: Context, params: McpServerParams) -> McpProbeResult:
    """Check whether a server requires a login, without starting one.

    Raises:
        InvalidRequestError: the server does not support logins.
    """
    return await mcp_host(ctx, params.session_id, "MCP host is not available").probe(params.server_name)


async def prompts_list(ctx: Context, params: McpPageParams) -> McpPromptsResult:
    """Return one page of a server's prompts."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    request = types.ListPromptsRequest(params=page_params(params.cursor))
    result = await request_mcp_server(host, params.server_name, request, types.ListPromptsResult)
    return McpPromptsResult.model_validate(result)


async def prompts_get(ctx: Context, params: McpPromptParams) -> dict[str, Any]:
    """Return a prompt with its arguments filled in: ``{description?, messages}``."""
    host = await loaded_mcp_host(ctx, params.session_id, params.server_name)
    import mcp.types as types

    prompt = types.GetPromptRequestParams(name=params.prompt_name, arguments=params.arguments)
    request = types.GetPromptRequest(params=prompt)
    return await request_mcp_server(host, params.server_name, request, types.GetPromptResult)
