"""Find the protected files that a ``git`` command may write, by asking git about the commits that it works with.

A command that merges, picks or checks out commits leaves the protected files alone if these are the same in all of
the commits. A command that overwrites files with those of a commit, or of the index, leaves them alone if these are
the same in the work tree, too. Settings, hooks and filters of the repository are not used.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.paths import (
    PROTECTED_ANYWHERE,
    PROTECTED_FILES,
    PathScope,
    expand_home,
    is_protected,
    real_path,
)
from jumpseat.agent.permissions.rules import ResolvedPath
from jumpseat.agent.permissions.targets import GitWrites, may_hold_obeyed
from jumpseat.agent.shell.git_calls import GitChange, git_change, only_looks
from jumpseat.agent.shell.syntax import ShellLine
from jumpseat.sandbox.obeyed_files import INSIDE, NAMES, SUFFIXES
from jumpseat.system.git import GitError
from jumpseat.system.git_reading import INDEX, NoRepositoryError, Question, Repository, lines_of, usual_top
from jumpseat.system.regular_files import exists, read_regular

MAX_FOLDERS: Final = 4
MAX_COMMITS: Final = 1000
"""Limits of the folders and of the picked commits that are looked at for one line."""

MAX_FILE_BYTES: Final = 1024 * 1024

_EMPTY_TREES: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_LINK, _REPOSITORY = "120000", "160000"
_SUSPECT: Final = frozenset({
    *NAMES, *PROTECTED_ANYWHERE, *PROTECTED_FILES, *(name for names in INSIDE.values() for name in names),
    *(names[-1] for names in INSIDE), "bin", "library",
})  # fmt: skip


class UnknownChangeError(Exception):
    """The files that a command writes cannot be known before it runs."""


def git_writes(line: ShellLine, bases: Sequence[Path], path_scope: PathScope) -> GitWrites:
    """Find the protected files that the ``git`` commands of a line may write in any of the folders ``bases``."""
    found = GitWrites()
    folders = list(dict.fromkeys(map(real_path, bases)))
    changes = [change for words in line.possible_commands if (change := git_change(words)) is not None]
    if not changes:
        return found
    found.any = True
    everywhere = [word for words in line.possible_commands for word in words]
    # Another repository may be meant, or commits and the index may be others by then.
    unclear = any(word is None or word.startswith("GIT_") for word in everywhere) or len(folders) > MAX_FOLDERS
    commands = sum(
        words[0] is not None and words[0].rpartition("/")[2] == "git" and not only_looks(words)
        for words in dict.fromkeys(line.possible_commands)
    )
    for base in folders[:MAX_FOLDERS]:
        for change in changes:
            try:
                repository = _Writes(base.joinpath(*map(expand_home, change.folders)), path_scope, change)
                if unclear or commands > 1:
                    raise UnknownChangeError
                found.files |= dict.fromkeys(repository.written_by(change))
            except NoRepositoryError:
                continue
            except (UnknownChangeError, GitError, UnicodeError):
                found.known = False
    return found


class _Writes(Repository):
    """The changes that ``change`` and what it means may make to the work tree of a repository."""

    def __init__(self, folder: Path, path_scope: PathScope, change: GitChange) -> None:
        top = usual_top(folder, path_scope.environ())
        if top is not None and change.kind == "unknown":
            raise UnknownChangeError
        words = change.revisions or _REFERENCES[change.kind] if change.kind in _REFERENCES else ()
        files = [word for word in words if exists(folder / word)]
        # Most words of the command that can be names of commits are, and commits can be compared by their names.
        likely = {*change.words, "@{-1}", *_REFERENCES.get(change.kind, ())}
        names = [word for word in words if word in likely and word not in files and _NAME.fullmatch(word)]
        others = [word for word in words if word not in names]
        foreseen = _questions(change, names, files)
        if others:
            foreseen.append((_RESOLVE, lines_of(_words(others))))
        super().__init__(folder, path_scope.environ(), path_scope.untrusted(), foreseen=foreseen, top=top)
        if top is None and self.is_elsewhere:
            raise UnknownChangeError
        self._scope = path_scope
        self._resolved: dict[str, str | None] = {}
        if others:
            self._resolve(others)
        known = [name for name in names if self.succeeds(*_DIFF, "HEAD", name, "--")]
        if known or self.succeeds(*_STAGED, "HEAD"):
            self._resolved |= {name: name for name in ("HEAD", *known)}
        # Folders below the root that are protected for other reasons than their names.
        places = [place for place in path_scope.guarded if place.is_relative_to(self.top)]
        self._guarded = [str(place.relative_to(self.top)) for place in places]

    def written_by(self, change: GitChange) -> list[str]:
        """Return the protected files that a command may write or remove, relative to the root.

        Raises:
            UnknownChangeError: they cannot be known.
            GitError: git failed.
        """
        match change.kind:
            case "moves":
                return self._moved(change)
            case "picks":
                commits = self._single_commits(change)
                return self._between(self._resolve(change.revisions)) + self._picked(commits)
            case "unstashes":
                return self._unstashed(change)
            case "restores":
                names = self._between(self._resolve(change.revisions)) + self._overwritten()
                names += self._untracked() if change.untracked else []
                return self._limited(names, change.paths)
            case "continues":
                return self._continued(change)
            case "removes":
                return self._limited(self._protected(self._index()), change.paths)
            case "cleans":
                return self._limited(self._untracked(), change.paths)
            case "alias":
                return self._aliased(change)
            case "unknown":
                raise UnknownChangeError

    # --- kinds of changes ---------------------------------------------------------------------------------------

    def _moved(self, change: GitChange) -> list[str]:
        commits = self._resolve(change.revisions)
        paths = [path for path in change.paths or () if path != "-" and path not in commits]
        if change.subcommand in ("checkout", "switch"):
            missing = [path for path in paths or change.revisions if path not in commits]
            commits |= self._remote_branches(missing)
            names = self._between(commits)
            return names + self._limited(self._overwritten(), paths) if paths else names
        if not commits:
            commits = self._resolve(["@{upstream}"])
        names = self._between(commits)
        # A side that moved a file to a protected place since then takes the changes of the other side there.
        for commit in commits.values():
            if self.succeeds(*_SINCE_BASE, "HEAD", commit, "--"):
                names += self._changed(self.ask(*_SINCE_BASE, "HEAD", commit, "--"))
                continue
            # There are several, or there is none.
            bases = self.lines("merge-base", "--all", "HEAD", commit, missing=1)
            names += self._between(dict(enumerate(bases)))
        if change.subcommand == "rebase":
            tips = ["HEAD", *commits.values()]
            sides = [(tips[0], tips[1])] if len(tips) == 2 else [(a, b) for a in tips for b in tips if a != b]
            for side, other in sides:
                names += self._picked(self._commits(side, f"^{other}"))
        return names

    def _unstashed(self, change: GitChange) -> list[str]:
        numbers = [f"stash@{{{word}}}" for word in change.revisions if word.isdigit()]
        given = self._resolve([*change.revisions, *numbers])
        # The third parent has the untracked files.
        commits = list(given) or ["refs/stash"]
        untracked = self._resolve([f"{commit}^3" for commit in commits] if given else [_UNTRACKED])
        found = self._resolve([f"{commit}{parent}" for commit in commits for parent in ("", "^1", "^2")])
        return self._between(found) + (self._between(untracked, other=self._empty_tree()) if untracked else [])

    def _continued(self, change: GitChange) -> list[str]:
        if exists(self.git_folder / "sequencer"):
            raise UnknownChangeError
        names = self._overwritten()
        for folder in ("rebase-merge", "rebase-apply"):
            if exists(self.git_folder / folder):
                commit = read_regular(self.git_folder / folder / "orig-head", 100).decode().strip()
                commits = self._resolve([commit])
                if not commits:
                    raise UnknownChangeError
                names += self._between(commits) + self._picked(self._commits(*commits.values(), "^HEAD"))
        heads = ("CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD")
        return names + self._between(self._resolve(heads))

    def _aliased(self, change: GitChange) -> list[str]:
        value = self.ask("config", "--get", f"alias.{change.subcommand}", missing=1).strip()
        if value.startswith("!") or not value:
            # A program, which an approval of the whole command names.
            return []
        try:
            words = shlex.split(value)
        except ValueError:
            raise UnknownChangeError from None
        meaning = git_change(("git", *words, *change.words[1:]))
        if meaning is not None and meaning.kind == "alias":
            raise UnknownChangeError
        return [] if meaning is None else self.written_by(meaning)

    # --- comparisons --------------------------------------------------------------------------------------------

    def _between(self, commits: dict[str, str] | dict[int, str], other: str | None = None) -> list[str]:
        """Return the protected files that differ between ``other``, by default HEAD, and any of ``commits``."""
        base = other or self._head()
        diffs = [(*_DIFF, base, commit, "--") for commit in dict.fromkeys(commits.values()) if commit != base]
        self.foresee(*((diff, b"") for diff in diffs))
        return [name for diff in diffs for name in self._changed(self.ask(*diff))]

    def _head(self) -> str:
        return self._resolve(["HEAD"]).get("HEAD") or self._empty_tree()

    def _picked(self, commits: Sequence[str]) -> list[str]:
        """Return the protected files that any of ``commits`` changes."""
        if len(commits) > MAX_COMMITS:
            raise UnknownChangeError
        options = ("-r", "-m", "--root", "-z", "--no-renames", "--no-commit-id", "--stdin")
        return self._changed(self.ask("diff-tree", *options, data=lines_of(commits))) if commits else []

    def _single_commits(self, change: GitChange) -> list[str]:
        """Return the commits that a command picks; those of a range are listed."""
        operands = [word for word in change.words[1:] if not word.startswith("-")]
        if any(".." in word or word.startswith("^") for word in operands):
            ranges = [word for word in operands if ".." in word or self._resolve([word.lstrip("^")])]
            return self._commits(*ranges)
        found = self._resolve(change.revisions)
        return self._commits("--no-walk", *found.values()) if found else []

    def _overwritten(self) -> list[str]:
        """Return the protected files that are not the same in the work tree, in the index and in HEAD."""
        head = "HEAD" if self._resolve(["HEAD"]) else self._empty_tree()
        names = self._changed(self.ask(*_STAGED, head))
        index = self._index()
        return names + [name for name in self._protected(index) if not self._is_here(name, *index[name])]

    def _is_here(self, name: str, mode: str, digest: str) -> bool:
        """Return whether a file of the index is the same in the work tree."""
        path = self.top / name
        try:
            if mode == _LINK:
                data = str(path.readlink()).encode("utf-8", "surrogateescape")
            else:
                data = b"" if path.is_symlink() else read_regular(path, MAX_FILE_BYTES)
        except (OSError, ValueError):
            return False
        hashed = hashlib.sha1 if len(digest) == 40 else hashlib.sha256
        # Settings may convert the ends of lines.
        forms = (data, data.replace(b"\r\n", b"\n"))
        return any(hashed(b"blob %d\0" % len(form) + form).hexdigest() == digest for form in forms)

    def _changed(self, output: str) -> list[str]:
        """Return the protected files in the raw output of ``git diff-tree -z``."""
        parts = iter(output.split("\0"))
        modes: dict[str, str] = {}
        for head in parts:
            if head.startswith(":"):
                modes[next(parts, "")] = head[1:14]
        if any(_REPOSITORY in both for both in modes.values()) and self._updates_submodules():
            raise UnknownChangeError
        links = [name for name, both in modes.items() if _LINK in both and may_hold_obeyed(name)]
        return self._protected(modes) + links

    def _protected(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self._may_be_protected(name) and self._is_protected(name)]

    def _may_be_protected(self, name: str) -> bool:
        folded = name.casefold()
        return (
            folded.startswith(".")
            or "/." in folded
            or folded.endswith(SUFFIXES)
            or not _SUSPECT.isdisjoint(folded.split("/"))
            or any(name == place or name.startswith(f"{place}/") for place in self._guarded)
        )

    def _is_protected(self, name: str) -> bool:
        path = str(self.top / name)
        return is_protected(ResolvedPath(path, path), self._scope)

    def _limited(self, names: Iterable[str], paths: Sequence[str] | None) -> list[str]:
        """Return the names that are below one of ``paths``, which are relative to the folder of the command."""
        places: list[str] = []
        for path in paths or ():
            resolved = self._scope.resolve(path, self.folder)
            if resolved is None or path.startswith(":") or any(sign in path for sign in "*?[\\"):
                return list(names)
            if not Path(resolved.given).is_relative_to(self.top):
                return list(names)
            places.append(str(Path(resolved.given).relative_to(self.top)).casefold())
        return [
            name
            for name in names
            if not places or any(place == "." or f"{name}/".casefold().startswith(f"{place}/") for place in places)
        ]

    # --- questions to git ---------------------------------------------------------------------------------------

    def _resolve(self, words: Iterable[str]) -> dict[str, str]:
        """Return the commits and trees among ``words``, by word."""
        wanted = list(dict.fromkeys(words))
        asked = [word for word in _words(wanted) if word not in self._resolved]
        answers = self.lines(*_RESOLVE, data=lines_of(asked)) if asked else []
        if len(answers) != len(asked):
            raise UnknownChangeError
        for word, answer in zip(asked, answers, strict=True):
            digest, kind, *_ = (*answer.rsplit(" ", 2), "")
            self._resolved[word] = digest if kind in _OBJECTS else None
        return {word: digest for word in wanted if (digest := self._resolved.get(word)) is not None}

    def _remote_branches(self, names: Sequence[str]) -> dict[str, str]:
        """Return the branches that ``git checkout NAME`` may create ``NAME`` from, by their names."""
        lines = self.lines(*_remotes(names)) if names else []
        return {line.partition(" ")[2]: line.partition(" ")[0] for line in lines}

    def _commits(self, *words: str) -> list[str]:
        return self.lines(*_listing(*words))

    def _index(self) -> dict[str, tuple[str, str]]:
        """Return the mode and the digest of each file in the index."""
        output = self.ask(*INDEX)
        entries = (entry.partition("\t") for entry in output.split("\0") if entry)
        return {name: (head.split(" ")[0], head.split(" ")[1]) for head, _, name in entries}

    def _untracked(self) -> list[str]:
        return self._protected(self.ask(*_OTHERS).split("\0"))

    def _updates_submodules(self) -> bool:
        return self.ask("config", "--type=bool", "--get", "submodule.recurse", missing=1).strip() == "true"

    def _empty_tree(self) -> str:
        return _EMPTY_TREES[64 if self.ask("rev-parse", "--show-object-format").strip() == "sha256" else 40]


def _listing(*words: str) -> tuple[str, ...]:
    return "rev-list", f"--max-count={MAX_COMMITS + 1}", *words, "--"


def _words(words: Iterable[str]) -> list[str]:
    """Return the words that may name objects, and HEAD before them."""
    return [word for word in dict.fromkeys(("HEAD", *words)) if word and "\n" not in word]


def _remotes(names: Iterable[str]) -> tuple[str, ...]:
    return "for-each-ref", "--format=%(objectname) %(refname)", *(f"refs/remotes/*/{name}" for name in names)


def _questions(change: GitChange, names: Sequence[str], files: Sequence[str]) -> list[Question]:
    """Return the questions that are worth asking at once; ``names`` are likely to name commits."""
    asked: list[tuple[str, ...]] = [(*_DIFF, "HEAD", name, "--") for name in names]
    if change.kind == "restores" or (change.kind == "moves" and (files or "--" in change.words)):
        asked += [(*_STAGED, "HEAD"), INDEX]
    match change.kind:
        case "moves" if change.subcommand in ("checkout", "switch"):
            asked += [_remotes(files)] if files else []
        case "moves":
            asked += [(*_SINCE_BASE, "HEAD", name, "--") for name in names]
            if change.subcommand == "rebase" and len(names) == 1:
                asked.append(_listing("HEAD", f"^{names[0]}"))
        case "picks" if names:
            asked.append(_listing("--no-walk", *names))
        case "removes":
            asked.append(INDEX)
        case "cleans":
            asked.append(_OTHERS)
        case "restores" if change.untracked:
            asked.append(_OTHERS)
        case _:
            pass
    found: list[Question] = [(question, b"") for question in asked]
    if change.kind == "unstashes" and not change.revisions:
        found.append((_RESOLVE, lines_of([_UNTRACKED])))
    return found


_OBJECTS: Final = frozenset({"commit", "tag", "tree"})
_RESOLVE: Final = ("cat-file", "--batch-check")
_DIFF: Final = ("diff-tree", "-r", "-z", "--no-renames")
_SINCE_BASE: Final = (*_DIFF, "--merge-base")
_STAGED: Final = ("diff-index", "--cached", "-z", "--no-renames")
_OTHERS: Final = ("ls-files", "-o", "-z", "--full-name", ":/")
_NAME: Final = re.compile(r"[\w@](?:[\w/@{}~-]|\^(?=\d|$)|\.(?!\.))*", re.ASCII)
"""Words that mean the same to all commands of git: no ranges, files or options."""
_REFERENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "moves": (),
    "picks": (),
    "restores": (),
    "unstashes": ("refs/stash", "refs/stash^1", "refs/stash^2"),
    "continues": ("CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD"),
}
"""The kinds of changes that commits decide about, and those that are needed if the words name none."""
_UNTRACKED: Final = "refs/stash^3"
