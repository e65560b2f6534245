"""``jumpseat models``: list the available models with their known properties.

The commands ``adapters`` and ``check`` share the models of the configuration.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import anyio

from jumpseat.adapters.models.checking import models_of_copilot, not_configured
from jumpseat.adapters.models.configured import local_server
from jumpseat.adapters.models.diagnosis import NOT_CONFIGURED, WORKS, Diagnosis, Facts, diagnose
from jumpseat.adapters.models.explanations import Explanations
from jumpseat.adapters.models.known_adapters import COPILOT
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.providers import environment_providers
from jumpseat.agent.model import ModelInfo
from jumpseat.cli.commands import CommandContext, CommandParser, print_error, print_json, print_table, print_text
from jumpseat.config import Config, load_config
from jumpseat.errors import ConfigError, JumpseatError, ProviderError, ProviderRequestError
from jumpseat.store.user.accounts import Accounts
from jumpseat.store.user.provider_keys import ProviderKeys

DESCRIPTION: Final = "List the available models with their known properties."


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("adapter", nargs="?", help="list only the models of this adapter")
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    return with_models(ctx, partial(_show_models, ctx, args))


def with_models(ctx: CommandContext, command: Callable[[Models, Config], Awaitable[int]]) -> int:
    """Run a command on the models of the configuration; a failure gets the exit code of its diagnosis."""
    try:
        config = load_config(ctx.home, environment_providers())
        home = ctx.home
        models = Models(
            config,
            ctx.options,
            home,
            config_file=home / "config.toml",
            logins=Accounts(home),
            keys=ProviderKeys(home),
        )
        return anyio.run(_run_and_close, command, models, config)
    except JumpseatError as error:
        print_error(str(error))
        return diagnose(error, Facts("", "", "")).exit_code if isinstance(error, ProviderError) else NOT_CONFIGURED


async def _run_and_close(
    command: Callable[[Models, Config], Awaitable[int]], models: Models, config: Config
) -> int:
    try:
        return await command(models, config)
    finally:
        await models.connections.close()


async def _show_models(ctx: CommandContext, args: argparse.Namespace, models: Models, config: Config) -> int:
    """Print the models of an adapter, or of all; the exit code is that of the first failure to list them."""
    del ctx, config
    configured = list(models.adapters.with_models())
    # Failures are reported below, with what to check.
    logging.getLogger("jumpseat.adapters.models").addHandler(logging.NullHandler())
    asked: list[str] = []
    if args.adapter is None:
        found = await models.catalogue.list()
        asked = configured
    elif args.adapter in configured or local_server(args.adapter) is not None:
        found = await models.catalogue.of_adapter(args.adapter)
        asked = [args.adapter]
    elif args.adapter == COPILOT:
        found = await models_of_copilot(models)
    else:
        raise not_configured(args.adapter, configured)
    if args.json:
        print_json([_as_json(model) for model in found])
    elif found:
        rows = [("MODEL", "NAME", "CONTEXT", "OUTPUT", "VISION", "TOOLS", "REASONING", "USD PER 1M, IN/OUT")]
        print_table(rows + [_row(model) for model in found])
    problems = {name: _list_problem(models, name) for name in asked}
    failures = [(name, problem) for name, problem in problems.items() if problem is not None]
    for name, problem in failures:
        print_error(f"no list of models from {name}: {problem.text}")
    failed = {name for name, _ in failures}
    for name in asked:
        if name not in failed and not args.json and not any(model.id.startswith(f"{name}/") for model in found):
            print_text(f"no models of {name} are known: name any model that the provider serves as {name}/MODEL")
    return failures[0][1].exit_code if failures else WORKS


def _list_problem(models: Models, name: str) -> Diagnosis | None:
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
        return Explanations(models.adapters, models.environ).diagnose_adapter(name, "", failure)
    return None if failure is None else Diagnosis(NOT_CONFIGURED, str(failure))


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
