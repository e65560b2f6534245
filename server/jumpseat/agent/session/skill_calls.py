"""Invoke skills: by a user's slash command, or by the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jumpseat.agent.session.session import Session
from jumpseat.agent.skills import Skill
from jumpseat_protocol.events import SkillInvoked


def user_invocable_skills(session: Session) -> list[Skill]:
    """Return the enabled skills that users may invoke by slash command."""
    skills = session.services.skills(session)
    return [skill for skill in skills.all() if skill.user_invocable and skills.is_enabled(skill.name)]


def invoked_skill(session: Session, prompt: str) -> Skill | None:
    """Return the skill whose slash command a prompt begins with, if any: its name, or its full name."""
    # Checked first, because listing the skills may read files.
    if not prompt.lstrip().startswith("/"):
        return None
    name = prompt.split(maxsplit=1)[0][1:].casefold()
    skills = user_invocable_skills(session)
    return next((skill for skill in skills if skill.name.casefold() == name), None) or next(
        (skill for skill in skills if skill.full_name.casefold() == name), None
    )


def load_skill(
    session: Session,
    skill: Skill,
    trigger: Literal["user-invoked", "agent-invoked"],
    expand: Callable[[str], str] = str,
) -> tuple[str, str]:
    """Read a skill and publish that it was invoked; returns the source and the text of the message for the model.

    ``expand`` completes the text of a command.

    Raises:
        StoreError: the skill cannot be read, or the log cannot be written.
    """
    body = session.services.skills(session).body(skill)
    if skill.is_command:
        body = expand(body)
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
    return f"skill-{skill.name}", skill_context(skill, body)


def skill_context(skill: Skill, body: str) -> str:
    """Return the text of a skill in the form that models get."""
    return (
        f'<skill-context name="{skill.name}">\nBase directory for this skill: {skill.folder}\n\n{body}\n\n'
        "</skill-context>"
    )
