"""``jumpseat check``: send one small request to a model of an adapter, and diagnose a failure.

A key is never shown, only whether it is set.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct
from msgspec.structs import asdict, replace

from jumpseat.adapters.models.diagnosis import UNREACHABLE, WORKS, Diagnosis, Facts, diagnose, list_problems
from jumpseat.adapters.models.explanations import ADAPTER_PROXY, is_malformed, proxies_in
from jumpseat.adapters.models.known_adapters import COPILOT, KnownAdapter, known_adapters, place_of
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.settings import SessionSettings
from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_text
from jumpseat.cli.models import models_of_copilot, not_configured, with_models
from jumpseat.config import Config
from jumpseat.errors import ConfigError, JumpseatError, ProviderProtocolError, ProviderRequestError

if TYPE_CHECKING:
    from jumpseat.adapters.declared.dry_run import DryRun

DESCRIPTION: Final = (
    "Send one small request to a model of an adapter, and diagnose a failure. 'jumpseat check sandbox' says what"
    " confines commands on this machine, and what it does not stop."
)

SANDBOX: Final = "sandbox"
"""In the place of an adapter: check the sandbox."""

ANSWER_TOKENS: Final = 256
"""The output limit of the test request: enough for a model that always reasons first."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("adapter", help="name of the adapter, as in 'jumpseat adapters', or 'sandbox'")
    parser.add_argument(
        "model", nargs="?", help="default: the first model that the adapter declares or its provider lists"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=60.0, metavar="S", help="time-out in seconds; default: 60"
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="with 'sandbox': print what each mechanism stops as a table in Markdown",
    )
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    if args.adapter == SANDBOX:
        from jumpseat.cli.check_sandbox import check_sandbox

        return check_sandbox(ctx.environ, as_json=args.json, as_table=args.table)
    return with_models(ctx, partial(_check, ctx, args))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, at most 86400, got {text!r}")
    return seconds


class _Check(Struct):
    """The findings of a check, which may have ended early."""

    facts: Facts
    answer: str | None = None
    dry_run: DryRun | None = None


async def _check(ctx: CommandContext, args: argparse.Namespace, models: Models, config: Config) -> int:
    """Try the functions of the adapter, send one small request, and print a paragraph with the result."""
    found = _Check(Facts(args.adapter, args.model or "", args.adapter))
    try:
        diagnosis = await _diagnose(ctx, args, models, config, found)
    except JumpseatError as error:
        diagnosis = diagnose(error, found.facts)
    facts, dry_run = found.facts, found.dry_run
    if args.json:
        result = {
            "adapter": facts.adapter,
            "model": facts.model or None,
            "address": facts.address if facts.address != facts.adapter else None,
            "works": diagnosis.exit_code == WORKS,
            "answer": found.answer,
            "problems": [asdict(problem) for problem in dry_run.problems] or None if dry_run else None,
            "warning": dry_run.warning or None if dry_run else None,
            "explanation": diagnosis.text,
            "exitCode": diagnosis.exit_code,
        }
        print_json({key: value for key, value in result.items() if value is not None})
        return diagnosis.exit_code
    if diagnosis.exit_code == WORKS:
        print_text(f"{_model_name(facts)} works: asked for one word, the model answered {found.answer!r}.")
    else:
        print_text(f"{_model_name(facts)} does not work. {diagnosis.text}")
    if dry_run is not None and not dry_run.problems:
        # The provider's answer exercised the handlers that samples cannot.
        for text in ("" if diagnosis.exit_code == WORKS else dry_run.untried, dry_run.warning):
            if text:
                print_text(text)
    return diagnosis.exit_code


async def _diagnose(
    ctx: CommandContext, args: argparse.Namespace, models: Models, config: Config, found: _Check
) -> Diagnosis:
    """Try the functions of the adapter, then the provider, and note in ``found`` what is known so far.

    Raises:
        JumpseatError: the adapter cannot be called.
    """
    name, environ = args.adapter, ctx.environ
    resolved = await _to_check(models, name, args.model)
    found.facts = replace(found.facts, model=resolved.wire_name)
    found.dry_run = await _try_functions(resolved)
    if found.dry_run is not None and found.dry_run.problems:
        return list_problems(problem.text for problem in found.dry_run.problems)
    found.facts = await _facts(name, resolved, known_adapters(models.adapters, config, environ), environ)
    with anyio.move_on_after(args.timeout) as limit:
        if not resolved.wire_name:
            resolved = await _first_listed(models, name)
            found.facts = replace(found.facts, model=resolved.wire_name)
        found.answer = await _ask(resolved)
    if limit.cancelled_caught:
        return Diagnosis(
            UNREACHABLE,
            f"{found.facts.address} sent no complete response within {args.timeout:g} seconds. If the "
            "provider is slow, try a longer --timeout; or a firewall may drop the requests.",
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


def _model_name(facts: Facts) -> str:
    return f"{facts.adapter}/{facts.model}" if facts.model else facts.adapter


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
        if model is None:
            return await models.of_adapter(name, "", settings)
        model = f"{name}/{model}"
    elif name == COPILOT:
        if model is None:
            model = next((model.id for model in await models_of_copilot(models) if model.enabled), None)
    else:
        raise not_configured(name, configured)
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
