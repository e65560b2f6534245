"""The configuration file: ``config.toml`` in the home folder. Every setting is optional.

The docstrings below settings are their descriptions in docs/configuration.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, ValidationError, model_validator

from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import in_file, validation_problems
from jumpseat.system.regular_files import read_whole
from jumpseat_protocol.lazy_models import LazyModel
from jumpseat_protocol.members import hint

LARGEST_BYTES: Final = 1024 * 1024
"""Limit on the size of the configuration file."""

# Not a pattern of all valid names: a key must not pass for one.
_VARIABLE: Final = re.compile(r"(?!(?:sk|pk|rk|gsk|xai|nvapi|hf|gh[opusr]|github_pat)_|AIza)[A-Za-z_][A-Za-z0-9_]*")


def _expect_absolute(paths: list[str]) -> list[str]:
    for path in paths:
        if not path.startswith(("/", "~")):
            raise ValueError(f"expected a path that begins with / or ~, got {path!r}")
    return paths


Paths: TypeAlias = Annotated[list[str], AfterValidator(_expect_absolute)]
"""Absolute paths, or paths below the user's home that begin with ``~``."""


class _Section(LazyModel):
    # A misspelt key must not be ignored silently. Sections that are not in the file are not validated: the
    # validators of all of them would take a thirtieth of the time to start.
    model_config = ConfigDict(extra="forbid")


DECLARED: Final = frozenset(
    {
        "available_tools",
        "body",
        "env",
        "extends",
        "features",
        "formatted_name",
        "meta",
        "opts",
        "parameters",
        "raw",
        "roles",
        "schema",
        "url",
        "vendor",
        "wire",
    }
)
"""Keys of an adapter's table that belong to its declaration, which is validated when the adapter is first used."""


class PriceConfig(_Section):
    """Prices in US dollars per million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    """Price of the input."""
    output: float = Field(ge=0, allow_inf_nan=False)
    """Price of the output."""
    cache_read: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of input that the provider has in its cache."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Price of input that the provider puts into its cache."""


class ModelConfig(_Section):
    """A model of an adapter. Limits are in tokens."""

    id: str
    """The name by which you choose the model."""
    name: str | None = None
    """The name that people see."""
    wire_model: str | None = None
    """The provider's name for the model, if it differs from ``id``."""
    vision: bool | None = None
    """Whether the model reads images."""
    tool_protocol: Literal["native", "xml"] | None = None
    """Whether tools are called by the provider's API, or in the text of answers: docs/xml-tools.md."""
    edit_tools: Literal["edit", "apply_patch"] | None = None
    """The tools that the model edits files with; by default, by its family: docs/edits.md."""
    tools: bool | None = None
    """Whether the model can call tools."""
    reasoning: bool | None = None
    """Whether the model reasons before it answers."""
    context_window: int | None = None
    """The most tokens of request and answer together."""
    max_output_tokens: int | None = None
    """The most tokens of an answer."""
    price: PriceConfig | None = None
    """Prices in US dollars per million tokens."""


class AdapterConfig(_Section):
    """A configured adapter.

    ``options`` are described in the adapter's module. ``script`` is the path of the script of a
    ``scripted`` adapter. ``declaration`` holds the keys of the table that are in :data:`DECLARED`.
    """

    type: str | None = None
    """The adapter that this one is based on; by default, the one with the name of the table."""
    base_url: str | None = None
    """The address of the API."""
    api_key_env: str | None = None
    """The name of the environment variable with the key. Keys never belong in this file."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further HTTP headers of each request."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Settings of the adapter: docs/adapters.md."""
    tool_protocol: Literal["native", "xml"] | None = None
    """Whether tools are called by the provider's API, or in the text of answers: docs/xml-tools.md."""
    edit_tools: Literal["edit", "apply_patch"] | None = None
    """The tools that its models edit files with; by default, by their family: docs/edits.md."""
    models: list[ModelConfig | str] = Field(default_factory=list[ModelConfig | str])
    """The models, as names or as tables."""
    script: str | None = None
    """The file with the answers of a ``scripted`` adapter."""
    list_models: bool | None = None
    """Whether the provider's own list is shown, too; by default, only if ``models`` is empty."""
    declaration: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The keys of a declared adapter: docs/adapters.md."""

    also_accepted: ClassVar = DECLARED

    mistaken: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "api_key",
                "apikey",
                "apiKey",
                "api-key",
                "api_token",
                "auth_token",
                "key",
                "password",
                "secret",
                "token",
            ),
            "keys do not belong in this file: put the key into an environment variable, "
            'and name that with api_key_env = "NAME_OF_THE_VARIABLE"',
        ),
        **dict.fromkeys(("address", "api_base", "endpoint", "host", "server"), "did you mean 'base_url'?"),
        **dict.fromkeys(("adapter", "kind", "provider"), "did you mean 'type'?"),
    }
    """Explanations of keys that people try, by key."""

    @model_validator(mode="before")
    @classmethod
    def _split_declaration(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        table = cast("dict[str, Any]", raw)
        declared = {key: value for key, value in table.items() if key in DECLARED}
        if not declared:
            return table
        return {key: value for key, value in table.items() if key not in DECLARED} | {"declaration": declared}

    def as_table(self) -> dict[str, Any]:
        """Return the table in its form in the file."""
        return {**self.model_dump(exclude_unset=True, exclude={"declaration"}), **self.declaration}

    def model_list(self) -> list[ModelConfig]:
        """Return the declared models, in the order of the file."""
        return [ModelConfig(id=model) if isinstance(model, str) else model for model in self.models]


class AliasConfig(_Section):
    adapter: str
    """The name of the adapter."""
    model: str
    """The id of the model."""


class AgentsConfig(_Section):
    """Limits on what one session does by itself, as :class:`jumpseat.agent.session.sub_agents.AgentLimits`."""

    depth: int | None = Field(default=None, ge=0)
    """How deep sub-agents may start others; 4 by default, 0 for none at all."""
    running: int | None = Field(default=None, ge=1)
    """How many sub-agents of a session may work at once; 16 by default."""
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """How long a sub-agent may work on one prompt, in seconds; 3,600 by default."""
    tokens: int | None = Field(default=None, gt=0)
    """How many tokens a sub-agent may use; no limit by default."""
    command_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """How long the end of a run waits for commands in the background, in seconds; 600 by default."""
    continues: int | None = Field(default=None, ge=0)
    """How often autopilot goes on by itself for each prompt, whatever clients ask for; 50 by default."""


class PermissionJudgeConfig(_Section):
    """A model that judges calls. ``patience_s`` is the former spelling of ``timeout_s``, still accepted."""

    model: str | None = None
    """The model; by default, that of the session."""
    timeout_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, validation_alias=AliasChoices("timeout_s", "patience_s")
    )
    """After this time, in seconds, a person is asked; 20 by default."""


class PermissionsConfig(_Section):
    """Permission settings. ``allow_old_clients`` is ``allow_unasked`` for clients that speak only protocol 2.

    With ``client_tools`` it concerns only the tools that such a client runs itself. ``None`` is decided by the name
    that the command was invoked by.
    The rules are parsed where they are used.
    """

    allow_unasked: bool = False
    """Whether calls run that no client can be asked about, as with ``--yolo``."""
    allow_old_clients: bool | Literal["client_tools"] | None = None
    """The same for clients that speak protocol 2 only; ``"client_tools"`` for their own tools only."""
    allow: list[str] = Field(default_factory=list)
    """Rules of what needs no question: docs/permissions.md."""
    ask: list[str] = Field(default_factory=list)
    """Rules of what a person decides in any case."""
    deny: list[str] = Field(default_factory=list)
    """Rules of what is refused."""
    judge: PermissionJudgeConfig | None = None
    """A model that decides before a person is asked."""


class SandboxSection(_Section):
    """The default confinement of commands, which sessions can change. Paths begin with ``/`` or ``~``."""

    mode: Literal["auto", "require", "off"] = "auto"
    """``auto`` confines commands where that works, ``require`` refuses them elsewhere, ``off`` confines none."""
    mcp: Literal["auto", "require", "off"] = "off"
    """The same for MCP servers."""
    network: Literal["approved", "none", "all"] = "approved"
    """The hosts that commands reach: those that you approve, none, or all."""
    hosts: list[str] = Field(default_factory=list)
    """Hosts that need no approval."""
    write: Paths = Field(default_factory=list)
    """Further folders that commands may change."""
    read_only: Paths = Field(default_factory=list)
    """Folders that commands may only read."""
    hide: Paths = Field(default_factory=list)
    """Paths that commands cannot read, besides well-known credentials."""
    show: Paths = Field(default_factory=list)
    """Exceptions from what is hidden."""
    caches: Literal["project", "shared"] = "project"
    """The caches of package managers: one for each project, or your own."""
    mechanisms: list[Literal["bubblewrap", "landlock", "seatbelt"]] | None = None
    """The mechanisms that may be used; by default, all that work."""


class RetryConfig(_Section):
    attempts: int | None = Field(default=None, ge=1)
    """How often a call of a model is tried in all; 5 by default."""
    first_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The first wait, in seconds; 0.5 by default. It doubles with each attempt."""
    longest_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The longest wait, in seconds; 8 by default."""
    longest_asked_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The longest wait that a provider may ask for, in seconds; 60 by default."""
    jitter: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """The random share of each wait, from 0 to 1; 0.5 by default."""


class CompactionConfig(_Section):
    enabled: bool | None = None
    """Whether long conversations are summarized; by default, they are."""
    clear_results: bool | None = None
    """Whether old results of tools are cleared first; by default, they are: docs/context.md."""
    background_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """The share of the context at which a summary is begun; 0.8 by default."""
    exhaustion_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """The share of the context at which turns wait for the summary; 0.95 by default."""


class LimitsConfig(_Section):
    """Limits of what a model may ask for, and of the time for asking its server about it; 0 means never."""

    calls_per_answer: int | None = Field(default=None, ge=1, le=2048)
    """How many tool calls of one answer run; the others fail. 128 by default."""
    repeats_before_hint: int = Field(default=3, ge=0)
    """After so many equal calls with equal results, the model gets a hint; 0 for never."""
    repeats_before_question: int = Field(default=5, ge=0)
    """After so many, a person is asked, or the call fails; 0 for never."""
    repeatable_tools: list[str] = Field(default_factory=list)
    """Tools that wait for something, such as ``job_status`` or ``mcp:*``."""
    server_question_s: float = Field(default=1.0, ge=0, le=3600)
    """How long the server of a model is asked for its window, in seconds; 0 for never."""


class BudgetLimitSection(_Section):
    """A limit in US dollars, and one in tokens."""

    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The most in US dollars."""
    max_tokens: int | None = Field(default=None, gt=0)
    """The most tokens of input and output."""


class BudgetConfig(_Section):
    """The budgets of sessions, of their prompts, and of a day."""

    session: BudgetLimitSection = Field(default_factory=BudgetLimitSection.model_construct)
    """The limit of a session."""
    prompt: BudgetLimitSection = Field(default_factory=BudgetLimitSection.model_construct)
    """The limit of a prompt."""
    day: BudgetLimitSection = Field(default_factory=BudgetLimitSection.model_construct)
    """The limit of a day, for all sessions together."""


class ProjectConfig(_Section):
    """The description of projects for models; ``False`` switches it off for all sessions."""

    brief: bool | None = None
    """Whether models are told what a project consists of, also in sessions of SDKs."""
    check_reminder: bool | None = None
    """Whether models are reminded to check changes, also in sessions of SDKs."""


class EditsConfig(_Section):
    """The checks after a tool has changed a file."""

    check_syntax: bool = True
    """Whether the results of changes tell new syntax errors: docs/edits.md."""


class EnvironmentConfig(_Section):
    """The server's data that child processes can read.

    ``passed`` are the names of credentials that they get nevertheless. With ``readable``, all processes of the user
    can read the memory of the server, as debuggers and profilers do.
    """

    passed: list[str] = Field(default_factory=list, alias="pass")
    """Names of keys and tokens that programs get."""
    readable: bool = False
    """Whether they, and debuggers, can read the memory of the server."""


class HooksConfig(_Section):
    """Limits of hooks, and whether those in files run. ``patience_s`` is the former spelling of ``timeout_s``."""

    files: bool = True
    """Whether the commands in hook files run: docs/hooks.md."""
    timeout_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, validation_alias=AliasChoices("timeout_s", "patience_s")
    )
    """The time limit of one hook, in seconds; 60 by default."""


class ClientsConfig(_Section):
    tool_timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The time limit of a call of a client's tool, in seconds; none by default."""


class ServiceConfig(_Section):
    """A service behind a tool.

    ``api_key`` is an entry as in ``env`` of adapters; ``options`` are added to every request.
    """

    base_url: str | None = None
    """The address of the service."""
    api_key: str | dict[str, Any] | None = Field(default=None, repr=False)
    """The key, as an entry of ``env`` in docs/adapters.md, such as ``"cmd:pass show tavily"``."""
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What is added to each request."""


class WebFetchConfig(_Section):
    """Settings of ``web_fetch``. ``allowed_hosts`` are names (with sub-domains), addresses and networks."""

    service: Literal["direct", "jina"] = "direct"
    """Who loads pages."""
    allow_private: bool = False
    """Whether addresses that are not on the public internet may be loaded."""
    allowed_hosts: list[str] = Field(default_factory=list)
    """Private hosts that may be loaded nevertheless: names, addresses and networks."""
    max_bytes: int = Field(default=5 * 1024 * 1024, ge=1024)
    """The most bytes of a page."""
    timeout_s: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    """The time limit, in seconds."""


class MemoryConfig(_Section):
    enabled: bool = False
    """Whether sessions keep memories, unless their options say otherwise."""


class CallToolsConfig(_Section):
    """Scripts that call tools.

    With ``by_default``, the tool for them is also in the default set. With ``unconfined``, scripts also run where
    no sandbox works, and each is asked about.
    """

    by_default: bool = False
    """Whether the default set of tools has scripts that call tools."""
    unconfined: bool = False
    """Whether those run without a sandbox, too; each is asked about."""


class ToolsConfig(_Section):
    """Settings of built-in tools; any other table declares a tool, or a group of tools."""

    model_config = ConfigDict(extra="allow")

    offered: str | list[str] | None = None
    """The tools of sessions whose clients choose none: a set, or names."""
    web_fetch: WebFetchConfig = Field(default_factory=WebFetchConfig.model_construct)
    """Loading web pages."""
    call_tools: CallToolsConfig = Field(default_factory=CallToolsConfig.model_construct)
    """Scripts that call tools."""
    memory: MemoryConfig = Field(default_factory=MemoryConfig.model_construct)
    """Facts that are kept from session to session."""

    @model_validator(mode="after")
    def _declarations_are_tables(self) -> ToolsConfig:
        for name, value in (self.model_extra or {}).items():
            if not isinstance(value, dict):
                raise ValueError(f"{name}: expected the table of a declared tool")
        return self

    @property
    def names(self) -> list[str] | None:
        """The names of the offered tools or of their set, ``None`` if the user has not chosen."""
        return [self.offered] if isinstance(self.offered, str) else self.offered

    @property
    def declared(self) -> dict[str, dict[str, Any]]:
        """The tables of declared tools, by name."""
        return self.model_extra or {}


class McpConfig(_Section):
    """MCP servers, which are validated when a session starts them: an invalid one is listed with its problem.

    ``github`` gives all sessions with a GitHub login the tools of GitHub's server that only read.
    """

    github: bool = False
    """Whether sessions with a login of GitHub get the tools of its MCP server that only read."""

    servers: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]], repr=False)
    """MCP servers of every session, by name: docs/mcp.md."""


class LanguageServerConfig(_Section):
    """A language server. ``extensions`` are those of its files, each with the language's id in the protocol.

    ``settings`` answer its questions about its configuration, by section. ``root`` is relative to the root of the
    project. The ``command`` is the name of a program in ``PATH``, or an absolute path.
    """

    command: str | None = Field(default=None, min_length=1)
    """A program in ``PATH``, or an absolute path."""
    args: list[str] = Field(default_factory=list)
    """Its arguments."""
    extensions: dict[str, str] = Field(default_factory=dict)
    """The endings of its files, each with the id of the language."""
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    """Its environment variables."""
    initialization_options: dict[str, Any] | None = None
    """What the server gets when it starts."""
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What the server gets when it asks for its settings, by section."""
    root: str = "."
    """The folder to start in, relative to the root of the project."""
    timeout_s: float = Field(default=90.0, gt=0, allow_inf_nan=False)
    """The time limit of requests, in seconds. The server is ended when one takes longer."""
    disabled: bool = False
    """Whether it does not start."""


class LspConfig(_Section):
    """Language servers: common settings, and a table for each server. ``idle_s`` ends a server that is not used."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, LanguageServerConfig]  # pyright: ignore[reportIncompatibleVariableOverride]

    enabled: bool = True
    """Whether language servers start: docs/language-servers.md."""
    defaults: bool = True
    """Whether well-known servers that are installed start by themselves."""
    warnings: bool = False
    """Whether models are told about new warnings, not only errors."""
    wait_s: float = Field(default=0.9, ge=0, le=60, allow_inf_nan=False)
    """How long the result of a change waits for diagnostics, in seconds."""
    idle_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    """After this time without use, in seconds, a server is ended."""
    memory_mb: int = Field(default=4096, ge=64)
    """The most memory of each process of a server, in MiB, on Linux."""

    @property
    def servers(self) -> dict[str, LanguageServerConfig]:
        """The servers by name."""
        return self.model_extra or {}


class StoreConfig(_Section):
    """The store of sessions: files, or NATS JetStream at ``url`` for many replicas of the server.

    ``shared`` are folders that all hosts have. The rest is checked where it is used.
    """

    url: str | None = None
    """NATS JetStream, for many replicas: docs/cluster.md. By default, sessions are files in the home folder."""
    name: str = "jumpseat"
    """The name of the cluster: several can share the servers of NATS."""
    host: str | None = None
    """The name of this host."""
    shared: Paths = Field(default_factory=list)
    """Folders that all hosts have: sessions in them move freely."""
    copies: Literal[1, 3, 5] | None = None
    """How many servers of NATS keep each session."""
    drain_s: float = Field(default=20.0, ge=0, le=3600, allow_inf_nan=False)
    """How long turns may take to end when the server ends, in seconds."""
    patience_s: float = Field(default=12.0, ge=2, le=16, allow_inf_nan=False)
    """How long requests wait for NATS, in seconds."""
    retention_days: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """After this time without a change, in days, a session is removed."""
    user: str | None = None
    """The user name."""
    password_env: str | None = None
    """The name of the environment variable with the password."""
    token_env: str | None = None
    """The name of the environment variable with the token."""
    credentials: str | None = None
    """The file of credentials."""
    tls_ca: str | None = None
    """The file of the authority's certificate."""
    tls_cert: str | None = None
    """The file of the client's certificate."""
    tls_key: str | None = None
    """The file of its key."""

    def login_variables(self) -> list[str]:
        """Return the names of the variables with the login."""
        return [name for name in (self.token_env, self.password_env) if name is not None]


class Config(_Section):
    default_model: str | None = None
    """The model of sessions that choose none: an alias, or ``adapter/model``."""
    trusted_folders: Paths = Field(default_factory=list)
    """Folders whose files may configure the server: docs/permissions.md."""
    adapters: dict[str, AdapterConfig] = Field(default_factory=dict)
    """Adapters by name: providers with their keys and models."""
    models: dict[str, AliasConfig] = Field(default_factory=dict)
    """Aliases by name."""
    permissions: PermissionsConfig = Field(default_factory=PermissionsConfig.model_construct)
    """What runs with and without a question."""
    store: StoreConfig = Field(default_factory=StoreConfig.model_construct)
    """Where sessions are stored."""
    sandbox: SandboxSection = Field(default_factory=SandboxSection.model_construct)
    """How commands are confined: docs/sandbox.md. Sessions can change it."""
    retry: RetryConfig = Field(default_factory=RetryConfig.model_construct)
    """Further attempts after failed calls of a model."""
    compaction: CompactionConfig = Field(default_factory=CompactionConfig.model_construct)
    """Long conversations. Options of a session take precedence."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig.model_construct)
    """Limits of what a model may ask for."""
    budget: BudgetConfig = Field(default_factory=BudgetConfig.model_construct)
    """What calls of models may use: docs/sessions.md. A session can only lower the limit of a day."""
    project: ProjectConfig = Field(default_factory=ProjectConfig.model_construct)
    """What models are told about projects: docs/instructions.md."""
    edits: EditsConfig = Field(default_factory=EditsConfig.model_construct)
    """What happens after a tool has changed a file."""
    environment: EnvironmentConfig = Field(default_factory=EnvironmentConfig.model_construct)
    """What commands and other programs get from the server's environment."""
    hooks: HooksConfig = Field(default_factory=HooksConfig.model_construct)
    """Commands that run at moments of a session."""
    clients: ClientsConfig = Field(default_factory=ClientsConfig.model_construct)
    """Limits of clients."""
    services: dict[Literal["jina", "tavily"], ServiceConfig] = Field(
        default_factory=dict[Literal["jina", "tavily"], ServiceConfig]
    )
    """Services behind tools: ``jina`` loads pages, ``tavily`` searches the web."""
    tools: ToolsConfig = Field(default_factory=ToolsConfig.model_construct)
    """Settings of built-in tools. Any other table declares a tool, or a group of tools: docs/tools.md."""
    default_tools: list[str] = Field(default_factory=list)
    """Declared tools that every session has without mentioning them."""
    agents: AgentsConfig = Field(default_factory=AgentsConfig.model_construct)
    """Limits on what one session does by itself."""
    mcp: McpConfig = Field(default_factory=McpConfig.model_construct)
    """MCP servers."""
    lsp: LspConfig = Field(default_factory=LspConfig.model_construct)
    """Language servers: common settings, and a table for each server."""


def load_config(home: Path, providers: Iterable[str] | None = None) -> Config:
    """Read ``home/config.toml``; return the defaults if there is no such file.

    ``providers`` are the adapters that an alias may name without a table; with ``None``, aliases are not checked.

    Raises:
        ConfigError: the file cannot be read, or a setting is unknown or invalid; the text names file, line and
            setting.
    """
    path = home / "config.toml"
    try:
        text = read_whole(path, LARGEST_BYTES).decode()
    except FileNotFoundError:
        return Config.model_construct()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    # Imported here: many users have no such file.
    from jumpseat.parsing.toml_text import TomlError, parse_toml

    try:
        raw: dict[str, Any] = parse_toml(text)
    except TomlError as error:
        raise ConfigError(error.in_file(path)) from None
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(in_file(path, validation_problems(error, Config, of_file=True))) from None
    problems = list(config_problems(config))
    if providers is not None:
        from jumpseat.declared.places import declaration_files

        files = (path.stem for path in declaration_files(home / "adapters"))
        problems += _unknown_adapters(config, {*providers, *config.adapters, *files})
    if problems:
        raise ConfigError(in_file(path, problems))
    for adapter in config.adapters.values():
        if adapter.script is not None:
            # Not Path.expanduser, which raises an error for unknown users.
            adapter.script = str(home / os.path.expanduser(adapter.script))
    return config


def has_store_section(home: Path) -> bool:
    """Return whether the configuration may have a section ``[store]``. Parsing it takes much longer."""
    try:
        return b"store" in read_whole(home / "config.toml", LARGEST_BYTES)
    except (OSError, ValueError):
        return False


def _unknown_adapters(config: Config, known: Collection[str]) -> Iterator[str]:
    """Yield the problems of aliases whose adapters are not ``known``."""
    for name, alias in config.models.items():
        if alias.adapter not in known:
            yield f"models.{name}.adapter: unknown adapter {alias.adapter!r}, {hint(alias.adapter, known)}"


def config_problems(config: Config) -> Iterator[str]:
    """Yield the problems of a configuration that its types do not show, each as ``KEY: problem``."""
    from jumpseat.parsing.validation import base_url_problem

    for name, adapter in config.adapters.items():
        if (problem := base_url_problem(adapter.base_url, adapter.type or name)) is not None:
            yield f"adapters.{name}.base_url: {problem}"
        if adapter.api_key_env is not None and not _VARIABLE.fullmatch(adapter.api_key_env):
            # The value is left out, because it may be the key.
            yield (
                f"adapters.{name}.api_key_env: expected the name of an environment variable, such as WORK_API_KEY; "
                "keys do not belong in this file"
            )


def home_folder(environ: Mapping[str, str]) -> Path:
    """Return the home folder: ``COPILOT_HOME``, or ``~/.jumpseat`` if the variable is unset or empty."""
    return Path(environ.get("COPILOT_HOME") or Path.home() / ".jumpseat").absolute()
