"""``jumpseat.tools.*``: declared tools, and tools that clients register."""

from __future__ import annotations

from pathlib import Path

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.system.file_trees import existing_folder
from jumpseat.tools.builtin import BUILTIN_NAMES
from jumpseat_protocol.declared_tools import (
    DeclaredToolGetParams,
    DeclaredToolGetResult,
    DeclaredToolRegisterParams,
    DeclaredToolsListParams,
    DeclaredToolsListResult,
)


async def list_(ctx: Context, params: DeclaredToolsListParams) -> DeclaredToolsListResult:
    """Return all declared tools and groups; an invalid one is listed with its ``problem``."""
    from jumpseat.tools.declared.describe import summarize

    catalogue = ctx.process.declarations.catalogue
    known = await catalogue.read_all(_directory(params.working_directory))
    return DeclaredToolsListResult(tools=[summarize(tool) for tool in known])


async def get(ctx: Context, params: DeclaredToolGetParams) -> DeclaredToolGetResult:
    """Return one declared tool or group.

    Raises:
        InvalidRequestError: there is no such tool or group.
    """
    from jumpseat.tools.declared.describe import describe

    catalogue = ctx.process.declarations.catalogue
    known = await catalogue.read_all(_directory(params.working_directory))
    found = next((tool for tool in known if tool.name == params.name), None)
    if found is None:
        raise InvalidRequestError(f"unknown declared tool {params.name!r}")
    return DeclaredToolGetResult(tool=describe(found, known, BUILTIN_NAMES))


async def register(ctx: Context, params: DeclaredToolRegisterParams) -> DeclaredToolGetResult:
    """Register a command tool in all sessions, until the process ends.

    Raises:
        InvalidRequestError: the declaration has no name, or the name of a tool that does not come from a client.
        ConfigError: the declaration is invalid, or has fields that clients may not set.
    """
    from jumpseat.tools.declared.describe import describe

    catalogue = ctx.process.declarations.catalogue
    await catalogue.read_all(None)
    return DeclaredToolGetResult(tool=describe(catalogue.register(params.declaration)))


def _directory(path: str | None) -> Path | None:
    if path is None:
        return None
    if not Path(path).is_absolute():
        raise InvalidRequestError(f"workingDirectory {path!r} is not an absolute path")
    return existing_folder("workingDirectory", path)
