"""The names of the files of a session's workspace, for completions."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio

from jumpseat.agent.session.session import Session
from jumpseat.tools.files import ignored_paths
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.search.engine import GlobRefusedError, glob_in_python
from jumpseat.tools.session_sandbox import own_programs

TIME_S: Final = 5.0
"""The time after which the names found so far are returned: a person waits for them."""


async def workspace_names(
    environment: Environment, session: Session, pattern: str, *, depth: int | None, limit: int
) -> list[str]:
    """Return the paths below the working directory that match a glob, without those that git ignores."""
    names: list[str] = []
    root, environ = session.settings.cwd, environment.child_environ(session.id)
    with anyio.move_on_after(TIME_S), suppress(GlobRefusedError, OSError):
        ignored = await ignored_paths(root, environ, own_programs(session, environment.sandboxes))
        await glob_in_python(environ, root, pattern, depth=depth, limit=limit, ignored=ignored, add=names.append)
    return names
