"""The commands ``adapters``, ``models``, ``check``, ``tools`` and ``hooks``: list things, and test a model.

They serve nothing. Results go to stdout, as text or with ``--json`` as JSON; errors go to stderr. A key is never
shown, only whether it is set.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from jumpseat.adapters.models.diagnosis import (
    NOT_CONFIGURED,
    UNREACHABLE,
    WORKS,
    Diagnosis,
    Facts,
    diagnose,
    list_problems,
)
from jumpseat.adapters.models.explanations import ADAPTER_PROXY, Explanations, is_malformed, proxies_in
from jumpseat.adapters.models.known_adapters import (
    COPILOT,
    KnownAdapter,
    known_adapters,
    place_of,
)
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, environment_providers
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelInfo, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.cli.arguments import Command
from jumpseat.cli.output import print_error, print_json, print_table, print_text
from jumpseat.config import Config, home_folder, load_config
from jumpseat.errors import ConfigError, JumpseatError, ProviderError, ProviderProtocolError, ProviderRequestError
from jumpseat.store.user.accounts import Accounts
from jumpseat_protocol.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from jumpseat.adapters.declared.rehearsal import Rehearsal

ANSWER_TOKENS: Final = 256
"""The output limit of the test request: enough for a model that always reasons first."""


def run(command: Command) -> int:
    """Run ``command`` and return the exit code."""
    try:
        home = home_folder(command.options.environ)
        config = load_config(home, environment_providers())
        models = Models(config, command.options, home, config_file=home / "config.toml", logins=Accounts(home))
        match command.name:
            case "adapters":
                return _show_adapters(command, known_adapters(models.adapters, config, command.options.environ))
            case "models":
                return anyio.run(_show_models, command, models)
            case "check":
                return anyio.run(_check, command, models, config)
            case "tools":
                from jumpseat.cli.tools import show_tools

                return anyio.run(partial(show_tools, home, config, as_json=command.json))
            case "hooks":
                from jumpseat.cli.hooks import show_hooks

                return show_hooks(home, config, command.options, as_json=command.json)
    except JumpseatError as error:
        return _report(error)


# --- adapters -----------------------------------------------------------------------------------------------------


def _show_adapters(command: Command, found: list[KnownAdapter]) -> int:
    code = NOT_CONFIGURED if any(adapter.problem for adapter in found) else WORKS
    if command.json:
        print_json(
            [
                {
                    "name": adapter.name,
                    "origin": adapter.origin,
                    "type": adapter.type,
                    "address": adapter.address,
                    "keyEnv": adapter.key_env,
                    "hasKey": adapter.has_key,
                    "usable": adapter.usable,
                    "models": adapter.models,
                    **({"problem": adapter.problem} if adapter.problem else {}),
                }
                for adapter in found
            ]
        )
        return code
    rows = [("NAME", "FROM", "TYPE", "KEY", "MODELS", "ADDRESS")]
    rows += [
        (
            adapter.name,
            adapter.origin,
            adapter.type,
            _key_state(adapter),
            str(adapter.models or "-"),
            adapter.address or "-",
        )
        for adapter in found
        if adapter.problem is None
    ]
    print_table(rows)
    for adapter in found:
        if adapter.problem is not None:
            print_text(f"{adapter.name} cannot be used: {adapter.problem}")
    if not any(adapter.usable for adapter in found):
        print_text("\nNo adapter can be used yet: set an adapter's variable, or configure one in config.toml.")
    return code


def _key_state(adapter: KnownAdapter) -> str:
    if adapter.key_env is None:
        return "none named"
    return f"{adapter.key_env}: {'set' if adapter.has_key else 'not set'}"


# --- models -------------------------------------------------------------------------------------------------------


async def _show_models(command: Command, models: Models) -> int:
    """Print the models of an adapter, or of all; the exit code is that of the first failure to list them."""
    configured = list(models.adapters.with_models())
    # Failures are reported below, with what to check.
    logging.getLogger("jumpseat.adapters.models").addHandler(logging.NullHandler())
    asked: list[str] = []
    try:
        if command.adapter is None:
            found = await models.catalogue.list()
            asked = configured
        elif command.adapter in configured:
            found = await models.catalogue.of_adapter(command.adapter)
            asked = [command.adapter]
        elif command.adapter == COPILOT:
            found = await _of_copilot(models)
        else:
            raise _not_configured(command.adapter, command.options.environ)
    finally:
        await models.connections.close()
    if command.json:
        print_json([_as_json(model) for model in found])
    elif found:
        rows = [("MODEL", "NAME", "CONTEXT", "OUTPUT", "VISION", "TOOLS", "REASONING", "USD PER 1M, IN/OUT")]
        print_table(rows + [_row(model) for model in found])
    failures = [(name, problem) for name in asked if (problem := _list_problem(models, name, command)) is not None]
    for name, problem in failures:
        print_error(f"no list of models from {name}: {problem.text}")
    failed = {name for name, _ in failures}
    for name in asked:
        if name not in failed and not command.json and not any(model.id.startswith(f"{name}/") for model in found):
            print_text(f"no models of {name} are known: name any model that the provider serves as {name}/MODEL")
    return failures[0][1].exit_code if failures else WORKS


def _list_problem(models: Models, name: str, command: Command) -> Diagnosis | None:
    """Return why an adapter's provider has not listed its models, or ``None`` if it has, or need not."""
    try:
        models.adapters.declaration_of(name)
    except ConfigError as error:
        return Diagnosis(NOT_CONFIGURED, str(error))
    failure = models.catalogue.failure(name)
    if isinstance(failure, ProviderRequestError):
        # Not every server lists its models.
        return None
    if isinstance(failure, ProviderError):
        return Explanations(models.adapters, command.options.environ).diagnose_adapter(name, "", failure)
    return None if failure is None else Diagnosis(NOT_CONFIGURED, str(failure))


async def _of_copilot(models: Models) -> list[ModelInfo]:
    login = await models.copilot.own_login()
    if login is None:
        raise ConfigError(f"there is no GitHub token: set one of {', '.join(PROVIDERS[COPILOT].key_variables)}")
    return await models.copilot.models(login)


def _row(info: ModelInfo) -> tuple[str, ...]:
    name = info.name if info.name and info.name not in (info.id, info.id.partition("/")[2]) else "-"
    # The window of an unknown model is an assumption, which sessions work with.
    context = str(info.window) if info.context_window else f"~{info.window}"
    output = info.max_output_tokens
    return (
        info.id if info.enabled else f"{info.id} (not enabled)",
        name,
        context,
        str(output or "-"),
        _yes_or_no(info.vision),
        _yes_or_no(info.tools),
        ", ".join(info.reasoning_efforts or ()) or _yes_or_no(info.reasoning),
        f"{info.price.input:g}/{info.price.output:g}" if info.price else "-",
    )


def _yes_or_no(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"


def _as_json(info: ModelInfo) -> dict[str, Any]:
    known: dict[str, Any] = {
        "id": info.id,
        "name": info.name,
        "vendor": info.vendor,
        "vision": info.vision,
        "tools": info.tools,
        "contextWindow": info.context_window,
        "maxPromptTokens": info.max_prompt_tokens,
        "maxOutputTokens": info.max_output_tokens,
        "reasoning": info.reasoning,
        "reasoningEfforts": info.reasoning_efforts,
        "usdPerMillionTokens": info.price.amounts() if info.price else None,
        "enabled": info.enabled,
    }
    return {name: value for name, value in known.items() if value is not None}


# --- check --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Check:
    """The findings of a check, which may have ended early."""

    facts: Facts
    answer: str | None = None
    rehearsal: Rehearsal | None = None


async def _check(command: Command, models: Models, config: Config) -> int:
    """Try the functions of the adapter, send one small request, and print a paragraph with the result."""
    assert command.adapter is not None
    found = _Check(Facts(command.adapter, command.model or "", command.adapter))
    try:
        diagnosis = await _diagnose(command, models, config, found)
    except JumpseatError as error:
        diagnosis = diagnose(error, found.facts)
    finally:
        await models.connections.close()
    facts, rehearsal = found.facts, found.rehearsal
    if command.json:
        result = {
            "adapter": facts.adapter,
            "model": facts.model or None,
            "address": facts.address if facts.address != facts.adapter else None,
            "works": diagnosis.exit_code == WORKS,
            "answer": found.answer,
            "problems": [asdict(problem) for problem in rehearsal.problems] or None if rehearsal else None,
            "warning": rehearsal.warning or None if rehearsal else None,
            "explanation": diagnosis.text,
            "exitCode": diagnosis.exit_code,
        }
        print_json({key: value for key, value in result.items() if value is not None})
        return diagnosis.exit_code
    if diagnosis.exit_code == WORKS:
        print_text(f"{_model_name(facts)} works: asked for one word, the model answered {found.answer!r}.")
    else:
        print_text(f"{_model_name(facts)} does not work. {diagnosis.text}")
    if rehearsal is not None and not rehearsal.problems:
        # An answer of the provider has tried all that the invented ones could not.
        for text in ("" if diagnosis.exit_code == WORKS else rehearsal.untried, rehearsal.warning):
            if text:
                print_text(text)
    return diagnosis.exit_code


async def _diagnose(command: Command, models: Models, config: Config, found: _Check) -> Diagnosis:
    """Try the functions of the adapter, then the provider, and note in ``found`` what is known so far.

    Raises:
        JumpseatError: the adapter cannot be called.
    """
    assert command.adapter is not None
    name, environ = command.adapter, command.options.environ
    resolved = await _to_check(models, name, command.model, environ)
    found.facts = replace(found.facts, model=resolved.wire_name)
    found.rehearsal = await _rehearse(resolved)
    if found.rehearsal is not None and found.rehearsal.problems:
        return list_problems(problem.text for problem in found.rehearsal.problems)
    found.facts = await _facts(name, resolved, known_adapters(models.adapters, config, environ), environ)
    with anyio.move_on_after(command.timeout_s) as limit:
        if not resolved.wire_name:
            resolved = await _first_listed(models, name)
            found.facts = replace(found.facts, model=resolved.wire_name)
        found.answer = await _ask(resolved)
    if limit.cancelled_caught:
        return Diagnosis(
            UNREACHABLE,
            f"{found.facts.address} sent no complete response within {command.timeout_s:g} seconds. If the "
            "provider is slow, try a longer --timeout; or a firewall may drop the requests.",
        )
    return Diagnosis(WORKS, f"Asked for one word, the model answered {found.answer!r}.")


async def _rehearse(resolved: ResolvedModel) -> Rehearsal | None:
    """Try the functions of a declared adapter; ``None`` for other adapters."""
    from jumpseat.adapters.declared.pipeline import DeclaredCaller
    from jumpseat.adapters.transport.http import HttpModel

    model = resolved.model
    if not isinstance(model, HttpModel) or not isinstance(model.caller, DeclaredCaller):
        return None
    from jumpseat.adapters.declared.rehearsal import rehearse

    return await rehearse(model.caller, resolved.wire_name or "m", vision=resolved.info.vision is True)


def _model_name(facts: Facts) -> str:
    return f"{facts.adapter}/{facts.model}" if facts.model else facts.adapter


async def _to_check(models: Models, name: str, model: str | None, environ: Mapping[str, str]) -> ResolvedModel:
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
        if model is None:
            return await models.of_adapter(name, "", settings)
        model = f"{name}/{model}"
    elif name == COPILOT:
        if model is None:
            model = next((model.id for model in await _of_copilot(models) if model.enabled), None)
    else:
        raise _not_configured(name, environ)
    return await models.resolve(settings.with_options(model=model))


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
    return await models.resolve(SessionSettings.of(Path.cwd(), model=chosen.id))


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


async def _facts(
    name: str, resolved: ResolvedModel, known: list[KnownAdapter], environ: Mapping[str, str]
) -> Facts:
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
    return Facts(
        adapter=name,
        model=resolved.wire_name,
        address=address,
        key_env=next((adapter.key_env for adapter in known if adapter.name == name), None),
        has_key=bool(key),
        malformed_key=key is not None and is_malformed(key),
        proxy_envs=proxies,
    )


# --- shared -------------------------------------------------------------------------------------------------------


def _not_configured(name: str, environ: Mapping[str, str]) -> ConfigError:
    if name not in PROVIDERS:
        return ConfigError(f"unknown adapter {name!r}: run jumpseat adapters for a list")
    provider = PROVIDERS[name]
    if provider.environment is not None:
        variables = f"{provider.key_variable} or {provider.environment.base_url}"
        return ConfigError(f"adapter {name!r} is not configured: set {variables}, or add it to config.toml")
    return ConfigError(f"adapter {name!r} is not configured: add it to config.toml")


def _report(error: JumpseatError) -> int:
    print_error(str(error))
    if isinstance(error, ProviderError):
        return diagnose(error, Facts("", "", "")).exit_code
    return NOT_CONFIGURED
