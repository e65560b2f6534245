"""Sessions: their options, and the methods to create, resume, list, prompt and delete them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, StrictBool
from pydantic_core import PydanticCustomError

from jumpseat_protocol.events import AgentMode, SessionMode
from jumpseat_protocol.limits import MAX_KEY_CHARS, MOST_HEADER_CHARS, MOST_HEADERS, PathText, PathTexts
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.sandbox import SandboxConfig
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.wire import Later, Method, Number, WireModel, WireStruct, always

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def _one_line(text: str) -> str:
    text = text.strip()
    if len(text) > MAX_KEY_CHARS:
        raise PydanticCustomError("one_line", "must have at most {most} characters", {"most": MAX_KEY_CHARS})
    if _CONTROL.search(text):
        raise PydanticCustomError("one_line", "must not contain line breaks or other control characters")
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    if len(headers) > MOST_HEADERS:
        raise PydanticCustomError("header", "must have at most {most} headers", {"most": MOST_HEADERS})
    if sum(len(name) + len(value) for name, value in headers.items()) > MOST_HEADER_CHARS:
        problem = "headers must have at most {most} characters together"
        raise PydanticCustomError("header", problem, {"most": MOST_HEADER_CHARS})
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise PydanticCustomError("header", "{name} is not a valid header name", {"name": repr(name)})
        if _CONTROL.search(value.strip()):
            problem = "the value of {name} must not contain line breaks or other control characters"
            raise PydanticCustomError("header", problem, {"name": repr(name)})
    return {name: value.strip() for name, value in headers.items()}


OneLine: TypeAlias = Annotated[str, AfterValidator(_one_line)]
"""A string that is sent in a line of HTTP. Surrounding white space, as of a key from a file, is stripped."""


Headers: TypeAlias = Annotated[dict[str, str], AfterValidator(_headers)]


class ClientTool(WireModel):
    """A tool that runs in the client. ``parameters`` is a JSON Schema; without it, the tool has no arguments.

    With ``auto``, the default of ``defer``, the tool may be left out of requests until the model searches for it.
    A member ``readOnlyHint`` of ``metadata`` declares that calls change nothing, so that plan mode does not refuse
    them; the server ignores other members.
    """

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] | None = None
    overrides_built_in_tool: StrictBool = False
    skip_permission: StrictBool = False
    is_terminal: StrictBool = False
    defer: Literal["auto", "never"] | None = None
    metadata: dict[str, Any] | None = None


class ClientCommand(WireModel):
    """A slash command that runs in the client; ``name`` is without the slash."""

    name: str = Field(min_length=1)
    description: str | None = None


class CanvasAction(WireModel):
    """An action of a canvas that models and hosts may invoke. ``input_schema`` is a JSON Schema."""

    name: str = Field(min_length=1)
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class CanvasDeclaration(WireModel):
    """A canvas that the client provides. ``input_schema`` is a JSON Schema for the input of ``canvas.open``."""

    id: str = Field(min_length=1)
    display_name: str
    description: str
    input_schema: dict[str, Any] | None = None
    actions: list[CanvasAction] | None = None


class CanvasProviderIdentity(WireModel):
    """The provider of a client's canvases, by which they are found again after a reconnection."""

    id: str = Field(min_length=1)
    name: str | None = None


class OpenCanvasInstance(WireModel):
    """An open instance: the title, status and URL are those of the client, the input is that of its opening."""

    instance_id: str
    extension_id: str
    canvas_id: str
    extension_name: str | None = None
    title: str | None = None
    status: str | None = None
    url: str | None = None
    input: Any = None


class AzureOptions(WireModel):
    api_version: str | None = None


class ModelSupports(WireModel):
    vision: StrictBool | None = None
    reasoning_effort: StrictBool | None = None


class ModelLimits(WireModel):
    max_prompt_tokens: int | None = Field(default=None, alias="max_prompt_tokens")
    max_output_tokens: int | None = Field(default=None, alias="max_output_tokens")
    max_context_window_tokens: int | None = Field(default=None, alias="max_context_window_tokens")


class ModelCapabilities(WireModel):
    """Overrides of the capabilities in the model list."""

    supports: ModelSupports | None = None
    limits: ModelLimits | None = None


class ProviderConfig(WireModel):
    """The provider of the session's model, with the client's own key. It is neither stored nor logged.

    ``type`` is the name of an adapter, by default ``openai``. ``script`` is for the scripted adapter. With
    ``has_bearer_token_provider``, the client is asked for a bearer token before every request; otherwise the shell
    of the server runs ``api_key_command`` before every request, and the output is the key. ``tool_protocol`` is how
    models call tools: with the provider's function calling, or as XML in their text. ``edit_tools`` is what they
    edit files with, whatever their names.
    """

    type: str = "openai"
    wire_api: Literal["completions", "responses"] | None = None
    base_url: OneLine | None = None
    api_key: OneLine | None = Field(default=None, repr=False)
    api_key_command: OneLine | None = Field(default=None, min_length=1, repr=False)
    bearer_token: OneLine | None = Field(default=None, repr=False)
    has_bearer_token_provider: StrictBool | None = None
    headers: Headers = Field(default_factory=dict, repr=False)
    model_id: str | None = None
    wire_model: str | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    max_context_window_tokens: int | None = None
    model_capabilities: Later[ModelCapabilities] | None = None
    azure: Later[AzureOptions] | None = None
    tool_protocol: Literal["native", "xml"] | None = None
    edit_tools: Literal["edit", "apply_patch"] | None = None
    script: dict[str, Any] | str | None = None


class NamedProviderConfig(ProviderConfig):
    """A named provider, for the models that refer to it."""

    name: str = Field(min_length=1, pattern="^[^/]+$")


class ProviderModelConfig(WireModel):
    """A model of a named provider, selected as ``provider/id``."""

    id: str = Field(min_length=1)
    provider: str = Field(min_length=1)
    name: str | None = None
    model_id: str | None = None
    wire_model: str | None = None
    max_prompt_tokens: int | None = None
    max_output_tokens: int | None = None
    max_context_window_tokens: int | None = None
    capabilities: ModelCapabilities | None = None
    tool_protocol: Literal["native", "xml"] | None = None
    edit_tools: Literal["edit", "apply_patch"] | None = None


class SystemMessageSection(WireModel):
    action: Literal["replace", "remove", "append", "prepend", "preserve", "transform"]
    content: str | None = None


class SystemMessageConfig(WireModel):
    """The system message of a session: the default one with additions or edits, or a replacement."""

    mode: Literal["append", "replace", "customize"] = "append"
    content: str | None = None
    sections: dict[str, SystemMessageSection] = Field(default_factory=dict)

    def has_transforms(self) -> bool:
        """Return whether the client rewrites a section itself."""
        return self.mode == "customize" and any(section.action == "transform" for section in self.sections.values())


class LargeOutputConfig(WireModel):
    """Tool outputs larger than ``max_size_bytes`` are written to a file in ``output_dir``."""

    enabled: StrictBool = True
    max_size_bytes: int = Field(default=51200, ge=1)
    output_dir: PathText | None = None


class ToolSearchConfig(WireModel):
    """Settings of tool search: tools that are not built in may be left out of requests until the model searches for
    them.

    They are if there are more than ``defer_threshold`` of them, or if their names, descriptions and schemas have
    more than ``defer_characters`` characters.
    """

    enabled: StrictBool = True
    defer_threshold: int = Field(default=30, ge=0)
    defer_characters: int = Field(default=80_000, ge=0)


class InfiniteSessionConfig(WireModel):
    """Automatic compaction. The thresholds are fractions of the model's prompt limit.

    From the first threshold on, the conversation is summarized while the session continues; from the second one on,
    the session waits for the summary. The defaults are those of the server's configuration, or ``true``, 0.8 and
    0.95.
    """

    enabled: StrictBool | None = None
    background_compaction_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    buffer_exhaustion_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class AutopilotOptions(WireModel):
    """Continuation of a session in autopilot mode without the user, at most ``max_continues`` times per prompt."""

    continuation_enabled: StrictBool = True
    max_continues: int = Field(default=5, ge=0, le=10_000)


class DefaultAgentConfig(WireModel):
    """The tools that are excluded unless a custom agent is selected that has a list of tools."""

    excluded_tools: list[str] = Field(default_factory=list)


class CapiOptions(WireModel):
    """Options of requests to the Copilot API."""

    enable_web_socket_responses: StrictBool | None = None


AgentSource: TypeAlias = Literal["user", "project", "inherited", "plugin", "builtin"]
"""The kind of folder that an agent's file is in; ``inherited`` is above the working directory.
``builtin`` are those of the server.
"""


class CustomAgentConfig(WireModel):
    """An agent that the client defines.

    ``tools`` are names and patterns as in ``availableTools``, ``*`` for all, or ``server/tool`` and ``server/*``
    for those of MCP servers; by default, the tools of the session. ``model`` is as in ``session.create``; if it is
    not available, the agent has the model of the session, or none if ``model_policy`` is ``required``. Each of
    ``mcp_servers`` is an MCP server configuration (``mcp_servers.py``). ``skills`` are part of the prompt from the
    start.
    """

    members_inside: ClassVar[Mapping[str, Any]] = {"mcpServers": lambda: dict[str, McpServerConfig]}

    name: str = Field(min_length=1)
    display_name: str | None = None
    description: str = ""
    prompt: str
    tools: list[str] | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = Field(default=None, repr=False)
    infer: StrictBool = True
    skills: list[str] | None = None
    model: str | None = None
    model_policy: Literal["preferred", "required"] = "preferred"
    reasoning_effort: str | None = None


class SessionLimitsConfig(WireModel):
    """The budget of a session. Only the Copilot API uses credits."""

    max_ai_credits: Number | None = Field(default=None, ge=0)


class BudgetLimitConfig(WireModel):
    """A limit of a budget, in US dollars and in tokens of input and output."""

    model_config = ConfigDict(extra="forbid")

    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, gt=0)


class BudgetOptions(WireModel):
    """The budgets of a session, of each prompt, and of a day, which all sessions share."""

    model_config = ConfigDict(extra="forbid")

    session: BudgetLimitConfig | None = None
    prompt: BudgetLimitConfig | None = None
    day: BudgetLimitConfig | None = None


class FreeToolChoice(WireModel):
    """The model may, must or must not call tools; ``auto`` is the default.

    ``required`` applies to the first model call of a run only. ``parallel`` sets whether the model may request
    several calls at once, if the provider has that option.
    """

    mode: Literal["auto", "required", "none"]
    parallel: StrictBool | None = None


class SpecificToolChoice(WireModel):
    """The model must call ``tool_name`` in the first model call of a run; later calls are free."""

    mode: Literal["specific"]
    tool_name: str = Field(min_length=1)
    parallel: StrictBool | None = None


ToolChoiceConfig: TypeAlias = FreeToolChoice | SpecificToolChoice


ToolName: TypeAlias = Annotated[str, Field(min_length=1)]


class HostedToolConfig(WireModel):
    """A tool that the provider runs. All other fields are options with the provider's own names."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1)

    def options(self) -> dict[str, Any]:
        """Return all fields except the name."""
        return dict(self.model_extra or {})


class ResponseFormatSchema(WireModel):
    """``schema_`` is a JSON Schema whose references are local."""

    name: str
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: StrictBool | None = None


class JsonSchemaFormat(WireModel):
    """Structured output: the last response of a run is JSON that matches the schema, or the run fails."""

    type: Literal["json_schema"]
    json_schema: ResponseFormatSchema


class TextFormat(WireModel):
    """Plain text, which overrides the response format of the session."""

    type: Literal["text"]


ResponseFormatConfig: TypeAlias = JsonSchemaFormat | TextFormat


class MemoryOptions(WireModel):
    enabled: StrictBool


class GitHubMcpToolConfig(WireModel):
    """The tools of GitHub's MCP server that a session is offered: by default those that only read.

    ``disable_form_deferral`` has no effect: tools of the server never wait for forms.
    """

    enable_all_tools: StrictBool | None = None
    additional_toolsets: list[OneLine] | None = None
    additional_tools: list[OneLine] | None = None
    enable_insiders_mode: StrictBool | None = None
    disable_form_deferral: StrictBool | None = None


class ManagedPermissions(WireModel):
    """The permission rules of a host's policy, such as ``Shell(git push *)``, ``Read(~/.ssh/**)``,
    ``Edit(/src/**)`` and ``Domain(*.example.com)``.

    Any value of ``disable_bypass_permissions_mode`` forbids approving calls wholesale.
    """

    model_config = ConfigDict(extra="forbid")

    deny: list[str] = Field(default_factory=list)
    ask: list[str] = Field(default_factory=list)
    allow: list[str] | None = None
    limit_to: list[str] | None = None
    disable_bypass_permissions_mode: str | None = None
    disable_assisted_permissions_mode: StrictBool = False


class ManagedSettings(WireModel):
    """The policy that a host sets for a session. Unknown members are refused: they would restrict the session."""

    model_config = ConfigDict(extra="forbid")

    permissions: ManagedPermissions | None = None


class StoredOptions(WireModel):
    """The options that a session keeps for good: a client that resumes it in a later process need not repeat them.

    ``adapter_settings`` replaces all values for the ``schema`` of the model's adapter. Each of ``mcp_servers`` is
    an MCP server configuration (``mcp_servers.py``). ``included_builtin_agents`` are the only built-in kinds of
    sub-agents, ``*`` for all. ``agent_directories`` and ``hook_directories`` are folders of agents and of hook
    files, which need neither ``enable_config_discovery`` nor ``enable_file_hooks``. ``keep_interrupted_answers``
    keeps what was shown of an aborted answer in the conversation. ``one_off`` marks a session for one prompt only,
    which lists for people leave out. ``enable_file_change_tracking`` has an effect on sessions without prompts
    only. Without ``infinite_sessions`` or ``memory``, the server decides. ``sandbox_config`` is stored without its
    secrets, and so are MCP servers. ``project_brief`` describes the project to the model, by default, and with
    ``check_reminder`` a prompt that changed files without any check ends with a reminder of the project's own.
    """

    members_inside: ClassVar[Mapping[str, Any]] = {"mcpServers": lambda: dict[str, McpServerConfig]}

    client_name: OneLine | None = None
    reasoning_summary: str | None = None
    model_capabilities: Later[ModelCapabilities] | None = None
    adapter_settings: dict[str, Any] = Field({})
    session_limits: Later[SessionLimitsConfig] | None = None
    budget: Later[BudgetOptions] | None = None
    project_brief: StrictBool | None = None
    check_reminder: StrictBool | None = None
    continue_on_auto_mode: StrictBool = False
    response_format: Later[ResponseFormatConfig] | None = None
    infinite_sessions: Later[InfiniteSessionConfig] | None = None
    keep_interrupted_answers: StrictBool = False
    one_off: StrictBool = False
    enable_file_change_tracking: StrictBool = False
    autopilot: Later[AutopilotOptions] = Field(default_factory=cache(AutopilotOptions.model_construct))
    # Tools.
    available_tools: list[str] | None = None
    excluded_tools: list[str] = Field([])
    ask_user_disabled: StrictBool = False
    tool_choice: Later[ToolChoiceConfig] | None = None
    hosted_tools: Later[list[ToolName | HostedToolConfig]] = Field([])
    tool_search: Later[ToolSearchConfig] = Field(default_factory=cache(ToolSearchConfig.model_construct))
    large_output: Later[LargeOutputConfig] = Field(default_factory=cache(LargeOutputConfig.model_construct))
    sandbox_config: Later[SandboxConfig] | None = Field(default=None, repr=False)
    enable_file_hooks: StrictBool | None = None
    hook_directories: PathTexts = Field([])
    enable_host_git_operations: StrictBool = True
    # Agents.
    custom_agents: list[Later[CustomAgentConfig]] = Field([])
    agent_directories: PathTexts = Field([])
    default_agent: Later[DefaultAgentConfig] = Field(default_factory=cache(DefaultAgentConfig.model_construct))
    excluded_builtin_agents: list[str] = Field([])
    included_builtin_agents: list[str] = Field(["*"])
    # MCP servers and plugins.
    mcp_servers: dict[str, dict[str, Any]] = Field({}, repr=False)
    disabled_mcp_servers: list[str] = Field([])
    github_mcp_tool_config: Later[GitHubMcpToolConfig] | None = None
    mcp_o_auth_token_storage: Literal["persistent", "in-memory"] = "persistent"  # noqa: S105 - a kind of storage
    allow_all_mcp_server_instructions: StrictBool = False
    plugin_directories: PathTexts = Field([])
    # The system message.
    system_message: Later[SystemMessageConfig] = Field(default_factory=cache(SystemMessageConfig.model_construct))
    skip_custom_instructions: StrictBool = False
    instruction_directories: PathTexts = Field([])
    organization_custom_instructions: str | None = None
    enable_config_discovery: StrictBool = False
    enable_skills: StrictBool = True
    skill_directories: PathTexts = Field([])
    disabled_skills: list[str] = Field([])
    memory: Later[MemoryOptions] | None = None


class KeptOptions(StoredOptions):
    """The options that a session keeps as long as it is live: those with secrets, and those that its log holds.

    ``agent`` is the name of the selected custom agent. ``additional_directories`` are folders that the session may
    use as it may the working directory. Relative folders are relative to the working directory.
    """

    model: str | None = None
    reasoning_effort: str | None = None
    agent: str | None = None
    provider: Later[ProviderConfig] | None = None
    providers: list[Later[NamedProviderConfig]] = Field([])
    models: list[Later[ProviderModelConfig]] = Field([])
    capi: Later[CapiOptions] = Field(default_factory=cache(CapiOptions.model_construct))
    streaming: StrictBool = False
    include_sub_agent_streaming_events: StrictBool = True
    additional_directories: PathTexts = Field([])
    request_mcp_apps: StrictBool = False


class SessionOptions(KeptOptions):
    """The options of ``session.create`` and ``session.resume``: the table of all.

    An option that is absent has its default in a new session, and changes nothing in one that exists. The fields of
    this class belong to the client that opens the session: its tools, what it answers, and its credentials.
    ``managed_settings`` is the policy of a host, which only ``session.create`` and ``session.resume`` take.
    ``enable_managed_settings`` asks for a policy that cannot be fetched here: the session is refused.
    ``request_completions`` is for clients without completions of their own. ``traceparent`` and ``tracestate`` are
    the trace in which the session is opened (W3C Trace Context).
    """

    working_directory: PathText | None = None
    tools: list[Later[ClientTool]] = Field([])
    commands: list[Later[ClientCommand]] = Field([])
    canvases: list[Later[CanvasDeclaration]] = Field([])
    canvas_provider: Later[CanvasProviderIdentity] | None = None
    hooks: StrictBool = False
    request_permission: StrictBool = False
    request_elicitation: StrictBool = False
    request_user_input: StrictBool = False
    request_exit_plan_mode: StrictBool = False
    request_auto_mode_switch: StrictBool = False
    request_canvas_renderer: StrictBool = False
    request_completions: StrictBool = False
    git_hub_token: OneLine | None = Field(default=None, repr=False)
    git_hub_token_provider_registration_id: str | None = Field(default=None, min_length=1)
    enable_git_hub_telemetry_forwarding: StrictBool | None = None
    enable_managed_settings: StrictBool = False
    managed_settings: Later[ManagedSettings] | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class SessionCreateParams(SessionOptions):
    """A session with a ``name`` is listed and kept without any prompt.

    ``allowed_models`` limits the session while it is open; see ``session.model.setAllowedModels``.
    """

    name: str | None = None
    allowed_models: list[str] | None = None
    session_id: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )


class SessionResumeParams(SessionOptions):
    """``take_over`` aborts a prompt that the session runs in another process.

    ``allowed_models`` is as in ``session.create``; without it, a live session keeps its limit.
    """

    session_id: str = Field(min_length=1)
    allowed_models: list[str] | None = None
    disable_resume: StrictBool = False
    continue_pending_work: StrictBool = False
    take_over: StrictBool = False


class UiCapabilities(WireStruct, kw_only=True):
    elicitation: StrictBool = always(False)
    mcp_apps: StrictBool = always(False)
    canvases: StrictBool = always(False)


class Capabilities(WireStruct, kw_only=True):
    ui: UiCapabilities


class SessionOpenedResult(WireStruct, kw_only=True):
    """The result of ``session.create`` and ``session.resume``."""

    session_id: str
    workspace_path: str
    start_time: str
    is_remote: StrictBool = always(False)
    mode: SessionMode
    capabilities: Capabilities
    open_canvases: list[OpenCanvasInstance] | None = None


class SessionParams(WireModel):
    """For methods whose only param is a session."""

    session_id: str


class SessionSendParams(WireModel):
    """A prompt. ``attachments.py`` has the types of attachments.

    ``request_headers`` are sent to the model provider with the calls of this prompt, and not stored.
    ``tool_choice`` and ``hosted_tools`` replace those of the session for this prompt; ``adapter_settings`` are
    merged with those of the session and take precedence. ``traceparent`` and ``tracestate`` are the trace that the
    prompt belongs to (W3C Trace Context).

    ``mode`` takes an agent mode, too, which ``user.message`` does not repeat. ``display_prompt`` is shown to users
    in place of the prompt; ``source`` names where a prompt comes from that no user wrote. ``prepend`` puts the
    prompt in front of the queued ones. With ``wait``, the answer comes when the run has ended. Without the
    ``required_tool``, the run fails before the model is called. A prompt that is not ``billable`` counts as the
    agent's own request; only the Copilot API makes a difference.
    """

    session_id: str
    prompt: str
    display_prompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    mode: Literal["enqueue", "immediate", "interactive", "plan", "autopilot"] = "enqueue"
    agent_mode: AgentMode | None = None
    source: str | None = Field(None, min_length=1, max_length=200)
    prepend: StrictBool = False
    wait: StrictBool = False
    required_tool: str | None = None
    billable: StrictBool = True
    request_headers: Headers = Field(default_factory=dict, repr=False)
    tool_choice: Later[ToolChoiceConfig] | None = None
    hosted_tools: Later[list[ToolName | HostedToolConfig]] | None = None
    response_format: Later[ResponseFormatConfig] | None = None
    adapter_settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    traceparent: str | None = None
    tracestate: str | None = None


class SessionSendResult(WireStruct, kw_only=True):
    """``message_id`` is the id that the ``user.message`` event will have."""

    message_id: str


class SessionSendAndWaitResult(WireModel):
    """``response`` is the last ``assistant.message`` event of the run, if any."""

    message_id: str
    aborted: StrictBool
    completion_event_id: str | None = None
    response: dict[str, Any] | None = None


class SessionAbortParams(WireModel):
    session_id: str
    reason: str | None = None


class SessionListFilter(WireModel):
    cwd: PathText | None = None
    git_root: PathText | None = None
    repository: str | None = None
    branch: str | None = None


class SessionListParams(WireModel):
    filter: SessionListFilter | None = None


class SessionContext(WireModel):
    cwd: PathText
    git_root: PathText | None = None
    repository: str | None = None
    branch: str | None = None


class SessionMetadata(WireModel):
    """A list entry. Times are ISO 8601; ``summary`` is the name of the session, or its first prompt, shortened.

    ``one_off`` marks a session for one prompt only, ``unanswered`` one whose model has not answered yet. Lists for
    people leave both out.
    """

    session_id: str
    start_time: str
    modified_time: str
    summary: str | None = None
    name: str | None = None
    is_remote: StrictBool = False
    context: SessionContext | None = None
    one_off: StrictBool | None = None
    unanswered: StrictBool | None = None

    @property
    def resumable(self) -> bool:
        """Return whether a person may want to resume the session."""
        return not (self.one_off or self.unanswered) and bool(self.summary or self.name)


class SessionListResult(WireModel):
    sessions: list[SessionMetadata]


class SessionGetMetadataResult(WireModel):
    session: SessionMetadata | None = None


class SessionIdResult(WireModel):
    """``session_id`` is left out if no session was found."""

    session_id: str | None = None


class ForegroundResult(WireModel):
    session_id: str | None = None
    workspace_path: str | None = None


class OptionsUpdateParams(SessionOptions):
    """The options to change, as in ``session.create``, from the next model call on.

    ``null`` resets ``responseFormat``, ``toolChoice``, ``hostedTools``, ``adapterSettings`` and
    ``includedBuiltinAgents`` to their defaults.
    In other fields it means the same as absent.
    """

    session_id: str
    enable_streaming: StrictBool | None = None
    model_capabilities_overrides: ModelCapabilities | None = None

    taken_back: ClassVar[Mapping[str, Any]] = {
        "responseFormat": {"type": "text"},
        "toolChoice": {"mode": "auto"},
        "hostedTools": [],
        "adapterSettings": {},
        "includedBuiltinAgents": ["*"],
    }


METHODS: Final[Mapping[str, Method]] = {
    "session.create": Method(SessionCreateParams, SessionOpenedResult),
    "session.resume": Method(SessionResumeParams, SessionOpenedResult),
    "session.send": Method(SessionSendParams, SessionSendResult),
    "session.sendAndWait": Method(SessionSendParams, SessionSendAndWaitResult),
    "session.abort": Method(SessionAbortParams, SuccessResult),
    "session.destroy": Method(SessionParams, SuccessResult),
    "session.detach": Method(SessionParams, SuccessResult),
    "session.delete": Method(SessionParams, SuccessResult),
    "session.list": Method(SessionListParams, SessionListResult),
    "session.getMetadata": Method(SessionParams, SessionGetMetadataResult),
    "session.getLastId": Method(EmptyParams, SessionIdResult),
    "session.getMessages": Method(SessionParams, dict),
    "session.getForeground": Method(EmptyParams, ForegroundResult),
    "session.setForeground": Method(SessionParams, SuccessResult),
    "session.options.update": Method(OptionsUpdateParams, SuccessResult),
}
