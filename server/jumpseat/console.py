"""The commands ``adapters``, ``models`` and ``check``: list adapters and models, and test one. They serve nothing.

Results go to stdout, as text or with ``--json`` as JSON; errors go to stderr. A key is never shown, only whether it
is set.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import anyio

from jumpseat.adapters.models.diagnosis import NOT_CONFIGURED, UNREACHABLE, WORKS, Diagnosis, Facts, diagnose
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelInfo, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.cli import Command
from jumpseat.config import AdapterConfig, Config, ModelConfig, home_folder, load_config
from jumpseat.errors import ConfigError, JumpseatError, ProviderError, ProviderProtocolError, ProviderRequestError

if TYPE_CHECKING:
    from jumpseat.adapters.declared.known import Known

COPILOT: Final = "copilot"
ANSWER_TOKENS: Final = 256
"""The output limit of the test request: enough for a model that always reasons first."""
_GITHUB_TOKENS: Final = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class KnownAdapter:
    """An adapter as shown by ``jumpseat adapters``.

    ``origin`` is where it is configured; ``usable`` is true if models can be named as ``name/model``. ``key_env``
    is the environment variable of its key; ``has_key`` is ``None`` if it has no such variable.
    """

    name: str
    origin: str
    type: str
    address: str | None
    key_env: str | None
    has_key: bool | None
    usable: bool
    models: int


def run(command: Command) -> int:
    """Run ``command`` and return the exit code."""
    try:
        config = load_config(home_folder(command.options.environ), environment_providers())
        models = Models(config, command.options, home_folder(command.options.environ))
        match command.name:
            case "adapters":
                return _show_adapters(command, known_adapters(models, config, command.options.environ))
            case "models":
                return anyio.run(_show_models, command, models)
            case "check":
                return anyio.run(_check, command, models, config)
    except JumpseatError as error:
        return _report(error)


# --- adapters -----------------------------------------------------------------------------------------------------


def known_adapters(models: Models, config: Config, environ: Mapping[str, str]) -> list[KnownAdapter]:
    """Return all adapters: the configured ones, then the built-in ones without a key or table."""
    found: list[KnownAdapter] = []
    for name, (adapter, models_of) in models.adapters.with_models().items():
        declared = models.adapters.declaration_of(name)
        if declared is not None:
            found.append(_declared_adapter(name, declared, environ))
        else:
            found.append(_configured_adapter(name, adapter, models_of, name in config.adapters, environ))
    configured = {adapter.name for adapter in found}
    return found + [_built_in_adapter(name, environ) for name in PROVIDERS if name not in configured]


def _configured_adapter(
    name: str, adapter: AdapterConfig, declared: Sequence[ModelConfig], in_file: bool, environ: Mapping[str, str]
) -> KnownAdapter:
    kind = canonical_type(adapter.type or name)
    key_env, address = adapter.api_key_env, adapter.base_url
    if kind in PROVIDERS:
        built_in = PROVIDERS[kind]
        key_env = key_env or (None if adapter.base_url else built_in.key_variable)
        address = address or built_in.default_base_url
    has_key = bool(environ.get(key_env)) if key_env else None
    return KnownAdapter(
        name=name,
        origin="config.toml" if in_file else "environment",
        type=kind,
        address=_place(address),
        key_env=key_env,
        has_key=has_key,
        # A local server accepts requests without a key, but a key named in the file must be set.
        usable=not (adapter.api_key_env and not has_key) and (kind == SCRIPTED or address is not None),
        models=len(declared),
    )


def _declared_adapter(name: str, known: Known, environ: Mapping[str, str]) -> KnownAdapter:
    declaration = known.declaration
    texts = {key: _entry_text(value) for key, value in declaration.env.items()}
    key, address = texts.get("api_key"), texts.get("base_url") or declaration.url
    # Commands, files and functions are not evaluated for a list, and a key is never shown.
    key_env = key if key is not None and _VARIABLE.fullmatch(key) else None
    choices: Any = declaration.settings["model"].choices if "model" in declaration.settings else None
    return KnownAdapter(
        name=name,
        origin="config.toml" if known.origin == "configuration" else known.origin,
        type=known.kind or name,
        address=_place(address),
        key_env=key_env,
        has_key=bool(environ.get(key_env)) if key_env else None,
        usable=key_env is None or bool(environ.get(key_env)),
        models=len(choices) if isinstance(choices, (list, dict)) else 0,  # pyright: ignore[reportUnknownArgumentType]
    )


def _entry_text(raw: Any) -> str | None:
    """Return the value of an ``env`` entry if it is a string."""
    value = cast("Mapping[str, Any]", raw).get("value") if isinstance(raw, Mapping) else raw
    return value if isinstance(value, str) else None


def _built_in_adapter(name: str, environ: Mapping[str, str]) -> KnownAdapter:
    provider = PROVIDERS[name]
    key_env = provider.key_variable
    if name == COPILOT:
        key_env = next((variable for variable in _GITHUB_TOKENS if environ.get(variable)), key_env)
    return KnownAdapter(
        name=name,
        origin="built in",
        type=name,
        address=_place(provider.default_base_url),
        key_env=key_env,
        has_key=bool(environ.get(key_env)) if key_env else None,
        # Copilot models are named without an adapter, so no table is needed.
        usable=name == COPILOT and bool(environ.get(key_env or "")),
        models=0,
    )


def _show_adapters(command: Command, found: list[KnownAdapter]) -> int:
    if command.json:
        _print_json(
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
                }
                for adapter in found
            ]
        )
        return WORKS
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
    ]
    _print_table(rows)
    if not any(adapter.usable for adapter in found):
        _print("\nNo adapter can be used yet: set an adapter's variable, or configure one in config.toml.")
    return WORKS


def _key_state(adapter: KnownAdapter) -> str:
    if adapter.key_env is None:
        return "none named"
    return f"{adapter.key_env}: {'set' if adapter.has_key else 'not set'}"


# --- models -------------------------------------------------------------------------------------------------------


async def _show_models(command: Command, models: Models) -> int:
    configured = models.adapters.with_models()
    silent: list[str] = []
    try:
        if command.adapter is None:
            found = await models.catalogue.list()
            silent = [name for name in configured if not any(model.id.startswith(f"{name}/") for model in found)]
        elif command.adapter in configured:
            found = await models.catalogue.of_adapter(command.adapter)
            silent = [] if found else [command.adapter]
        elif command.adapter == COPILOT:
            found = await _of_copilot(models)
        else:
            raise _not_configured(command.adapter, command.options.environ)
    finally:
        await models.connections.close()
    if command.json:
        _print_json([_as_json(model) for model in found])
        return WORKS
    if found:
        rows = [("MODEL", "NAME", "CONTEXT", "OUTPUT", "VISION", "TOOLS", "REASONING", "USD PER 1M, IN/OUT")]
        _print_table(rows + [_row(model) for model in found])
    for name in silent:
        _print(f"no models of {name} are known: name any model that the provider serves as {name}/MODEL")
    return WORKS


async def _of_copilot(models: Models) -> list[ModelInfo]:
    login = await models.copilot.own_login()
    if login is None:
        raise ConfigError(f"there is no GitHub token: set one of {', '.join(_GITHUB_TOKENS)}")
    return await models.copilot.models(login)


def _row(info: ModelInfo) -> tuple[str, ...]:
    name = info.name if info.name and info.name not in (info.id, info.id.partition("/")[2]) else "-"
    context, output = info.context_window or info.max_prompt_tokens, info.max_output_tokens
    return (
        info.id if info.enabled else f"{info.id} (not enabled)",
        name,
        str(context or "-"),
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


async def _check(command: Command, models: Models, config: Config) -> int:
    """Send one small request, and print a paragraph with the result."""
    assert command.adapter is not None
    name, environ = command.adapter, command.options.environ
    facts = Facts(name, command.model or "", name)
    answer: str | None = None
    try:
        resolved = await _to_check(models, name, command.model, environ)
        facts = await _facts(name, resolved, known_adapters(models, config, environ), environ)
        with anyio.move_on_after(command.timeout_s) as limit:
            if not resolved.wire_name:
                resolved = await _first_listed(models, name)
                facts = replace(facts, model=resolved.wire_name)
            answer = await _ask(resolved)
        diagnosis = Diagnosis(WORKS, f"Asked for one word, the model answered {answer!r}.")
        if limit.cancelled_caught:
            diagnosis = Diagnosis(
                UNREACHABLE,
                f"{facts.address} sent no complete response within {command.timeout_s:g} seconds. If the provider "
                "is slow, try a longer --timeout; or a firewall may drop the requests.",
            )
    except JumpseatError as error:
        diagnosis = diagnose(error, facts)
    finally:
        await models.connections.close()
    if command.json:
        result = {
            "adapter": facts.adapter,
            "model": facts.model or None,
            "address": facts.address if facts.address != facts.adapter else None,
            "works": diagnosis.exit_code == WORKS,
            "answer": answer,
            "explanation": diagnosis.text,
            "exitCode": diagnosis.exit_code,
        }
        _print_json({key: value for key, value in result.items() if value is not None})
    elif diagnosis.exit_code == WORKS:
        _print(f"{_model_name(facts)} works: asked for one word, the model answered {answer!r}.")
    else:
        _print(f"{_model_name(facts)} does not work. {diagnosis.text}")
    return diagnosis.exit_code


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
    return await models.resolve(replace(settings, model=model))


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
    return await models.resolve(SessionSettings(cwd=Path.cwd(), model=chosen.id))


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
    proxies = tuple(variable for variable in _PROXIES if environ.get(variable))
    if isinstance(model, HttpModel):
        endpoint, network = await model.caller.resolve_endpoint()
        if network is not None and network.proxy:
            proxies = ("the adapter's --proxy",)
        key = endpoint.api_key or endpoint.bearer_token
        address = _place(endpoint.base_url) or name
    return Facts(
        adapter=name,
        model=resolved.wire_name,
        address=address,
        key_env=next((adapter.key_env for adapter in known if adapter.name == name), None),
        has_key=bool(key),
        malformed_key=key is not None and any(character in "\"'" or character.isspace() for character in key),
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
    print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command speaks to its user
    if isinstance(error, ProviderError):
        return diagnose(error, Facts("", "", "")).exit_code
    return NOT_CONFIGURED


def _place(address: str | None) -> str | None:
    """Return a URL without user, password and query, which may be secret."""
    if not address:
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return "(invalid URL)"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _print_table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        _print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_json(value: Any) -> None:
    _print(json.dumps(value, indent=2, ensure_ascii=False))


def _print(text: str) -> None:
    print(text)  # noqa: T201 - a command speaks to its user
