"""The language servers of one session: which one a file belongs to, and what changes have brought."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec.structs import replace

from jumpseat.agent.session.session import Session
from jumpseat.config import LspConfig
from jumpseat.lsp.catalogue import Found, LanguageServer
from jumpseat.lsp.delta import Diagnostic, most_important
from jumpseat.lsp.open_files import Change
from jumpseat.lsp.server import Limits, Server
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.system.regular_files import repository_root
from jumpseat.tools.findings import Finding
from jumpseat.tools.workspace_files import FileEdit

MOST_TOLD: Final = 5
"""Diagnostics in one result."""

LARGEST_FILE: Final = 2 * 1024 * 1024


class SessionServers:
    """The servers of one session that have been needed; ``found`` are all that there are.

    ``environ`` returns the environment of their processes; without a sandbox, they run in trusted folders only.
    """

    def __init__(
        self,
        session: Session,
        config: LspConfig,
        environ: Callable[[], dict[str, str]],
        is_trusted: Callable[[Path], bool],
        sandboxes: Sandboxes | None,
    ) -> None:
        self.found = Found()
        self._names: Mapping[str, str] = {}
        self._session = session
        self._config = config
        self._environ = environ
        self._is_trusted = is_trusted
        self._sandboxes = sandboxes
        self._servers: dict[tuple[str, Path], Server] = {}

    def running(self) -> bool:
        """Return whether a server answers requests."""
        return any(server.is_running for server in self._servers.values())

    async def server_for(self, path: Path) -> Server | None:
        """Return the server of a file, which may not run yet; ``None`` if there is none."""
        server = self.found.of(path)
        root = None if server is None else await anyio.to_thread.run_sync(self._root_of, path, server)
        if server is None or root is None:
            return None
        key = server.name, root
        if key not in self._servers:
            self._servers[key] = self._make(server, root)
        return self._servers[key]

    def _root_of(self, path: Path, server: LanguageServer) -> Path | None:
        """Return the root of the project of a file, ``None`` for files outside of the session's folders."""
        home = Path.home()
        for folder in self._session.permissions.path_scope.folders():
            real = Path(os.path.realpath(folder))
            above = repository_root(real)
            for root in (real if home.is_relative_to(above) else above, real):
                if path.is_relative_to(root):
                    inner = Path(os.path.normpath(root / server.config.root))
                    return inner if inner.is_relative_to(root) and path.is_relative_to(inner) else root
        return None

    def _make(self, server: LanguageServer, root: Path) -> Server:
        config = self._config
        sandbox = None if self._sandboxes is None else self._sandbox(self._sandboxes, root)
        return Server(
            server,
            root,
            self._session.services.tasks,
            self._environ,
            sandbox,
            Limits(config.idle_s, config.memory_mb << 20, config.warnings),
            needs_sandbox=not self._is_trusted(root),
        )

    def _sandbox(self, sandboxes: Sandboxes, root: Path) -> SessionSandbox:
        """Return the sandbox of a server: as of commands, but without a network, and the project is read-only."""

        def settings() -> SandboxSettings:
            current = sandboxes.defaults.for_session(self._session.settings.options.sandbox_config)
            return replace(current, working_directory=False, write=(), network="none", proxy=None)

        return SessionSandbox(sandboxes, settings, lambda: [root], of_servers=True)

    # --- changes ------------------------------------------------------------------------------------------------

    def note_rename(self, old: str, new: str) -> None:
        """Note that the next changes are those of a rename."""
        self._names = {old: new}

    def take_names(self) -> Mapping[str, str]:
        """Return the new names by the old ones, if the changes that are checked next are those of a rename."""
        names, self._names = self._names, {}
        return names

    async def check(self, edits: Sequence[FileEdit], names: Mapping[str, str]) -> list[Finding]:
        """Show changes to the servers; return what those and earlier ones have brought."""
        changes: list[tuple[Server, Path, Change]] = []
        for edit in edits:
            change = Change(_text(edit.before), _text(edit.after), names)
            if not edit.kept or change.before == change.after:
                continue
            server = await self.server_for(edit.place)
            if server is not None:
                changes.append((server, edit.place, change))
        waiting = dict.fromkeys(server for server, _, _ in changes if not server.is_behind)
        # All at once: after some of the files alone, the server would tell what is wrong with that state.
        for server, place, change in changes:
            server.submit(place, change)
        if waiting:
            with anyio.move_on_after(self._config.wait_s):
                async with anyio.create_task_group() as tasks:
                    for server in waiting:
                        tasks.start_soon(server.wait)
        found = {taken: server for server in [*self._servers.values()] for taken in await server.take()}
        return await anyio.to_thread.run_sync(
            lambda: [
                _finding(path, one, found[path, one].text_of(path))
                for path, one in most_important(found, MOST_TOLD)
            ]
        )

    async def close(self) -> None:
        """End all servers."""
        servers, self._servers = self._servers, {}
        async with anyio.create_task_group() as tasks:
            for server in servers.values():
                tasks.start_soon(server.close)


def findings_of(found: Iterable[tuple[Path, Diagnostic]], texts: Mapping[Path, bytes]) -> list[Finding]:
    """Return the most important diagnostics; ``texts`` are those of files, as far as they are known."""
    return [
        _finding(path, one, texts.get(path, b"").decode("utf-8", "replace"))
        for path, one in most_important(found, MOST_TOLD)
    ]


def _finding(path: Path, found: Diagnostic, text: str) -> Finding:
    line = next(itertools.islice(text.splitlines(), found.line, None), "")
    # Positions count in UTF-16 units.
    before = line.encode("utf-16-le", "surrogatepass")[: 2 * found.character]
    column = len(before.decode("utf-16-le", "replace")) + 1 if line else found.character + 1
    source = " ".join(filter(None, (found.source, found.code)))
    return Finding(path, found.line + 1, column, found.message, source or "language server", line)


def _text(data: bytes | None) -> str | None:
    return None if data is None or len(data) > LARGEST_FILE else data.decode("utf-8", "replace")
