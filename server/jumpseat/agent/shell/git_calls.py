"""Read the words of a ``git`` command: which commits it takes files from, and how it writes them to the work tree.

Pure. A command that is not understood changes anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.shell.commands import program_name
from jumpseat.agent.shell.effects import CommandWords, path_forms
from jumpseat.agent.shell.options import may_be_option
from jumpseat.agent.shell.programs import GIT_SUBCOMMANDS

Kind: TypeAlias = Literal[
    # Merges commits, or goes from one to another.
    "moves",
    # Applies the changes of single commits.
    "picks",
    # The same for a stash.
    "unstashes",
    # Overwrites files with those of a commit or of the index.
    "restores",
    # Goes on with an interrupted command, or undoes it.
    "continues",
    # Removes tracked or untracked files.
    "removes",
    "cleans",
    # Runs the subcommand that the settings define under this name.
    "alias",
    # Writes files that cannot be known before.
    "unknown",
]


class GitChange(Struct, frozen=True):
    """A change of a work tree. ``folders`` are the values of ``-C``, one relative to the other.

    ``revisions`` are words that may name commits. ``paths`` are those that the change is limited to; ``None`` for
    no limit. With ``untracked``, files that git does not track are changed, too. ``words`` are those of the command
    from its subcommand on.
    """

    kind: Kind
    folders: tuple[str, ...] = ()
    subcommand: str = ""
    revisions: tuple[str, ...] = ()
    paths: tuple[str, ...] | None = None
    untracked: bool = False
    words: tuple[str, ...] = ()


UNKNOWN: Final = GitChange("unknown")


def git_change(words: CommandWords) -> GitChange | None:
    """Return the change that a command may make to a work tree; ``None`` if it makes none, or is not ``git``."""
    if words[0] is None or program_name([words[0]]) != "git":
        return None
    folders: list[str] = []
    rest = list(words[1:])
    while rest and (option := rest[0]) is not None and option.startswith("-"):
        rest.pop(0)
        if option == "-C" and rest and (folder := rest.pop(0)) is not None:
            folders.append(folder or ".")
        elif option not in _PLAIN_OPTIONS:
            return None if _leaves_files(words) else UNKNOWN
    change = _read(tuple(rest))
    return None if change is None else replace(change, folders=tuple(folders))


def git_folders(words: CommandWords) -> tuple[str, ...] | None:
    """Return the values of ``-C`` in front of a subcommand, after ``.``; ``None`` if it may use another repository.

    The result is empty if the command is not ``git``.
    """
    if words[0] is None or program_name([words[0]]) != "git":
        return ()
    folders = ["."]
    rest = list(words[1:])
    while rest and (option := rest.pop(0)) is not None and option.startswith("-"):
        if option == "-C" and rest and (folder := rest.pop(0)) is not None:
            folders.append(folder or ".")
        elif option == "-c" and rest:
            rest.pop(0)
        elif option not in _PLAIN_OPTIONS:
            return None
    return tuple(folders)


def only_looks(words: CommandWords) -> bool:
    """Return whether a ``git`` command changes neither commits nor the index that a later one would use."""
    known = [word for word in words if word is not None]
    subcommand = next((word for word in known[1:] if not word.startswith("-")), "")
    return git_change(words) is None and subcommand in _MOVES_NOTHING


def _leaves_files(words: CommandWords) -> bool:
    """Return whether a command changes no file, whatever repository and settings its options name."""
    named = [word for word in words if word is not None]
    return (
        len(named) == len(words)
        and not any(map(_DEFINES.search, named))
        and _CHANGING.isdisjoint(named)
        and not GIT_SUBCOMMANDS.isdisjoint(named)
    )


def _read(words: CommandWords) -> GitChange | None:
    """Read the words of a command from its subcommand on."""
    if not words:
        return None
    subcommand, *rest = words
    if subcommand is None:
        return UNKNOWN
    if subcommand not in GIT_SUBCOMMANDS:
        known = tuple(word for word in words if word is not None)
        return GitChange("alias" if len(known) == len(words) else "unknown", subcommand=subcommand, words=known)
    if subcommand not in _CHANGING or rest == ["-h"] or rest[:1] == ["--help"]:
        return None
    if any(word is None or "subtree" in word for word in rest):
        # Merging a subtree moves files to other folders.
        return UNKNOWN
    texts = [word for word in rest if word is not None]
    if _has_no_effect(subcommand, texts):
        return None
    return _change(subcommand, texts)


def _change(subcommand: str, texts: list[str]) -> GitChange:
    end = texts.index("--") if "--" in texts else len(texts)
    front, behind = texts[:end], texts[end + 1 :]
    if subcommand in ("checkout", "switch") and front[:1] and front[0] in _CREATES:
        # The name of the branch, of which it does not matter where it was.
        del front[:2]
    revisions = tuple(dict.fromkeys(_revisions(front[1:] if subcommand == "stash" else front)))
    operands = tuple(text for text in front if text == "-" or not text.startswith("-"))
    listed = _has(front, "--pathspec-from-file")

    def change(kind: Kind, paths: Sequence[str] | None = None, *, untracked: bool = False) -> GitChange:
        limited = None if not paths or listed else tuple(paths)
        return GitChange(kind, (), subcommand, revisions, limited, untracked, (subcommand, *texts))

    match subcommand:
        case "merge" | "rebase" | "cherry-pick" | "revert" if texts in _CONTINUES:
            return change("continues")
        case "switch" | "checkout" if _has(
            front, "-f", "--force", "-m", "--merge", "--ours", "--theirs", "-p", "--patch", "--discard-changes"
        ):
            return change("restores")
        case "checkout":
            # An operand that names no commit is a path.
            return change("restores", behind) if behind else change("moves", operands)
        case "switch" | "merge" | "rebase":
            return change("moves")
        case "cherry-pick" | "revert":
            return change("picks")
        case "stash":
            if texts[:1] in (["pop"], ["apply"], ["branch"]):
                return change("unstashes")
            untracked = _has(front, "-u", "-a", "--include-untracked", "--all")
            return change("restores", behind, untracked=untracked)
        case "restore":
            return change("restores", [*operands, *behind])
        case "reset":
            return change("restores")
        case "rm":
            return change("removes", [*operands, *behind])
        case "clean":
            return change("cleans", behind)
        case _:
            return change("unknown")


def _has_no_effect(subcommand: str, texts: list[str]) -> bool:
    """Return whether the options of a subcommand leave the files of the work tree as they are."""
    front = texts[: texts.index("--")] if "--" in texts else texts
    match subcommand:
        case "checkout" | "switch":
            # A new branch that begins here.
            return len(front) == 2 and front[0] in ("-b", "-c", "--create") and front == texts
        case "restore":
            return any(_STAGED.fullmatch(text) for text in front) and not _has(front, "-W", "--worktree")
        case "reset":
            return not _has(front, "--hard", "--merge", "--keep")
        case "rm":
            return "--cached" in front
        case "clean":
            return any(text == "--dry-run" or _DRY_RUN.fullmatch(text) for text in front)
        case "apply":
            return texts[:1] in (["--check"], ["--stat"], ["--numstat"], ["--summary"]) and "--apply" not in texts
        case "read-tree":
            return not _has(front, "-u")
        case "rebase" | "cherry-pick" | "revert" | "merge":
            return texts in (["--quit"], ["--edit-todo"], ["--show-current-patch"])
        case _:
            return (texts[:1] or [""])[0] in _HARMLESS_WORDS.get(subcommand, frozenset())


def _revisions(texts: Sequence[str]) -> Iterator[str]:
    """Yield the words, and the values of options, that may name commits."""
    for text in texts:
        if text == "-":
            yield "@{-1}"
        elif text.startswith("-"):
            yield from path_forms(text)[1:]
        else:
            yield from filter(None, re.split(r"\.{2,3}", text.lstrip("^")))


def _has(texts: Sequence[str], *options: str) -> bool:
    return any(may_be_option(text, options) for text in texts if text.startswith("-"))


_PLAIN_OPTIONS: Final = frozenset({
    "-p", "-P", "--paginate", "--no-pager", "--no-optional-locks", "--literal-pathspecs", "--no-lazy-fetch",
})  # fmt: skip

_CHANGING: Final = frozenset({
    "am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean", "clone", "filter-branch",
    "merge", "pull", "read-tree", "rebase", "reset", "restore", "revert", "rm", "sparse-checkout", "stash",
    "submodule", "switch", "worktree",
})  # fmt: skip
"""Subcommands that write to a work tree."""

_CREATES: Final = frozenset({"-b", "-B", "-c", "-C", "--create", "--force-create"})
_CONTINUES: Final = (["--abort"], ["--continue"], ["--skip"])
_STAGED: Final = re.compile(r"--staged|-[pq]*S[pqS]*")
_DRY_RUN: Final = re.compile(r"-[dfiqxX]*n[dfinqxX]*")
_DEFINES: Final = re.compile(r"alias\.|--config-env|--exec-path", re.IGNORECASE)

_HARMLESS_WORDS: Final = {
    "bisect": frozenset({"help", "log", "terms", "view", "visualize"}),
    "sparse-checkout": frozenset({"check-rules", "list"}),
    "stash": frozenset({"clear", "create", "drop", "list", "show", "store"}),
    "submodule": frozenset({"", "init", "status", "summary"}),
    "worktree": frozenset({"", "list", "lock", "prune", "unlock"}),
}

_MOVES_NOTHING: Final = frozenset({
    # None of these changes what a branch, HEAD or the index has of an existing file.
    "annotate", "blame", "cat-file", "check-attr", "check-ignore", "cherry", "count-objects", "describe", "diff",
    "diff-files", "diff-index", "diff-tree", "for-each-ref", "fsck", "grep", "help", "log", "ls-files", "ls-remote",
    "ls-tree", "merge-base", "name-rev", "push", "range-diff", "rev-list", "rev-parse", "shortlog", "show",
    "show-branch", "show-ref", "status", "var", "verify-commit", "verify-tag", "version", "whatchanged",
})  # fmt: skip
