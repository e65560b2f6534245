"""Gather the facts of a call that permission rules are matched against: commands, paths and hosts.

Symbolic links are resolved and globs expanded at the time of the request. The facts are incomplete if a path cannot
be resolved. No file is opened or changed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.rules import Facts, ResolvedPath, Rule, host_of
from jumpseat.agent.shell.commands import verbatim_command
from jumpseat.agent.shell.syntax import ShellLine, ShellSegment, parse_shell
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

MAX_PATHS: Final = 256
"""Limit of the paths that are resolved for one command line; with more, the facts are incomplete."""

UNCHECKED_PATHS: Final = frozenset({"", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero"})

_OPTION_MARKS: Final = ("-", "+", "@")

# Writing to these folders changes what later calls do or may do.
_PROTECTED_NAMES: Final = frozenset({".git", ".jumpseat"})


@dataclass(slots=True)
class PathScope:
    """The folders that a session may use without approval of each path.

    ``cwd`` returns the working directory; ``primary``, if set, takes its place for permissions. ``session_folders``
    are folders that the server made for the session. No rule and no approval allows writing to ``guarded`` folders.
    ``unrestricted`` covers all paths, ``any_host`` all hosts.
    """

    cwd: Callable[[], Path]
    session_folders: tuple[Path, ...] = ()
    guarded: tuple[Path, ...] = ()
    primary: Path | None = None
    added_folders: list[Path] = field(default_factory=list[Path])
    include_temp: bool = False
    unrestricted: bool = False
    any_host: bool = False

    @property
    def main_folder(self) -> Path:
        """The folder that permissions are relative to."""
        return self.primary or self.cwd()

    def folders(self) -> list[Path]:
        """Return the folders without ``session_folders``, the main folder first."""
        found = [self.main_folder, self.cwd(), *self.added_folders]
        if self.include_temp:
            import tempfile

            found.append(Path(tempfile.gettempdir()))
        return list(dict.fromkeys(found))

    def contains(self, path: ResolvedPath) -> bool:
        """Return whether the real path lies in one of the folders, whose links are resolved as well."""
        if self.unrestricted:
            return True
        roots = (_resolve_or_none(folder) for folder in (*self.folders(), *self.session_folders))
        return any(root is not None and Path(path.real).is_relative_to(root) for root in roots)

    def resolve(self, path: str, base: Path | None = None) -> ResolvedPath | None:
        """Resolve a path relative to ``base`` (default: the working directory); ``None`` if that fails."""
        try:
            given = (base or self.cwd()) / _expand_home(path)
            real = given.resolve()
            name = str(real)
            name.encode()
            return ResolvedPath(posixpath.normpath(str(given)), name, real.is_dir())
        except (OSError, RuntimeError, ValueError):
            return None

    def rule_patterns(self, rule: Rule) -> Sequence[str]:
        """Return the absolute patterns of a path rule: as written, and with links before wildcards resolved."""
        pattern = rule.argument or ""
        base = Path(rule.base) if rule.base else self.cwd()
        if pattern.startswith("**"):
            pattern = f"./{pattern}"
        given = posixpath.normpath(str(base / _expand_home(pattern)))
        names = given.split("/")
        first_wildcard = next((n for n, name in enumerate(names) if "*" in name or "?" in name), len(names))
        root = _resolve_or_none(Path("/".join(names[:first_wildcard]) or "/"))
        if root is None:
            return (given,)
        rest = "/".join(names[first_wildcard:])
        return (given, posixpath.join(str(root), rest) if rest else str(root))


def gather_facts(request: PermissionRequest, tool: str, path_scope: PathScope) -> Facts:
    """Gather the facts of a permission request for a call of ``tool``."""
    match request:
        case ShellPermission():
            return _shell_facts(request, tool, path_scope)
        case ReadPermission():
            return _path_facts("read", tool, request.path, path_scope)
        case WritePermission():
            return _path_facts("write", tool, request.file_name, path_scope)
        case UrlPermission():
            host = host_of(request.url)
            return Facts("url", tool, hosts=(host,) if host else (), incomplete=host is None)
        case McpPermission():
            return Facts("mcp", tool, server=request.server_name, name=request.tool_name)
        case MemoryPermission():
            return Facts("memory", tool)
        case CustomToolPermission():
            return Facts("custom-tool", tool, name=request.tool_name)
        case HookPermission():
            return Facts("hook", tool, name=request.tool_name)


def _path_facts(kind: str, tool: str, path: str, path_scope: PathScope) -> Facts:
    resolved = path_scope.resolve(path)
    if resolved is None:
        return Facts(kind, tool, incomplete=True)
    writes = kind == "write"
    return Facts(
        kind,
        tool,
        paths=(resolved,),
        outside_paths=() if path_scope.contains(resolved) else (resolved,),
        writes=writes,
        protected=writes and _is_protected(resolved, path_scope),
    )


def _shell_facts(request: ShellPermission, tool: str, path_scope: PathScope) -> Facts:
    line = parse_shell(request.full_command_text)
    segments = line.segments
    if [command.identifier for command in request.commands] != [command.identifier for command in line.commands]:
        # Not a command line, but input for a running program, whose effect is unknown.
        segments = tuple(
            ShellSegment(command.identifier, verbatim_command(command.identifier)) for command in request.commands
        )
    paths, complete = _line_paths(line, path_scope)
    hosts = [host_of(address) for address in line.addresses]
    only_reads = line.certain and all(segment.command.read_only for segment in segments)
    return Facts(
        "shell",
        tool,
        segments=segments,
        possible_commands=line.possible_commands,
        paths=paths,
        outside_paths=tuple(path for path in paths if not path_scope.contains(path)),
        hosts=tuple(dict.fromkeys(host for host in hosts if host)),
        any_host=path_scope.any_host,
        writes=not only_reads,
        opaque=line.opaque,
        incomplete=not (complete or path_scope.unrestricted) or (None in hosts and not path_scope.any_host),
        protected=not only_reads and any(_is_protected(path, path_scope) for path in paths),
    )


def _line_paths(line: ShellLine, path_scope: PathScope) -> tuple[tuple[ResolvedPath, ...], bool]:
    """Resolve the paths that a line may touch; also returns whether these are all of them."""
    complete = line.reach_known
    bases = [path_scope.cwd()]
    for folder in line.folders:
        # Whether a `cd` is reached is unknown: later paths may be relative to the folder before or after it.
        bases += [base / _expand_home(folder) for base in bases]
        if len(bases) > 16:
            complete, bases = False, bases[:1]
            break
    words = [word for word in line.words if word not in UNCHECKED_PATHS]
    if len(words) * len(bases) > MAX_PATHS:
        complete, words = False, words[: MAX_PATHS // len(bases)]
    found: dict[ResolvedPath, None] = {}
    for base in bases:
        expanded = _expand_globs(line.globs, base)
        # A file name that looks like an option is taken for one.
        complete = complete and not any(name.startswith(_OPTION_MARKS) for name in expanded)
        for word in (*words, *expanded):
            path = path_scope.resolve(word, base)
            # In another process, these lead elsewhere.
            if path is None or path.given.startswith(("/proc/", "/dev/fd")):
                complete = False
            if path is not None:
                found[path] = None
    if len(found) > MAX_PATHS:
        complete = False
    return tuple(found), complete


def _expand_globs(globs: Iterable[str], base: Path) -> list[str]:
    """Expand globs as the shell does: a glob without a match stands for itself."""
    found: list[str] = []
    for glob in globs:
        root, pattern = (Path("/"), glob.lstrip("/")) if glob.startswith("/") else (base, glob)
        try:
            paths = islice(root.glob(pattern), MAX_PATHS + 1)
            names = [str(path) if glob.startswith(("/", ".")) else str(path.relative_to(base)) for path in paths]
        except (OSError, ValueError, NotImplementedError):
            names = []
        found += names or [glob]
    return found


def _is_protected(path: ResolvedPath, path_scope: PathScope) -> bool:
    for form in (Path(path.given), Path(path.real)):
        if not _PROTECTED_NAMES.isdisjoint(part.casefold() for part in form.parts):
            return True
        if any(form.is_relative_to(folder) for folder in path_scope.guarded):
            return not any(Path(path.real).is_relative_to(folder) for folder in path_scope.session_folders)
    return False


def _expand_home(path: str) -> str:
    if path.startswith("~"):
        try:
            return str(Path(path).expanduser())
        except RuntimeError:
            return path
    return path


def _resolve_or_none(folder: Path) -> Path | None:
    try:
        return folder.resolve()
    except (OSError, RuntimeError, ValueError):
        return None
