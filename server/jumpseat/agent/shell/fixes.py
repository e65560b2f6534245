"""Recognize linters and formatters that change files in place, and which ones.

An approved check covers the same tool's own fix of the same or fewer files: the undo of the session holds the
change, and neither other rules nor other code take part. Fixes that a tool calls unsafe may change what the code
means, so that they are asked about.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jumpseat.agent.shell.extent import UNSAFE_OPTIONS
from jumpseat.agent.shell.likeness import FIXES, is_own_folder
from jumpseat.agent.shell.tool_options import Argument

_FIXERS: Final[Mapping[str, tuple[str, str]]] = {
    # The options with which a linter changes files, and those without which a formatter does.
    **dict.fromkeys(
        (
            "ansible-lint", "biome check", "biome format", "biome lint", "cargo clippy", "deno lint", "eslint",
            "golangci-lint run", "markdownlint", "markdownlint-cli2", "next lint", "oxlint", "standard",
            "standardrb", "stylelint", "swiftlint", "tflint", "xo",
        ),
        ("--fix --write --apply --autocorrect", ""),
    ),
    **dict.fromkeys(("autopep8", "yapf"), ("-i --in-place", "")),
    **dict.fromkeys(("black", "ruff format"), ("", "--check --diff")),
    **dict.fromkeys(("cargo fmt", "deno fmt", "rustfmt", "zig fmt"), ("", "--check")),
    **dict.fromkeys(("gofmt", "gofumpt", "goimports", "shfmt"), ("-w", "")),
    **dict.fromkeys(("ormolu", "fourmolu"), ("-i", "")),
    **dict.fromkeys(("taplo fmt", "taplo format"), ("", "--check --diff")),
    **dict.fromkeys(("terraform fmt", "tofu fmt"), ("", "-check -write=false")),
    "alejandra": ("", "-c --check"),
    "buf format": ("-w --write", ""),
    "clang-format": ("-i", ""),
    "clang-tidy": ("--fix -fix", ""),
    "codespell": ("-w --write-changes", ""),
    "dart format": ("", "--output=none --output=show --show=none"),
    "detekt": ("--auto-correct", ""),
    "djlint": ("--reformat", ""),
    "dotnet format": ("", "--verify-no-changes"),
    "isort": ("", "-c -d --check --check-only --diff --show-files"),
    "ktlint": ("-F --format", ""),
    "mix format": ("", "--check-formatted --dry-run"),
    "php-cs-fixer check": ("", ""),
    "php-cs-fixer fix": ("", "--dry-run"),
    "phpcbf": ("", ""),
    "phpcs": ("", ""),
    "pint": ("", "--test"),
    "prettier": ("-w --write", ""),
    "rubocop": ("-a -x --autocorrect --auto-correct --fix-layout", ""),
    "ruff check": ("--fix --fix-only", ""),
    "scalafmt": ("", "--check --test --list"),
    "sqlfluff fix": ("", ""),
    "sqlfluff lint": ("", ""),
}  # fmt: skip
_SAME_TOOL: Final[Mapping[str, str]] = {
    "php-cs-fixer check": "php-cs-fixer fix",
    "phpcbf": "phpcs",
    "sqlfluff fix": "sqlfluff lint",
}
_ONLY_CHECKS: Final = frozenset({"php-cs-fixer check", "phpcs", "sqlfluff lint"})

_UPDATES: Final = re.compile(r"--?(?:auto-?correct|fix|in-place|update|unsafe|snapshot-update|write)|-[iwuA]\Z")
_EMITS: Final = frozenset({"tsc", "vue-tsc"})

_NEUTRAL: Final = frozenset({
    "--Werror", "--allow-dirty", "--allow-staged", "--cache", "--cache-location", "--cache-strategy", "--check",
    "--color", "--colors", "--diff", "--dry-run", "--exit-non-zero-on-fix", "--exit-zero", "--extend-select",
    "--fix-dry-run", "--fix-type", "--fixable", "--jobs", "--line-length", "--list-different", "--log-level",
    "--loglevel", "--max-warnings", "--message-format", "--no-cache", "--no-color", "--no-colors",
    "--no-error-on-unmatched-pattern", "--no-progress", "--no-restore", "--output-format", "--parallel",
    "--profile", "--quiet", "--rule", "--select", "--severity", "--show-fixes", "--show-progress",
    "--statistics", "--target-version", "--timeout", "--unfixable", "--verbose", "--verbosity", "-Werror",
    "-diff", "-no-color", "-recursive",
})  # fmt: skip
"""Options that neither choose other files nor other settings, so that a check and a fix may differ in them."""
_NEUTRAL_LETTERS: Final[Mapping[str, str]] = {
    "black": "qvlt", "clang-format": "n", "codespell": "d", "gofmt": "lds", "gofumpt": "lds", "goimports": "ldv",
    "isort": "qv",
    "prettier": "cl", "shfmt": "lds",
}  # fmt: skip


def is_unsafe(tool: str, arguments: Sequence[Argument]) -> bool:
    """Return whether a tool applies fixes that may change what the code means."""
    return tool in ("rubocop", "ruff check") and any(_is_one_of(argument, UNSAFE_OPTIONS) for argument in arguments)


def changes_files(tool: str, arguments: Sequence[Argument]) -> bool:
    """Return whether a tool of the project may also change what it checks."""
    words = [word for argument in arguments for word in argument.words]
    if tool in _EMITS:
        return "--noEmit" not in words or "false" in words
    if tool in _ONLY_CHECKS:
        return False
    if tool not in _FIXERS:
        return any(map(_UPDATES.match, words))
    fixing, checking = (frozenset(options.split()) for options in _FIXERS[tool])
    if checking.intersection(words) or any(_is_one_of(argument, checking) for argument in arguments):
        return False
    return not fixing or is_unsafe(tool, arguments) or any(_is_one_of(argument, fixing) for argument in arguments)


def _is_one_of(argument: Argument, options: frozenset[str]) -> bool:
    """Return whether an argument is one of some options, or joins one of them with others."""
    if argument.name in options:
        return True
    letters = argument.words[0] if re.match(r"-[A-Za-z]+\Z", argument.words[0]) else ""
    return any(f"-{letter}" in options for letter in letters[1:])


def fixed_places(prefix: str, tool: str, arguments: Sequence[Argument]) -> list[list[str]]:
    """Return for each file or folder that a linter or formatter works on the likenesses that cover its fix.

    The first one is that of the place itself, the others are those of the folders and patterns around it. The list
    is empty for any other tool, and for places that are none of the project.
    """
    if tool not in _FIXERS or is_unsafe(tool, arguments):
        return []
    flags = frozenset(" ".join(_FIXERS[tool]).split()) | _NEUTRAL
    deciding: list[str] = []
    places: list[str] = []
    recursive = any(argument.name == "-recursive" for argument in arguments)
    for argument in arguments:
        if not argument.name and not argument.behind and argument.known:
            places.append(_place(tool, argument.words[0], recursive=recursive))
        elif not (argument.known and (argument.behind or _is_neutral(tool, argument, flags))):
            deciding.append(" ".join(argument.words))
    places = places or [_place(tool, ".", recursive=recursive)]
    if not all(map(_is_own, places)):
        return []
    base = "\n".join((f"{FIXES}{f'{prefix} ' if prefix else ''}{_SAME_TOOL.get(tool, tool)}", *sorted(deciding)))
    return [[f"{base}\n{around}" for around in _around(place)] for place in places]


def _is_neutral(tool: str, argument: Argument, flags: frozenset[str]) -> bool:
    if argument.name in flags or argument.words[0] in flags:
        return True
    letters = _NEUTRAL_LETTERS.get(tool, "vq") + "".join(flag[1] for flag in flags if len(flag) == 2)
    return re.match(r"-[A-Za-z]", argument.words[0]) is not None and not argument.words[0][1:].strip(letters)


def _place(tool: str, word: str, *, recursive: bool) -> str:
    """Return a place: a folder with all below it, a file, or a pattern."""
    place = word.removeprefix("./").rstrip("/") or "."
    if place == "..." or place.endswith("/..."):
        return place.removesuffix("...").rstrip("/") or "."
    flat = (tool == "golangci-lint run" and word != ".") or (
        tool in ("terraform fmt", "tofu fmt") and not recursive
    )
    if flat and "." not in posixpath.basename(place.lstrip(".")):
        return "*" if place == "." else f"{place}/*"
    return place


def _is_own(place: str) -> bool:
    folder = posixpath.dirname(re.split(r"[*?\[{]", place)[0]) if re.search(r"[.*?\[{]", place) else place
    return not folder or folder == "." or is_own_folder(folder)


def _around(place: str) -> Iterator[str]:
    """Yield a place, and the folders and patterns that include it."""
    yield place
    if place == ".":
        return
    ending = posixpath.splitext(place)[1]
    folder = posixpath.dirname(place)
    if ending:
        # Of a folder, such a pattern may not include all that is below it.
        yield from (posixpath.join(folder, "*"), posixpath.join(folder, f"*{ending}"))
    while folder:
        yield folder
        yield f"{folder}/**"
        yield f"{folder}/**/*{ending}"
        folder = posixpath.dirname(folder)
    yield from (".", "**", f"**/*{ending}")
