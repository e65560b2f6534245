"""``jumpseat.tools.*``: what declared tools there are, and new ones from clients."""

from __future__ import annotations

from pathlib import Path

from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.tools import BUILTIN_NAMES
from jumpseat_protocol.declared_tools import (
    DeclaredToolGetParams,
    DeclaredToolGetResult,
    DeclaredToolRegisterParams,
    DeclaredToolsListParams,
    DeclaredToolsListResult,
)


async def list_tools(ctx: Context, params: DeclaredToolsListParams) -> DeclaredToolsListResult:
    """All declared tools and groups; one that is wrong is there too, with what is wrong."""
    from jumpseat.tools.declared.describe import summarise

    catalogue = ctx.process.declarations.catalogue
    known = await catalogue.everything(_directory(params.working_directory))
    return DeclaredToolsListResult(tools=[summarise(one) for one in known])


async def get(ctx: Context, params: DeclaredToolGetParams) -> DeclaredToolGetResult:
    """One declared tool or group.

    Raises:
        InvalidRequestError: there is none of that name.
    """
    from jumpseat.tools.declared.describe import describe

    catalogue = ctx.process.declarations.catalogue
    known = await catalogue.everything(_directory(params.working_directory))
    found = next((one for one in known if one.name == params.name), None)
    if found is None:
        raise InvalidRequestError(f"there is no declared tool {params.name!r}")
    return DeclaredToolGetResult(tool=describe(found, known, BUILTIN_NAMES))


async def register(ctx: Context, params: DeclaredToolRegisterParams) -> DeclaredToolGetResult:
    """Take a command tool from a client, for all sessions and the life of the process.

    Raises:
        InvalidRequestError: it has no name, or that of a tool that no client has registered.
        ConfigError: its declaration is wrong, or says more than clients may.
    """
    from jumpseat.tools.declared.describe import describe

    catalogue = ctx.process.declarations.catalogue
    await catalogue.everything(None)
    return DeclaredToolGetResult(tool=describe(catalogue.register(params.declaration)))


def _directory(path: str | None) -> Path | None:
    if path is None:
        return None
    if not Path(path).is_absolute():
        raise InvalidRequestError(f"workingDirectory {path!r} is not an absolute path")
    return Path(path)
