"""Command-line arguments. Only the standard library is imported before the mode is known.

The flags are those that the Copilot SDKs pass, in any order, plus a few of ours. Unknown flags are errors (SDKs
show stderr): a misspelt flag must not start a server with other settings than intended.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias

from jumpseat.cli.output import USAGE_ERROR, CommandParser
from jumpseat.options import LOG_LEVELS, Options, Replay, TcpOptions, options_of_environ, split_environ
from jumpseat_protocol.lazy_dataclasses import dataclass
from jumpseat_protocol.version import __version__

CommandName: TypeAlias = Literal["adapters", "models", "check", "tools", "hooks"]

COMMANDS: Final[Mapping[CommandName, str]] = {
    "adapters": "List the adapters, their sources, and whether their keys are set.",
    "models": "List the available models with their known properties.",
    "tools": "List the tools that are declared in files, and the problems of invalid ones.",
    "hooks": "List the commands that run at hooks, and the problems of invalid files.",
    "check": "Send one small request to a model of an adapter, and diagnose a failure.",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command for people (not for SDKs), with its arguments."""

    name: CommandName
    options: Options
    adapter: str | None = None
    model: str | None = None
    json: bool = False
    timeout_s: float = 60.0


_NO_MODE: Final = """\
error: no mode was chosen

  jumpseat chat                    chat with an agent in this terminal
  jumpseat run PROMPT              run one prompt
  jumpseat --headless --port N     serve clients over TCP on this machine
  jumpseat --stdio                 serve one client on stdin and stdout
  jumpseat acp                     serve an editor on stdin and stdout

'jumpseat --help' lists all options and commands."""


_COMMANDS: Final = """\
commands ('jumpseat COMMAND --help' describes each):
  chat            chat with an agent in this terminal; 'jumpseat' alone does the same
  run PROMPT      run one prompt, for scripts and pipes
  web             open the page for sessions in the browser
  acp             serve an editor: the same as 'jumpseat --acp'
  adapters        list the adapters
  models          list the models
  check ADAPTER   test an adapter
  tools           list the declared tools
  hooks           list the commands that run at hooks
  mcp             list MCP servers and log in to them
  token           make and revoke connection tokens
  sessions        list, show, export and delete stored sessions
  status          print the health of running servers
  cluster status  list the replicas of a cluster
  store copy      copy sessions between files and a cluster
  script FILE     play a script against a server
  schema          print the protocol as JSON Schema
"""


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Parse the arguments of a server; on an error, print one line to stderr and exit with code 2.

    A server starts only if an argument says how it is reached; otherwise, print the possibilities and exit with
    code 2.
    """
    parser = CommandParser(
        prog="jumpseat",
        allow_abbrev=False,
        description="Agent server of the Copilot SDK protocol and of the Agent Client Protocol.",
        epilog=_COMMANDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jumpseat {__version__}")
    parser.add_argument("--headless", action="store_true", help="run as a server, over TCP unless --stdio is given")
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--acp", action="store_true", help="speak the Agent Client Protocol, on stdin and stdout")
    parser.add_argument("--stdio", action="store_true", help="speak on stdin and stdout")
    parser.add_argument("--port", type=_port, help="listen on this TCP port; 0: any free port")
    parser.add_argument("--host", metavar="ADDR", help="listen on this address; default: loopback")
    parser.add_argument(
        "--ws-port",
        type=_port,
        metavar="PORT",
        help="serve WebSocket clients and the page for browsers on this port; 0: any free port",
    )
    parser.add_argument(
        "--ws-origin",
        type=_origin,
        metavar="ORIGIN",
        action="append",
        default=[],
        help="also serve the page with this origin, such as https://agents.example.org; can be repeated",
    )
    parser.add_argument("--no-token", action="store_true", help="serve processes of the same user without a token")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM form: require TLS")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate")
    parser.add_argument(
        "--behind-tls-proxy",
        action="store_true",
        help="allow a --host beyond loopback without TLS, because a proxy between clients and server adds TLS",
    )
    parser.add_argument(
        "--log-level", choices=LOG_LEVELS, default="warning", help="lowest level that is logged to stderr"
    )
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="form of the log")
    parser.add_argument("--log-dir", metavar="DIR", help="also write the log to a file in this folder")
    parser.add_argument(
        "--metrics-port",
        type=_port,
        metavar="PORT",
        help="serve health and metrics over HTTP on this loopback port",
    )
    parser.add_argument("--auth-token-env", metavar="NAME", help="environment variable that holds a GitHub token")
    parser.add_argument("--yolo", action="store_true", help="run calls that no attached client can be asked about")
    parser.add_argument(
        "--protocol", type=int, choices=(2, 3), help="speak this protocol version, without detecting the client's"
    )
    parser.add_argument(
        "--plugin-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="plugin folder, with skills and MCP servers for all sessions; can be repeated",
    )
    parser.add_argument("--record", metavar="DIR", help="record every call to a provider in this folder")
    parser.add_argument("--replay", metavar="DIR", help="answer calls to providers from recordings, offline")
    parser.add_argument("--replay-in-order", action="store_true", help="ignore the bodies of requests in a replay")
    parser.add_argument("--replay-delays", action="store_true", help="replay with the recorded delays")
    parser.add_argument(
        "--session-idle-timeout",
        type=int,
        metavar="S",
        help="close sessions that no client has used for this time, in seconds; they can be resumed",
    )
    parser.add_argument(
        "--keep-model-calls",
        action="store_true",
        help="keep the tokens, cost and times of each model call with its session, for clients that plot them",
    )
    # Flags of the SDKs that have no effect here.
    parser.add_argument("--no-auto-update", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-auto-login", action="store_true", help="do not get a GitHub token from gh")
    parser.add_argument("--remote", action="store_true", help=argparse.SUPPRESS)
    # `jumpseat acp` is the form for people and for settings of editors.
    known, unknown = parser.parse_known_args(["--acp", *argv[1:]] if argv and argv[0] == "acp" else argv)
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}")
    if known.acp and (known.port is not None or known.ws_port is not None):
        parser.error("--acp uses stdin and stdout: --port is for the Copilot SDK protocol")
    if known.acp and known.protocol is not None:
        parser.error(
            "--acp and --protocol are mutually exclusive: --protocol selects a version of the Copilot SDK protocol"
        )
    known.stdio = known.stdio or known.acp
    if known.session_idle_timeout is not None and known.session_idle_timeout < 0:
        parser.error(f"argument --session-idle-timeout: expected 0 or more, got '{known.session_idle_timeout}'")
    if known.stdio and known.port is not None:
        parser.error("--stdio and --port are mutually exclusive")
    if known.stdio and known.ws_port is not None:
        parser.error("--stdio and --ws-port are mutually exclusive")
    if known.ws_origin and known.ws_port is None:
        parser.error("--ws-origin requires --ws-port")
    if not (known.stdio or known.headless or known.server or known.port is not None or known.ws_port is not None):
        print(_NO_MODE, file=sys.stderr)  # noqa: T201 - this is a command for people here
        sys.exit(USAGE_ERROR)
    if known.stdio:
        for name in ("host", "no_token", "tls_cert", "tls_key", "behind_tls_proxy"):
            if getattr(known, name) not in (None, False):
                parser.error(f"--{name.replace('_', '-')} is for TCP: it excludes --stdio and --acp")
    options = _options(parser, known, *split_environ(environ))
    if options.record and options.replay:
        parser.error("recording and replaying are mutually exclusive")
    if not options.replay and (known.replay_in_order or known.replay_delays):
        parser.error("--replay-in-order and --replay-delays require --replay")
    return options


def parse_command(argv: Sequence[str], environ: Mapping[str, str]) -> Command | None:
    """Parse the arguments of a command for people; return ``None`` if they are those of a server.

    On an error, print one line to stderr and exit with code 2.
    """
    name: CommandName | None = next((command for command in COMMANDS if argv and command == argv[0]), None)
    if name is None:
        return None
    parser = CommandParser(prog=f"jumpseat {name}", allow_abbrev=False, description=COMMANDS[name])
    if name == "models":
        parser.add_argument("adapter", nargs="?", help="list only the models of this adapter")
    if name == "check":
        parser.add_argument("adapter", help="name of the adapter, as in 'jumpseat adapters'")
        parser.add_argument(
            "model", nargs="?", help="default: the first model that the adapter declares or its provider lists"
        )
        parser.add_argument(
            "--timeout", type=_seconds, default=60.0, metavar="S", help="time-out in seconds; default: 60"
        )
    parser.add_argument("--json", action="store_true", help="print JSON")
    known = parser.parse_args(argv[1:])
    options = options_of_environ(environ)
    return Command(
        name,
        options,
        adapter=getattr(known, "adapter", None),
        model=getattr(known, "model", None),
        json=getattr(known, "json", False),
        timeout_s=getattr(known, "timeout", 60.0),
    )


def wants_schema(argv: Sequence[str]) -> bool:
    """Return whether the arguments are those of ``jumpseat schema``, which prints the protocol.

    On an error, print one line to stderr and exit with code 2.
    """
    if not argv or argv[0] != "schema":
        return False
    parser = CommandParser(
        prog="jumpseat schema", allow_abbrev=False, description="Print the protocol as JSON Schema (2020-12)."
    )
    _, unknown = parser.parse_known_args(argv[1:])
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}")
    return True


def _tcp_options(parser: CommandParser, known: Any, token: str | None) -> TcpOptions:
    # Arguments of SDKs that nobody else has a reason to write. SDKs before 1.0 cannot send a token; newer ones set
    # COPILOT_CONNECTION_TOKEN.
    started_by_sdk = known.no_auto_update or known.server
    if known.no_token and token is not None:
        parser.error("--no-token and COPILOT_CONNECTION_TOKEN are mutually exclusive")
    if (known.tls_cert is None) != (known.tls_key is None):
        parser.error("--tls-cert and --tls-key belong together")
    tls = (known.tls_cert, known.tls_key) if known.tls_cert is not None else None
    same_user = known.no_token or (started_by_sdk and token is None)
    beyond_loopback = known.host is not None and not _is_loopback(known.host)
    if beyond_loopback and tls is None and not known.behind_tls_proxy:
        parser.error(
            f"--host {known.host!r} is not a loopback address: this requires --tls-cert and --tls-key,"
            " or --behind-tls-proxy if a proxy adds TLS"
        )
    if same_user and (beyond_loopback or known.behind_tls_proxy):
        parser.error("clients on other machines require a connection token: set COPILOT_CONNECTION_TOKEN")
    return TcpOptions(
        known.port or 0,
        known.host,
        token,
        not (started_by_sdk or same_user),
        same_user,
        tls,
        serves_tcp=known.port is not None or known.ws_port is None,
        web_port=known.ws_port,
        web_origins=tuple(known.ws_origin),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _options(parser: CommandParser, known: Any, environ: Mapping[str, str], empty: frozenset[str]) -> Options:
    token = environ.get("COPILOT_CONNECTION_TOKEN")
    replay = known.replay or environ.get("JUMPSEAT_REPLAY")
    return Options(
        environ=environ,
        tcp=None if known.stdio else _tcp_options(parser, known, token),
        empty=empty,
        log_level=known.log_level,
        log_format=known.log_format,
        log_dir=known.log_dir,
        metrics_port=known.metrics_port,
        session_idle_s=known.session_idle_timeout or None,
        auth_token=environ.get(known.auth_token_env) if known.auth_token_env else None,
        auto_login=not known.no_auto_login,
        allow_unasked=known.yolo,
        protocol=known.protocol,
        acp=known.acp,
        record=known.record or environ.get("JUMPSEAT_RECORD"),
        replay=Replay(replay, known.replay_in_order, known.replay_delays) if replay else None,
        plugin_dirs=tuple(known.plugin_dir),
        keep_model_calls=known.keep_model_calls,
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, at most 86400, got {text!r}")
    return seconds


def _origin(text: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+", text):
        raise argparse.ArgumentTypeError(f"expected an origin such as https://agents.example.org, got {text!r}")
    return text


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return int(text)
