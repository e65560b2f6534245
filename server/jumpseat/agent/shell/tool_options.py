"""Judge the options of testers, linters and builders: which only choose tests and files, or change what is shown.

The last words of an option's name say so. Options that name other code or settings of a tool, whatever their names
say, are in a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from jumpseat.agent.shell.likeness import is_output, is_own_folder
from jumpseat.agent.shell.programs import INTERPRETERS, RUNS_OTHERS, SHELLS, TAKES_CODE

_SHORT: Final = re.compile(r"-(?:am|v+|q+|j\d+|n\d+|[xlsSaAiV])\Z")

_SHORT_WITH_VALUE: Final = frozenset({"-pl", "-k", "-t", "-j", "-n", "-g", "-R", "-m", "-run", "-bench"})

_PLAIN: Final = re.compile(r"[\w,:|*^$!~ %.+-]*\Z")

_NAME: Final = re.compile(r"--?([A-Za-z][\w.-]+)\Z")

_PROPERTY: Final = re.compile(
    r"-[DP](?:\w+\.)*(?:tests?|it\.test|skip\w*|fail\w*|includes?|excludes?|verbose|groups|excludedGroups"
    r"|rerunFailingTestsCount)(?:=[\w.,:*#$!+|-]*)?\Z|-D[A-Za-z][\w.]*=(?i:true|false|on|off|enabled|disabled|\d)\Z"
)

_CHOICE: Final = re.compile(r"[\w./:@*#%\[\]{}()~^$|&,<>= '\"+?!-]*\Z")

_OUTPUT: Final = re.compile(
    r"-o\Z|--?(?:[a-z]+-)?(?:out|output|outfile|output-file|outputFile|outDir|out-dir|coverprofile|cpuprofile|memprofile"
    r"|junitxml|junit-xml|log-file|report-file)(?:=|\Z)"
)

_VALUE: Final = frozenset({
    "analyzer", "bail", "bench", "benchmark", "bin", "example", "lib",
    "browser", "case", "category", "class", "color", "colors", "columns",
    "concurrency", "configuration", "cores", "cpus", "deps", "depth", "details", "direct", "dist",
    "durations", "edges", "enable", "exclude", "expression", "ext", "extension", "fail", "feature",
    "features", "files", "filter", "focus", "format", "formatter", "fuzz", "grep", "group", "groups",
    "ignore", "include", "invert", "j", "jobs", "k", "kind", "lang", "level", "limit", "lines", "locale", "logger",
    "log-level", "match", "max", "message", "name", "names", "nodes", "order", "package", "packages",
    "parallel", "pattern", "patterns", "platform", "precision", "processes", "profile", "project", "projects",
    "python", "rating", "repeat", "reporter", "reruns", "retries", "rule", "rules", "scope", "score",
    "seconds", "seed", "select", "severity", "shard", "show", "sort", "spec", "standard", "style", "suite",
    "suites", "summary", "tab-width", "tag", "tags", "target", "targets", "tb", "test", "tests", "testsuite",
    "theme", "threads", "threshold", "time", "timeout", "times", "trace-level", "type", "types", "under",
    "verbosity", "version", "warnings", "width", "word", "workers",
})  # fmt: skip
"""The last words of the names of options whose values choose or show something."""

_FLAG: Final = frozenset({
    "all", "annotate", "autocorrect", "backtrace", "bail", "bench", "bind", "branch", "brief", "browser",
    "bs", "build", "cache", "cached", "capture", "changed", "changes", "check", "ci", "clippy", "collect",
    "color", "colour", "compact", "concise", "count", "cov", "coverage", "cs", "debug", "deps", "details",
    "detect", "diff", "each", "early", "edges", "emit", "error", "errors", "exact", "examples", "exit",
    "explain", "fail", "failed", "failing", "failure", "failures", "fast", "fatal", "features", "files",
    "first", "fix", "flat", "frozen", "full", "group", "headed", "header", "headless", "hidden", "ignore",
    "ignored", "in", "incremental", "info", "interactive", "isolated", "json", "keep", "last", "lf", "lib", "list",
    "locked", "long", "minify", "missing", "modules", "nested", "new", "no", "no-build", "nocapture", "nx",
    "reconfigure",
    "noemit", "offline", "on", "once", "only", "open", "optional", "parallel", "pass", "passed", "pedantic",
    "pretty", "preview", "print", "process", "progress", "quick", "quiet", "random", "raw", "recursive",
    "rerun", "restore", "run", "runner", "safe", "same", "script", "sequential", "serial", "short", "show",
    "silent", "skip", "skipped", "slow", "slowest", "sort", "source", "staged", "stale", "stat", "statistics",
    "stats", "stop", "strict", "style", "success", "suite", "summary", "tags", "tasks", "test", "testdox",
    "tests", "time", "timing", "timings", "trace", "traceback", "tree", "types", "unit", "unmatched",
    "unused", "update", "use", "verbose", "verify", "version", "warn", "warning", "warnings", "watch", "with",
    "without", "workspace", "workspaces", "zero",
})  # fmt: skip
"""Words of the names of options without a value that choose or show something."""

_SHOWS: Final = frozenset({
    "--backtrace", "--color", "--colors", "--debug", "--info", "--json", "--minify", "--no-color",
    "--no-colors", "--no-daemon", "--no-progress", "--pretty", "--progress", "--quiet", "--silent",
    "--sourcemap", "--sourcemaps", "--stacktrace", "--stats", "--strict", "--time", "--timings", "--verbose",
    "--warn", "--warnings", "-Wall", "-Werror", "-Wextra", "-Xlint", "-q", "-v", "-vv", "-vvv",
})  # fmt: skip
"""Options that change what any program shows, and leave what it does."""

_CHOOSES: Final = frozenset({
    "func", "exclude", "file", "files", "filter", "grep", "ignore", "include", "match", "method", "module", "only",
    "package", "packages", "pattern", "patterns", "project", "projects", "spec", "specs", "suite", "suites",
    "target", "targets", "test", "tests", "testsuite",
})  # fmt: skip
"""The last words of the names of options whose values may be files of the project."""

_BEFORE_FILES: Final = frozenset({"changed", "exclude", "ignore", "include", "only", "spec", "test"})

_BEFORE: Final = frozenset({
    "as", "max", "min", "per", "python", "tab", "wait",
})  # fmt: skip

# Each option of each command is looked up in these.
_BEFORE_VALUES: Final = _FLAG | _VALUE | _BEFORE
_BEFORE_PATHS: Final = _BEFORE_VALUES | _CHOOSES
_RUNS: Final = RUNS_OTHERS | TAKES_CODE | SHELLS

_NO_VALUE: Final = frozenset(
    {"--all", "--check", "--fix", "--diff", "--watch", "--headed", "--no-cache", "--noEmit", "--lf"}
)

_OTHER_CODE: Final[Mapping[str, frozenset[str]]] = {
    tool: frozenset(options.split())
    for tool, options in {
        "bash -n": "-i -s -l -a -x --debug --debugger --verbose --rcfile --init-file",
        "bats": "-x -s -l -i --setup-suite-file",
        "ctest": "-S -A -M -T -D -SP -x --script --build-and-test --test-command",
        "gradle": "-i --include --include-build -I --init-script -P -D -t -g -m",
        "just": "-g --global-justfile",
        "mocha": "-R --reporter-option --file --require -r --extension --ui -u -n --node-option",
        "mvn": "-s -gs -t -T -f --settings --toolchains -l",
        "node --check": "-i --test --watch --test-only -r --import --interactive",
        "npm": "-g --global --include -m -R -C",
        "npm run": "-g --global --include -m -R -C",
        "php -l": "-i -a -s -S -A",
        "pnpm": "-R -C -g",
        "pnpm run": "-R -C -g",
        "pytest": "-p -c --rootdir --confcutdir --override-ini --import-mode --pyargs",
        "rspec": "-S -I -r --require",
        "ruby -c": "-i -a -s -S -x -l -n",
        "sh -n": "-i -s -l -a -x",
        "karma start": "--configFile --config",
        "tsc": "-p --project -b --build",
        "vue-tsc": "-p --project -b --build",
        "swiftlint": "--autocorrect --fix --format",
        "tox": "-x -r --workdir --runner",
    }.items()
}
"""Options of tools, by the name of the tool, that mean more than their names say."""

_KNOWN_VALUES: Final[Mapping[str, re.Pattern[str]]] = {
    # Options whose values may be modules or files with code, except for these names.
    **dict.fromkeys(
        ("reporter", "reporters", "formatter", "runner"),
        re.compile(
            r"(?:auto|basic|checkstyle|compact|default|documentation|dot|dots|expanded|failures|github|html|json|junit"
            r"|landing|line|lines|list|min|minimal|nyan|pretty|progress|quickfix|simple|spec|stylish|summary|tap|tree"
            r"|text|text-summary|lcov|unix|verbose|xunit|-.*)?"
        ),
    ),
    "configuration": re.compile(r"[Dd]ebug|[Rr]elease|(?:test)?(?:[Cc]ompile|[Rr]untime)Classpath"),
    "project": re.compile(r"(?:(?:Mobile|Desktop) )?(?:[Cc]hrom(?:e|ium)|[Ff]irefox|[Ww]ebkit|[Ss]afari|unit|e2e)"),
    "target": re.compile(r"[\w-]+"),
}

_KINDS_OF_VALUES: Final[Mapping[str, re.Pattern[str]]] = {
    "reporter": _KNOWN_VALUES["reporter"],
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

_INSTALLS: Final = frozenset({"bundle", "cargo", "easy_install", "gem", "npm", "pip", "pip3", "pnpm", "uv", "yarn"})


def written(words: Sequence[str]) -> tuple[str, ...]:
    """Return the files that the options of a command name as its output, if these are ordinary outputs."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    values = [word.partition("=")[2] or after for word, after in pairs if _OUTPUT.match(word)]
    return tuple(value for value in values if is_output(value))


def deciding_arguments(
    arguments: Sequence[str], stems: AbstractSet[str] = frozenset(), tool: str = ""
) -> list[str]:
    """Return the arguments that do more than choose tests and files of the project, and what is shown.

    ``stems`` are names that an output may have, wherever it is in the project.
    """
    kept: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            kept += [] if is_choice(word) else [word]
            continue
        if _names_code(tool, word, left[:1]):
            kept += [word, *left[:1]]
            left = left[1:]
            continue
        if word == "--" or _SHORT.match(word) or _PROPERTY.match(word) or word in _SHOWS:
            continue
        if word in _SHORT_WITH_VALUE:
            kept += [] if not left or is_choice(left[0]) else [word, left[0]]
            left = left[1:]
            continue
        name, equals, value = word.partition("=")
        if _OUTPUT.match(word):
            if equals or left:
                output = value if equals else left.pop(0)
                known = is_output(output) or (is_own_folder(output) and output.rpartition("/")[2] in stems)
                kept += [] if known else [name, output]
            continue
        kind = _option_kind(name)
        if equals:
            fits = is_choice(value) if kind == "paths" else _PLAIN.match(value) if kind == "value" else None
            fits = fits or (kind == "flag" and value in ("true", "false", "auto", "always", "never"))
            kept += [] if fits else [word]
        elif kind in ("paths", "value") and left and not left[0].startswith("-"):
            fits = is_choice(left[0]) if kind == "paths" else _PLAIN.match(left[0])
            kept += [] if fits else [word, left[0]]
            left = left[1:]
        elif not kind or (left and not left[0].startswith("-") and name not in _NO_VALUE):
            # The next word may be its value: the name of an output, for example.
            kept += [word, *left[:1]]
            left = left[1:]
    return kept


def _names_code(tool: str, word: str, after: Sequence[str]) -> bool:
    """Return whether an option names other code or settings of a tool, or makes it do something else."""
    name, _, value = word.partition("=")
    value = value or "".join(after)
    program = tool.split()[0] if tool else ""
    if name in _OTHER_CODE.get(tool, _OTHER_CODE.get(program, ())):
        return True
    last = re.split(r"[-_.]|(?<=[a-z])(?=[A-Z])", name.lstrip("-"))[-1].lower()
    known = _KNOWN_VALUES.get(last)
    return name.startswith("--") and known is not None and known.fullmatch(value) is None


def _option_kind(name: str) -> str:
    """Return what an option with a long name does: choose ``paths``, take another ``value``, be a ``flag``."""
    found = _NAME.match(name)
    if found is None:
        return ""
    if name == "--test-dir":
        return "paths"
    *first, last = [part.lower() for part in re.split(r"[-_.]|(?<=[a-z])(?=[A-Z])", found[1])]
    if last in ("file", "files") and not _BEFORE_FILES.issuperset(first):
        return "flag" if all(part in _FLAG for part in (*first, last)) else ""
    if last in _CHOOSES and all(part in _BEFORE_PATHS for part in first):
        return "paths"
    if last in _VALUE and all(part in _BEFORE_VALUES for part in first):
        return "value"
    return "flag" if all(part in _FLAG for part in (*first, last)) else ""


def is_choice(word: str) -> bool:
    """Return whether a word may choose tests or files of the project, and names no program."""
    return (
        _CHOICE.match(word) is not None
        and not word.startswith(("/", "~", "@", "+"))
        # A setting may be that of a program or of a shell.
        and re.match(r"\w[\w.]*=", word) is None
        and re.search(r"(?<![.\w])\.\.(?:/|\Z)", word) is None
        and (word in (".", "test") or not runs_others(word.rpartition("/")[2]))
    )


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
