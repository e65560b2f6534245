"""The params and results that editors send. Unknown fields are ignored.

Source: the JSON Schemas of ACP, versions 1 and 2, stable and unstable (https://agentclientprotocol.com).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, StrictBool, StrictInt, ValidationError, ValidatorFunctionWrapHandler, field_validator
from pydantic_core import PydanticUseDefault

from jumpseat_protocol.limits import PathText, PathTexts
from jumpseat_protocol.wire import WireModel


class Nothing(WireModel):
    """Params or a result without fields."""


def _or_default(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Use the default of an invalid field, as the protocol demands for capabilities.

    An empty array counts as an empty object: Lua has one value for both.
    """
    try:
        return check({} if value == [] else value)
    except ValidationError:
        raise PydanticUseDefault from None


class Lenient(WireModel):
    """Base of an editor's description of itself: an invalid field has its default."""

    _or_default = field_validator("*", mode="wrap")(_or_default)


class Implementation(Lenient):
    name: str = ""
    title: str | None = None
    version: str = ""


class FileSystemCapabilities(Lenient):
    read_text_file: StrictBool = False
    write_text_file: StrictBool = False


class ConfigOptionCapabilities(Lenient):
    boolean: dict[str, Any] | None = None


class ClientSessionCapabilities(Lenient):
    compaction: dict[str, Any] | None = None
    config_options: ConfigOptionCapabilities = Field(default_factory=ConfigOptionCapabilities)
    notices: dict[str, Any] | None = None


class ElicitationCapabilities(Lenient):
    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class ClientAuthCapabilities(Lenient):
    terminal: StrictBool | dict[str, Any] | None = None
    """True in version 1, an object in version 2."""


class ClientCapabilities(Lenient):
    """The editor's capabilities; missing ones are not supported. An empty object means that one is supported."""

    fs: FileSystemCapabilities = Field(default_factory=FileSystemCapabilities)
    terminal: StrictBool = False
    session: ClientSessionCapabilities = Field(default_factory=ClientSessionCapabilities)
    elicitation: ElicitationCapabilities = Field(default_factory=ElicitationCapabilities)
    auth: ClientAuthCapabilities = Field(default_factory=ClientAuthCapabilities)
    plan: dict[str, Any] | None = None


class InitializeParams(WireModel):
    """``capabilities`` and ``info`` are those of version 2."""

    protocol_version: StrictInt = Field(ge=0)
    client_capabilities: ClientCapabilities = Field(default_factory=ClientCapabilities)
    client_info: Implementation | None = None
    capabilities: ClientCapabilities = Field(default_factory=ClientCapabilities)
    info: Implementation | None = None

    _or_default = field_validator("client_capabilities", "client_info", "capabilities", "info", mode="wrap")(
        _or_default
    )


class AuthenticateParams(WireModel):
    method_id: str


class Pair(WireModel):
    name: str
    value: str


def _pairs(value: Any) -> Any:
    # Some editors send an object instead of an array of pairs.
    if isinstance(value, dict):
        return [{"name": name, "value": item} for name, item in value.items()]  # pyright: ignore[reportUnknownVariableType]
    return value


class McpServer(WireModel):
    """An MCP server for the session: a command (without ``type``), a URL, or one that the editor serves itself."""

    name: str = Field(min_length=1)
    type: Literal["stdio", "http", "sse", "acp"] = "stdio"
    server_id: str | None = None
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: list[Pair] = Field(default_factory=list[Pair], repr=False)
    url: str | None = None
    headers: list[Pair] = Field(default_factory=list[Pair], repr=False)

    _as_pairs = field_validator("env", "headers", mode="before")(_pairs)


class TextBlock(WireModel):
    type: Literal["text"]
    text: str


class ImageBlock(WireModel):
    type: Literal["image"]
    data: str
    mime_type: str
    uri: str | None = None


class AudioBlock(WireModel):
    type: Literal["audio"]
    data: str
    mime_type: str


class ResourceLinkBlock(WireModel):
    type: Literal["resource_link"]
    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None


class Resource(WireModel):
    """An embedded file: ``text``, or ``blob`` in base64."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class ResourceBlock(WireModel):
    type: Literal["resource"]
    resource: Resource


ContentBlock: TypeAlias = Annotated[
    TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock, Field(discriminator="type")
]


class SystemPrompt(WireModel):
    mode: Literal["append", "override"] = "append"
    content: list[ContentBlock]


class SessionSetup(WireModel):
    """The common params of ``session/new``, ``load``, ``resume`` and ``fork``."""

    cwd: PathText = Field(min_length=1)
    mcp_servers: list[McpServer] = Field(default_factory=list[McpServer])
    additional_directories: PathTexts = Field(default_factory=list)
    system_prompt: SystemPrompt | None = None


class NewSessionParams(SessionSetup):
    """``session/new``."""


class OpenSessionParams(SessionSetup):
    """``session/load``, ``session/resume`` and ``session/fork``."""

    session_id: str


class ReplayFrom(WireModel):
    type: Literal["start"]


class ResumeParams(OpenSessionParams):
    """``session/resume`` of version 2: with ``replay_from``, the history precedes the response."""

    replay_from: ReplayFrom | None = None


class SessionParams(WireModel):
    session_id: str


class ListParams(WireModel):
    cwd: PathText | None = None
    cursor: str | None = None
    archived: str | None = None


class PromptParams(WireModel):
    session_id: str
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")

    @property
    def is_queued(self) -> bool:
        """Return whether the editor wants the prompt to wait until the running one has ended. Only in version 2."""
        return self.meta is not None and self.meta.get("jumpseat/delivery") == "queue"


class McpNotificationParams(WireModel):
    """A notification of an MCP server of the editor, which belongs to a request."""

    server_id: str
    request_id: str
    method: str
    params: dict[str, Any] | None = None


class SetModeParams(WireModel):
    session_id: str
    mode_id: str


class SetModelParams(WireModel):
    session_id: str
    model_id: str


class SetConfigOptionParams(WireModel):
    session_id: str
    config_id: str
    value: StrictBool | str


class SetTitleParams(WireModel):
    session_id: str
    title: str


class SetProviderParams(WireModel):
    """``headers`` are all headers of the provider, credentials included."""

    provider_id: str
    api_type: str
    base_url: str
    headers: dict[str, str] = Field(default_factory=dict, repr=False)


class ProviderParams(WireModel):
    provider_id: str


# --- results of requests to the editor --------------------------------------------------------------------------


class PermissionOutcome(WireModel):
    outcome: str
    option_id: str | None = None


class PermissionAnswer(WireModel):
    outcome: PermissionOutcome


class ElicitationAnswer(WireModel):
    action: str
    content: dict[str, Any] | None = None


class McpOutcome(WireModel):
    """The outcome of a request to an MCP server of the editor; a result may be ``null``."""

    result: Any = None
    error: dict[str, Any] | None = None


class FileText(WireModel):
    content: str


class TerminalCreated(WireModel):
    terminal_id: str


class ExitStatus(WireModel):
    exit_code: int | None = None
    signal: str | None = None


class TerminalOutput(WireModel):
    output: str
    truncated: bool = False
    exit_status: ExitStatus | None = None
