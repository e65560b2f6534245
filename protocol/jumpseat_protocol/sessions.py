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
    """The name of the tool."""
    description: str = ""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments."""
    overrides_built_in_tool: StrictBool = False
    """Whether it replaces a tool of the server with this name."""
    skip_permission: StrictBool = False
    """Whether it runs without a question."""
    is_terminal: StrictBool = False
    """Whether a call of it ends the run."""
    defer: Literal["auto", "never"] | None = None
    """Whether the model may have to search for it."""
    metadata: dict[str, Any] | None = None
    """The client's own values, which the server passes on."""


class ClientCommand(WireModel):
    """A slash command that runs in the client; ``name`` is without the slash."""

    name: str = Field(min_length=1)
    """The name, without the slash."""
    description: str | None = None


class CanvasAction(WireModel):
    """An action of a canvas that models and hosts may invoke. ``input_schema`` is a JSON Schema."""

    name: str = Field(min_length=1)
    """The name of the action."""
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class CanvasDeclaration(WireModel):
    """A canvas that the client provides. ``input_schema`` is a JSON Schema for the input of ``canvas.open``."""

    id: str = Field(min_length=1)
    """The id of the canvas."""
    display_name: str
    description: str
    input_schema: dict[str, Any] | None = None
    actions: list[CanvasAction] | None = None
    """What can be done with it."""


class CanvasProviderIdentity(WireModel):
    """The provider of a client's canvases, by which they are found again after a reconnection."""

    id: str = Field(min_length=1)
    """The id, which is the same after a reconnection."""
    name: str | None = None
    """The name that people see."""


class OpenCanvasInstance(WireModel):
    """An open instance: the title, status and URL are those of the client, the input is that of its opening."""

    instance_id: str
    extension_id: str
    canvas_id: str
    extension_name: str | None = None
    title: str | None = None
    status: str | None = None
    """What the canvas shows of its state."""
    url: str | None = None
    input: Any = None
    """What it was opened with."""


class AzureOptions(WireModel):
    """Settings of Azure's API."""

    api_version: str | None = None
    """The version of Azure's API."""


class ModelSupports(WireModel):
    """The abilities of a model."""

    vision: StrictBool | None = None
    """Whether the model reads images."""
    reasoning_effort: StrictBool | None = None


class ModelLimits(WireModel):
    """The limits on the tokens that a model takes and returns."""

    max_prompt_tokens: int | None = Field(default=None, alias="max_prompt_tokens")
    """The most tokens of a request."""
    max_output_tokens: int | None = Field(default=None, alias="max_output_tokens")
    """The most tokens of an answer."""
    max_context_window_tokens: int | None = Field(default=None, alias="max_context_window_tokens")
    """The most tokens of request and answer together."""


class ModelCapabilities(WireModel):
    """Overrides of the capabilities in the model list."""

    supports: ModelSupports | None = None
    """What the model can do."""
    limits: ModelLimits | None = None
    """The model's limits."""


class ProviderConfig(WireModel):
    """The provider of the session's model, with the client's own key. It is neither stored nor logged.

    With ``has_bearer_token_provider``, the client is asked for a bearer token before every request; otherwise the
    shell of the server runs ``api_key_command`` before every request.
    """

    type: str = "openai"
    """The name of an adapter, such as ``anthropic`` or ``ollama``."""
    wire_api: Literal["completions", "responses"] | None = None
    """The API of OpenAI that the provider speaks."""
    base_url: OneLine | None = None
    api_key: OneLine | None = Field(default=None, repr=False)
    """The key."""
    api_key_command: OneLine | None = Field(default=None, min_length=1, repr=False)
    """A command that prints the key."""
    bearer_token: OneLine | None = Field(default=None, repr=False)
    """A token that is sent instead of a key."""
    has_bearer_token_provider: StrictBool | None = None
    """Whether the client provides tokens when it is asked."""
    headers: Headers = Field(default_factory=dict, repr=False)
    model_id: str | None = None
    wire_model: str | None = None
    """The provider's name for the model, if it differs."""
    max_prompt_tokens: int | None = None
    """The most tokens of a request."""
    max_output_tokens: int | None = None
    """The most tokens of an answer."""
    max_context_window_tokens: int | None = None
    """The most tokens of request and answer together."""
    model_capabilities: Later[ModelCapabilities] | None = None
    """What the model can do."""
    azure: Later[AzureOptions] | None = None
    """Settings for Azure."""
    tool_protocol: Literal["native", "xml"] | None = None
    """Whether tools are called by the provider's API, or in the text of answers."""
    edit_tools: Literal["edit", "apply_patch"] | None = None
    """The tools that the model edits files with."""
    script: dict[str, Any] | str | None = None
    """What the scripted model answers, or the file that says so."""


class NamedProviderConfig(ProviderConfig):
    """A named provider, for the models that refer to it."""

    name: str = Field(min_length=1, pattern="^[^/]+$")
    """The name, by which models refer to it."""


class ProviderModelConfig(WireModel):
    """A model of a named provider, selected as ``provider/id``."""

    id: str = Field(min_length=1)
    """The id of the model."""
    provider: str = Field(min_length=1)
    """The name of its provider."""
    name: str | None = None
    """The name that people see."""
    model_id: str | None = None
    wire_model: str | None = None
    """The provider's name for the model, if it differs."""
    max_prompt_tokens: int | None = None
    """The most tokens of a request."""
    max_output_tokens: int | None = None
    """The most tokens of an answer."""
    max_context_window_tokens: int | None = None
    """The most tokens of request and answer together."""
    capabilities: ModelCapabilities | None = None
    """What the model can do."""
    tool_protocol: Literal["native", "xml"] | None = None
    """Whether tools are called by the provider's API, or in the text of answers."""
    edit_tools: Literal["edit", "apply_patch"] | None = None
    """The tools that the model edits files with."""


class SystemMessageSection(WireModel):
    """A change of a section of the system message."""

    action: Literal["replace", "remove", "append", "prepend", "preserve", "transform"]
    """What is done with the section."""
    content: str | None = None
    """The text that is added or takes its place."""


class SystemMessageConfig(WireModel):
    """The system message of a session: the default one with additions or edits, or a replacement."""

    mode: Literal["append", "replace", "customize"] = "append"
    """Whether text is added, the whole is replaced, or sections are changed."""
    content: str | None = None
    """The text that is added or takes the place of the whole."""
    sections: dict[str, SystemMessageSection] = Field(default_factory=dict)
    """The sections to change, by name."""

    def has_transforms(self) -> bool:
        """Return whether the client rewrites a section itself."""
        return self.mode == "customize" and any(section.action == "transform" for section in self.sections.values())


class LargeOutputConfig(WireModel):
    """Tool outputs larger than ``max_size_bytes`` are written to a file in ``output_dir``."""

    enabled: StrictBool = True
    max_size_bytes: int = Field(default=51200, ge=1)
    """The size from which an output is written to a file."""
    output_dir: PathText | None = None
    """The folder of those files."""


class ToolSearchConfig(WireModel):
    """Settings of tool search: tools that are not built in may be left out of requests until the model searches for
    them.

    They are if there are more than ``defer_threshold`` of them, or if their names, descriptions and schemas have
    more than ``defer_characters`` characters.
    """

    enabled: StrictBool = True
    defer_threshold: int = Field(default=30, ge=0)
    """With more tools than this, some have to be searched for."""
    defer_characters: int = Field(default=80_000, ge=0)
    """With longer definitions than this, some have to be searched for."""


class InfiniteSessionConfig(WireModel):
    """Automatic compaction. The thresholds are fractions of the model's prompt limit.

    From the first threshold on, the conversation is summarized while the session continues; from the second one on,
    the session waits for the summary. The defaults are those of the server's configuration, or ``true``, 0.8 and
    0.95.
    """

    enabled: StrictBool | None = None
    background_compaction_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """From this part of the model's limit on, a summary is made beside the session."""
    buffer_exhaustion_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """From this part of the model's limit on, the session waits for the summary."""


class AutopilotOptions(WireModel):
    """Continuation of a session in autopilot mode without the user, at most ``max_continues`` times per prompt."""

    continuation_enabled: StrictBool = True
    """Whether the session goes on by itself."""
    max_continues: int = Field(default=5, ge=0, le=10_000)
    """How often for each prompt."""


class DefaultAgentConfig(WireModel):
    """The tools that are excluded unless a custom agent is selected that has a list of tools."""

    excluded_tools: list[str] = Field(default_factory=list)
    """The tools that the session has for custom agents only."""


class CapiOptions(WireModel):
    """Options of requests to the Copilot API."""

    enable_web_socket_responses: StrictBool | None = None
    """Whether answers may come over a WebSocket."""


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
    """The name of the agent."""
    display_name: str | None = None
    description: str = ""
    prompt: str
    """Its instructions."""
    tools: list[str] | None = None
    """The tools that it may use."""
    mcp_servers: dict[str, dict[str, Any]] | None = Field(default=None, repr=False)
    """Its own MCP servers, by name."""
    infer: StrictBool = True
    """Whether the model may start it by itself."""
    skills: list[str] | None = None
    """The skills that it has."""
    model: str | None = None
    """The id of its model."""
    model_policy: Literal["preferred", "required"] = "preferred"
    """Whether another model may take the place of a missing one."""
    reasoning_effort: str | None = None


class SessionLimitsConfig(WireModel):
    """The budget of a session. Only the Copilot API uses credits."""

    max_ai_credits: Number | None = Field(default=None, ge=0)
    """The most AI credits of a Copilot plan."""


class BudgetLimitConfig(WireModel):
    """A limit of a budget, in US dollars and in tokens of input and output."""

    model_config = ConfigDict(extra="forbid")

    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The most in US dollars."""
    max_tokens: int | None = Field(default=None, gt=0)
    """The most tokens of input and output."""


class BudgetOptions(WireModel):
    """The budgets of a session, of each prompt, and of a day, which all sessions share."""

    model_config = ConfigDict(extra="forbid")

    session: BudgetLimitConfig | None = None
    """The limit of the session."""
    prompt: BudgetLimitConfig | None = None
    """The limit of each prompt."""
    day: BudgetLimitConfig | None = None
    """The limit of a day, for all sessions together."""


class FreeToolChoice(WireModel):
    """The model may, must or must not call tools; ``auto`` is the default.

    ``required`` applies to the first model call of a run only. ``parallel`` sets whether the model may request
    several calls at once, if the provider has that option.
    """

    mode: Literal["auto", "required", "none"]
    """Whether the model may, must or must not call tools."""
    parallel: StrictBool | None = None
    """Whether it may make several calls at once."""


class SpecificToolChoice(WireModel):
    """The model must call ``tool_name`` in the first model call of a run; later calls are free."""

    mode: Literal["specific"]
    """Says that one tool has to be called."""
    tool_name: str = Field(min_length=1)
    parallel: StrictBool | None = None
    """Whether the model may make several calls at once."""


ToolChoiceConfig: TypeAlias = FreeToolChoice | SpecificToolChoice


ToolName: TypeAlias = Annotated[str, Field(min_length=1)]


class HostedToolConfig(WireModel):
    """A tool that the provider runs. All other fields are options with the provider's own names."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1)
    """The provider's name for the tool."""

    def options(self) -> dict[str, Any]:
        """Return all fields except the name."""
        return dict(self.model_extra or {})


class ResponseFormatSchema(WireModel):
    """``schema_`` is a JSON Schema whose references are local."""

    name: str
    """A name for the form, which some providers require."""
    schema_: dict[str, Any] = Field(alias="schema")
    """The JSON Schema of the answer."""
    description: str | None = None
    strict: StrictBool | None = None
    """Whether the provider is asked to enforce it."""


class JsonSchemaFormat(WireModel):
    """Structured output: the last response of a run is JSON that matches the schema, or the run fails."""

    type: Literal["json_schema"]
    json_schema: ResponseFormatSchema
    """The form of the answer."""


class TextFormat(WireModel):
    """Plain text, which overrides the response format of the session."""

    type: Literal["text"]


ResponseFormatConfig: TypeAlias = JsonSchemaFormat | TextFormat


class MemoryOptions(WireModel):
    """The permission of the model to store facts for later sessions."""

    enabled: StrictBool


class GitHubMcpToolConfig(WireModel):
    """The tools of GitHub's MCP server that a session is offered: by default those that only read.

    ``disable_form_deferral`` has no effect: tools of the server never wait for forms.
    """

    enable_all_tools: StrictBool | None = None
    """Whether all tools are offered."""
    additional_toolsets: list[OneLine] | None = None
    """Sets of tools to offer as well."""
    additional_tools: list[OneLine] | None = None
    """Tools to offer as well."""
    enable_insiders_mode: StrictBool | None = None
    """Whether tools in preview are offered."""
    disable_form_deferral: StrictBool | None = None
    """Has no effect."""


class ManagedPermissions(WireModel):
    """The permission rules of a host's policy, such as ``Shell(git push *)``, ``Read(~/.ssh/**)``,
    ``Edit(/src/**)`` and ``Domain(*.example.com)``.

    Any value of ``disable_bypass_permissions_mode`` forbids approving calls wholesale.
    """

    model_config = ConfigDict(extra="forbid")

    deny: list[str] = Field(default_factory=list)
    """What is refused."""
    ask: list[str] = Field(default_factory=list)
    """What a person has to decide each time."""
    allow: list[str] | None = None
    """What needs no question."""
    limit_to: list[str] | None = None
    """The only calls that may be allowed."""
    disable_bypass_permissions_mode: str | None = None
    """Any value forbids to approve everything."""
    disable_assisted_permissions_mode: StrictBool = False
    """Whether decisions of a judging model are forbidden."""


class ManagedSettings(WireModel):
    """The policy that a host sets for a session. Unknown members are refused: they would restrict the session."""

    model_config = ConfigDict(extra="forbid")

    permissions: ManagedPermissions | None = None
    """The rules for permissions."""


class StoredOptions(WireModel):
    """The options that a session keeps for good: a client that resumes it in a later process need not repeat them.

    ``adapter_settings`` replaces all values for the ``schema`` of the model's adapter. Each of ``mcp_servers`` is
    an MCP server configuration (``mcp_servers.py``). ``agent_directories`` and ``hook_directories`` need neither
    ``enable_config_discovery`` nor ``enable_file_hooks``. ``enable_file_change_tracking`` has an effect on sessions
    without prompts only. Without ``infinite_sessions``, ``memory`` or ``project_brief``, the server decides.
    ``sandbox_config`` is stored without its secrets, and so are MCP servers.
    """

    members_inside: ClassVar[Mapping[str, Any]] = {"mcpServers": lambda: dict[str, McpServerConfig]}

    client_name: OneLine | None = None
    reasoning_summary: str | None = None
    model_capabilities: Later[ModelCapabilities] | None = None
    """What the model can do, if the list of models is wrong about it."""
    adapter_settings: dict[str, Any] = Field({})
    """Settings of the model's adapter, by name."""
    session_limits: Later[SessionLimitsConfig] | None = None
    """Limits on the session's usage of a Copilot plan."""
    budget: Later[BudgetOptions] | None = None
    """Limits on cost and tokens."""
    project_brief: StrictBool | None = None
    """Whether the model is told what the project consists of."""
    check_reminder: StrictBool | None = None
    """Whether a prompt that changed files without any check ends with a reminder."""
    continue_on_auto_mode: StrictBool = False
    """Whether another model is chosen without a question when one is rate limited."""
    response_format: Later[ResponseFormatConfig] | None = None
    infinite_sessions: Later[InfiniteSessionConfig] | None = None
    """When the conversation is summarized."""
    keep_interrupted_answers: StrictBool = False
    """Whether what was shown of an aborted answer stays in the conversation."""
    one_off: StrictBool = False
    """Whether the session is for one prompt only; lists for people leave it out."""
    enable_file_change_tracking: StrictBool = False
    """Whether file changes are kept for undo."""
    autopilot: Later[AutopilotOptions] = Field(default_factory=cache(AutopilotOptions.model_construct))
    """How a session in autopilot mode goes on by itself."""
    # Tools.
    available_tools: list[str] | None = None
    """The only tools that the model gets, by name or pattern."""
    excluded_tools: list[str] = Field([])
    """Tools that the model does not get, by name or pattern."""
    ask_user_disabled: StrictBool = False
    """Whether the model cannot ask questions."""
    tool_choice: Later[ToolChoiceConfig] | None = None
    hosted_tools: Later[list[ToolName | HostedToolConfig]] = Field([])
    tool_search: Later[ToolSearchConfig] = Field(default_factory=cache(ToolSearchConfig.model_construct))
    """When tools have to be searched for."""
    large_output: Later[LargeOutputConfig] = Field(default_factory=cache(LargeOutputConfig.model_construct))
    """What happens with large outputs of tools."""
    sandbox_config: Later[SandboxConfig] | None = Field(default=None, repr=False)
    """How commands are confined."""
    enable_file_hooks: StrictBool | None = None
    """Whether hooks are read from files."""
    hook_directories: PathTexts = Field([])
    """Folders of hook files."""
    enable_host_git_operations: StrictBool = True
    """Whether the server may run git."""
    # Agents.
    custom_agents: list[Later[CustomAgentConfig]] = Field([])
    """Agents of the client."""
    agent_directories: PathTexts = Field([])
    """Folders of agents."""
    default_agent: Later[DefaultAgentConfig] = Field(default_factory=cache(DefaultAgentConfig.model_construct))
    """What the agent has if no other is selected."""
    excluded_builtin_agents: list[str] = Field([])
    """Kinds of sub-agents that are not offered."""
    included_builtin_agents: list[str] = Field(["*"])
    """The only kinds of sub-agents that are offered, ``*`` for all."""
    # MCP servers and plugins.
    mcp_servers: dict[str, dict[str, Any]] = Field({}, repr=False)
    """MCP servers by name."""
    disabled_mcp_servers: list[str] = Field([])
    """Names of MCP servers that do not start."""
    github_mcp_tool_config: Later[GitHubMcpToolConfig] | None = None
    """The tools of GitHub's MCP server that are offered."""
    mcp_o_auth_token_storage: Literal["persistent", "in-memory"] = "persistent"  # noqa: S105 - a kind of storage
    """Whether logins of MCP servers are kept on disk."""
    allow_all_mcp_server_instructions: StrictBool = False
    """Whether the instructions of all MCP servers are sent to the model."""
    plugin_directories: PathTexts = Field([])
    """Folders of plugins."""
    # The system message.
    system_message: Later[SystemMessageConfig] = Field(default_factory=cache(SystemMessageConfig.model_construct))
    """What is added to or replaced in the system message."""
    skip_custom_instructions: StrictBool = False
    """Whether instruction files are ignored."""
    instruction_directories: PathTexts = Field([])
    """Further folders of instruction files."""
    organization_custom_instructions: str | None = None
    """Instructions of an organization."""
    enable_config_discovery: StrictBool = False
    """Whether settings are read from the project and the home."""
    enable_skills: StrictBool = True
    """Whether the model gets skills."""
    skill_directories: PathTexts = Field([])
    """Further folders of skills."""
    disabled_skills: list[str] = Field([])
    """Names of skills that are not offered."""
    memory: Later[MemoryOptions] | None = None
    """Whether facts are kept from session to session."""


class KeptOptions(StoredOptions):
    """The options that a session keeps as long as it is live: those with secrets, and those that its log holds.

    Relative folders are relative to the working directory.
    """

    model: str | None = None
    """The id of the model."""
    reasoning_effort: str | None = None
    agent: str | None = None
    """The name of the custom agent to begin with."""
    provider: Later[ProviderConfig] | None = None
    """The provider of the model, with the client's own key."""
    providers: list[Later[NamedProviderConfig]] = Field([])
    """Named providers of the client."""
    models: list[Later[ProviderModelConfig]] = Field([])
    """Models of those providers."""
    capi: Later[CapiOptions] = Field(default_factory=cache(CapiOptions.model_construct))
    """Settings for the Copilot API."""
    streaming: StrictBool = False
    """Whether answers are sent in parts while they are made."""
    include_sub_agent_streaming_events: StrictBool = True
    """Whether the parts of sub-agents' answers are sent, too."""
    additional_directories: PathTexts = Field([])
    """Folders that the session may use like its working directory."""
    request_mcp_apps: StrictBool = False
    """Whether the client shows apps of MCP servers."""


class SessionOptions(KeptOptions):
    """The options of ``session.create`` and ``session.resume``: the table of all.

    An option that is absent has its default in a new session, and changes nothing in one that exists. The fields of
    this class belong to the client that opens the session: its tools, what it answers, and its credentials.
    Only ``session.create`` and ``session.resume`` take ``managed_settings``. ``request_completions`` is for clients
    without completions of their own.
    """

    working_directory: PathText | None = None
    tools: list[Later[ClientTool]] = Field([])
    """Tools that run in the client."""
    commands: list[Later[ClientCommand]] = Field([])
    """Slash commands that run in the client."""
    canvases: list[Later[CanvasDeclaration]] = Field([])
    """Canvases that the client shows."""
    canvas_provider: Later[CanvasProviderIdentity] | None = None
    """Who provides the canvases."""
    hooks: StrictBool = False
    """Whether the client answers ``hooks.invoke``."""
    request_permission: StrictBool = False
    """Whether the client answers permission requests."""
    request_elicitation: StrictBool = False
    """Whether the client shows forms."""
    request_user_input: StrictBool = False
    """Whether the client answers the model's questions."""
    request_exit_plan_mode: StrictBool = False
    """Whether the client decides about plans."""
    request_auto_mode_switch: StrictBool = False
    """Whether the client decides about another model when one is rate limited."""
    stands_in: StrictBool = False
    """Whether the client is asked only while no other client answers."""
    request_canvas_renderer: StrictBool = False
    """Whether the client shows canvases of others."""
    request_completions: StrictBool = False
    """Whether the client asks for completions."""
    git_hub_token: OneLine | None = Field(default=None, repr=False)
    git_hub_token_provider_registration_id: str | None = Field(default=None, min_length=1)
    """The client's id of its callback for GitHub tokens."""
    enable_git_hub_telemetry_forwarding: StrictBool | None = None
    """Whether the client is sent telemetry events."""
    enable_managed_settings: StrictBool = False
    """Asks for a policy from GitHub, which cannot be fetched: the session is refused."""
    managed_settings: Later[ManagedSettings] | None = None
    """The policy of a host."""
    traceparent: str | None = None
    tracestate: str | None = None


class SessionCreateParams(SessionOptions):
    """A session with a ``name`` is listed and kept without any prompt.

    ``allowed_models`` limits the session while it is open; see ``session.model.setAllowedModels``.
    """

    name: str | None = None
    """The name of the session."""
    allowed_models: list[str] | None = None
    """The only models that the session may use while it is open."""
    session_id: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )


class SessionResumeParams(SessionOptions):
    """``take_over`` aborts a prompt that the session runs in another process.

    ``allowed_models`` is as in ``session.create``; without it, a live session keeps its limit.
    """

    session_id: str = Field(min_length=1)
    allowed_models: list[str] | None = None
    """The only models that the session may use while it is open."""
    disable_resume: StrictBool = False
    """Whether the event ``session.resume`` is left out."""
    continue_pending_work: StrictBool = False
    """Whether work that was interrupted goes on."""
    take_over: StrictBool = False
    """Whether a prompt that another process runs is aborted."""


class UiCapabilities(WireStruct, kw_only=True):
    """The user interfaces that clients can show."""

    elicitation: StrictBool = always(False)
    """Whether forms can be shown."""
    mcp_apps: StrictBool = always(False)
    """Whether apps of MCP servers can be shown."""
    canvases: StrictBool = always(False)
    """Whether canvases can be shown."""


class Capabilities(WireStruct, kw_only=True):
    """The combined abilities of the attached clients."""

    ui: UiCapabilities
    """What clients can show."""


class SessionOpenedResult(WireStruct, kw_only=True):
    """The result of ``session.create`` and ``session.resume``."""

    session_id: str
    workspace_path: str
    """The folder of the session's own files."""
    start_time: str
    """When the session was created, in ISO 8601."""
    is_remote: StrictBool = always(False)
    """Always false."""
    mode: SessionMode
    """The mode of the session."""
    capabilities: Capabilities
    """What the attached clients can do."""
    open_canvases: list[OpenCanvasInstance] | None = None
    """The canvases that were open."""


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
    """The text of the prompt."""
    display_prompt: str | None = None
    attachments: list[dict[str, Any]] | None = None
    mode: Literal["enqueue", "immediate", "interactive", "plan", "autopilot"] = "enqueue"
    """Whether to queue the prompt or steer the running turn, or the mode to run it in."""
    agent_mode: AgentMode | None = None
    """The mode to run it in."""
    source: str | None = Field(None, min_length=1, max_length=200)
    """Where the prompt comes from, if not from a person."""
    prepend: StrictBool = False
    """Whether it runs before those that wait."""
    wait: StrictBool = False
    """Whether the answer comes when the run has ended."""
    required_tool: str | None = None
    """A tool that the model must call."""
    billable: StrictBool = True
    """Whether a Copilot plan counts it as a request."""
    request_headers: Headers = Field(default_factory=dict, repr=False)
    """Headers for the model calls of this prompt."""
    tool_choice: Later[ToolChoiceConfig] | None = None
    hosted_tools: Later[list[ToolName | HostedToolConfig]] | None = None
    response_format: Later[ResponseFormatConfig] | None = None
    adapter_settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Settings of the model's adapter for this prompt."""
    traceparent: str | None = None
    tracestate: str | None = None


class SessionSendResult(WireStruct, kw_only=True):
    """``message_id`` is the id that the ``user.message`` event will have."""

    message_id: str


class SessionSendAndWaitResult(WireModel):
    """``response`` is the last ``assistant.message`` event of the run, if any."""

    message_id: str
    aborted: StrictBool
    """Whether the prompt was aborted."""
    completion_event_id: str | None = None
    """The id of the event that ended the run."""
    response: dict[str, Any] | None = None
    """The last message of the model."""


class SessionAbortParams(WireModel):
    session_id: str
    reason: str | None = None
    """Why, for the log."""


class SessionListFilter(WireModel):
    """The folder or repository of the sessions to list. Sessions match all members that are given."""

    cwd: PathText | None = None
    git_root: PathText | None = None
    repository: str | None = None
    branch: str | None = None


class SessionListParams(WireModel):
    filter: SessionListFilter | None = None
    """Which sessions to list."""


class SessionContext(WireModel):
    """The folder and the repository that a session works in."""

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
    """When it was created, in ISO 8601."""
    modified_time: str
    """When it was last changed, in ISO 8601."""
    summary: str | None = None
    """Its name, or its first prompt, shortened."""
    name: str | None = None
    """The name that a person gave it."""
    is_remote: StrictBool = False
    """Always false."""
    context: SessionContext | None = None
    """Where it works."""
    one_off: StrictBool | None = None
    """Whether it is for one prompt only."""
    unanswered: StrictBool | None = None
    """Whether its model has not answered yet."""

    @property
    def resumable(self) -> bool:
        """Return whether a person may want to resume the session."""
        return not (self.one_off or self.unanswered) and bool(self.summary or self.name)


class SessionListResult(WireModel):
    sessions: list[SessionMetadata]
    """The sessions."""


class SessionGetMetadataResult(WireModel):
    session: SessionMetadata | None = None
    """The session, if there is one."""


class SessionIdResult(WireModel):
    """``session_id`` is left out if no session was found."""

    session_id: str | None = None


class ForegroundResult(WireModel):
    session_id: str | None = None
    workspace_path: str | None = None
    """The folder of the session's own files."""


class OptionsUpdateParams(SessionOptions):
    """The options to change, as in ``session.create``, from the next model call on.

    ``null`` resets ``responseFormat``, ``toolChoice``, ``hostedTools``, ``adapterSettings`` and
    ``includedBuiltinAgents`` to their defaults.
    In other fields it means the same as absent.
    """

    session_id: str
    enable_streaming: StrictBool | None = None
    """Another name of ``streaming``."""
    model_capabilities_overrides: ModelCapabilities | None = None
    """Another name of ``modelCapabilities``."""

    taken_back: ClassVar[Mapping[str, Any]] = {
        "responseFormat": {"type": "text"},
        "toolChoice": {"mode": "auto"},
        "hostedTools": [],
        "adapterSettings": {},
        "includedBuiltinAgents": ["*"],
    }


METHODS: Final[Mapping[str, Method]] = {
    "session.create": Method(SessionCreateParams, SessionOpenedResult, "Create a session."),
    "session.resume": Method(
        SessionResumeParams, SessionOpenedResult, "Open a stored session, or join one that is open."
    ),
    "session.send": Method(SessionSendParams, SessionSendResult, "Send a prompt. The answer comes in events."),
    "session.sendAndWait": Method(
        SessionSendParams, SessionSendAndWaitResult, "Send a prompt, and answer when the run has ended."
    ),
    "session.abort": Method(
        SessionAbortParams, SuccessResult, "Abort the prompt that runs, and drop those that wait."
    ),
    "session.destroy": Method(SessionParams, SuccessResult, "Leave the session, which stays stored."),
    "session.detach": Method(SessionParams, SuccessResult, "Leave the session, which stays stored."),
    "session.delete": Method(SessionParams, SuccessResult, "Delete the session with its files."),
    "session.list": Method(
        SessionListParams, SessionListResult, "List the sessions that have had a prompt, the latest first."
    ),
    "session.getMetadata": Method(SessionParams, SessionGetMetadataResult, "Return the list entry of a session."),
    "session.getLastId": Method(
        EmptyParams, SessionIdResult, "Return the id of the session that was changed last."
    ),
    "session.getMessages": Method(SessionParams, dict, "Return the events of the session."),
    "session.getForeground": Method(EmptyParams, ForegroundResult, "Return no session: this server has no window."),
    "session.setForeground": Method(SessionParams, SuccessResult, "Refuse: this server has no window."),
    "session.options.update": Method(OptionsUpdateParams, SuccessResult, "Change options of the session."),
}
