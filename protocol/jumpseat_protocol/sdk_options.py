"""The options of ``session.create`` and ``session.resume`` that the SDKs send, for the coverage page.

An option that this server serves is a field of a model of the wire; ``unserved.py`` has the reasons for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.members import members_of
from jumpseat_protocol.sessions import (
    AutopilotOptions,
    AzureOptions,
    CanvasProviderIdentity,
    CapiOptions,
    ClientCommand,
    ClientTool,
    CustomAgentConfig,
    DefaultAgentConfig,
    GitHubMcpToolConfig,
    InfiniteSessionConfig,
    LargeOutputConfig,
    ManagedPermissions,
    ManagedSettings,
    MemoryOptions,
    ModelCapabilities,
    NamedProviderConfig,
    ProviderConfig,
    ProviderModelConfig,
    SessionCreateParams,
    SessionLimitsConfig,
    SessionResumeParams,
    SystemMessageConfig,
    SystemMessageSection,
    ToolSearchConfig,
)
from jumpseat_protocol.unserved import listed


class _Sent(NamedTuple):
    """The members that SDKs send in one object, and the models that have the served ones."""

    models: tuple[type[Any], ...]
    names: str


SENT: Final[Mapping[str, _Sent]] = {
    "": _Sent(
        (SessionCreateParams, SessionResumeParams),
        """
        additionalDirectories agent agentDirectories allowedModels allowTranscriptRecovery askUserVariant
        authClientIdMetadataUrl autopilot availableTools canvases canvasProvider capi clientName cloud commands
        configDir contextTier continuePendingWork customAgents customAgentsLocalOnly defaultAgent diagnostics
        disabledMcpServers disabledSkills disableResume embeddingCacheStorage enableCitations enableConfigDiscovery
        enableFileChangeTracking enableFileHooks enableGitHubTelemetryForwarding enableHostGitOperations
        enableManagedSettings enableOnDemandInstructionDiscovery enableSessionStore enableSessionTelemetry
        enableSkills enforceManagedModelDefaults envValueMode excludedBuiltinAgents excludedManagedSettings
        excludedTools expAssignments extensionInfo extensionSdkPath factories featureFlags githubMcpToolConfig
        gitHubToken gitHubTokenProviderRegistrationId hasSkillProvider hookDirectories hooks imageGeneration
        includeSubAgentStreamingEvents infiniteSessions instructionDirectories interactiveUser isExperimentalMode
        largeOutput managedSettings mcpOAuthTokenStorage mcpServers memory model modelCapabilities models name
        openCanvases organizationCustomInstructions pluginDirectories provider providers reasoningEffort
        reasoningSummary refreshCustomInstructions remoteSession requestAutoModeSwitch requestCanvasRenderer
        requestElicitation requestExitPlanMode requestExtensions requestMcpApps requestPermission requestUserInput
        sandboxConfig sessionId sessionLimits skillDirectories skipEmbeddingRetrieval streaming systemMessage
        toolFilterPrecedence tools toolSearch traceparent tracestate trustWorkingDirectory workingDirectory
        """,
    ),
    "autopilot": _Sent((AutopilotOptions,), "continuationEnabled maxContinues"),
    "canvasProvider": _Sent((CanvasProviderIdentity,), "id name"),
    "capi": _Sent((CapiOptions,), "autoTier enableWebSocketResponses"),
    "commands.*": _Sent((ClientCommand,), "description name"),
    "customAgents.*": _Sent(
        (CustomAgentConfig,),
        "description displayName hooks infer mcpServers model modelPolicy name prompt reasoningEffort skills tools",
    ),
    "defaultAgent": _Sent((DefaultAgentConfig,), "excludedTools"),
    "githubMcpToolConfig": _Sent(
        (GitHubMcpToolConfig,),
        "additionalTools additionalToolsets disableFormDeferral enableAllTools enableInsidersMode",
    ),
    "infiniteSessions": _Sent(
        (InfiniteSessionConfig,), "backgroundCompactionThreshold bufferExhaustionThreshold enabled"
    ),
    "largeOutput": _Sent((LargeOutputConfig,), "enabled maxSizeBytes outputDir"),
    "managedSettings": _Sent((ManagedSettings,), "permissions"),
    "managedSettings.permissions": _Sent(
        (ManagedPermissions,),
        "allow ask deny disableAssistedPermissionsMode disableBypassPermissionsMode limitTo",
    ),
    "mcpServers.*": _Sent(
        (McpServerConfig,),
        "args command cwd env headers oauthClientId oauthGrantType oauthPublicClient timeout tools type url",
    ),
    "memory": _Sent((MemoryOptions,), "enabled mode"),
    "modelCapabilities": _Sent((ModelCapabilities,), "limits supports"),
    "models.*": _Sent(
        (ProviderModelConfig,),
        "capabilities id maxContextWindowTokens maxOutputTokens maxPromptTokens modelId name provider wireModel",
    ),
    "provider": _Sent(
        (ProviderConfig,),
        """
        apiKey apiKeyCommand azure baseUrl bearerToken hasBearerTokenProvider headers maxOutputTokens
        maxPromptTokens modelId modelProvider transport type wireApi wireModel
        """,
    ),
    "provider.azure": _Sent((AzureOptions,), "apiVersion"),
    "providers.*": _Sent(
        (NamedProviderConfig,),
        "apiKey azure baseUrl bearerToken hasBearerTokenProvider headers modelProvider name type wireApi",
    ),
    "sessionLimits": _Sent((SessionLimitsConfig,), "maxAiCredits"),
    "systemMessage": _Sent((SystemMessageConfig,), "content mode sections"),
    "systemMessage.sections.*": _Sent((SystemMessageSection,), "action content"),
    "toolSearch": _Sent((ToolSearchConfig,), "deferThreshold enabled"),
    "tools.*": _Sent(
        (ClientTool,),
        "defer description isTerminal metadata name overridesBuiltInTool parameters skipPermission",
    ),
}
"""All members that the newest SDKs send, by the path of their object."""


def states() -> Iterator[tuple[str, str, str]]:
    """Yield the path of the object, the path of the option and its state: served, neutral, unsupported or refused.

    Raises:
        LookupError: an option is neither a field of a model nor in a table.
    """
    for parent, (models, names) in SENT.items():
        accepted = members_of(models).accepted
        for name in names.split():
            option = f"{parent}.{name}" if parent else name
            if (found := listed(f"session.create.{option}")) is not None:
                yield parent, option, found.state
            elif name in accepted:
                yield parent, option, "served"
            else:
                raise LookupError(f"{option}: neither served nor listed with a reason")
