"""Ask git about commits and settings, in a thread. None of these questions makes git run another program.

Only plumbing commands are used, which obey no aliases, filters, hooks and pagers of a repository.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.system.git import ENVIRONMENT, MAX_OUTPUT_BYTES, NO_FETCHING, SETTINGS, GitError
from jumpseat.system.programs import OwnPrograms

TIMEOUT_S: Final = 5.0

_NO_REPOSITORY: Final = (b"not a git repository", b"cannot use bare repository")


class NoRepositoryError(GitError):
    """The folder is in no repository that git would use."""


class GitReader(Struct, frozen=True):
    """Reads repositories with the git in ``PATH`` of ``environ``."""

    environ: Callable[[], Mapping[str, str]] = lambda: os.environ

    def ask(
        self,
        folder: Path,
        *args: str,
        data: bytes = b"",
        untrusted: Iterable[Path] = (),
        missing: int | None = None,
    ) -> bytes:
        """Return what ``git`` writes in ``folder``; git itself is in none of the folders that are ``untrusted``.

        ``missing`` is the exit code that says that there is nothing to return.

        Raises:
            NoRepositoryError: the folder is in no repository, or does not exist.
            GitError: git is missing, failed, took too long or wrote too much.
        """
        programs = OwnPrograms(lambda: untrusted)
        environ = self.environ()
        git = programs.find("git", environ)
        if git is None or not folder.is_dir():
            raise NoRepositoryError
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        try:
            done = subprocess.run(
                [git, *settings, *args],
                input=data,
                cwd=folder,
                env={**programs.environ(environ), **ENVIRONMENT, **NO_FETCHING},
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise GitError(str(error)) from None
        if any(text in done.stderr for text in _NO_REPOSITORY):
            raise NoRepositoryError
        if done.returncode not in (0, missing) or len(done.stdout) > MAX_OUTPUT_BYTES:
            raise GitError(done.stderr.decode("utf-8", "replace").strip())
        return done.stdout


def lines_of(words: Sequence[str]) -> bytes:
    """Return words as lines, for commands that read names from their input."""
    return "".join(f"{word}\n" for word in words).encode("utf-8", "surrogateescape")
