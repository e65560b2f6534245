"""The entry to declared tools, which loads the modules that read and run them only where there are any.

A session without declared tools, as most are, costs checking whether two folders exist.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumpseat.agent.conversation.attachments import mentions
from jumpseat.agent.session.session import Session
from jumpseat.declared.places import project_folder
from jumpseat.sandbox.session import Sandboxes
from jumpseat.tools.tool import Tool

if TYPE_CHECKING:
    from jumpseat.declared.env import EnvResolver
    from jumpseat.tools.declared.catalogue import ToolCatalogue
    from jumpseat.tools.declared.session_tools import DeclaredTools


class Declarations:
    """The declared tools of one process.

    ``configured`` are the tables of the configuration by name, ``always`` the names of the tools and groups that
    every session has, ``built_in`` the names of the built-in tools; ``env`` of a tool reads from ``environ``.
    """

    def __init__(
        self,
        configured: Mapping[str, Mapping[str, Any]],
        home: Path | None,
        environ: Mapping[str, str],
        *,
        is_trusted: Callable[[Path], bool],
        built_in: Iterable[str] = (),
        always: Iterable[str] = (),
        sandboxes: Sandboxes | None = None,
        of_command: Callable[[str], Mapping[str, str]] | None = None,
    ) -> None:
        """``sandboxes`` confine the commands of the tools; ``of_command`` is as in
        :class:`~jumpseat.declared.env.EnvResolver`.
        """
        self._configured = configured
        self._home = home
        self._environ = environ
        self._is_trusted = is_trusted
        self._built_in = frozenset(built_in)
        self._always = tuple(always)
        self._sandboxes = sandboxes
        self._of_command = of_command

    @cached_property
    def catalogue(self) -> ToolCatalogue:
        """Return the catalogue of all declared tools, and load it if necessary."""
        from jumpseat.tools.declared.catalogue import ToolCatalogue

        return ToolCatalogue(self._configured, self._home, self._is_trusted, self._built_in)

    @cached_property
    def resolver(self) -> EnvResolver:
        """Return the resolver of the values of ``env``."""
        from jumpseat.declared.env import EnvResolver

        return EnvResolver(self._environ, self._of_command)

    @property
    def is_loaded(self) -> bool:
        """Return whether the catalogue has been loaded."""
        return "catalogue" in vars(self)

    def may_exist(self, cwd: Path, names: Collection[str]) -> bool:
        """Return whether a session in ``cwd`` that names the tools ``names`` may have declared tools."""
        if self._configured or self._always or self.is_loaded or not self._built_in.issuperset(names):
            return True
        at_home = self._home is not None and os.path.isdir(os.path.join(self._home, "tools"))
        return at_home or project_folder(cwd, "tools", self._home) is not None

    async def read(self, cwd: Path) -> None:
        """Read the declared tools of sessions in ``cwd``, so that a session has them from its start."""
        if self.may_exist(cwd, ()):
            await self.catalogue.refresh(cwd)

    def source(self, session: Session) -> SessionDeclarations:
        """Return the source of one session's declared tools."""
        return SessionDeclarations(self, session)

    def tools_of(self, session: Session) -> DeclaredTools:
        """Return the declared tools of one session, and load everything they need."""
        from jumpseat.tools.declared.session_tools import DeclaredTools
        from jumpseat.tools.session_sandbox import session_sandbox

        sandbox = session_sandbox(session, self._sandboxes) if self._sandboxes is not None else None
        return DeclaredTools(self.catalogue, self.resolver, self._always, session, sandbox)


class SessionDeclarations:
    """The source of one session's declared tools, which has none before they are looked for."""

    def __init__(self, declarations: Declarations, session: Session) -> None:
        self._declarations = declarations
        self._session = session
        self._tools: DeclaredTools | None = None
        if declarations.is_loaded:
            self._load()

    def tools(self) -> Mapping[str, Tool]:
        return {} if self._tools is None else self._tools.tools()

    async def discover(self, prompt: str) -> None:
        settings = self._session.settings
        requested = (name.removeprefix("custom:") for name in settings.named_tools() if not name.endswith("*"))
        names = {
            *requested,
            *mentions(prompt),
            *self._session.history.mentions,
        } - self._session.clients.tools().keys()
        if self._tools is not None or self._declarations.may_exist(settings.cwd, names):
            await self._load().discover(names, mentions(prompt))

    def instructions(self, offered: Collection[str]) -> list[str]:
        return [] if self._tools is None else self._tools.instructions(offered)

    def omitted_sections(self, offered: Collection[str]) -> Collection[str]:
        return () if self._tools is None else self._tools.omitted_sections(offered)

    def members(self, name: str) -> Collection[str] | None:
        return None if self._tools is None else self._tools.members(name)

    def mention_text(self, name: str, members: list[str]) -> str | None:
        return None if self._tools is None else self._tools.mention_text(name, members)

    async def ready(self) -> None:
        """Return at once: files are read when a session is opened."""

    async def close(self, grace_s: float) -> None:
        if self._tools is not None:
            await self._tools.close(grace_s)

    def _load(self) -> DeclaredTools:
        if self._tools is None:
            self._tools = self._declarations.tools_of(self._session)
        return self._tools
