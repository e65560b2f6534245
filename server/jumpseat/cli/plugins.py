"""``jumpseat plugins``: install, update and remove plugins, and agree to what they run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from jumpseat.cli.commands import (
    FAILED,
    CommandContext,
    CommandParser,
    print_error,
    print_json,
    print_table,
    print_text,
)
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.sessions.plugin_programs import programs_of
from jumpseat.store.plugins.installed_plugins import InstalledPlugin, InstalledPlugins, update_each
from jumpseat.store.plugins.manifests import read_plugin
from jumpseat.store.plugins.marketplaces import Marketplaces
from jumpseat.system.child_environment import ChildEnvironment
from jumpseat_protocol.safe import one_line

NOT_AGREED: Final = 3


DESCRIPTION: Final = "Plugins of all sessions."


def add_arguments(parser: CommandParser) -> None:
    def add(name: str, text: str, argument: str | None = None, **options: Any) -> CommandParser:
        command = parser.add_command(name, text)
        if argument is not None:
            command.add_argument("name", metavar=argument, **options)
        return command

    add("list", "list the installed plugins").add_json()
    add("install", "install a plugin", "SOURCE", help="plugin@marketplace, folder, owner/repo or URL")
    add("update", "copy a plugin from its source again", "NAME", nargs="?", help="by default, all plugins")
    add("enable", "enable a plugin", "NAME")
    add("disable", "disable a plugin", "NAME")
    add("remove", "remove a plugin and its files", "NAME")
    trust = add("trust", "show what a plugin runs, and agree to it", "NAME")
    trust.add_argument("--yes", action="store_true", help="agree without a question")
    listing = add("marketplaces", "list, add, refresh and remove marketplaces")
    listing.add_argument(
        "action", nargs="?", choices=("list", "add", "browse", "refresh", "remove"), default="list"
    )
    listing.add_argument("name", nargs="?", metavar="NAME", help="name of a marketplace; for add, its source")
    listing.add_argument("--force", action="store_true", help="remove the marketplace with its plugins")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    # git gets the user's environment without the credentials of model providers.
    variables = ChildEnvironment(ctx.options.whole_environ).variables
    marketplaces = Marketplaces(ctx.home, variables)
    return anyio.run(_run, args, InstalledPlugins(ctx.home, marketplaces, variables), marketplaces)


async def _run(args: argparse.Namespace, installed: InstalledPlugins, marketplaces: Marketplaces) -> int:
    match args.command:
        case "list":
            return _list(installed, as_json=args.json)
        case "install":
            done = await installed.install(args.name, Path.cwd())
            print_text(f"Installed {done.plugin.spec} with {done.skills} skills.")
            return _announce(installed, done.plugin)
        case "update":
            return await _update(installed, args.name)
        case "enable" | "disable":
            await installed.switch([installed.find(args.name).spec], on=args.command == "enable")
            print_text(f"{args.name} is {args.command}d.")
            return 0
        case "remove":
            await installed.uninstall(installed.find(args.name))
            print_text(f"Removed {args.name}.")
            return 0
        case "trust":
            return await _trust(installed, installed.find(args.name), agreed=args.yes)
        case _:
            return await _marketplaces(args, installed, marketplaces)


def _list(installed: InstalledPlugins, *, as_json: bool) -> int:
    rows = [
        {
            "name": plugin.spec,
            "version": plugin.version,
            "enabled": plugin.enabled,
            "runs": len(programs_of(read_plugin(installed.folder_of(plugin)))),
            "trusted": plugin.trusted,
        }
        for plugin in installed.all()
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        print_text("There are no plugins: 'jumpseat plugins install' adds one.")
    else:
        words = {True: "yes", False: "no", None: "-"}
        shown = [
            tuple(words[v] if v is None or isinstance(v, bool) else one_line(str(v)) for v in row.values())
            for row in rows
        ]
        print_table([tuple(rows[0]), *shown])
    return 0


async def _update(installed: InstalledPlugins, name: str | None) -> int:
    if name is not None:
        done = await installed.update(installed.find(name))
        print_text(
            f"Updated {done.plugin.spec} from {done.previous_version or '-'} to {done.plugin.version or '-'}."
        )
        return _announce(installed, done.plugin)
    failed = False
    for plugin, done in await update_each(installed):
        if isinstance(done, JumpseatError):
            failed = True
            print_error(one_line(f"{plugin.spec}: {done}"))
        else:
            print_text(f"Updated {plugin.spec} from {plugin.version or '-'} to {done.plugin.version or '-'}.")
            _announce(installed, done.plugin)
    return FAILED if failed else 0


def _announce(installed: InstalledPlugins, plugin: InstalledPlugin) -> int:
    """Tell the user that a plugin has programs that do not run yet."""
    if not plugin.trusted and programs_of(read_plugin(installed.folder_of(plugin))):
        print_text(f"It has programs that do not run yet. See them with: jumpseat plugins trust {plugin.spec}")
    return 0


async def _trust(installed: InstalledPlugins, plugin: InstalledPlugin, *, agreed: bool) -> int:
    programs = programs_of(read_plugin(installed.folder_of(plugin)))
    if not programs:
        print_text(f"{plugin.spec} runs no programs.")
        return 0
    print_text(f"{plugin.spec} runs these programs with your rights, in all sessions:\n")
    print_table([("what", "name", "command"), *(tuple(one_line(text) for text in program) for program in programs)])
    print_text(f"\nThe files of the plugin are in {installed.folder_of(plugin)}. Any change of them asks again.")
    if not agreed:
        if not sys.stdin.isatty():
            print_error("nothing was changed: agree with --yes, or at a terminal")
            return NOT_AGREED
        answer = await anyio.to_thread.run_sync(input, "Run these programs? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            print_error("nothing was changed")
            return NOT_AGREED
    await installed.trust(plugin, plugin.digest)
    print_text(f"{plugin.spec} is trusted.")
    return 0


async def _marketplaces(args: argparse.Namespace, installed: InstalledPlugins, marketplaces: Marketplaces) -> int:
    if args.action == "list":
        print_table(
            [("name", "source"), *((known.name, one_line(known.source.label)) for known in marketplaces.all())]
        )
        return 0
    if args.action == "refresh":
        chosen = marketplaces.all() if args.name is None else [marketplaces.find(args.name)]
        for marketplace in chosen:
            await marketplaces.refresh(marketplace)
            print_text(f"Refreshed {marketplace.name}.")
        return 0
    if args.name is None:
        raise InvalidRequestError(
            f"marketplaces {args.action}: expected the {'source' if args.action == 'add' else 'name'}"
        )
    if args.action == "add":
        print_text(f"Added {await marketplaces.add(args.name, Path.cwd())}.")
    elif args.action == "browse":
        entries = await marketplaces.browse(args.name)
        rows = [(entry["name"], one_line(str(entry.get("description") or "-"))) for entry in entries]
        print_table([("name", "description"), *rows])
    else:
        marketplace = marketplaces.find(args.name, "not registered")
        dependent = [plugin for plugin in installed.all() if plugin.marketplace == args.name]
        if dependent and not args.force:
            names = ", ".join(plugin.name for plugin in dependent)
            raise InvalidRequestError(
                f"{args.name} has installed plugins ({names}): remove them first, or use --force"
            )
        await marketplaces.remove(marketplace)
        for plugin in dependent:
            await installed.uninstall(plugin)
        print_text(f"Removed {args.name}.")
    return 0
