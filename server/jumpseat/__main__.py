"""The ``jumpseat`` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Parse the arguments first: help, version and mistakes cost no imports."""
    from jumpseat.cli import parse, parse_command, wants_schema

    if wants_schema(sys.argv[1:]):
        from contextlib import suppress

        from jumpseat_protocol.schema import encoded

        # Whoever reads the beginning only has what it wants.
        with suppress(BrokenPipeError):
            sys.stdout.buffer.write(encoded())
        return
    if sys.argv[1:2] == ["script"]:
        from jumpseat.script.command import main as play_scripts

        sys.exit(play_scripts(sys.argv[2:]))
    if sys.argv[1:2] == ["chat"]:
        from jumpseat_terminal.command import chat

        sys.exit(chat(sys.argv[2:]))
    if sys.argv[1:2] == ["run"]:
        from jumpseat_terminal.command import run as run_prompt

        sys.exit(run_prompt(sys.argv[2:]))
    if sys.argv[1:2] == ["mcp"]:
        from jumpseat.mcp_console import main as look_after_servers

        sys.exit(look_after_servers(sys.argv[2:], os.environ))
    if (command := parse_command(sys.argv[1:], os.environ)) is not None:
        from jumpseat.console import run as run_command

        sys.exit(run_command(command))
    options = parse(sys.argv[1:], os.environ)
    from jumpseat.app import run

    sys.exit(run(options))


if __name__ == "__main__":
    main()
