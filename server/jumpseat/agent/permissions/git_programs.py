"""Find what a repository makes git run: programs that its settings name, and hooks.

Git runs them for a user who may only have unpacked the folder. So outside of a sandbox, in a folder that the user
does not trust, a person is asked before git is run in a repository that has any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.paths import PathScope, expand_home, real_path
from jumpseat.agent.permissions.targets import GitPrograms
from jumpseat.agent.shell.git_calls import git_folders
from jumpseat.agent.shell.syntax import ShellLine
from jumpseat.sandbox.git_folders import HARMLESS, HELPER
from jumpseat.system.git import GitError
from jumpseat.system.git_reading import INDEX, NoRepositoryError, Repository
from jumpseat.system.regular_files import exists, read_regular

MAX_FOLDERS: Final = 8
"""Limit of the repositories that are looked at for one line, submodules included."""

MAX_VALUE_CHARS: Final = 60
MAX_HOOK_BYTES: Final = 1024 * 1024

_SETTINGS: Final = ("config", "--list", "-z", "--show-scope")
_QUESTIONS: Final = ((_SETTINGS, b""), (INDEX, b""))

ANOTHER: Final = "another repository, which options or variables name"
UNREADABLE: Final = "settings that cannot be read"


def git_programs(line: ShellLine, bases: Sequence[Path], path_scope: PathScope) -> GitPrograms:
    """Find what git may run in the folders in which a line calls it, as far as these are not trusted."""
    found: dict[str, str] = {}
    waiting: list[Path] = []
    for words in line.possible_commands:
        folders = git_folders(words)
        if folders is None:
            found[ANOTHER] = repr(words)
        elif folders:
            waiting += [base.joinpath(*map(expand_home, folders)) for base in bases]
    if any(word is not None and word.startswith("GIT_") for words in line.possible_commands for word in words):
        found[ANOTHER] = repr(line.possible_commands)
    inner: set[Path] = set()
    seen: set[Path] = set()
    tops: set[Path] = set()
    while waiting:
        folder = real_path(waiting.pop(0))
        if folder in seen:
            continue
        seen.add(folder)
        try:
            repository = Repository(folder, path_scope.environ(), path_scope.untrusted(), foreseen=_QUESTIONS)
            if path_scope.trusts(repository.top):
                continue
            if len(seen) > MAX_FOLDERS:
                raise GitError("too many repositories")
            tops.add(repository.top)
            found |= _programs(repository, is_inner=folder in inner)
            submodules = [real_path(path) for path in _submodules(repository)]
            inner.update(submodules)
            waiting += submodules
        except NoRepositoryError:
            continue
        except (GitError, UnicodeError) as error:
            found[UNREADABLE] = str(error)
            break
    if not found:
        return GitPrograms()
    mark = sha256(repr((sorted(map(str, tops)), sorted(found.items()))).encode("utf-8", "surrogateescape"))
    return GitPrograms(tuple(found), f"git {mark.hexdigest()}")


def _programs(repository: Repository, *, is_inner: bool) -> dict[str, str]:
    """Return the settings and hooks of a repository, as people see them, with all that decides what they run."""
    found: dict[str, str] = {}
    for name, value in _own_settings(repository):
        # Switched off where a command calls git, but git may not pass that on.
        is_off = name == "core.fsmonitor" and not is_inner
        if not is_off and not _only_describes(name, value):
            shown = value if len(value) <= MAX_VALUE_CHARS else f"{value[:MAX_VALUE_CHARS]}…"
            found[f"{name}={shown}"] = value
    if repository.is_elsewhere:
        found[f"core.worktree={repository.top}"] = ""
    for hook in repository.hook_files():
        try:
            found[f"hook {hook.name}"] = sha256(read_regular(hook, MAX_HOOK_BYTES)).hexdigest()
        except (OSError, ValueError):
            found[f"hook {hook.name}"] = ""
    return found


def _own_settings(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield the settings that come with the repository, and not from the user or the system."""
    parts = iter(repository.ask(*_SETTINGS).split("\0"))
    for scope in parts:
        name, _, value = next(parts, "").partition("\n")
        if scope in ("local", "worktree"):
            yield name, value


def _only_describes(name: str, value: str) -> bool:
    """Return whether a setting names no program."""
    if _ADDRESS.fullmatch(name) and re.match(HELPER, value):
        return False
    if name == "core.fsmonitor":
        return value.casefold() in _BOOLEANS
    if name.startswith("submodule.") and name.endswith(".update"):
        return not value.startswith("!")
    return _STANDARD.get(name) == value or (
        _DESCRIBING.fullmatch(name) is not None and _EXCEPTIONS.fullmatch(name) is None
    )


def _submodules(repository: Repository) -> list[Path]:
    """Return the submodules that are there: git looks into them with their own settings."""
    entries = repository.ask(*INDEX).split("\0")
    names = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
    return [repository.top / name for name in names if exists(repository.top / name / ".git")]


_BOOLEANS: Final = frozenset({"", "true", "false", "yes", "no", "on", "off", "1", "0"})

_STANDARD: Final = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}

_DESCRIBING: Final = re.compile(
    HARMLESS
    + r"|(?:advice|apply|author|blame|branch|checkout|clean|color|column|commit|committer|commitgraph|feature"
    r"|fetch|fsck|gc|gitflow|github|gitlab|grep|gui|http|i18n|index|log|maintenance|notes|pull|push|rebase|repack"
    r"|rerere|revert|safe|showbranch|sparse|splitindex|stash|status|tag|transfer|user|versionsort|worktree)\..*"
    r"|(?:extensions|format|pack|diff|merge)\.\w+|diff\..*\.(?:binary|cachetextconv|xfuncname)"
    r"|core\.(?:attributesfile|bigfilethreshold|checkstat|commentchar|commitgraph|compression|deltabasecachelimit"
    r"|excludesfile|fscache|fsmonitorhookversion|fsync\w*|hidedotfiles|longpaths|loosecompression|maxtreedepth"
    r"|multipackindex|packedgit\w+|preloadindex|protecthfs|protectntfs|safecrlf|sparsecheckout|sparsecheckoutcone"
    r"|splitindex|trustctime|untrackedcache|usereplacerefs|warnambiguousrefs|whitespace)"
    r"|credential\..*(?:usehttppath|username)|lfs\.(?:\w*url|locksverify|fetch\w+|.*\.(?:access|locksverify))"
    r"|merge\..*\.(?:name|recursive)|receive\.(?:deny\w+|autogc|fsckobjects)|ssh\.variant|uploadpack\.allow\w+"
    r"|remote\..*\.(?:skip\w+|prunetags|proxy|proxyauthmethod|followremotehead|gh-resolved)|remote\.pushdefault"
    r"|submodule\.(?:.*\.(?:ignore|fetchrecursesubmodules|shallow)|recurse|fetchjobs|propagatebranches|alternate\w+)",
    re.DOTALL,
)
_EXCEPTIONS: Final = re.compile(r"diff\.external|gc\.recentobjectshook|pack\.packobjectshook")
_ADDRESS: Final = re.compile(
    r"(?:remote|submodule|branch)\..*\.(?:\w*url|remote|pushremote)|remote\.pushdefault", re.DOTALL
)
