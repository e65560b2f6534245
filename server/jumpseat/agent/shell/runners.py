"""Recognize commands that differ only in what a script or a build tool of the project is given.

Such a command runs code of the project, which may do anything in the sandbox. So an approval of a confined command
covers other arguments of the same script, as long as the sandbox confines them, too. An option that names other
code (``--eval``, ``-f``, ``-fplugin=``) is not among the arguments.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from jumpseat.agent.shell.commands import ParsedCommand, identify, program_name
from jumpseat.agent.shell.extent import TRYING, obeyed_names, tries
from jumpseat.agent.shell.harmless import ANY_FOLDER
from jumpseat.agent.shell.known_likeness import known_likeness
from jumpseat.agent.shell.likeness import (
    CHECKS,
    LOOKS,
    NOTHING,
    SAME,
    SHOWS,
    Likeness,
    alike,
    as_trial,
    is_output,
    joined,
    prefixed,
)
from jumpseat.agent.shell.programs import LOADS_URLS
from jumpseat.agent.shell.project_tools import (
    checker_likeness,
    only_looks,
    speaks_of_deployment,
    task_likeness,
    tool_likeness,
    unwrapped,
)
from jumpseat.agent.shell.service_likeness import service_likeness
from jumpseat.agent.shell.tool_options import is_program, written
from jumpseat.agent.shell.words import PLAIN_SETTING, Word

Kind: TypeAlias = Callable[[str, Sequence[str]], Likeness]


def likeness(words: Sequence[Word], known: ParsedCommand) -> Likeness:
    """Return what a command has in common with others. ``known`` is the command as approvals identify it.

    Scripts with the same first subcommand are alike: ``./manage db`` is not like ``./manage deploy``. An approval
    of a script also covers its subcommands that say that they only show something.
    """
    outer, inner = words, _behind_wrappers(words)
    if inner is not words:
        words, known = inner, identify("", inner)
        if not words or words[0].text in _ALONE:
            return NOTHING
    if not words or not words[0].fixed or not all(word.fixed or _is_pattern(word) for word in words[1:]):
        return NOTHING
    texts = [word.text for word in words]
    trial = tries(texts)
    if trial is None:
        return NOTHING
    if trial:
        known = replace(known, identifier=known.identifier.removesuffix(f" {TRYING}"))
    same = f"{SAME}{known.identifier}" if known.clear else ""
    found = _found(texts, words, known)
    own = tuple(filter(None, [same]))
    sets = any("=" in word.text for word in outer[: len(outer) - len(inner)])
    if sets and any(text.startswith(SHOWS) for text in found.gives):
        # Variables in front of it may name another host or configuration.
        return NOTHING
    whole = replace(
        found,
        needs=(*found.needs, *own),
        gives=(*found.gives, *own),
        bound=found.bound.union(own),
        scratch=written(texts),
    )
    return as_trial(whole) if trial else whole


def _found(texts: list[str], words: Sequence[Word], known: ParsedCommand) -> Likeness:
    name, *arguments = texts
    prefix, rest = unwrapped(texts)
    if not rest:
        return NOTHING
    service = service_likeness(texts, known.identifier if known.clear else "")
    if service.gives:
        return service
    found = known_likeness(texts, known.identifier if known.clear else "")
    if found is not None:
        return found
    spoken = _BUILD_KIND.sub("", " ".join(arguments)) if name in _BUILDERS else " ".join(arguments)
    if speaks_of_deployment(spoken):
        # The names of tests may speak of anything.
        return checker_likeness(prefix, rest)
    if prefix and rest[0] in _SCRIPTS_OF_TOOLS:
        return prefixed(prefix, _KINDS[rest[0]](rest[0], rest[1:]))
    task = task_likeness(prefix, rest)
    if CHECKS in task.needs:
        return task
    if "/" in name and (task.gives or checker_likeness(prefix, rest).gives):
        # It is no script of which nothing is known.
        return joined((task, tool_likeness(prefix, rest)))
    script = _script_likeness(name, arguments)
    return joined((task, script if script.gives else tool_likeness(prefix, rest)))


def _behind_wrappers(words: Sequence[Word]) -> Sequence[Word]:
    """Return the command behind ``env`` with plain settings, and behind limits of its time."""
    while len(words) > 1 and words[0].fixed:
        texts = [word.text for word in words]
        match texts[0]:
            case "timeout":
                end = next((n for n, text in enumerate(texts) if n and not _TIMEOUT_OPTION.fullmatch(text)), 0)
                if not end or not _DURATION.fullmatch(texts[end]):
                    break
                words = words[end + 1 :]
            case "env":
                end = next((n for n, text in enumerate(texts) if n and not PLAIN_SETTING.fullmatch(text)), 0)
                if end < 2:
                    break
                words = words[end:]
            case "time" | "nohup":
                words = words[1:]
            case "valgrind":
                end = next((n for n, text in enumerate(texts) if n and not _VALGRIND_OPTION.fullmatch(text)), 0)
                if not end or not _is_project_file(texts[end]) or "/" not in texts[end]:
                    break
                words = words[end:]
            case "stdbuf" if texts[1] in ("-oL", "-o0"):
                words = words[2:]
            case _:
                break
    return words


def _is_pattern(word: Word) -> bool:
    """Return whether a word stands for names of files, none of which is an option."""
    return word.glob and re.match(r"[\w.]|--[\w-]+=", word.text) is not None


def _script_likeness(name: str, arguments: Sequence[str]) -> Likeness:
    if _is_project_file(name) and "/" in name:
        return _with_subcommand(name, arguments)
    base = program_name([name])
    base = "python" if _PYTHON.fullmatch(base) else base
    if name != base and base != "python":
        return NOTHING
    kind = _KINDS.get(base)
    return kind(name, arguments) if kind is not None else NOTHING


def _with_subcommand(name: str, arguments: Sequence[str]) -> Likeness:
    script = name.rpartition("/")[2]
    if _CHECKING_SCRIPT.fullmatch(script) and not any(map(_DOES_MORE.search, arguments)):
        # Its words choose what it checks.
        return alike(f"{name} *", gives=[f"{name} {LOOKS}"], bound=True)
    subcommand = next((word for word in arguments if _SUBCOMMAND.fullmatch(word)), "")
    looks = only_looks(subcommand) if subcommand else bool(arguments) and set(arguments) <= {"--help", "--version"}
    look = f"{name} {LOOKS}"
    bare = f"{name} *"
    # What such a word asks for is what most programs do without one.
    wider = [look] if looks else [bare] if subcommand in _STARTS else []
    found = alike(f"{name} {subcommand} *" if subcommand else bare, gives=[look], needs=wider, bound=True)
    return replace(found, bound=frozenset((*found.needs, look)))


def _is_project_file(path: str, ending: str = "") -> bool:
    """Return whether a path is that of a file of the project: below the folder, and not of an installed program."""
    parts = path.removeprefix("./").split("/")
    built = len(parts) > 1 and parts[0] == "bin" and not is_program(parts[-1])
    return path.endswith(ending) and not any(
        part == "" or part.startswith(("-", ".", "~")) or part in ("bin", "node_modules")
        for part in (parts[1:] if built else parts)
    )


def _script(ending: str) -> Kind:
    def of_script(name: str, arguments: Sequence[str]) -> Likeness:
        if not arguments or not _is_project_file(arguments[0], ending):
            return NOTHING
        return _with_subcommand(f"{name} {arguments[0]}", arguments[1:])

    return of_script


def _python(name: str, arguments: Sequence[str]) -> Likeness:
    if len(arguments) > 1 and arguments[0] == "-m":
        known = arguments[1] == "json.tool" or ("." in arguments[1] and _MODULE.fullmatch(arguments[1]))
        return _with_subcommand(f"{name} -m {arguments[1]}", arguments[2:]) if known else NOTHING
    return _script(".py")(name, arguments)


def _ruby(name: str, arguments: Sequence[str]) -> Likeness:
    folders = next((n for n, word in enumerate(arguments) if word not in ("-Itest", "-Ilib", "-Ispec", "-w")), 0)
    return _script(".rb")(" ".join((name, *arguments[:folders])), arguments[folders:])


def _php(name: str, arguments: Sequence[str]) -> Likeness:
    return _script("" if arguments[:1] == ["artisan"] else ".php")(name, arguments)


def _go(name: str, arguments: Sequence[str]) -> Likeness:
    if len(arguments) < 2 or arguments[0] != "run" or arguments[1].startswith("-"):
        return NOTHING
    package = arguments[1]
    own = (
        package == "."
        or (package.startswith("./") and _is_project_file(package))
        or _is_project_file(package, ".go")
    )
    # Further files are part of the program.
    more = [word for word in arguments[2:] if word.endswith(".go")]
    return _with_subcommand(f"{name} run {package}", arguments[2:]) if own and not more else NOTHING


def _java(name: str, arguments: Sequence[str]) -> Likeness:
    if len(arguments) > 2 and arguments[0] in ("-cp", "-classpath") and _MODULE.fullmatch(arguments[2]):
        own = all(map(_is_project_file, arguments[1].split(":")))
        return _with_subcommand(f"{name} -cp {arguments[1]} {arguments[2]}", arguments[3:]) if own else NOTHING
    if len(arguments) < 2 or arguments[0] != "-jar" or not _is_project_file(arguments[1], ".jar"):
        return NOTHING
    return _with_subcommand(f"{name} -jar {arguments[1]}", arguments[2:])


def _behind_dashes(*subcommands: str) -> Kind:
    """Make a rule for programs that pass on all arguments behind ``--``."""

    def of_runner(name: str, arguments: Sequence[str]) -> Likeness:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        if name in _PASS_ON and len(arguments) > 2 and not arguments[1].startswith("-"):
            end = min(end, 2)
        own = [word for word in arguments[:end] if word not in ("--release", "--quiet", "--verbose", "-q", "-v")]
        if not own or own[0] not in subcommands:
            return NOTHING
        behind = [word for word in arguments[end:] if word != "--"]
        # The script is named already, so that a word behind an option is its value.
        return _with_subcommand(" ".join((name, *own, "--")), behind[:1])

    return of_runner


def _only(options: str, operands: str = r"(?!)", least: int = 0) -> Kind:
    """Make a rule for programs that are alike if nothing but some ``options`` and ``operands`` differs.

    ``least`` is the number of words in front that have to be the same.
    """
    option, operand = re.compile(options), re.compile(operands)

    def of_tool(name: str, arguments: Sequence[str]) -> Likeness:
        same = [*arguments[:least]]
        for word in arguments[least:]:
            if not option.fullmatch(word) and not operand.fullmatch(word):
                return NOTHING
        return alike(" ".join((name, *same, "*")), gives=[CHECKS], bound=True)

    return of_tool


def _cmake(name: str, arguments: Sequence[str]) -> Likeness:
    first, folder = [*arguments[:2], "", ""][:2]
    if folder != "." and not _is_project_file(folder):
        return NOTHING
    if first == "--build":
        options = rf"-j\d*|-v|--verbose|--parallel|--clean-first|--target|--config|Debug|Release|\d+|{_TARGET}"
        return _only(options, least=2)(name, arguments)
    least = 4 if first == "-S" and arguments[2:3] == ["-B"] and _is_project_file(" ".join(arguments[3:4])) else 2
    return (
        _only(rf"{_DEFINITION}|-G|Ninja|Unix Makefiles", least=least)(name, arguments)
        if least == 4 or first == "-B"
        else NOTHING
    )


def _ninja(name: str, arguments: Sequence[str]) -> Likeness:
    folder = len(arguments) > 1 and arguments[0] == "-C" and _is_project_file(arguments[1])
    return _only(rf"-j\d*|-v|-n|\d+|{_TARGET}", least=2 if folder else 0)(name, arguments)


def _ctest(name: str, arguments: Sequence[str]) -> Likeness:
    folder = len(arguments) > 1 and arguments[0] == "--test-dir" and _is_project_file(arguments[1])
    options = r"-[RELEVQNj]\w*|-VV|--output-on-failure|--rerun-failed|--verbose|\w[\w.|^$*-]*"
    return _only(options, least=2)(name, arguments) if folder else NOTHING


def _compiler(name: str, arguments: Sequence[str]) -> Likeness:
    """The output is named after a source or lies among others, and the options neither load nor run anything."""
    if arguments.count("-o") != 1 or arguments[-1] == "-o":
        return NOTHING
    at = arguments.index("-o")
    output = arguments[at + 1]
    rest = [*arguments[:at], *arguments[at + 2 :]]
    known = all(_COMPILER_OPTION.fullmatch(word) or _is_source(word) for word in rest)
    if not known or not _is_project_file(output):
        return NOTHING
    stems = {posixpath.splitext(posixpath.basename(word))[0] for word in rest if _is_source(word)}
    common = is_output(output) or posixpath.splitext(output)[0] in stems
    return alike(f"{name} -o {'OUTPUT' if common else output} *", bound=True)


def _is_source(word: str) -> bool:
    return _SOURCE.search(word) is not None and _is_project_file(word)


def _javac(name: str, arguments: Sequence[str]) -> Likeness:
    arguments = [word for word in arguments if not _JAVAC_OPTION.fullmatch(word)]
    known = len(arguments) > 2 and arguments[0] == "-d" and _is_project_file(arguments[1])
    known = known and all(_is_project_file(word, ".java") for word in arguments[2:])
    return alike(f"{name} -d {arguments[1]} *", bound=True) if known else NOTHING


def _maven(name: str, arguments: Sequence[str]) -> Likeness:
    """The goals are the same, in the same order."""
    goals = [word for word in arguments if not word.startswith("-")]
    known = all(_MAVEN_GOAL.fullmatch(word) or _MAVEN_OPTION.fullmatch(word) for word in arguments)
    return alike(" ".join((name, *goals, "*")), bound=True) if goals and known else NOTHING


def _make(name: str, arguments: Sequence[str]) -> Likeness:
    """The targets are the same, and the settings only change what is shown."""
    targets = [word for word in arguments if _GOAL.fullmatch(word)]
    if arguments[:1] == ["-C"] and _is_project_file(" ".join(arguments[1:2])):
        targets, arguments = [*arguments[:2], *targets[1:]], arguments[2:]
    known = all(_GOAL.fullmatch(word) or _MAKE_OPTION.fullmatch(word) for word in arguments)
    return alike(" ".join((name, *targets, "*")), bound=True) if known else NOTHING


def _sed(name: str, arguments: Sequence[str]) -> Likeness:
    """A plain substitution in files of the project."""
    known = (
        len(arguments) > 2
        and arguments[0] == "-i"
        and _SUBSTITUTION.fullmatch(arguments[1])
        and all(map(_is_project_file, arguments[2:]))
    )
    obeyed = " ".join(obeyed_names(arguments[2:]))
    return alike(f"{name} -i s/// {obeyed}*", bound=True) if known else NOTHING


_BUILDERS: Final = frozenset({"bun", "cargo", "cmake", "dotnet", "npm", "npx", "pnpm", "swift", "vite", "yarn"})
_BUILD_KIND: Final = re.compile(
    r"(?<!\S)(?:-DCMAKE_BUILD_TYPE=Release|--release"
    r"|(?:--mode|--config|--configuration|-c)[ =](?:[Rr]elease|production))(?!\S)"
)
_TIMEOUT_OPTION: Final = re.compile(r"-(?:k|s)\S*|--(?:foreground|preserve-status|kill-after=\S+|signal=\w+)|-v")
_VALGRIND_OPTION: Final = re.compile(
    r"-[qvs]|--(?:leak-check|show-leak-kinds|track-origins|error-exitcode|num-callers|tool|errors-for-leak-kinds)=\w+"
)
_PASS_ON: Final = frozenset({"bun", "pnpm", "yarn"})
"""They pass on arguments to scripts without ``--``."""
_SCRIPTS_OF_TOOLS: Final = frozenset({"node", "php", "python", "python3", "ruby", "ts-node", "tsx"})
_ALONE: Final = LOADS_URLS | {name.split()[0] for name in ANY_FOLDER} | {"git", "install"}
"""What these touch is only known if nothing stands in front of them."""
_CHECKING_SCRIPT: Final = re.compile(
    r"(?:run[_-]?)?(?:all[_-]?)?(?:tests?|lint|check|verify|coverage|typecheck)(?:[_-][a-z]{1,12}){0,2}"
    r"(?:\.(?:sh|bash|py|js|ts|rb|php))?|test_\w{1,40}\.py|\w{1,40}_test\.(?:rb|py)"
)
_DOES_MORE: Final = re.compile(
    r"(?i:accept|apply|bless|clean|delete|drop|exec|fix|install|migrate|overwrite|purge|record|remove|reset|save|update"
    r"|upgrade|write)|[=]/"
)
_DURATION: Final = re.compile(r"\d+(?:\.\d+)?[smh]?")
_PYTHON: Final = re.compile(r"python[\d.]*")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_STARTS: Final = frozenset({"demo", "dev", "run", "serve", "server", "start", "watch"})
_SUBCOMMAND: Final = re.compile(r"[A-Za-z][\w:-]*")
_GOAL: Final = re.compile(r"[a-z][\w-]*")
_TARGET: Final = (
    r"(?![\w.+-]{0,39}?(?i:clean|deploy|flash|install|package|publish|push|run|upload))[A-Za-z][\w.+-]{0,39}"
)
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

_KINDS: Final[Mapping[str, Kind]] = {
    "python": _python,
    **dict.fromkeys(("bash", "sh"), _script(".sh")),
    "node": _script("js"),
    "go": _go,
    "java": _java,
    "ruby": _ruby,
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
