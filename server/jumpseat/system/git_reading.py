"""Ask git about commits and settings, in a thread. None of these questions makes git run another program.

Only plumbing commands are used, which obey no aliases, filters, hooks and pagers of a repository.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

from jumpseat.system.git import ENVIRONMENT, MAX_OUTPUT_BYTES, NO_FETCHING, SETTINGS, GitError
from jumpseat.system.programs import OwnPrograms
from jumpseat.system.regular_files import read_whole

TIMEOUT_S: Final = 30.0
"""A guard against hanging: after it, a person is asked about the call."""

Question: TypeAlias = tuple[tuple[str, ...], bytes]
"""The arguments of git, and its input."""

INDEX: Final = ("ls-files", "-s", "-z", "--full-name", ":/")
"""Asks for the mode, the digest and the name of each file in the index."""

MAX_SETTINGS_BYTES: Final = 256 * 1024

_LAYOUT: Final = ("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--git-path", "hooks")
_NO_REPOSITORY: Final = (b"not a git repository", b"cannot use bare repository")
_AMBIGUOUS: Final = re.compile(rb"warning: refname .* is ambiguous")
_WARNS: Final = ("-c", "core.warnAmbiguousRefs=true")

_ELSEWHERE: Final = (
    "GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_CEILING_DIRECTORIES",
)  # fmt: skip
"""Variables by which git looks for repositories in other places."""
_OF_WORK_TREES: Final = (b"worktree", b"bare")
"""Parts of the names of settings that decide about the work tree. Names are never escaped."""
_HEAD: Final = re.compile(rb"ref: refs/\S+\n|[0-9a-f]{40}\n|[0-9a-f]{64}\n")


class NoRepositoryError(GitError):
    """The folder is in no repository that git would use."""


class _Process(subprocess.Popen[bytes]):
    """A process that ends with its output, so that only the output is waited for with a time limit."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end without a limit; with one, Python would sleep and look again."""
        return super().wait()


class Repository:
    """The repository that git uses in ``folder``. ``top`` is the root of the work tree.

    git is found in ``PATH`` of ``environ``, in none of the folders that are ``untrusted``. Questions that are
    ``foreseen`` are asked at the same time as those about the repository. If ``top`` is known from
    :func:`usual_top`, git is not asked about it.

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
        top: Path | None = None,
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
        self.foresee(*([] if top else [(_LAYOUT, b"")]), *foreseen)
        self.top, self.git_folder = (top, top / ".git") if top else (Path(path) for path in self._layout()[:2])

    def _layout(self) -> list[str]:
        """Return the paths of the work tree, of the git folder, of the one with the settings, and of the hooks."""
        paths = self.lines(*_LAYOUT)
        if len(paths) != 4:
            raise GitError("a path contains a line feed")
        return paths

    def ask(self, *args: str, data: bytes = b"", missing: int | None = None) -> str:
        """Return what ``git`` writes; ``missing`` is the exit code that says that there is nothing to return.

        Raises:
            NoRepositoryError: the folder is in no repository, or does not exist.
            GitError: git failed, took too long or wrote too much.
        """
        question = args, data
        self.foresee(question)
        exit_code, output, errors = self._answers[question]
        if any(text in errors for text in _NO_REPOSITORY):
            raise NoRepositoryError
        if _AMBIGUOUS.search(errors):
            # Commands that prefer branches would use another commit.
            raise GitError("the name of a branch is also that of something else")
        if exit_code not in (0, missing) or len(output) > MAX_OUTPUT_BYTES:
            raise GitError(errors.decode("utf-8", "replace").strip())
        return output.decode("utf-8", "surrogateescape")

    def succeeds(self, *args: str) -> bool:
        """Return whether a question was foreseen that has an answer."""
        return self._answers.get((args, b""), (1,))[0] == 0

    def foresee(self, *questions: Question) -> None:
        """Ask several questions at the same time, which takes hardly longer than one; :meth:`ask` has the answers.

        Raises:
            NoRepositoryError: the folder does not exist.
            GitError: git cannot be run, or took too long.
        """
        new = [question for question in dict.fromkeys(questions) if question not in self._answers]
        if not new:
            return
        if self._git is None or not self.folder.is_dir():
            raise NoRepositoryError
        settings = [*_WARNS, *(word for setting in SETTINGS for word in ("-c", setting))]
        with ExitStack() as stack:
            try:
                running: dict[Question, _Process] = {}
                # Those with an input begin when they have it.
                for question in sorted(new, key=lambda question: not question[1]):
                    process = _Process(
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
        common, folder = (Path(os.path.realpath(self.folder / path)) for path in self._layout()[2:])
        if not (folder.is_relative_to(common) or folder.is_relative_to(self.top)):
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


def usual_top(folder: Path, environ: Mapping[str, str] | None) -> Path | None:
    """Return the root of the work tree that git uses in ``folder``; ``None`` if only git knows.

    This saves starting git for repositories of the usual form: a folder ``.git`` whose settings do not name another
    work tree.
    """
    variables = os.environ if environ is None else environ
    start = Path(os.path.realpath(folder))
    top = next((above for above in (start, *start.parents) if os.path.lexists(above / ".git")), None)
    if top is None or any(name in variables for name in _ELSEWHERE):
        return None
    dot_git = top / ".git"
    try:
        status = os.lstat(dot_git)
        # Git looks for repositories on one file system only, and goes on above a folder that is none.
        usual = (
            stat.S_ISDIR(status.st_mode)
            and status.st_dev == os.stat(start).st_dev
            and all(os.access(dot_git / name, os.X_OK) for name in ("objects", "refs"))
            and not os.path.lexists(dot_git / "commondir")
            and _HEAD.fullmatch(read_whole(dot_git / "HEAD", MAX_SETTINGS_BYTES)) is not None
            and not any(word in _settings(dot_git) for word in _OF_WORK_TREES)
        )
    except (OSError, ValueError):
        return None
    return top if usual else None


def _settings(dot_git: Path) -> bytes:
    """Return the settings of a repository in lower case, without the one that each has."""
    return read_whole(dot_git / "config", MAX_SETTINGS_BYTES).lower().replace(b"\tbare = false\n", b"")
