"""The commands of ``jumpseat`` for people: their table, how one is parsed and run, and their output.

A command is a module of this package with a ``DESCRIPTION``, ``add_arguments(parser)``, and ``run(ctx, args)``,
which returns the exit code. Nothing of a command is imported before its name is known.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol, TextIO, cast

from msgspec import Struct

from jumpseat.options import Options, options_of_environ

if TYPE_CHECKING:
    from jumpseat_transcript.transcript import Transcript

FAILED: Final = 1
USAGE_ERROR: Final = 2
NOT_CONFIGURED: Final = 3


class CommandParser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage, and exits with :data:`USAGE_ERROR`."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, allow_abbrev=False, **settings)
        self.commands: dict[str, CommandParser] = {}

    def error(self, message: str) -> NoReturn:
        print_error(message)
        sys.exit(USAGE_ERROR)

    def add_command(self, name: str, text: str, description: str | None = None) -> CommandParser:
        """Add a command of this command, with the text for its help; the parsed ``command`` is the name of one."""
        if not self.commands:
            self._parsers = self.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
        sentence = f"{text[0].upper()}{text[1:]}."
        parser = self.commands[name] = self._parsers.add_parser(
            name, help=text, description=description or sentence
        )
        return parser

    def parse_options(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments; name the first one that is unknown, and what may have been meant."""
        chosen = self._choose(argv)
        known, unknown = self.parse_known_args(argv)
        if unknown:
            # Imported for errors only.
            from jumpseat_protocol.members import option_hint

            kind = "unknown option" if unknown[0].startswith("-") else "unexpected argument"
            self.error(f"{kind} {unknown[0]!r}{option_hint(unknown[0], chosen.format_help())}")
        return known

    def _choose(self, argv: Sequence[str]) -> CommandParser:
        """Return the parser of the command in the arguments, which is this one if it has no commands."""
        if not self.commands or not {"-h", "--help"}.isdisjoint(argv):
            return self
        name = next((word for word in argv if not word.startswith("-")), None)
        if name is None:
            self.print_help(sys.stderr)
            sys.exit(USAGE_ERROR)
        if name not in self.commands:
            from jumpseat_protocol.members import hint

            self.error(f"unknown command {name!r} of {self.prog}, {hint(name, self.commands)}")
        return self.commands[name]

    def add_json(self) -> None:
        self.add_argument("--json", action="store_true", help="print JSON")


def port_number(text: str) -> int:
    """Parse the number of a TCP port, as the type of an argument."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return int(text)


def print_text(text: str) -> None:
    """Print a result to stdout at once; a command may wait for its user afterwards.

    A terminal gets no control characters, which the texts of models and servers may contain. If the reader is gone,
    as in ``jumpseat models | head``, the rest of the output goes nowhere.
    """
    try:
        print(_shown(text, sys.stdout), flush=True)  # noqa: T201 - the output of a command
    except BrokenPipeError:
        # What is still buffered would fail again when the process exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a result to stdout as JSON."""
    # Imported here, because a server parses its arguments and prints no JSON.
    import json

    print_text(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows with aligned columns to stdout."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print_text("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_error(text: str) -> None:
    """Print an error to stderr, in one line for SDKs and people."""
    print(f"error: {_shown(text, sys.stderr)}", file=sys.stderr)  # noqa: T201 - the output of a command


def _shown(text: str, stream: TextIO | None) -> str:
    if stream is None or not stream.isatty():
        return text
    # Imported here: servers print nothing.
    from jumpseat_protocol.safe import safe

    return safe(text)


class CommandInfo(NamedTuple):
    """A command as ``jumpseat --help`` lists it. Those of the terminal and of protocols have no module."""

    help: str
    module: str | None = None
    arguments: str = ""
    group: str = ""
    """The heading above it and those after it, up to the next heading."""


COMMANDS: Final[Mapping[str, CommandInfo]] = {
    "chat": CommandInfo("chat with an agent in this terminal; 'jumpseat' alone does the same", group="use it"),
    "run": CommandInfo("run one prompt, for scripts and pipes", arguments="PROMPT"),
    "web": CommandInfo("open the page for sessions in the browser", "web"),
    "sessions": CommandInfo("list, show, export and delete stored sessions", "sessions.command"),
    "setup": CommandInfo("connect a provider of models: enter a key, try it, choose a model", group="set it up"),
    "doctor": CommandInfo("show what is installed, set up and reachable, and what to do", "doctor"),
    "models": CommandInfo("list the models", "models"),
    "adapters": CommandInfo("list the adapters, which connect to providers of models", "adapters"),
    "check": CommandInfo("test an adapter, or the sandbox", "check", "ADAPTER"),
    "tools": CommandInfo("list the declared tools", "tools"),
    "hooks": CommandInfo("list the commands that run at hooks", "hooks"),
    "mcp": CommandInfo("list MCP servers and log in to them", "mcp"),
    "plugins": CommandInfo("install, update and remove plugins", "plugins"),
    "completion": CommandInfo("print what a shell needs to complete commands", "completion", "SHELL"),
    "acp": CommandInfo("serve an editor: the same as 'jumpseat --acp'", group="serve editors and programs"),
    "ahp": CommandInfo("serve a client of an agent host: the same as 'jumpseat --ahp'"),
    "mcp-server": CommandInfo("serve other agents: sessions as tools of an MCP server"),
    "token": CommandInfo("make and revoke connection tokens", "token"),
    "status": CommandInfo("print the health of running servers", "status"),
    "cluster": CommandInfo("list the replicas of a cluster", "cluster", "status"),
    "store": CommandInfo("copy sessions between files and a cluster", "store", "copy"),
    "script": CommandInfo("play a script against a server", "script", "FILE", group="build on it"),
    "lab": CommandInfo("run tasks with an agent, and measure success and tokens", "lab.command"),
    "schema": CommandInfo("print the protocol as JSON Schema", "schema"),
}


def expand(argv: list[str]) -> list[str]:
    """Return the arguments with the options that the words ``help`` and ``version`` stand for."""
    match argv:
        case ["help"]:
            return ["--help"]
        case ["help", name, *rest]:
            return [name, *rest, "--help"]
        case ["version"]:
            return ["--version"]
        case _:
            return argv


class ShowTranscript(Protocol):
    """Prints a transcript for people; ``full`` shortens nothing."""

    def __call__(self, transcript: Transcript, *, full: bool) -> None: ...


class CommandContext(Struct, frozen=True):
    """The surroundings of a command: its environment, and the parts of the program that it may start.

    ``serve`` runs a server until it ends, and returns the exit code.
    """

    options: Options
    serve: Callable[[Options], int]
    show_transcript: ShowTranscript

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables that are not empty."""
        return self.options.environ

    @property
    def in_cluster(self) -> bool:
        """Return whether the sessions of the home folder are in the store of a cluster."""
        from jumpseat.config import has_store_section

        return has_store_section(self.home)

    @property
    def home(self) -> Path:
        """The home folder, which may not exist yet."""
        from jumpseat.config import home_folder

        return home_folder(self.environ)


class CommandModule(Protocol):
    DESCRIPTION: str

    def add_arguments(self, parser: CommandParser) -> None: ...

    def run(self, ctx: CommandContext, args: argparse.Namespace) -> int: ...


def load_command(
    argv: Sequence[str], environ: Mapping[str, str], serve: Callable[[Options], int], show: ShowTranscript
) -> Callable[[], int] | None:
    """Parse the arguments of a command, and return the function that runs it and returns the exit code.

    Return ``None`` if the arguments begin with no command of this package. On an error, print one line to stderr
    and exit with code 2.
    """
    name = argv[0] if argv else ""
    info = COMMANDS.get(name)
    found = info.module if info is not None else None
    if name == "acp" and any(word.partition("=")[0] == "--connect" for word in argv):
        # No server of its own, which is what the other arguments of this command are about.
        found = "acp_connect"
    if found is None:
        return None
    module = cast("CommandModule", import_module(f"jumpseat.cli.{found}"))
    parser = CommandParser(f"jumpseat {name}", description=module.DESCRIPTION)
    module.add_arguments(parser)
    args = parser.parse_options(argv[1:])
    ctx = CommandContext(options_of_environ(environ), serve, show)
    return lambda: run_command(module, ctx, args)


def run_command(module: CommandModule, ctx: CommandContext, args: argparse.Namespace) -> int:
    """Run a command; print its error in one line. Return the exit code."""
    from jumpseat.errors import ConfigError, InvalidRequestError, JumpseatError
    from jumpseat_protocol.safe import one_line

    code = FAILED
    try:
        return module.run(ctx, args)
    except* JumpseatError as group:
        for error in group.exceptions:
            print_error(one_line(str(error)))
        if group.subgroup(InvalidRequestError):
            code = USAGE_ERROR
        elif group.subgroup(ConfigError):
            code = NOT_CONFIGURED
    except* KeyboardInterrupt:
        print_error("the command was cancelled")
    return code
