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
from typing import Any, Final

from jumpseat.cli.commands import COMMANDS, USAGE_ERROR, CommandParser, port_number
from jumpseat.options import LOG_LEVELS, Options, Replay, TcpOptions, split_environ
from jumpseat_protocol.version import __version__

_NO_MODE: Final = """\
error: no mode was chosen

  jumpseat chat                    chat with an agent in this terminal
  jumpseat run PROMPT              run one prompt
  jumpseat --headless --port N     serve clients over TCP on this machine
  jumpseat --stdio                 serve one client on stdin and stdout
  jumpseat acp                     serve an editor on stdin and stdout
  jumpseat ahp                     serve an agent host's client on stdin and stdout

'jumpseat --help' lists all options and commands."""


_OTHER_NAMES: Final[Mapping[str, str]] = dict.fromkeys(
    ("auth", "configure", "connect", "init", "keys", "login", "providers"), "setup"
)
"""The names in other programs of what ``jumpseat setup`` does."""


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Parse the arguments of a server; on an error, print one line to stderr and exit with code 2.

    A server starts only if an argument says how it is reached; otherwise, print the possibilities and exit with
    code 2.
    """
    parser = server_parser()
    if argv and not argv[0].startswith("-") and argv[0] not in ("acp", "ahp"):
        # Imported for errors only.
        from jumpseat_protocol.members import nearest

        found = _OTHER_NAMES.get(argv[0]) or nearest(argv[0], COMMANDS, 0.65)
        meant = "" if found is None else f", did you mean {found!r}?"
        parser.error(f"unknown command {argv[0]!r}{meant} ('jumpseat --help' lists the commands)")
    # `jumpseat acp` is the form for people and for settings of editors.
    is_command = bool(argv) and argv[0] in ("acp", "ahp")
    known = parser.parse_options([f"--{argv[0]}", *argv[1:]] if is_command else argv)
    if known.setup:
        parser.error("--setup requires --acp")
    if known.acp and known.ahp:
        parser.error("--acp and --ahp are mutually exclusive")
    if known.connect is not None:
        parser.error("--connect is an option of 'jumpseat acp'")
    other = "--acp" if known.acp else "--ahp" if known.ahp else None
    # Other clients may have the sessions of an editor, too.
    listens = known.port is not None or known.ws_port is not None
    if other and known.protocol is not None:
        parser.error(
            f"{other} and --protocol are mutually exclusive:"
            " --protocol selects a version of the Copilot SDK protocol"
        )
    known.stdio = known.stdio if other is None else not listens
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
                option = f"--{name.replace('_', '-')}"
                parser.error(f"{option} is for TCP: it excludes --stdio, and requires --port or --ws-port")
    options = _options(parser, known, *split_environ(environ))
    if options.record and options.replay:
        parser.error("recording and replaying are mutually exclusive")
    if not options.replay and (known.replay_in_order or known.replay_delays):
        parser.error("--replay-in-order and --replay-delays require --replay")
    return options


def server_parser() -> CommandParser:
    """Return the parser of a server's arguments, whose help lists the commands first."""
    parser = CommandParser(
        "jumpseat",
        usage="jumpseat [COMMAND] [OPTION ...]",
        description=f"An agent for the terminal, editors and programs, with any model.\n\n{_list_commands()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jumpseat {__version__}")
    _add_doors(parser)
    _add_sessions(parser)
    _add_records(parser)
    # Flags of the SDKs that have no effect here.
    parser.add_argument("--no-auto-update", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--remote", action="store_true", help=argparse.SUPPRESS)
    return parser


def _add_doors(parser: CommandParser) -> None:
    add = parser.add_argument_group("servers: how clients reach one").add_argument
    add("--stdio", action="store_true", help="speak on stdin and stdout")
    add("--headless", action="store_true", help="run as a server, over TCP unless --stdio is given")
    add("--server", action="store_true", help=argparse.SUPPRESS)
    add("--port", type=port_number, help="listen on this TCP port; 0: any free port")
    add(
        "--ws-port",
        type=port_number,
        metavar="PORT",
        help="serve WebSocket clients and the page for browsers on this port; 0: any free port",
    )
    add(
        "--ws-origin",
        type=_origin,
        metavar="ORIGIN",
        action="append",
        default=[],
        help="also serve the page with this origin, such as https://agents.example.org; can be repeated",
    )
    add("--acp", action="store_true", help="speak the Agent Client Protocol, on stdin and stdout")
    add("--setup", action="store_true", help="with --acp: the same as 'jumpseat setup', for editors")
    add("--connect", metavar="URL", help="with acp: serve nothing, and pass messages on to the server at this URL")
    add("--ahp", action="store_true", help="speak the Agent Host Protocol, on stdin and stdout")
    add("--host", metavar="ADDR", help="listen on this address; default: loopback")
    add("--no-token", action="store_true", help="serve processes of the same user without a token")
    add("--tls-cert", metavar="FILE", help="certificate chain in PEM form: require TLS")
    add("--tls-key", metavar="FILE", help="private key of the certificate")
    add(
        "--behind-tls-proxy",
        action="store_true",
        help="allow a --host beyond loopback without TLS, because a proxy between clients and server adds TLS",
    )
    add("--protocol", type=int, choices=(2, 3), help="speak this protocol version, without detecting the client's")


def _add_sessions(parser: CommandParser) -> None:
    add = parser.add_argument_group("servers: what sessions get").add_argument
    add(
        "--tools",
        type=_tool_names,
        metavar="NAMES",
        help=(
            "offer minimal, default or all tools, or only these, separated by commas, in sessions whose clients"
            " choose none; none for no tools"
        ),
    )
    add("--yolo", action="store_true", help="run calls that no attached client can be asked about")
    add(
        "--plugin-dir",
        metavar="DIR",
        action="append",
        default=[],
        help="plugin folder, with skills and MCP servers for all sessions; can be repeated",
    )
    add(
        "--session-idle-timeout",
        type=int,
        metavar="S",
        help="close sessions that no client has used for this time, in seconds; they can be resumed",
    )
    add("--auth-token-env", metavar="NAME", help="environment variable that holds a GitHub token")
    add("--no-auto-login", action="store_true", help="use no GitHub token of the environment or gh")


def _add_records(parser: CommandParser) -> None:
    add = parser.add_argument_group("servers: logs and recordings").add_argument
    add("--log-level", choices=LOG_LEVELS, default="warning", help="lowest level that is logged to stderr")
    add("--log-format", choices=("text", "json"), default="text", help="form of the log")
    add("--log-dir", metavar="DIR", help="also write the log to a file in this folder")
    add(
        "--metrics-port",
        type=port_number,
        metavar="PORT",
        help="serve health and metrics over HTTP on this loopback port",
    )
    add(
        "--metrics-host",
        metavar="ADDRESS",
        help="serve metrics at this address, too: a private one, or any one with a token in JUMPSEAT_METRICS_TOKEN",
    )
    add(
        "--keep-model-calls",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep the tokens, cost and times of each model call with its session, for clients that plot them",
    )
    add("--record", metavar="DIR", help="record every call to a provider in this folder")
    add("--replay", metavar="DIR", help="answer calls to providers from recordings, offline")
    add("--replay-in-order", action="store_true", help="ignore the bodies of requests in a replay")
    add("--replay-delays", action="store_true", help="replay with the recorded delays")


def _list_commands() -> str:
    rows = {f"{name} {info.arguments}".rstrip(): info for name, info in COMMANDS.items()}
    width = max(map(len, rows))
    lines: list[str] = []
    for usage, info in rows.items():
        if info.group:
            lines += ("", f"{info.group}:")
        lines.append(f"  {usage:<{width}}  {info.help}")
    return "\n".join([*lines[1:], "", "'jumpseat help COMMAND' describes each."])


def _tcp_options(parser: CommandParser, known: Any, token: str | None) -> TcpOptions:
    # Arguments that only SDKs have a reason to pass. SDKs before 1.0 cannot send a token; newer ones set
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
        metrics_host=_metrics_host(parser, known, environ.get("JUMPSEAT_METRICS_TOKEN")),
        metrics_token=environ.get("JUMPSEAT_METRICS_TOKEN"),
        session_idle_s=known.session_idle_timeout or None,
        auth_token=environ.get(known.auth_token_env) if known.auth_token_env else None,
        auto_login=not known.no_auto_login,
        allow_unasked=known.yolo,
        protocol=known.protocol,
        acp=known.acp,
        ahp=known.ahp,
        tools=known.tools,
        record=known.record or environ.get("JUMPSEAT_RECORD"),
        replay=Replay(replay, known.replay_in_order, known.replay_delays) if replay else None,
        plugin_dirs=tuple(known.plugin_dir),
        keep_model_calls=known.keep_model_calls,
    )


def _metrics_host(parser: CommandParser, known: Any, token: str | None) -> str | None:
    host: str | None = known.metrics_host
    if host is None:
        return None
    try:
        address = ip_address(host)
    except ValueError:
        parser.error(f"--metrics-host: expected an IP address, got {host!r}")
    if known.metrics_port is None:
        parser.error("--metrics-host needs --metrics-port")
    if not token and (address.is_unspecified or not address.is_private):
        parser.error(
            f"--metrics-host {host} is not a private address: set JUMPSEAT_METRICS_TOKEN to a token for scrapers"
        )
    return host


def _tool_names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas; ``none`` stands for no names."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError("expected names of tools, or none for no tools")
    return () if names == ("none",) else names


def _origin(text: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+", text):
        raise argparse.ArgumentTypeError(f"expected an origin such as https://agents.example.org, got {text!r}")
    return text
