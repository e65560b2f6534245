"""Send one small request to a model of an adapter, and diagnose a failure.

A key is never shown, only whether it is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.models.configured import local_server
from jumpseat.adapters.models.diagnosis import UNREACHABLE, WORKS, Diagnosis, Facts, diagnose, list_problems
from jumpseat.adapters.models.explanations import ADAPTER_PROXY, is_malformed, proxies_in
from jumpseat.adapters.models.known_adapters import COPILOT, KnownAdapter, known_adapters, place_of
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelInfo, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ConfigError, JumpseatError, ProviderProtocolError, ProviderRequestError
from jumpseat_protocol.members import hint

if TYPE_CHECKING:
    from jumpseat.adapters.declared.dry_run import DryRun
    from jumpseat.adapters.models.entered_keys import KeyedEnvironment

TIMEOUT_S: Final = 60.0
"""The usual time limit of a check."""

ANSWER_TOKENS: Final = 256
"""The output limit of the test request: enough for a model that always reasons first."""


class Check(Struct):
    """The findings of a check, which may have ended early."""

    facts: Facts
    answer: str | None = None
    dry_run: DryRun | None = None
    diagnosis: Diagnosis = Diagnosis(WORKS, "")

    @property
    def works(self) -> bool:
        return self.diagnosis.exit_code == WORKS

    @property
    def name(self) -> str:
        """The model as ``adapter/model``, or the adapter alone."""
        return f"{self.facts.adapter}/{self.facts.model}" if self.facts.model else self.facts.adapter


async def check_model(models: Models, name: str, model: str | None = None, timeout_s: float = TIMEOUT_S) -> Check:
    """Try the functions of the adapter ``name``, then send one small request; by default to its first model."""
    found = Check(Facts(name, model or "", name))
    try:
        found.diagnosis = await _diagnose(models, name, model, timeout_s, found)
    except JumpseatError as error:
        found.diagnosis = diagnose(error, found.facts)
    return found


async def _diagnose(models: Models, name: str, model: str | None, timeout_s: float, found: Check) -> Diagnosis:
    """Try the functions of the adapter, then the provider, and note in ``found`` what is known so far.

    Raises:
        JumpseatError: the adapter cannot be called.
    """
    environ = models.environ
    resolved = await _to_check(models, name, model)
    found.facts = replace(found.facts, model=resolved.wire_name)
    found.dry_run = await _try_functions(resolved)
    if found.dry_run is not None and found.dry_run.problems:
        return list_problems(problem.text for problem in found.dry_run.problems)
    found.facts = await _facts(name, resolved, known_adapters(models.adapters, models.config, environ), environ)
    with anyio.move_on_after(timeout_s) as limit:
        if not resolved.wire_name:
            resolved = await _first_listed(models, name)
            found.facts = replace(found.facts, model=resolved.wire_name)
        found.answer = await _ask(resolved)
    if limit.cancelled_caught:
        return Diagnosis(
            UNREACHABLE,
            f"{found.facts.address} sent no complete response within {timeout_s:g} seconds. If the provider is "
            f"slow, 'jumpseat check {name} --timeout {5 * timeout_s:g}' waits longer; or a firewall may drop the "
            "requests.",
        )
    return Diagnosis(WORKS, f"Asked for one word, the model answered {found.answer!r}.")


async def _try_functions(resolved: ResolvedModel) -> DryRun | None:
    """Try the functions of a declared adapter; ``None`` for other adapters."""
    from jumpseat.adapters.declared.pipeline import DeclaredCaller
    from jumpseat.adapters.transport.http import HttpModel

    model = resolved.model
    if not isinstance(model, HttpModel) or not isinstance(model.caller, DeclaredCaller):
        return None
    from jumpseat.adapters.declared.dry_run import dry_run

    return await dry_run(model.caller, resolved.wire_name or "m", vision=resolved.info.vision is True)


async def _to_check(models: Models, name: str, model: str | None) -> ResolvedModel:
    """Return the model to test; it has no name if the model must be chosen from the provider's list."""
    settings = SessionSettings(cwd=Path.cwd())
    configured = models.adapters.with_models()
    if name in configured:
        adapter, declared = configured[name]
        if model is None and declared:
            model = declared[0].id
        if model is None:
            model = next((offer.id for offer in (await models.adapters.list_offers(name, adapter)).offers), None)
        if model is None and (adapter.type or name) == SCRIPTED:
            model = SCRIPTED
    elif name == COPILOT:
        if model is None:
            model = next((model.id for model in await models_of_copilot(models) if model.enabled), None)
        return await models.resolve(settings.with_options(model=model))
    elif local_server(name) is None:
        raise not_configured(name, configured)
    # Not by the name adapter/model, which may mean a model of a gateway.
    return await models.of_adapter(name, model or "", settings)


async def _first_listed(models: Models, name: str) -> ResolvedModel:
    """Return the first model in the provider's list, preferring models with a known context window.

    Raises:
        ConfigError: the list is empty, or there is none.
        ProviderError: the provider was not reached, or rejected the key.
    """
    problem = f"adapter {name!r} declares no models: name one, as in jumpseat check {name} MODEL"
    try:
        found = await models.catalogue.fetch_list(name)
    except (ProviderRequestError, ProviderProtocolError) as error:
        # Not every server lists its models.
        raise ConfigError(f"{problem}, because its provider does not list them ({error})") from None
    if not found:
        raise ConfigError(problem)
    chosen = next((model for model in found if model.context_window is not None), found[0])
    return await models.of_adapter(name, chosen.id.removeprefix(f"{name}/"), SessionSettings(cwd=Path.cwd()))


async def _ask(resolved: ResolvedModel) -> str:
    """Send a short request and return the model's answer as one line of at most 80 characters."""
    request = ModelRequest(
        resolved.wire_name,
        "Answer in one word.",
        [UserMessage([TextBlock("Say: ready")])],
        max_output_tokens=ANSWER_TOKENS,
    )
    async with resolved.model.stream(request) as events:
        async for event in events:
            if isinstance(event, Completed):
                message = " ".join(block.text for block in event.message.blocks if isinstance(block, TextBlock))
                return " ".join(message.split())[:80]
    raise AssertionError("a model stream must end in Completed or raise")


async def _facts(name: str, resolved: ResolvedModel, known: list[KnownAdapter], environ: KeyedEnvironment) -> Facts:
    from jumpseat.adapters.transport.http import HttpModel

    model = resolved.model
    key, address = None, name
    proxies = proxies_in(environ)
    if isinstance(model, HttpModel):
        endpoint, network = await model.caller.resolve_endpoint()
        if network is not None and network.proxy:
            proxies = (ADAPTER_PROXY,)
        key = endpoint.api_key or endpoint.bearer_token
        address = place_of(endpoint.base_url) or name
    key_env = next((adapter.key_env for adapter in known if adapter.name == name), None)
    return Facts(
        adapter=name,
        model=resolved.wire_name,
        address=address,
        key_env=key_env,
        has_key=bool(key),
        key_source="the key that you have entered" if key_env in environ.entered() else None,
        malformed_key=key is not None and is_malformed(key),
        proxy_envs=proxies,
    )


async def models_of_copilot(models: Models) -> list[ModelInfo]:
    login = await models.copilot.own_login()
    if login is None:
        raise ConfigError(f"there is no GitHub token: set one of {', '.join(PROVIDERS[COPILOT].key_variables)}")
    return await models.copilot.models(login)


def not_configured(name: str, known: Iterable[str] = ()) -> ConfigError:
    """Return the error for an adapter that is not among the ``known`` ones, which are configured."""
    if name not in PROVIDERS:
        return ConfigError(f"unknown adapter {name!r}, {hint(name, {*PROVIDERS, *known})}")
    provider = PROVIDERS[name]
    if provider.environment is not None:
        variables = f"{provider.key_variable} or {provider.environment.base_url}"
        return ConfigError(f"adapter {name!r} is not configured: run 'jumpseat setup', or set {variables}")
    return ConfigError(f"adapter {name!r} is not configured: add it to config.toml")
