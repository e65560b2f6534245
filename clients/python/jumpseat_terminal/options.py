"""The arguments of ``jumpseat chat`` and ``jumpseat run``. Standard library only, to report errors fast."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

from jumpseat_terminal.mentions import find_attachment
from jumpseat_terminal.rules import Rule, RuleError, parse_rule

USAGE_ERROR: Final = 2
PICK: Final = ""
"""Value of ``--resume`` without an id: the user chooses from a list."""

SETS: Final = frozenset({"@minimal", "@default", "@all"})
"""Names of sets of tools among those of a session."""

Format: TypeAlias = Literal["text", "json", "stream-json"]

_EXIT_CODES: Final = """\
exit codes:
  0    done
  1    the turn failed, or the server did not start
  2    invalid arguments, or no such session
  3    a tool call was denied because it needed approval
  130  cancelled with ctrl-c (143: with SIGTERM)
  141  stdout was closed by its reader
"""


@dataclass(frozen=True, slots=True)
class SharedServer:
    """A running server to connect to. ``authority`` is a file with the certificates to trust, in PEM form."""

    host: str
    port: int
    tls: bool = False
    authority: Path | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Arguments of both commands. ``resume`` is the id of a session, the start of one, or :data:`PICK`.

    Without ``server``, the command starts a server of its own. ``folder`` is a path on the server's machine.
    ``tools`` are the only tools to offer, ``None`` offers all. ``max_cost``, in US dollars, and ``max_tokens`` are
    the budget of the session.
    ``log_level`` is the lowest level of the server's log to print; ``None`` prints none. Only ``run`` has it.
    """

    model: str | None
    reasoning_effort: str | None
    resume: str | None
    latest: bool
    folder: Path
    yolo: bool
    allow: tuple[Rule, ...]
    deny: tuple[Rule, ...]
    log_level: str | None = None
    adapter_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    server: SharedServer | None = None
    tools: list[str] | None = None
    max_cost: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Arguments of ``run``. A ``prompt`` of ``-`` means stdin; ``attachments`` are those of ``session.send``.

    ``schema`` is the JSON Schema that the answer has to match.
    """

    settings: Settings
    prompt: str
    format: Format
    attachments: tuple[dict[str, Any], ...]
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """Arguments of ``setup``. Without a ``provider``, the user is asked. ``key_file`` ``-`` means stdin."""

    list: bool = False
    json: bool = False
    provider: str | None = None
    key_file: Path | None = None
    base_url: str | None = None
    model: str | None = None
    check: bool = True
    remove_key: str | None = None


LOG_LEVELS: Final = ("error", "warning", "info", "debug")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}\nSee: {self.prog} --help", file=sys.stderr)
        sys.exit(USAGE_ERROR)

    def parse_all(self, argv: Sequence[str]) -> Any:
        """Parse the arguments; name the first one that is unknown, and the option that may have been meant."""
        known, unknown = self.parse_known_args(argv)
        if unknown:
            self.error(self._complain(unknown[0]))
        return known

    def _complain(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument {argument!r}; put a prompt of several words in quotes"
        # Imported for errors only.
        from jumpseat_protocol.members import option_hint

        return f"unknown option {argument!r}{option_hint(argument, self.format_usage())}"


def parse_chat(argv: Sequence[str]) -> Settings:
    """Parse the arguments of ``chat``; exits with code 2 if they are invalid."""
    parser = _Parser(prog="jumpseat chat", allow_abbrev=False, description="Chat with an agent in this folder.")
    add_chat_options(parser)
    return _settings(parser, parser.parse_all(argv))


def add_chat_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``chat``."""
    parser.add_argument("--resume", nargs="?", const=PICK, metavar="ID", help="resume a session")
    _add_common(parser)


def parse_run(argv: Sequence[str]) -> RunOptions:
    """Parse the arguments of ``run``; exits with code 2 if they are invalid."""
    parser = _Parser(
        prog="jumpseat run",
        allow_abbrev=False,
        description="Run one prompt, with piped input if any; the answer goes to stdout, all else to stderr.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run_options(parser)
    known = parser.parse_all(argv)
    settings = _settings(parser, known)
    if known.words is not None and known.prompt is not None:
        parser.error("PROMPT and --prompt are mutually exclusive")
    prompt: str | None = known.words if known.prompt is None else known.prompt
    if prompt is None and sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] - None if closed
        parser.error("there is no prompt: expected jumpseat run PROMPT, or a prompt on stdin")
    if prompt is not None and not prompt.strip():
        parser.error("the prompt is empty")
    attached = [(name, find_attachment(name, Path.cwd())) for name in known.attach]
    if missing := [name for name, found in attached if found is None]:
        parser.error(f"no such file to attach: {missing[0]!r}")
    return RunOptions(
        settings,
        "-" if prompt is None else prompt,
        known.output_format,
        tuple(path for _, path in attached if path),
        None if known.json_schema is None else _schema(parser, known.json_schema),
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``run``."""
    parser.add_argument("words", nargs="?", metavar="PROMPT", help="the prompt; '-', or none, reads it from stdin")
    parser.add_argument("-p", "--prompt", metavar="TEXT", help="the same")
    parser.add_argument("--resume", metavar="ID", help="resume a session")
    parser.add_argument(
        "--attach", action="append", default=[], metavar="FILE", help="attach a file or folder; repeatable"
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="print the log of the server from this level on")
    parser.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    parser.add_argument(
        "--json-schema", type=Path, metavar="FILE", help="require an answer in JSON that matches this JSON Schema"
    )
    _add_common(parser)


def parse_setup(argv: Sequence[str]) -> SetupOptions:
    """Parse the arguments of ``setup``; exits with code 2 if they are invalid."""
    parser = _Parser(
        prog="jumpseat setup",
        allow_abbrev=False,
        description="Connect a provider of models: choose it, enter its key, try it, and choose a model. With"
        " options, nothing is asked.",
    )
    add_setup_options(parser)
    known = parser.parse_all(argv)
    options = SetupOptions(
        list=known.list,
        json=known.json,
        provider=known.provider,
        key_file=known.key_file,
        base_url=known.base_url,
        model=known.model,
        check=known.check,
        remove_key=known.remove_key,
    )
    if options.provider is None:
        for name in ("key_file", "base_url", "model"):
            if getattr(options, name) is not None:
                parser.error(f"--{name.replace('_', '-')} requires --provider")
        if not options.check:
            parser.error("--no-check requires --provider")
    elif not options.check and options.model is None:
        parser.error("--no-check requires --model")
    if options.json and not options.list:
        parser.error("--json requires --list")
    return options


def add_setup_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``setup``."""
    parser.add_argument(
        "--list", action="store_true", help="list the providers and their state, and change nothing"
    )
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    parser.add_argument(
        "--provider", metavar="NAME", help="set up this provider, such as openai, without questions"
    )
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="its key, in a file; '-' reads it from stdin")
    parser.add_argument("--base-url", metavar="URL", help="add a server of your own at this address, as --provider")
    parser.add_argument("--model", metavar="NAME", help="its model; default: the first suitable one")
    parser.add_argument(
        "--no-check", dest="check", action="store_false", help="do not try the model; requires --model"
    )
    parser.add_argument("--remove-key", metavar="NAME", help="remove the key that was entered for a provider")


def _schema(parser: argparse.ArgumentParser, path: Path) -> dict[str, Any]:
    try:
        schema: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        parser.error(f"cannot read {str(path)!r}: {error.strerror or error}")
    except ValueError as error:
        parser.error(f"{str(path)!r} is not JSON: {error}")
    if not isinstance(schema, dict):
        parser.error(f"{str(path)!r}: expected a JSON Schema, which is an object")
    return cast("dict[str, Any]", schema)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="the model; 'jumpseat models' lists them")
    parser.add_argument("--reasoning-effort", metavar="LEVEL", help="low, medium, high or a level of the model")
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        type=_setting,
        metavar="NAME=VALUE",
        help="set a setting of the model's adapter, such as temperature=0.2; repeatable",
    )
    parser.add_argument("--continue", dest="latest", action="store_true", help="resume the latest session here")
    parser.add_argument("-C", "--folder", type=Path, default=None, metavar="DIR", help="work in another folder")
    parser.add_argument(
        "--tools",
        type=_names,
        metavar="NAMES",
        help="offer minimal, default or all tools, or only these, separated by commas; none for no tools",
    )
    parser.add_argument(
        "--max-cost", type=_dollars, metavar="DOLLARS", help="end the work of the session at this cost"
    )
    parser.add_argument(
        "--max-tokens", type=_count, metavar="N", help="the same for tokens sent and received, such as 200000"
    )
    parser.add_argument("--allow-tool", action="append", default=[], metavar="RULE", help="allow without asking")
    parser.add_argument("--deny-tool", action="append", default=[], metavar="RULE", help="deny; overrides all else")
    parser.add_argument("--yolo", action="store_true", help="allow everything that no rule denies")
    parser.add_argument(
        "--connect",
        type=_address,
        metavar="HOST:PORT",
        help="connect to a running server; COPILOT_CONNECTION_TOKEN is its token",
    )
    parser.add_argument("--tls", action="store_true", help="require TLS of the running server")
    parser.add_argument(
        "--tls-ca", type=Path, metavar="FILE", help="certificates to trust, in PEM form; with --connect"
    )


def _address(text: str) -> tuple[str, int]:
    """Parse ``HOST:PORT``; an IPv6 address is in brackets."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, got {text!r}")
    return host, int(port)


def _dollars(text: str) -> float:
    """Parse an amount, with or without its sign."""
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        raise argparse.ArgumentTypeError(f"expected an amount above zero, such as 2.50, got {text!r}")
    return amount


def _count(text: str) -> int:
    """Parse a number of tokens."""
    digits = text.replace("_", "").replace(",", "")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 15 and int(digits)):
        raise argparse.ArgumentTypeError(f"expected a number above zero, got {text!r}")
    return int(digits)


def _names(text: str) -> list[str]:
    """Parse names separated by commas; ``none`` stands for no names, and there are names of sets."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names == ["none"]:
        return []
    if names == ["default"]:
        return ["@default"]
    if not names:
        raise argparse.ArgumentTypeError("expected names of tools, or none for no tools")
    if alone := {"default", "none"}.intersection(names):
        raise argparse.ArgumentTypeError(f"{alone.pop()!r} stands alone")
    sets = {"minimal": "@minimal", "all": "@all"}
    return [sets.get(name, name) for name in names]


def _setting(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; a value that is not JSON is a string."""
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _settings(parser: argparse.ArgumentParser, known: Any) -> Settings:
    if known.latest and known.resume is not None:
        parser.error("--resume and --continue are mutually exclusive")
    if known.connect is None and (known.tls or known.tls_ca is not None):
        parser.error("--tls and --tls-ca require --connect")
    if known.connect is not None and getattr(known, "log_level", None) is not None:
        parser.error("--log-level is for a server of our own: --connect excludes it")
    if known.tls_ca is not None and not known.tls_ca.is_file():
        parser.error(f"no such file: {str(known.tls_ca)!r}")
    folder = Path(os.path.abspath(known.folder or Path.cwd()))
    if known.connect is None and not folder.is_dir():
        parser.error(f"{str(folder)!r} is not a folder")
    try:
        allow, deny = (tuple(map(parse_rule, rules)) for rules in (known.allow_tool, known.deny_tool))
    except RuleError as error:
        parser.error(str(error))
    server = None
    if known.connect is not None:
        host, port = known.connect
        server = SharedServer(host, port, tls=known.tls or known.tls_ca is not None, authority=known.tls_ca)
    return Settings(
        model=known.model,
        reasoning_effort=known.reasoning_effort,
        resume=known.resume,
        latest=known.latest,
        folder=folder,
        yolo=known.yolo,
        allow=allow,
        deny=deny,
        log_level=getattr(known, "log_level", None),
        adapter_settings=dict(known.setting),
        server=server,
        tools=known.tools,
        max_cost=known.max_cost,
        max_tokens=known.max_tokens,
    )
