"""``session.skills.*``: the skills of a session."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import anyio.to_thread
from pydantic import ValidationError

from jumpseat.sessions.changes import emit_skills, switch_skill
from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.skills import (
    InvokedSkill,
    Skill,
    SkillNameParams,
    SkillsInvokedResult,
    SkillsListResult,
    SkillsReloadResult,
)
from jumpseat_protocol.wire import to_wire


def list_(ctx: Context, params: SessionParams) -> SkillsListResult:
    """Return all skills, including the disabled ones."""
    session = ctx.registry.live(params.session_id)
    skills = ctx.process.skills.for_session(session)
    return SkillsListResult(
        skills=[
            Skill.model_validate(
                to_wire(skill.listed(enabled=skills.is_enabled(skill.name)))
                | {"pluginName": skill.plugin.name if skill.plugin else None}
            )
            for skill in skills.all()
        ]
    )


def enable(ctx: Context, params: SkillNameParams) -> None:
    """Enable a skill, from the next model call on.

    Raises:
        InvalidRequestError: there is no such skill.
    """
    switch_skill(ctx, ctx.registry.live(params.session_id), params.name, on=True)


def disable(ctx: Context, params: SkillNameParams) -> None:
    """Disable a skill, from the next model call on.

    Raises:
        InvalidRequestError: there is no such skill.
    """
    switch_skill(ctx, ctx.registry.live(params.session_id), params.name, on=False)


def reload(ctx: Context, params: SessionParams) -> SkillsReloadResult:
    """Search for skills again."""
    session = ctx.registry.live(params.session_id)
    found = ctx.process.skills.for_session(session).reload()
    emit_skills(ctx, session)
    return SkillsReloadResult(warnings=found.warnings, errors=found.errors)


def ensure_loaded(ctx: Context, params: SessionParams) -> None:
    """Search for skills, unless that has been done."""
    ctx.process.skills.for_session(ctx.registry.live(params.session_id)).all()


async def get_invoked(ctx: Context, params: SessionParams) -> SkillsInvokedResult:
    """Return the skills that have been invoked, in order, from the log."""
    session = ctx.registry.live(params.session_id)
    log = await anyio.to_thread.run_sync(ctx.registry.storage(session).log.read)
    invoked: list[InvokedSkill] = []
    prompts = 0
    for record in log.records:
        found = record.get("data")
        data = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if record["type"] == "user.message" and not data.get("source"):
            prompts += 1
        elif record["type"] == "skill.invoked":
            # Other programs may have written the log.
            with suppress(ValidationError):
                invoked.append(InvokedSkill.model_validate({**data, "invokedAtTurn": prompts}))
    return SkillsInvokedResult(skills=invoked)
