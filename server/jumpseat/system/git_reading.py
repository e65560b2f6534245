"""Ask git about commits and settings, in a thread. None of these questions makes git run another program.

Only plumbing commands are used, which obey no aliases, filters, hooks and pagers of a repository.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

from jumpseat.system.git import ENVIRONMENT, MAX_OUTPUT_BYTES, NO_FETCHING, SETTINGS, GitError
from jumpseat.system.programs import OwnPrograms

TIMEOUT_S: Final = 30.0
"""A guard against hanging: after it, a person is asked about the call."""

Question: TypeAlias = tuple[tuple[str, ...], bytes]
"""The arguments of git, and its input."""

INDEX: Final = ("ls-files", "-s", "-z", "--full-name", ":/")
"""Asks for the mode, the digest and the name of each file in the index."""

_NO_REPOSITORY: Final = (b"not a git repository", b"cannot use bare repository")


class NoRepositoryError(GitError):
    """The folder is in no repository that git would use."""


class Repository:
    """The repository that git uses in ``folder``. ``top`` is the root of the work tree.

    git is found in ``PATH`` of ``environ``, in none of the folders that are ``untrusted``. Questions that are
    ``foreseen`` are asked at the same time as those about the repository.

    Raises:
        NoRepositoryError: there is none.
        GitError: git failed.
    """

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str] | None,
        untrusted: Iterable[Path],
        *,
        foreseen: Sequence[Question] = (),
    ) -> None:
        programs = OwnPrograms(lambda: untrusted)
        self.folder = folder
        self._git = programs.find("git", os.environ if environ is None else environ)
        self._environ = {
            **programs.environ(os.environ if environ is None else environ),
            **ENVIRONMENT,
            **NO_FETCHING,
        }
        self._answers: dict[Question, tuple[int, bytes, bytes]] = {}
        words = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--git-path", "hooks")
        self.foresee((words, b""), *foreseen)
        paths = self.lines(*words)
        if len(paths) != 4:
            raise GitError("a path contains a line feed")
        self.top, self.git_folder = Path(paths[0]), Path(paths[1])
        self._common, self._hooks = (os.path.realpath(folder / path) for path in paths[2:])

    def ask(self, *args: str, data: bytes = b"", missing: int | None = None) -> str:
        """Return what ``git`` writes; ``missing`` is the exit code that says that there is nothing to return.

        Raises:
            NoRepositoryError: the folder is in no repository, or does not exist.
            GitError: git failed, took too long or wrote too much.
        """
        question = args, data
        if question not in self._answers:
            self.foresee(question)
        exit_code, output, errors = self._answers.pop(question)
        if any(text in errors for text in _NO_REPOSITORY):
            raise NoRepositoryError
        if exit_code not in (0, missing) or len(output) > MAX_OUTPUT_BYTES:
            raise GitError(errors.decode("utf-8", "replace").strip())
        return output.decode("utf-8", "surrogateescape")

    def foresee(self, *questions: Question) -> None:
        """Ask several questions at the same time, which takes hardly longer than one; :meth:`ask` has the answers.

        Raises:
            NoRepositoryError: the folder does not exist.
            GitError: git cannot be run, or took too long.
        """
        if self._git is None or not self.folder.is_dir():
            raise NoRepositoryError
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        with ExitStack() as stack:
            try:
                running: dict[Question, subprocess.Popen[bytes]] = {}
                # Those with an input begin when they have it.
                for question in sorted(dict.fromkeys(questions), key=lambda question: not question[1]):
                    process = subprocess.Popen(
                        [self._git, *settings, *question[0]],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        cwd=self.folder,
                        env=self._environ,
                    )
                    running[question] = stack.enter_context(process)
                    # No effect on one that has ended.
                    stack.callback(process.kill)
                for question, process in running.items():
                    output, errors = process.communicate(question[1], TIMEOUT_S)
                    self._answers[question] = process.returncode, output, errors
            except (OSError, subprocess.SubprocessError) as error:
                raise GitError(str(error)) from None

    def lines(self, *args: str, data: bytes = b"", missing: int | None = None) -> list[str]:
        """Return the lines of the output; see :meth:`ask`."""
        return self.ask(*args, data=data, missing=missing).split("\n")[:-1]

    @property
    def is_elsewhere(self) -> bool:
        """Return whether a setting moves the work tree away from the folder that has ``.git``."""
        folder = Path(os.path.realpath(self.folder))
        holder = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
        return holder != self.top

    def hook_files(self) -> list[Path]:
        """Return the hooks that come with the repository, and not from a folder of the user's."""
        folder = Path(self._hooks)
        if not (folder.is_relative_to(self._common) or folder.is_relative_to(self.top)):
            return []
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return []
        paths = [folder / name for name in names if not name.endswith(".sample")]
        return [path for path in paths if path.is_file() and os.access(path, os.X_OK)]


def lines_of(words: Sequence[str]) -> bytes:
    """Return words as lines, for commands that read names from their input."""
    return "".join(f"{word}\n" for word in words).encode("utf-8", "surrogateescape")
