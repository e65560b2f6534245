"""``skills.config.*``: the skills that are disabled in new sessions."""

from __future__ import annotations

from jumpseat.sessions.context import Context
from jumpseat_protocol.skills import (
    SetDisabledSkillsParams,
    SetSkillDisabledParams,
)


def set_disabled_skills(ctx: Context, params: SetDisabledSkillsParams) -> None:
    """Replace the list of skills that are disabled in new sessions."""
    ctx.process.user_settings.disable_skills(params.disabled_skills)


def set_skill_disabled(ctx: Context, params: SetSkillDisabledParams) -> None:
    """Disable or enable one skill in new sessions. The skill need not exist."""
    others = [name for name in ctx.process.user_settings.disabled_skills() if name != params.name]
    ctx.process.user_settings.disable_skills([*others, params.name] if params.disabled else others)
