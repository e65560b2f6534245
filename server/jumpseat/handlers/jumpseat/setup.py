"""``jumpseat.setup.*``: set up providers, keys and the default model of this server."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
from msgspec.structs import asdict

from jumpseat.adapters.models.checking import check_model, models_of_copilot
from jumpseat.adapters.models.configured import TRIAL
from jumpseat.adapters.models.explanations import Explanations
from jumpseat.adapters.models.known_adapters import COPILOT
from jumpseat.adapters.models.usual_model import usual_model
from jumpseat.adapters.setup.providers import Setup
from jumpseat.errors import ProviderError
from jumpseat.sessions.context import Context
from jumpseat_protocol.server import EmptyParams
from jumpseat_protocol.setup import (
    SetupCheckParams,
    SetupCheckResult,
    SetupFileResult,
    SetupGetResult,
    SetupKeyParams,
    SetupKeyResult,
    SetupModel,
    SetupModelParams,
    SetupModelsResult,
    SetupProvider,
    SetupProviderParams,
    SetupRemoveKeyResult,
    SetupServerParams,
)


async def get(ctx: Context, params: EmptyParams) -> SetupGetResult:
    """Return the providers and their state. Servers on this machine are asked for their models."""
    setup = _setup(ctx)
    return SetupGetResult(
        providers=[SetupProvider(**asdict(provider)) for provider in await setup.providers()],
        default_model=setup.default_model(Path.cwd()),
        has_model=await setup.has_model(),
        trial_model=TRIAL,
    )


async def put_key(ctx: Context, params: SetupKeyParams) -> SetupKeyResult:
    """Store the key of a provider in the keyring, or else in a private file.

    Raises:
        InvalidRequestError: the provider is unknown or takes no key, or the text is no key.
        StoreError: the key cannot be stored.
    """
    place, hidden_by = await _setup(ctx).put_key(params.provider, params.key)
    return SetupKeyResult(place=place, hidden_by=hidden_by)


async def remove_key(ctx: Context, params: SetupProviderParams) -> SetupRemoveKeyResult:
    """Remove the key that was entered for a provider.

    Raises:
        InvalidRequestError: the provider is unknown or takes no key.
        StoreError: the file cannot be written.
    """
    return SetupRemoveKeyResult(removed=await _setup(ctx).remove_key(params.provider))


async def add_server(ctx: Context, params: SetupServerParams) -> SetupFileResult:
    """Add a server of the user's own to the configuration.

    Raises:
        InvalidRequestError: the name is taken, or the address or the type is invalid.
        ConfigError: the configuration file cannot be changed.
    """
    setup = _setup(ctx)
    add = lambda: setup.add_server(params.name, params.base_url, params.type, needs_key=params.needs_key)  # noqa: E731
    return SetupFileResult(file=str(await anyio.to_thread.run_sync(add)))


async def models(ctx: Context, params: SetupProviderParams) -> SetupModelsResult:
    """Return the models of a provider; a failure is part of the result.

    Raises:
        ConfigError: there is no such provider, or no login to GitHub.
        ProviderError: GitHub cannot list the models of the account.
    """
    name = params.provider
    if name == COPILOT:
        found, failure = await models_of_copilot(ctx.models), None
    else:
        found = await ctx.models.catalogue.of_adapter(name, refresh=True)
        failure = ctx.models.catalogue.failure(name)
    problem = None if failure is None else str(failure)
    if isinstance(failure, ProviderError):
        problem = Explanations(ctx.models.adapters, ctx.models.environ).diagnose_adapter(name, "", failure).text
    usual = None if name == COPILOT else usual_model(name, found)
    return SetupModelsResult(
        models=[
            SetupModel(id=model.id, name=model.name, context_window=model.context_window, tools=model.tools)
            for model in found
            if model.enabled
        ],
        suggested=None if usual is None else f"{name}/{usual}",
        problem=problem,
    )


async def check(ctx: Context, params: SetupCheckParams) -> SetupCheckResult:
    """Send one small request to a model of a provider, and explain a failure."""
    found = await check_model(ctx.models, params.provider, params.model, params.timeout_s)
    return SetupCheckResult(
        works=found.works, model=found.name if found.facts.model else None, explanation=found.diagnosis.text
    )


async def set_model(ctx: Context, params: SetupModelParams) -> SetupFileResult:
    """Make a model the default one.

    Raises:
        ConfigError: the configuration file cannot be changed.
    """
    return SetupFileResult(file=str(await anyio.to_thread.run_sync(_setup(ctx).set_model, params.model)))


def _setup(ctx: Context) -> Setup:
    return Setup(ctx.models, ctx.process.keys, ctx.process.home)
