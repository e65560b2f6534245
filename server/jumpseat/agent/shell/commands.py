"""Identify one command of a command line: the identifier that approvals use, and its properties.

An approval names a command by its identifier: ``ls``, ``git status``. If the command, or any of its options, is not
known to be harmless, the identifier is its whole text, which no other command matches. The tables are in
:mod:`jumpseat.agent.shell.harmless`, and those for rules that forbid in :mod:`jumpseat.agent.shell.programs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from jumpseat.agent.shell.extent import TRYING, command_extent, is_plain_variable, tries
from jumpseat.agent.shell.harmless import (
    HARMLESS,
    MODULES,
    OTHER_NAMES,
    PYTHON_TOOLS,
    SCRIPT_RUNNERS,
    TEST_SCRIPT,
    WITH_SUBCOMMAND,
    WRAPPERS,
)
from jumpseat.agent.shell.options import may_be_option, parse_options
from jumpseat.agent.shell.programs import (
    GIT_SUBCOMMANDS,
    INTERPRETERS,
    LOADS_URLS,
    REACHING_OPTIONS,
    READS_DATA,
    RUNS_OTHERS,
    TAKES_CODE,
    TAKES_NO_PATHS,
    TAKES_TARGETS,
)
from jumpseat.agent.shell.reading import READING
from jumpseat.agent.shell.text_programs import printed_files, reads_more
from jumpseat.agent.shell.tool_options import is_other_code
from jumpseat.agent.shell.words import Word
from jumpseat_protocol.structs import PartlyCompared

HOOKS: Final = "Git runs hooks there, which are code of the project"
"""A part of the warning about a command outside for which git runs hooks: they may call any file of the project."""


class ParsedCommand(PartlyCompared, Struct, frozen=True):
    """A command as approvals see it.

    ``identifier`` is what an approval names: ``ls``, ``git status``, or the whole text if the command is not
    ``clear``.
    """

    uncompared = ("clear",)
    identifier: str
    read_only: bool
    clear: bool = True


def verbatim_command(text: str) -> ParsedCommand:
    """Return a command that is identified by its whole text, so that only the same text matches."""
    return ParsedCommand(text, read_only=False, clear=False)


def identify(text: str, words: Sequence[Word]) -> ParsedCommand:
    """Identify the command ``text``, which consists of ``words``."""
    identifier = _identifier(words)
    if identifier is None:
        return verbatim_command(text)
    if identifier in READING or identifier in _PRINTING:
        return ParsedCommand(identifier, read_only=True)
    trial = tries([word.text for word in words])
    if trial is None:
        return verbatim_command(text)
    return ParsedCommand(f"{identifier} {TRYING}" if trial else identifier, read_only=False)


def is_known(words: Sequence[Word]) -> bool:
    """Return whether a command and all of its options are known to be harmless."""
    return _identifier(words) is not None


def is_filter(words: Sequence[Word]) -> bool:
    """Return whether a command does nothing but pass on parts of its input: it opens no file."""
    name = words[0].text if words and words[0].fixed else ""
    if name not in _FILTERS and name not in _PRINTERS:
        return False
    if name in _PRINTERS:
        return printed_files(words) == []
    most, opening = _FILTERS[name]
    operands = parse_options(READING[name]).operands(words[1:])
    texts = [word.text for word in words[1:]]
    if operands is None or any(may_be_option(text, opening) for text in texts):
        return False
    if name in _CHECKS and not all(map(_CHECKS[name], operands)):
        return False
    # The pattern of grep may be the value of an option instead.
    return len(operands) <= (0 if any(may_be_option(text, ("-e", "--regexp")) for text in texts) else most)


def _identifier(words: Sequence[Word]) -> str | None:
    """Return the identifier of a known command with harmless options; ``None`` for any other."""
    # An assignment (PATH=, LD_PRELOAD=) is not a plain name; it may change what the command does.
    if not words or not words[0].fixed or not _PLAIN_NAME.match(words[0].text):
        return None
    variables = (name for word in words if not word.fixed for name in _EXPANDED.findall(word.text))
    if not all(map(is_plain_variable, variables)):
        # The model would see their values.
        return None
    name, arguments = words[0].text, list(words[1:])
    # A program that is called with its folder has the same options and subcommands.
    base = program_name([name])
    base = OTHER_NAMES.get(base, base)
    if base in _PRINTERS:
        printing = printed_files([Word(base), *arguments]) is not None
        return f"{name} -n" if _only_prints_lines(arguments) else f"{name} print" if printing else None
    if MODULES.match(base):
        if len(arguments) < 2 or arguments[0] != Word("-m"):
            return None
        return _tool(f"{name} -m", arguments[1:], PYTHON_TOOLS)
    if base in TAKES_TARGETS:
        return _target(name, base, arguments)
    while base == "git" and arguments and arguments[0] in (Word("--no-pager"), Word("-P")):
        arguments.pop(0)
    return _wrapped(name, base, arguments) or _tool("", [Word(base), *arguments], HARMLESS, name)


def _wrapped(name: str, base: str, arguments: list[Word]) -> str | None:
    """Return the identifier of a tool that is run by another program: ``npx eslint``, ``uv run pytest``."""
    for wrapper, rest in ((base, arguments), (f"{base} {arguments[0].text}" if arguments else "", arguments[1:])):
        if wrapper in WRAPPERS and rest:
            found = _tool(name + wrapper.removeprefix(base), rest, WRAPPERS[wrapper])
            if found is not None:
                return found
    return None


def _tool(prefix: str, words: Sequence[Word], table: Mapping[str, str], shown: str = "") -> str | None:
    """Return the identifier of the program ``words[0]`` with its subcommands, if ``table`` has all of it.

    ``shown`` is the name of the program as it was written, ``prefix`` the words in front of it.
    """
    known, arguments = words[0].text, list(words[1:])
    if not words[0].fixed:
        return None
    identifier = shown or known
    while known in WITH_SUBCOMMAND:
        if known in table and (not arguments or arguments[0].text.startswith("-")):
            break
        # An option in front of the subcommand (git -c ...) may change what it means.
        if not arguments or not arguments[0].fixed or not _SUBCOMMAND.match(arguments[0].text):
            return None
        subcommand = arguments.pop(0).text
        if known in SCRIPT_RUNNERS and known in table:
            options = f"{table[known]} -->test_script" if TEST_SCRIPT.match(subcommand) else table[known]
            identifier = f"{identifier} {subcommand}"
            return None if parse_options(options).operands(arguments) is None else f"{prefix} {identifier}".strip()
        if f"{known} {subcommand}" not in table and known in table:
            # A resource, such as that of `kubectl get`.
            identifier = f"{identifier} {subcommand}"
            break
        known, identifier = f"{known} {subcommand}", f"{identifier} {subcommand}"
    operands = parse_options(table[known]).operands(arguments) if known in table else None
    if operands is None or (known in _CHECKS and not all(map(_CHECKS[known], operands))):
        return None
    if any(is_other_code(known, operand) for operand in operands):
        return None
    extent = command_extent(known, arguments, operands)
    return None if extent is None else f"{prefix} {identifier} {extent}".strip()


def _target(name: str, base: str, arguments: Sequence[Word]) -> str | None:
    """Return the identifier of a program that builds one target: ``make test``, or the first one: ``make``."""
    operands = parse_options(HARMLESS[base]).operands(arguments)
    # A number is the value of an option such as `-j 4`.
    targets = [operand for operand in operands or () if not operand.isdigit()]
    if operands is None or len(targets) > 1 or not all(map(_SUBCOMMAND.match, targets)):
        return None
    return " ".join((name, *targets))


def _only_prints_lines(arguments: Sequence[Word]) -> bool:
    """Return whether the arguments of ``sed`` are ``-n``, a script that prints lines by number, and files."""
    return (
        len(arguments) >= 2
        and arguments[0] == Word("-n")
        and arguments[1].fixed
        and _PRINTS_LINES.match(arguments[1].text) is not None
        and parse_options("").operands(arguments[2:]) is not None
    )


def has_reaching_option(words: Sequence[Word]) -> bool:
    """Return whether an option makes the command open files that its words do not name."""
    name, *rest = [word.text for word in words] or [""]
    name = program_name([name])
    if name == "tar" and rest and not rest[0].startswith("-"):
        # The old syntax of tar: options without a dash.
        rest[0] = f"-{rest[0]}"
    return any(may_be_option(word, REACHING_OPTIONS.get(name, ())) for word in rest)


def follows_redirects(words: Sequence[str]) -> bool:
    """Return whether the command may load from other hosts than those that its words name."""
    name = program_name(words)
    if name == "curl":
        return any(may_be_option(word, ("-L", "--location", "--location-trusted")) for word in words[1:])
    return name in LOADS_URLS and not (name == "wget" and "--max-redirect=0" in words)


def runs_other_commands(words: Sequence[str]) -> bool:
    """Return whether the command runs other commands, so that any of its words may begin one."""
    name = program_name(words)
    return _runs_other_commands(name) or any(_runs_other_commands(f"{name} {word}") for word in words[1:3])


def takes_code(words: Sequence[str]) -> bool:
    """Return whether the words of the command may contain code in some language, or settings that hold commands."""
    name = program_name(words)
    return (
        name in TAKES_CODE
        or INTERPRETERS.match(name) is not None
        or reconfigures_git(words)
        or git_subcommand(words) == "config"
    )


def reads_code(words: Sequence[str]) -> bool:
    """Return whether the command may run what it reads from its input."""
    name = program_name(words)
    if name in READS_DATA or not (name in TAKES_CODE or INTERPRETERS.match(name)):
        return False
    given = any(word[:2] in ("-c", "-e", "-m") or not word.startswith("-") for word in words[1:])
    return name in TAKES_CODE or not given or "-" in words or "/dev/stdin" in words


def reconfigures_git(words: Sequence[str]) -> bool:
    """Return whether an option in front of a ``git`` subcommand may change what the subcommand means."""
    leading = takewhile(lambda word: word.startswith("-") or "=" in word, words[1:])
    return program_name(words) == "git" and any(
        may_be_option(word, ("-c", "--config-env", "--exec-path")) for word in leading
    )


def may_be_alias(words: Sequence[str]) -> bool:
    """Return whether the command is a subcommand of ``git`` that settings may define."""
    subcommand = git_subcommand(words)
    return bool(subcommand) and subcommand not in GIT_SUBCOMMANDS and not reconfigures_git(words)


def git_subcommand(words: Sequence[str]) -> str:
    """Return the first argument of ``git`` that is not an option; empty for other programs."""
    return (
        next((word for word in words[1:] if not word.startswith("-")), "") if program_name(words) == "git" else ""
    )


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def takes_no_paths(words: Sequence[str]) -> bool:
    """Return whether the command never opens its words as files."""
    return bool(words) and words[0] in TAKES_NO_PATHS


def loads_urls(words: Sequence[str]) -> bool:
    """Return whether any word of the command may be a URL, even without a scheme."""
    return program_name(words) in LOADS_URLS


def _runs_other_commands(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last in RUNS_OTHERS or last in WRAPPERS or INTERPRETERS.match(last) is not None


_FILTERS: Final[Mapping[str, tuple[int, tuple[str, ...]]]] = {
    # The number of operands that are not files, and the options that open files.
    **dict.fromkeys(("cat", "column", "cut", "fold", "head", "nl", "rev", "sort", "tac", "uniq", "wc"), (0, ())),
    "tail": (0, ("-f", "-F", "--follow", "--retry", "--pid")),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep"), (1, ("-r", "-R", "--recursive", "--dereference-recursive", "-f", "--file"))
    ),
    "jq": (1, ("--slurpfile", "--rawfile", "-f", "--from-file", "-L")),
    "tr": (2, ()),
}
_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    # Operands that do more than the others.
    "date": lambda operand: operand.startswith("+"),
    # In front of the owner, there may be another host.
    "gh repo view": lambda operand: re.fullmatch(r"[\w.-]+(?:/[\w.-]+)?", operand) is not None,
    "jq": lambda operand: not reads_more(operand),
}
_PRINTERS: Final = frozenset({"awk", "gawk", "mawk", "sed"})
_PRINTING: Final = frozenset({"printenv NAME", "sed -n", *(f"{name} print" for name in _PRINTERS)})
_PRINTS_LINES: Final = re.compile(r"(?:\d+(?:,(?:\d+|\$))?p;?)+\Z")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_./+:@-]+\Z")
_EXPANDED: Final = re.compile(r"\$\{?[!#]?([A-Za-z_]\w*)", re.ASCII)
_SUBCOMMAND: Final = re.compile(r"[a-z0-9][\w:.-]*\Z", re.ASCII)
