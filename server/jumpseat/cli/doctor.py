"""``jumpseat doctor``: one screen with what is installed, set up, reachable and confined, and what to do.

A key is never shown, only whether there is one.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
from msgspec import Struct
from msgspec.structs import asdict

from jumpseat.adapters.models.checking import check_model
from jumpseat.adapters.models.configured import TRIAL
from jumpseat.adapters.models.explanations import proxies_in
from jumpseat.adapters.models.known_adapters import COPILOT, place_of
from jumpseat.adapters.models.resolver import Models
from jumpseat.adapters.setup.providers import Setup
from jumpseat.cli.commands import FAILED, CommandContext, CommandParser, print_json, print_text
from jumpseat.cli.models import with_models
from jumpseat.config import Config, load_config
from jumpseat.declared.places import declaration_files
from jumpseat.errors import ConfigError
from jumpseat.network.site import has_page
from jumpseat.store.user.provider_keys import ProviderKeys
from jumpseat.system.installation import how_to_add, how_to_add_page
from jumpseat_protocol.version import __version__

DESCRIPTION: Final = (
    "Show what is installed, set up, reachable and confined, and what to do about each fault. The exit code is 1 if"
    " there is one. With --try, the default model gets one small request, which may cost a fraction of a cent."
)

State: TypeAlias = Literal["ok", "note", "fault"]

MARKS: Final[dict[State, str]] = {"ok": "✓", "note": "·", "fault": "✗"}

EXTRAS: Final = {
    "web": ("websockets", "the server of the page for browsers, and WebSocket clients"),
    "keyring": ("keyring", "keys in the keyring of the system"),
    "cluster": ("nats", "sessions in a cluster"),
    "otel": ("opentelemetry.sdk", "telemetry"),
}

EDITORS: Final = {
    "code": ("VS Code", "docs/vscode.md"),
    "nvim": ("Neovim", "clients/neovim/README.md"),
    "zed": ("Zed", "docs/editors.md"),
    "emacs": ("Emacs", "docs/editors.md"),
}

TIMEOUT_S: Final = 20.0


class Finding(Struct, frozen=True):
    """A line of the screen. ``todo`` says what to do."""

    state: State
    text: str
    todo: str | None = None


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--try", dest="tries", action="store_true", help="send one small request to the default model"
    )
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    # Failures are part of the screen.
    logging.getLogger("jumpseat.adapters.models").addHandler(logging.NullHandler())
    sections: dict[str, list[Finding]] = {"installed": list(_installed()), "configured": list(_configured(ctx))}
    if not any(finding.state == "fault" for finding in sections["configured"]):
        code = with_models(ctx, partial(_reach, ctx, args, sections))
        if code:
            return code
    sections["confined"] = list(_confined(ctx))
    sections["editors and SDKs"] = list(_clients(ctx))
    faults = sum(finding.state == "fault" for findings in sections.values() for finding in findings)
    if args.json:
        listed = {name: [asdict(finding) for finding in findings] for name, findings in sections.items()}
        print_json({"faults": faults, "sections": listed})
    else:
        for name, findings in sections.items():
            print_text(name)
            for finding in findings:
                print_text(f"  {MARKS[finding.state]} {finding.text}")
                if finding.todo is not None:
                    print_text(f"      {finding.todo}")
    return FAILED if faults else 0


def _installed() -> Iterator[Finding]:
    yield Finding("ok", f"jumpseat {__version__} in {Path(__file__).parents[1]}")
    yield Finding("ok", f"Python {sys.version.partition(' ')[0]}, {sys.executable}")
    for extra, (module, about) in EXTRAS.items():
        if _has_module(module):
            yield Finding("ok", f"{extra}: {about}")
        else:
            yield Finding("note", f"{extra} is not installed: {about}", how_to_add(extra))
    if has_page():
        yield Finding("ok", "the page for browsers", "jumpseat web opens it")
    else:
        yield Finding("note", "the page for browsers is missing from this installation", how_to_add_page())


def _has_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _configured(ctx: CommandContext) -> Iterator[Finding]:
    home = ctx.home
    by = "COPILOT_HOME" if ctx.environ.get("COPILOT_HOME") else "the default"
    yield Finding("ok", f"home folder {home} ({by}){'' if home.is_dir() else ', not there yet'}")
    file = home / "config.toml"
    try:
        config = load_config(home)
    except ConfigError as error:
        yield Finding("fault", str(error), "correct this line")
        return
    if file.exists():
        adapters = f", adapters: {', '.join(config.adapters)}" if config.adapters else ""
        yield Finding("ok", f"{file}: default model {config.default_model or 'not chosen'}{adapters}")
    else:
        yield Finding("note", f"no {file.name} yet", "jumpseat setup writes it")
    if files := declaration_files(home / "adapters"):
        yield Finding("ok", f"adapters in files: {', '.join(path.name for path in files)}")
    for variable, place in ProviderKeys(home).places().items():
        hidden = ", hidden by the variable in the environment" if variable in ctx.environ else ""
        yield Finding("ok", f"entered key {variable}, in the {place}{hidden}")
    if not os.access(home if home.exists() else home.parent, os.W_OK):
        yield Finding("fault", f"{home} is not writable", "make it writable, or set COPILOT_HOME")


async def _reach(
    ctx: CommandContext,
    args: argparse.Namespace,
    sections: dict[str, list[Finding]],
    models: Models,
    config: Config,
) -> int:
    del config
    sections["reachable"] = [finding async for finding in _reachable(ctx, models, tries=args.tries)]
    return 0


async def _reachable(ctx: CommandContext, models: Models, *, tries: bool) -> AsyncIterator[Finding]:
    for variable in proxies_in(ctx.environ):
        yield Finding("note", f"requests go through the proxy {variable}={place_of(ctx.environ[variable])}")
    setup = Setup(models, ProviderKeys(ctx.home), ctx.home)
    providers = await setup.providers()
    for provider in providers:
        if provider.ready:
            yield Finding("ok", f"{provider.name}: {provider.detail}")
        elif provider.kind == "configured":
            yield Finding("fault", f"{provider.name}: {provider.detail}", "jumpseat setup enters a key")
    if not await setup.has_model():
        yield Finding(
            "fault",
            "no model yet",
            f"jumpseat setup connects one; to try it without: jumpseat chat --model {TRIAL}",
        )
        return
    default = setup.default_model(Path.cwd())
    name, _, model = (default or "").partition("/")
    if default in models.config.models:
        alias = models.config.models[default]
        name, model = alias.adapter, alias.model
    if tries and name:
        found = await check_model(models, name, model or None, TIMEOUT_S)
        state: State = "ok" if found.works else "fault"
        yield Finding(state, f"default model {default}: {found.diagnosis.text}")
        return
    yield Finding(
        "ok", f"default model: {default or 'that of the first provider'}", "jumpseat doctor --try asks it"
    )
    chosen = name or next((one.name for one in providers if one.ready and one.name != COPILOT), "")
    if models.adapters.find(chosen) is None:
        return
    with anyio.move_on_after(TIMEOUT_S):
        await models.catalogue.of_adapter(chosen, refresh=True)
    if (failure := models.catalogue.failure(chosen)) is not None:
        yield Finding("fault", f"{chosen} does not list its models: {failure}", f"jumpseat check {chosen}")
    else:
        yield Finding("ok", f"{chosen} was reached")


def _confined(ctx: CommandContext) -> Iterator[Finding]:
    from jumpseat.sandbox.probes import examine

    try:
        settings = load_config(ctx.home).sandbox
    except ConfigError:
        # It is a fault of its own.
        settings = Config().sandbox
    found = examine(ctx.environ)
    permitted = [one for one in found if settings.mechanisms is None or one.mechanism in settings.mechanisms]
    used = next((one.mechanism for one in permitted if one.problem is None), None)
    if settings.mode == "off":
        yield Finding("note", 'commands run with all rights of the user: sandbox.mode is "off" in config.toml')
    elif used is not None:
        yield Finding("ok", f"commands are confined by {used}", "jumpseat check sandbox shows by what")
    else:
        yield Finding("note", "nothing confines commands here: they run with all rights of the user")
        for one in found:
            problem = one.problem or "sandbox.mechanisms does not have it"
            yield Finding("note", f"{one.mechanism}: {problem}", "jumpseat check sandbox shows why")
    yield _requiring(used, is_required=settings.mode == "require")


def _requiring(mechanism: str | None, *, is_required: bool) -> Finding:
    """Return what ``sandbox.mode = "require"`` means on this machine."""
    if mechanism is None and is_required:
        return Finding(
            "fault",
            'sandbox.mode is "require" and nothing confines commands here: none can run',
            'jumpseat check sandbox shows why; with "auto", commands run unconfined, each after a question',
        )
    effect = (
        "no command can run"
        if mechanism is None
        else "commands that the sandbox stops, such as git push and docker, fail, and nobody is asked"
    )
    if is_required:
        return Finding("ok", f'sandbox.mode = "require": {effect}')
    return Finding("note", f'sandbox.mode is "auto"; with "require", {effect}')


def _clients(ctx: CommandContext) -> Iterator[Finding]:
    which: Callable[[str], str | None] = partial(shutil.which, path=ctx.environ.get("PATH"))
    found = [(name, about) for name, about in EDITORS.items() if which(name)]
    for name, (title, page) in found:
        yield Finding("ok", f"{title} ({name})", f"{page} connects it")
    if _has_module("copilot"):
        yield Finding("ok", "the Copilot SDK for Python", "docs/languages.md shows how to use it")
    if not found:
        yield Finding("note", "no editor that is known here")
    if not which("git"):
        yield Finding("fault", "git is not in PATH", "install git: changes and projects are found with it")
