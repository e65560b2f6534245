"""Sessions: creating, resuming, listing, prompting, ending."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, StrictBool
from pydantic_core import PydanticCustomError

from jumpseat_protocol.events import AgentMode, SessionMode
from jumpseat_protocol.server import EmptyParams, SuccessResult
from jumpseat_protocol.wire import Method, WireModel

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def _one_line(text: str) -> str:
    text = text.strip()
    if _CONTROL.search(text):
        raise PydanticCustomError("one_line", "has line breaks or other control characters in it")
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise PydanticCustomError("header", "{name} is not the name of a header", {"name": repr(name)})
        if _CONTROL.search(value.strip()):
            problem = "the value of {name} has line breaks or other control characters in it"
            raise PydanticCustomError("header", problem, {"name": repr(name)})
    return {name: value.strip() for name, value in headers.items()}


OneLine: TypeAlias = Annotated[str, AfterValidator(_one_line)]
"""Goes into a line of HTTP. White space around it, as keys from files have, is taken off."""


Headers: TypeAlias = Annotated[dict[str, str], AfterValidator(_headers)]


class ClientTool(WireModel):
    """A tool that runs in the client. ``parameters`` is a JSON Schema; absent means "no arguments".

    ``defer`` tells whether the tool may be left out of requests until the model looks for it; ``auto`` is usual.
    """

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] | None = None
    overrides_built_in_tool: StrictBool = False
    skip_permission: StrictBool = False
    is_terminal: StrictBool = False
    defer: Literal["auto", "never"] | None = None


class ClientCommand(WireModel):
    """A slash command that runs in the client; ``name`` is without the slash."""

    name: str = Field(min_length=1)
    description: str | None = None


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
    """Overrides what the model list says of a model."""

    supports: ModelSupports | None = None
    limits: ModelLimits | None = None


class ProviderConfig(WireModel):
    """Where to find the session's model, with the caller's own key. Never stored, never logged.

    ``type`` is the name of an adapter; ``openai`` is the default. ``script`` goes with the scripted adapter.
    With ``has_bearer_token_provider`` the client is asked for a bearer token before every request; else
    ``api_key_command`` is run by the server's shell before every request, and what it prints is the key.
    ``tool_protocol`` is how its models call tools: as the provider has it, or as XML in their text.
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
    model_capabilities: ModelCapabilities | None = None
    azure: AzureOptions | None = None
    tool_protocol: Literal["native", "xml"] | None = None
    script: dict[str, Any] | str | None = None


class NamedProviderConfig(ProviderConfig):
    """A provider beside others, for the models that name it."""

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


class SystemMessageSection(WireModel):
    action: Literal["replace", "remove", "append", "prepend", "preserve", "transform"]
    content: str | None = None


class SystemMessageConfig(WireModel):
    """How the session's system message comes about: the default prompt, edited or replaced."""

    mode: Literal["append", "replace", "customize"] = "append"
    content: str | None = None
    sections: dict[str, SystemMessageSection] = Field(default_factory=dict)

    def has_transforms(self) -> bool:
        """Whether a client wants to rewrite sections itself."""
        return self.mode == "customize" and any(one.action == "transform" for one in self.sections.values())


class LargeOutputConfig(WireModel):
    """Outputs above ``max_size_bytes`` go to a file in ``output_dir``."""

    enabled: StrictBool = True
    max_size_bytes: int = Field(default=51200, ge=1)
    output_dir: str | None = None


class ToolSearchConfig(WireModel):
    """When tools that are not built in are left out until they are found.

    With more than ``defer_threshold`` tools, or where names, descriptions and schemas of those have more than
    ``defer_characters`` characters.
    """

    enabled: StrictBool = True
    defer_threshold: int = Field(default=30, ge=0)
    defer_characters: int = Field(default=80_000, ge=0)


class InfiniteSessionConfig(WireModel):
    """When the conversation is summed up by itself. The thresholds are shares of what the model can be given: from
    the first one on a summary is made while the session works on, at the second one it is waited for. What is unset
    is as the server has it: ``true``, 0.8 and 0.95, unless its configuration says otherwise.
    """

    enabled: StrictBool | None = None
    background_compaction_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    buffer_exhaustion_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class DefaultAgentConfig(WireModel):
    """What holds while no custom agent is selected, or one that does not say which tools it has."""

    excluded_tools: list[str] = Field(default_factory=list)


class CapiOptions(WireModel):
    """How the Copilot API is called."""

    enable_web_socket_responses: StrictBool | None = None


class CustomAgentConfig(WireModel):
    """An agent that the client describes.

    ``tools`` are names and patterns as in ``availableTools``, ``*`` for all, or ``server/tool`` and ``server/*``
    for those of MCP servers; unset means what the session has. ``model`` is as in ``session.create``,
    ``mcp_servers`` are each as ``mcp.py`` describes them, and ``skills`` are told to the model from the start.
    """

    name: str = Field(min_length=1)
    display_name: str | None = None
    description: str = ""
    prompt: str
    tools: list[str] | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = Field(default=None, repr=False)
    infer: StrictBool = True
    skills: list[str] | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class SessionLimitsConfig(WireModel):
    """What a session may use up. Credits are those of the Copilot API; other providers take none."""

    max_ai_credits: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class FreeToolChoice(WireModel):
    """How freely the model may call tools; ``auto`` is the default.

    ``required`` holds for the first model call of a run: the answers after it are free.
    ``parallel`` tells the model whether it may ask for several calls at once, where its provider can be told.
    """

    mode: Literal["auto", "required", "none"]
    parallel: StrictBool | None = None


class SpecificToolChoice(WireModel):
    """The model must call ``tool_name`` in the first model call of a run; the answers after it are free."""

    mode: Literal["specific"]
    tool_name: str = Field(min_length=1)
    parallel: StrictBool | None = None


ToolChoiceConfig: TypeAlias = FreeToolChoice | SpecificToolChoice


ToolName: TypeAlias = Annotated[str, Field(min_length=1)]


class HostedToolConfig(WireModel):
    """A tool that the model's provider runs itself. All other fields are options, in the provider's own words."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1)

    def options(self) -> dict[str, Any]:
        """The fields beside the name."""
        return dict(self.model_extra or {})


class ResponseFormatSchema(WireModel):
    """``schema_`` is a JSON Schema; references go to places inside it only."""

    name: str
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: StrictBool | None = None


class JsonSchemaFormat(WireModel):
    """Structured output: the last answer of a run is JSON that fits the schema, or the run ends in an error."""

    type: Literal["json_schema"]
    json_schema: ResponseFormatSchema


class TextFormat(WireModel):
    """Plain text, where the session has a form for its answers."""

    type: Literal["text"]


ResponseFormatConfig: TypeAlias = JsonSchemaFormat | TextFormat


class MemoryOptions(WireModel):
    enabled: StrictBool


class SessionOptions(WireModel):
    """What ``session.create`` and ``session.resume`` share. On resume, what is unset stays as it was.

    ``adapter_settings`` are values for the ``schema`` of the model's adapter, all of them. ``mcp_servers`` are
    each as ``mcp.py`` describes them. ``agent`` is the name of the one of ``custom_agents`` to work as.
    """

    model: str | None = None
    client_name: OneLine | None = None
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    model_capabilities: ModelCapabilities | None = None
    adapter_settings: dict[str, Any] | None = None
    tools: list[ClientTool] | None = None
    commands: list[ClientCommand] | None = None
    available_tools: list[str] | None = None
    excluded_tools: list[str] | None = None
    default_agent: DefaultAgentConfig | None = None
    tool_choice: ToolChoiceConfig | None = None
    hosted_tools: list[ToolName | HostedToolConfig] | None = None
    response_format: ResponseFormatConfig | None = None
    system_message: SystemMessageConfig | None = None
    provider: ProviderConfig | None = None
    providers: list[NamedProviderConfig] | None = None
    models: list[ProviderModelConfig] | None = None
    capi: CapiOptions | None = None
    custom_agents: list[CustomAgentConfig] | None = None
    agent: str | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = Field(default=None, repr=False)
    disabled_mcp_servers: list[str] | None = None
    plugin_directories: list[str] | None = None
    mcp_o_auth_token_storage: Literal["persistent", "in-memory"] | None = None
    request_mcp_apps: StrictBool | None = None
    allow_all_mcp_server_instructions: StrictBool | None = None
    session_limits: SessionLimitsConfig | None = None
    request_permission: StrictBool | None = None
    request_elicitation: StrictBool | None = None
    request_user_input: StrictBool | None = None
    request_exit_plan_mode: StrictBool | None = None
    request_auto_mode_switch: StrictBool | None = None
    continue_on_auto_mode: StrictBool | None = None
    hooks: StrictBool | None = None
    streaming: StrictBool | None = None
    working_directory: str | None = None
    large_output: LargeOutputConfig | None = None
    tool_search: ToolSearchConfig | None = None
    infinite_sessions: InfiniteSessionConfig | None = None
    enable_host_git_operations: StrictBool | None = None
    skip_custom_instructions: StrictBool | None = None
    instruction_directories: list[str] | None = None
    organization_custom_instructions: str | None = None
    enable_config_discovery: StrictBool | None = None
    enable_skills: StrictBool | None = None
    skill_directories: list[str] | None = None
    disabled_skills: list[str] | None = None
    memory: MemoryOptions | None = None
    git_hub_token: OneLine | None = Field(default=None, repr=False)
    git_hub_token_provider_registration_id: str | None = Field(default=None, min_length=1)


class SessionCreateParams(SessionOptions):
    session_id: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
    )
    cloud: dict[str, Any] | None = None


class SessionResumeParams(SessionOptions):
    session_id: str = Field(min_length=1)
    disable_resume: StrictBool = False
    continue_pending_work: StrictBool = False


class UiCapabilities(WireModel):
    elicitation: StrictBool = False
    mcp_apps: StrictBool = False
    canvases: StrictBool = False


class Capabilities(WireModel):
    ui: UiCapabilities


class SessionOpenedResult(WireModel):
    """Answer of ``session.create`` and ``session.resume``."""

    session_id: str
    workspace_path: str
    start_time: str
    is_remote: StrictBool = False
    mode: SessionMode
    capabilities: Capabilities


class SessionParams(WireModel):
    """For methods that take a session and nothing else."""

    session_id: str


class SessionSendParams(WireModel):
    """A prompt. ``attachments.py`` knows what may be attached.

    ``request_headers`` go to the model provider with this prompt's calls and are never stored. ``tool_choice``
    and ``hosted_tools`` are those of this prompt's run, in place of the session's; ``adapter_settings`` hold for
    this prompt's calls and win, one by one, over those of the session.
    """

    session_id: str
    prompt: str
    attachments: list[dict[str, Any]] | None = None
    mode: Literal["enqueue", "immediate"] = "enqueue"
    agent_mode: AgentMode | None = None
    request_headers: Headers = Field(default_factory=dict, repr=False)
    tool_choice: ToolChoiceConfig | None = None
    hosted_tools: list[ToolName | HostedToolConfig] | None = None
    response_format: ResponseFormatConfig | None = None
    adapter_settings: dict[str, Any] = Field(default_factory=dict[str, Any])


class SessionSendResult(WireModel):
    """``message_id`` is the id of the ``user.message`` event to come."""

    message_id: str


class SessionSendAndWaitResult(WireModel):
    """``response`` is the last ``assistant.message`` event of the run, if it has one."""

    message_id: str
    aborted: StrictBool
    completion_event_id: str | None = None
    response: dict[str, Any] | None = None


class SessionAbortParams(WireModel):
    session_id: str
    reason: str | None = None


class SessionListFilter(WireModel):
    cwd: str | None = None
    git_root: str | None = None
    repository: str | None = None
    branch: str | None = None


class SessionListParams(WireModel):
    filter: SessionListFilter | None = None


class SessionContext(WireModel):
    cwd: str
    git_root: str | None = None
    repository: str | None = None
    branch: str | None = None


class SessionMetadata(WireModel):
    """One session as lists show it. Times are ISO 8601; ``summary`` is its name, or the first prompt, shortened."""

    session_id: str
    start_time: str
    modified_time: str
    summary: str | None = None
    name: str | None = None
    is_remote: StrictBool = False
    context: SessionContext | None = None


class SessionListResult(WireModel):
    sessions: list[SessionMetadata]


class SessionGetMetadataResult(WireModel):
    session: SessionMetadata | None = None


class SessionIdResult(WireModel):
    """A session id, or nothing."""

    session_id: str | None = None


class ForegroundResult(WireModel):
    session_id: str | None = None
    workspace_path: str | None = None


class OptionsUpdateParams(SessionOptions):
    """``session.options.update``: the same names as in create, changed for what comes next.

    ``null`` takes back what a session says of all its messages: ``responseFormat``, ``toolChoice``,
    ``hostedTools``, ``adapterSettings``. Everywhere else it means the same as absent.
    """

    session_id: str
    enable_streaming: StrictBool | None = None
    model_capabilities_overrides: ModelCapabilities | None = None

    taken_back: ClassVar[Mapping[str, Any]] = {
        "responseFormat": {"type": "text"},
        "toolChoice": {"mode": "auto"},
        "hostedTools": [],
        "adapterSettings": {},
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
