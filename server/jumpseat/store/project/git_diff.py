"""Changes in a working tree, from ``git diff``.

``system/git.py`` finds the repository and branch of a directory without running git. Programs that the
repository's configuration names for showing a diff are not run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio.to_thread
from msgspec import Struct

from jumpseat.errors import InvalidRequestError
from jumpseat.system.git import MAX_OUTPUT_BYTES, GitError, run_git
from jumpseat.system.programs import OwnPrograms
from jumpseat.system.regular_files import exists, read_whole, repository_root

ChangeType: TypeAlias = Literal["added", "modified", "deleted", "renamed"]

LARGEST_DIFF: Final = 256 * 1024
"""Limit on the diff of one file, in characters; longer diffs are left out."""
LARGEST_TOTAL: Final = 16 * 1024 * 1024
"""Limit on the diffs of all new files, in characters."""
TIMEOUT_S: Final = 30.0
DEFAULT_BRANCH: Final = "main"
"""The branch to compare with where no repository names another."""

_INHERITED: Final = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CEILING_DIRECTORIES",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "SYSTEMROOT",
)
_DIFF: Final = (
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--find-renames",
    # Looking into a submodule would use the settings of the submodule.
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    # Unmerged entries (U) are left out, because such files are listed as modified, too.
    "--diff-filter=ACDMRT",
)
_TYPES: Final[dict[str, ChangeType]] = {"A": "added", "C": "added", "D": "deleted", "R": "renamed"}
# A filter runs for every file that git compares with the index.
_RUNS_PROGRAM: Final = re.compile(r"filter\..*\.(?:clean|smudge|process|required)", re.DOTALL)
_HEADER: Final = re.compile(r"^diff --git ", re.MULTILINE)
_QUOTED: Final = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
}


class FileChange(Struct):
    """A changed file. ``diff`` is a unified diff, empty if truncated; paths are relative to the given directory."""

    path: str
    type: ChangeType
    diff: str
    old_path: str | None = None
    is_truncated: bool = False


class Repository:
    """The repository around a directory."""

    def __init__(self, cwd: Path, root: Path, overrides: Sequence[str], programs: OwnPrograms) -> None:
        """``overrides`` are settings of the repository that are made empty; ``programs`` finds git."""
        self._cwd = cwd
        self._root = root
        self._overrides = overrides
        self._programs = programs

    @classmethod
    async def find(cls, cwd: Path, programs: OwnPrograms) -> Repository | None:
        """Find the repository around ``cwd``; return ``None`` if there is none.

        Raises:
            InvalidRequestError: git is missing, or cannot use the repository.
        """
        if not exists(repository_root(cwd) / ".git"):
            return None
        try:
            root = (await _git(programs, cwd, "rev-parse", "--show-toplevel")).rstrip("\n")
        except GitError as error:
            raise InvalidRequestError(f"{str(cwd)!r} has no git working tree to compare: {error}") from None
        try:
            listed = await _git(programs, Path(root), "config", "--list", "--name-only", "--show-scope", "-z")
        except GitError:
            # Before git 2.26; then the user's own settings are left out as well.
            names = (await _git(programs, Path(root), "config", "--list", "--name-only", "-z")).split("\0")
        else:
            fields = listed.split("\0")
            names = [
                name
                for scope, name in zip(fields[::2], fields[1::2], strict=False)
                if scope in ("local", "worktree")
            ]
        overrides = [name for name in dict.fromkeys(names) if _RUNS_PROGRAM.fullmatch(name)]
        return cls(cwd, Path(root), overrides, programs)

    async def unstaged(self, *, ignore_whitespace: bool) -> list[FileChange]:
        """Compare the working tree with the index; untracked files that are not ignored are included.

        Raises:
            GitError: git failed.
        """
        changes = await self._changes([], ignore_whitespace=ignore_whitespace)
        return changes + await self._untracked()

    async def since_branching(self, branch: str, *, ignore_whitespace: bool) -> list[FileChange]:
        """Compare the working tree with its merge base with ``branch``; untracked files are included.

        Raises:
            GitError: git failed, for example because there is no merge base.
        """
        base = (await self._git("merge-base", "--end-of-options", branch, "HEAD")).strip()
        changes = await self._changes([base], ignore_whitespace=ignore_whitespace)
        return changes + await self._untracked()

    async def default_branch(self) -> str | None:
        """Return the default branch: that of ``origin``, else ``main`` or ``master``; ``None`` if there is none."""
        try:
            return (await self._git("symbolic-ref", "--short", "refs/remotes/origin/HEAD")).strip()
        except GitError:
            pass
        for name in ("main", "master"):
            try:
                await self._git("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
            except GitError:
                continue
            return name
        return None

    async def _changes(self, against: Sequence[str], *, ignore_whitespace: bool) -> list[FileChange]:
        # Files in conflict have several versions in the index: compare with ours.
        options = [*_DIFF, *(against or ["--ours"]), *(["--ignore-all-space"] if ignore_whitespace else [])]
        listed = await self._git(*options, "--name-status", "-z", "--")
        patch = await self._git(*options, "--patch", "--")
        return await anyio.to_thread.run_sync(
            self._listed, listed, patch, ignore_whitespace, abandon_on_cancel=True
        )

    def _listed(self, listed: str, whole: str, ignore_whitespace: bool) -> list[FileChange]:
        """Return the changes that git lists, each with its part of the ``whole`` patch."""
        patches = _by_header(whole)
        changes: list[FileChange] = []
        fields = iter(listed.split("\0"))
        for status in fields:
            if not status:
                break
            first = next(fields)
            path = next(fields) if status[0] in "RC" else first
            patch = patches.get(f"diff --git {_quoted(f'a/{first}')} {_quoted(f'b/{path}')}")
            if patch is None and ignore_whitespace and status[0] == "M":
                # Git lists the file although only whitespace has changed.
                continue
            old_path = first if status[0] == "R" else None
            changes.append(self._change(path, _TYPES.get(status[0], "modified"), patch, old_path))
        return changes

    async def _untracked(self) -> list[FileChange]:
        listed = await self._git("ls-files", "--others", "--exclude-standard", "-z")
        return await anyio.to_thread.run_sync(self._new, listed, abandon_on_cancel=True)

    def _new(self, listed: str) -> list[FileChange]:
        names = [name for name in listed.split("\0") if name]
        patches = _patches_of_new(self._root, names)
        return [self._change(name, "added", patch) for name, patch in zip(names, patches, strict=True)]

    async def _git(self, *args: str) -> str:
        return await _git(self._programs, self._root, *args, overrides=self._overrides)

    def _change(self, path: str, kind: ChangeType, patch: str | None, old_path: str | None = None) -> FileChange:
        if patch is not None and len(patch) > LARGEST_DIFF:
            patch = None
        return FileChange(
            self._relative(path),
            kind,
            patch or "",
            self._relative(old_path) if old_path is not None else None,
            is_truncated=patch is None,
        )

    def _relative(self, path: str) -> str:
        return os.path.relpath(self._root / path, self._cwd)


def _by_header(patch: str) -> dict[str, str]:
    """Split a patch into one patch per file, by their first lines; lines of content begin with a sign or space."""
    starts = [found.start() for found in _HEADER.finditer(patch)]
    parts = [patch[start:end] for start, end in pairwise([*starts, len(patch)])]
    if len(patch.encode()) >= MAX_OUTPUT_BYTES and parts:
        # The last patch may be incomplete.
        parts.pop()
    return {part.partition("\n")[0]: part for part in parts}


def _quoted(path: str) -> str:
    """Quote a path as git does in patches."""
    escaped = _QUOTED.sub(lambda found: _ESCAPES.get(found[0]) or f"\\{ord(found[0]):03o}", path)
    return path if escaped == path else f'"{escaped}"'


def _patches_of_new(root: Path, names: Sequence[str]) -> list[str | None]:
    """Return the patch of each new file; ``None`` for those after :data:`LARGEST_TOTAL` characters."""
    patches: list[str | None] = []
    size = 0
    for name in names:
        patch = _patch_of_new(root, name) if size < LARGEST_TOTAL else None
        size += len(patch or "")
        patches.append(patch)
    return patches


def _patch_of_new(root: Path, name: str) -> str | None:
    """Return the patch that adds a file; ``None`` if it is too long, cannot be read or is not a file."""
    path = root / name
    try:
        if path.is_symlink():
            mode, data = "120000", os.readlink(path).encode()
        else:
            mode, data = "100755" if os.access(path, os.X_OK) else "100644", read_whole(path, LARGEST_DIFF)
    except (OSError, ValueError):
        return None
    old, new = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    header = f"diff --git {old} {new}\nnew file mode {mode}\n"
    if not data:
        return header
    if b"\0" in data:
        return f"{header}Binary files /dev/null and {new} differ\n"
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").split("\n")
    body = "".join(f"+{line}\n" for line in lines)
    end = "" if text.endswith("\n") else "\\ No newline at end of file\n"
    return f"{header}--- /dev/null\n+++ {new}\n@@ -0,0 +1,{len(lines)} @@\n{body}{end}"


async def _git(programs: OwnPrograms, cwd: Path, *args: str, overrides: Sequence[str] = ()) -> str:
    """Run git and return its output as text. ``overrides`` are names of settings to make empty.

    Raises:
        GitError: git is missing, failed or took too long.
    """
    environ = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environ["GIT_CONFIG_COUNT"] = str(len(overrides))
    for number, name in enumerate(overrides):
        environ[f"GIT_CONFIG_KEY_{number}"] = name
        environ[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(".required") else ""
    output = await run_git(cwd, *args, environ=environ, timeout_s=TIMEOUT_S, programs=programs)
    return output.decode("utf-8", "replace")
