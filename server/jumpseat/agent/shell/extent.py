"""Distinguish the extents of commands that can do little or much, so that approvals distinguish them, too.

An approval of ``rm f`` does not cover ``rm -r folder``, and one of ``git push origin main`` no other remote.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Final

from jumpseat.agent.shell.likeness import is_output
from jumpseat.agent.shell.options import may_be_option
from jumpseat.agent.shell.words import Word


def command_extent(known: str, arguments: Sequence[Word], operands: Sequence[str]) -> str | None:
    """Return what distinguishes a known command from others with the same name; empty if nothing does.

    ``operands`` are the arguments that are no options. The result is part of the identifier of the command. It is
    ``None`` for a command that only its whole text identifies.
    """
    texts = [word.text for word in arguments]
    match known:
        case "git push":
            named = [*operands, *(text for text in texts if text in _PUSHES_MORE)]
            return None if any(re.search(r"\s", text) for text in named) else " ".join(named)
        case "chmod":
            return None if not operands or _widens(operands[0]) else _recursive(texts)
        case "cp" | "ln" | "mv" | "tee" | "touch" | "git mv":
            return " ".join(obeyed_names(operands))
        case "git add":
            # What is ignored may be secret.
            return "-f" if _has(texts, "-f", "--force") else ""
        case "printenv":
            return "NAME" if operands and all(map(is_plain_variable, operands)) else None
        case "rm" | "git rm":
            if any(word.wild for word in arguments) or any(re.search(r"[*?\[]", text) for text in operands):
                return None
            return _recursive(texts)
        case "git checkout" | "git restore":
            # The work of hours may be in these files.
            if _EVERYTHING.intersection(operands) and not _has(texts, "-S", "--staged"):
                return None
            files = known == "git checkout" and ("--" in texts or any(map(_FILE.search, operands)))
            return "--" if files else ""
        case "git reset":
            return "--soft" if _has(texts, "--soft") or any(map(_OTHER_COMMIT.search, operands)) else ""
        case "curl":
            if _sends_file(texts):
                return None
            return "--data" if _has(texts, *_SENDING) or _METHOD.search(" ".join(texts)) else ""
        case "go test" | "pytest" if any(map(_writes_elsewhere, texts)):
            return None
        case _ if known in _UPDATING:
            return UPDATING if any(text in _UPDATING[known] for text in texts) else ""
        case "tsc" | "vue-tsc" if _builds_other_project(texts, operands):
            return None
        case "terraform fmt":
            marks = ("-recursive" if "-recursive" in texts else "", CHECKING if "-check" in texts else "")
            return " ".join(filter(None, marks))
        case _ if known in _CHECKING:
            mark = "--noEmit" if known in ("tsc", "vue-tsc") else CHECKING
            return mark if any(text in _CHECKING[known] for text in texts) else ""
        case _ if known in _CHANGING:
            unsafe = any(text in UNSAFE_OPTIONS for text in texts)
            return UNSAFE if unsafe else CHANGING if any(text in _CHANGING[known] for text in texts) else ""
        case _:
            return ""


def tries(words: Sequence[str]) -> bool | None:
    """Return whether a command only shows what it would do, or what there is to do; ``None`` if it is not sure."""
    options = list(takewhile(lambda word: word != "--", words[1:]))
    short = _short_of_trying(words)
    found = [n for n, word in enumerate(options) if _TRIES.fullmatch(word) or (short and short.fullmatch(word))]
    if not found:
        return None if any(map(_TRIES.fullmatch, words[1:])) else False
    # The last of two contrary options counts, and what looks like an option may be the value of the one before.
    if any(map(_CONTRARY.fullmatch, options)):
        return None
    before = [options[n - 1] for n in found if n and not options[n].startswith("--")]
    return None if any(word.startswith("-") for word in before) else True


def _short_of_trying(words: Sequence[str]) -> re.Pattern[str] | None:
    """Return the short options for trying of a program, which another one may start, such as ``bundle exec``."""
    names = [word.rpartition("/")[2] for word in words[:4]]
    pairs = [" ".join(pair) for pair in pairwise(names)]
    return next((_TRIES_SHORT[name] for name in (*names[:3], *pairs) if name in _TRIES_SHORT), None)


def covering(identifier: str) -> tuple[str, ...]:
    """Return the identifiers whose approval covers a command.

    A tool that changes files may also check them, and who may do something may try it.
    """
    if identifier.endswith(f" {TRYING}"):
        return identifier, *covering(identifier.removesuffix(f" {TRYING}"))
    fixing = re.sub(rf" {CHANGING}\Z", "", identifier)
    return (
        identifier,
        *(f"{identifier} {_MORE[name]}" for name in (identifier.rpartition("/")[2],) if name in _MORE),
        re.sub(rf" (?:{CHECKING}|--noEmit)\Z", "", identifier),
        *(f"{fixing} {mark}" for mark in (CHANGING, UNSAFE, UPDATING)),
    )


def _writes_elsewhere(text: str) -> bool:
    """Return whether an option of a tester writes a report to a file that is no output by its name."""
    found = re.match(r"--?coverprofile=(.*)|--cov-report=[\w-]+:(.*)", text, re.DOTALL)
    path = "" if found is None else found[1] or found[2]
    return bool(path) and path != "skip-covered" and not is_output(path)


def _builds_other_project(texts: Sequence[str], operands: Sequence[str]) -> bool:
    """Return whether the compiler of TypeScript writes where the settings of another project say."""
    if any(text in ("-b", "--build") for text in texts) and operands:
        return True
    pairs = zip(texts, [*texts[1:], ""], strict=False)
    projects = [
        text.partition("=")[2] or after for text, after in pairs if re.match(r"-p\Z|--project(?:=|\Z)", text)
    ]
    return "--noEmit" not in texts and not all(map(OWN_PROJECT.fullmatch, projects))


OWN_PROJECT: Final = re.compile(r"\.|(?:\./)?tsconfig(?:\.\w+)*\.json")
"""The settings of TypeScript in the folder itself."""


def _widens(mode: str) -> bool:
    """Return whether a mode lets everybody change a file, or makes a program run as its owner."""
    if re.fullmatch(r"[0-7]{1,6}", mode):
        return int(mode, 8) & 0o7002 != 0
    clauses = [_CLAUSE.fullmatch(clause) for clause in mode.split(",")]
    return any(
        clause is None
        or re.search("[gostu]", clause[3]) is not None
        or ("w" in clause[3] and clause[2] != "-" and re.search("[ao]", clause[1]) is not None)
        for clause in clauses
    )


def obeyed_names(operands: Sequence[str]) -> list[str]:
    """Return the names of the files among some that a tool of the project obeys without being told to."""
    names = {posixpath.basename(operand.rstrip("/")) for operand in operands}
    return sorted(name for name in names if _OBEYED.fullmatch(name))


_OBEYED: Final = re.compile(
    r"(?i:(?:bsd|gnu)?makefile|build|cmakelists\.txt|(?:docker-)?compose[\w.-]*\.ya?ml|(?:docker|container)file[\w.-]*"
    r"|go\.(?:mod|work)|(?:gem|guard|just|pip|proc|rake|task|vagrant)file|meson\.build|package(?:-lock)?\.json|pom\.xml"
    r"|pyproject\.toml|pytest\.ini|setup\.cfg|tox\.ini|workspace|\.env[\w.-]*|cargo\.toml|composer\.json|mix\.exs"
    r"|\.(?:babel|eslint|mocha|nyc|prettier|stylelint)rc[\w.-]*)"
    r"|(?:build|conftest|dodo|fabfile|manage|noxfile|setup|sitecustomize|tasks|usercustomize|wscript)(?:\.(?:py|rs|zig))?"
    r"|[\w.-]+\.(?:config\.[cm]?[jt]s|gradle(?:\.kts)?|gemspec|mk)|(?:gradle|mvn)w"
)


def is_plain_variable(name: str) -> bool:
    """Return whether a variable of the environment says nothing secret, by its name."""
    return _PLAIN_VARIABLE.fullmatch(name) is not None


_PLAIN_VARIABLE: Final = re.compile(
    r"BASH(?:PID|_VERSION)|CARGO_HOME|CI|COLUMNS|CONDA_(?:DEFAULT_ENV|PREFIX)|DISPLAY|EDITOR|EUID|GO(?:ARCH|BIN|OS|PATH"
    r"|ROOT)|HOME|HOSTNAME|HOSTTYPE|JAVA_HOME|LANG|LC_\w+|LINENO|LINES|LOGNAME|MACHTYPE|NODE_ENV|NVM_DIR|OLDPWD|OSTYPE|PATH"
    r"|PIPESTATUS|PPID|PWD|PYTHON(?:PATH|HOME)|RANDOM|RUSTUP_HOME|SECONDS|SHELL|SHLVL|TERM|TMPDIR|TZ|UID|USER"
    r"|VIRTUAL_ENV|XDG_\w+"
)


def _recursive(texts: Sequence[str]) -> str:
    return "-r" if _has(texts, "-r", "-R", "--recursive") else ""


def _sends_file(texts: Sequence[str]) -> bool:
    """Return whether ``curl`` may send the contents of a file."""
    encodes = any(text.startswith("--data-urlencode") for text in texts)
    cookies = [
        value for text, after in zip(texts, [*texts[1:], ""], strict=False) for value in _cookie(text, after)
    ]
    return (
        any(_AT_FILE.match(text) or re.search(r"=[@<]", text) for text in texts)
        or (encodes and any(re.match(r"[^=:]*@", text) for text in texts))
        or any("=" not in value for value in cookies)
    )


def _cookie(text: str, after: str) -> list[str]:
    """Return the value of an option for cookies, which is the name of a file unless it has an equals sign."""
    if text.startswith("--cookie"):
        return [text.partition("=")[2] or after]
    found = re.fullmatch(r"-[#0-9A-Za-z]*?b(.*)", text, re.DOTALL)
    return [] if found is None else [found[1] or after]


def _has(texts: Sequence[str], *options: str) -> bool:
    return any(may_be_option(text, options) for text in texts if text.startswith("-"))


CHECKING: Final = "--check"
CHANGING: Final = "--fix"
UNSAFE: Final = "--unsafe-fixes"
UPDATING: Final = "--update"
"""What an approval is called for the use of a tool that only checks, or that also changes files."""
TRYING: Final = "--dry-run"
"""At the end, for a command that only shows what it would do."""
_TRIES: Final = re.compile(
    r"--(?:collect-?only|co|dry|dry-?run|fix-dry-run|just-print|list|list-?all|list-?tests|list-?tasks|list-?sessions"
    r"|no-?act|noop|prereqs|question|recon|setup-plan|simulate|summary|tasks|test-dry-run|touch|what-?if)"
    r"(?:=(?:1|client|on|server|true|yes))?",
    re.IGNORECASE,
)
_CONTRARY: Final = re.compile(r"--no-(?!act)[\w-]+|--?[\w-]+=(?:0|f|false|n|no|none|off)", re.IGNORECASE)

_TRIES_SHORT: Final[Mapping[str, re.Pattern[str]]] = {
    **dict.fromkeys(
        ("git add", "git clean", "git mv", "git push", "git rm", "just", "ninja", "rsync", "scons"),
        re.compile(r"-[A-Za-mo-z]*n[A-Za-z]*"),
    ),
    **dict.fromkeys(
        ("go build", "go generate", "go install", "go run", "go test", "go vet"), re.compile(r"-n(?:=true)?|-list")
    ),
    **dict.fromkeys(("gmake", "make"), re.compile(r"-[A-Za-mopr-su-z]*[nqt][A-Za-z]*")),
    **dict.fromkeys(("nox", "task", "tox"), re.compile(r"-[A-Zb-kmo-z]*[aln][A-Za-z]*")),
    "ant": re.compile(r"-p(?:rojecthelp)?"),
    **dict.fromkeys(("gradle", "gradlew"), re.compile(r"-m")),
    "rake": re.compile(r"-[A-OQ-SUVX-Za-mo-z]*[nTPW][A-Za-z]*"),
}

_FIX: Final = ("--fix", "--write", "-w")
_CHECKING: Final[Mapping[str, tuple[str, ...]]] = {
    # Formatters change files, unless an option is given.
    "black": ("--check", "--diff"),
    "cargo fmt": ("--check",),
    "deno fmt": ("--check",),
    "isort": ("-c", "-d", "--check", "--check-only", "--diff"),
    "mix format": ("--check-formatted", "--dry-run"),
    "ruff format": ("--check", "--diff"),
    "rustfmt": ("--check",),
    "tsc": ("--noEmit",),
    "vue-tsc": ("--noEmit",),
}
_CHANGING: Final[Mapping[str, tuple[str, ...]]] = {
    # Linters only check, unless an option is given.
    **dict.fromkeys(
        (
            "biome check", "biome ci", "biome format", "biome lint", "cargo clippy", "deno lint", "eslint", "gofmt",
            "goimports", "golangci-lint run", "pnpm lint", "prettier", "stylelint", "yarn lint",
        ),
        _FIX,
    ),
    "clang-format": ("-i",),
    "rubocop": ("-a", "--autocorrect", "--auto-correct"),
    "ruff check": ("--fix",),
}  # fmt: skip
UNSAFE_OPTIONS: Final = frozenset({"-A", "--autocorrect-all", "--unsafe-fixes"})
"""They apply fixes that may change what the code means."""
_UPDATING: Final[Mapping[str, tuple[str, ...]]] = {
    # Testers accept results, if an option is given.
    **dict.fromkeys(("jest", "pnpm test", "vitest", "yarn test"), ("-u", "--updateSnapshot", "--update")),
    "pytest": ("--snapshot-update",),
}
_MORE: Final = {"git add": "-f", "git reset": "--soft"}
"""What commands are called that do the same and more."""
_CLAUSE: Final = re.compile(r"([agou]*)([-+=])([Xrstwx]*|[gou])")
_FILE: Final = re.compile(r"\.[A-Za-z]\w*\Z|/\Z")
"""The end of an operand that names a file or folder, and hardly a branch."""
_OTHER_COMMIT: Final = re.compile(r"[~^@]|\A[0-9a-f]{7,}\Z")
_PUSHES_MORE: Final = ("--tags", "--follow-tags")
_EVERYTHING: Final = frozenset({".", "./", ":/", "*", ":", ":/*"})
_SENDING: Final = ("-d", "-F", "-T", "--data", "--form", "--json", "--upload-file")
_METHOD: Final = re.compile(r"(?:-X|--request)[ =]?(?!GET\b|HEAD\b|OPTIONS\b)\S")
_AT_FILE: Final = re.compile(r"@|-[#0-9A-Za-z]*@|--[\w-]+=@")
