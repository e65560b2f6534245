"""The ``jumpseat`` command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import cast


def main() -> None:
    """Do what the arguments say, and end with the exit code of that."""
    # What is imported stays to the end: looking through it for garbage, again and again, is a tenth of the start.
    gc.disable()
    # httpx brings a command along that loads rich and pygments: more than twice its own weight, for nothing here.
    cast("dict[str, ModuleType | None]", sys.modules)["httpx._main"] = None
    command = _command(sys.argv[1:])
    gc.freeze()
    gc.enable()
    sys.exit(command())


def _command(argv: list[str]) -> Callable[[], int]:
    """What to run, with all that it imports. Arguments come first: help, version and mistakes cost no imports."""
    from jumpseat.cli import parse, parse_command, wants_schema

    if wants_schema(argv):
        return _print_schema
    match argv[:1]:
        case ["script"]:
            from jumpseat.script.command import main as play_scripts

            return lambda: play_scripts(argv[1:])
        case ["chat"]:
            from jumpseat_terminal.command import chat

            return lambda: chat(argv[1:])
        case ["run"]:
            from jumpseat_terminal.command import run as run_prompt

            return lambda: run_prompt(argv[1:])
        case ["mcp"]:
            from jumpseat.mcp_console import main as look_after_servers

            return lambda: look_after_servers(argv[1:], os.environ)
        case _:
            pass
    if (command := parse_command(argv, os.environ)) is not None:
        from jumpseat.console import run as run_command

        return lambda: run_command(command)
    options = parse(argv, os.environ)
    from jumpseat.app import run

    return lambda: run(options)


def _print_schema() -> int:
    from contextlib import suppress

    from jumpseat_protocol.schema import encoded

    # Whoever reads the beginning only has what it wants.
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(encoded())
    return 0


if __name__ == "__main__":
    main()
