"""``skills.*``: skills outside of sessions."""

from __future__ import annotations

from collections.abc import Iterator

import anyio.to_thread

from jumpseat.sessions.context import Context
from jumpseat.sessions.paths import absolute_path
from jumpseat.store.project.skills import PROJECT_FOLDERS, Place, find_skills, project_places
from jumpseat_protocol.skills import (
    ServerSkill,
    SetDisabledSkillsParams,
    SetSkillDisabledParams,
    SkillDiscoveryPath,
    SkillPathsParams,
    SkillPathsResult,
    SkillsDiscoverParams,
    SkillsDiscoverResult,
)
from jumpseat_protocol.wire import to_wire


async def discover(ctx: Context, params: SkillsDiscoverParams) -> SkillsDiscoverResult:
    """Return the skills of some folders, of some projects and, unless excluded, of the user."""
    places = [Place(absolute_path(folder), "custom") for folder in params.skill_directories]
    for project in params.project_paths:
        places += project_places(absolute_path(project))
    if not params.exclude_host_skills:
        places += ctx.process.skills.personal()
    found = await anyio.to_thread.run_sync(find_skills, places)
    disabled = ctx.process.user_settings.disabled_skills()
    skills = [
        ServerSkill(
            **ServerSkill.model_validate(to_wire(item.listed(enabled=item.name not in disabled))).model_dump(
                exclude={"project_path"}
            ),
            project_path=str(item.project) if item.project is not None else None,
        )
        for item in found.items
    ]
    return SkillsDiscoverResult(skills=skills, errors=found.errors or None)


def get_discovery_paths(ctx: Context, params: SkillPathsParams) -> SkillPathsResult:
    """Return the folders that are searched for skills, whether they exist or not."""
    return SkillPathsResult(paths=list(_paths(ctx, params)))


def _paths(ctx: Context, params: SkillPathsParams) -> Iterator[SkillDiscoveryPath]:
    for project in params.project_paths:
        folder = absolute_path(project)
        for name in PROJECT_FOLDERS:
            yield SkillDiscoveryPath(
                path=str(folder / name),
                scope="project",
                preferred_for_creation=name == PROJECT_FOLDERS[0],
                project_path=project,
            )
    if params.exclude_host_skills:
        return
    for place in ctx.process.skills.personal():
        if place.source in ("personal-copilot", "personal-agents"):
            yield SkillDiscoveryPath(path=str(place.path), scope=place.source, preferred_for_creation=True)


async def config_set_disabled_skills(ctx: Context, params: SetDisabledSkillsParams) -> None:
    """Replace the list of skills that are disabled in new sessions."""
    await anyio.to_thread.run_sync(ctx.process.user_settings.disable_skills, params.disabled_skills)


async def config_set_skill_disabled(ctx: Context, params: SetSkillDisabledParams) -> None:
    """Disable or enable one skill in new sessions. The skill need not exist."""
    await anyio.to_thread.run_sync(ctx.process.user_settings.disable_skill, params.name, params.disabled)
