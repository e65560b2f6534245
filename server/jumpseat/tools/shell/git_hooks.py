"""Find the hooks that git would run for a command line that leaves the sandbox: its question names them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread

from jumpseat.system.git import GitError, run_git
from jumpseat.system.programs import OwnPrograms
from jumpseat.system.regular_files import read_regular

TIMEOUT_S: Final = 2.0
MAX_FOLDERS: Final = 4
"""Limit of the folders of one line in which hooks are looked for."""
MAX_BYTES: Final = 64 * 1024

_COMMITS: Final = (
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-merge-commit",
    "post-rewrite",
)
_HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "push": ("pre-push",),
    "pull": (*_COMMITS, "post-merge", "post-checkout", "pre-rebase"),
    "send-email": ("sendemail-validate",),
    **dict.fromkeys(("fetch", "ls-remote", "config", "remote"), ()),
}
"""The hooks of subcommands, besides those of each; any other subcommand may run all."""
_OF_EACH: Final = ("reference-transaction", "post-index-change")

_OBEYED: Final = {
    b"pre-commit": (".pre-commit-config.yaml",),
    b"lefthook": ("lefthook.yml", ".lefthook.yml"),
    b"overcommit": (".overcommit.yml",),
}
"""Files with the commands of hooks that another program manages, by its name."""


async def hooks_of(command: str, cwd: Path, environ: Mapping[str, str], programs: OwnPrograms) -> list[str]:
    """Return the files that git would run, or have run, as hooks of a command line, relative to ``cwd``."""
    found: dict[str, None] = {}
    folders, wanted = _read_line(command, cwd)
    for folder in folders:
        try:
            path = await run_git(
                folder, "rev-parse", "--git-path", "hooks", environ=environ, timeout_s=TIMEOUT_S, programs=programs
            )
        except GitError:
            continue
        hooks = folder / os.fsdecode(path.removesuffix(b"\n"))
        found |= dict.fromkeys(await anyio.to_thread.run_sync(_files, hooks, folder, cwd, wanted))
    return list(found)


def _read_line(command: str, cwd: Path) -> tuple[list[Path], set[str] | None]:
    """Return the folders in which a line may call git, and the hooks that it may run (``None``: any)."""
    # Imported here: few commands leave the sandbox.
    from jumpseat.agent.shell.commands import git_subcommand, program_name
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(command)
    calls = [[word or "" for word in words] for words in line.possible_commands if words[0] is not None]
    calls = [words for words in calls if program_name(words) == "git"]
    folders = list(line.folders)
    for words in calls:
        while "-C" in words[:-1]:
            place = words.index("-C")
            folders.append(words[place + 1])
            del words[place : place + 2]
    rows = [_HOOKS.get(git_subcommand(words)) for words in calls]
    wanted = None if None in rows else {*_OF_EACH, *(name for row in rows for name in row or ())}
    places = [cwd, *(cwd / os.path.expanduser(folder) for folder in folders[:MAX_FOLDERS])]
    return list(dict.fromkeys(places)) if calls else [], wanted


def _files(hooks: Path, folder: Path, cwd: Path, wanted: set[str] | None) -> list[str]:
    """Return the hooks in a folder, and the files with commands that they obey, relative to ``cwd``."""
    found: list[str] = []
    try:
        names = sorted(os.listdir(hooks))
    except OSError:
        return found
    for name in names:
        path = hooks / name
        if name.endswith(".sample") or (wanted is not None and name not in wanted) or not os.access(path, os.X_OK):
            continue
        if not path.is_file():
            continue
        # husky keeps the scripts of the project beside the folder that git knows.
        script = hooks.parent / name
        found.append(str(script if hooks.name == "_" and script.is_file() else path))
        try:
            text = read_regular(path, MAX_BYTES)
        except (OSError, ValueError):
            continue
        top = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
        obeyed = [top / file for program, files in _OBEYED.items() if program in text for file in files]
        found += [str(file) for file in obeyed if file.exists()]
    return [os.path.relpath(path, cwd) for path in found]
