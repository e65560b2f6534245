"""Gather the facts of a call that permission rules are matched against: commands, paths and hosts.

Symbolic links are resolved and globs expanded at the time of the request. The facts are incomplete if a path cannot
be resolved. No file is opened or changed.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from jumpseat.agent.permissions.globs import GlobBudget, expand_globs
from jumpseat.agent.permissions.paths import (
    PathScope,
    expand_home,
    is_protected,
    linked_protection,
    real_path,
    real_program,
)
from jumpseat.agent.permissions.rules import CHANGING, Facts, ResolvedPath, host_of
from jumpseat.agent.permissions.targets import GitPrograms, GitWrites, Targets, find_targets, has_bare_repository
from jumpseat.agent.shell.commands import HOOKS, program_name, verbatim_command
from jumpseat.agent.shell.effects import CommandWords
from jumpseat.agent.shell.likeness import is_scratch
from jumpseat.agent.shell.programs import TAKES_NO_PATHS, TAKES_PATHS
from jumpseat.agent.shell.reading import READING
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

MAX_BASES: Final = 24
"""Limit of the folders that the commands of one line may run in; with more, the facts are incomplete."""

UNCHECKED_PATHS: Final = frozenset({"", "-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero"})

_OPTION_MARKS: Final = ("-", "+", "@")


def gather_facts(request: PermissionRequest, tool: str, path_scope: PathScope) -> Facts:
    """Gather the facts of a permission request for a call of ``tool``."""
    match request:
        case ShellPermission():
            return _shell_facts(request, tool, path_scope)
        case ReadPermission():
            return _path_facts("read", tool, [request.path], path_scope)
        case WritePermission():
            named = [file.path for file in request.files] or [request.file_name]
            return _path_facts("write", tool, named, path_scope)
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


def _path_facts(kind: str, tool: str, named: Sequence[str], path_scope: PathScope) -> Facts:
    paths: list[ResolvedPath] = []
    for path in named:
        resolved = path_scope.resolve(path)
        if resolved is None:
            return Facts(kind, tool, incomplete=True)
        paths.append(resolved)
    writes = kind == "write"
    return Facts(
        kind,
        tool,
        paths=tuple(paths),
        outside_paths=tuple(path for path in paths if not path_scope.contains(path)),
        writes=writes,
        protected=writes and _any_protected(paths, path_scope),
    )


def _shell_facts(request: ShellPermission, tool: str, path_scope: PathScope) -> Facts:
    line = parse_shell(request.full_command_text)
    segments = line.segments
    typed = [command.identifier for command in request.commands] != [
        command.identifier for command in line.commands
    ]
    if typed:
        # Input for a running program, whose effect is unknown.
        segments = tuple(
            ShellSegment(command.identifier, verbatim_command(command.identifier)) for command in request.commands
        )
    folder = str(real_path(path_scope.cwd()))
    segments = tuple(
        replace(segment, folder=folder, real_program=real_program(segment.program, folder)) for segment in segments
    )
    bases, bases_known = _bases(line.folders, path_scope.cwd())
    reached = _line_paths(line, bases, path_scope, complete=bases_known and line.reach_known)
    written, programs = _effects_of_git(
        line, bases if bases_known else (), path_scope, confined=bool(request.sandboxed)
    )
    paths, complete = reached.paths, reached.complete
    if any(moves() for moves in tuple(path_scope.movers)) and (
        written.any or line.redirects or any(map(_names_files, line.possible_commands))
    ):
        # The files at these paths may be others by the time the command reads them.
        complete = False
    hosts = [host_of(address) for address in line.addresses]
    only_reads = line.certain and not typed and all(segment.command.read_only for segment in segments)
    return Facts(
        "shell",
        tool,
        segments=segments,
        possible_commands=_with_targets(line.possible_commands, folder),
        names=line.names,
        paths=tuple(paths),
        outside_paths=tuple(path for path in paths if not path_scope.contains(path)),
        hosts=tuple(dict.fromkeys(host for host in hosts if host)),
        any_host=path_scope.any_host,
        writes=not only_reads,
        opaque=line.opaque,
        incomplete=not (complete or path_scope.unrestricted) or (None in hosts and not path_scope.any_host),
        typed=typed,
        text=request.full_command_text,
        folder=folder,
        folders=tuple(map(str, bases)) if bases_known else (),
        scratch=_scratch(segments) if request.sandboxed else frozenset(),
        protected=reached.protected
        or bool(written.files)
        or not written.known
        or (not only_reads and _any_protected(paths, path_scope)),
        git_files=tuple(written.files),
        git_writes_unknown=not written.known,
        git_programs=programs.shown,
        git_mark=programs.mark,
        files_mark=_files_mark(request, line, path_scope),
    )


def _scratch(segments: Iterable[ShellSegment]) -> frozenset[str]:
    """Return the files in ``/tmp`` that no command of a line takes for more than a place of its output."""
    if not sys.platform.startswith("linux"):
        # Only there, a sandbox that approvals rely on has its own.
        return frozenset()
    used = [set(segment.likeness.scratch) for segment in segments]
    return frozenset(path for paths in used for path in paths if path.startswith("/tmp/") and is_scratch(path))  # noqa: S108


def _with_targets(commands: tuple[CommandWords, ...], folder: str) -> tuple[CommandWords, ...]:
    """Return the commands, and for each program that is a link the same with the target of the link."""
    found = dict.fromkeys(commands)
    for words in commands[:MAX_PATHS]:
        if words[0] is not None and (target := real_program(words[0], folder)):
            found[(target, *words[1:])] = None
    return tuple(found)


def _effects_of_git(
    line: ShellLine, bases: Sequence[Path], path_scope: PathScope, *, confined: bool
) -> tuple[GitWrites, GitPrograms]:
    """Find the files that git may write, and unless it is ``confined``, the programs that it may run.

    It runs in one of the folders ``bases``, in any if there is none.
    """
    if not any(program_name([words[0]]) == "git" for words in line.possible_commands if words[0] is not None):
        return GitWrites(), GitPrograms()
    # Imported with the first such command.
    from jumpseat.agent.permissions.git_programs import git_programs
    from jumpseat.agent.permissions.git_writes import git_writes

    written = git_writes(line, bases, path_scope) if bases else GitWrites(known=False, any=True)
    return written, GitPrograms() if confined else git_programs(line, bases or [path_scope.cwd()], path_scope)


def _files_mark(request: ShellPermission, line: ShellLine, path_scope: PathScope) -> str:
    """Return the mark of the project's files for a line that leaves a sandbox and may run them, else nothing."""
    # The warning gives the reason for leaving. Where no command is confined, each can run the files.
    if request.sandboxed is not False or not request.warning:
        return ""
    # Imported with the first such command.
    from jumpseat.agent.permissions.project_files import mark_of, runs_project

    if not runs_project(line) and HOOKS not in request.warning:
        return ""
    if any(moves() for moves in tuple(path_scope.movers)):
        return CHANGING
    return mark_of((path_scope.main_folder, path_scope.cwd(), *path_scope.added_folders))


def _names_files(words: CommandWords) -> bool:
    """Return whether a command may open files that its words name."""
    name = program_name([words[0] or ""])
    operands = [word for word in words[1:] if word is None or not word.startswith("-")]
    if name in TAKES_NO_PATHS:
        return False
    return any(word is None or "/" in word for word in words) or (
        bool(operands) and (name in TAKES_PATHS or name in READING)
    )


def _any_protected(paths: Iterable[ResolvedPath], path_scope: PathScope) -> bool:
    linked = linked_protection(path_scope)
    return any(is_protected(path, path_scope, linked) for path in paths)


def _line_paths(line: ShellLine, bases: Sequence[Path], path_scope: PathScope, *, complete: bool) -> Targets:
    """Resolve the paths that a line may touch; ``complete`` means that it touches no others than its words say."""
    reached = Targets(complete=complete)
    words = [word for word in line.words if word not in UNCHECKED_PATHS]
    if len(words) * len(bases) > MAX_PATHS:
        reached.complete, words = False, words[: MAX_PATHS // len(bases)]
    resolved: dict[ResolvedPath, None] = {}
    budget = GlobBudget()
    for base in bases:
        expanded = expand_globs(line.globs, base, budget)
        # A file name that looks like an option is taken for one.
        reached.complete = reached.complete and not any(name.startswith(_OPTION_MARKS) for name in expanded)
        for word in (*words, *expanded):
            path = path_scope.resolve(word, base)
            # These paths have other targets in another process.
            if path is None or path.given.startswith(("/proc/", "/dev/fd")):
                reached.complete = False
            if path is not None:
                resolved[path] = None
        for placement in line.placements:
            targets = find_targets(placement, expand_globs(placement.globs, base, budget), base, path_scope)
            resolved |= dict.fromkeys(targets.paths)
            reached.complete = reached.complete and targets.complete
            reached.protected = reached.protected or targets.protected
    if budget.exceeded or len(resolved) > MAX_PATHS:
        reached.complete = False
    # Settings of a repository run programs, whatever git is asked to do.
    if any(program_name([words[0]]) == "git" for words in line.possible_commands if words[0] is not None):
        reached.protected = reached.protected or any(map(has_bare_repository, bases))
    reached.paths = list(resolved)
    return reached


def _bases(folders: Iterable[str], cwd: Path) -> tuple[list[Path], bool]:
    """Return the folders that the commands of a line may run in, and whether the list is complete."""
    bases = list(dict.fromkeys((cwd, real_path(cwd))))
    for folder in folders:
        # Whether a `cd` is reached is unknown: later paths may be relative to the folder before or after it. The
        # shell removes `..` from the words, the system follows links first.
        given = [base / expand_home(folder) for base in bases]
        logical = [Path(posixpath.normpath(str(path))) for path in given]
        bases = list(dict.fromkeys([*bases, *logical, *map(real_path, given)]))
        if len(bases) > MAX_BASES:
            return bases[:1], False
    return bases, True
