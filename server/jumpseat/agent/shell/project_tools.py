"""Recognize commands of testers, linters and builders that differ in the tests, files and views they choose.

Such a tool runs the project's code or settings, which can do anything in a sandbox. An approval of a confined
command therefore covers the same tool with other tests and files of the project, and with options that choose or
show something: see :mod:`jumpseat.agent.shell.tool_options`. If the approved command only checks files, it covers
the fix of these by the same tool, and no other change: see :mod:`jumpseat.agent.shell.fixes`. A word that speaks
of a deployment is covered nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.shell.fixes import changes_files, fixed_places, is_unsafe
from jumpseat.agent.shell.harmless import OTHER_NAMES, WORKING
from jumpseat.agent.shell.likeness import (
    BUILDS,
    CHANGES,
    CHECKS,
    FIXES,
    LOOKS,
    NOTHING,
    READS,
    Likeness,
    alike,
    is_own_folder,
    joined,
)
from jumpseat.agent.shell.programs import INTERPRETERS, RUNS_OTHERS, TAKES_CODE
from jumpseat.agent.shell.reading import READING
from jumpseat.agent.shell.tool_options import (
    Argument,
    deciding_arguments,
    is_choice,
    read_arguments,
    runs_others,
    without_narrowing,
    without_tuning,
)

CHECKED: Final = re.compile(
    r"(?:tests?|specs?|unit|lint|check|types?|typecheck|type-check|coverage|e2e)(?:[:_-](?!fix\b)[\w:.-]*)?\Z"
)
"""Names of tasks that only check something."""

_TOOL_NAMES: Final = re.compile(
    r"(?:eslint|flake8|jest|mypy|pest|phpcs|phpstan|phpunit|psalm|pylint|pyright|rspec|rubocop|ruff|stylelint|tsc|vitest)\Z"
)
"""Names of tasks that are those of checkers."""

_GRADLE_CHECKS: Final = re.compile(
    r"(?!record|update|publish|\w*Fix)(?:(?:test|check|lint|detekt|checkstyle|pmd|spotbugs)(?:[A-Z]\w*)?"
    r"|[a-z]\w*(?:Check|Tests?|TestReport))\Z"
)
_GRADLE_BUILDS: Final = re.compile(r"(?:compile|assemble|process)[A-Z]\w*\Z|(?:testC|c)lasses\Z|javadoc\Z|jar\Z")
"""Names of tasks in the style of Gradle."""

_FORMATS: Final = (
    r"\A((?:[\w:-]*:)??(?:biome|black|clippy|code-?style|cs|eslint|fmt|format|ktlint|lint|prettier|rubocop|ruff|scalafmt|spotless"
    r"|standard|style|stylelint)(?:[:_-](?!fix\b|check\b|write\b|apply\b)[a-z]\w*)*+)"
)
_FORMAT_CHECK: Final = re.compile(rf"{_FORMATS}(?:[:_-]check|Check)?\Z")
_FORMAT_FIX: Final = re.compile(rf"{_FORMATS}(?:[:_-](?:fix|write|apply|format)|Apply|Format|Fix)\Z")
"""Tasks that check the format of the project, and those that mend what these find, with their common names."""

_BUILDS: Final = re.compile(
    r"(?:all|assemble|build|bundle|codegen|compile|dependencies|dist|docs?|fmt|format|generate|package|style|test-compile|validate"
    r"|verify)(?:[:_-](?!fix\b)[\w:-]*)?\Z"
)
"""Names of tasks that only build something."""

_LOOKS: Final = re.compile(
    r"db:version\Z|(?:\w+[.:_-])?(?:about|branches|check|count|current|describe|diff|examples|explain|health|heads|help|history|info"
    r"|inspect|lint|list|ls|migrations|outdated|ping|plan|preview|print|report|routes|search|show|stats|status|summary|tables|test"
    r"|tree|urls|validate|verify|view|why)\Z|(?:check|list|print|show)(?:[:_-]?[a-z][\w-]*)\Z"
)
"""Names of subcommands that only look at something."""

_DEPLOYS: Final = re.compile(
    r"(?i:deploy|publish|releas|upload|promot|roll-?out|roll-?back)|(?i:prod|production|push)(?![a-z])"
    r"|(?<![a-z])(?i:live|ship)(?![a-z])"
)
_REMOVES: Final = re.compile(
    r"(?<![a-z])(?i:delete|destroy|drop|purge|wipe|reset|nuke|truncate|uninstall|install|apply|migrate|erase|prune"
    r"|clean|remove|rm)(?![a-z])"
)

_CHECKERS: Final = frozenset({
    # Any operand names what they examine or test.
    "actionlint", "alejandra", "ansible-lint", "autopep8", "ava", "bandit", "basedpyright", "bash -n", "bats",
    "bazel build", "bazel test", "behave", "biome check", "biome lint", "black", "brakeman", "buf format",
    "buf lint", "busted", "cabal test", "cargo audit", "cargo bench", "cargo clippy", "cargo deny check",
    "cargo hack check", "cargo hack clippy", "cargo hack test", "cargo insta test", "cargo llvm-cov",
    "cargo machete", "cargo nextest run", "cargo tarpaulin", "cargo test", "cargo udeps", "clang-format",
    "clang-tidy", "clippy", "codespell", "composer show", "composer validate", "cppcheck", "credo", "credo diff",
    "crystal spec", "cspell", "ctest", "cucumber", "cypress run", "dart analyze", "dart format", "dart test",
    "deno check", "deno lint", "deno test", "dependency-cruiser", "detekt", "djlint", "dotnet format",
    "dotnet test", "dune build", "dune test", "elm-test", "errcheck", "eslint", "flake8", "flutter analyze",
    "flutter test", "fourmolu", "ginkgo", "gleam check", "gleam test", "go test", "go vet", "gofmt", "gofumpt",
    "goimports", "golangci-lint run", "gosec", "gotestsum", "govulncheck", "hadolint", "hatch test", "hlint",
    "isort", "jasmine", "jest", "jscpd", "karma start", "knip", "ktlint", "lein test", "luacheck", "madge",
    "markdownlint", "markdownlint-cli2", "meson test", "minitest", "mix credo", "mix dialyzer", "mix format",
    "mix test", "mocha", "mypy", "next lint", "nim check", "node --check", "node --test", "nose2", "ormolu",
    "oxlint", "pants test", "pest", "phan", "php -l", "php artisan test", "php-cs-fixer check", "php-cs-fixer fix",
    "phpcbf", "phpcs", "phpmd", "phpstan", "phpstan analyse", "phpstan analyze", "phpunit", "pint",
    "playwright test", "pre-commit run", "prettier", "proselint", "protolint", "psalm", "pycodestyle",
    "pydocstyle", "pylint", "pyre check", "pyright", "pytest", "python manage.py test", "rails test", "rebar3 ct",
    "rebar3 eunit", "reek", "revive", "rspec", "rubocop", "ruby -c", "ruff check", "ruff format", "rustfmt",
    "scalafmt", "semgrep scan", "sh -n", "shellcheck", "shfmt", "spago test", "sqlfluff fix", "sqlfluff lint",
    "srb tc", "stack test", "standard", "standardrb", "staticcheck", "stylelint", "svelte-check", "swift test",
    "swiftlint", "tap", "taplo check", "taplo fmt", "taplo format", "taplo lint", "tflint", "trunk check", "tsc",
    "tsd", "ty check", "unittest", "uvu", "vale", "vitest", "vitest run", "vue-tsc", "vulture", "wasm-pack test",
    "xo", "yamllint", "yapf", "zig test",
})  # fmt: skip

_DEFAULTS: Final[Mapping[str, str]] = {"phpstan analyse": "phpstan", "phpstan analyze": "phpstan"}
"""Subcommands that a program also runs without one."""

_TASKS: Final = frozenset({
    # Their operands are tasks of the project.
    "ant", "bin/rails", "bin/rake", "bun run", "composer", "composer run", "deno task", "gradle", "hatch run",
    "inv", "invoke", "just", "lerna run", "mage", "make", "mvn", "nox", "npm run", "nx", "nx affected",
    "nx run", "nx run-many", "pdm run", "pnpm run", "poe", "rake", "task", "tox", "turbo", "turbo run",
    "yarn run", "zig build",
})  # fmt: skip

_WRAPPERS: Final = frozenset({
    "bun x", "bundle exec", "bunx", "composer exec", "coverage run -m", "hatch run", "npx", "pdm run",
    "pipenv run", "pnpm", "pnpm exec", "poetry run", "python -m", "rye run", "uv run", "yarn", "yarn run",
})  # fmt: skip

_SCRIPTS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})

_INSTALLED: Final = re.compile(r"(?:\./)?(?:(?:vendor/bin|node_modules/\.bin|\.?venv/bin|bin)/)?([\w.-]+)\Z")


_SETTING: Final = re.compile(
    r"(?:T|TESTS?|TESTARGS|TEST_ARGS|TESTFLAGS|TESTOPTS|PYTEST_ARGS|ARGS|FILTER|K|RUN|NAME|PKG|PACKAGE|V|VERBOSE|Q"
    r"|DEBUG|CI|SPEC|SPEC_OPTS|JOBS|J|N|FILES?|MODULE|SEED|COUNT|COVERAGE|COLOR)=[\w.,:/=*@ +-]*\Z"
)
_CHECKING_NAME: Final = re.compile(
    r"(?:lint|linter|check|checker|spec|fmt|cov|coverage|validate|validator|verify|audit|analy[sz]e|analy[sz]er"
    r"|(?:\A|[-_:]|doc|unit|type)test)\Z"
)
_SUBCOMMAND: Final = re.compile(r"[A-Za-z][\w:-]*\Z")
_ENVIRONMENT: Final = re.compile(r"py\d*|pypy\d*")

_ONE_TASK: Final = frozenset(
    {"composer", "composer run", "deno task", "hatch run", "lerna run", "nx", "pdm run", "poe"}
)
"""Their further operands are arguments of the task."""

_SELECTING: Final[Mapping[str, str]] = {
    "nox": "-s", "nx affected": "-t", "nx run-many": "-t", "tox": "-e",
}  # fmt: skip
"""Programs whose tasks are the value of an option."""


def speaks_of_deployment(text: str) -> bool:
    """Return whether the words of a command speak of a deployment, which an approval covers only as it is."""
    return _DEPLOYS.search(text) is not None


def only_looks(subcommand: str) -> bool:
    """Return whether a subcommand says by its name that it only shows or checks something."""
    return _LOOKS.match(subcommand) is not None and _REMOVES.search(subcommand.rpartition(":")[2]) is None


def checker_likeness(prefix: str, rest: Sequence[str]) -> Likeness:
    """Return what the commands of a tool have in common that is known to only test and check the project."""
    known = any(" ".join(rest[:count]) in _CHECKERS for count in (1, 2, 3))
    return _of_checker(_COMMON.get(prefix, prefix), rest) if known else NOTHING


def tool_likeness(prefix: str, rest: Sequence[str]) -> Likeness:
    """Return what commands of one tool of the project have in common."""
    covers = prefix.endswith("coverage run -m")
    prefix = _COMMON.get(prefix, prefix)
    if rest in (["dotnet", "--info"], ["dotnet", "--list-sdks"], ["dotnet", "--list-runtimes"]):
        return alike(READS)
    if len(rest) == 2 and rest[1] in ("--version", "--help") and _SUBCOMMAND.match(rest[0]):
        known = not prefix and _is_program_of_tools(rest[0]) and (rest[1] == "--version" or rest[0] not in _BASES)
        if known:
            return alike(READS)
    if rest[0] in ("terraform", "tofu") and len(rest) > 1 and is_own_folder(rest[1].removeprefix("-chdir=")):
        rest = [rest[0], *rest[2:]] if rest[1].startswith("-chdir=") else rest
    if rest[0] == "sbt":
        rest = [part for word in rest for part in word.split()]
    found = [_of_checker(prefix, rest), _of_toolchain(prefix, rest), _looking(prefix, rest), _tuned(prefix, rest)]
    if covers:
        found.append(alike(gives=[f" coverage {BUILDS} *"]))
    return joined(found)


def _is_program_of_tools(name: str) -> bool:
    return INTERPRETERS.match(name) is not None or any(row.split()[0] == name for row in WORKING)


def unwrapped(words: list[str]) -> tuple[str, list[str]]:
    """Return the words that start a tool of the project, and the tool with its arguments."""
    taken: list[str] = []
    while count := next((n for n in (3, 2, 1) if " ".join(words[:n]) in _WRAPPERS and len(words) > n), 0):
        # There is a tool for Python that is called build.
        names_task = _is_task(words[count]) if words[0] == "yarn" else CHECKED.match(words[count])
        if names_task if count > 1 else _names_script(words):
            break
        taken, words = [*taken, *words[:count]], words[count:]
    if words and "/" in words[0] and (found := _INSTALLED.match(words[0])) is not None:
        taken, words = [*taken, words[0]], [OTHER_NAMES.get(found[1], found[1]), *words[1:]]
    return " ".join(taken), words


def _names_script(words: list[str]) -> bool:
    named = ("add", "dev", "install", "run", "start", "workspace", "workspaces")
    return words[0] in _SCRIPTS and (
        words[1].startswith("-") or words[1] in named or any(map(_is_task, words[1:2]))
    )


def _is_task(name: str) -> bool:
    return CHECKED.match(name) is not None or _BUILDS.match(name) is not None


def _of_checker(prefix: str, words: Sequence[str]) -> Likeness:
    names = [(count, " ".join(words[:count])) for count in (3, 2, 1) if len(words) >= count]
    known = [(count, name) for count, name in names if name in _CHECKERS]
    found = known or [(count, name) for count, name in names if _says_it_checks(words[:count])]
    # The operands of a known one are tests and files, whatever they speak of.
    if not found or (not known and any(map(_REMOVES.search, words))):
        return NOTHING
    count, name = found[0]
    arguments = read_arguments(words[count:], tool=name if known else "")
    return _checking(name, " ".join((prefix, _DEFAULTS.get(name, name), "*")), arguments, prefix, known=bool(known))


def _checking(name: str, mark: str, arguments: Sequence[Argument], prefix: str, *, known: bool = True) -> Likeness:
    """Return what a tool that checks something, or fixes what it finds, has in common with others."""
    kept = [word for argument in arguments if not argument.known for word in argument.words]
    changes, unsafe = changes_files(name, arguments), is_unsafe(name, arguments)
    own = " ".join((mark, *kept))
    # What changes files may also check them. The reverse holds for its own fixes of the same files.
    checking = [own, *([f"{own} {CHANGES}"] if unsafe else [])] if changes else []
    own = f"{own}{' (unsafe)' if unsafe else ''} {CHANGES}" if changes else own
    plain = known and not kept and prefix == "" and not changes and mark.endswith(f" {_DEFAULTS.get(name, name)} *")
    places = fixed_places(prefix, name, arguments) if known else []
    found = alike(
        own,
        gives=[*checking, *([CHECKS] if known else []), *(around[0] for around in places)],
        needs=[CHECKS] if plain else (),
    )
    texts = frozenset(text for around in places for text in around)
    return replace(found, bound=texts, places=tuple(map(tuple, places)) if changes else ())


def _of_toolchain(prefix: str, words: Sequence[str]) -> Likeness:
    """Recognize the commands of one toolchain that build, check and test the same project."""
    if len(words) < 2 or words[0] not in _TOOLCHAINS or any(map(_REMOVES.search, words[1:2])):
        return NOTHING
    mark = " ".join((prefix, words[0], BUILDS, "*"))
    if words[1] not in _TOOLCHAINS[words[0]] or (words[1] == "tool" and words[2:3] != ["cover"]):
        return alike(gives=[mark])
    name = " ".join(words[:2])
    operands = [argument.words[0] for argument in read_arguments(words[2:], tool=name) if not argument.name]
    stems = {word.rstrip("/").rpartition("/")[2] for word in operands}
    return _checking(name, mark, read_arguments(words[2:], stems, name), prefix)


def _looking(prefix: str, words: Sequence[str]) -> Likeness:
    """Recognize subcommands that only show something, after any other subcommand of the same program."""
    name, *arguments = words
    if name in _SCRIPTS or name in _OTHER_BASES or runs_others(name) or not _SUBCOMMAND.match(name):
        return NOTHING
    if any(name == task.split()[0] for task in _TASKS) or any(map(_REMOVES.search, words)):
        return NOTHING
    mark = f"{prefix} {name} {LOOKS}"
    subcommand = next((word for word in arguments if not word.startswith("-")), "")
    looks = only_looks(subcommand) and arguments[:1] == [subcommand] and not deciding_arguments(arguments[1:])
    looks = looks and not changes_files(f"{name} {subcommand}", read_arguments(arguments))
    return alike(gives=[mark], needs=[mark] if looks or arguments in (["--help"], ["--version"]) else ())


def _says_it_checks(words: Sequence[str]) -> bool:
    """Return whether a program, or a subcommand of one, says by its name that it only checks something."""
    plain = all(map(_SUBCOMMAND.match, words)) and (words[0] in _MANY_TOOLS or words[0] not in _BASES)
    if words[0] == "coverage" or words[0] in _SCRIPTS or words[0] in _TASKS:
        return False
    return plain and _CHECKING_NAME.search(words[-1]) is not None


def task_likeness(prefix: str, words: Sequence[str]) -> Likeness:
    """Recognize tasks that only build or check something: ``make lint``, ``npm run test``, ``tox -e py312``."""
    rebuilds = bool(words) and words[0] in ("gradle", "mvn") and "clean" in words
    names = [word for word in words if not (rebuilds and word == "clean") and not _FORMAT_FIX.match(word)]
    if not words or any(map(_REMOVES.search, names)):
        return NOTHING
    script = _package_script(words)
    if script is not None:
        task, arguments = script
        known = CHECKED.match(task) or (words[0] != "npm" and task != "docs" and _BUILDS.match(task))
        known = known or _FORMAT_FIX.match(task)
        if not known and task not in ("dev", "serve", "start") and "run" not in words:
            # A command of the package manager itself.
            return NOTHING
        return _of_tasks(prefix, f"{words[0]} run", [task], deciding_arguments(arguments, tool=f"{words[0]} run"))
    name = next((name for count in (2, 1) if (name := " ".join(words[:count])) in _TASKS), "")
    if not name:
        return NOTHING
    selecting = _SELECTING.get(name)
    left = list(words[len(name.split()) :])
    if name == "make" and left[:1] == ["-C"] and len(left) > 1 and is_own_folder(left[1]):
        left = left[2:]
    passed = [part for word in left if _SETTING.match(word) for part in word.partition("=")[2].split()]
    arguments = read_arguments([word for word in left if not _SETTING.match(word)], tool=name)
    tasks: list[str] = []
    for argument in arguments:
        word = argument.words[-1]
        if argument.name and argument.name == selecting:
            tasks += word.split(",")
        elif argument.name or argument.behind or word.isdigit() or not (_SUBCOMMAND.match(word) or word[0] == ":"):
            continue
        elif name != "tox" and not (name in _ONE_TASK and tasks):
            tasks.append(word)
    kept = [word for argument in arguments if not argument.known for word in argument.words]
    kept += deciding_arguments(passed, tool="test_script")
    if not tasks and name in ("tox", "nox"):
        tasks = ["test"]
    if not tasks and name in ("just", "make", "task"):
        tasks = ["all"]
    paths = name in ("gradle", "nx run")
    names = [task.rpartition(":")[2] if paths or task.startswith(":") else task for task in tasks]
    if rebuilds:
        names = [task for task in names if task != "clean"]
    return _of_tasks(prefix, name, names, kept, tasks)


def _of_tasks(
    prefix: str, runner: str, tasks: Sequence[str], kept: Sequence[str], named: Sequence[str] = ()
) -> Likeness:
    """``named`` are the tasks as they are written, if that differs."""
    mark = " ".join((prefix, runner, BUILDS, "*"))
    # Its own fix of what a task has checked.
    fixes = [
        "\n".join((f"{FIXES}{f'{prefix} ' if prefix else ''}{runner} {found.string[: found.end(1)]}", *kept))
        for pattern in (_FORMAT_CHECK, _FORMAT_FIX)
        for found in map(pattern.search, named or tasks)
        if found is not None and len(named or tasks) == 1
    ]
    checks = all(_checks(runner, task) or _ENVIRONMENT.fullmatch(task) for task in tasks)
    if not tasks or not all(checks or _checks(runner, task) or _builds(runner, task) for task in tasks):
        # Its other tasks have less effect, as their names say.
        return alike(*fixes, gives=[mark] if tasks and not kept else ())
    return alike(
        " ".join((mark, *kept)),
        gives=[CHECKS, *fixes],
        needs=[CHECKS] if checks and not kept and not prefix else (),
    )


def _checks(runner: str, task: str) -> bool:
    named = CHECKED.match(task) or _TOOL_NAMES.match(task)
    return named is not None or (runner == "gradle" and _GRADLE_CHECKS.match(task) is not None)


def _builds(runner: str, task: str) -> bool:
    return _BUILDS.match(task) is not None or (runner == "gradle" and _GRADLE_BUILDS.match(task) is not None)


def _package_script(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the script that a package manager runs, with its arguments; packages of a workspace do not count."""
    if words[0] not in _SCRIPTS:
        return None
    left = _without_packages(words[1:])
    while left:
        if left[0] in ("-r", "--recursive", "-ws", "--workspaces", "--if-present", "-s", "--silent", "run"):
            left = left[1:]
        else:
            break
    return (left[0], left[1:]) if left and _SUBCOMMAND.match(left[0]) else None


def _is_package(word: str) -> bool:
    return is_choice(word.removeprefix("@")) and (word[:1] != "@" or "/" in word)


def _without_packages(words: Sequence[str]) -> list[str]:
    """Return the words in front of ``--`` without the packages of the workspace, and those behind it."""
    end = words.index("--") if "--" in words else len(words)
    left, found = list(words[:end]), list[str]()
    while left:
        word = left.pop(0)
        names = {"--filter": _is_package, "-F": _is_package, "-w": _is_package, "--workspace": _is_package}
        names |= {"workspace": _is_package, "--prefix": is_own_folder, "--cwd": is_own_folder, "-C": is_own_folder}
        if word in names and left and names[word](left[0]):
            left.pop(0)
        elif not re.match(r"--(?:filter|workspace)=[\w@/*-]+\Z", word):
            found.append(word)
    return [*found, *words[end:]]


def _tuned(prefix: str, words: Sequence[str]) -> Likeness:
    """Recognize a program that is called with the same words, except for options that change what it shows.

    An approval covers further options that narrow what the program works on, but not their absence.
    """
    if prefix == "" and words[0] not in _MANY_TOOLS and (words[0] in _BASES or runs_others(words[0])):
        return NOTHING
    if any(map(_REMOVES.search, words)):
        return NOTHING
    end = words.index("--") if "--" in words else len(words)
    kept = without_tuning(words[1:end])
    same = "\n".join((prefix, words[0], *kept, *words[end:]))
    return alike(same, needs=["\n".join((prefix, words[0], *without_narrowing(kept), *words[end:]))])


_COMMON: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "bundle exec",
            "coverage run -m",
            "hatch run",
            "pdm run",
            "pipenv run",
            "poetry run",
            "poetry run python -m",
            "python -m",
            "python3 -m",
            "rye run",
            "uv run",
            "uv run python -m",
        ),
        "",
    ),
    **dict.fromkeys(
        ("bun x", "bunx", "npx", "pnpm", "pnpm exec", "yarn", "yarn exec", "yarn run"),
        "",
    ),
}
"""The words in front of a tool of the project that do not matter: the tool is the same."""
_TOOLCHAINS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(subcommands.split())
    for name, subcommands in {
        "bazel": "build query test",
        "buf": "build format lint",
        "cabal": "build test",
        "cargo": "bench build check clippy doc fmt metadata nextest test tree",
        "coverage": "html json report xml",
        "dart": "analyze format test",
        "deno": "check fmt lint test",
        "dotnet": "build format test",
        "dune": "build test",
        "flutter": "analyze test",
        "go": "build doc fmt list test tool version vet",
        "helm": "lint template",
        "meson": "compile setup test",
        "mix": "compile credo dialyzer docs format test",
        "next": "build lint",
        "prisma": "format generate validate",
        "ruff": "check format",
        "sbt": "compile test testOnly",
        "stack": "build test",
        "swift": "build test",
        "terraform": "fmt validate",
        "tofu": "fmt validate",
        "zig": "build fmt test",
    }.items()
}
"""Programs with the subcommands that do no more than build, check and test a project."""

_MANY_TOOLS: Final = frozenset({"bundle", "cargo", "dart", "dotnet", "flutter", "mix", "swift", "uv"})
"""Programs whose subcommands are tools for a project, further ones of which can be installed."""
_BASES: Final = frozenset(row.split()[0] for row in (*READING, *WORKING)) | RUNS_OTHERS | TAKES_CODE
_OTHER_BASES: Final = _BASES - _MANY_TOOLS
