"""THE table: every request a client may send, with its parameters and its result.

``rpc/routes.py`` of the server has a handler for exactly these names (a test compares the two). The coverage page
is made from this table and its neighbours, ``neutral.py`` and ``unsupported.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from jumpseat_protocol import server, sessions
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams
from jumpseat_protocol.tools import HandlePendingToolCallParams
from jumpseat_protocol.wire import WireModel

PROTOCOL_VERSION: Final = 3


class Method(NamedTuple):
    """``result`` is a model, ``None`` for void methods (answered ``null``), or a plain JSON type."""

    params: type[WireModel]
    result: type[Any] | None


T = TypeVar("T")


class Table(Mapping[str, T]):
    """A table of which the smaller part is there at once and the rest is loaded when a name is not in that part.

    Types and handlers cost a third of a millisecond each, and most processes never call most methods.
    """

    def __init__(self, core: Mapping[str, T], load_rest: Callable[[], Mapping[str, T]]) -> None:
        self._core = core
        self._load_rest = load_rest

    @cached_property
    def _all(self) -> Mapping[str, T]:
        return {**self._core, **self._load_rest()}

    def __getitem__(self, name: str) -> T:
        return self._core[name] if name in self._core else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


_CORE: Final[Mapping[str, Method]] = {
    "connect": Method(server.ConnectParams, server.ConnectResult),
    "ping": Method(server.PingParams, server.PingResult),
    "status.get": Method(server.EmptyParams, server.StatusResult),
    "auth.getStatus": Method(server.EmptyParams, server.AuthStatusResult),
    "models.list": Method(server.ModelsListParams, server.ModelsListResult),
    "runtime.shutdown": Method(server.EmptyParams, None),
    "session.create": Method(sessions.SessionCreateParams, sessions.SessionOpenedResult),
    "session.resume": Method(sessions.SessionResumeParams, sessions.SessionOpenedResult),
    "session.send": Method(sessions.SessionSendParams, sessions.SessionSendResult),
    "session.sendAndWait": Method(sessions.SessionSendParams, sessions.SessionSendAndWaitResult),
    "session.abort": Method(sessions.SessionAbortParams, server.SuccessResult),
    "session.destroy": Method(sessions.SessionParams, server.SuccessResult),
    "session.detach": Method(sessions.SessionParams, server.SuccessResult),
    "session.delete": Method(sessions.SessionParams, server.SuccessResult),
    "session.list": Method(sessions.SessionListParams, sessions.SessionListResult),
    "session.getMetadata": Method(sessions.SessionParams, sessions.SessionGetMetadataResult),
    "session.getLastId": Method(server.EmptyParams, sessions.SessionIdResult),
    "session.getMessages": Method(sessions.SessionParams, dict),
    "session.getForeground": Method(server.EmptyParams, sessions.ForegroundResult),
    "session.setForeground": Method(sessions.SessionParams, server.SuccessResult),
    "session.mode.get": Method(sessions.SessionParams, str),
    "session.mode.set": Method(sessions.ModeSetParams, sessions.ModeSetResult),
    "session.model.getCurrent": Method(sessions.SessionParams, sessions.CurrentModelResult),
    "session.model.switchTo": Method(sessions.ModelSwitchParams, sessions.CurrentModelResult),
    "session.options.update": Method(sessions.OptionsUpdateParams, server.SuccessResult),
    "session.tools.handlePendingToolCall": Method(HandlePendingToolCallParams, server.SuccessResult),
    "session.permissions.handlePendingPermissionRequest": Method(
        HandlePendingPermissionRequestParams, server.SuccessResult
    ),
    "session.permissions.setApproveAll": Method(sessions.SetApproveAllParams, server.SuccessResult),
    "session.permissions.resetSessionApprovals": Method(sessions.ResetApprovalsParams, server.SuccessResult),
    "session.permissions.pendingRequests": Method(sessions.SessionParams, sessions.PendingRequestsResult),
    "session.eventLog.registerInterest": Method(sessions.InterestParams, sessions.InterestResult),
    "session.eventLog.releaseInterest": Method(sessions.ReleaseInterestParams, server.SuccessResult),
}


def _state_requests() -> Mapping[str, Method]:
    from jumpseat_protocol import (
        accounts,
        adapters,
        agents,
        commands,
        declared_tools,
        elicitation,
        llm_inference,
        maintenance,
        mcp,
        permission_methods,
        plugins,
        provider,
        skills,
        state,
    )

    return {
        "account.getQuota": Method(accounts.AccountGetQuotaParams, accounts.AccountGetQuotaResult),
        "models.listTokenPriceUnits": Method(server.ModelsListParams, state.TokenPriceUnitsResult),
        "tools.list": Method(state.ToolsListParams, state.ToolsListResult),
        "user.settings.get": Method(server.EmptyParams, maintenance.UserSettingsResult),
        "user.settings.set": Method(maintenance.UserSettingsSetParams, maintenance.UserSettingsSetResult),
        "user.settings.reload": Method(server.EmptyParams, None),
        "secrets.addFilterValues": Method(server.AddFilterValuesParams, server.OkResult),
        "sessions.fork": Method(state.ForkParams, state.ForkResult),
        "sessions.open": Method(maintenance.SessionsOpenParams, maintenance.SessionsOpenResult),
        "sessions.list": Method(maintenance.SessionsListParams, sessions.SessionListResult),
        "sessions.getMetadata": Method(sessions.SessionParams, sessions.SessionGetMetadataResult),
        "sessions.listNonEmptySessionIds": Method(maintenance.NonEmptyIdsParams, maintenance.SessionIdsResult),
        "sessions.getEventFilePath": Method(sessions.SessionParams, maintenance.EventFilePathResult),
        "sessions.findByPrefix": Method(maintenance.FindByPrefixParams, sessions.SessionIdResult),
        "sessions.getLastForContext": Method(maintenance.LastForContextParams, sessions.SessionIdResult),
        "sessions.getSizes": Method(server.EmptyParams, maintenance.SizesResult),
        "sessions.checkInUse": Method(maintenance.SessionIdsParams, maintenance.InUseResult),
        "sessions.close": Method(sessions.SessionParams, state.EmptyResult),
        "sessions.save": Method(sessions.SessionParams, state.EmptyResult),
        "sessions.releaseLock": Method(sessions.SessionParams, state.EmptyResult),
        "sessions.delete": Method(sessions.SessionParams, None),
        "sessions.bulkDelete": Method(maintenance.SessionIdsParams, maintenance.BulkDeleteResult),
        "sessions.pruneOld": Method(maintenance.PruneOldParams, maintenance.PruneOldResult),
        "sessions.enrichMetadata": Method(maintenance.EnrichMetadataParams, maintenance.EnrichMetadataResult),
        "session.log": Method(state.LogParams, state.LogResult),
        "session.shutdown": Method(state.ShutdownParams, None),
        "session.suspend": Method(sessions.SessionParams, None),
        "session.name.get": Method(sessions.SessionParams, state.NameResult),
        "session.name.set": Method(state.NameSetParams, None),
        "session.name.setAuto": Method(state.NameSetAutoParams, state.AppliedResult),
        "session.plan.read": Method(sessions.SessionParams, state.PlanReadResult),
        "session.plan.update": Method(state.PlanUpdateParams, None),
        "session.plan.delete": Method(sessions.SessionParams, None),
        "session.plan.readSqlTodos": Method(sessions.SessionParams, skills.TodosResult),
        "session.plan.readSqlTodosWithDependencies": Method(
            sessions.SessionParams, skills.TodosWithDependenciesResult
        ),
        "session.skills.list": Method(sessions.SessionParams, skills.SkillsListResult),
        "session.skills.getInvoked": Method(sessions.SessionParams, skills.SkillsInvokedResult),
        "session.skills.enable": Method(skills.SkillNameParams, None),
        "session.skills.disable": Method(skills.SkillNameParams, None),
        "session.skills.reload": Method(sessions.SessionParams, skills.SkillsReloadResult),
        "session.skills.ensureLoaded": Method(sessions.SessionParams, None),
        "session.plugins.list": Method(sessions.SessionParams, plugins.SessionPluginsResult),
        "session.plugins.reload": Method(plugins.PluginsReloadParams, None),
        "plugins.builtin.set": Method(plugins.BuiltinPluginsParams, None),
        "instructions.discover": Method(state.InstructionsDiscoverParams, state.InstructionSourcesResult),
        "instructions.getDiscoveryPaths": Method(state.InstructionsDiscoverParams, state.InstructionPathsResult),
        "agents.discover": Method(agents.AgentsDiscoverParams, agents.AgentListResult),
        "agents.getDiscoveryPaths": Method(agents.AgentsDiscoverParams, agents.AgentPathsResult),
        "skills.discover": Method(skills.SkillsDiscoverParams, skills.SkillsDiscoverResult),
        "skills.getDiscoveryPaths": Method(skills.SkillPathsParams, skills.SkillPathsResult),
        "skills.config.setDisabledSkills": Method(skills.SetDisabledSkillsParams, None),
        "skills.config.setSkillDisabled": Method(skills.SetSkillDisabledParams, None),
        "session.workspaces.getWorkspace": Method(sessions.SessionParams, state.WorkspaceResult),
        "session.workspaces.listFiles": Method(sessions.SessionParams, state.FilesResult),
        "session.workspaces.readFile": Method(state.FileParams, state.FileResult),
        "session.workspaces.createFile": Method(state.FileCreateParams, None),
        "session.workspaces.listCheckpoints": Method(sessions.SessionParams, state.CheckpointsResult),
        "session.workspaces.readCheckpoint": Method(state.CheckpointParams, state.CheckpointResult),
        "session.workspaces.saveLargePaste": Method(state.LargePasteParams, state.LargePasteResult),
        "session.workspaces.diff": Method(state.DiffParams, state.DiffResult),
        "session.workspace.listFiles": Method(sessions.SessionParams, state.FilesResult),
        "session.workspace.readFile": Method(state.FileParams, state.FileResult),
        "session.workspace.createFile": Method(state.FileCreateParams, None),
        "session.metadata.snapshot": Method(sessions.SessionParams, state.MetadataSnapshotResult),
        "session.metadata.isProcessing": Method(sessions.SessionParams, state.ProcessingResult),
        "session.metadata.activity": Method(sessions.SessionParams, state.ActivityResult),
        "session.metadata.setWorkingDirectory": Method(state.WorkingDirectoryParams, state.WorkingDirectoryResult),
        "session.metadata.recordContextChange": Method(state.ContextChangeParams, state.EmptyResult),
        "session.metadata.contextInfo": Method(state.ContextInfoParams, state.ContextInfoResult),
        "session.metadata.recomputeContextTokens": Method(state.ContextTokensParams, state.ContextTokensResult),
        "session.metadata.getContextAttribution": Method(sessions.SessionParams, state.ContextAttributionResult),
        "session.metadata.getContextHeaviestMessages": Method(
            state.HeaviestMessagesParams, state.HeaviestMessagesResult
        ),
        "session.history.summarizeForHandoff": Method(sessions.SessionParams, state.SummaryResult),
        "session.model.setReasoningEffort": Method(state.ReasoningEffortParams, state.ReasoningEffortResult),
        "session.model.list": Method(state.SessionModelsParams, state.SessionModelsResult),
        "session.tools.initializeAndValidate": Method(sessions.SessionParams, state.EmptyResult),
        "session.tools.getCurrentMetadata": Method(sessions.SessionParams, state.ToolsMetadataResult),
        "session.usage.getMetrics": Method(sessions.SessionParams, state.UsageMetricsResult),
        "session.instructions.getSources": Method(sessions.SessionParams, state.InstructionSourcesResult),
        "session.permissions.getMode": Method(sessions.SessionParams, state.PermissionModeResult),
        "session.permissions.setMode": Method(state.PermissionModeParams, state.PermissionModeSetResult),
        "session.permissions.getAllowAll": Method(sessions.SessionParams, state.AllowAllResult),
        "session.permissions.setAllowAll": Method(state.AllowAllParams, state.AllowAllSetResult),
        "session.permissions.configure": Method(
            permission_methods.PermissionsConfigureParams, server.SuccessResult
        ),
        "session.permissions.modifyRules": Method(permission_methods.ModifyRulesParams, server.SuccessResult),
        "session.permissions.setRequired": Method(permission_methods.SetRequiredParams, server.SuccessResult),
        "session.permissions.paths.list": Method(sessions.SessionParams, permission_methods.PermissionPathsResult),
        "session.permissions.paths.add": Method(permission_methods.PermissionPathParams, server.SuccessResult),
        "session.permissions.paths.updatePrimary": Method(
            permission_methods.PermissionPathParams, server.SuccessResult
        ),
        "session.permissions.paths.isPathWithinAllowedDirectories": Method(
            permission_methods.PermissionPathParams, permission_methods.PathAllowedResult
        ),
        "session.permissions.paths.isPathWithinWorkspace": Method(
            permission_methods.PermissionPathParams, permission_methods.PathAllowedResult
        ),
        "session.permissions.locations.resolve": Method(
            permission_methods.LocationParams, permission_methods.LocationResult
        ),
        "session.permissions.locations.apply": Method(
            permission_methods.LocationParams, permission_methods.LocationApplyResult
        ),
        "session.permissions.locations.addToolApproval": Method(
            permission_methods.AddToolApprovalParams, server.SuccessResult
        ),
        "session.permissions.folderTrust.isTrusted": Method(
            permission_methods.PermissionPathParams, permission_methods.TrustedResult
        ),
        "session.permissions.folderTrust.addTrusted": Method(
            permission_methods.PermissionPathParams, server.SuccessResult
        ),
        "session.permissions.urls.setUnrestrictedMode": Method(
            permission_methods.UnrestrictedUrlsParams, server.SuccessResult
        ),
        "session.eventLog.read": Method(state.EventLogReadParams, state.EventLogReadResult),
        "session.eventLog.tail": Method(sessions.SessionParams, state.CursorResult),
        "session.history.truncate": Method(state.TruncateParams, state.TruncateResult),
        "session.history.compact": Method(state.CompactParams, state.CompactResult),
        "session.history.cancelBackgroundCompaction": Method(
            sessions.SessionParams, state.CompactionCancelledResult
        ),
        "session.history.abortManualCompaction": Method(sessions.SessionParams, state.CompactionAbortedResult),
        "session.commands.list": Method(commands.CommandsListParams, commands.CommandsListResult),
        "session.commands.invoke": Method(commands.CommandInvokeParams, commands.CommandInvokeResult),
        "session.commands.execute": Method(commands.CommandExecuteParams, commands.CommandExecuteResult),
        "session.commands.enqueue": Method(commands.CommandEnqueueParams, commands.CommandEnqueueResult),
        "session.commands.handlePendingCommand": Method(commands.HandlePendingCommandParams, server.SuccessResult),
        "session.commands.respondToQueuedCommand": Method(
            commands.RespondToQueuedCommandParams, server.SuccessResult
        ),
        "session.queue.pendingItems": Method(sessions.SessionParams, state.QueueItemsResult),
        "session.queue.removeMostRecent": Method(sessions.SessionParams, state.RemovedResult),
        "session.queue.clear": Method(sessions.SessionParams, None),
        "session.remote.notifySteerableChanged": Method(state.SteerableParams, state.EmptyResult),
        "session.ui.registerDirectAutoModeSwitchHandler": Method(sessions.SessionParams, sessions.InterestResult),
        "session.ui.unregisterDirectAutoModeSwitchHandler": Method(
            sessions.ReleaseInterestParams, state.UnregisteredResult
        ),
        "session.ui.handlePendingAutoModeSwitch": Method(
            state.HandlePendingAutoModeSwitchParams, server.SuccessResult
        ),
        "session.ui.handlePendingExitPlanMode": Method(state.HandlePendingExitPlanModeParams, server.SuccessResult),
        "session.ui.handlePendingUserInput": Method(state.HandlePendingUserInputParams, server.SuccessResult),
        "llmInference.setProvider": Method(server.EmptyParams, server.SuccessResult),
        "llmInference.httpResponseStart": Method(
            llm_inference.HttpResponseStartParams, llm_inference.AcceptedResult
        ),
        "llmInference.httpResponseChunk": Method(
            llm_inference.HttpResponseChunkParams, llm_inference.AcceptedResult
        ),
        "session.gitHubAuth.getStatus": Method(sessions.SessionParams, accounts.SessionAuthStatusResult),
        "session.gitHubAuth.setCredentials": Method(accounts.SetCredentialsParams, server.SuccessResult),
        # As SDKs before 1.0 call it.
        "session.auth.getStatus": Method(sessions.SessionParams, accounts.SessionAuthStatusResult),
        "session.agent.list": Method(agents.AgentListParams, agents.AgentListResult),
        "session.agent.reload": Method(sessions.SessionParams, agents.AgentListResult),
        "session.agent.getCurrent": Method(sessions.SessionParams, agents.AgentCurrentResult),
        "session.agent.select": Method(agents.AgentSelectParams, agents.AgentSelectResult),
        "session.agent.deselect": Method(sessions.SessionParams, None),
        "session.agent.setPrompt": Method(agents.AgentSetPromptParams, None),
        "session.provider.add": Method(provider.ProviderAddParams, provider.ProviderAddResult),
        "session.provider.getEndpoint": Method(provider.ProviderEndpointParams, provider.ProviderEndpointResult),
        # Of ours, for those who write adapters and applications.
        "jumpseat.session.nextRequest": Method(provider.NextRequestParams, provider.NextRequestResult),
        "session.ui.elicitation": Method(elicitation.ElicitationParams, elicitation.ElicitationResult),
        "session.ui.handlePendingElicitation": Method(
            elicitation.HandlePendingElicitationParams, server.SuccessResult
        ),
        "mcp.config.list": Method(server.EmptyParams, mcp.McpConfigListResult),
        "mcp.config.add": Method(mcp.McpConfigParams, None),
        "mcp.config.update": Method(mcp.McpConfigParams, None),
        "mcp.config.remove": Method(mcp.McpNameParams, None),
        "mcp.config.enable": Method(mcp.McpNamesParams, None),
        "mcp.config.disable": Method(mcp.McpNamesParams, None),
        "mcp.discover": Method(mcp.McpDiscoverParams, mcp.McpDiscoverResult),
        "session.mcp.list": Method(sessions.SessionParams, mcp.McpServersResult),
        "session.mcp.listTools": Method(mcp.McpServerParams, mcp.McpToolsResult),
        "session.mcp.isServerRunning": Method(mcp.McpServerParams, mcp.McpRunningResult),
        "session.mcp.startServer": Method(mcp.McpStartParams, None),
        "session.mcp.restartServer": Method(mcp.McpStartParams, None),
        "session.mcp.stopServer": Method(mcp.McpServerParams, None),
        "session.mcp.enable": Method(mcp.McpServerParams, None),
        "session.mcp.disable": Method(mcp.McpServerParams, None),
        "session.mcp.reload": Method(sessions.SessionParams, None),
        "session.mcp.moveLoadingToBackground": Method(sessions.SessionParams, mcp.McpMovedResult),
        "session.mcp.setEnvValueMode": Method(mcp.McpEnvModeParams, mcp.McpEnvModeResult),
        "session.mcp.executeSampling": Method(mcp.McpSamplingParams, mcp.McpSamplingResult),
        "session.mcp.cancelSamplingExecution": Method(mcp.McpRequestParams, mcp.McpCancelSamplingResult),
        "session.ui.handlePendingSampling": Method(mcp.HandlePendingSamplingParams, server.SuccessResult),
        "session.mcp.oauth.handlePendingRequest": Method(mcp.HandlePendingOauthParams, server.SuccessResult),
        "session.mcp.headers.handlePendingHeadersRefreshRequest": Method(
            mcp.HandlePendingHeadersParams, server.SuccessResult
        ),
        "session.mcp.oauth.authenticationStateChanged": Method(mcp.McpAuthChangedParams, None),
        "session.mcp.oauth.probe": Method(mcp.McpServerParams, mcp.McpProbeResult),
        "session.mcp.oauth.login": Method(mcp.McpOauthLoginParams, mcp.McpOauthLoginResult),
        "session.mcp.apps.callTool": Method(mcp.McpAppCallParams, dict),
        "session.mcp.apps.listTools": Method(mcp.McpAppToolsParams, mcp.McpRawToolsResult),
        "session.mcp.apps.readResource": Method(mcp.McpResourceParams, mcp.McpContentsResult),
        "session.mcp.apps.setHostContext": Method(mcp.McpHostContextParams, None),
        "session.mcp.apps.getHostContext": Method(sessions.SessionParams, mcp.McpHostContextResult),
        "session.mcp.apps.diagnose": Method(mcp.McpServerParams, mcp.McpDiagnoseResult),
        "session.mcp.resources.list": Method(mcp.McpPageParams, mcp.McpResourcesResult),
        "session.mcp.resources.listTemplates": Method(mcp.McpPageParams, mcp.McpResourceTemplatesResult),
        "session.mcp.resources.read": Method(mcp.McpResourceParams, mcp.McpContentsResult),
        "session.mcp.prompts.list": Method(mcp.McpPageParams, mcp.McpPromptsResult),
        "session.mcp.prompts.get": Method(mcp.McpPromptParams, dict),
        # Ours, which the Copilot SDK protocol has not.
        "jumpseat.adapters.list": Method(adapters.AdaptersListParams, adapters.AdaptersListResult),
        "jumpseat.adapters.get": Method(adapters.AdapterGetParams, adapters.AdapterGetResult),
        "jumpseat.adapters.register": Method(adapters.AdapterRegisterParams, adapters.AdapterGetResult),
        "jumpseat.tools.list": Method(
            declared_tools.DeclaredToolsListParams, declared_tools.DeclaredToolsListResult
        ),
        "jumpseat.tools.get": Method(declared_tools.DeclaredToolGetParams, declared_tools.DeclaredToolGetResult),
        "jumpseat.tools.register": Method(
            declared_tools.DeclaredToolRegisterParams, declared_tools.DeclaredToolGetResult
        ),
        "jumpseat.complete": Method(adapters.CompleteParams, adapters.CompleteResult),
    }


CLIENT_REQUESTS: Final[Mapping[str, Method]] = Table(_CORE, _state_requests)
