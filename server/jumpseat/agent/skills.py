"""Skills: instructions for one kind of task, in a folder with the files they need."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from jumpseat.agent.plugins import Plugin
from jumpseat_protocol.events import LoadedSkill

SkillSource: TypeAlias = Literal["project", "inherited", "personal-copilot", "personal-agents", "plugin", "custom"]


class Skill(Struct, frozen=True):
    """A skill. ``path`` is its file; paths in the instructions are relative to ``folder``.

    ``project`` is the folder of the project, or ``plugin`` the plugin, that contains the skill. A skill that is not
    ``for_models`` can only be called by the user.
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

    @property
    def folder(self) -> Path:
        return self.path.parent

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
