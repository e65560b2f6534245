"""The configuration file: ``config.toml`` in the home folder. Every setting is optional.

::

    default_model = "fast"              # an alias, or "adapter/model"
    trusted_folders = ["~/work"]        # folders whose files may configure the server: docs/permissions.md

    default_tools = ["lint"]            # declared tools that every session has without mentioning them

    [adapters.work]                     # the name in "work/gpt-5"
    type = "openai"                     # the adapter; default: the name of the table
    base_url = "https://llm.example.com/v1"
    api_key_env = "WORK_LLM_KEY"        # the name of the variable; keys never belong in this file
    tool_protocol = "xml"               # for servers and models without function calling: docs/xml-tools.md
    edit_tools = "edit"                 # or "apply_patch"; default: by the family of the model: docs/edits.md
    models = ["gpt-5", {id = "gpt-5-mini", vision = true, context_window = 400000, edit_tools = "apply_patch"}]
    list_models = true                  # also list the provider's models; default: only if none is declared
                                        # a table may also be a complete declaration: docs/adapters.md

    [models.fast]                       # an alias
    adapter = "work"
    model = "gpt-5-mini"

    [permissions]
    allow_unasked = false               # true: run calls that no attached client can be asked about (as --yolo)
    allow_old_clients = false           # true: the same for sessions of clients that speak protocol 2 only;
                                        # "client_tools": only for the tools that such a client runs itself
    allow = ["read", "shell(git status)"]   # rules: docs/permissions.md; deny wins over ask, ask over allow
    ask = ["shell(git push)"]           # applies with --yolo, too
    deny = ["read(~/.ssh)"]

    [permissions.judge]                 # a model that decides before a person is asked
    model = "fast"                      # default: the model of the session
    timeout_s = 20.0                    # after that, a person is asked

    [sandbox]                           # of commands: docs/sandbox.md
    mode = "auto"                       # or "require": no command runs unconfined; or "off"
    network = "approved"                # or "none", "all": the hosts that commands reach
    hosts = ["registry.example.com"]    # those that need no approval
    write = ["~/shared"]                # further folders that commands may change
    hide = ["~/private"]                # paths that commands cannot read, besides well-known credentials
    show = ["~/.npmrc"]                 # exceptions from those
    caches = "project"                  # of package managers; or "shared": those of the user
    mechanisms = ["bubblewrap"]         # those that may be used; default: all that work
    mcp = "off"                         # the mode for MCP servers

    [retry]                             # of failed model calls; the defaults are in agent/retry.py
    attempts = 5                        # in total; 1: no retries
    first_wait_s = 0.5                  # doubles with every attempt
    longest_wait_s = 8.0
    longest_asked_wait_s = 60.0         # no retry if the provider asks for a longer wait
    jitter = 0.5                        # random share of each wait, from 0 to 1

    [compaction]                        # of long conversations; options of a session take precedence
    enabled = true
    clear_results = true                # first clear old results of tools: docs/context.md
    background_threshold = 0.8          # share of the context at which a summary is begun
    exhaustion_threshold = 0.95         # share of the context at which turns wait for the summary

    [limits]
    calls_per_answer = 128              # tool calls of one answer that run; the others fail
    repeats_before_hint = 3             # equal calls with equal results: the model gets a hint; 0: never
    repeats_before_question = 5         # the user is asked, or the call fails; 0: never
    repeatable_tools = []               # tools that wait for something, such as "job_status" or "mcp:*"

    [budget]                            # what model calls may use: docs/sessions.md
    session = {max_cost = 5.0}          # dollars; options of a session take precedence
    prompt = {max_tokens = 500_000}     # of input and output; options of a session take precedence
    day = {max_cost = 20.0}             # of all sessions together; a session can only lower it

    [project]                           # what the model is told about the project: docs/instructions.md
    brief = true                        # kind, tests, build, git, layout, also in sessions of SDKs; false: in none
    check_reminder = true               # reminders to check changes, also in sessions of SDKs; false: in none

    [edits]
    check_syntax = true                 # false: no new syntax errors in the results of changes: docs/edits.md

    [tools.lint]                        # a declared tool, or a group of tools: docs/tools.md
    cmds = [["make", "lint"]]

    [environment]                       # of commands and other child processes
    pass = ["GH_TOKEN"]                 # keys and tokens that they get; default: none
    readable = false                    # true: they, and debuggers, can read the memory of the server

    [hooks]
    timeout_s = 60.0                    # of one hook, and of rewriting the system message
    files = true                        # whether the commands in hook files run: docs/hooks.md

    [clients]
    tool_timeout_s = 900.0              # of a call to a client's tool; default: no limit

    [services.tavily]                   # web search; also available if TAVILY_API_KEY is set
    api_key = "cmd:pass show tavily"    # as an entry of env in docs/adapters.md; default: TAVILY_API_KEY
    base_url = "https://api.tavily.com"
    options = {max_results = 5}         # added to every request

    [services.jina]                     # fetches pages if tools.web_fetch.service is "jina"; the key is optional

    [tools.web_fetch]
    service = "direct"                  # or "jina"
    allow_private = false               # true: addresses that are not on the public internet may be fetched
    allowed_hosts = ["wiki.example.com", "10.1.0.0/16"]     # private hosts that may be fetched nevertheless
    max_bytes = 5242880
    timeout_s = 30.0

    [tools.call_tools]
    by_default = false                  # true: the default set of tools also has scripts that call tools
    unconfined = false                  # true: those run without a sandbox, too; each is asked about

    [tools.memory]
    enabled = false                     # true: sessions keep memories unless their options say otherwise

    [store]                             # of sessions; default: files in the home folder
    url = "nats://n1:4222,nats://n2:4222"   # NATS JetStream, for many replicas: docs/cluster.md
    name = "jumpseat"                   # of the cluster: several can share the servers of NATS
    credentials = "~/nats.creds"        # or token_env, or user and password_env: names of variables
    tls_ca = "~/ca.pem"                 # and tls_cert, tls_key of a client certificate
    shared = ["/mnt/work"]              # folders that all hosts have: sessions in them move freely
    drain_s = 20.0                      # time that turns have to end when the server ends
    patience_s = 12.0                   # time that requests wait for NATS: longer than an election

    [mcp.servers.files]                 # an MCP server of every session: docs/mcp.md
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/data"]

    [lsp]                               # language servers: docs/language-servers.md
    enabled = true                      # false: none is started
    defaults = true                     # also start well-known servers that are installed
    warnings = false                    # true: the model is told about new warnings, not only errors
    wait_s = 1.0                        # time that the result of a change waits for diagnostics
    idle_s = 600.0                      # time without use after which a server is ended
    memory_mb = 4096                    # of each process of a server, on Linux

    [lsp.zls]                           # a server
    command = "zls"                     # a program in PATH, or an absolute path
    args = []
    extensions = {".zig" = "zig"}       # and the ids of the languages
    env = {ZLS_LOG = "${HOME}/zls.log"}
    initialization_options = {}
    settings = {}                       # by section, for servers that ask
    root = "."                          # relative to the root of the project
    timeout_s = 90.0                    # of requests; the server is ended when one takes longer
    disabled = false
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
    output: float = Field(ge=0, allow_inf_nan=False)
    cache_read: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ModelConfig(_Section):
    """A model of an adapter. Limits are in tokens."""

    id: str
    name: str | None = None
    wire_model: str | None = None
    vision: bool | None = None
    tool_protocol: Literal["native", "xml"] | None = None
    edit_tools: Literal["edit", "apply_patch"] | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    price: PriceConfig | None = None


class AdapterConfig(_Section):
    """A configured adapter.

    ``options`` are described in the adapter's module. ``script`` is the path of the script of a
    ``scripted`` adapter. ``declaration`` holds the keys of the table that are in :data:`DECLARED`.
    """

    type: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict[str, Any])
    tool_protocol: Literal["native", "xml"] | None = None
    edit_tools: Literal["edit", "apply_patch"] | None = None
    models: list[ModelConfig | str] = Field(default_factory=list[ModelConfig | str])
    script: str | None = None
    list_models: bool | None = None
    declaration: dict[str, Any] = Field(default_factory=dict[str, Any])

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
    model: str


class AgentsConfig(_Section):
    """Limits on what one session does by itself, as :class:`jumpseat.agent.session.sub_agents.AgentLimits`."""

    depth: int | None = Field(default=None, ge=0)
    running: int | None = Field(default=None, ge=1)
    timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, gt=0)
    command_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    continues: int | None = Field(default=None, ge=0)


class PermissionJudgeConfig(_Section):
    """A model that judges calls. ``patience_s`` is the former spelling of ``timeout_s``, still accepted."""

    model: str | None = None
    timeout_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, validation_alias=AliasChoices("timeout_s", "patience_s")
    )


class PermissionsConfig(_Section):
    """Permission settings. ``allow_old_clients`` is ``allow_unasked`` for clients that speak only protocol 2.

    With ``client_tools`` it concerns only the tools that such a client runs itself. ``None`` is decided by the name
    that the command was invoked by.
    The rules are parsed where they are used.
    """

    allow_unasked: bool = False
    allow_old_clients: bool | Literal["client_tools"] | None = None
    allow: list[str] = Field(default_factory=list)
    ask: list[str] = Field(default_factory=list)
    deny: list[str] = Field(default_factory=list)
    judge: PermissionJudgeConfig | None = None


class SandboxSection(_Section):
    """The default confinement of commands, which sessions can change. Paths begin with ``/`` or ``~``."""

    mode: Literal["auto", "require", "off"] = "auto"
    mcp: Literal["auto", "require", "off"] = "off"
    network: Literal["approved", "none", "all"] = "approved"
    hosts: list[str] = Field(default_factory=list)
    write: Paths = Field(default_factory=list)
    read_only: Paths = Field(default_factory=list)
    hide: Paths = Field(default_factory=list)
    show: Paths = Field(default_factory=list)
    caches: Literal["project", "shared"] = "project"
    mechanisms: list[Literal["bubblewrap", "landlock", "seatbelt"]] | None = None


class RetryConfig(_Section):
    attempts: int | None = Field(default=None, ge=1)
    first_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    longest_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    longest_asked_wait_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    jitter: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class CompactionConfig(_Section):
    enabled: bool | None = None
    clear_results: bool | None = None
    background_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    exhaustion_threshold: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)


class LimitsConfig(_Section):
    """Limits of what a model may ask for, and of the time for asking its server about it; 0 means never."""

    calls_per_answer: int | None = Field(default=None, ge=1, le=2048)
    repeats_before_hint: int = Field(default=3, ge=0)
    repeats_before_question: int = Field(default=5, ge=0)
    repeatable_tools: list[str] = Field(default_factory=list)
    server_question_s: float = Field(default=1.0, ge=0, le=3600)


class BudgetLimitSection(_Section):
    """A limit in US dollars, and one in tokens."""

    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, gt=0)


class BudgetConfig(_Section):
    """The budgets of sessions, of their prompts, and of a day."""

    session: BudgetLimitSection = Field(default_factory=BudgetLimitSection.model_construct)
    prompt: BudgetLimitSection = Field(default_factory=BudgetLimitSection.model_construct)
    day: BudgetLimitSection = Field(default_factory=BudgetLimitSection.model_construct)


class ProjectConfig(_Section):
    """What models are told about projects; ``False`` switches it off for all sessions."""

    brief: bool | None = None
    check_reminder: bool | None = None


class EditsConfig(_Section):
    """What happens after a tool has changed a file."""

    check_syntax: bool = True


class EnvironmentConfig(_Section):
    """The server's data that child processes can read.

    ``passed`` are the names of credentials that they get nevertheless. With ``readable``, all processes of the user
    can read the memory of the server, as debuggers and profilers do.
    """

    passed: list[str] = Field(default_factory=list, alias="pass")
    readable: bool = False


class HooksConfig(_Section):
    """Limits of hooks, and whether those in files run. ``patience_s`` is the former spelling of ``timeout_s``."""

    files: bool = True
    timeout_s: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, validation_alias=AliasChoices("timeout_s", "patience_s")
    )


class ClientsConfig(_Section):
    tool_timeout_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class ServiceConfig(_Section):
    """A service behind a tool.

    ``api_key`` is an entry as in ``env`` of adapters; ``options`` are added to every request.
    """

    base_url: str | None = None
    api_key: str | dict[str, Any] | None = Field(default=None, repr=False)
    options: dict[str, Any] = Field(default_factory=dict[str, Any])


class WebFetchConfig(_Section):
    """Settings of ``web_fetch``. ``allowed_hosts`` are names (with sub-domains), addresses and networks."""

    service: Literal["direct", "jina"] = "direct"
    allow_private: bool = False
    allowed_hosts: list[str] = Field(default_factory=list)
    max_bytes: int = Field(default=5 * 1024 * 1024, ge=1024)
    timeout_s: float = Field(default=30.0, gt=0, allow_inf_nan=False)


class MemoryConfig(_Section):
    enabled: bool = False


class CallToolsConfig(_Section):
    """Scripts that call tools.

    With ``by_default``, the tool for them is also in the default set. With ``unconfined``, scripts also run where
    no sandbox works, and each is asked about.
    """

    by_default: bool = False
    unconfined: bool = False


class ToolsConfig(_Section):
    """Settings of built-in tools; any other table declares a tool, or a group of tools."""

    model_config = ConfigDict(extra="allow")

    offered: str | list[str] | None = None
    web_fetch: WebFetchConfig = Field(default_factory=WebFetchConfig.model_construct)
    call_tools: CallToolsConfig = Field(default_factory=CallToolsConfig.model_construct)
    memory: MemoryConfig = Field(default_factory=MemoryConfig.model_construct)

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

    servers: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]], repr=False)


class LanguageServerConfig(_Section):
    """A language server. ``extensions`` are those of its files, each with the language's id in the protocol.

    ``settings`` answer its questions about its configuration, by section. ``root`` is relative to the root of the
    project. The ``command`` is the name of a program in ``PATH``, or an absolute path.
    """

    command: str | None = Field(default=None, min_length=1)
    args: list[str] = Field(default_factory=list)
    extensions: dict[str, str] = Field(default_factory=dict)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    initialization_options: dict[str, Any] | None = None
    settings: dict[str, Any] = Field(default_factory=dict[str, Any])
    root: str = "."
    timeout_s: float = Field(default=90.0, gt=0, allow_inf_nan=False)
    disabled: bool = False


class LspConfig(_Section):
    """Language servers: common settings, and a table for each server. ``idle_s`` ends a server that is not used."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, LanguageServerConfig]  # pyright: ignore[reportIncompatibleVariableOverride]

    enabled: bool = True
    defaults: bool = True
    warnings: bool = False
    wait_s: float = Field(default=1.0, ge=0, le=60, allow_inf_nan=False)
    idle_s: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    memory_mb: int = Field(default=4096, ge=64)

    @property
    def servers(self) -> dict[str, LanguageServerConfig]:
        """The servers by name."""
        return self.model_extra or {}


class StoreConfig(_Section):
    """The store of sessions: files, or NATS JetStream at ``url`` for many replicas of the server.

    ``shared`` are folders that all hosts have. The rest is checked where it is used.
    """

    url: str | None = None
    name: str = "jumpseat"
    host: str | None = None
    shared: Paths = Field(default_factory=list)
    copies: Literal[1, 3, 5] | None = None
    drain_s: float = Field(default=20.0, ge=0, le=3600, allow_inf_nan=False)
    patience_s: float = Field(default=12.0, ge=2, le=16, allow_inf_nan=False)
    retention_days: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    user: str | None = None
    password_env: str | None = None
    token_env: str | None = None
    credentials: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def login_variables(self) -> list[str]:
        """Return the names of the variables with the login."""
        return [name for name in (self.token_env, self.password_env) if name is not None]


class Config(_Section):
    default_model: str | None = None
    trusted_folders: Paths = Field(default_factory=list)
    adapters: dict[str, AdapterConfig] = Field(default_factory=dict)
    models: dict[str, AliasConfig] = Field(default_factory=dict)
    permissions: PermissionsConfig = Field(default_factory=PermissionsConfig.model_construct)
    store: StoreConfig = Field(default_factory=StoreConfig.model_construct)
    sandbox: SandboxSection = Field(default_factory=SandboxSection.model_construct)
    retry: RetryConfig = Field(default_factory=RetryConfig.model_construct)
    compaction: CompactionConfig = Field(default_factory=CompactionConfig.model_construct)
    limits: LimitsConfig = Field(default_factory=LimitsConfig.model_construct)
    budget: BudgetConfig = Field(default_factory=BudgetConfig.model_construct)
    project: ProjectConfig = Field(default_factory=ProjectConfig.model_construct)
    edits: EditsConfig = Field(default_factory=EditsConfig.model_construct)
    environment: EnvironmentConfig = Field(default_factory=EnvironmentConfig.model_construct)
    hooks: HooksConfig = Field(default_factory=HooksConfig.model_construct)
    clients: ClientsConfig = Field(default_factory=ClientsConfig.model_construct)
    services: dict[Literal["jina", "tavily"], ServiceConfig] = Field(
        default_factory=dict[Literal["jina", "tavily"], ServiceConfig]
    )
    tools: ToolsConfig = Field(default_factory=ToolsConfig.model_construct)
    default_tools: list[str] = Field(default_factory=list)
    agents: AgentsConfig = Field(default_factory=AgentsConfig.model_construct)
    mcp: McpConfig = Field(default_factory=McpConfig.model_construct)
    lsp: LspConfig = Field(default_factory=LspConfig.model_construct)


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
