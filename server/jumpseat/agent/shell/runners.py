"""Recognize commands that differ only in what a script or a build tool of the project is given.

Such a command runs code of the project, which may do anything in the sandbox. So an approval of a confined command
covers other arguments of the same script, as long as the sandbox confines them, too. An option that names other
code (``--eval``, ``-f``, ``-fplugin=``) is not among the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from jumpseat.agent.shell.commands import identify, program_name
from jumpseat.agent.shell.project_tools import speaks_of_deployment, task_likeness, tool_likeness, unwrapped
from jumpseat.agent.shell.words import Word


def likeness(words: Sequence[Word]) -> str:
    """Return a text that is equal for commands that an approval inside of a sandbox covers alike; ``""`` if the
    command is like no other one.

    Scripts with the same first subcommand are alike: ``./manage db`` is not like ``./manage deploy``.
    """
    if not words or not words[0].fixed or not all(word.fixed or _is_pattern(word) for word in words[1:]):
        return ""
    name, *arguments = [word.text for word in words]
    if speaks_of_deployment(_BUILD_KIND.sub("", " ".join(arguments)) if name in _BUILDERS else " ".join(arguments)):
        return ""
    prefix, rest = unwrapped([name, *arguments])
    if prefix and rest and rest[0] in _SCRIPTS_OF_TOOLS:
        found = _KINDS[rest[0]](rest[0], rest[1:])
        return f"{prefix} {found}" if found else ""
    return task_likeness(prefix, rest) or _script_likeness(name, arguments, words) or tool_likeness(prefix, rest)


def _is_pattern(word: Word) -> bool:
    """Return whether a word stands for names of files, none of which is an option."""
    return word.glob and re.match(r"[\w.]|--[\w-]+=", word.text) is not None


def _script_likeness(name: str, arguments: Sequence[str], words: Sequence[Word]) -> str:
    behind = {"time": 0, "timeout": 1}.get(name)
    if behind is not None and len(arguments) > behind:
        inner = identify("", words[1 + behind :])
        known = inner.clear and arguments[behind] in _TIMED and (not behind or _DURATION.fullmatch(arguments[0]))
        return f"{name} {inner.identifier}" if known else ""
    if _is_project_file(name) and "/" in name:
        return _with_subcommand(name, arguments)
    base = program_name([name])
    base = "python" if _PYTHON.fullmatch(base) else base
    if name != base and base != "python":
        return ""
    kind = _KINDS.get(base)
    return kind(name, arguments) if kind is not None else ""


def _with_subcommand(name: str, arguments: Sequence[str]) -> str:
    subcommand = next((word for word in arguments if _SUBCOMMAND.fullmatch(word)), "")
    return f"{name} {subcommand} *" if subcommand else f"{name} *"


def _is_project_file(path: str, ending: str = "") -> bool:
    """Return whether a path is that of a file of the project: below the folder, and not of an installed program."""
    parts = path.removeprefix("./").split("/")
    return path.endswith(ending) and not any(
        part == "" or part.startswith(("-", ".", "~")) or part in ("bin", "node_modules") for part in parts
    )


def _script(ending: str) -> Callable[[str, Sequence[str]], str]:
    def of_script(name: str, arguments: Sequence[str]) -> str:
        if not arguments or not _is_project_file(arguments[0], ending):
            return ""
        return _with_subcommand(f"{name} {arguments[0]}", arguments[1:])

    return of_script


def _python(name: str, arguments: Sequence[str]) -> str:
    if len(arguments) > 1 and arguments[0] == "-m":
        known = arguments[1] == "json.tool" or ("." in arguments[1] and _MODULE.fullmatch(arguments[1]))
        return _with_subcommand(f"{name} -m {arguments[1]}", arguments[2:]) if known else ""
    return _script(".py")(name, arguments)


def _php(name: str, arguments: Sequence[str]) -> str:
    return _script("" if arguments[:1] == ["artisan"] else ".php")(name, arguments)


def _node(name: str, arguments: Sequence[str]) -> str:
    if arguments and arguments[0] == "--test":
        return "" if any(word.startswith("-") for word in arguments[1:]) else f"{name} --test *"
    return _script("js")(name, arguments)


def _go(name: str, arguments: Sequence[str]) -> str:
    if len(arguments) < 2 or arguments[0] != "run" or arguments[1].startswith("-"):
        return ""
    package = arguments[1]
    own = (
        package == "."
        or (package.startswith("./") and _is_project_file(package))
        or _is_project_file(package, ".go")
    )
    # Further files are part of the program.
    more = [word for word in arguments[2:] if word.endswith(".go")]
    return _with_subcommand(f"{name} run {package}", arguments[2:]) if own and not more else ""


def _java(name: str, arguments: Sequence[str]) -> str:
    if len(arguments) > 2 and arguments[0] in ("-cp", "-classpath") and _MODULE.fullmatch(arguments[2]):
        own = all(map(_is_project_file, arguments[1].split(":")))
        return _with_subcommand(f"{name} -cp {arguments[1]} {arguments[2]}", arguments[3:]) if own else ""
    if len(arguments) < 2 or arguments[0] != "-jar" or not _is_project_file(arguments[1], ".jar"):
        return ""
    return _with_subcommand(f"{name} -jar {arguments[1]}", arguments[2:])


def _behind_dashes(*subcommands: str) -> Callable[[str, Sequence[str]], str]:
    """Make a rule for programs that pass on all arguments behind ``--``."""

    def of_runner(name: str, arguments: Sequence[str]) -> str:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        if name in _PASS_ON and len(arguments) > 2 and not arguments[1].startswith("-"):
            end = min(end, 2)
        own = arguments[:end]
        if not own or own[0] not in subcommands:
            return ""
        behind = [word for word in arguments[end:] if word != "--"]
        # The script is named already, so that a word behind an option is its value.
        return _with_subcommand(" ".join((name, *own, "--")), behind[:1])

    return of_runner


def _only(options: str, operands: str = r"(?!)", least: int = 0) -> Callable[[str, Sequence[str]], str]:
    """Make a rule for programs that are alike if nothing but some ``options`` and ``operands`` differs.

    ``least`` is the number of words in front that have to be the same.
    """
    option, operand = re.compile(options), re.compile(operands)

    def of_tool(name: str, arguments: Sequence[str]) -> str:
        same = [*arguments[:least]]
        for word in arguments[least:]:
            if not option.fullmatch(word) and not operand.fullmatch(word):
                return ""
        return " ".join((name, *same, "*"))

    return of_tool


def _cmake(name: str, arguments: Sequence[str]) -> str:
    first, folder = [*arguments[:2], "", ""][:2]
    if folder != "." and not _is_project_file(folder):
        return ""
    if first == "--build":
        options = rf"-j\d*|-v|--verbose|--parallel|--clean-first|--target|--config|Debug|Release|\d+|{_TARGET}"
        return _only(options, least=2)(name, arguments)
    least = 4 if first == "-S" and arguments[2:3] == ["-B"] and _is_project_file(" ".join(arguments[3:4])) else 2
    return (
        _only(rf"{_DEFINITION}|-G|Ninja|Unix Makefiles", least=least)(name, arguments)
        if least == 4 or first == "-B"
        else ""
    )


def _ninja(name: str, arguments: Sequence[str]) -> str:
    folder = len(arguments) > 1 and arguments[0] == "-C" and _is_project_file(arguments[1])
    return _only(rf"-j\d*|-v|-n|{_TARGET}", least=2)(name, arguments) if folder else ""


def _ctest(name: str, arguments: Sequence[str]) -> str:
    folder = len(arguments) > 1 and arguments[0] == "--test-dir" and _is_project_file(arguments[1])
    options = r"-[RELEVQNj]\w*|-VV|--output-on-failure|--rerun-failed|--verbose|\w[\w.|^$*-]*"
    return _only(options, least=2)(name, arguments) if folder else ""


def _compiler(name: str, arguments: Sequence[str]) -> str:
    """The output is the same, and the options neither load nor run anything."""
    if arguments.count("-o") != 1 or arguments[-1] == "-o":
        return ""
    at = arguments.index("-o")
    output = arguments[at + 1]
    rest = [*arguments[:at], *arguments[at + 2 :]]
    known = all(_COMPILER_OPTION.fullmatch(word) or _is_source(word) for word in rest)
    return f"{name} -o {output} *" if known and _is_project_file(output) else ""


def _is_source(word: str) -> bool:
    return _SOURCE.search(word) is not None and _is_project_file(word)


def _javac(name: str, arguments: Sequence[str]) -> str:
    arguments = [word for word in arguments if not _JAVAC_OPTION.fullmatch(word)]
    known = len(arguments) > 2 and arguments[0] == "-d" and _is_project_file(arguments[1])
    known = known and all(_is_project_file(word, ".java") for word in arguments[2:])
    return f"{name} -d {arguments[1]} *" if known else ""


def _maven(name: str, arguments: Sequence[str]) -> str:
    """The goals are the same, in the same order."""
    goals = [word for word in arguments if not word.startswith("-")]
    known = all(_MAVEN_GOAL.fullmatch(word) or _MAVEN_OPTION.fullmatch(word) for word in arguments)
    return " ".join((name, *goals, "*")) if goals and known else ""


def _make(name: str, arguments: Sequence[str]) -> str:
    """The targets are the same, and the settings only change what is shown."""
    targets = [word for word in arguments if _GOAL.fullmatch(word)]
    if arguments[:1] == ["-C"] and _is_project_file(" ".join(arguments[1:2])):
        targets, arguments = [*arguments[:2], *targets[1:]], arguments[2:]
    known = all(_GOAL.fullmatch(word) or _MAKE_OPTION.fullmatch(word) for word in arguments)
    return " ".join((name, *targets, "*")) if known else ""


def _sed(name: str, arguments: Sequence[str]) -> str:
    """A plain substitution in files of the project."""
    known = (
        len(arguments) > 2
        and arguments[0] == "-i"
        and _SUBSTITUTION.fullmatch(arguments[1])
        and all(map(_is_project_file, arguments[2:]))
    )
    return f"{name} -i s/// *" if known else ""


_BUILDERS: Final = frozenset({"bun", "cargo", "cmake", "dotnet", "npm", "npx", "pnpm", "swift", "vite", "yarn"})
_BUILD_KIND: Final = re.compile(
    r"(?<!\S)(?:-DCMAKE_BUILD_TYPE=Release|--release"
    r"|(?:--mode|--config|--configuration|-c)[ =](?:[Rr]elease|production))(?!\S)"
)
_TIMED: Final = frozenset({"cargo", "go", "gradle", "make", "mvn", "npm", "npx", "pnpm", "pytest", "yarn"})
_PASS_ON: Final = frozenset({"bun", "pnpm", "yarn"})
"""They pass on arguments to scripts without ``--``."""
_SCRIPTS_OF_TOOLS: Final = frozenset({"node", "php", "python", "python3", "ruby", "ts-node", "tsx"})
_DURATION: Final = re.compile(r"\d+(?:\.\d+)?[smh]?")
_PYTHON: Final = re.compile(r"python[\d.]*")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_SUBCOMMAND: Final = re.compile(r"[A-Za-z][\w:-]*")
_GOAL: Final = re.compile(r"[a-z][\w-]*")
_TARGET: Final = r"(?:all|build|check|docs?|format|lint|tests?|unit)(?:[_-][\w-]*+)?"
_DEFINITION: Final = r"-D(?:CMAKE_BUILD_TYPE|CMAKE_EXPORT_COMPILE_COMMANDS|BUILD_TESTING|BUILD_SHARED_LIBS)=\w+"
_COMPILER_OPTION: Final = re.compile(
    r"-O[0-3sg]?|-Og|-g\d?|-c|-W[a-z][\w-]*|-pedantic|-std=[\w+]+|-pthread|-lm|-fsanitize=[\w,-]+|-D\w+(?:=\w+)?"
)
_JAVAC_OPTION: Final = re.compile(r"-Xlint(?::[\w,-]+)?|-g|-nowarn|-Werror|-deprecation|-parameters")
_SOURCE: Final = re.compile(r"\A\w.*\.(?:c|cc|cpp|cxx|o|a)\Z")
_MAVEN_GOAL: Final = re.compile(r"[a-z][\w:-]*")
_MAVEN_OPTION: Final = re.compile(
    r"-[qBoeXU]|-D(?:skipTests|skipITs|maven\.test\.skip)(?:=(?:true|false))?"
    r"|-D(?:test|it\.test|includes|excludes|verbose|failIfNoTests|surefire\.failIfNoSpecifiedTests)"
    r"(?:=[\w.,:#*!+-]*)?"
)
_MAKE_OPTION: Final = re.compile(r"-j\d*|-[ksBn]|(?:V|VERBOSE|DEBUG|CI|Q)=\w*")
_SUBSTITUTION: Final = re.compile(r"s/[^/\\\[\n]+/[^/\\\n]*/[gI]*")

_KINDS: Final[Mapping[str, Callable[[str, Sequence[str]], str]]] = {
    "python": _python,
    **dict.fromkeys(("bash", "sh"), _script(".sh")),
    "node": _node,
    "go": _go,
    "java": _java,
    "ruby": _script(".rb"),
    "php": _php,
    **dict.fromkeys(("tsx", "ts-node"), _script("s")),
    **dict.fromkeys(("npm", "pnpm", "bun", "yarn", "cargo", "dotnet"), _behind_dashes("run")),
    "cmake": _cmake,
    "ninja": _ninja,
    "ctest": _ctest,
    **dict.fromkeys(("gcc", "g++", "clang", "clang++", "cc", "c++"), _compiler),
    "javac": _javac,
    "mvn": _maven,
    "make": _make,
    "sed": _sed,
}
