"""Entry point of the ``jumpseat`` command."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from jumpseat.options import Options
    from jumpseat_transcript.transcript import Transcript

_FIRST_SESSION: Final = (
    "jumpseat.handlers.session.session",
    "jumpseat.adapters.models.copilot_wires",
    "jumpseat.adapters.models.session_providers",
    "jumpseat.adapters.models.copilot_login",
    "jumpseat_protocol.tool_checks",
)
"""What the first session needs and others import late: a server loads it while it starts."""


def main() -> None:
    """Run the command in the arguments, and exit with its exit code."""
    # Imported objects live until the end: collecting garbage during the imports takes a tenth of the start-up time.
    gc.disable()
    _leave_out_modules()
    as_copilot = _is_invoked_as_copilot(sys.argv[0])
    if as_copilot and not os.environ.get("COPILOT_HOME"):
        # In the environment, so that the server that a chat starts uses the same folder.
        os.environ["COPILOT_HOME"] = os.path.expanduser("~/.copilot")
    command = _command(sys.argv[1:], as_copilot=as_copilot)
    gc.freeze()
    gc.enable()
    # Looking for garbage after each 700 new objects, as by default, takes a tenth of the first `session.create`.
    gc.set_threshold(10_000, 10, 10)
    sys.exit(command())


def _leave_out_modules() -> None:
    """Keep libraries from loading what no command needs."""
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    # The command-line program of httpx, and with it click, rich and pygments: 40 ms and 6 MiB.
    modules["httpx._main"] = None
    # Plugins of pydantic, which would see everything that is validated, keys too: looking for them in all installed
    # packages takes a twentieth of the time to start.
    plugins = modules["pydantic.plugin._loader"] = ModuleType("pydantic.plugin._loader")
    vars(plugins)["get_plugins"] = tuple


def _is_invoked_as_copilot(program: str) -> bool:
    """Return whether ``program`` is a link named ``copilot``, by which SDKs and programs find the command."""
    return os.path.splitext(os.path.basename(program))[0] == "copilot"


def _command(argv: list[str], *, as_copilot: bool) -> Callable[[], int]:
    """Return the function to run, after its imports; arguments are parsed first, so that errors need no imports."""
    from dataclasses import replace

    from jumpseat.cli.arguments import parse, parse_command, wants_schema

    if wants_schema(argv):
        return _print_schema
    match argv[:1]:
        case ["script"]:
            from jumpseat.cli.script import main as play_scripts

            return lambda: play_scripts(argv[1:])
        case ["chat"]:
            from jumpseat_terminal.command import chat

            return lambda: chat(argv[1:])
        case [] if _is_at_a_terminal():
            from jumpseat_terminal.command import chat

            return lambda: chat([])
        case ["run"]:
            from jumpseat_terminal.command import run as run_prompt

            return lambda: run_prompt(argv[1:])
        case ["mcp"]:
            from jumpseat.cli.mcp import main as run_mcp_command

            return lambda: run_mcp_command(argv[1:], os.environ)
        case ["plugins"]:
            from jumpseat.cli.plugins import main as run_plugins_command

            return lambda: run_plugins_command(argv[1:], os.environ)
        case ["token"]:
            from jumpseat.cli.token import main as run_token_command

            return lambda: run_token_command(argv[1:], os.environ)
        case ["sessions"]:
            from jumpseat.cli.sessions.command import main as run_sessions_command

            return lambda: run_sessions_command(argv[1:], os.environ, _show_transcript)
        case ["status"]:
            from jumpseat.cli.status import main as run_status_command

            return lambda: run_status_command(argv[1:], os.environ)
        case ["cluster" | "store"]:
            from jumpseat.cli.cluster import main as run_cluster_command

            return lambda: run_cluster_command(argv, os.environ)
        case ["web"]:
            from jumpseat.cli.web import main as open_page

            return lambda: open_page(argv[1:], os.environ, _serve)
        case _:
            pass
    if (command := parse_command(argv, os.environ)) is not None:
        from jumpseat.cli.models import run as run_command

        return lambda: _leave(run_command(command))
    options = parse(argv, os.environ)
    if as_copilot:
        # SDKs that speak protocol 2 and expect this command have never asked about their own tools.
        options = replace(options, allow_old_clients="client_tools")
    from jumpseat_protocol.lazy_libraries import in_libraries

    with in_libraries():
        from jumpseat.app import run

        # The server's event loop, which anyio imports when it starts.
        import_module("anyio._backends._asyncio")
    for name in _FIRST_SESSION:
        import_module(name)

    return lambda: run(options)


def _serve(options: Options) -> int:
    from jumpseat.app import run

    return run(options)


def _show_transcript(transcript: Transcript, *, full: bool) -> None:
    from jumpseat_terminal.transcripts import print_transcript

    print_transcript(transcript, full=full)


def _is_at_a_terminal() -> bool:
    # Both are None if the file descriptor is closed.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _leave(code: int) -> int:
    """Exit at once if a function of a declaration, which may never end, still runs in a thread."""
    if threading.active_count() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _print_schema() -> int:
    from contextlib import suppress

    from jumpseat_protocol.schema import encoded

    # The reader may close the pipe early, as `head` does.
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(encoded())
    return 0


if __name__ == "__main__":
    main()
