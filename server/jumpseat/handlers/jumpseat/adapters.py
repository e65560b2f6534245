"""``jumpseat.adapters.*``: the adapters, their settings, and adapters that clients register."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumpseat.errors import ConfigError
from jumpseat.sessions.context import Context
from jumpseat.system.working_directory import existing_folder
from jumpseat_protocol.adapters import (
    AdapterGetParams,
    AdapterGetResult,
    AdapterRegisterParams,
    AdaptersListParams,
    AdaptersListResult,
    AdapterSummary,
)

if TYPE_CHECKING:
    from jumpseat.adapters.declared.catalogue import Catalogue


def list_(ctx: Context, params: AdaptersListParams) -> AdaptersListResult:
    """Return all adapters; an invalid one is listed with its ``problem``."""
    catalogue = _catalogue(ctx, params.cwd)
    return AdaptersListResult(adapters=[_summary(catalogue, name) for name in catalogue.names()])


def _catalogue(ctx: Context, cwd: str | None) -> Catalogue:
    adapters = ctx.models.adapters
    return adapters.catalogue if cwd is None else adapters.catalogue_in(existing_folder("cwd", cwd))


def _summary(catalogue: Catalogue, name: str) -> AdapterSummary:
    try:
        known = catalogue.get(name)
        known.check_callable()
    except ConfigError as error:
        return AdapterSummary(name=name, title=name, origin=catalogue.origin(name), problem=str(error))
    return AdapterSummary(name=name, title=known.declaration.title, origin=known.origin)


async def get(ctx: Context, params: AdapterGetParams) -> AdapterGetResult:
    """Return one adapter, with its settings in the order of a form.

    Raises:
        ConfigError: there is no such adapter, or its declaration is invalid.
    """
    from jumpseat.adapters.declared.describe import describe

    return AdapterGetResult(
        adapter=describe(await _catalogue(ctx, params.cwd).get_ready(params.name), params.model)
    )


async def register(ctx: Context, params: AdapterRegisterParams) -> AdapterGetResult:
    """Register an adapter until the process ends.

    Raises:
        InvalidRequestError: it has no name, or the name of an adapter that does not come from a client.
        ConfigError: the declaration is invalid.
    """
    from jumpseat.adapters.declared.describe import describe

    known = ctx.models.adapters.register(params.declaration)
    return AdapterGetResult(adapter=describe(known))
