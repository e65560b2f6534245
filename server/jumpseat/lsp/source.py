"""The language servers of all sessions; a session gets some with the first change of a file that one understands.

This module imports nothing heavy: every process starts with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from jumpseat.agent.session.session import Session
from jumpseat.agent.skills import Plugins
from jumpseat.config import LspConfig
from jumpseat.sandbox.session import Sandboxes
from jumpseat.system.programs import OwnPrograms
from jumpseat.tools.tool import Tool
from jumpseat.tools.workspace_files import FileEdit, Files

if TYPE_CHECKING:
    from jumpseat.lsp.catalogue import Found
    from jumpseat.lsp.reported import Reports
    from jumpseat.lsp.session import SessionServers
    from jumpseat.tools.findings import Finding, Reporter

log = logging.getLogger(__name__)


class LanguageServers:
    """The parts that the language servers of all sessions share.

    ``config`` is the section of ``config.toml`` in the folder ``home``, ``environ`` returns the environment of the
    child processes of a session, and ``is_trusted`` decides which folders may define servers.
    """

    def __init__(
        self,
        config: LspConfig,
        home: Path,
        environ: Callable[[str], dict[str, str]],
        plugins: Plugins,
        is_trusted: Callable[[Path], bool],
        sandboxes: Sandboxes | None,
    ) -> None:
        self.config = config
        self.home = home
        self.environ = environ
        self.plugins = plugins
        self.is_trusted = is_trusted
        self.sandboxes = sandboxes
        # Weak references, because a session that fails to open is never closed.
        self._sources = WeakValueDictionary[str, LspSource]()

    def source(self, session: Session) -> LspSource:
        """Return the servers of a session that is being opened; a sub-agent shares those of its session."""
        if session.identity is not None and (shared := self._sources.get(session.id)) is not None:
            return shared
        source = self._sources[session.id] = LspSource(self, session)
        return source

    def get(self, session: Session) -> LspSource:
        """Return the servers of a live session."""
        return self._sources[session.id]


class LspSource:
    """The language servers of one session, and their tools. Implements ``ToolSource`` and ``Checker``."""

    def __init__(self, shared: LanguageServers, session: Session) -> None:
        self._shared = shared
        self._session = session
        self._found: Found | None = None
        self._project: Path | None = None
        self._tool: Tool | None = None
        self._servers: SessionServers | None = None
        self._reports: Reports | None = None
        # Made with the first change of a file.
        self._lock: anyio.Lock | None = None

    def tools(self) -> Mapping[str, Tool]:
        # Once it is offered, it stays: providers cache the tools of a request.
        is_usable = self._shared.config.servers or (self._servers and self._servers.running())
        if self._tool is None and self._shared.config.enabled and is_usable:
            from jumpseat.lsp.tools import LspTool

            self._tool = LspTool(self._session, self._needed)
        return {} if self._tool is None else {self._tool.name: self._tool}

    async def ready(self) -> None:
        """Return at once: no turn waits for a server."""

    async def check(self, edits: Sequence[FileEdit]) -> Sequence[Finding]:
        """See :class:`jumpseat.tools.findings.Checker`."""
        if not self._shared.config.enabled:
            return []
        names: Mapping[str, str] = {} if self._servers is None else self._servers.take_names()
        reported: list[Finding] = []
        if self._reports is not None:
            from jumpseat.lsp.session import findings_of

            covered = [edit for edit in edits if self._reports.covers(edit)]
            texts = {edit.place: edit.after or b"" for edit in covered}
            edits = [edit for edit in edits if edit not in covered]
            reported = findings_of(await self._reports.check(covered, names), texts)
        return [*reported, *await self._checked(edits, names)]

    async def _checked(self, edits: Sequence[FileEdit], names: Mapping[str, str]) -> Sequence[Finding]:
        """Return what our own servers say about changes."""
        if not edits and self._servers is None:
            return []
        found = await self.find()
        if self._servers is None and not any(found.of(edit.place) for edit in edits):
            return []
        return await (await self._needed()).check(edits, names)

    async def begin(self, paths: Sequence[Path], reporter: Reporter) -> None:
        """See :class:`jumpseat.tools.findings.Checker`."""
        config = self._shared.config
        if not config.enabled:
            return
        if self._reports is None:
            # Imported with the first change in a session whose client has diagnostics.
            from jumpseat.lsp.reported import Reports

            self._reports = Reports(config.wait_s, warnings=config.warnings)
        await self._reports.begin(paths, reporter)

    async def prepare(self, path: Path, files: Files) -> None:
        """Do nothing: no server is started for a file that is only read."""

    async def find(self) -> Found:
        """Return the servers that are configured or installed."""
        lock = self._lock = self._lock or anyio.Lock()
        async with lock:
            if self._found is None:
                self._found = await anyio.to_thread.run_sync(self._look)
                for problem in self._found.problems:
                    log.warning("session %s: %s", self._session.id, problem)
            return self._found

    async def _needed(self) -> SessionServers:
        found = await self.find()
        if self._servers is None:
            # Imported with the first change of a file that a server understands.
            from jumpseat.lsp.session import SessionServers

            shared = self._shared
            environ = partial(shared.environ, self._session.id)
            self._servers = SessionServers(
                self._session, shared.config, environ, shared.is_trusted, shared.sandboxes
            )
        self._servers.found = found
        return self._servers

    def _look(self) -> Found:
        from jumpseat.lsp.catalogue import Sources, find_servers

        shared, settings = self._shared, self._session.settings
        environ, project = shared.environ(self._session.id), self._project or settings.cwd
        programs = OwnPrograms(self._session.permissions.path_scope.untrusted)
        return find_servers(
            Sources(
                shared.config.servers,
                shared.home,
                project if shared.is_trusted(project) else None,
                shared.plugins.read_all(settings),
                lambda name: programs.find(name, environ),
                environ,
                defaults=shared.config.defaults,
            )
        )

    async def initialize(self, project: Path | None = None, *, force: bool = False) -> None:
        """Read the configuration again, if it is used, or that of ``project``; with ``force``, end all servers."""
        if not self._shared.config.enabled or (project is None and self._found is None):
            return
        self._project = project or self._project
        self._found = None
        found = await self.find()
        if self._servers is not None:
            if force:
                await self._servers.close()
            self._servers.found = found

    async def close(self, grace_s: float) -> None:
        if self._servers is not None and self._session.identity is None:
            await self._servers.close()
