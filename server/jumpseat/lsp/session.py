"""The language servers of one session: which one a file belongs to, and what changes have brought."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec.structs import replace

from jumpseat.agent.session.session import Session
from jumpseat.config import LspConfig
from jumpseat.lsp.catalogue import Found, LanguageServer
from jumpseat.lsp.delta import Diagnostic
from jumpseat.lsp.server import Change, Limits, Server
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.system.regular_files import repository_root
from jumpseat.tools.workspace_files import FileEdit

MOST_TOLD: Final = 5
"""Diagnostics in one result."""

MOST_CHARACTERS: Final = 300
"""Characters of one diagnostic."""

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

    async def notes(self, edits: Sequence[FileEdit]) -> list[str]:
        """Show changes to the servers; return what those and earlier ones have brought, one line each."""
        waiting: list[Server] = []
        for edit in edits:
            change = Change(_text(edit.before), _text(edit.after))
            if not edit.kept or change.before == change.after:
                continue
            server = await self.server_for(edit.place)
            if server is None:
                continue
            if not server.is_behind and server not in waiting:
                waiting.append(server)
            server.submit(edit.place, change)
        if waiting:
            with anyio.move_on_after(self._config.wait_s):
                async with anyio.create_task_group() as tasks:
                    for server in waiting:
                        tasks.start_soon(server.wait)
        return self._lines()

    def _lines(self) -> list[str]:
        found = [
            (path, diagnostic, server) for server in self._servers.values() for path, diagnostic in server.take()
        ]
        found.sort(key=lambda entry: entry[1].severity)
        lines = [self._line(path, diagnostic) for path, diagnostic, _ in found[:MOST_TOLD]]
        return [*lines, f"and {len(found) - MOST_TOLD} more"] if len(found) > MOST_TOLD else lines

    def _line(self, path: Path, found: Diagnostic) -> str:
        cwd = Path(os.path.realpath(self._session.settings.cwd))
        name = path.relative_to(cwd) if path.is_relative_to(cwd) else path
        message = " ".join(found.message.split())
        if len(message) > MOST_CHARACTERS:
            message = f"{message[:MOST_CHARACTERS]}..."
        origin = " ".join(filter(None, (found.source, found.code)))
        kind = "error" if found.severity == 1 else "warning"
        return f"{name}:{found.line + 1}: {kind}: {message}{f' [{origin}]' if origin else ''}"

    async def close(self) -> None:
        """End all servers."""
        servers, self._servers = self._servers, {}
        async with anyio.create_task_group() as tasks:
            for server in servers.values():
                tasks.start_soon(server.close)


def _text(data: bytes | None) -> str | None:
    return None if data is None or len(data) > LARGEST_FILE else data.decode("utf-8", "replace")
