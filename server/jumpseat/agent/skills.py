"""Skills, which are instructions for one kind of task with their files, and plugins, which add skills and more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol.events import LoadedSkill


class Plugin(Struct, frozen=True):
    """A plugin in a folder.

    ``skill_folders``, ``command_folders`` and ``agent_folders`` contain its skills, commands and agents. Its MCP
    servers are configured in ``mcp_files``, or in ``mcp_servers`` by name; its hooks in ``hook_files``, or in
    ``hooks`` by event; its language servers in ``lsp_files``, or in ``lsp_servers`` by name. ``marketplace`` is set
    for installed plugins: it is empty for those that come from no marketplace. ``untrusted`` is the reason for
    which nothing of the plugin may be started.
    """

    folder: Path
    name: str
    version: str | None = None
    skill_folders: tuple[Path, ...] = ()
    command_folders: tuple[Path, ...] = ()
    agent_folders: tuple[Path, ...] = ()
    mcp_files: tuple[Path, ...] = ()
    mcp_servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hook_files: tuple[Path, ...] = ()
    hooks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lsp_files: tuple[Path, ...] = ()
    lsp_servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    marketplace: str | None = None
    source_id: str | None = None
    untrusted: str | None = None


class Plugins(Protocol):
    """The plugins of all sessions."""

    def folders(self, settings: SessionSettings) -> list[Path]:
        """Return the folders of a session's plugins, whether they exist or not; reads none of them."""
        ...

    def read_all(self, settings: SessionSettings) -> list[Plugin]:
        """Read the plugins of a session that exist."""
        ...


SkillSource: TypeAlias = Literal["project", "inherited", "personal-copilot", "personal-agents", "plugin", "custom"]


class Skill(Struct, frozen=True):
    """A skill. ``path`` is its file; paths in the instructions are relative to ``folder``.

    ``project`` is the folder of the project, or ``plugin`` the plugin, that contains the skill. A skill that is not
    ``for_models`` can only be called by the user. ``is_command`` marks a file whose text has places for the words
    of the call; ``ignored`` are the fields of its front matter that have no effect here.
    """

    name: str
    description: str
    path: Path
    source: SkillSource
    user_invocable: bool = True
    for_models: bool = True
    argument_hint: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    project: Path | None = None
    plugin: Plugin | None = None
    is_command: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def full_name(self) -> str:
        """Return the name that is not taken by a command of another kind, such as ``project:help``."""
        place = "user" if self.source.startswith("personal-") else "project"
        return self.name if self.plugin is not None and ":" in self.name else f"{place}:{self.name}"

    def listed(self, *, enabled: bool) -> LoadedSkill:
        """Return the skill in wire form."""
        return LoadedSkill(
            name=self.name,
            description=self.description,
            source=self.source,
            user_invocable=self.user_invocable,
            enabled=enabled,
            path=str(self.path),
            argument_hint=self.argument_hint,
            command_name=self.name if self.user_invocable else None,
        )


class Skills(Protocol):
    """The skills of one session, read when first needed and again on request."""

    def all(self) -> list[Skill]:
        """Return all skills, including disabled ones; of two with the same name, the first one found."""
        ...

    def is_enabled(self, name: str) -> bool: ...

    def body(self, skill: Skill) -> str:
        """Read the instructions of a skill from its file.

        Raises:
            StoreError: the file cannot be read.
        """
        ...


class NoSkills:
    """The skills of a session without skills."""

    def all(self) -> list[Skill]:
        return []

    def is_enabled(self, name: str) -> bool:
        return False

    def body(self, skill: Skill) -> str:
        raise AssertionError(f"unknown skill {skill.name!r}")
