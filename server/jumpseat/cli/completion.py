"""``jumpseat completion``: print what a shell needs to complete commands, and complete what it asks for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, cast

from jumpseat.cli.arguments import server_parser
from jumpseat.cli.commands import COMMANDS, CommandContext, CommandModule, CommandParser, print_text

SHELLS: Final = ("bash", "zsh", "fish")

DESCRIPTION: Final = (
    "Print what a shell needs to complete the commands and options of jumpseat. For bash and zsh, add"
    " 'eval \"$(jumpseat completion bash)\"' to ~/.bashrc or, with zsh, to ~/.zshrc; for fish, 'jumpseat completion"
    " fish | source' to ~/.config/fish/config.fish."
)


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print_text(shellcode(["jumpseat"], shell=args.shell))
    return 0


def complete(others: Mapping[str, Callable[[argparse.ArgumentParser], None]]) -> None:
    """Answer a shell that asks for completions, and exit. ``others`` add the options of further commands."""
    from argcomplete import autocomplete

    # The modules of all commands together take nearly half a second to import, at each press of the key.
    words = os.environ.get("COMP_LINE", "").split()
    parser = server_parser()
    for name, info in COMMANDS.items():
        command = parser.add_command(name, info.help)
        if name not in words:
            continue
        if info.module is not None:
            cast("CommandModule", import_module(f"jumpseat.cli.{info.module}")).add_arguments(command)
        elif name in others:
            others[name](command)
    autocomplete(parser)
