"""Which handler serves which method: the server's half of ``jumpseat_protocol.methods``, and as lazy as that.

A handler takes a context and checked params and returns a result model (or plain JSON, or nothing). Plain functions
run at once and in order; coroutine functions run as tasks.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import ValidationError

from jumpseat.errors import AuthenticationRequiredError, InvalidRequestError, UnsupportedError
from jumpseat.handlers.auth_get_status import auth_get_status
from jumpseat.handlers.connect import connect
from jumpseat.handlers.context import Context
from jumpseat.handlers.models_list import models_list
from jumpseat.handlers.neutral import neutral, neutral_params
from jumpseat.handlers.ping import ping
from jumpseat.handlers.runtime_shutdown import runtime_shutdown
from jumpseat.handlers.session_abort import session_abort
from jumpseat.handlers.session_create import session_create
from jumpseat.handlers.session_delete import session_delete
from jumpseat.handlers.session_detach import session_detach
from jumpseat.handlers.session_event_log import register_interest, release_interest
from jumpseat.handlers.session_foreground import get_foreground, set_foreground
from jumpseat.handlers.session_get_messages import session_get_messages
from jumpseat.handlers.session_list import session_get_last_id, session_get_metadata, session_list
from jumpseat.handlers.session_mode import mode_get, mode_set
from jumpseat.handlers.session_model import get_current, switch_to
from jumpseat.handlers.session_options import options_update
from jumpseat.handlers.session_permissions import (
    handle_pending_permission_request,
    pending_requests,
    reset_session_approvals,
    set_approve_all,
)
from jumpseat.handlers.session_resume import session_resume
from jumpseat.handlers.session_send import session_send, session_send_and_wait
from jumpseat.handlers.session_tools import handle_pending_tool_call
from jumpseat.handlers.status_get import status_get
from jumpseat.rpc.wire_errors import InvalidParamsError
from jumpseat_protocol.methods import CLIENT_REQUESTS, PROTOCOL_VERSION, Table
from jumpseat_protocol.neutral import NEUTRAL_ANSWERS, REFUSALS
from jumpseat_protocol.unsupported import UNSUPPORTED_REQUESTS
from jumpseat_protocol.wire import WireModel

Handler: TypeAlias = Callable[[Context, Any], Any]
M = TypeVar("M", bound=WireModel)

_CORE: Final[Mapping[str, Handler]] = {
    "connect": connect,
    "ping": ping,
    "status.get": status_get,
    "auth.getStatus": auth_get_status,
    "models.list": models_list,
    "runtime.shutdown": runtime_shutdown,
    "session.create": session_create,
    "session.resume": session_resume,
    "session.send": session_send,
    "session.sendAndWait": session_send_and_wait,
    "session.abort": session_abort,
    "session.destroy": session_detach,
    "session.detach": session_detach,
    "session.delete": session_delete,
    "session.list": session_list,
    "session.getMetadata": session_get_metadata,
    "session.getLastId": session_get_last_id,
    "session.getMessages": session_get_messages,
    "session.getForeground": get_foreground,
    "session.setForeground": set_foreground,
    "session.mode.get": mode_get,
    "session.mode.set": mode_set,
    "session.model.getCurrent": get_current,
    "session.model.switchTo": switch_to,
    "session.options.update": options_update,
    "session.tools.handlePendingToolCall": handle_pending_tool_call,
    "session.permissions.handlePendingPermissionRequest": handle_pending_permission_request,
    "session.permissions.setApproveAll": set_approve_all,
    "session.permissions.resetSessionApprovals": reset_session_approvals,
    "session.permissions.pendingRequests": pending_requests,
    "session.eventLog.registerInterest": register_interest,
    "session.eventLog.releaseInterest": release_interest,
}


def _state_routes() -> Mapping[str, Handler]:
    from jumpseat.handlers import (
        account_get_quota,
        agents,
        jumpseat_adapters,
        jumpseat_complete,
        jumpseat_tools,
        llm_inference,
        mcp_config,
        models_price_units,
        secrets,
        session_agent,
        session_commands,
        session_context,
        session_event_log_read,
        session_github_auth,
        session_history,
        session_instructions,
        session_log,
        session_mcp,
        session_mcp_apps,
        session_mcp_content,
        session_mcp_headers,
        session_mcp_oauth,
        session_mcp_sampling,
        session_metadata,
        session_model_settings,
        session_name,
        session_next_request,
        session_permission_mode,
        session_permission_paths,
        session_permission_rules,
        session_plan,
        session_plugins,
        session_provider,
        session_queue,
        session_remote,
        session_shutdown,
        session_skills,
        session_tools_metadata,
        session_ui,
        session_usage,
        session_workspace_diff,
        session_workspaces,
        sessions,
        sessions_open,
        skills,
        user_settings,
    )

    return {
        "account.getQuota": account_get_quota.account_get_quota,
        "jumpseat.adapters.list": jumpseat_adapters.adapters_list,
        "jumpseat.adapters.get": jumpseat_adapters.adapters_get,
        "jumpseat.adapters.register": jumpseat_adapters.adapters_register,
        "jumpseat.tools.list": jumpseat_tools.tools_list,
        "jumpseat.tools.get": jumpseat_tools.tools_get,
        "jumpseat.tools.register": jumpseat_tools.tools_register,
        "jumpseat.complete": jumpseat_complete.complete,
        "models.listTokenPriceUnits": models_price_units.list_units,
        "mcp.config.list": mcp_config.config_list,
        "mcp.config.add": mcp_config.config_add,
        "mcp.config.update": mcp_config.config_update,
        "mcp.config.remove": mcp_config.config_remove,
        "mcp.config.enable": mcp_config.config_enable,
        "mcp.config.disable": mcp_config.config_disable,
        "mcp.discover": mcp_config.discover,
        "session.mcp.list": session_mcp.servers_list,
        "session.mcp.listTools": session_mcp.list_tools,
        "session.mcp.isServerRunning": session_mcp.is_server_running,
        "session.mcp.startServer": session_mcp.start_server,
        "session.mcp.restartServer": session_mcp.restart_server,
        "session.mcp.stopServer": session_mcp.stop_server,
        "session.mcp.enable": session_mcp.enable,
        "session.mcp.disable": session_mcp.disable,
        "session.mcp.reload": session_mcp.reload,
        "session.mcp.moveLoadingToBackground": session_mcp.move_loading_to_background,
        "session.mcp.setEnvValueMode": session_mcp.set_env_value_mode,
        "session.mcp.executeSampling": session_mcp_sampling.execute_sampling,
        "session.mcp.cancelSamplingExecution": session_mcp_sampling.cancel_sampling_execution,
        "session.ui.handlePendingSampling": session_mcp_sampling.handle_pending_sampling,
        "session.mcp.oauth.handlePendingRequest": session_mcp_oauth.handle_pending_request,
        "session.mcp.headers.handlePendingHeadersRefreshRequest": (
            session_mcp_headers.handle_pending_headers_refresh_request
        ),
        "session.mcp.oauth.authenticationStateChanged": session_mcp_oauth.authentication_state_changed,
        "session.mcp.oauth.probe": session_mcp_oauth.probe,
        "session.mcp.oauth.login": session_mcp_oauth.login,
        "session.mcp.apps.callTool": session_mcp_apps.call_tool,
        "session.mcp.apps.listTools": session_mcp_apps.list_tools,
        "session.mcp.apps.readResource": session_mcp_apps.read_resource,
        "session.mcp.apps.setHostContext": session_mcp_apps.set_host_context,
        "session.mcp.apps.getHostContext": session_mcp_apps.get_host_context,
        "session.mcp.apps.diagnose": session_mcp_apps.diagnose,
        "session.mcp.resources.list": session_mcp_content.resources_list,
        "session.mcp.resources.listTemplates": session_mcp_content.list_templates,
        "session.mcp.resources.read": session_mcp_content.resources_read,
        "session.mcp.prompts.list": session_mcp_content.prompts_list,
        "session.mcp.prompts.get": session_mcp_content.prompts_get,
        "tools.list": session_tools_metadata.tools_list,
        "user.settings.get": user_settings.settings_get,
        "user.settings.set": user_settings.settings_set,
        "user.settings.reload": user_settings.settings_reload,
        "secrets.addFilterValues": secrets.add_filter_values,
        "sessions.fork": session_history.fork,
        "sessions.open": sessions_open.sessions_open,
        "sessions.list": sessions.sessions_list,
        "sessions.getMetadata": session_get_metadata,
        "sessions.listNonEmptySessionIds": sessions.list_non_empty_session_ids,
        "sessions.getEventFilePath": sessions.get_event_file_path,
        "sessions.findByPrefix": sessions.find_by_prefix,
        "sessions.getLastForContext": sessions.get_last_for_context,
        "sessions.getSizes": sessions.get_sizes,
        "sessions.checkInUse": sessions.check_in_use,
        "sessions.close": sessions.close,
        "sessions.save": sessions.save,
        "sessions.releaseLock": sessions.release_lock,
        "sessions.delete": sessions.delete,
        "sessions.bulkDelete": sessions.bulk_delete,
        "sessions.pruneOld": sessions.prune_old,
        "sessions.enrichMetadata": sessions.enrich_metadata,
        "session.log": session_log.session_log,
        "session.shutdown": session_shutdown.session_shutdown,
        "session.suspend": session_shutdown.session_suspend,
        "session.name.get": session_name.name_get,
        "session.name.set": session_name.name_set,
        "session.name.setAuto": session_name.name_set_auto,
        "session.plan.read": session_plan.plan_read,
        "session.plan.update": session_plan.plan_update,
        "session.plan.delete": session_plan.plan_delete,
        "session.plan.readSqlTodos": session_plan.read_sql_todos,
        "session.plan.readSqlTodosWithDependencies": session_plan.read_sql_todos_with_dependencies,
        "session.skills.list": session_skills.list_skills,
        "session.skills.getInvoked": session_skills.get_invoked,
        "session.skills.enable": session_skills.enable,
        "session.skills.disable": session_skills.disable,
        "session.skills.reload": session_skills.reload,
        "session.skills.ensureLoaded": session_skills.ensure_loaded,
        "session.plugins.list": session_plugins.list_plugins,
        "session.plugins.reload": session_plugins.reload,
        "plugins.builtin.set": session_plugins.set_builtin,
        "instructions.discover": session_instructions.discover,
        "instructions.getDiscoveryPaths": session_instructions.get_discovery_paths,
        "agents.discover": agents.discover,
        "agents.getDiscoveryPaths": agents.get_discovery_paths,
        "skills.discover": skills.discover,
        "skills.getDiscoveryPaths": skills.get_discovery_paths,
        "skills.config.setDisabledSkills": skills.set_disabled_skills,
        "skills.config.setSkillDisabled": skills.set_skill_disabled,
        "session.workspaces.getWorkspace": session_workspaces.get_workspace,
        "session.workspaces.listFiles": session_workspaces.list_files,
        "session.workspaces.readFile": session_workspaces.read_file,
        "session.workspaces.createFile": session_workspaces.create_file,
        "session.workspaces.listCheckpoints": session_workspaces.list_checkpoints,
        "session.workspaces.readCheckpoint": session_workspaces.read_checkpoint,
        "session.workspaces.saveLargePaste": session_workspaces.save_large_paste,
        "session.workspaces.diff": session_workspace_diff.diff,
        # As SDKs before 1.0 call them.
        "session.workspace.listFiles": session_workspaces.list_files,
        "session.workspace.readFile": session_workspaces.read_file,
        "session.workspace.createFile": session_workspaces.create_file,
        "session.metadata.snapshot": session_metadata.snapshot,
        "session.metadata.isProcessing": session_metadata.is_processing,
        "session.metadata.activity": session_metadata.activity,
        "session.metadata.setWorkingDirectory": session_metadata.set_working_directory,
        "session.metadata.recordContextChange": session_metadata.record_context_change,
        "session.metadata.contextInfo": session_context.context_info,
        "session.metadata.recomputeContextTokens": session_context.recompute_context_tokens,
        "session.metadata.getContextAttribution": session_context.get_context_attribution,
        "session.metadata.getContextHeaviestMessages": session_context.get_context_heaviest_messages,
        "session.history.summarizeForHandoff": session_history.summarize_for_handoff,
        "session.model.setReasoningEffort": session_model_settings.set_reasoning_effort,
        "session.model.list": session_model_settings.list_models,
        "session.tools.initializeAndValidate": session_tools_metadata.initialize_and_validate,
        "session.tools.getCurrentMetadata": session_tools_metadata.get_current_metadata,
        "session.usage.getMetrics": session_usage.get_metrics,
        "session.instructions.getSources": session_instructions.get_sources,
        "session.permissions.getMode": session_permission_mode.get_mode,
        "session.permissions.setMode": session_permission_mode.set_mode,
        "session.permissions.getAllowAll": session_permission_mode.get_allow_all,
        "session.permissions.setAllowAll": session_permission_mode.set_allow_all,
        "session.permissions.configure": session_permission_rules.configure,
        "session.permissions.modifyRules": session_permission_rules.modify_rules,
        "session.permissions.setRequired": session_permission_rules.set_required,
        "session.permissions.paths.list": session_permission_paths.paths_list,
        "session.permissions.paths.add": session_permission_paths.paths_add,
        "session.permissions.paths.updatePrimary": session_permission_paths.paths_update_primary,
        "session.permissions.paths.isPathWithinAllowedDirectories": (
            session_permission_paths.is_path_within_allowed_directories
        ),
        "session.permissions.paths.isPathWithinWorkspace": session_permission_paths.is_path_within_workspace,
        "session.permissions.locations.resolve": session_permission_rules.locations_resolve,
        "session.permissions.locations.apply": session_permission_rules.locations_apply,
        "session.permissions.locations.addToolApproval": session_permission_rules.locations_add_tool_approval,
        "session.permissions.folderTrust.isTrusted": session_permission_paths.is_trusted,
        "session.permissions.folderTrust.addTrusted": session_permission_paths.add_trusted,
        "session.permissions.urls.setUnrestrictedMode": session_permission_rules.set_unrestricted_mode,
        "session.eventLog.read": session_event_log_read.read,
        "session.eventLog.tail": session_event_log_read.tail,
        "session.history.truncate": session_history.truncate,
        "session.history.compact": session_history.compact,
        "session.history.cancelBackgroundCompaction": session_history.cancel_background_compaction,
        "session.history.abortManualCompaction": session_history.abort_manual_compaction,
        "session.commands.list": session_commands.list_commands,
        "session.commands.invoke": session_commands.invoke,
        "session.commands.execute": session_commands.execute,
        "session.commands.enqueue": session_commands.enqueue,
        "session.commands.handlePendingCommand": session_commands.handle_pending_command,
        "session.commands.respondToQueuedCommand": session_commands.respond_to_queued_command,
        "session.queue.pendingItems": session_queue.pending_items,
        "session.queue.removeMostRecent": session_queue.remove_most_recent,
        "session.queue.clear": session_queue.clear,
        "session.remote.notifySteerableChanged": session_remote.notify_steerable_changed,
        "session.ui.registerDirectAutoModeSwitchHandler": session_ui.register_direct_auto_mode_switch_handler,
        "session.ui.unregisterDirectAutoModeSwitchHandler": session_ui.unregister_direct_auto_mode_switch_handler,
        "session.ui.handlePendingAutoModeSwitch": session_ui.handle_pending_auto_mode_switch,
        "session.ui.handlePendingExitPlanMode": session_ui.handle_pending_exit_plan_mode,
        "session.ui.handlePendingUserInput": session_ui.handle_pending_user_input,
        "session.agent.list": session_agent.list_agents,
        "session.agent.reload": session_agent.reload,
        "session.agent.getCurrent": session_agent.get_current,
        "session.agent.select": session_agent.select,
        "session.agent.deselect": session_agent.deselect,
        "session.agent.setPrompt": session_agent.set_prompt,
        "session.provider.add": session_provider.add,
        "session.provider.getEndpoint": session_provider.get_endpoint,
        "jumpseat.session.nextRequest": session_next_request.next_request,
        "session.gitHubAuth.getStatus": session_github_auth.get_status,
        "session.gitHubAuth.setCredentials": session_github_auth.set_credentials,
        # As SDKs before 1.0 call it.
        "session.auth.getStatus": session_github_auth.get_status,
        "session.ui.elicitation": session_ui.elicitation,
        "llmInference.setProvider": llm_inference.set_provider,
        "llmInference.httpResponseStart": llm_inference.http_response_start,
        "llmInference.httpResponseChunk": llm_inference.http_response_chunk,
        "session.ui.handlePendingElicitation": session_ui.handle_pending_elicitation,
    }


ROUTES: Final[Mapping[str, Handler]] = Table(_CORE, _state_routes)


def find_route(ctx: Context, method: str) -> Callable[[Any], Any] | None:
    """The function that serves ``method`` for one connection; ``None`` for names the protocol does not have."""
    is_neutral = method in NEUTRAL_ANSWERS or method in REFUSALS
    # The fixed answers first: a name that is not among the core routes makes the rest of them be loaded.
    handler = None if is_neutral or method in UNSUPPORTED_REQUESTS else ROUTES.get(method)
    if handler is None and not is_neutral and method not in UNSUPPORTED_REQUESTS:
        return None

    def serve(params: Any) -> Any:
        if not ctx.connection.authenticated and method != "connect":
            raise AuthenticationRequiredError("AUTHENTICATION_FAILED: connect with the connection token first")
        if ctx.connection.protocol is None:
            # SDKs that greet with a ping know no other protocol (0.1), or speak both (0.2, 0.3).
            ctx.connection.protocol = ctx.process.protocol or (2 if method == "ping" else PROTOCOL_VERSION)
        if ctx.process.ending:
            raise InvalidRequestError("the server is shutting down")
        if is_neutral:
            _checked(method, neutral_params(method), params)
            return neutral(ctx, method, params or {})
        if handler is None:
            raise UnsupportedError(method)
        result = handler(ctx, _checked(method, CLIENT_REQUESTS[method].params, params))
        if inspect.isawaitable(result):
            return _encode_later(result)
        return _encode(result)

    return serve


def _checked(method: str, model: type[M], params: Any) -> M:
    try:
        return model.model_validate({} if params is None else params)
    except ValidationError as error:
        raise InvalidParamsError(method, error) from None


async def _encode_later(result: Awaitable[Any]) -> Any:
    return _encode(await result)


def _encode(result: Any) -> Any:
    return result.wire() if isinstance(result, WireModel) else result
