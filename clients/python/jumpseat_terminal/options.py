"""The arguments of ``jumpseat chat`` and ``jumpseat run``. The standard library only: mistakes cost no imports."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias

from jumpseat_terminal.mentions import attachment
from jumpseat_terminal.rules import Rule, RuleError, parse_rule

USAGE_ERROR: Final = 2
PICK: Final = ""
"""``--resume`` without an id: let the user choose."""

Format: TypeAlias = Literal["text", "json", "stream-json"]

_EXIT_CODES: Final = """\
exit codes:
  0    done
  1    the turn failed, or there is no server
  2    wrong arguments
  3    a tool needed a permission that nobody could give
  130  cancelled with ctrl-c (143: by SIGTERM)
  141  whoever read the output has gone
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What both commands know. ``resume`` is the id of a session, or its beginning, or :data:`PICK`."""

    model: str | None
    reasoning_effort: str | None
    resume: str | None
    latest: bool
    folder: Path
    yolo: bool
    allow: tuple[Rule, ...]
    deny: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """``prompt`` of ``-`` stands for all of stdin. ``attachments`` are those of ``session.send``."""

    settings: Settings
    prompt: str
    format: Format
    attachments: tuple[dict[str, Any], ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}\nSee: {self.prog} --help", file=sys.stderr)
        sys.exit(USAGE_ERROR)


def parse_chat(argv: Sequence[str]) -> Settings:
    """Read the arguments of ``chat``; exits with code 2 where they are wrong."""
    parser = _Parser(prog="jumpseat chat", allow_abbrev=False, description="Talk with an agent in this folder.")
    _add_common(parser)
    return _settings(parser, parser.parse_args(argv))


def parse_run(argv: Sequence[str]) -> RunOptions:
    """Read the arguments of ``run``; exits with code 2 where they are wrong."""
    parser = _Parser(
        prog="jumpseat run",
        allow_abbrev=False,
        description="Run one prompt, with what is piped to it; the answer goes to stdout, all else to stderr.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-p", "--prompt", metavar="TEXT", required=True, help="the prompt; '-' reads it from stdin")
    parser.add_argument(
        "--attach", action="append", default=[], metavar="FILE", help="a file or folder to go with it"
    )
    parser.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    _add_common(parser)
    known = parser.parse_args(argv)
    settings = _settings(parser, known)
    if settings.resume == PICK:
        parser.error("--resume needs an id here; --continue goes on with the latest session of the folder")
    if not known.prompt.strip():
        parser.error("the prompt is empty")
    attached = [(name, attachment(name, Path.cwd())) for name in known.attach]
    if missing := [name for name, found in attached if found is None]:
        parser.error(f"there is no file {missing[0]!r} to attach")
    return RunOptions(settings, known.prompt, known.output_format, tuple(one for _, one in attached if one))


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="as 'jumpseat models' lists them")
    parser.add_argument("--reasoning-effort", metavar="LEVEL", help="low, medium, high or what the model has")
    parser.add_argument("--resume", nargs="?", const=PICK, metavar="ID", help="go on with a session")
    parser.add_argument("--continue", dest="latest", action="store_true", help="... with the latest of this folder")
    parser.add_argument("-C", "--folder", type=Path, default=None, metavar="DIR", help="work there, not here")
    parser.add_argument("--allow-tool", action="append", default=[], metavar="RULE", help="allow without asking")
    parser.add_argument("--deny-tool", action="append", default=[], metavar="RULE", help="deny; wins over all else")
    parser.add_argument("--yolo", action="store_true", help="allow everything that is not denied")


def _settings(parser: argparse.ArgumentParser, known: Any) -> Settings:
    if known.latest and known.resume is not None:
        parser.error("--resume and --continue exclude each other")
    folder = Path(os.path.abspath(known.folder or Path.cwd()))
    if not folder.is_dir():
        parser.error(f"{str(folder)!r} is no folder")
    try:
        allow, deny = (tuple(map(parse_rule, rules)) for rules in (known.allow_tool, known.deny_tool))
    except RuleError as error:
        parser.error(str(error))
    return Settings(
        model=known.model,
        reasoning_effort=known.reasoning_effort,
        resume=known.resume,
        latest=known.latest,
        folder=folder,
        yolo=known.yolo,
        allow=allow,
        deny=deny,
    )
