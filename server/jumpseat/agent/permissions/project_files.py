"""Tell whether the files of a session are as they were when a command was approved that runs them outside.

A command that leaves the sandbox may run code of the project: a script, a build, what a compose file or a plan of
terraform names. Commands in the sandbox may change all of that. So a lasting approval of the one holds until the
others, or anybody else, have changed something.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.rules import CHANGING, shows_only
from jumpseat.agent.shell.commands import program_name
from jumpseat.agent.shell.reading import READING
from jumpseat.agent.shell.syntax import ShellLine, ShellSegment
from jumpseat.system.file_trees import states_of

MAX_FILES: Final = 20_000
"""Limit of the files that are looked at. An approval in a larger project holds for one call."""

_OWN_GIT: Final = ".git"
"""Its hooks and settings are named in questions, and no confined command changes them."""


def runs_project(line: ShellLine) -> bool:
    """Return whether a command line that leaves the sandbox may run or obey files of the project."""
    if not line.certain:
        return True
    commands = list(map(_words, line.segments))
    if shows_only(line.segments):
        return any(words[0] in _PLANNERS and words[1:2] in _PLANNED for words in commands)
    return any(map(_runs_project, commands))


def _words(segment: ShellSegment) -> list[str]:
    try:
        return shlex.split(segment.text) or [""]
    except ValueError:
        return [""]


def _runs_project(words: Sequence[str]) -> bool:
    name = program_name(words)
    if words[0] in _CONTAINERS:
        return not _CONTAINED.intersection(words[1:2])
    return words[0] != name or not (name in READING or name in _OF_THEIR_OWN)


def mark_of(folders: Iterable[Path]) -> str:
    """Return a text that is the same as long as no file below ``folders`` changes. Blocks on the file system."""
    found = states_of(folders, _OWN_GIT, MAX_FILES)
    return (
        CHANGING if found is None else f"files {sha256(repr(found).encode('utf-8', 'surrogateescape')).hexdigest()}"
    )


_PLANNERS: Final = frozenset({"terraform", "tofu"})
_PLANNED: Final = (["plan"], ["show"], ["state"])
"""Subcommands that show something, and may run plugins and programs that the files of the project name."""

_CONTAINERS: Final = frozenset({"docker", "nerdctl", "podman"})
_CONTAINED: Final = frozenset({
    "events", "exec", "history", "images", "info", "inspect", "kill", "login", "logout",
    "logs", "network", "pause", "port", "ps", "pull", "push", "rename", "restart", "rm", "rmi", "search", "start",
    "stats", "stop", "system", "tag", "top", "unpause", "version", "volume", "wait",
})  # fmt: skip
"""Subcommands that read no file of the project."""

_OF_THEIR_OWN: Final = frozenset({
    "dig", "fuser", "gh", "git", "glab", "gpg", "gpg2", "host", "hub", "journalctl", "kill", "killall", "loginctl",
    "lsof", "netstat", "notify-send", "nslookup", "op", "pass", "pbcopy", "pbpaste", "pgrep", "ping", "pkill", "ps",
    "pstree", "scp", "sftp", "ss", "ssh", "ssh-add", "ssh-copy-id", "ssh-keygen", "systemctl", "top", "traceroute",
    "whois", "wl-copy", "wl-paste", "xclip",
})  # fmt: skip
"""Programs that leave the sandbox and run nothing of the project, or ask about it otherwise."""
