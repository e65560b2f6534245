"""A short description of a project for its model: what kind it is, how it is tested and built, its layout and git.

It is made from files alone, runs nothing, and takes at most :data:`TIME_S`. Of the contents of files it has only
names from the tables below; names of files are escaped.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import orjson
from msgspec import Struct

from jumpseat.agent.interfaces import Brief
from jumpseat.agent.settings import SessionSettings
from jumpseat.system.git import git_folder, working_directory_context
from jumpseat.system.git_index import count_changed
from jumpseat.system.regular_files import decode_text, read_regular, scan_folder

TIME_S: Final = 0.2
"""The time after which counting and listing stop."""
MOST_TOKENS: Final = 200
MOST_ENTRIES: Final = 2000
"""Entries of one folder that are looked at."""
NAMES_PER_FOLDER: Final = (12, 8, 5, 3, 2, 1, 0)
"""The names of each folder that are shown, if that is short enough."""
MOST_FOLDERS: Final = 40
"""Folders whose contents are listed."""
LARGEST_BYTES: Final = 256 * 1024
LONGEST_NAME: Final = 40

_TESTS: Final = ("test", "tests", "check")
_BUILDS: Final = ("build", "compile", "all", "dist")
_LINTS: Final = ("lint", "typecheck", "type-check")


class _Kind(NamedTuple):
    """A kind of project: the file that shows it, its name, and its usual commands."""

    file: str
    name: str
    test: str = ""
    build: str = ""


_KINDS: Final = (
    _Kind("pyproject.toml", "Python"),
    _Kind("setup.py", "Python"),
    _Kind("requirements.txt", "Python"),
    _Kind("package.json", "JavaScript"),
    _Kind("deno.json", "Deno", "deno test"),
    _Kind("Cargo.toml", "Rust", "cargo test", "cargo build"),
    _Kind("go.mod", "Go", "go test ./...", "go build ./..."),
    _Kind("pom.xml", "Java", "mvn test", "mvn package"),
    _Kind("build.gradle", "Gradle", "gradle test", "gradle build"),
    _Kind("build.gradle.kts", "Gradle", "gradle test", "gradle build"),
    _Kind("CMakeLists.txt", "CMake", "ctest --test-dir build", "cmake -B build && cmake --build build"),
    _Kind("meson.build", "Meson", "meson test -C build", "meson compile -C build"),
    _Kind("MODULE.bazel", "Bazel", "bazel test //...", "bazel build //..."),
    _Kind("mix.exs", "Elixir", "mix test", "mix compile"),
    _Kind("Gemfile", "Ruby"),
    _Kind("composer.json", "PHP"),
    _Kind("Package.swift", "Swift", "swift test", "swift build"),
    _Kind("pubspec.yaml", "Dart", "dart test"),
    _Kind("build.sbt", "Scala", "sbt test", "sbt compile"),
    _Kind("stack.yaml", "Haskell", "stack test", "stack build"),
    _Kind("cabal.project", "Haskell", "cabal test", "cabal build"),
    _Kind("dune-project", "OCaml", "dune test", "dune build"),
    _Kind("build.zig", "Zig", "zig build test", "zig build"),
)

_RUNNERS: Final = (
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
    ("Pipfile", "pipenv run "),
)
_MANAGERS: Final = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun run"),
    ("bun.lockb", "bun run"),
)
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES: Final = ("justfile", "Justfile", ".justfile")
_TASKFILES: Final = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml")

_TARGET: Final = re.compile(r"^([A-Za-z][\w-]{0,30})[^:=\n]{0,200}:(?![=:])", re.MULTILINE)
_TASK: Final = re.compile(r"^  ([A-Za-z][\w-]{0,30}):", re.MULTILINE)
_PYTEST: Final = re.compile(r"\bpytest\b")


class _Commands(Struct):
    tests: list[str]
    builds: list[str]
    lints: list[str]

    def add(self, names: Sequence[str], command: str) -> None:
        """Add the tasks of a runner that have known names; ``command`` runs the one that is called ``{}``."""
        for wanted, found in ((_TESTS, self.tests), (_BUILDS, self.builds), (_LINTS, self.lints)):
            found += [command.format(name) for name in wanted if name in names][:1]


def read_brief(settings: SessionSettings) -> Brief:
    """Return the description of the project in the working directory of a session; blocks on the disk for a moment.

    The user's home and the folders above it are no projects.
    """
    cwd = settings.cwd
    if Path.home().is_relative_to(cwd):
        return Brief()
    until_s = time.monotonic() + TIME_S
    entries = {entry.name: entry.is_folder for entry in islice(scan_folder(cwd), MOST_ENTRIES)}
    kinds = [kind for kind in _KINDS if entries.get(kind.file) is False]
    commands = _commands(cwd, entries, kinds)
    lines = [
        _listed("Project", list(dict.fromkeys(f"{kind.name} ({kind.file})" for kind in kinds))[:4]),
        _listed("Tests", list(dict.fromkeys(commands.tests))[:3]),
        _listed("Build", list(dict.fromkeys(commands.builds))[:2]),
        _listed("Lint", list(dict.fromkeys(commands.lints))[:2]),
        _git_state(cwd, until_s) if settings.options.enable_host_git_operations else "",
    ]
    facts = [line for line in lines if line]
    layout = _Layout(cwd, entries, until_s)
    text = ""
    for most in NAMES_PER_FOLDER:
        text = "\n".join((*facts, *layout.lines(most)))
        if len(text.encode("utf-8", "replace")) <= 4 * MOST_TOKENS:
            break
    # Long names, and very many folders.
    return Brief(text[: 4 * MOST_TOKENS], commands.tests[0] if commands.tests else None)


def _listed(label: str, items: Sequence[str]) -> str:
    return f"{label}: {', '.join(items)}" if items else ""


def _commands(cwd: Path, entries: dict[str, bool], kinds: Sequence[_Kind]) -> _Commands:
    commands = _Commands([], [], [])
    for files, pattern, command in (
        (_MAKEFILES, _TARGET, "make {}"),
        (_JUSTFILES, _TARGET, "just {}"),
        (_TASKFILES, _TASK, "task {}"),
    ):
        if (file := next((name for name in files if entries.get(name) is False), None)) is not None:
            commands.add(pattern.findall(_read(cwd / file)), command)
    if "package.json" in entries:
        manager = next((manager for lock, manager in _MANAGERS if lock in entries), "npm run")
        commands.add(_scripts(cwd / "package.json"), manager + " {}")
    if "composer.json" in entries:
        commands.add(_scripts(cwd / "composer.json"), "composer {}")
    if any(kind.name == "Python" for kind in kinds):
        commands.tests += _python_tests(cwd, entries)
    if "Gemfile" in entries:
        commands.tests += ["bundle exec rspec"] if "spec" in entries else ["bundle exec rake test"]
    for kind in kinds:
        wrapper = {"Java": ("mvnw", "mvn"), "Gradle": ("gradlew", "gradle")}.get(kind.name)
        for command, found in ((kind.test, commands.tests), (kind.build, commands.builds)):
            if command and wrapper is not None and wrapper[0] in entries:
                command = f"./{wrapper[0]}{command.removeprefix(wrapper[1])}"
            found += [command] if command else []
    if any(name.endswith((".sln", ".slnx", ".csproj", ".fsproj")) for name in entries):
        commands.tests.append("dotnet test")
        commands.builds.append("dotnet build")
    return commands


def _python_tests(cwd: Path, entries: dict[str, bool]) -> list[str]:
    if "tox.ini" in entries:
        return ["tox"]
    if "noxfile.py" in entries:
        return ["nox"]
    if "manage.py" in entries:
        return ["python manage.py test"]
    runner = next((command for lock, command in _RUNNERS if lock in entries), "")
    named = ("pyproject.toml", "setup.cfg", "requirements.txt", "requirements-dev.txt", "setup.py")
    if not {"pytest.ini", "conftest.py"}.isdisjoint(entries) or any(
        name in entries and _PYTEST.search(_read(cwd / name)) for name in named
    ):
        return [f"{runner}pytest"]
    return [f"{runner}python -m unittest"] if {"tests", "test"} & entries.keys() else []


def _scripts(path: Path) -> list[str]:
    """Return the names of the scripts of a package, without the failing one that npm writes."""
    try:
        package: Any = orjson.loads(_read(path))
    except ValueError:
        return []
    scripts: Any = cast("dict[str, Any]", package).get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict):
        return []
    named = cast("dict[str, Any]", scripts)
    return [name for name, script in named.items() if "no test specified" not in str(script)]


def _read(path: Path) -> str:
    try:
        return decode_text(read_regular(path, LARGEST_BYTES, path.parent))
    except (OSError, ValueError):
        return ""


def _git_state(cwd: Path, until_s: float) -> str:
    context = working_directory_context(cwd)
    if context.git_root is None:
        return ""
    state = f"branch {_escaped(context.branch)}" if context.branch else "no branch"
    root = Path(context.git_root)
    try:
        changed = count_changed(root, git_folder(root), until_s)
    except (OSError, ValueError):
        changed = None
    known = "" if changed is None else f", {changed} tracked file{'s' * (changed != 1)} changed"
    return f"Git: {state}{known}"


class _Layout:
    """The names in a folder and in its folders."""

    def __init__(self, cwd: Path, entries: dict[str, bool], until_s: float) -> None:
        folders = sorted(name for name, is_folder in entries.items() if is_folder and not _is_hidden(name))
        files = sorted(name for name, is_folder in entries.items() if not is_folder and not name.startswith("."))
        self._names = [*(f"{name}/" for name in folders), *files]
        self._inside: dict[str, list[str]] = {}
        for folder in folders[:MOST_FOLDERS]:
            if time.monotonic() > until_s:
                break
            inside = [
                f"{entry.name}/" if entry.is_folder else entry.name
                for entry in islice(scan_folder(cwd / folder), MOST_ENTRIES)
                if not entry.name.startswith(".") and not (entry.is_folder and _is_hidden(entry.name))
            ]
            self._inside[folder] = sorted(inside, key=_folders_first)

    def lines(self, most: int) -> Iterator[str]:
        """Yield a line for the folder, and one for each folder in it with at most ``most`` names."""
        if self._names:
            yield f"Layout: {_shown(self._names, 3 * most + 8)}"
        for folder, inside in self._inside.items():
            if inside and most:
                yield f"{_escaped(folder)}/: {_shown(inside, most)}"


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in ("node_modules", "__pycache__", "venv", "target", "vendor")


def _folders_first(name: str) -> tuple[bool, str]:
    return not name.endswith("/"), name


def _shown(names: Sequence[str], most: int) -> str:
    shown = " ".join(map(_escaped, names[:most]))
    return f"{shown} ... ({len(names)})" if len(names) > most else shown


def _escaped(name: str) -> str:
    """Return a name without control characters, and cut if it is long."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 4]}..."
    if short.isprintable() and " " not in short:
        return short
    return '"' + "".join(c if c.isprintable() and c != '"' else ascii(c)[1:-1] for c in short) + '"'
