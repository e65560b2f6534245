"""``skills.config.*``: the skills that new sessions do not get."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.skills import (
    SetDisabledSkillsParams,
    SetSkillDisabledParams,
)


def set_disabled_skills(ctx: Context, params: SetDisabledSkillsParams) -> None:
    """Say which skills new sessions are not to have."""
    ctx.process.user_settings.disable_skills(params.disabled_skills)


def set_skill_disabled(ctx: Context, params: SetSkillDisabledParams) -> None:
    """The same for one skill, there or not."""
    others = [name for name in ctx.process.user_settings.disabled_skills() if name != params.name]
    ctx.process.user_settings.disable_skills([*others, params.name] if params.disabled else others)
