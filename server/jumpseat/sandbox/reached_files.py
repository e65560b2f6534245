"""The files of a project that a program may load: those that its command line names, and those that these name.

What a program loads cannot be known without running it. A file that is loaded is named in some way by the one that
loads it: as a path, as a module, or as a part of one. So each text is read for names of files that exist, which
finds too many rather than too few. Programs that build what they run reach the whole project.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from jumpseat.sandbox.folders import SKIPPED
from jumpseat.system.file_trees import walk
from jumpseat.system.regular_files import read_regular

MAX_FILES: Final = 50_000
"""Limit of the files of a project that are looked at."""

MAX_REACHED: Final = 5000
MAX_TEXT: Final = 1024 * 1024
"""Largest file that is read for names."""

MAX_NAMES: Final = 20_000
"""Limit of the names in one file."""

MAX_FOLDERS: Final = 50
"""Limit of the folders that one file names, in which its other names are looked for."""

_NAME: Final = re.compile(r"[\w@+~.-]+(?:/[\w@+~.-]+)*")
_LISTS: Final = re.compile(r"listdir|scandir|iterdir|readdir|glob|walk|iter_modules|import_module|__import__")

_SUFFIXES: Final = (
    "", ".py", ".pyc", ".so", ".pth", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json",
    ".node", ".rb", ".sh", ".lua", ".pl", ".pm", ".php", ".toml", ".yaml", ".yml",
)  # fmt: skip
"""What a name leaves out: those of modules, and of what a launcher looks for."""

_INDEXES: Final = ("__init__", "__main__", "index", "main", "package")
"""The files of a folder that are loaded if it is named."""

_DATA: Final = frozenset({
    ".bmp", ".bz2", ".css", ".csv", ".db", ".gif", ".gz", ".html", ".ico", ".jpeg", ".jpg", ".log", ".md", ".mp3",
    ".mp4", ".pdf", ".png", ".rst", ".sqlite", ".sqlite3", ".svg", ".tsv", ".txt", ".webp", ".xz",
})  # fmt: skip
"""Suffixes of files that no program runs."""

_MANIFESTS: Final = (
    "package.json", "pyproject.toml", "setup.py", "setup.cfg", "Makefile", "makefile", "GNUmakefile", "justfile",
    "Justfile", "Taskfile.yml", "Taskfile.yaml", "deno.json", "deno.jsonc", "bunfig.toml", "tsconfig.json",
    "sitecustomize.py", "usercustomize.py", ".env", "composer.json", "Gemfile", "Rakefile", "Procfile",
)  # fmt: skip
"""Files that runners and interpreters read in the working directory, or in a folder around it."""

_BUILDERS: Final = frozenset({
    "bazel", "bundle", "cabal", "cargo", "clojure", "cmake", "composer", "docker-compose", "dotnet", "elixir", "go",
    "gradle", "gradlew", "just", "kotlin", "lein", "make", "mix", "mvn", "mvnw", "ninja", "nix", "rake", "sbt",
    "stack", "swift", "task", "zig",
})  # fmt: skip
"""Programs that build what they run, from any file of the project."""

_RUNNERS: Final = frozenset({
    "bun", "deno", "direnv", "hatch", "mise", "node", "nodejs", "nox", "npm", "pdm", "pipenv", "pixi", "pnpm",
    "poetry", "rye", "tox", "ts-node", "tsx", "uv", "yarn",
})  # fmt: skip
"""Runners, which obey files of the working directory."""

_INTERPRETERS: Final = frozenset({
    "bash", "dash", "env", "fish", "java", "ksh", "lua", "perl", "php", "ruby", "sh", "timeout", "zsh",
})  # fmt: skip
"""Programs that are given what they run. ``python`` is one, which looks for modules in the working directory."""

_FETCHERS: Final = frozenset({"bunx", "npx", "pipx", "pnpx", "uvx"})
"""Programs that run a package, which only some look for in the project."""

_SCRIPTS: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx")
_PACKAGES: Final = ("node_modules", ".venv", "venv")
"""Folders of installed packages, which are compared as a whole."""


class CommandLine(Struct, frozen=True):
    """A program with its arguments, its working directory, and the variables that its settings give it.

    ``path`` are the folders of programs, if the settings give none, and ``settings`` are files with the settings.
    """

    words: Sequence[str]
    cwd: Path
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str = ""
    settings: Sequence[Path] = ()


class Reached(Struct):
    """The files that a program may load: single files and links, and folders of installed packages as a whole."""

    files: set[str] = field(default_factory=set[str])
    packages: set[str] = field(default_factory=set[str])
    complete: bool = True

    def __bool__(self) -> bool:
        return bool(self.files or self.packages)


class _Project(Struct):
    """The files below the session's folders, without installed packages.

    ``native`` are libraries by their path without what names the platform.
    """

    roots: tuple[str, ...]
    files: set[str] = field(default_factory=set[str])
    folders: set[str] = field(default_factory=set[str])
    stems: set[str] = field(default_factory=set[str])
    native: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    complete: bool = True

    def holds(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}/") for root in self.roots)

    def look(self) -> None:
        """Find the files; those of a project that is too large are not all found."""
        for root in self.roots:
            for folder, folders, names in walk(root):
                # Those that are left are looked at next.
                folders[:] = [name for name in folders if name not in SKIPPED and name != ".git"]
                self.folders.update(f"{folder}/{name}" for name in folders)
                for name in names:
                    if name.endswith((".so", ".pyd")):
                        self.native.setdefault(f"{folder}/{name.partition('.')[0]}", []).append(f"{folder}/{name}")
                self.files.update(f"{folder}/{name}" for name in names)
                self.stems.update(name.lstrip(".").partition(".")[0] for name in (*names, *folders))
                if len(self.files) > MAX_FILES:
                    self.complete = False
                    return

    def below(self, folder: str) -> Iterator[str]:
        return (path for path in self.files if path.startswith(f"{folder}/") and is_code(path))


def is_code(path: str) -> bool:
    """Return whether a program may run the file, or obey it."""
    return os.path.splitext(path)[1].lower() not in _DATA


def reached_files(line: CommandLine, folders: Iterable[Path]) -> Reached:
    """Return the files in ``folders``, which commands may change, that a program may load. Blocks."""
    roots = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))
    project = _Project(tuple(root for root in roots if root != "/"))
    reached = Reached()
    cwd = os.path.realpath(line.cwd)
    program = _program(line, cwd)
    kind = _kind(program)
    named = [path for path in _named(line, cwd) if project.holds(path) or project.holds(os.path.realpath(path))]
    seeds = [path for path in named if os.path.isfile(path) and is_code(path)]
    seeds += [path for path in map(os.path.realpath, line.settings) if os.path.isfile(path) and project.holds(path)]
    if project.holds(program) or project.holds(os.path.realpath(program)):
        seeds.append(program)
    obeys = kind not in ("other", "fetcher") and project.holds(cwd)
    if kind == "fetcher":
        seeds += _fetched(line, cwd, project)
    # A program in such a folder may take the place of any that this one starts.
    own = [path for path in _path(line, cwd) if project.holds(os.path.realpath(path)) and os.path.isdir(path)]
    reached.files.update(os.path.join(folder, name) for folder in own for name in os.listdir(folder))
    if not (seeds or obeys):
        return reached
    project.look()
    bases = _bases(line, cwd, project)
    if obeys:
        if kind == "runner":
            seeds += [f"{above}/{name}" for above in _around(cwd, project) for name in _MANIFESTS]
        seeds += _names_in(" ".join(line.words[1:]), (*bases,), project)
        seeds += _of_folder(kind, line, cwd, named, project)
    reached.packages.update(_packages(kind, cwd, (program, *named), project))
    _close(reached, project, seeds, bases)
    for path in tuple(reached.files):
        if path.endswith(_SCRIPTS) or "." not in os.path.basename(path):
            reached.packages.update(_packages("script", os.path.dirname(path), (), project))
    if any(map(_isolates, line.words)):
        reached.files.update(path for found in tuple(reached.files) for path in _compiled(found))
    reached.complete = reached.complete and project.complete
    return reached


def _isolates(word: str) -> bool:
    """Return whether an option makes Python, or ``env``, ignore variables."""
    return word[:1] == "-" and word[1:].isalpha() and not {"E", "I", "i"}.isdisjoint(word)


def _compiled(path: str) -> Iterator[str]:
    """Yield the compiled forms of a module, which count where Python is kept from others."""
    folder, name = os.path.split(path)
    caches = f"{folder}/__pycache__"
    if name.endswith(".py") and os.path.isdir(caches):
        yield from (f"{caches}/{found}" for found in os.listdir(caches) if found.startswith(name[:-2]))


def _of_folder(kind: str, line: CommandLine, cwd: str, named: Sequence[str], project: _Project) -> Iterator[str]:
    """Yield the files of the folders that a program runs, or in which it looks for modules first."""
    folders = [path for path in named if os.path.isdir(path) and project.holds(path)]
    if kind == "builder":
        folders.append(cwd)
    elif kind == "python" and not any(os.path.isfile(path) for path in named):
        # Its first place for modules is the working directory: any file there may take the place of one.
        below = len(cwd) + 1
        near = [path for path in project.files if path.startswith(f"{cwd}/") and path.count("/", below) < 2]
        yield from (path for path in near if path.count("/", below) == 0 and path.endswith(_SUFFIXES[1:5]))
        yield from (path for path in near if path.endswith("/__init__.py"))
    for folder in folders:
        yield from project.below(folder)


def _fetched(line: CommandLine, cwd: str, project: _Project) -> Iterator[str]:
    """Yield the programs of installed packages that a runner of packages prefers to those that it would fetch."""
    for word in line.words[1:]:
        name = word[:1] + word[1:].partition("@")[0]
        for folder in _around(cwd, project):
            packages = f"{folder}/node_modules"
            found = (f"{packages}/{name}/package.json", f"{packages}/.bin/{name.rpartition('/')[2]}")
            yield from (path for path in found if name and os.path.lexists(path))


def _program(line: CommandLine, cwd: str) -> str:
    word = line.words[0] if line.words else ""
    if "/" in word:
        return os.path.normpath(os.path.join(cwd, word))
    found = shutil.which(word, path=os.pathsep.join(_path(line, cwd))) if word else None
    return os.path.normpath(found or os.path.join(cwd, word or "."))


def _path(line: CommandLine, cwd: str) -> list[str]:
    return [os.path.join(cwd, folder) for folder in line.given.get("PATH", line.path).split(os.pathsep)]


def _kind(program: str) -> str:
    name = os.path.basename(program).lower().removesuffix(".exe")
    if name in _BUILDERS:
        return "builder"
    plain = name.rstrip("0123456789.")
    if plain in ("python", "pypy"):
        return "python"
    if name in _FETCHERS:
        return "fetcher"
    if name in _INTERPRETERS or plain in _INTERPRETERS:
        return "interpreter"
    return "runner" if name in _RUNNERS else "other"


def _named(line: CommandLine, cwd: str) -> Iterator[str]:
    """Yield the existing paths that arguments and variables name, also as parts of a longer word."""
    for word in (*line.words[1:], *line.given.values()):
        for text in dict.fromkeys((word, *(found[0] for found in _NAME.finditer(word)), *word.split(os.pathsep))):
            for name in (text, text.partition("=")[2]):
                path = os.path.normpath(os.path.join(cwd, os.path.expanduser(name))) if name else ""
                if path and os.path.lexists(path):
                    yield path


def _around(cwd: str, project: _Project) -> Iterator[str]:
    """Yield a folder and those around it in the project."""
    folder = cwd
    while project.holds(folder):
        yield folder
        folder = os.path.dirname(folder)


def _bases(line: CommandLine, cwd: str, project: _Project) -> list[str]:
    """Return the folders in which a program looks for modules, besides that of each file."""
    given = [os.path.join(cwd, part) for value in line.given.values() for part in value.split(os.pathsep) if part]
    around = [cwd, f"{cwd}/src", f"{cwd}/lib", *given]
    found = (os.path.normpath(path) for path in around)
    return list(dict.fromkeys(path for path in found if path in project.folders or path in project.roots))


def _packages(kind: str, cwd: str, paths: Iterable[str], project: _Project) -> Iterator[str]:
    """Yield the folders of installed packages that a program uses: its own environment, and those around."""
    for path in paths:
        for one in (path, os.path.realpath(path)):
            for above in Path(one).parents:
                is_packages = above.name in _PACKAGES or (above / "pyvenv.cfg").is_file()
                if is_packages and project.holds(str(above)):
                    yield str(above)
    names = {"runner": _PACKAGES, "builder": _PACKAGES, "script": _PACKAGES[:1]}.get(kind, ())
    for folder in _around(cwd, project):
        yield from (path for name in names if os.path.isdir(path := f"{folder}/{name}"))


def _close(reached: Reached, project: _Project, seeds: Iterable[str], bases: Sequence[str]) -> None:
    """Add the seeds, and everything that they name."""
    waiting = [path for path in seeds if os.path.lexists(path)]
    done: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        if len(done) >= MAX_REACHED:
            reached.complete = False
            return
        done.add(path)
        reached.files.add(path)
        if os.path.islink(path):
            waiting += [found for found in (_target(path), os.path.realpath(path)) if project.holds(found)]
        elif path in project.files or project.holds(path):
            waiting += _names_of(path, project, bases)


def _target(path: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))


def _names_of(path: str, project: _Project, bases: Sequence[str]) -> Iterator[str]:
    """Yield the files of the project that a file names, and those of the package that it is in."""
    folder = os.path.dirname(path)
    yield from (found for found in (f"{folder}/__init__.py", f"{folder}/package.json") if found in project.files)
    try:
        text = read_regular(Path(path), MAX_TEXT).decode("utf-8", "replace")
    except (OSError, ValueError):
        return
    yield from _names_in(text, (folder, *bases), project)


def _names_in(text: str, places: Sequence[str], project: _Project) -> Iterator[str]:
    """Yield the files that a text names, from the folders ``places``."""
    names = list(dict.fromkeys(found[0] for found in _NAME.finditer(text)))[:MAX_NAMES]
    likely = [name for name in names if _is_likely(name, project)]
    places = list(dict.fromkeys(places))
    folders = [found for name in likely for found in _resolved(name, places) if found in project.folders]
    folders = list(dict.fromkeys(folders))[:MAX_FOLDERS]
    if _LISTS.search(text) is not None:
        for folder in folders:
            yield from project.below(folder)
    for name in likely:
        for found in _resolved(name, (*places, *folders)):
            yield from _files_at(found, project)


def _is_likely(name: str, project: _Project) -> bool:
    parts = (part for text in name.split("/") for part in text.split("."))
    return any(part in project.stems for part in parts if part)


def _resolved(name: str, places: Sequence[str]) -> Iterator[str]:
    """Yield the paths that a name may mean: as a path, and as a module with its packages."""
    plain = name.lstrip(".")
    dotted = plain.split(".") if "/" not in plain else []
    forms = {name, plain.lstrip("/"), *("/".join(dotted[:end]) for end in range(1, len(dotted) + 1))}
    # A name in Python's syntax for packages around that of the file.
    ups = len(name) - len(plain)
    forms.update("../" * (ups - 1) + "/".join(dotted) for _ in range(1) if dotted and ups > 1)
    for place in places:
        for form in forms:
            if form:
                yield os.path.normpath(f"{place}/{form}")


def _files_at(path: str, project: _Project) -> Iterator[str]:
    candidates = [f"{path}{suffix}" for suffix in _SUFFIXES]
    if path in project.folders:
        candidates += [f"{path}/{index}{suffix}" for index in _INDEXES for suffix in _SUFFIXES[1:]]
    yield from (found for found in candidates if found in project.files and is_code(found))
    yield from project.native.get(path, ())
