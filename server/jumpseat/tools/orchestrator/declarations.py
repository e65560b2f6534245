"""The way to declared tools: whether there may be any, and the heavy rest only where there are.

Most sessions have none, and pay a look for two folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jumpseat.agent.conversation.mentions import mentions
from jumpseat.agent.session.session import Session
from jumpseat.declared.places import project_folder
from jumpseat.tools.tool import Tool

if TYPE_CHECKING:
    from jumpseat.declared.env import EnvResolver
    from jumpseat.tools.declared.catalogue import Catalogue
    from jumpseat.tools.declared.source import DeclaredTools


FOLDER: Final = "tools"
"""In the home folder, and in ``.jumpseat`` of a project."""


class Declarations:
    """The declared tools of one process.

    ``configured`` are the tables of the configuration by name, ``always`` the names of tools and groups that every
    session has, ``built_in`` those of the built-in tools, ``environ`` is where ``env`` finds variables.
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
    ) -> None:
        self._configured = configured
        self._home = home
        self._environ = environ
        self._is_trusted = is_trusted
        self._built_in = frozenset(built_in)
        self.always = tuple(always)

    @cached_property
    def catalogue(self) -> Catalogue:
        """All declared tools."""
        from jumpseat.tools.declared.catalogue import Catalogue

        return Catalogue(self._configured, self._home, self._is_trusted, self._built_in)

    @cached_property
    def resolver(self) -> EnvResolver:
        """Finds the values of ``env``."""
        from jumpseat.declared.env import EnvResolver

        return EnvResolver(self._environ)

    def wanted(self, cwd: Path, names: Collection[str]) -> bool:
        """Whether there is anything to look for, for a session in ``cwd`` that asks for ``names``."""
        if self._configured or self.always or "catalogue" in vars(self) or not self._built_in.issuperset(names):
            return True
        at_home = self._home is not None and os.path.isdir(os.path.join(self._home, FOLDER))
        return at_home or project_folder(cwd, FOLDER, self._home) is not None

    async def read(self, cwd: Path) -> None:
        """Read what sessions in ``cwd`` have, so that it is known from their first moment on."""
        if self.wanted(cwd, ()):
            await self.catalogue.read(cwd)

    def source(self, session: Session) -> SessionDeclarations:
        """The declared tools of one session."""
        return SessionDeclarations(self, session)


class SessionDeclarations:
    """The declared tools of one session, none before they are looked for."""

    def __init__(self, declarations: Declarations, session: Session) -> None:
        self._declarations = declarations
        self._session = session
        self._tools: DeclaredTools | None = None
        if "catalogue" in vars(declarations):
            self._load()

    def tools(self) -> Mapping[str, Tool]:
        return {} if self._tools is None else self._tools.tools()

    async def look(self, prompt: str) -> None:
        settings = self._session.settings
        asked = (one.removeprefix("custom:") for one in settings.named_tools() if not one.endswith("*"))
        names = {*asked, *mentions(prompt), *self._session.mentions} - self._session.clients.tools().keys()
        if self._tools is not None or self._declarations.wanted(settings.cwd, names):
            await self._load().look(names, mentions(prompt))

    def instructions(self, offered: Collection[str]) -> list[str]:
        return [] if self._tools is None else self._tools.instructions(offered)

    def members(self, name: str) -> Collection[str] | None:
        return None if self._tools is None else self._tools.members(name)

    def words(self, name: str, members: list[str]) -> str | None:
        return None if self._tools is None else self._tools.words(name, members)

    async def ready(self) -> None:
        """They always are: files are read when a session is opened."""

    async def close(self, grace_s: float) -> None:
        if self._tools is not None:
            await self._tools.close(grace_s)

    def _load(self) -> DeclaredTools:
        if self._tools is None:
            from jumpseat.tools.declared.source import DeclaredTools

            self._tools = DeclaredTools(self._declarations, self._session)
        return self._tools
