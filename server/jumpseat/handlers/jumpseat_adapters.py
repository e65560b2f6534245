"""``jumpseat.adapters.*``: what adapters there are, what can be set of them, and new ones from clients."""

from __future__ import annotations

from jumpseat.errors import ConfigError
from jumpseat.handlers.context import Context
from jumpseat_protocol.adapters import (
    AdapterGetParams,
    AdapterGetResult,
    AdapterRegisterParams,
    AdaptersListResult,
    AdapterSummary,
)
from jumpseat_protocol.server import EmptyParams


def adapters_list(ctx: Context, _params: EmptyParams) -> AdaptersListResult:
    """All adapters; one that is wrong is there too, with what is wrong."""
    return AdaptersListResult(adapters=[_summary(ctx, name) for name in ctx.models.adapters.catalogue.names()])


def _summary(ctx: Context, name: str) -> AdapterSummary:
    adapters = ctx.models.adapters
    try:
        known = adapters.callable(name)
    except ConfigError as error:
        return AdapterSummary(name=name, title=name, origin=adapters.catalogue.origin(name), problem=str(error))
    return AdapterSummary(name=name, title=known.declaration.title, origin=known.origin)


async def adapters_get(ctx: Context, params: AdapterGetParams) -> AdapterGetResult:
    """One adapter, with the settings in the order of a form."""
    from jumpseat.adapters.declared.describe import describe

    return AdapterGetResult(adapter=describe(await ctx.models.adapters.catalogue.ready(params.name), params.model))


async def adapters_register(ctx: Context, params: AdapterRegisterParams) -> AdapterGetResult:
    """Take an adapter from a client, for the life of the process.

    Raises:
        InvalidRequestError: it has no name, or that of an adapter that no client has registered.
        ConfigError: its declaration is wrong.
    """
    from jumpseat.adapters.declared.describe import describe

    known = ctx.models.adapters.register(params.declaration)
    return AdapterGetResult(adapter=describe(known))
