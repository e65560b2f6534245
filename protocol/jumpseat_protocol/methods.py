"""THE table: every request a client may send, with its parameters and its result.

``rpc/routes.py`` of the server has a handler for exactly these names (a test compares the two), and the
generated coverage page is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from jumpseat_protocol import server, sessions
from jumpseat_protocol.permissions import HandlePendingPermissionRequestParams
from jumpseat_protocol.tools import HandlePendingToolCallParams
from jumpseat_protocol.wire import WireModel

PROTOCOL_VERSION: Final = 3


class Method(NamedTuple):
    """``result`` is a model, ``None`` for void methods (answered ``null``), or a plain JSON type."""

    params: type[WireModel]
    result: type[Any] | None


CLIENT_REQUESTS: Final[Mapping[str, Method]] = {
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
    "session.permissions.resetSessionApprovals": Method(sessions.SessionParams, server.SuccessResult),
    "session.permissions.pendingRequests": Method(sessions.SessionParams, sessions.PendingRequestsResult),
    "session.eventLog.registerInterest": Method(sessions.InterestParams, sessions.InterestResult),
    "session.eventLog.releaseInterest": Method(sessions.ReleaseInterestParams, server.SuccessResult),
}

UNSUPPORTED_REQUESTS: Final[frozenset[str]] = frozenset(
    """
    models.getBuiltInCatalog tools.list account.getQuota account.getCurrentAuth account.getAllUsers
    account.login account.logout secrets.addFilterValues mcp.config.list mcp.config.add mcp.config.update
    mcp.config.remove mcp.config.enable mcp.config.disable mcp.config.reload mcp.discover mcp.planInstall
    extensions.discover extensions.enable extensions.disable registerExtensionLaunchProvider catalog.search
    plugins.list plugins.install plugins.uninstall plugins.update plugins.updateAll plugins.enable
    plugins.disable plugins.builtin.set plugins.marketplaces.list plugins.marketplaces.add
    plugins.marketplaces.remove plugins.marketplaces.browse plugins.marketplaces.refresh
    skills.config.setDisabledSkills skills.config.setSkillDisabled skills.discover skills.getDiscoveryPaths
    agents.discover agents.getDiscoveryPaths instructions.discover instructions.getDiscoveryPaths commands.list
    user.settings.reload user.settings.get user.settings.set managedSettings.read sessionFs.setProvider
    llmInference.setProvider llmInference.httpResponseStart llmInference.httpResponseChunk sessions.open
    sessions.fork sessions.connect sessions.list sessions.findByTaskId sessions.findByPrefix
    sessions.getLastForContext sessions.getSizes sessions.checkInUse sessions.close sessions.bulkDelete
    sessions.pruneOld sessions.save sessions.releaseLock sessions.enrichMetadata sessions.reloadPluginHooks
    sessions.loadDeferredRepoHooks sessions.setAdditionalPlugins sessions.startRemoteControl
    sessions.transferRemoteControl sessions.setRemoteControlSteering sessions.stopRemoteControl
    sessions.getRemoteControlStatus agentRegistry.spawn session.suspend session.sendMessages
    session.interruptMainTurn session.cancelAllBackgroundAgents session.shutdown session.gitHubAuth.getStatus
    session.gitHubAuth.setCredentials session.debug.collectLogs session.canvas.list session.canvas.listOpen
    session.canvas.open session.canvas.close session.canvas.action.invoke session.factory.run
    session.factory.resume session.factory.getRun session.factory.listRuns session.factory.getRunDetail
    session.factory.getRunProgress session.factory.cancel session.factory.log session.factory.agent
    session.factory.journal.get session.factory.journal.put session.model.setReasoningEffort session.model.list
    session.name.get session.name.set session.name.setAuto session.plan.read session.plan.update
    session.plan.delete session.plan.readSqlTodos session.plan.readSqlTodosWithDependencies
    session.workspaces.getWorkspace session.workspaces.updateMetadata session.workspaces.ensure
    session.workspaces.listFiles session.workspaces.readFile session.workspaces.createFile
    session.workspaces.listCheckpoints session.workspaces.readCheckpoint session.workspaces.addSummary
    session.workspaces.truncateSummaries session.workspaces.readAutopilotObjective
    session.workspaces.writeAutopilotObjective session.workspaces.deleteAutopilotObjective
    session.workspaces.autopilotObjectiveExists session.workspaces.saveLargePaste session.workspaces.diff
    session.completions.getTriggerCharacters session.completions.request session.instructions.getSources
    session.fleet.start session.agent.list session.agent.setPrompt session.agent.getCurrent
    session.agent.select session.agent.deselect session.agent.reload session.tasks.startAgent
    session.tasks.list session.tasks.refresh session.tasks.waitForPending session.tasks.getProgress
    session.tasks.getCurrentPromotable session.tasks.promoteToBackground
    session.tasks.promoteCurrentToBackground session.tasks.cancel session.tasks.remove
    session.tasks.sendMessage session.skills.list session.skills.getInvoked session.skills.enable
    session.skills.disable session.skills.reload session.skills.ensureLoaded session.mcp.list
    session.mcp.listTools session.mcp.enable session.mcp.disable session.mcp.reload
    session.mcp.moveLoadingToBackground session.mcp.executeSampling session.mcp.cancelSamplingExecution
    session.mcp.setEnvValueMode session.mcp.removeGitHub session.mcp.startServer session.mcp.restartServer
    session.mcp.stopServer session.mcp.isServerRunning session.mcp.oauth.handlePendingRequest
    session.mcp.oauth.authenticationStateChanged session.mcp.oauth.login session.mcp.oauth.probe
    session.mcp.oauth.respond session.mcp.headers.handlePendingHeadersRefreshRequest
    session.mcp.apps.readResource session.mcp.apps.listTools session.mcp.apps.callTool
    session.mcp.apps.setHostContext session.mcp.apps.getHostContext session.mcp.apps.diagnose
    session.mcp.resources.read session.mcp.resources.list session.mcp.resources.listTemplates
    session.plugins.list session.plugins.reload session.provider.getEndpoint session.provider.add
    session.lsp.initialize session.extensions.list session.extensions.enable session.extensions.disable
    session.extensions.reload session.extensions.sendAttachmentsToMessage session.tools.execute
    session.tools.getBuiltinDescriptors session.tools.taskCompleteEventData session.tools.initializeAndValidate
    session.tools.getCurrentMetadata session.tools.set session.tools.updateSubagentSettings
    session.commands.list session.commands.invoke session.commands.handlePendingCommand
    session.commands.execute session.commands.enqueue session.commands.respondToQueuedCommand
    session.telemetry.getEngagementId session.telemetry.setFeatureOverrides session.ui.ephemeralQuery
    session.ui.elicitation session.ui.handlePendingElicitation session.ui.handlePendingUserInput
    session.ui.handlePendingSampling session.ui.handlePendingAutoModeSwitch
    session.ui.handlePendingSessionLimitsExhausted session.ui.handlePendingExitPlanMode
    session.ui.registerDirectAutoModeSwitchHandler session.ui.unregisterDirectAutoModeSwitchHandler
    session.permissions.configure session.permissions.setMode session.permissions.getMode
    session.permissions.modifyRules session.permissions.setRequired session.permissions.notifyPromptShown
    session.permissions.paths.list session.permissions.paths.add session.permissions.paths.updatePrimary
    session.permissions.paths.isPathWithinAllowedDirectories session.permissions.paths.isPathWithinWorkspace
    session.permissions.locations.resolve session.permissions.locations.apply
    session.permissions.locations.addToolApproval session.permissions.folderTrust.isTrusted
    session.permissions.folderTrust.addTrusted session.permissions.urls.setUnrestrictedMode session.log
    session.metadata.snapshot session.metadata.isProcessing session.metadata.activity
    session.metadata.contextInfo session.metadata.getContextAttribution
    session.metadata.getContextHeaviestMessages session.metadata.recordContextChange
    session.metadata.setWorkingDirectory session.metadata.recomputeContextTokens
    session.contentExclusion.checkPaths session.shell.exec session.shell.kill
    session.shell.executeUserRequested session.shell.cancelUserRequested session.history.compact
    session.history.truncate session.history.listRewindPoints session.history.previewRewind
    session.history.rewind session.history.cancelBackgroundCompaction session.history.abortManualCompaction
    session.history.summarizeForHandoff session.history.clearContext session.queue.pendingItems
    session.queue.moveItem session.queue.insertAt session.queue.removeAt session.queue.updateText
    session.queue.duplicateAt session.queue.setDrainPaused session.queue.sendNow session.queue.removeMostRecent
    session.queue.clear session.eventLog.read session.eventLog.tail session.usage.getMetrics
    session.limitPrediction.predict session.remote.enable session.remote.disable
    session.remote.notifySteerableChanged session.visibility.get session.visibility.set session.schedule.list
    session.schedule.stop sessions.getMetadata sessions.listNonEmptySessionIds sessions.getEventFilePath
    sessions.getPersistedRemoteSteerable sessions.delete sessions.getBoardEntryCount
    sessions.registerExtensionToolsOnSession sessions.configureSessionExtensions session.sendSystemNotification
    session.gitHubAuth.getCurrentAuthInfo session.gitHubAuth.getAllAuthAvailable
    session.gitHubAuth.refreshCopilotUser session.gitHubAuth.login session.gitHubAuth.switchToAuth
    session.gitHubAuth.logout session.gitHubAuth.logoutUser session.gitHubAuth.lastAuthErrors
    session.canvas.provider.register session.canvas.provider.unregister session.model.applyStartupOverlay
    session.mcp.reloadWithConfig session.mcp.configureGitHub session.mcp.registerExternalClient
    session.mcp.unregisterExternalClient session.commands.finalizeInvocationEffect session.settings.snapshot
    session.settings.evaluatePredicate session.queue.snapshot session.queue.hasPending
    session.queue.beginDeferredIdleDrain session.queue.finishDeferredIdleDrain session.queue.deferSessionIdle
    session.queue.consumeSystemNotifications session.queue.enqueueResumePending session.queue.process
    session.schedule.hydrate session.schedule.hasSelfPaced session.schedule.add session.schedule.addCron
    session.schedule.addAt session.schedule.addSelfPaced session.schedule.rearmSelfPaced
    """.split()
)
"""Names of the protocol that this server does not serve: answered with a named error, never "unhandled"."""
