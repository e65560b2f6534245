"""What a skill is: instructions for one kind of task, in a folder with whatever they need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from jumpseat.agent.plugins import Plugin
from jumpseat_protocol.events import LoadedSkill, SkillInvoked

if TYPE_CHECKING:
    from jumpseat.agent.session import Session

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


def for_people(session: Session) -> list[Skill]:
    """The skills of a session that people may call by a slash command."""
    skills = session.around.skills(session)
    return [one for one in skills.all() if one.user_invocable and skills.is_enabled(one.name)]


def called_by(session: Session, prompt: str) -> Skill | None:
    """The skill whose slash command a prompt begins with."""
    # Few prompts do, and the skills may have to be looked for.
    if not prompt.lstrip().startswith("/"):
        return None
    name = prompt.split(maxsplit=1)[0][1:].casefold()
    return next((one for one in for_people(session) if one.name.casefold() == name), None)


def load(session: Session, skill: Skill, trigger: Literal["user-invoked", "agent-invoked"]) -> tuple[str, str]:
    """Read a skill, and tell clients of it; returns where what it says comes from, and that as the model gets it.

    Raises:
        StoreError: it cannot be read, or the log cannot be written.
    """
    body = session.around.skills(session).body(skill)
    session.emit(
        SkillInvoked(
            name=skill.name,
            path=str(skill.path),
            content=body,
            description=skill.description,
            source=skill.source,
            plugin_name=skill.plugin.name if skill.plugin else None,
            plugin_version=skill.plugin.version if skill.plugin else None,
            trigger=trigger,
            allowed_tools=list(skill.allowed_tools) if skill.allowed_tools is not None else None,
        )
    )
    return f"skill-{skill.name}", in_context(skill, body)


def in_context(skill: Skill, body: str) -> str:
    """What a skill says, as a model gets it."""
    return (
        f'<skill-context name="{skill.name}">\nBase directory for this skill: {skill.folder}\n\n{body}\n\n'
        "</skill-context>"
    )
