"""Entry point of the ``jumpseat`` command."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from jumpseat.options import Options
    from jumpseat_transcript.transcript import Transcript


def main() -> None:
    """Run the command in the arguments, and exit with its exit code."""
    if os.getpid() == 1:
        from jumpseat.system.first_process import leave_first_process

        leave_first_process()
    # Imported objects live until the end: collecting garbage during the imports takes a tenth of the start-up time.
    gc.disable()
    _leave_out_modules()
    as_copilot = _is_invoked_as_copilot(sys.argv[0])
    if as_copilot and not os.environ.get("COPILOT_HOME"):
        # In the environment, so that the server that a chat starts uses the same folder.
        os.environ["COPILOT_HOME"] = os.path.expanduser("~/.copilot")
    if "_ARGCOMPLETE" in os.environ:
        from jumpseat.cli.completion import complete
        from jumpseat_terminal.options import add_chat_options, add_run_options, add_setup_options

        complete({"chat": add_chat_options, "run": add_run_options, "setup": add_setup_options})
    try:
        command = _command(sys.argv[1:], as_copilot=as_copilot)
    except SystemExit:
        _close_input()
        raise
    gc.freeze()
    gc.enable()
    # Looking for garbage after each 700 new objects, as by default, takes a tenth of the first `session.create`.
    gc.set_threshold(10_000, 10, 10)
    sys.exit(command())


def _close_input() -> None:
    """Close stdin before the process ends, because Linux closes the last file first.

    An SDK that sees the end of stdout would send a request into a pipe that is still open, and wait for ever.
    """
    with suppress(OSError):
        os.close(0)


def _leave_out_modules() -> None:
    """Keep libraries from loading what no command needs."""
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    # Plugins of pydantic, which would see everything that is validated, keys too: looking for them in all installed
    # packages takes a twentieth of the time to start.
    plugins = modules["pydantic.plugin._loader"] = ModuleType("pydantic.plugin._loader")
    vars(plugins)["get_plugins"] = tuple


def _is_invoked_as_copilot(program: str) -> bool:
    """Return whether ``program`` is a link named ``copilot``, by which SDKs and programs find the command."""
    return os.path.splitext(os.path.basename(program))[0] == "copilot"


def _command(argv: list[str], *, as_copilot: bool) -> Callable[[], int]:
    """Return the function to run, after its imports; the arguments of servers are parsed first."""
    from msgspec.structs import replace

    from jumpseat.cli.commands import expand, load_command

    argv = expand(argv)
    if "--setup" in argv and (argv[0] == "acp" or "--acp" in argv):
        # An editor runs its agent once more, in a terminal, with this option behind its own.
        argv = ["setup"]
    if argv[:1] in (["chat"], ["run"], ["setup"]) or (not argv and _is_at_a_terminal()):
        from jumpseat_terminal import command as terminal

        commands = {"run": terminal.run, "setup": terminal.setup}
        return partial(commands.get(argv[0] if argv else "", terminal.chat), argv[1:])
    if argv[:1] == ["mcp-server"]:
        from jumpseat_mcp_server.command import main as serve_agents

        return lambda: _leave(serve_agents(argv[1:]))
    if (command := load_command(argv, os.environ, _serve, _show_transcript)) is not None:
        return lambda: _leave(command())
    from jumpseat.cli.arguments import parse

    options = parse(argv, os.environ)
    if as_copilot:
        # SDKs that speak protocol 2 and expect this command have never asked about their own tools.
        options = replace(options, allow_old_clients="client_tools")
    from jumpseat_protocol.lazy_libraries import in_libraries

    with in_libraries():
        from jumpseat.process import run

        # The server's event loop, which anyio imports when it starts.
        import_module("anyio._backends._asyncio")

    return lambda: run(options)


def _serve(options: Options) -> int:
    from jumpseat.process import run

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


if __name__ == "__main__":
    main()
