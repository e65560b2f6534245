"""``hooks.*``: the hooks in files, as sessions would have them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio.to_thread

from jumpseat.agent.settings import SessionSettings
from jumpseat.sessions.context import Context
from jumpseat.sessions.paths import absolute_path
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol.hooks import DiscoveredHook, HooksDiscoverParams, HooksDiscoverResult

_ORIGINS = {"client": "user", "user": "user", "project": "repository", "plugin": "plugin"}


async def discover(ctx: Context, params: HooksDiscoverParams) -> HooksDiscoverResult:
    """Return the hooks of named folders, of the user, of plugins and of projects, whether they run or not.

    Raises:
        InvalidRequestError: a path is no absolute path of a folder.
    """
    projects = [existing_folder("projectPaths", path) for path in params.project_paths or []]
    result = HooksDiscoverResult(hooks=[], warnings=[], errors=[])
    for project in projects or [None]:
        await anyio.to_thread.run_sync(_add, ctx, result, project, params)
    for messages in (result.warnings, result.errors):
        messages[:] = dict.fromkeys(messages)
    return result


def _add(ctx: Context, result: HooksDiscoverResult, project: Path | None, params: HooksDiscoverParams) -> None:
    """Add the hooks of a session in a project, or in none."""
    settings = SessionSettings.of(
        project or Path.cwd(),
        enable_file_hooks=None if project is None else True,
        hook_directories=[str(absolute_path(folder)) for folder in params.hook_directories or ()],
    )
    for group in ctx.process.hook_files.groups(settings, result.errors, project=project is not None):
        if params.exclude_host_hooks and group.commands[0].source in ("user", "plugin"):
            continue
        if group.problem is not None:
            result.warnings.append(group.problem)
        for command in group.commands:
            identity = (str(project), command.source, command.hook_type, str(command.file), command.argv)
            digest = hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass")).hexdigest()[:32]
            ordinal = sum(hook.id.startswith(digest) for hook in result.hooks)
            result.hooks.append(
                DiscoveredHook.model_validate(
                    {
                        "id": f"{digest}-{ordinal}",
                        "hookType": command.hook_type,
                        "origin": _ORIGINS[command.source],
                        "source": str(command.file),
                        "projectPath": None if project is None else str(project),
                        "enabled": ctx.process.runs_hook_files and group.problem is None,
                        "command": command.shown,
                        "matcher": command.matcher,
                    }
                )
            )
