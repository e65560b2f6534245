"""The composition root, which creates all parts of the server and connects them."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import asdict

from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.providers import environment_providers
from jumpseat.agent.client import Client
from jumpseat.agent.clock import SystemClock
from jumpseat.agent.observation import Observers
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.secrets import Secrets
from jumpseat.agent.session.hooks import HOOK_TIMEOUT_S, NoHookCommands
from jumpseat.agent.session.limits import BudgetKeeper
from jumpseat.agent.session.queue_items import Prompt, QueuedCommand
from jumpseat.agent.session.session import Session, SessionServices
from jumpseat.agent.session.sub_agents import AgentLimits
from jumpseat.config import (
    Config,
    home_folder,
    load_config,
)
from jumpseat.configured import (
    compaction_policy,
    given_settings,
    open_gate,
    permission_policy,
    plugin_folders,
    sandbox_settings,
)
from jumpseat.errors import UnknownToolError
from jumpseat.lsp.source import LanguageServers
from jumpseat.mcp.session_hosts import McpHosts, secret_variables
from jumpseat.mcp.tokens import LoginTokens
from jumpseat.observability.log_setup import mask_logs
from jumpseat.observability.observability import Observability
from jumpseat.observability.settings import Gauge
from jumpseat.options import Options
from jumpseat.rpc.connection import Connection
from jumpseat.rpc.routes import IgnoredMembers, find_route
from jumpseat.rpc.transport import HEADERS, LINES, Framing, Wire
from jumpseat.sandbox.session import Sandboxes
from jumpseat.services.web import ConfiguredWeb
from jumpseat.sessions.access import EVERYTHING, Access
from jumpseat.sessions.context import Context, Server
from jumpseat.sessions.idle import Activity, activity_of
from jumpseat.sessions.registry import SessionRegistry
from jumpseat.store.plugins.plugin_folders import PluginFolders
from jumpseat.store.project.hook_files import HookFiles
from jumpseat.store.project.instructions import InstructionFiles
from jumpseat.store.project.skills import SkillLibrary
from jumpseat.store.session.sessions import SessionStore
from jumpseat.store.user.accounts import Accounts
from jumpseat.store.user.location_approvals import approvals_in
from jumpseat.store.user.mcp_config import McpConfigFile, McpTokenFile
from jumpseat.store.user.memories import MemoryStore
from jumpseat.store.user.private_file import PrivateFile
from jumpseat.store.user.provider_keys import ProviderKeys
from jumpseat.store.user.settings import settings_in
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat.system.child_environment import OWN, ChildEnvironment
from jumpseat.system.descendants import Descendants
from jumpseat.system.log_fields import fields
from jumpseat.system.private_files import restrict_contents, restrict_home
from jumpseat.system.process_memory import protect_memory
from jumpseat.tools.builtin import BUILTIN_NAMES, BUILTIN_TOOLS, session_sources
from jumpseat.tools.declared.declarations import Declarations
from jumpseat.tools.filters import SET_NAMES, SETS, configured_of, unknown_tools
from jumpseat.tools.hooks.session import SessionHookCommands
from jumpseat.tools.memories import memory_section
from jumpseat.tools.orchestrator.environment import CALLS_PER_ANSWER, Environment, RepeatLimits, ScriptSettings
from jumpseat.tools.orchestrator.session_tools import ToolOrchestrator
from jumpseat.tools.session_tool import Resources
from jumpseat.tools.tool import TOOL_SEARCH, SourceMaker
from jumpseat.tools.workspace_files import FileEdit
from jumpseat_protocol.events import SessionWarning
from jumpseat_protocol.version import __version__

if TYPE_CHECKING:
    from jumpseat.acp.connection import AcpConnection
    from jumpseat.acp.remote.http import HttpConnections
    from jumpseat.acp.replicas.owner import OwnerService
    from jumpseat.agent.interfaces import Brief
    from jumpseat.agent.session.budget import DaySum, SessionBudget
    from jumpseat.agent.settings import SessionSettings
    from jumpseat.ahp.connection import AhpConnection
    from jumpseat.ahp.live.door import Door
    from jumpseat.ahp.replicas.door import ClusterDoor
    from jumpseat.cluster.cluster import Cluster
    from jumpseat.network.http_door import HttpDoor
    from jumpseat.network.listener import Newcomer
    from jumpseat.sessions.persisted_events import PersistedReads
    from jumpseat.store.plugins.installed_plugins import InstalledPlugins
    from jumpseat.store.project.agents import AgentLibrary
    from jumpseat.store.user.page_access import PageAccess
    from jumpseat.tools.findings import Checker

log = logging.getLogger(__name__)

# The name of the editors' door between replicas: see :mod:`jumpseat.acp.replicas.owner`.
ACP_DOOR: Final = "acp"
# Time-out of closing sessions and their children; the process exits after it in any case.
CLOSE_S: Final = 0.3
# Part of CLOSE_S that commands get to exit by themselves.
GRACE_S: Final = 0.1
# Time that the client gets to disconnect after `runtime.shutdown`.
DISCONNECT_S: Final = 0.3
# Interval at which the connections of revoked tokens are closed.
REVOCATION_CHECK_S: Final = 1.0
# With less space on the disk of the home folder, a server is not ready for further clients.
LEAST_FREE_BYTES: Final = 16 << 20
# Folders in the home folder that only the server writes to.
WRITTEN: Final = ("session-state", "memories", "quarantine")


class AnyConnection(Protocol):
    """A connection of any protocol."""

    access: Access | None

    @property
    def wire(self) -> Wire: ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...

    def announce(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the client of a change in the life of a session, if the client sees sessions of the token."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class ClientConnection(AnyConnection, Client, Protocol):
    """A connection that is itself the client of sessions."""


class App:
    """The server behind all connections."""

    def __init__(self, options: Options, tasks: TaskGroup, cluster: Cluster | None = None) -> None:
        self._cluster = cluster
        self.home = home = home_folder(options.environ)
        self._agents: AgentLibrary | None = None
        self._day_sum: DaySum | None = None
        self._installed_plugins: InstalledPlugins | None = None
        self._persisted_reads: PersistedReads | None = None
        for folder in restrict_home(home, WRITTEN):
            tasks.start_soon(partial(anyio.to_thread.run_sync, abandon_on_cancel=True), restrict_contents, folder)
        config = self._config = load_config(home, environment_providers())
        self._log_start(options, config)
        self.protocol = options.protocol
        self.secrets = Secrets()
        self.trust = TrustedFolders(home, config.trusted_folders)
        self._descendants = Descendants()
        children = self._children = ChildEnvironment(
            options.whole_environ,
            passed=config.environment.passed,
            values=(options.auth_token,),
        )
        self.accounts = Accounts(home, self.secrets.add)
        self.keys = ProviderKeys(home, self.secrets.add)
        self.models = Models(
            config,
            options,
            home,
            self.secrets,
            tasks=tasks,
            is_trusted=self.trust.is_trusted,
            child_environment=children,
            config_file=home / "config.toml",
            logins=self.accounts,
            keys=self.keys,
        )
        self.observability = Observability(options, home, self.secrets, self.gauges())
        self.models.observers = self.observability.observers
        if cluster is not None:
            self.user_settings, approvals = cluster.user_settings, cluster.approvals
        else:
            self.user_settings, approvals = settings_in(home), approvals_in(home)
        store = cluster.replica.store if cluster is not None else SessionStore(home, tasks)
        user_home = options.environ.get("HOME")
        self.plugins = PluginFolders(plugin_folders(options.plugin_dirs), home, lambda: self.installed_plugins)
        self.instructions = InstructionFiles(home, options.environ)
        self.skills = SkillLibrary(home, Path(user_home) if user_home else Path.home(), self.plugins)
        self.web = ConfiguredWeb(config, options.environ, children.variables_for)
        children.withhold(self.web.key_variables)
        # Whoever has the login of the store reads and writes all sessions.
        children.withhold(config.store.login_variables)
        children.withhold(lambda: secret_variables(config.mcp.servers))
        memories = MemoryStore(home, by_default=config.tools.memory.enabled)
        mask_logs(self.secrets)
        self.connections: set[AnyConnection] = set()
        self._ignored_members = IgnoredMembers()
        self._acp, self._speaks_ahp = options.acp, options.ahp
        self._acp_http: HttpConnections | None = None
        self._ahp: Door | None = None
        self._cluster_door: ClusterDoor | None = None
        self._guest_editors: dict[Connection, OwnerService] = {}
        self._on_stdio = options.on_stdio
        self._stdio_client: AnyConnection | None = None
        self.gate, self.made_token = open_gate(options.tcp, home)
        self.ending = False
        self._tasks = tasks
        self._stopping = anyio.Event()
        sandboxes = Sandboxes(
            sandbox_settings(config.sandbox),
            home,
            children.variables(),
            self.web.connect,
            lambda name: PrivateFile(home / "command-times" / f"{name}.json"),
        )
        self.declarations = Declarations(
            config.tools.declared,
            home,
            options.whole_environ,
            is_trusted=self.trust.is_trusted,
            built_in=BUILTIN_NAMES,
            always=config.default_tools,
            sandboxes=sandboxes,
            of_command=children.variables_for,
        )
        self.hook_files = HookFiles(home, self.plugins, self.trust.is_trusted)
        self.runs_hook_files = config.hooks.files
        self.mcp_config = McpConfigFile(home)
        self.mcp = McpHosts(
            # Servers inherit a few of these only, but their configuration can name any.
            {name: value for name, value in options.whole_environ.items() if name not in OWN},
            config.mcp.servers,
            self.mcp_config,
            trusted=self.trust.is_trusted,
            reserved=BUILTIN_NAMES,
            logins=LoginTokens(McpTokenFile(home)),
            plugins=self.plugins,
            sandboxes=sandboxes,
            descendants=self._descendants,
            home=home,
            github=self.models.copilot,
            github_by_default=config.mcp.github,
        )
        self.lsp = LanguageServers(
            config.lsp,
            home,
            lambda session_id: self._descendants.marked(children.variables(), session_id),
            self.plugins,
            self.trust.is_trusted,
            sandboxes,
        )
        if not config.environment.readable:
            protect_memory(children.credentials())
        chosen = options.tools if options.tools is not None else config.tools.names
        self._chosen_tools = chosen or (), options.tools is not None
        environment = Environment(
            BUILTIN_TOOLS,
            children.variables,
            sources=(
                SourceMaker(self.mcp.source),
                *session_sources(
                    Resources(
                        database=lambda session: self.registry.storage(session).database,
                        read_plan=lambda session: self.registry.storage(session).plan.read(),
                        skills=self.skills.for_session,
                        find_agents=lambda settings: self.agents.search(settings),
                        memories=memories,
                    )
                ),
                SourceMaker(self.declarations.source),
                SourceMaker(self.lsp.source, frozenset({"lsp"})),
            ),
            web=self.web,
            client_tool_s=config.clients.tool_timeout_s,
            sandboxes=sandboxes,
            calls_per_answer=config.limits.calls_per_answer or CALLS_PER_ANSWER,
            repeats=RepeatLimits(
                config.limits.repeats_before_hint,
                config.limits.repeats_before_question,
                frozenset(config.limits.repeatable_tools),
            ),
            descendants=self._descendants,
            record_changes=self._record_changes,
            checkers=(
                *((_syntax_checker,) if config.edits.check_syntax else ()),
                *((self.lsp.get,) if config.lsp.enabled else ()),
            ),
            reserved=BUILTIN_NAMES,
            tool_set=None if chosen is None else configured_of(chosen),
            scripts=ScriptSettings(config.tools.call_tools.by_default, config.tools.call_tools.unconfined),
        )
        outside = self._budget_of_completions()
        budgets = BudgetKeeper(self._make_budget, outside)
        observers = Observers((*self.observability.observers.observers, budgets))
        if outside is not None:
            self.models.observers, self.models.admit = observers, outside.admit
        services = SessionServices(
            tasks=tasks,
            models=self.models,
            make_tools=lambda session: ToolOrchestrator(session, environment),
            read_instructions=lambda settings: "\n\n".join(
                filter(None, (self.instructions.read(settings), memory_section(memories, settings)))
            ),
            run_prompt=_run_prompt,
            run_command=self._run_command,
            retry=RetryPolicy(**given_settings(config.retry)),
            allow_unasked=options.allow_unasked or config.permissions.allow_unasked,
            allow_old_clients=options.allow_old_clients
            if config.permissions.allow_old_clients is None
            else config.permissions.allow_old_clients,
            hook_timeout_s=config.hooks.timeout_s or HOOK_TIMEOUT_S,
            hook_commands=lambda session: (
                SessionHookCommands(session, self.hook_files, children.variables, sandboxes)
                if self.runs_hook_files
                else NoHookCommands()
            ),
            secrets=self.secrets,
            policy=permission_policy(config, home, self.trust, approvals),
            compaction=compaction_policy(config.compaction),
            skills=self.skills.for_session,
            observers=observers,
            find_budget=budgets.find,
            read_brief=_read_brief,
            describes_projects=config.project.brief,
            reminds_of_checks=config.project.check_reminder,
            agent_limits=AgentLimits(**given_settings(config.agents)),
        )
        self.registry = SessionRegistry(store, environment, services, self.announce)

    async def _run_command(self, session: Session, command: QueuedCommand) -> bool:
        # Imported here: few sessions run commands.
        from jumpseat.commands.running import run_queued

        return await run_queued(Server(self.registry, self.models, self, self.mcp), session, command)

    def _make_budget(self, session: Session) -> SessionBudget | None:
        config = self._config.budget
        if session.settings.options.budget is None and not config.model_fields_set:
            return None
        # Imported here: few sessions have budgets.
        from jumpseat.agent.session.budget import SessionBudget, budgets_of

        default = budgets_of(config.session, config.prompt, config.day)
        return SessionBudget(
            lambda: default.overridden_by(session.settings.options.budget),
            self.day_sum,
            session.metrics.total().values(),
            lambda text: session.emit(SessionWarning(warning_type="budget", message=text)),
        )

    def _budget_of_completions(self) -> SessionBudget | None:
        """Return the budget of model calls outside of sessions: only that of the day concerns them."""
        config = self._config.budget
        if not config.day.model_fields_set:
            return None
        from jumpseat.agent.session.budget import SessionBudget, budgets_of

        budgets = budgets_of(None, None, config.day)
        return SessionBudget(lambda: budgets, self.day_sum, (), log.warning)

    @property
    def day_sum(self) -> DaySum:
        """The usage of the day, for budgets."""
        if self._day_sum is None:
            from jumpseat.agent.session.budget import DaySum
            from jumpseat.store.user.day_usage import DayUsage, file_in

            document = file_in(self.home) if self._cluster is None else self._cluster.documents.day_usage
            self._day_sum = DaySum(DayUsage(document, SystemClock()), self._tasks)
        return self._day_sum

    @property
    def agents(self) -> AgentLibrary:
        """The custom agents in files."""
        if self._agents is None:
            from jumpseat.store.project.agents import AgentLibrary

            self._agents = AgentLibrary(self.home, self.plugins, self.trust.is_trusted)
        return self._agents

    def _log_start(self, options: Options, config: Config) -> None:
        tcp = options.tcp
        on_stdio = "acp" if options.acp else "ahp" if options.ahp else "stdio"
        transport = "tcp" if not options.on_stdio else on_stdio
        port = None if tcp is None else tcp.port or None
        where = fields(
            version=__version__,
            pid=os.getpid(),
            home=str(self.home),
            transport=transport,
            host=None if tcp is None else tcp.host,
            port=port,
            tls=None if tcp is None else tcp.tls is not None,
            sandbox=config.sandbox.mode,
        )
        log.info("jumpseat starts", extra=where)

    async def check_tools(self) -> None:
        """Check the names of the tools that are for sessions whose clients choose none.

        Raises:
            UnknownToolError: an argument, or the configuration, has the name of no tool.
        """
        chosen, of_arguments = self._chosen_tools
        known = {*BUILTIN_NAMES, "lsp", TOOL_SEARCH, *SET_NAMES, *SETS}
        if not unknown_tools(chosen, known):
            return
        # Imports what the files and packages of the user declare.
        declared = await self.declarations.catalogue.read_all(Path.cwd())
        for problem in unknown_tools(chosen, known | {entry.name for entry in declared}).values():
            where = "--tools" if of_arguments else f"{self.home / 'config.toml'}: tools.offered"
            raise UnknownToolError(f"{where}: {problem}")

    def connect_stdio(self) -> Wire:
        """Open the connection of a process on stdio; the caller connects its wire to a transport."""
        if self._speaks_ahp:
            client = self.connect_ahp(EVERYTHING, LINES)
        else:
            client = self.connect_acp() if self._acp else self.connect()
        self._stdio_client = client
        return client.wire

    @property
    def pages(self) -> PageAccess | None:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        return self.gate.pages

    def connect(self, peer: str | None = None, framing: Framing = HEADERS) -> Connection:
        """Open a new connection; the caller connects its wire to a transport. ``peer`` is a TCP address."""
        connection = self.new_connection(self._handle_disconnect, peer, framing)
        context = self.context_of(connection)
        connection.serve(
            partial(self.find, context)
            if self._cluster is None
            else self._cluster.clients.route(context, connection),
            lambda session_id, question: self.registry.answers(connection, session_id, question),
        )
        self.connections.add(connection)
        return connection

    def connect_tcp(self, peer: str) -> Newcomer:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        # Imported here: servers on stdio listen to nobody.
        from jumpseat.network.first_byte import TcpNewcomer

        return TcpNewcomer(
            lambda: self.connect(peer),
            lambda: self.connect_acp(self.gate.initial_access, peer=peer),
        )

    def admit(
        self, peer: str, path: str, token: str | None, *, has_origin: bool
    ) -> Callable[[Framing], Newcomer] | None:
        """See :class:`jumpseat.network.serving.TcpServer`.

        Windows of VS Code and pages send origins: they need a token, even if programs of the same user do not.
        """
        from jumpseat.network.site import ACP_PATH, AHP_PATH

        access = self._access_at_once(token, has_origin=has_origin)
        if access is None:
            return None
        connect = {AHP_PATH: self.connect_ahp, ACP_PATH: self.connect_acp}[path]
        return partial(connect, access, peer=peer)

    def admit_http(self, peer: str, path: str, token: str | None, *, has_origin: bool) -> HttpDoor | None:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        from jumpseat.network.site import ACP_PATH

        access = self._access_at_once(token, has_origin=has_origin)
        if access is None or path != ACP_PATH:
            return None
        if self._acp_http is None:
            # Imported here, because most servers have no such client.
            from jumpseat.acp.remote.http import HttpConnections

            self._acp_http = HttpConnections(self.connect_acp)
        return self._acp_http.of(access, peer)

    @property
    def open_sockets(self) -> int:
        """See :class:`jumpseat.network.serving.TcpServer`."""
        return len(self.connections) + (self._acp_http.streams if self._acp_http is not None else 0)

    def _access_at_once(self, token: str | None, *, has_origin: bool) -> Access | None:
        """Return the access of a client whose token comes with its first request."""
        access = self.gate.access_of(token)
        return None if has_origin and not self.gate.knows(token) else access

    def connect_ahp(self, access: Access, framing: Framing, peer: str | None = None) -> AhpConnection:
        # Imported here, because most servers have no such clients.
        from jumpseat.ahp.connection import AhpConnection
        from jumpseat.ahp.live.door import Door

        if self._ahp is None:
            parts = Server(self.registry, self.models, self, self.mcp)
            self._ahp = Door(parts, self._tasks) if self._cluster is None else self._door_of(self._cluster)
        connection = AhpConnection(self._ahp, access, self._tasks, self.secrets, self._forget, framing, peer)
        self.connections.add(connection)
        return connection

    def _door_of(self, cluster: Cluster) -> ClusterDoor:
        """Return the door of this replica, which also serves those of other replicas."""
        from jumpseat.ahp.replicas.door import ClusterDoor

        if self._cluster_door is None:
            parts = Server(self.registry, self.models, self, self.mcp)
            self._cluster_door = ClusterDoor(parts, self._tasks, cluster)
        return self._cluster_door

    def find_of_door(
        self, connection: Connection, *, relayed: bool
    ) -> Callable[[str], Callable[[Any], Any] | None]:
        """See :class:`jumpseat.cluster.relay.clients.Server`."""
        assert self._cluster is not None, "only replicas relay"
        find = partial(self.find, self.context_of(connection))
        if connection.door == ACP_DOOR:
            from jumpseat.acp.replicas.owner import OwnerService

            service = self._guest_editors[connection] = OwnerService(
                connection, find, lambda guest: Context(guest, self.registry, self.models, self, self.mcp)
            )
            return service.find
        return self._door_of(self._cluster).serve(connection, find, guest=relayed).find

    def leave_door(self, connection: Connection) -> None:
        """See :class:`jumpseat.cluster.relay.clients.Server`."""
        if (service := self._guest_editors.pop(connection, None)) is not None:
            service.guest.leave()
            self.registry.detach_client(service.guest)
            self.models.connections.release(service.guest)
        elif self._cluster_door is not None:
            self._cluster_door.leave(connection)

    def new_connection(
        self, on_close: Callable[[Connection], None], peer: str | None, framing: Framing = HEADERS
    ) -> Connection:
        """Create a connection that serves nothing yet."""
        return Connection(
            on_close, self._tasks, self.secrets, access=self.gate.initial_access, peer=peer, framing=framing
        )

    def context_of(self, connection: Connection) -> Context:
        """Return the parts of the server for a connection."""
        return Context(connection, self.registry, self.models, self, self.mcp)

    def find(self, ctx: Context, method: str) -> Callable[[Any], Any] | None:
        """Return the function that serves a method on one connection; ``None`` if there is no such method."""
        return find_route(ctx, self._ignored_members, method)

    def connect_acp(
        self, access: Access | None = EVERYTHING, framing: Framing = LINES, peer: str | None = None
    ) -> AcpConnection:
        """Open the connection of an editor. ``access`` is ``None`` if its first request has to bring a token."""
        # Imported here, because most servers have no such client.
        from jumpseat.acp.connection import AcpConnection

        connection = AcpConnection(
            self._handle_disconnect, self._tasks, self.secrets, access=access, framing=framing, peer=peer
        )
        context = Context(connection, self.registry, self.models, self, self.mcp)
        if self._cluster is None:
            connection.serve(context)
        else:
            from jumpseat.acp.replicas.relay import Relay

            cluster = self._cluster
            connection.serve(context, lambda acp: Relay(connection, acp, cluster))
        self.connections.add(connection)
        return connection

    def announce(self, kind: str, session_id: str, metadata: dict[str, str] | None, created_by: str | None) -> None:
        """Notify the connections that see sessions of the token ``created_by``."""
        params: dict[str, Any] = {"type": kind, "sessionId": session_id}
        if metadata is not None:
            params["metadata"] = metadata
        self.announce_here(params, created_by)
        if self._cluster is not None:
            self._cluster.announce(params, created_by)

    def announce_here(self, params: dict[str, Any], created_by: str | None) -> None:
        """Notify the connections of this process about the life of a session."""
        for connection in self.connections:
            connection.announce(params, created_by)

    def _record_changes(
        self, session: Session, prompt: Prompt, edits: Sequence[FileEdit], call_id: str | None
    ) -> None:
        # Imported with the first change of a file.
        from jumpseat.sessions.file_changes import record_changes

        record_changes(self.registry.storage(session).changes, session, prompt, edits, call_id)

    @property
    def installed_plugins(self) -> InstalledPlugins:
        """See :class:`jumpseat.sessions.context.Process`."""
        if self._installed_plugins is None:
            # Imported here: few users have plugins.
            from jumpseat.store.plugins.installed_plugins import InstalledPlugins
            from jumpseat.store.plugins.marketplaces import Marketplaces

            environ = self._children.variables
            self._installed_plugins = InstalledPlugins(self.home, Marketplaces(self.home, environ), environ)
        return self._installed_plugins

    @property
    def persisted_reads(self) -> PersistedReads:
        """See :class:`jumpseat.sessions.context.Process`."""
        if self._persisted_reads is None:
            # Imported here: few clients read logs in pages.
            from jumpseat.sessions.persisted_events import PersistedReads

            self._persisted_reads = PersistedReads()
        return self._persisted_reads

    def gauges(self) -> list[Gauge]:
        """Return the numbers that metrics show."""

        def gauge(name: str, unit: str, description: str, read: Callable[[Activity], int]) -> Gauge:
            return Gauge(name, unit, description, lambda: read(activity_of(self.registry.live_sessions())))

        return [
            gauge("jumpseat.sessions", "{session}", "Live sessions.", lambda now: now.sessions),
            gauge("jumpseat.prompts.running", "{prompt}", "Sessions that run a prompt.", lambda now: now.running),
            gauge("jumpseat.prompts.waiting", "{prompt}", "Prompts in queues.", lambda now: now.waiting),
            gauge("jumpseat.questions.open", "{question}", "Unanswered questions.", lambda now: now.questions),
            Gauge("jumpseat.connections", "{connection}", "Connected clients.", lambda: len(self.connections)),
            *(self._cluster.gauges() if self._cluster is not None else ()),
        ]

    def status(self) -> dict[str, Any]:
        """Return the state of the server as a JSON object."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "home": str(self.home),
            "ready": not self.problems(),
            "connections": len(self.connections),
            **asdict(activity_of(self.registry.live_sessions())),
        }

    def problems(self) -> list[str]:
        """Return the reasons why no new client should be sent to this server."""
        problems = ["the server is ending"] if self.ending or self.stopping else []
        if self._cluster is not None and self._cluster.replica.unavailable:
            problems.append("the store of the cluster cannot be reached")
        if self._cluster is not None and self._cluster.membership.draining:
            problems.append("the server hands its sessions over")
        if not os.access(self.home, os.W_OK):
            problems.append(f"the folder {str(self.home)!r} is not writable")
        elif (free := shutil.disk_usage(self.home).free) < LEAST_FREE_BYTES:
            problems.append(f"only {free >> 20} MiB are free in {str(self.home)!r}")
        return problems

    def stop(self) -> None:
        """End the process."""
        self._stopping.set()

    def stop_soon(self) -> None:
        """End the process when the client disconnects, or after a moment; new requests are refused.

        Exiting at once would race with the response to ``runtime.shutdown``: SDKs report a crash if the process is
        gone before they have read the response.
        """
        self.ending = True
        self._tasks.start_soon(self._stop_later)

    async def _stop_later(self) -> None:
        await anyio.sleep(DISCONNECT_S)
        self.stop()

    @property
    def stopping(self) -> bool:
        """Return whether the process was asked to end."""
        return self._stopping.is_set()

    async def wait_stopped(self) -> None:
        """Wait for the request to end the process."""
        await self._stopping.wait()

    async def close_sessions(self) -> None:
        """Close all sessions, for at most ``CLOSE_S``, and export their telemetry."""
        closed = anyio.Event()
        # By a task of its own: one that waits for a thread cannot be cancelled.
        self._tasks.start_soon(self._close_sessions, closed)
        with anyio.move_on_after(2 * CLOSE_S):
            await closed.wait()
        await self.observability.close()

    async def _close_sessions(self, closed: anyio.Event) -> None:
        with anyio.move_on_after(CLOSE_S):
            await self.registry.close_all(GRACE_S)
        closed.set()

    async def close(self) -> None:
        """Close everything: sessions first, so that their last events reach their clients."""
        with anyio.CancelScope(shield=True):
            if self._cluster is not None and not self._on_stdio:
                await self._cluster.drain()
            await self.close_sessions()
            if self._cluster is not None:
                await self._cluster.close()
            with anyio.move_on_after(CLOSE_S):
                await self.models.connections.close()
                await self.web.aclose()
            for connection in list(self.connections):
                connection.close()
            self._descendants.close()

    async def close_revoked(self) -> None:
        """Close the connections whose tokens are revoked, until cancelled."""
        while self.gate.can_revoke:
            await anyio.sleep(REVOCATION_CHECK_S)
            for connection in list(self.connections):
                access = connection.access
                if access is None or access.name is None:
                    continue
                if not await anyio.to_thread.run_sync(self.gate.is_valid, access):
                    log.warning("closed a connection: its token %r is revoked", access.name)
                    connection.abort()

    def _handle_disconnect(self, connection: ClientConnection) -> None:
        if self._cluster is not None and isinstance(connection, Connection):
            self._cluster.clients.disconnected(connection)
        self.registry.detach_client(connection)
        self.models.connections.release(connection)
        self._forget(connection)

    def _forget(self, connection: AnyConnection) -> None:
        self.connections.discard(connection)
        if connection is self._stdio_client or (self.ending and not self.connections):
            self.stop()


def _syntax_checker(_session: Session) -> Checker:
    # Imported here: many sessions change no file.
    from jumpseat.tools.syntax_checker import SyntaxChecker

    return SyntaxChecker()


def _read_brief(settings: SessionSettings) -> Brief:
    """Describe the project of a session."""
    # Imported with the first prompt.
    from jumpseat.store.project.brief import read_brief

    return read_brief(settings)


async def _run_prompt(session: Session, prompt: Prompt) -> None:
    # A server that has only started needs none of the modules of a turn.
    from jumpseat.agent.turns.loop import run_prompt

    await run_prompt(session, prompt)
