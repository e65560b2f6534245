"""The table of methods: which handler serves which request of the Copilot SDK protocol.

A handler takes a :class:`Context` and its validated params, and returns a result model, plain JSON or ``None``. The
type of the params is the annotation of the handler's second parameter. Plain functions run at once, in the order of
arrival; coroutine functions run as tasks.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast, get_type_hints

import anyio
from pydantic import ValidationError

from jumpseat.errors import AuthenticationRequiredError, InvalidRequestError, UnsupportedError
from jumpseat.rpc.fixed_answers import fixed_answer, fixed_answer_params
from jumpseat.rpc.unknown_members import IgnoredMembers, warn_later
from jumpseat.rpc.wire_errors import InvalidParamsError, invalid_params
from jumpseat.sessions.context import Context
from jumpseat_protocol.members import unknown_members
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.no_op_answers import NEUTRAL_ANSWERS, REFUSALS
from jumpseat_protocol.unsupported import UNSUPPORTED_REQUESTS
from jumpseat_protocol.wire import WireDataclass, WireModel, object_to_wire

Handler: TypeAlias = Callable[[Context, Any], Any]
M = TypeVar("M", bound=WireModel)

OURS: Final = "jumpseat."
"""The prefix of methods that the Copilot SDK protocol does not have."""

ROUTES: Final[Mapping[str, str]] = {
    # The server.
    "connect": "connect:connect",
    "ping": "ping:ping",
    "account.getQuota": "account:get_quota",
    "account.getCurrentAuth": "account:get_current_auth",
    "account.getAllUsers": "account:get_all_users",
    "account.login": "account:login",
    "account.logout": "account:logout",
    "agents.discover": "agents:discover",
    "agents.getDiscoveryPaths": "agents:get_discovery_paths",
    "auth.getStatus": "auth:get_status",
    "instructions.discover": "instructions:discover",
    "instructions.getDiscoveryPaths": "instructions:get_discovery_paths",
    "sessionFs.setProvider": "session_fs:set_provider",
    "llmInference.setProvider": "llm_inference:set_provider",
    "llmInference.httpResponseStart": "llm_inference:http_response_start",
    "llmInference.httpResponseChunk": "llm_inference:http_response_chunk",
    "mcp.discover": "mcp:discover",
    "mcp.listBuiltinServerNames": "mcp:list_builtin_server_names",
    "mcp.config.list": "mcp_config:list_servers",
    "mcp.config.add": "mcp_config:add",
    "mcp.config.update": "mcp_config:update",
    "mcp.config.remove": "mcp_config:remove",
    "mcp.config.enable": "mcp_config:enable",
    "mcp.config.disable": "mcp_config:disable",
    "models.list": "models:list_models",
    "models.getBuiltInCatalog": "models:get_built_in_catalog",
    "models.listTokenPriceUnits": "models:list_token_price_units",
    "plugins.builtin.set": "plugins_builtin:set_plugins",
    "hooks.discover": "hooks:discover",
    "plugins.list": "plugins:list_plugins",
    "plugins.install": "plugins:install",
    "plugins.uninstall": "plugins:uninstall",
    "plugins.update": "plugins:update",
    "plugins.updateAll": "plugins:update_all",
    "plugins.enable": "plugins:enable",
    "plugins.disable": "plugins:disable",
    "plugins.marketplaces.list": "plugins_marketplaces:list_marketplaces",
    "plugins.marketplaces.add": "plugins_marketplaces:add",
    "plugins.marketplaces.remove": "plugins_marketplaces:remove",
    "plugins.marketplaces.browse": "plugins_marketplaces:browse",
    "plugins.marketplaces.refresh": "plugins_marketplaces:refresh",
    "runtime.shutdown": "runtime:shutdown",
    "secrets.addFilterValues": "secrets:add_filter_values",
    "sessions.fork": "sessions:fork",
    "sessions.open": "sessions:open_session",
    "sessions.getMetadata": "session.metadata:get_metadata",
    "sessions.listNonEmptySessionIds": "sessions:list_non_empty_session_ids",
    "sessions.readPersistedEvents": "sessions:read_persisted_events",
    "sessions.getClientMetadata": "sessions:get_client_metadata",
    "sessions.getEventFilePath": "sessions:get_event_file_path",
    "sessions.findByPrefix": "sessions:find_by_prefix",
    "sessions.getLastForContext": "sessions:get_last_for_context",
    "sessions.reloadPluginHooks": "sessions:reload_plugin_hooks",
    "sessions.loadDeferredRepoHooks": "sessions:load_deferred_repo_hooks",
    "sessions.getSizes": "sessions:get_sizes",
    "sessions.checkInUse": "sessions:check_in_use",
    "sessions.close": "sessions:close",
    "sessions.save": "sessions:save",
    "sessions.releaseLock": "sessions:release_lock",
    "sessions.delete": "sessions:delete",
    "sessions.bulkDelete": "sessions:bulk_delete",
    "sessions.pruneOld": "sessions:prune_old",
    "sessions.enrichMetadata": "sessions:enrich_metadata",
    "sessions.list": "sessions:list_sessions",
    "skills.discover": "skills:discover",
    "skills.getDiscoveryPaths": "skills:get_discovery_paths",
    "skills.config.setDisabledSkills": "skills_config:set_disabled_skills",
    "skills.config.setSkillDisabled": "skills_config:set_skill_disabled",
    "status.get": "status:get",
    "tools.list": "tools:list_tools",
    "user.settings.get": "user_settings:get",
    "user.settings.set": "user_settings:set_settings",
    "user.settings.reload": "user_settings:reload",
    # Sessions.
    "session.create": "session.create:create",
    "session.canvas.list": "session.canvas:list_canvases",
    "session.canvas.listOpen": "session.canvas:list_open",
    "session.canvas.open": "session.canvas:open_canvas",
    "session.canvas.close": "session.canvas:close",
    "session.canvas.action.invoke": "session.canvas_action:invoke",
    "session.resume": "session.resume:resume",
    "session.send": "session.send:send",
    "session.sendAndWait": "session.send:send_and_wait",
    "session.sendMessages": "session.send_messages:send_messages",
    "session.sendSystemNotification": "session.send_system_notification:send_system_notification",
    "session.abort": "session.abort:abort",
    "session.interruptMainTurn": "session.interrupt:interrupt_main_turn",
    "session.detach": "session.detach:detach",
    "session.delete": "session.delete:delete",
    "session.list": "session.list:list_sessions",
    "session.getMetadata": "session.metadata:get_metadata",
    "session.getLastId": "session.last_id:get_last_id",
    "session.getMessages": "session.messages:get_messages",
    "session.getForeground": "session.foreground:get_foreground",
    "session.setForeground": "session.foreground:set_foreground",
    "session.log": "session.log:log",
    "session.shutdown": "session.shutdown:shutdown",
    "session.suspend": "session.suspend:suspend",
    "session.agent.list": "session.agent:list_agents",
    "session.agent.reload": "session.agent:reload",
    "session.agent.getCurrent": "session.agent:get_current",
    "session.agent.select": "session.agent:select",
    "session.agent.deselect": "session.agent:deselect",
    "session.agent.setPrompt": "session.agent:set_prompt",
    "session.tasks.startAgent": "session.tasks:start_agent",
    "session.tasks.list": "session.tasks:list_tasks",
    "session.tasks.register": "session.tasks:register",
    "session.tasks.update": "session.tasks:update",
    "session.tasks.readOutput": "session.tasks:read_output",
    "session.tasks.refresh": "session.tasks:refresh",
    "session.tasks.waitForPending": "session.tasks:wait_for_pending",
    "session.tasks.getProgress": "session.tasks:get_progress",
    "session.tasks.getCurrentPromotable": "session.tasks:get_current_promotable",
    "session.tasks.promoteCurrentToBackground": "session.tasks:promote_current_to_background",
    "session.tasks.promoteToBackground": "session.tasks:promote_to_background",
    "session.tasks.cancel": "session.tasks:cancel",
    "session.tasks.remove": "session.tasks:remove",
    "session.tasks.sendMessage": "session.tasks:send_message",
    "session.cancelAllBackgroundAgents": "session.cancel_all_background_agents:cancel_all_background_agents",
    "session.fleet.start": "session.fleet:start",
    "session.commands.list": "session.commands:list_commands",
    "session.commands.invoke": "session.commands:invoke",
    "session.commands.execute": "session.commands:execute",
    "session.commands.enqueue": "session.commands:enqueue",
    "session.commands.handlePendingCommand": "session.commands:handle_pending_command",
    "session.commands.respondToQueuedCommand": "session.commands:respond_to_queued_command",
    "session.completions.getTriggerCharacters": "session.completions:get_trigger_characters",
    "session.completions.request": "session.completions:request",
    "session.eventLog.registerInterest": "session.event_log:register_interest",
    "session.eventLog.releaseInterest": "session.event_log:release_interest",
    "session.eventLog.read": "session.event_log:read",
    "session.eventLog.tail": "session.event_log:tail",
    "session.gitHubAuth.getStatus": "session.git_hub_auth:get_status",
    "session.gitHubAuth.setCredentials": "session.git_hub_auth:set_credentials",
    "session.gitHubAuth.getCurrentAuthInfo": "session.git_hub_auth:get_current_auth_info",
    "session.gitHubAuth.getAllAuthAvailable": "session.git_hub_auth:get_all_auth_available",
    "session.gitHubAuth.lastAuthErrors": "session.git_hub_auth:last_auth_errors",
    "session.gitHubAuth.login": "session.git_hub_auth:login",
    "session.gitHubAuth.logout": "session.git_hub_auth:logout",
    "session.gitHubAuth.logoutUser": "session.git_hub_auth:logout_user",
    "session.gitHubAuth.refreshCopilotUser": "session.git_hub_auth:refresh_copilot_user",
    "session.gitHubAuth.switchToAuth": "session.git_hub_auth:switch_to_auth",
    "session.history.summarizeForHandoff": "session.history:summarize_for_handoff",
    "session.history.listRewindPoints": "session.history:list_rewind_points",
    "session.history.previewRewind": "session.history:preview_rewind",
    "session.history.rewind": "session.history:rewind",
    "session.history.clearContext": "session.history:clear_context",
    "session.history.truncate": "session.history:truncate",
    "session.history.compact": "session.history:compact",
    "session.history.cancelBackgroundCompaction": "session.history:cancel_background_compaction",
    "session.history.abortManualCompaction": "session.history:abort_manual_compaction",
    "session.instructions.getSources": "session.instructions:get_sources",
    "session.mcp.listTools": "session.mcp:list_tools",
    "session.mcp.isServerRunning": "session.mcp:is_server_running",
    "session.mcp.startServer": "session.mcp:start_server",
    "session.mcp.restartServer": "session.mcp:restart_server",
    "session.mcp.stopServer": "session.mcp:stop_server",
    "session.instructions.reload": "session.instructions:reload",
    "session.mcp.enable": "session.mcp:enable",
    "session.mcp.disable": "session.mcp:disable",
    "session.mcp.reload": "session.mcp:reload",
    "session.mcp.removeGitHub": "session.mcp:remove_git_hub",
    "session.mcp.moveLoadingToBackground": "session.mcp:move_loading_to_background",
    "session.mcp.setEnvValueMode": "session.mcp:set_env_value_mode",
    "session.mcp.executeSampling": "session.mcp:execute_sampling",
    "session.mcp.cancelSamplingExecution": "session.mcp:cancel_sampling_execution",
    "session.mcp.list": "session.mcp:list_servers",
    "session.mcp.apps.callTool": "session.mcp_apps:call_tool",
    "session.mcp.apps.listTools": "session.mcp_apps:list_tools",
    "session.mcp.apps.readResource": "session.mcp_apps:read_resource",
    "session.mcp.apps.setHostContext": "session.mcp_apps:set_host_context",
    "session.mcp.apps.getHostContext": "session.mcp_apps:get_host_context",
    "session.mcp.apps.diagnose": "session.mcp_apps:diagnose",
    "session.mcp.headers.handlePendingHeadersRefreshRequest": (
        "session.mcp_headers:handle_pending_headers_refresh_request"
    ),
    "session.mcp.oauth.handlePendingRequest": "session.mcp_oauth:handle_pending_request",
    "session.mcp.oauth.authenticationStateChanged": "session.mcp_oauth:authentication_state_changed",
    "session.mcp.oauth.probe": "session.mcp_oauth:probe",
    "session.mcp.oauth.login": "session.mcp_oauth:login",
    "session.mcp.prompts.list": "session.mcp_prompts:list_prompts",
    "session.mcp.prompts.get": "session.mcp_prompts:get",
    "session.mcp.resources.listTemplates": "session.mcp_resources:list_templates",
    "session.mcp.resources.read": "session.mcp_resources:read",
    "session.mcp.resources.list": "session.mcp_resources:list_resources",
    "session.metadata.getClientMetadata": "session.metadata:get_client_metadata",
    "session.metadata.updateClientMetadata": "session.metadata:update_client_metadata",
    "session.metadata.snapshot": "session.metadata:snapshot",
    "session.metadata.isProcessing": "session.metadata:is_processing",
    "session.metadata.activity": "session.metadata:activity",
    "session.metadata.setWorkingDirectory": "session.metadata:set_working_directory",
    "session.metadata.recordContextChange": "session.metadata:record_context_change",
    "session.metadata.contextInfo": "session.metadata:context_info",
    "session.metadata.recomputeContextTokens": "session.metadata:recompute_context_tokens",
    "session.metadata.getContextAttribution": "session.metadata:get_context_attribution",
    "session.metadata.getContextHeaviestMessages": "session.metadata:get_context_heaviest_messages",
    "session.mode.get": "session.mode:get",
    "session.mode.set": "session.mode:set_mode",
    "session.model.getCurrent": "session.model:get_current",
    "session.model.switchTo": "session.model:switch_to",
    "session.model.setReasoningEffort": "session.model:set_reasoning_effort",
    "session.model.setAllowedModels": "session.model:set_allowed_models",
    "session.model.list": "session.model:list_models",
    "session.name.get": "session.name:get",
    "session.name.setAuto": "session.name:set_auto",
    "session.name.set": "session.name:set_name",
    "session.options.update": "session.options:update",
    "session.permissions.handlePendingPermissionRequest": "session.permissions:handle_pending_permission_request",
    "session.permissions.setApproveAll": "session.permissions:set_approve_all",
    "session.permissions.resetSessionApprovals": "session.permissions:reset_session_approvals",
    "session.permissions.pendingRequests": "session.permissions:pending_requests",
    "session.permissions.getMode": "session.permissions:get_mode",
    "session.permissions.setMode": "session.permissions:set_mode",
    "session.permissions.getAllowAll": "session.permissions:get_allow_all",
    "session.permissions.setAllowAll": "session.permissions:set_allow_all",
    "session.permissions.configure": "session.permissions:configure",
    "session.permissions.modifyRules": "session.permissions:modify_rules",
    "session.permissions.setRequired": "session.permissions:set_required",
    "session.permissions.folderTrust.isTrusted": "session.permissions_folder_trust:is_trusted",
    "session.permissions.folderTrust.addTrusted": "session.permissions_folder_trust:add_trusted",
    "session.permissions.locations.resolve": "session.permissions_locations:resolve",
    "session.permissions.locations.apply": "session.permissions_locations:apply",
    "session.permissions.locations.addToolApproval": "session.permissions_locations:add_tool_approval",
    "session.permissions.paths.list": "session.permissions_paths:list_paths",
    "session.permissions.paths.add": "session.permissions_paths:add",
    "session.permissions.paths.updatePrimary": "session.permissions_paths:update_primary",
    "session.permissions.paths.isPathWithinAllowedDirectories": (
        "session.permissions_paths:is_path_within_allowed_directories"
    ),
    "session.permissions.paths.isPathWithinWorkspace": "session.permissions_paths:is_path_within_workspace",
    "session.permissions.urls.setUnrestrictedMode": "session.permissions_urls:set_unrestricted_mode",
    "session.plan.read": "session.plan:read",
    "session.plan.update": "session.plan:update",
    "session.plan.delete": "session.plan:delete",
    "session.plan.readSqlTodos": "session.plan:read_sql_todos",
    "session.plan.readSqlTodosWithDependencies": "session.plan:read_sql_todos_with_dependencies",
    "session.plugins.list": "session.plugins:list_plugins",
    "session.plugins.reload": "session.plugins:reload",
    "session.plugins.install": "session.plugins:install",
    "session.plugins.uninstall": "session.plugins:uninstall",
    "session.plugins.update": "session.plugins:update",
    "session.plugins.enable": "session.plugins:enable",
    "session.plugins.disable": "session.plugins:disable",
    "session.plugins.marketplaces.list": "session.plugins_marketplaces:list_marketplaces",
    "session.plugins.marketplaces.add": "session.plugins_marketplaces:add",
    "session.plugins.marketplaces.remove": "session.plugins_marketplaces:remove",
    "session.plugins.marketplaces.browse": "session.plugins_marketplaces:browse",
    "session.plugins.marketplaces.refresh": "session.plugins_marketplaces:refresh",
    "session.provider.add": "session.provider:add",
    "session.provider.getEndpoint": "session.provider:get_endpoint",
    "session.queue.appendSteering": "session.queue:append_steering",
    "session.queue.clear": "session.queue:clear",
    "session.queue.duplicateAt": "session.queue:duplicate_at",
    "session.queue.hasPending": "session.queue:has_pending",
    "session.queue.insertAt": "session.queue:insert_at",
    "session.queue.moveItem": "session.queue:move_item",
    "session.queue.pendingItems": "session.queue:pending_items",
    "session.queue.process": "session.queue:process",
    "session.queue.removeAt": "session.queue:remove_at",
    "session.queue.removeMostRecent": "session.queue:remove_most_recent",
    "session.queue.sendNow": "session.queue:send_now",
    "session.queue.setDrainPaused": "session.queue:set_drain_paused",
    "session.queue.snapshot": "session.queue:snapshot",
    "session.queue.updateText": "session.queue:update_text",
    "session.queue.withdrawMessage": "session.queue:withdraw_message",
    "session.schedule.list": "session.schedule:list_schedules",
    "session.schedule.add": "session.schedule:add",
    "session.schedule.addAt": "session.schedule:add_at",
    "session.schedule.addCron": "session.schedule:add_cron",
    "session.schedule.addSelfPaced": "session.schedule:add_self_paced",
    "session.schedule.rearmSelfPaced": "session.schedule:rearm_self_paced",
    "session.schedule.hasSelfPaced": "session.schedule:has_self_paced",
    "session.schedule.stop": "session.schedule:stop",
    "session.schedule.hydrate": "session.schedule:hydrate",
    "session.shell.exec": "session.shell:exec_command",
    "session.shell.kill": "session.shell:kill",
    "session.shell.executeUserRequested": "session.shell:execute_user_requested",
    "session.shell.cancelUserRequested": "session.shell:cancel_user_requested",
    "session.remote.notifySteerableChanged": "session.remote:notify_steerable_changed",
    "session.skills.list": "session.skills:list_skills",
    "session.skills.getInvoked": "session.skills:get_invoked",
    "session.skills.enable": "session.skills:enable",
    "session.skills.disable": "session.skills:disable",
    "session.skills.reload": "session.skills:reload",
    "session.skills.ensureLoaded": "session.skills:ensure_loaded",
    "session.tools.listPendingRequests": "session.tools:list_pending_requests",
    "session.tools.handlePendingToolCall": "session.tools:handle_pending_tool_call",
    "session.tools.set": "session.tools:set_tools",
    "session.tools.execute": "session.tools:execute",
    "session.tools.getBuiltinDescriptors": "session.tools:get_builtin_descriptors",
    "session.tools.initializeAndValidate": "session.tools:initialize_and_validate",
    "session.tools.getCurrentMetadata": "session.tools:get_current_metadata",
    "session.tools.getSubagentSettings": "session.tools:get_subagent_settings",
    "session.tools.updateSubagentSettings": "session.tools:update_subagent_settings",
    "session.ui.handlePendingSampling": "session.ui:handle_pending_sampling",
    "session.ui.registerDirectAutoModeSwitchHandler": "session.ui:register_direct_auto_mode_switch_handler",
    "session.ui.unregisterDirectAutoModeSwitchHandler": "session.ui:unregister_direct_auto_mode_switch_handler",
    "session.ui.handlePendingAutoModeSwitch": "session.ui:handle_pending_auto_mode_switch",
    "session.ui.handlePendingExitPlanMode": "session.ui:handle_pending_exit_plan_mode",
    "session.ui.handlePendingUserInput": "session.ui:handle_pending_user_input",
    "session.ui.ephemeralQuery": "session.ui:ephemeral_query",
    "session.ui.elicitation": "session.ui:elicitation",
    "session.ui.handlePendingElicitation": "session.ui:handle_pending_elicitation",
    "session.settings.snapshot": "session.settings:snapshot",
    "session.usage.setCodeChanges": "session.usage:set_code_changes",
    "session.usage.getMetrics": "session.usage:get_metrics",
    "session.autopilotObjective.getState": "session.autopilot_objective:get_state",
    "session.tools.taskCompleteEventData": "session.tools:task_complete_event_data",
    "session.workspaces.readAutopilotObjective": "session.workspaces:read_autopilot_objective",
    "session.workspaces.writeAutopilotObjective": "session.workspaces:write_autopilot_objective",
    "session.workspaces.deleteAutopilotObjective": "session.workspaces:delete_autopilot_objective",
    "session.workspaces.autopilotObjectiveExists": "session.workspaces:autopilot_objective_exists",
    "session.workspaces.getWorkspace": "session.workspaces:get_workspace",
    "session.workspaces.listFiles": "session.workspaces:list_files",
    "session.workspaces.readFile": "session.workspaces:read_file",
    "session.workspaces.createFile": "session.workspaces:create_file",
    "session.workspaces.listCheckpoints": "session.workspaces:list_checkpoints",
    "session.workspaces.readCheckpoint": "session.workspaces:read_checkpoint",
    "session.workspaces.saveLargePaste": "session.workspaces:save_large_paste",
    "session.workspaces.diff": "session.workspaces:diff",
    "session.workspaces.ensure": "session.workspaces:ensure",
    "session.workspaces.updateMetadata": "session.workspaces:update_metadata",
    "session.workspaces.statFile": "session.workspaces:stat_file",
    "session.workspaces.createDirectory": "session.workspaces:create_directory",
    "session.workspaces.removePath": "session.workspaces:remove_path",
    "session.workspaces.renamePath": "session.workspaces:rename_path",
    "session.workspaces.addSummary": "session.workspaces:add_summary",
    "session.workspaces.truncateSummaries": "session.workspaces:truncate_summaries",
    # Jumpseat's own, which the Copilot SDK protocol does not have.
    "jumpseat.complete": "jumpseat.complete:complete",
    "jumpseat.portability": "jumpseat.portability:portability",
    "jumpseat.adapters.list": "jumpseat.adapters:list_adapters",
    "jumpseat.adapters.get": "jumpseat.adapters:get",
    "jumpseat.adapters.register": "jumpseat.adapters:register",
    "jumpseat.changes.list": "jumpseat.changes:list_changes",
    "jumpseat.changes.undo": "jumpseat.changes:undo",
    "jumpseat.permissions.list": "jumpseat.permissions:list_approvals",
    "jumpseat.permissions.revoke": "jumpseat.permissions:revoke",
    "jumpseat.plugins.programs": "jumpseat.plugins:programs",
    "jumpseat.plugins.trust": "jumpseat.plugins:trust",
    "jumpseat.session.nextRequest": "jumpseat.session:next_request",
    "jumpseat.tools.list": "jumpseat.tools:list_tools",
    "jumpseat.tools.get": "jumpseat.tools:get",
    "jumpseat.tools.register": "jumpseat.tools:register",
    "jumpseat.web.login": "jumpseat.web:login",
    "jumpseat.web.describe": "jumpseat.web:describe",
    "jumpseat.web.modelCalls": "jumpseat.web:model_calls",
    "jumpseat.web.search": "jumpseat.web:search",
    "jumpseat.web.openQuestions": "jumpseat.web:open_questions",
    # Older names, which SDKs before 1.0 use.
    "session.auth.getStatus": "session.git_hub_auth:get_status",
    "session.destroy": "session.detach:detach",
    "session.workspace.createFile": "session.workspaces:create_file",
    "session.workspace.listFiles": "session.workspaces:list_files",
    "session.workspace.readFile": "session.workspaces:read_file",
}
"""``module:function`` below ``jumpseat.handlers``, by method. The first call of a method imports its module."""


SERVER_WIDE: Final = frozenset(
    {
        "account.getAllUsers",
        "account.login",
        "account.logout",
        "session.gitHubAuth.getAllAuthAvailable",
        "session.gitHubAuth.login",
        "session.gitHubAuth.logoutUser",
        "session.gitHubAuth.switchToAuth",
        "llmInference.setProvider",
        "llmInference.httpResponseStart",
        "llmInference.httpResponseChunk",
        "mcp.config.list",
        "mcp.config.add",
        "mcp.config.update",
        "mcp.config.remove",
        "mcp.config.enable",
        "mcp.config.disable",
        "hooks.discover",
        "jumpseat.plugins.programs",
        "jumpseat.plugins.trust",
        "plugins.builtin.set",
        "plugins.list",
        "plugins.install",
        "plugins.uninstall",
        "plugins.update",
        "plugins.updateAll",
        "plugins.enable",
        "plugins.disable",
        "plugins.marketplaces.list",
        "plugins.marketplaces.add",
        "plugins.marketplaces.remove",
        "plugins.marketplaces.browse",
        "plugins.marketplaces.refresh",
        "session.plugins.install",
        "session.plugins.uninstall",
        "session.plugins.update",
        "session.plugins.enable",
        "session.plugins.disable",
        "session.plugins.marketplaces.list",
        "session.plugins.marketplaces.add",
        "session.plugins.marketplaces.remove",
        "session.plugins.marketplaces.browse",
        "session.plugins.marketplaces.refresh",
        "runtime.shutdown",
        "secrets.addFilterValues",
        "skills.config.setDisabledSkills",
        "skills.config.setSkillDisabled",
        "user.settings.get",
        "user.settings.set",
        "user.settings.reload",
        "session.mcp.oauth.login",
        "session.permissions.folderTrust.addTrusted",
        "session.permissions.locations.addToolApproval",
        "jumpseat.adapters.register",
        "jumpseat.tools.register",
        "jumpseat.web.login",
    }
)
"""The methods that show or change what all sessions of the server share; only tokens with the right ``all`` may."""


CREATE: Final = "session.create"
OPENING: Final = frozenset({CREATE, "session.resume"})
"""The methods that open sessions; requests about a session that is being opened wait for them."""


class Route(NamedTuple):
    """A handler, and the type of its params."""

    handler: Handler
    params: type[WireModel]


@cache
def load_route(method: str) -> Route:
    """Import the handler of ``method``, which must be in :data:`ROUTES`."""
    module, _, function = ROUTES[method].partition(":")
    handler = getattr(import_module(f"jumpseat.handlers.{module}"), function)
    return Route(handler, get_type_hints(handler)["params"])


def find_route(ctx: Context, ignored: IgnoredMembers, method: str) -> Callable[[Any], Any] | None:
    """Return the function that serves ``method`` on one connection; ``None`` if the protocol lacks the method.

    Unknown members of params are an error in our own methods. In those of the SDKs, which may be newer than this
    server, they are ``ignored``.
    """
    is_fixed = method in NEUTRAL_ANSWERS or method in REFUSALS
    if not is_fixed and method not in ROUTES and method not in UNSUPPORTED_REQUESTS:
        return None

    def serve(params: Any) -> Any:
        check_call(ctx, method)
        if (opened := _awaited(ctx, method, params)) is not None:
            return _serve_later(opened, serve, params)
        if is_fixed:
            ignored.note(method, unknown_members(fixed_answer_params(method), params))
            _validate(method, fixed_answer_params(method), params)
            return fixed_answer(ctx, method, params or {})
        if method not in ROUTES:
            raise UnsupportedError(method)
        route = load_route(method)
        unknown = unknown_members(route.params, params)
        if unknown and method.startswith(OURS):
            raise InvalidParamsError(method, [str(member) for member in unknown])
        result = route.handler(ctx, _validate(method, route.params, params))
        if unknown and (warnings := ignored.note(method, unknown)):
            result = warn_later(ctx, warnings, params, result)
        if not inspect.isawaitable(result):
            return _encode(result)
        work = _encode_later(result)
        return _Opening(ctx, method, params, work) if method in OPENING else work

    return serve


def check_call(ctx: Context, method: str) -> None:
    """Check that a connection may call a method now, and note what its first call tells about the client.

    Raises:
        AuthenticationRequiredError: the client has not presented a token.
        InvalidRequestError: the method needs the right ``all``, or the server is ending.
    """
    access = ctx.connection.access
    if access is not None:
        ctx.connection.admit()
    elif method != "connect":
        raise AuthenticationRequiredError("AUTHENTICATION_FAILED: connect with the connection token first")
    if method in SERVER_WIDE:
        ctx.require_all(method)
    if ctx.connection.protocol is None:
        # SDKs that send `ping` first know only protocol 2 (0.1), or both versions (0.2, 0.3).
        ctx.connection.protocol = ctx.process.protocol or (2 if method == "ping" else PROTOCOL_VERSION)
    if ctx.process.ending:
        raise InvalidRequestError("the server is shutting down")


def _awaited(ctx: Context, method: str, params: Any) -> anyio.Event | None:
    """Return what a request about a session has to wait for: the session may still be on its way."""
    session_id = _session_id(params) if method.startswith("session.") and method != CREATE else None
    return None if session_id is None else ctx.all_sessions.awaited(session_id, to_resume=method in OPENING)


def _session_id(params: Any) -> str | None:
    session_id = cast("dict[str, Any]", params).get("sessionId") if isinstance(params, dict) else None
    return session_id if isinstance(session_id, str) else None


class _Opening(Awaitable[Any]):
    """The work of a request that opens a session.

    The session counts as being opened from the arrival of the request, because those that arrive with it are served
    before the work begins. ``close`` drops work that never begins.
    """

    def __init__(self, ctx: Context, method: str, params: Any, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work
        self._opening = ExitStack()
        if (session_id := _session_id(params)) is not None:
            self._opening.enter_context(ctx.all_sessions.opening(session_id, is_new=method == CREATE))

    def __await__(self) -> Generator[Any, Any, Any]:
        with self._opening:
            return (yield from self._work.__await__())

    def close(self) -> None:
        self._work.close()
        self._opening.close()


async def _serve_later(opened: anyio.Event, serve: Callable[[Any], Any], params: Any) -> Any:
    await opened.wait()
    result = serve(params)
    return await result if inspect.isawaitable(result) else result


def _validate(method: str, model: type[M], params: Any) -> M:
    try:
        return model.model_validate({} if params is None else params)
    except ValidationError as error:
        raise invalid_params(method, error, model) from None


async def _encode_later(result: Awaitable[Any]) -> Any:
    return _encode(await result)


def _encode(result: Any) -> Any:
    if isinstance(result, list):
        return [_encode(item) for item in cast("list[Any]", result)]
    if isinstance(result, WireDataclass):
        return object_to_wire(result)
    return result.wire() if isinstance(result, WireModel) else result
