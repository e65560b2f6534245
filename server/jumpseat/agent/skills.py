"""What a skill is: instructions for one kind of task, in a folder with whatever they need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from jumpseat.agent.plugins import Plugin
from jumpseat_protocol.events import LoadedSkill

SkillSource: TypeAlias = Literal["project", "inherited", "personal-copilot", "personal-agents", "plugin", "custom"]


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. ``path`` is its file, ``folder`` is what paths in it are relative to.

    ``project`` is the folder of the project, ``plugin`` the plugin that it was found in. Where it is not
    ``for_models``, only people call it.
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
        """As lists show it."""
        return LoadedSkill(
            name=self.name,
            description=self.description,
            source=self.source,
            user_invocable=self.user_invocable,
            enabled=enabled,
            path=str(self.path),
            argument_hint=self.argument_hint,
        )


class Skills(Protocol):
    """The skills of one session. They are looked for when first needed, and again when asked to."""

    def all(self) -> list[Skill]:
        """All there are, disabled ones too; of two with one name, the first that was found."""
        ...

    def is_enabled(self, name: str) -> bool: ...

    def body(self, skill: Skill) -> str:
        """What it tells the model, as it stands in its file now.

        Raises:
            StoreError: it cannot be read.
        """
        ...


class NoSkills:
    """The skills of a session that has none."""

    def all(self) -> list[Skill]:
        return []

    def is_enabled(self, name: str) -> bool:
        return False

    def body(self, skill: Skill) -> str:
        raise AssertionError(f"nobody has given the skill {skill.name}")
