"""Command-line arguments. The standard library only: nothing heavy is imported before the mode is known.

The flags are those that the Copilot SDKs pass, in any order, plus a few of ours. Unknown flags are refused: an SDK
shows what stands on stderr, and a typing mistake must not start a server that is set up differently than meant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, TypeAlias

from jumpseat_protocol.version import __version__

LOG_LEVELS = ("none", "error", "warning", "info", "debug", "all")


@dataclass(frozen=True, slots=True)
class Options:
    """What the process was started with. ``port`` of ``None`` means stdio, 0 any free port.

    ``environ`` are the variables that are set to something, ``empty`` the names of those that are set to nothing:
    these count as unset for the server itself, and as found where a declaration names them.
    """

    environ: Mapping[str, str] = field(repr=False)
    port: int | None
    empty: frozenset[str] = frozenset()
    log_level: str = "warning"
    connection_token: str | None = field(default=None, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    auto_login: bool = True
    allow_unasked: bool = False
    protocol: int | None = None
    acp: bool = False
    record: str | None = None
    replay: Replay | None = None
    plugin_dirs: tuple[str, ...] = ()

    @property
    def whole_environ(self) -> Mapping[str, str]:
        """All variables, for values of declarations."""
        return {**self.environ, **dict.fromkeys(self.empty, "")}


@dataclass(frozen=True, slots=True)
class Replay:
    """Answer calls of models from the recordings in ``folder``; see ``adapters/recording/replayer.py``."""

    folder: str
    in_order: bool = False
    delays: bool = False


CommandName: TypeAlias = Literal["adapters", "models", "check"]

COMMANDS: Final[Mapping[CommandName, str]] = {
    "adapters": "List the adapters: where they come from, and whether their key is there.",
    "models": "List the models that can be named, with what is known of them.",
    "check": "Send one small request to an adapter's model and say what is wrong, if anything is.",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command for people, with its arguments."""

    name: CommandName
    options: Options
    adapter: str | None = None
    model: str | None = None
    json: bool = False
    timeout_s: float = 60.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}", file=sys.stderr)  # noqa: T201 - the SDKs show this to their users
        sys.exit(2)


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Read the arguments; exits with code 2 and one line on stderr where they are wrong."""
    parser = _Parser(
        prog="jumpseat",
        allow_abbrev=False,
        description="Agent server of the Copilot SDK protocol and of the Agent Client Protocol.",
        epilog="'jumpseat chat' talks with an agent at this terminal, 'jumpseat run -p PROMPT' runs one prompt;"
        " 'jumpseat acp' is 'jumpseat --acp', for editors;"
        " 'jumpseat adapters', 'jumpseat models' and 'jumpseat check ADAPTER' tell what can be used and"
        " whether it works; 'jumpseat mcp' lists MCP servers and logs in to them;"
        " 'jumpseat script FILE' plays a script with a server; 'jumpseat schema' prints the protocol as"
        " JSON Schema.",
    )
    parser.add_argument("--version", action="version", version=f"jumpseat {__version__}")
    parser.add_argument("--headless", "--server", action="store_true", help="run as a server (the only mode)")
    parser.add_argument("--acp", action="store_true", help="speak the Agent Client Protocol, on stdin and stdout")
    parser.add_argument("--stdio", action="store_true", help="speak on stdin and stdout")
    parser.add_argument("--port", type=_port, help="listen on this port of localhost; 0: any free one")
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="warning", help="what goes to stderr")
    parser.add_argument("--auth-token-env", metavar="NAME", help="the variable that holds a GitHub token")
    parser.add_argument("--yolo", action="store_true", help="run what no attached client can be asked about")
    parser.add_argument(
        "--protocol", type=int, choices=(2, 3), help="speak this protocol, whatever a client says first"
    )
    parser.add_argument(
        "--plugin-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder with skills and MCP servers for all sessions; may be given again",
    )
    parser.add_argument("--record", metavar="DIR", help="write every call to a provider to a file in this folder")
    parser.add_argument("--replay", metavar="DIR", help="answer those calls from such a folder, offline")
    parser.add_argument("--replay-in-order", action="store_true", help="whatever the requests' bodies say")
    parser.add_argument("--replay-delays", action="store_true", help="as slowly as it was recorded")
    # Sent by the SDKs and without meaning here.
    parser.add_argument("--no-auto-update", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-auto-login", action="store_true", help="do not ask gh for a GitHub token")
    parser.add_argument("--session-idle-timeout", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--remote", action="store_true", help=argparse.SUPPRESS)
    # `jumpseat acp` is what people type and editors' settings say.
    known, unknown = parser.parse_known_args(["--acp", *argv[1:]] if argv and argv[0] == "acp" else argv)
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}")
    if known.acp and known.port is not None:
        parser.error("--acp speaks on stdin and stdout: --port is for the Copilot SDK protocol")
    if known.acp and known.protocol is not None:
        parser.error("--protocol is for the Copilot SDK protocol")
    known.stdio = known.stdio or known.acp
    if known.stdio and known.port is not None:
        parser.error("--stdio and --port exclude each other")
    options = _options(known, *_parted(environ))
    if options.record and options.replay:
        parser.error("recording and replaying exclude each other")
    if not options.replay and (known.replay_in_order or known.replay_delays):
        parser.error("--replay-in-order and --replay-delays go with --replay")
    return options


def parse_command(argv: Sequence[str], environ: Mapping[str, str]) -> Command | None:
    """Read the arguments of a command for people; ``None`` where they are those of a server.

    Exits with code 2 and one line on stderr where they are wrong.
    """
    name: CommandName | None = next((one for one in COMMANDS if argv and one == argv[0]), None)
    if name is None:
        return None
    parser = _Parser(prog=f"jumpseat {name}", allow_abbrev=False, description=COMMANDS[name])
    if name == "models":
        parser.add_argument("adapter", nargs="?", help="only those of this adapter")
    if name == "check":
        parser.add_argument("adapter", help="as 'jumpseat adapters' names it")
        parser.add_argument(
            "model", nargs="?", help="default: the first that the adapter declares, else that its provider lists"
        )
        parser.add_argument("--timeout", type=_seconds, default=60.0, metavar="S", help="seconds; default 60")
    parser.add_argument("--json", action="store_true", help="print JSON")
    known = parser.parse_args(argv[1:])
    found, empty = _parted(environ)
    replay = found.get("JUMPSEAT_REPLAY")
    options = Options(
        environ=found,
        port=None,
        empty=empty,
        record=found.get("JUMPSEAT_RECORD"),
        replay=Replay(replay) if replay else None,
    )
    return Command(
        name,
        options,
        adapter=getattr(known, "adapter", None),
        model=getattr(known, "model", None),
        json=getattr(known, "json", False),
        timeout_s=getattr(known, "timeout", 60.0),
    )


def wants_schema(argv: Sequence[str]) -> bool:
    """Whether the arguments are ``schema``, which prints the protocol and serves nothing; it takes no others."""
    if not argv or argv[0] != "schema":
        return False
    parser = _Parser(
        prog="jumpseat schema", allow_abbrev=False, description="Print the protocol as JSON Schema (2020-12)."
    )
    _, unknown = parser.parse_known_args(argv[1:])
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}")
    return True


def _parted(environ: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """The variables that are set to something, and the names of the others."""
    return {name: value for name, value in environ.items() if value}, frozenset(
        name for name, value in environ.items() if not value
    )


def _options(known: Any, environ: Mapping[str, str], empty: frozenset[str]) -> Options:
    replay = known.replay or environ.get("JUMPSEAT_REPLAY")
    return Options(
        environ=environ,
        port=None if known.stdio else known.port or 0,
        empty=empty,
        log_level=known.log_level,
        connection_token=None if known.stdio else environ.get("COPILOT_CONNECTION_TOKEN"),
        auth_token=environ.get(known.auth_token_env) if known.auth_token_env else None,
        auto_login=not known.no_auto_login,
        allow_unasked=known.yolo,
        protocol=known.protocol,
        acp=known.acp,
        record=known.record or environ.get("JUMPSEAT_RECORD"),
        replay=Replay(replay, known.replay_in_order, known.replay_delays) if replay else None,
        plugin_dirs=tuple(known.plugin_dir),
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f"expected seconds, got {text!r}")
    return seconds


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return int(text)
