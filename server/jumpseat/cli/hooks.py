"""``jumpseat hooks``: list the commands that run at hooks in the current folder, and the problems of files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from jumpseat.adapters.providers import environment_providers
from jumpseat.agent.settings import SessionSettings
from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_table, print_text
from jumpseat.config import load_config
from jumpseat.store.plugins.installed_plugins import InstalledPlugins
from jumpseat.store.plugins.marketplaces import Marketplaces
from jumpseat.store.plugins.plugin_folders import PluginFolders
from jumpseat.store.project.hook_files import HookFiles
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat_protocol.safe import one_line

VALID: Final = 0
INVALID: Final = 3

DESCRIPTION: Final = "List the commands that run at hooks, and the problems of invalid files."


def add_arguments(parser: CommandParser) -> None:
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    home = ctx.home
    config = load_config(home, environment_providers())
    # Nothing is installed here, so git needs no environment.
    installed = InstalledPlugins(home, Marketplaces(home, dict), dict)
    given = [Path(folder).absolute() for folder in ctx.options.plugin_dirs]
    plugins = PluginFolders(given, home, lambda: installed)
    library = HookFiles(home, plugins, TrustedFolders(home, config.trusted_folders).is_trusted)
    problems: list[str] = []
    groups = list(library.groups(SessionSettings.of(Path.cwd(), enable_file_hooks=True), problems))
    if args.json:
        hooks = [
            {
                "hook": command.hook_type,
                "source": command.source,
                "file": str(command.file),
                "matcher": command.matcher,
                "command": command.shown,
                "timeoutSec": command.timeout_s,
                "runs": config.hooks.files and group.problem is None,
            }
            for group in groups
            for command in group.commands
        ]
        print_json({"hooks": hooks, "problems": problems})
        return INVALID if problems else VALID
    if groups:
        rows = [("HOOK", "FROM", "RUNS", "TOOLS", "COMMAND")]
        for group in groups:
            runs = "yes" if config.hooks.files and group.problem is None else "no"
            rows += (
                (command.hook_type, command.source, runs, one_line(command.matcher or "-"), one_line(command.shown))
                for command in group.commands
            )
        print_table(rows)
    else:
        print_text(f"There are no hooks: put a file into {home / 'hooks'}, or into .github/hooks of a project.")
    if not config.hooks.files:
        print_text("No hook runs, because hooks.files is false in config.toml.")
    for problem in (*problems, *(group.problem for group in groups if group.problem is not None)):
        print_text(one_line(problem))
    return INVALID if problems else VALID
