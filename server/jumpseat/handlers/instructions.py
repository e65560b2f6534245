"""``instructions.*``: instruction files outside of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import anyio.to_thread

from jumpseat.agent.settings import SessionSettings
from jumpseat.sessions.context import Context
from jumpseat.sessions.paths import absolute_path
from jumpseat.store.project.instructions import InstructionFiles
from jumpseat_protocol.instructions import (
    InstructionDiscoveryPath,
    InstructionPathsResult,
    InstructionsDiscoverParams,
    InstructionSourcesResult,
)

PREFERRED: Final = "AGENTS.md"
"""The preferred name of a new instruction file, which other programs read too."""


async def discover(ctx: Context, params: InstructionsDiscoverParams) -> InstructionSourcesResult:
    """Return the instruction files of sessions in some projects, with the user's own file for each."""
    found: list[dict[str, Any]] = []
    for project in params.project_paths:
        settings = SessionSettings(cwd=absolute_path(project))
        sources = await anyio.to_thread.run_sync(describe_sources, ctx.process.instructions, settings)
        found += [
            {**source, "projectPath": project}
            for source in sources
            if not (params.exclude_host_instructions and source["location"] == "user")
        ]
    return InstructionSourcesResult(sources=found)


def get_discovery_paths(ctx: Context, params: InstructionsDiscoverParams) -> InstructionPathsResult:
    """Return the paths that are searched for instruction files, whether they exist or not."""
    paths: list[InstructionDiscoveryPath] = []
    for project in params.project_paths:
        folder = absolute_path(project)
        for path in ctx.process.instructions.project_paths(folder):
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


def describe_sources(files: InstructionFiles, settings: SessionSettings) -> list[dict[str, Any]]:
    """Return the instruction files of a session, in the order in which they are sent.

    Each is ``{id, label, sourcePath, content, type, location}``.
    """
    return [
        {
            "id": str(source.path),
            "label": source.path.name,
            "sourcePath": str(source.path),
            "content": source.text,
            "type": "home" if source.of_user else "repo",
            "location": "user" if source.of_user else _location(source.path, settings.cwd),
        }
        for source in files.sources(settings)
    ]


def _location(path: Path, cwd: Path) -> Literal["working-directory", "repository"]:
    return "working-directory" if path.is_relative_to(cwd) else "repository"
