"""``jumpseat.adapters.*``: the adapters, their settings, and adapters that clients register."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumpseat.errors import ConfigError
from jumpseat.sessions.context import Context
from jumpseat.system.file_trees import existing_folder
from jumpseat_protocol.adapters import (
    AdapterGetParams,
    AdapterGetResult,
    AdapterRegisterParams,
    AdaptersListParams,
    AdaptersListResult,
    AdapterSummary,
)

if TYPE_CHECKING:
    from jumpseat.adapters.declared.catalogue import AdapterCatalogue


async def list_(ctx: Context, params: AdaptersListParams) -> AdaptersListResult:
    """Return all adapters; an invalid one is listed with its ``problem``."""
    catalogue, cwd = ctx.models.adapters.catalogue, _folder(params.cwd)
    await catalogue.refresh(cwd)
    return AdaptersListResult(adapters=[_summary(catalogue, name, cwd) for name in catalogue.names(cwd)])


def _folder(cwd: str | None) -> Path | None:
    return None if cwd is None else existing_folder("cwd", cwd)


def _summary(catalogue: AdapterCatalogue, name: str, cwd: Path | None) -> AdapterSummary:
    try:
        adapter = catalogue.get(name, cwd)
        adapter.check_callable()
    except ConfigError as error:
        return AdapterSummary(name=name, title=name, origin=catalogue.origin(name, cwd), problem=str(error))
    return AdapterSummary(name=name, title=adapter.declaration.title, origin=adapter.origin)


async def get(ctx: Context, params: AdapterGetParams) -> AdapterGetResult:
    """Return one adapter, with its settings in the order of a form.

    Raises:
        ConfigError: there is no such adapter, or its declaration is invalid.
    """
    from jumpseat.adapters.declared.describe import describe

    adapter = await ctx.models.adapters.catalogue.get_ready(params.name, _folder(params.cwd))
    return AdapterGetResult(adapter=describe(adapter, params.model))


async def register(ctx: Context, params: AdapterRegisterParams) -> AdapterGetResult:
    """Register an adapter until the process ends.

    Raises:
        InvalidRequestError: it has no name, or the name of an adapter that does not come from a client.
        ConfigError: the declaration is invalid.
    """
    from jumpseat.adapters.declared.describe import describe

    known = ctx.models.adapters.register(params.declaration)
    return AdapterGetResult(adapter=describe(known))
