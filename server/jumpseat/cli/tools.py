"""``jumpseat tools``: list the tools and groups that are declared in files, with the problems of invalid ones."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from jumpseat.adapters.providers import environment_providers
from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_table, print_text
from jumpseat.config import load_config
from jumpseat.declared.places import declaration_files, project_folder
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat.tools.builtin import BUILTIN_NAMES
from jumpseat.tools.declared.catalogue import ToolCatalogue, ToolEntry
from jumpseat.tools.declared.describe import describe
from jumpseat_protocol.declared_tools import DeclaredToolDescription

VALID: Final = 0
INVALID: Final = 3

DESCRIPTION: Final = "List the tools that are declared in files, and the problems of invalid ones."

_APPROVAL: Final = {"always": "yes", "never": "no", "depends": "depends", None: "-"}


def add_arguments(parser: CommandParser) -> None:
    parser.add_json()


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    return anyio.run(_show_tools, ctx.home, args.json)


async def _show_tools(home: Path, as_json: bool) -> int:
    config = load_config(home, environment_providers())
    # The catalogue logs the problems that are printed here.
    logging.getLogger("jumpseat.tools").setLevel(logging.CRITICAL)
    trust = TrustedFolders(home, config.trusted_folders)
    catalogue = ToolCatalogue(config.tools.declared, home, trust.is_trusted, BUILTIN_NAMES)
    known = await catalogue.read_all(Path.cwd())
    found = [describe(tool, known, BUILTIN_NAMES) for tool in known]
    if as_json:
        print_json([tool.wire() for tool in found])
    else:
        _print_found(known, found, home)
        _print_untrusted(Path.cwd(), home, trust)
    return INVALID if any(tool.problem for tool in found) else VALID


def _print_found(known: Sequence[ToolEntry], found: Sequence[DeclaredToolDescription], home: Path) -> None:
    rows = [("NAME", "KIND", "FROM", "ASKS", "DESCRIPTION")]
    for tool in found:
        if tool.problem is None:
            rows.append((tool.name, tool.kind, tool.origin, _APPROVAL[tool.approval], _one_line(tool.description)))
    if len(rows) > 1:
        print_table(rows)
    for tool in found:
        if tool.problem is not None:
            print_text(f"{tool.name} cannot be used: {tool.problem}")
    if not known:
        print_text(
            f"No tools are declared: put a file into {home / 'tools'}, or a table [tools.NAME] into config.toml."
        )


def _print_untrusted(cwd: Path, home: Path, trust: TrustedFolders) -> None:
    """Say which tools of the project are not used, and why."""
    folder = project_folder(cwd, "tools", home)
    files = declaration_files(folder) if folder is not None else []
    names = [path.stem for path in files if not trust.is_trusted(path)]
    if names:
        print_text(
            f"Not used, because the folder is not trusted: {', '.join(names)} in {folder}. Add the project to"
            " trusted_folders in config.toml if you know what they run."
        )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
