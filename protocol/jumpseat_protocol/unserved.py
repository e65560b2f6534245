"""The members of requests that the SDKs send and this server does not serve, with the reasons.

A member that this server serves is a field of a model of the wire. The others are neutral, unsupported or refused:
a client that sends an unsupported one gets a warning, and a request with a refused one fails.
The coverage page has the tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["neutral", "unsupported", "refused"]

NEUTRAL: Final[Mapping[str, str]] = {
    # --- options of sessions --------------------------------------------------------------------------------------
    "allowTranscriptRecovery": "logs are repaired without it",
    "customAgentsLocalOnly": "agents are local in any case",
    "embeddingCacheStorage": "there are no embeddings",
    "enableScriptSafety": "every command is checked in any case",
    "enableSessionStore": "each session is stored",
    "enableSessionTelemetry": "the operator sets up telemetry, and none is sent to the vendor",
    "enforceManagedModelDefaults": "the policy of a host has no models",
    "excludedManagedSettings": "no policy is fetched of which parts could be left out",
    "expAssignments": "there are no experiments",
    "featureFlags": "there are no experiments",
    "githubMcpToolConfig.disableFormDeferral": "tools of the server never wait for forms",
    "includedBuiltinSkills": "no skills come with the server",
    "integrationId": "it is for the vendor's statistics",
    "interactiveUser": "no user messages are analyzed",
    "isExperimentalMode": "there are no experiments",
    "lspClientName": "language servers get the name of this program",
    "manageScheduleEnabled": "`manage_schedule` is offered while the model paces a schedule",
    "mcpServers.*.configWarnings": "the server finds the faults of a configuration itself",
    "mcpServers.*.disableToolCache": "the tools of a server are listed at each start",
    "mcpServers.*.displayName": "a server is shown by its name",
    "mcpServers.*.isDefaultServer": "a server is used as it is configured",
    "mcpServers.*.safeForTelemetry": "it is for the vendor's statistics",
    "mcpServers.*.slowConnectionThresholdMs": "a server that is slow to start is announced in any case",
    "mcpServers.*.source": "the vendor's program reports it",
    "mcpServers.*.sourcePath": "the vendor's program reports it",
    "mcpServers.*.sourcePlugin": "the vendor's program reports it",
    "mcpServers.*.sourcePluginSpec": "the vendor's program reports it",
    "mcpServers.*.sourcePluginVersion": "the vendor's program reports it",
    "models.*.metadata": "it is for the client's own use",
    "openCanvases": "canvases are found in the log",
    "provider.modelProvider": "it is for the vendor's statistics",
    "provider.providerName": "it is for the vendor's statistics",
    "providers.*.modelProvider": "it is for the vendor's statistics",
    "refreshCustomInstructions": "instructions are read for each session",
    "runningInInteractiveMode": "the handlers of a client tell whether it can ask its user",
    "sandboxConfig.clearPolicyOnExit": "policies of a session end with it",
    "sandboxConfig.managedLspRoutingLocked": "the policy of a host is about permissions alone",
    "sandboxConfig.managedMcpRoutingLocked": "the policy of a host is about permissions alone",
    "sandboxConfig.sandboxLspServers": "language servers are confined like commands",
    "sandboxConfigSource": "the policy of a host is about permissions alone",
    "skipEmbeddingRetrieval": "there are no embeddings",
    "tools.*.namespace": "tools are not grouped",
    # --- options of sessions.open ---------------------------------------------------------------------------------
    "options.autoTierIsExplicit": "the Copilot API chooses",
    "options.clientKind": "the handlers of a client tell what it can do",
    "options.detachedFromSpawningParentEngagementId": "it is for the vendor's statistics",
    "options.detachedFromSpawningParentSessionId": "it is for the vendor's statistics",
    "options.remoteDefaultedOn": "it is for the vendor's statistics",
    "options.remoteExporting": "it is for the vendor's statistics",
    "options.workingDirectoryContext": "the server reads the repository itself",
    "sessions.open.metadata": "sessions that run elsewhere are refused",
    "sessions.open.onConfirm": "sessions that run elsewhere are refused",
    "sessions.open.onProgress": "sessions that run elsewhere are refused",
    "sessions.open.onTaskCreated": "sessions that run elsewhere are refused",
    "sessions.open.owner": "sessions that run elsewhere are refused",
    "sessions.open.remoteSessionId": "sessions that run elsewhere are refused",
    "sessions.open.repository": "sessions that run elsewhere are refused",
    "sessions.open.taskType": "sessions that run elsewhere are refused",
    # --- members of other requests --------------------------------------------------------------------------------
    "approval.approvalKey": "there are no such approvals",
    "approval.environmentVariables": "there are no such approvals",
    "approval.extensionName": "there are no such approvals",
    "approval.operation": "there are no such approvals",
    "connect.clientInfo": "it is for the vendor's statistics",
    "connect.supportedTaskKinds": "tasks have the kinds of all SDKs",
    "context.baseCommit": "the server reads the repository itself",
    "context.headCommit": "the server reads the repository itself",
    "context.hostType": "sessions are found by the name of the repository",
    "context.repositoryHost": "the server reads the repository itself",
    "decisionContext": "it is for the vendor's statistics",
    "handlePendingPermissionRequest.result.approvedInteractively": "it is for the vendor's statistics",
    "httpResponseStart.statusText": "statuses are numbers",
    "insertAt.message.delivery": "the SDKs' description: it is ignored",
    "insertAt.message.mode": "the SDKs' description: it is ignored",
    "insertAt.message.prepend": "the SDKs' description: it is ignored",
    "insertAt.message.wait": "the SDKs' description: it is ignored",
    "list.includeDetached": "no session is hidden because its parent has detached it",
    "list.throwOnError": "errors are errors in any case",
    "plugins.reload.reloadExtensions": "extensions are experiments of the vendor's program",
    "sendSystemNotification.options": "it is internal to the vendor's program",
    "sessions.delete.sessionPath": "it is internal to the vendor's program",
    "setApproveAll.source": "it is for the vendor's statistics",
    "setMode.source": "it is for the vendor's statistics",
    "setProvider.capabilities.binary": "files are read and written as text",
    "ui.elicitation._meta": "it is for MCP servers, which clients do not name here",
    "ui.elicitation.mode": "forms are the only mode",
    "ui.ephemeralQuery.abortSignal": "it is internal to the vendor's program",
    "ui.ephemeralQuery.onChunk": "it is internal to the vendor's program",
    "ui.handlePendingElicitation.result._meta": "it is for MCP servers, which get the answer alone",
}
"""The members without an effect whose subject does not exist here, or whose effect is there in any case."""

UNSUPPORTED: Final[Mapping[str, str]] = {
    # --- options of sessions --------------------------------------------------------------------------------------
    "agentContext": "there is one context",
    "askUserVariant": "the model asks by the fields of `ask_user` alone",
    "authClientIdMetadataUrl": "clients of MCP servers register themselves",
    "autoTier": "the Copilot API chooses",
    "coauthorEnabled": "the model writes the messages of its commits",
    "configDir": "configuration is in the home folder of the server",
    "contextTier": "the window is that of the model",
    "copilotUrl": "`COPILOT_API_URL` of the server has the address",
    "diagnostics": "the operator sets up the log",
    "disabledInstructionSources": "instructions are skipped together, with `skipCustomInstructions`",
    "enableCitations": "citations are what a provider sends with its answers",
    "enableOnDemandInstructionDiscovery": "instructions are found when a session is opened",
    "enableReasoningSummaries": "`reasoningSummary` asks for summaries",
    "envValueMode": "values of MCP servers are literal",
    "eventsLogDirectory": "the operator sets up the store",
    "eventsLogIncludesSubagents": "each sub-agent has a log",
    "extensionInfo": "extensions are experiments of the vendor's program",
    "extensionSdkPath": "extensions are experiments of the vendor's program",
    "factories": "workflows are experiments of the vendor's program",
    "hasSkillProvider": "skills come from files",
    "ignoredSkillsLocations": "skills are disabled by name, with `disabledSkills`",
    "imageGeneration": "models of this server write text",
    "installedPlugins": "plugins are installed with `plugins.install`, or come from `pluginDirectories`",
    "limits.vision": "limits of pictures are those of the model",
    "logInteractiveShells": "the log has the output of commands",
    "maxInlineBinaryBytes": "limits of pictures are those of the model",
    "mcpServers.*.auth": "servers log in with OAuth, or with `headers`",
    "mcpServers.*.deferTools": "`toolSearch` decides which tools are deferred",
    "mcpServers.*.disableSecretMasking": "secrets are masked for every server",
    "mcpServers.*.events": "servers get no events",
    "mcpServers.*.notifications": "the notifications of servers are those of MCP",
    "mcpServers.*.oauthScopes": "the scopes are those that the server asks for",
    "mcpServers.*.oidc": "servers log in with OAuth, or with `headers`",
    "mcpServers.*.serverInstance": "servers run in processes or behind addresses",
    "memory.mode": "there is one mode",
    "models.*.systemMessage": "a session has one system message",
    "provider.transport": "providers are called over HTTP",
    "providers.*.transport": "providers are called over HTTP",
    "remoteSession": "sessions run on this machine",
    "requestExtensions": "extensions are experiments of the vendor's program",
    "sandboxConfig.allowBypass": "with `enabled`, no command leaves the sandbox",
    "sandboxConfig.sandboxMcpServers": "`mcp` in the table `sandbox` of the configuration confines MCP servers",
    "sandboxConfig.userPolicy.experimental": "profiles of macOS are those of the server",
    "sandboxConfig.userPolicy.seatbelt": "profiles of macOS are those of the server",
    "sessionCapabilities": "each capability has its own option",
    "shell": "commands run in the server's environment",
    "shellInitProfile": "commands run in the server's environment",
    "shellProcessFlags": "commands run in the server's environment",
    "supports.adaptive_thinking": "thinking is what is known about the model",
    "supports.toolCalls": "tools are what is known about the model",
    "suppressCustomAgentPrompt": "the prompt of an agent is part of the system message",
    "toolFilterPrecedence": "exclusion takes precedence",
    "tools.*.title": "requests for permission show the name",
    "trajectoryFile": "the log of a session has its trajectory",
    "trustWorkingDirectory": "trust is recorded with `permissions.folderTrust`",
    "verbosity": "`adapterSettings` has it for the models that take it",
    # --- options of sessions.open ---------------------------------------------------------------------------------
    "options.authInfo": "`gitHubToken` signs in",
    "options.managedMcpServers": "the policy of a host is about permissions alone",
    "options.remoteSteerable": "sessions run on this machine",
    "suppressResumeWorkspaceMetadataWriteback": "the working directory of a session is stored",
    # --- members of other requests --------------------------------------------------------------------------------
    "account.logout.authInfo.apiKey": "logins are tokens",
    "account.logout.authInfo.hmac": "logins are tokens",
    "account.logout.authInfo.registrationId": "logins are tokens",
    "autoInvoke": "the model decides when to use an agent",
    "compactionDecision": "a conversation is compacted when it has to be",
    "connect.entra": "logins are those of GitHub",
    "contextManagementTools": "sub-agents have the tools of their kind",
    "credentials.apiKey": "logins are tokens",
    "credentials.hmac": "logins are tokens",
    "deferIfModelChangeQueued": "a switch takes place at once",
    "detachSessionEndHooks": "a session waits for its hooks",
    "getBuiltinDescriptors.backgroundTaskNotificationsEnabled": "descriptors are those of the tools here",
    "getBuiltinDescriptors.includeAuthor": "descriptors are those of the tools here",
    "getBuiltinDescriptors.reduceUserIntervention": "descriptors are those of the tools here",
    "getBuiltinDescriptors.shellConfig": "descriptors are those of the tools here",
    "getBuiltinDescriptors.shellSupportsPowerShell7Syntax": "descriptors are those of the tools here",
    "getBuiltinDescriptors.shellTimeoutMs": "descriptors are those of the tools here",
    "getBuiltinDescriptors.skillEmbeddingEnabled": "descriptors are those of the tools here",
    "gitHubAuth.logoutUser.authInfo.apiKey": "logins are tokens",
    "gitHubAuth.logoutUser.authInfo.hmac": "logins are tokens",
    "gitHubAuth.logoutUser.authInfo.registrationId": "logins are tokens",
    "gitHubAuth.switchToAuth.authInfo.apiKey": "logins are tokens",
    "gitHubAuth.switchToAuth.authInfo.hmac": "logins are tokens",
    "gitHubAuth.switchToAuth.authInfo.registrationId": "logins are tokens",
    "handlePendingHeadersRefreshRequest.result.message": "the log has the refusal",
    "handlePendingHeadersRefreshRequest.result.ttlMs": "`headersRefreshTtlMs` of the server has the time",
    "includeEffectiveSource": "sources are those of the list",
    "inheritPlanBaseFromSessionId": "each session has its own plan",
    "instructions.discover.instructionDirectories": "they are for sessions",
    "instructions.getDiscoveryPaths.instructionDirectories": "they are for sessions",
    "mcp.config.remove.authClientIdMetadataUrl": "clients of MCP servers register themselves",
    "mcp.oauth.login.grantType": "the configuration of the server has it",
    "mcp.oauth.login.publicClient": "the configuration of the server has it",
    "modelChangeScope": "choices of models are not stored",
    "persistPlanSelection": "choices of models are not stored",
    "pickerPersistence": "choices of models are not stored",
    "pickerSettingsContext": "choices of models are not stored",
    "planContextTier": "a session has one model for all modes",
    "planExitAction": "`exitPlanMode.request` has the actions",
    "planModel": "a session has one model for all modes",
    "planModelConfigured": "a session has one model for all modes",
    "planModelProviderId": "a session has one model for all modes",
    "planReasoningEffort": "a session has one model for all modes",
    "refreshSessionToken": "tokens are those of the store",
    "repoScope": "choices of models are not stored",
    "restorePlanModel": "a session has one model for all modes",
    "runCompactionPreflight": "a conversation is compacted when it has to be",
    "session.plugins.marketplaces.add.workingDirectory": "paths are relative to the session's working directory",
    "skills.getDiscoveryPaths.skillDirectories": "they are for sessions",
    "subagents.agents.*.contextTier": "the window is that of the model",
    "subagents.agents.*.modelPolicy": "an agent is not started without its model",
    "ui.elicitation.task": "elicitations of clients are no tasks",
}
"""The members without an effect that a client may miss, with the reason: a warning names both."""

REFUSED: Final[Mapping[str, str]] = {
    "additionalContentExclusionPolicies": "no content is excluded by policies",
    "cloud": "sessions run on this machine",
    "customAgents.*.hooks": "hooks belong to sessions",
    "enableManagedSettings": "no managed policy can be fetched",
    "expectedInstallationId": "MCP servers come from files, and are not installed",
    "managedSettings.permissions.limitTo": "commands reach hosts in ways that nobody sees",
    "mcp.oauth.login.loginId": "a login is one request",
    "mcp.oauth.login.redirectUri": "the server waits for the browser itself",
    "mcpServers.*.filterMapping": "the results of servers are not filtered",
    "providerId": "a model has the name of its provider in front, `provider/model`",
    "sandboxConfig.credentials": "values of variables are not masked",
}
"""The members that restrict a request, with the reason why a request that has them is refused."""

TABLES: Final[Mapping[State, Mapping[str, str]]] = {
    "neutral": NEUTRAL,
    "unsupported": UNSUPPORTED,
    "refused": REFUSED,
}

AS_IT_IS: Final[Mapping[str, Collection[Any]]] = {
    "cloud": (),
    "contextTier": ("default",),
    "subagents.agents.*.contextTier": ("default", "inherit"),
    "envValueMode": ("direct",),
    "imageGeneration": ({"enabled": False},),
    "mcpServers.*.filterMapping": ("none",),
    "memory.mode": ("system-prompt",),
    "provider.transport": ("http",),
    "providers.*.transport": ("http",),
    "remoteSession": ("off",),
    "subagents.agents.*.modelPolicy": ("required",),
    "toolFilterPrecedence": ("excluded",),
}
"""The values of unsupported members that ask for no other behaviour than that of this server.

If a member is not listed, these are ``False`` and everything that is empty.
"""

UNKNOWN: Final = "unknown to this server"

GUARDS: Final = re.compile("(expected|requires?|required|must|only)[A-Z]")
"""The names of members, also of SDKs to come, that make a request conditional; unknown ones are refused."""


class WithoutEffect(NamedTuple):
    """A member that this server does not serve.

    ``key`` is the key in its table, or the path of a member that is in none; ``because`` is the reason.
    """

    key: str
    because: str
    state: State


def without_effect(method: str, path: str) -> WithoutEffect:
    """Return why a member of a request is not served.

    ``path`` is the path of the member in the params, with ``*`` for any entry of an array or object. A key of the
    tables is the end of a path that may begin with the method, in whole words; the longest key decides.
    """
    whole = f"{method}.{path}"
    if (found := listed(whole)) is not None:
        return found
    is_guard = GUARDS.match(path.rpartition(".")[2]) is not None
    return WithoutEffect(whole, UNKNOWN, "refused" if is_guard else "unsupported")


def listed(path: str) -> WithoutEffect | None:
    """Return the row of a member, by its path that begins with the method; ``None`` if it is in no table."""
    while path:
        for state, table in TABLES.items():
            if path in table:
                return WithoutEffect(path, table[path], state)
        path = path.partition(".")[2]
    return None


def changes_nothing(key: str, value: Any) -> bool:
    """Return whether the value of a member without effect asks for what this server does in any case."""
    return value is None or (value in AS_IT_IS[key] if key in AS_IT_IS else not value)
