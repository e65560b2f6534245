"""The composition root, which creates all parts of the server and connects them."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.providers import environment_providers
from jumpseat.agent.observation import Observers
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.secrets import Secrets
from jumpseat.agent.session.hooks import HOOK_TIMEOUT_S, HookCommands, NoHookCommands
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
    ConfiguredBudgets,
    compaction_policy,
    given_settings,
    open_gate,
    permission_policy,
    plugin_folders,
    sandbox_settings,
)
from jumpseat.doors import Doors
from jumpseat.errors import UnknownToolError
from jumpseat.lsp.source import LanguageServers
from jumpseat.mcp.session_hosts import McpHosts, secret_variables
from jumpseat.mcp.tokens import LoginTokens
from jumpseat.observability.log_setup import mask_logs
from jumpseat.observability.observability import Observability
from jumpseat.observability.server_state import ServerState
from jumpseat.options import Options
from jumpseat.sandbox.session import Sandboxes
from jumpseat.services.web import ConfiguredWeb
from jumpseat.sessions.context import Server
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
from jumpseat.tools.builtin import BUILTIN_NAMES, SessionToolSources, builtin_tools
from jumpseat.tools.declared.declarations import Declarations
from jumpseat.tools.filters import SET_NAMES, SETS, configured_of, unknown_tools
from jumpseat.tools.memories import memory_section
from jumpseat.tools.session_tool import Resources
from jumpseat.tools.tool import TOOL_SEARCH, SourceMaker
from jumpseat_protocol.version import __version__

if TYPE_CHECKING:
    from jumpseat.agent.interfaces import Brief
    from jumpseat.agent.settings import SessionSettings
    from jumpseat.cluster.cluster import Cluster
    from jumpseat.sessions.persisted_events import PersistedReads
    from jumpseat.store.plugins.installed_plugins import InstalledPlugins
    from jumpseat.store.project.agents import AgentLibrary
    from jumpseat.tools.findings import Checker
    from jumpseat.tools.orchestrator.environment import Environment
    from jumpseat.tools.orchestrator.session_tools import ToolOrchestrator
    from jumpseat.tools.workspace_files import FileEdit

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


class App:
    """The server behind all connections."""

    def __init__(self, options: Options, tasks: TaskGroup, cluster: Cluster | None = None) -> None:
        self._cluster = cluster
        self.home = home = home_folder(options.environ)
        self._agents: AgentLibrary | None = None
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
        self.state = ServerState(
            home,
            lambda: self.registry.live_sessions(),
            lambda: len(self.doors.connections),
            lambda: self.ending or self.stopping,
            cluster,
        )
        store = cluster.replica.store if cluster is not None else SessionStore(home, tasks)
        self.observability = Observability(options, home, self.secrets, self.state.gauges(), store.model_calls)
        self.models.observers = self.observability.observers
        if cluster is not None:
            self.user_settings, approvals = cluster.user_settings, cluster.approvals
        else:
            self.user_settings, approvals = settings_in(home), approvals_in(home)
        user_home = options.environ.get("HOME")
        self.plugins = PluginFolders(plugin_folders(options.plugin_dirs), home, lambda: self.installed_plugins)
        self.instructions = InstructionFiles(home, options.environ)
        self.skills = SkillLibrary(home, Path(user_home) if user_home else Path.home(), self.plugins)
        self.web = ConfiguredWeb(config, options.environ, children.variables_for)
        children.withhold(self.web.key_variables)
        # Whoever has the login of the store reads and writes all sessions.
        children.withhold(config.store.login_variables)
        children.withhold(lambda: secret_variables(config.mcp.servers))
        memories = self._memories = MemoryStore(home, by_default=config.tools.memory.enabled)
        mask_logs(self.secrets)
        self._on_stdio = options.on_stdio
        self.gate, made_token = open_gate(options.tcp, home)
        self.ending = False
        self._tasks = tasks
        self._stopping = anyio.Event()
        sandboxes = self._sandboxes = Sandboxes(
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
        self._chosen_by_argument = options.tools is not None
        self._chosen_tools = options.tools if options.tools is not None else config.tools.names
        configured = ConfiguredBudgets(
            config.budget, home, None if cluster is None else cluster.documents.day_usage, tasks
        )
        outside = configured.of_completions()
        budgets = BudgetKeeper(configured.of_session, outside)
        observers = Observers((*self.observability.observers.observers, budgets))
        if outside is not None:
            self.models.observers, self.models.admit = observers, outside.admit
        services = SessionServices(
            tasks=tasks,
            models=self.models,
            make_tools=self._make_tools,
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
            hook_commands=self._make_hook_commands,
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
        self.registry = SessionRegistry(
            store,
            sandboxes,
            lambda: self._environment,
            services,
            lambda kind, session_id, metadata, token: self.doors.announce(kind, session_id, metadata, token),
        )
        self._server = Server(self.registry, self.models, self, self.mcp)
        self.doors = Doors(options, self._server, tasks, self.stop, made_token=made_token, cluster=cluster)

    @cached_property
    def _environment(self) -> Environment:
        # Imported with the first session.
        from jumpseat.tools.orchestrator.environment import (
            CALLS_PER_ANSWER,
            Environment,
            RepeatLimits,
            ScriptSettings,
        )

        config, chosen = self._config, self._chosen_tools
        resources = Resources(
            database=lambda session: self.registry.storage(session).database,
            read_plan=lambda session: self.registry.storage(session).plan.read(),
            skills=self.skills.for_session,
            find_agents=lambda settings: self.agents.search(settings),
            memories=self._memories,
        )
        return Environment(
            builtin_tools,
            self._children.variables,
            sources=(
                SourceMaker(self.mcp.source),
                SourceMaker(partial(SessionToolSources, resources), BUILTIN_NAMES),
                SourceMaker(self.declarations.source),
                SourceMaker(self.lsp.source, frozenset({"lsp"})),
            ),
            web=self.web,
            client_tool_s=config.clients.tool_timeout_s,
            sandboxes=self._sandboxes,
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

    def _make_tools(self, session: Session) -> ToolOrchestrator:
        # Imported with the first session.
        from jumpseat.tools.orchestrator.session_tools import ToolOrchestrator

        return ToolOrchestrator(session, self._environment)

    def _make_hook_commands(self, session: Session) -> HookCommands:
        if not self.runs_hook_files:
            return NoHookCommands()
        # Imported with the first session.
        from jumpseat.tools.hooks.session import SessionHookCommands

        return SessionHookCommands(session, self.hook_files, self._children.variables, self._sandboxes)

    async def _run_command(self, session: Session, command: QueuedCommand) -> bool:
        # Imported here: few sessions run commands.
        from jumpseat.commands.running import run_queued

        return await run_queued(self._server, session, command)

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
        chosen = self._chosen_tools or ()
        known = {*BUILTIN_NAMES, "lsp", TOOL_SEARCH, *SET_NAMES, *SETS}
        if not unknown_tools(chosen, known):
            return
        # Imports what the files and packages of the user declare.
        declared = await self.declarations.catalogue.read_all(Path.cwd())
        for problem in unknown_tools(chosen, known | {entry.name for entry in declared}).values():
            where = "--tools" if self._chosen_by_argument else f"{self.home / 'config.toml'}: tools.offered"
            raise UnknownToolError(f"{where}: {problem}")

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
            self.doors.close()
            self._descendants.close()


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
