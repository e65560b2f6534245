"""Judge the options of testers, linters and builders: which only choose tests and files, or change what is shown.

Those of each tool are in :mod:`jumpseat.agent.shell.checker_options`. What is not known there is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.shell.checker_options import options_of
from jumpseat.agent.shell.extent import OWN_PROJECT
from jumpseat.agent.shell.likeness import is_output, is_own_folder
from jumpseat.agent.shell.options import HarmlessOptions
from jumpseat.agent.shell.programs import INTERPRETERS, RUNS_OTHERS, SHELLS, TAKES_CODE

_PROPERTY: Final = re.compile(
    r"-[DP](?:\w+\.)*(?:tests?|it\.test|skip\w*|fail\w*|includes?|excludes?|verbose|groups|excludedGroups"
    r"|rerunFailingTestsCount)(?:=[\w.,:*#$!+|-]*)?\Z|-D[A-Za-z][\w.]*=(?i:true|false|on|off|enabled|disabled|\d)\Z"
)
_WITH_PROPERTIES: Final = frozenset({"gradle", "meson", "mvn", "sbt", "zig"})

_CHOICE: Final = re.compile(r"[\w./:@*#%\[\]{}()~^$|&,<>= '\"+?!-]*\Z")

_OUTPUT: Final = re.compile(
    r"-o\Z|--?(?:[a-z]+-)?(?:out|output|outfile|output-file|outputFile|outDir|out-dir|coverprofile|cpuprofile|memprofile"
    r"|junitxml|junit-xml|log-file|report-file)(?:=|\Z)"
)

_SHOWS: Final = frozenset({
    "--backtrace", "--color", "--colors", "--debug", "--info", "--json", "--minify", "--no-color",
    "--no-colors", "--no-daemon", "--no-progress", "--pretty", "--progress", "--quiet", "--silent",
    "--sourcemap", "--sourcemaps", "--stacktrace", "--stats", "--strict", "--time", "--timings", "--verbose",
    "--warn", "--warnings", "-Wall", "-Werror", "-Wextra", "-Xlint", "-q", "-v", "-vv", "-vvv",
})  # fmt: skip
"""Options that change what any program shows, and leave what it does."""

_RUNS: Final = RUNS_OTHERS | TAKES_CODE | SHELLS

_REPORTERS: Final = re.compile(
    r"(?:[dphj]|JUnit|TAP|allure|auto|basic|blob|checkstyle|clang|clover|cobertura|codeframe|colored|colorized"
    r"|compact|default|doc|documentation|dot|dots|emacs|expanded|failures|fuubar|github|gitlab|grouped"
    r"|hanging-process|html|jslint-xml|json|json-lines|json-summary|junit|landing|lcov|line|lines|lint|list"
    r"|min|minimal|msvs|none|nyan|offenses|parseable|plain|pretty|progress|quickfix|quiet|raw|sarif|simple"
    r"|spec|standard|string|stylish|summary|symbols|tap|tap-flat|text|text-summary|tree|unix|unobtrusive"
    r"|verbose|worst|xunit)"
    r"(?:,(?:clover|default|dot|html|json|lcov|list|text|text-summary))*"
)
_WORD: Final = re.compile(r"[\w-]+(?:,[\w-]+)*")

_VALUES_OF_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    # By the last words of the names of options whose values may be modules or files with code.
    **dict.fromkeys(("reporter", "reporters", "formatter", "runner"), _REPORTERS),
    **dict.fromkeys(("browser", "browsers", "pool", "preset", "provider", "target"), _WORD),
    "configuration": re.compile(
        r"[Dd]ebug|[Rr]elease|development|production|test|ci|(?:test)?(?:[Cc]ompile|[Rr]untime)Classpath"
    ),
}
_VALUES: Final[Mapping[str, re.Pattern[str]]] = {
    # The same by the name of the tool and the option.
    **dict.fromkeys(
        (
            "bats -F", "behave --format", "behave -f", "cucumber --format", "cucumber -f", "eslint --format",
            "eslint -f", "mocha -R", "next -f", "pylint --output-format", "pylint -f", "rspec --format", "rspec -f",
            "rubocop --format", "rubocop -f", "standardrb --format", "stylelint -f", "test_script --format",
        ),
        _REPORTERS,
    ),
    **dict.fromkeys(("clang-format --style", "clang-format -style"), re.compile(r"[A-Za-z]+")),
    **dict.fromkeys(
        ("dotnet --logger", "dotnet -l"), re.compile(r"(?:console|trx|html|junit)(?:;(?:verbosity|v)=\w+)?")
    ),
    **dict.fromkeys(("dotnet -c", "nx -c"), _VALUES_OF_NAMES["configuration"]),
    "cypress -b": _WORD,
    **dict.fromkeys(
        ("dependency-cruiser --output-type", "dependency-cruiser -T"),
        re.compile(r"csv|d2|dot|err(?:-html|-long)?|json|markdown|mermaid|metrics|null|teamcity|text"),
    ),
    "golangci-lint --out-format": _WORD,
    **dict.fromkeys(("phpcbf --standard", "phpcs --standard"), re.compile(r"(?:PSR|PEAR|Squiz|Zend|Generic)\d*")),
    **dict.fromkeys(("phpcs --report", "pint --preset"), _WORD),
    "clang-tidy -p": re.compile(r"(?:\./)?(?:build|out|cmake-build)[\w/-]*"),
    "gotestsum --packages": re.compile(r"\./[\w./-]*(?: \./[\w./-]*)*"),
    "test_script --project": re.compile(
        r"(?:(?:Mobile|Desktop) )?(?:[Cc]hrom(?:e|ium)|[Ff]irefox|[Ww]ebkit|[Ss]afari|unit|e2e)"
    ),
    **dict.fromkeys(
        ("pytest --cov-report", "test_script --cov-report"),
        re.compile(r"(?:[a-z]+(?:-missing)?|term(?:-missing)?:skip-covered)"),
    ),
    "pytest -W": re.compile(r"[\w:]*"),
    "pytest -p": re.compile(r"no:[\w.-]+"),
    **dict.fromkeys(
        ("tsc -p", "tsc --project", "vue-tsc -p", "vue-tsc --project"),
        OWN_PROJECT,
    ),
}  # fmt: skip

_TEST_FOLDERS: Final = frozenset({
    "__tests__", "cypress", "e2e", "feature", "features", "integration_test", "it", "spec", "specs", "t", "test",
    "test_driver", "tests",
})  # fmt: skip
_TEST_NAME: Final = re.compile(
    r"(?:\A|[_.-])(?i:tests?|specs?|cy|e2e|feature)[._-]|(?:[._-](?:tests?|spec)|Tests?|Spec)\.\w"
)
"""Names of files that are tests."""
_CODE: Final = re.compile(r"\.(?:[cm]?[jt]sx?|py|rb|php|exs?|sh|bats|lua|dart|clj)(?:\Z|:)")
_RUNS_FILES: Final = frozenset({
    "ava", "bats", "behave", "bin/rails", "bun test", "busted", "cypress run", "dart test", "deno test",
    "flutter test", "minitest", "mix test", "mocha", "node --test", "pest", "php artisan test", "phpunit",
    "pytest", "rails test", "rspec", "tap",
})  # fmt: skip
"""Testers that run each file they are given."""
_OTHER_CODE: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(
        ("go build", "go test", "go vet", "go_test", "gotestsum", "govulncheck"),
        # The path of a module, which may come from elsewhere.
        re.compile(r"\A[\w-]+\.[\w.-]+/|@|\A(?:all|cmd|std)\Z"),
    ),
    **dict.fromkeys(("deno check", "deno test"), re.compile(r"\A(?:[a-z]{4,}|jsr|npm):")),
    # Anything else is the folder of another project.
    **dict.fromkeys(("tsc", "vue-tsc"), re.compile(r"\A(?!(?:true|false)\Z)(?![^\n]*\.(?:[cm]?[jt]sx?|vue)\Z)")),
    "ginkgo": re.compile(r"\A[\w-]+\.[\w.-]+/|@|\A(?:bootstrap|build|generate|run|unfocus|watch)\Z"),
    # What is no subcommand of these stands behind two dashes.
    "cargo llvm-cov": re.compile(r"\A(?!(?:nextest|report|test)\Z)"),
    "cargo tarpaulin": re.compile(r"\A"),
    "jasmine": re.compile(r"\A(?:enumerate|examples|init)\Z"),
    **dict.fromkeys(
        ("phpstan", "phpstan analyse", "phpstan analyze"),
        re.compile(r"\A(?:bisect|clear-result-cache|diagnose|dump-parameters|(?:fixer:)?worker)\Z"),
    ),
    "karma start": re.compile(r"\A(?!karma\.conf\.[cm]?[jt]s\Z)"),
    # The third one is a file with rules.
    "phpmd": re.compile(r"\.xml\Z"),
    "unittest": re.compile(r"\A(?!discover\Z)(?![^\n]*(?i:tests?|spec))"),
}
"""Operands that are more than files and packages of the project."""
_LABEL: Final = re.compile(r"-?//[\w./-]*(?::[\w./+=-]+)?|-?:[\w./+=-]+")

_KINDS_OF_VALUES: Final[Mapping[str, re.Pattern[str]]] = {
    "reporter": _REPORTERS,
    "number": re.compile(r"\d{1,5}"),
    "host": re.compile(r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|::1?)(?::\d{1,5})?"),
    "word": re.compile(r"\w+"),
    "choice": re.compile(r"[\w.,:*^$|-]+"),
}

_TUNES: Final[Mapping[str, str]] = {
    **dict.fromkeys((*_SHOWS, "--reload", "--watch", "--no-watch", "--no-reload"), ""),
    **dict.fromkeys(("--port", "-p", "--workers", "--threads", "-j", "--jobs"), "number"),
    **dict.fromkeys(("--host", "--bind", "--hostname", "-b"), "host"),
    **dict.fromkeys(("--log-level", "--loglevel", "--verbosity"), "word"),
}
"""Options of any program that change how it is reached and what it shows, with the kinds of their values."""

_NARROWS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("--filter", "--grep", "-g", "-k", "--match", "--only", "--sort", "--limit", "--max", "--depth", "--tag"),
        "choice",
    ),
    **dict.fromkeys(("--format", "--columns"), "word"),
    "--reporter": "reporter",
    **dict.fromkeys(("--help", "--dry-run", "--check", "--diff", "--plain", "--short", "--oneline"), ""),
}
"""Options that narrow what a program works on."""

_WITH_LABELS: Final = frozenset({"bazel build", "bazel query", "bazel test"})
_SWITCHES: Final = frozenset({"true", "false", "auto", "always", "never"})
_INSTALLS: Final = frozenset({"bundle", "cargo", "easy_install", "gem", "npm", "pip", "pip3", "pnpm", "uv", "yarn"})


def written(words: Sequence[str]) -> tuple[str, ...]:
    """Return the files that the options of a command name as its output, if these are ordinary outputs."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    values = [word.partition("=")[2] or after for word, after in pairs if _OUTPUT.match(word)]
    return tuple(value for value in values if is_output(value))


class Argument(Struct, frozen=True):
    """An argument of a tool: an operand, or the option ``name`` with its value, as ``words``.

    It is ``known`` if it only chooses tests and files of the project, or what is shown. It is ``behind`` if it
    stands behind two dashes.
    """

    words: tuple[str, ...]
    name: str = ""
    known: bool = True
    behind: bool = False


def deciding_arguments(
    arguments: Sequence[str], stems: AbstractSet[str] = frozenset(), tool: str = ""
) -> list[str]:
    """Return the arguments that do more than choose tests and files of the project, and what is shown.

    ``stems`` are names that an output may have, wherever it is in the project.
    """
    return [word for found in read_arguments(arguments, stems, tool) if not found.known for word in found.words]


def read_arguments(
    arguments: Sequence[str], stems: AbstractSet[str] = frozenset(), tool: str = ""
) -> list[Argument]:
    """Take the arguments of a tool apart."""
    options = options_of(tool)
    found: list[Argument] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--":
            behind = (
                read_arguments(left, tool=options.rest)
                if options.rest
                else [Argument((one,), known=not one.startswith("-") and _fits_operand(tool, one)) for one in left]
            )
            return [*found, *(replace(one, behind=True) for one in behind)]
        if not word.startswith("-") or word == "-":
            found.append(Argument((word,), known=_fits_operand(tool, word)))
        elif tool.partition(" ")[0] in _WITH_PROPERTIES and _PROPERTY.match(word):
            found.append(Argument((word,), word.partition("=")[0]))
        else:
            found.append(_option(options, tool, word, left, stems))
    return found


def _option(options: HarmlessOptions, tool: str, word: str, left: list[str], stems: AbstractSet[str]) -> Argument:
    """Read an option, and take its value from the words that are ``left``."""
    name, equals, value = word.partition("=")
    kind = options.long.get(name)
    if kind is None and word.startswith("--"):
        return _unknown(word, left)
    if kind is None:
        name, kind, value, equals = _short(options, word)
        if kind is None:
            return _unknown(word, left)
    if kind == "":
        return Argument((word,), name, known=not equals or value in _SWITCHES)
    words = (word,)
    if not equals and kind == "?":
        return Argument(words, name)
    if not equals:
        if not left:
            return Argument(words, name, known=False)
        value = left.pop(0)
        words = (word, value)
    if kind == ">":
        known = is_output(value) or (is_own_folder(value) and value.rpartition("/")[2] in stems)
    else:
        known = _fits_value(tool, name, value)
    return Argument(words, name, known)


def _short(options: HarmlessOptions, word: str) -> tuple[str, str | None, str, str]:
    """Return the last of the short options in a word: its name and kind, its value, and that as it is written."""
    for index, letter in enumerate(word[1:], start=1):
        kind, rest = options.short.get(letter), word[index + 1 :]
        if kind is None:
            numeric = options.numbers and word[index:].isdigit()
            return word, "" if numeric else None, "", ""
        if kind:
            return f"-{letter}", kind, rest.removeprefix("="), rest
    return word, "", "", ""


def _unknown(word: str, left: list[str]) -> Argument:
    # The next word may be its value: the name of an output, for example.
    more = (left.pop(0),) if left and not left[0].startswith("-") and "=" not in word else ()
    return Argument((word, *more), word.partition("=")[0], known=False)


def _fits_value(tool: str, name: str, value: str) -> bool:
    program = tool.partition(" ")[0]
    last = re.split(r"[-_.]|(?<=[a-z])(?=[A-Z])", name.lstrip("-"))[-1].lower()
    known = _VALUES.get(f"{program} {name}") or (_VALUES_OF_NAMES.get(last) if name.startswith("--") else None)
    if known is not None:
        return known.fullmatch(value) is not None
    if (
        (last in ("spec", "pattern") or (tool, name) == ("rspec", "-P"))
        and _CODE.search(value)
        and not _is_test(value)
    ):
        return False
    return not value.startswith("-") and _is_plain(value)


def _fits_operand(tool: str, word: str) -> bool:
    if tool in _WITH_LABELS and is_label(word):
        return True
    return is_choice(word) and not is_other_code(tool, word)


def is_label(word: str) -> bool:
    """Return whether a word names a target of ``bazel`` in the project, and no file."""
    return _LABEL.fullmatch(word) is not None and _stays(word)


def is_other_code(tool: str, operand: str) -> bool:
    """Return whether an operand of a tester or builder may name code that is none of the tests of the project."""
    other = _OTHER_CODE.get(tool)
    if other is not None:
        return other.search(operand) is not None
    return tool in _RUNS_FILES and _CODE.search(operand) is not None and not _is_test(operand)


def _is_test(path: str) -> bool:
    """Return whether a path says that it is that of a test."""
    file, _, named = path.partition("::")
    *folders, name = file.split("/")
    return (
        named[:4].lower() == "test" or not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAME.search(name) is not None
    )


def is_choice(word: str) -> bool:
    """Return whether a word may choose tests or files of the project, and names no program."""
    # A setting may be that of a program or of a shell.
    return _is_plain(word) and re.match(r"\w[\w.]*=", word) is None


def _is_plain(word: str) -> bool:
    return (
        _CHOICE.match(word) is not None
        and not word.startswith(("/", "~", "@", "+"))
        and re.match(r"(?:[a-z]+:/|npm:|jsr:|node:|data:)", word) is None
        and _stays(word)
        and (word in (".", "test") or not runs_others(word.rpartition("/")[2]))
    )


def _stays(word: str) -> bool:
    return re.search(r"(?<![.\w])\.\.(?:/|\Z)", word) is None


def is_program(name: str) -> bool:
    """Return whether a name is that of a program which runs others, or installs them."""
    return runs_others(name) or name in _INSTALLS


def runs_others(program: str) -> bool:
    """Return whether a program runs others, or code."""
    return INTERPRETERS.match(program) is not None or program in _RUNS


def without_tuning(words: Sequence[str]) -> list[str]:
    """Return words without the options that change how a program is reached and what it shows."""
    return _without(words, _TUNES)


def without_narrowing(words: Sequence[str]) -> list[str]:
    """Return words without the options that narrow what a program works on."""
    return _without(words, _NARROWS)


def _without(words: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return words without some options and their values."""
    left, kept = list(words), list[str]()
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        pattern = options.get(name)
        if pattern is None or (equals and not pattern):
            kept.append(word)
        elif pattern and not equals:
            kept += [] if left and _KINDS_OF_VALUES[pattern].fullmatch(left[0]) else [word, *left[:1]]
            left = left[1:]
        elif equals and not _KINDS_OF_VALUES[pattern].fullmatch(value):
            kept.append(word)
    return kept
