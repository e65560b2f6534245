"""``skills.config.*``: the skills that are disabled in new sessions."""

from __future__ import annotations

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat_protocol.skills import (
    SetDisabledSkillsParams,
    SetSkillDisabledParams,
)


async def set_disabled_skills(ctx: Context, params: SetDisabledSkillsParams) -> None:
    """Replace the list of skills that are disabled in new sessions."""
    await anyio.to_thread.run_sync(ctx.process.user_settings.disable_skills, params.disabled_skills)


async def set_skill_disabled(ctx: Context, params: SetSkillDisabledParams) -> None:
    """Disable or enable one skill in new sessions. The skill need not exist."""
    await anyio.to_thread.run_sync(ctx.process.user_settings.disable_skill, params.name, params.disabled)
