"""``instructions.*`` and ``session.instructions.getSources``: the instruction files that hold for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import anyio.to_thread

from jumpseat.agent.settings import SessionSettings
from jumpseat.handlers.context import Context
from jumpseat.handlers.paths import absolute
from jumpseat.store.instructions import instruction_sources, project_paths
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.state import (
    InstructionDiscoveryPath,
    InstructionPathsResult,
    InstructionsDiscoverParams,
    InstructionSourcesResult,
)

PREFERRED: Final = "AGENTS.md"
"""What new instructions should be called: other programs read it too."""


def get_sources(ctx: Context, params: SessionParams) -> InstructionSourcesResult:
    """The files that the next prompt will be sent with, in that order."""
    settings = ctx.registry.live(params.session_id).settings
    return InstructionSourcesResult(sources=_told(settings))


async def discover(ctx: Context, params: InstructionsDiscoverParams) -> InstructionSourcesResult:
    """The files that would hold for sessions in some projects. The user has none that hold everywhere."""
    found: list[dict[str, Any]] = []
    for project in params.project_paths:
        told = await anyio.to_thread.run_sync(_told, SessionSettings(cwd=absolute(project)))
        found += [{**source, "projectPath": project} for source in told]
    return InstructionSourcesResult(sources=found)


def get_discovery_paths(ctx: Context, params: InstructionsDiscoverParams) -> InstructionPathsResult:
    """Where such files are looked for, there or not."""
    paths: list[InstructionDiscoveryPath] = []
    for project in params.project_paths:
        folder = absolute(project)
        for path in project_paths(folder):
            own = path.is_relative_to(folder)
            paths.append(
                InstructionDiscoveryPath(
                    path=str(path),
                    location=_location(path, folder),
                    kind="file",
                    preferred_for_creation=own and path.name == PREFERRED,
                    project_path=project,
                )
            )
    return InstructionPathsResult(paths=paths)


def _told(settings: SessionSettings) -> list[dict[str, Any]]:
    return [
        {
            "id": str(source.path),
            "label": source.path.name,
            "sourcePath": str(source.path),
            "content": source.text,
            "type": "repo",
            "location": _location(source.path, settings.cwd),
        }
        for source in instruction_sources(settings)
    ]


def _location(path: Path, cwd: Path) -> Literal["working-directory", "repository"]:
    return "working-directory" if path.is_relative_to(cwd) else "repository"
