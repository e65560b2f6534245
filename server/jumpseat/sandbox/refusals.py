"""Infer from the output of a failed command what the sandbox refused, for the model and the user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from jumpseat.sandbox.session_network import CONNECTING
from jumpseat.sandbox.view import TEMP_FOLDERS, View

MAX_REFUSALS: Final = 3
_TAIL_CHARS: Final = 16_384
_MAX_PATHS: Final = 64
"""Limit of the paths that are compared with the folders of the view."""

# A path begins where no other character of it is in front, so that the text is read once.
_IN_PATH: Final = r"[^\s\"'`\u2018\u2019:]"
_PATH: Final = rf"(?<!{_IN_PATH})(?P<path>{_IN_PATH}{{1,4096}})[\"'`\u2019]?"
_WRITES: Final = (
    re.compile(rf"{_PATH}: Read-only file system", re.IGNORECASE),
    re.compile(rf"Read-only file system(?: \(os error 30\))?: [\"'`\u2018]?{_PATH}", re.IGNORECASE),
    re.compile(rf"EROFS: read-only file system, \w+ [\"'`\u2018]?{_PATH}"),
    re.compile(rf"could not (?:lock|write) config file [\"'`\u2018]?{_PATH}: Device or resource busy"),
)
_HOST: Final = r"[\"'`]?(?P<host>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)"
_HOSTS: Final = (
    re.compile(rf"Could not resolve host(?:name)?:? {_HOST}", re.IGNORECASE),
    re.compile(rf"(?:ENOTFOUND|EAI_AGAIN) {_HOST}"),
    re.compile(rf"lookup {_HOST}(?: on \S+)?: "),
    re.compile(rf"unable to resolve host address {_HOST}", re.IGNORECASE),
    re.compile(rf"host=['\"]{_HOST}"),
)
_NETWORK: Final = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|ENETUNREACH"
    r"|getaddrinfo failed|dns error|nodename nor servname|Could not resolve proxy",
    re.IGNORECASE,
)
_CLOSED: Final = re.compile(r"Connection refused|ECONNREFUSED", re.IGNORECASE)
_MISSING: Final = re.compile(rf"{_PATH}: (?:No such file or directory|(?P<denied>Permission denied))")
_READ_ONLY: Final = re.compile(r"Read-only file system|EROFS", re.IGNORECASE)


def find_refusals(output: str, view: View, cwd: Path, known: Sequence[str] = ()) -> list[str]:
    """Return what the sandbox refused, such as ``"writing to /etc/hosts"``; empty if nothing points to it.

    ``known`` are refusals that need no guess; they come first.
    """
    found = [*known, *(text for text in _refusals(output[-_TAIL_CHARS:], view, cwd) if not _is_known(text, known))]
    return list(dict.fromkeys(found))[:MAX_REFUSALS]


def _beginnings(folders: Iterable[Path]) -> tuple[str, ...]:
    return tuple(f"{str(folder).rstrip('/')}/" for folder in folders)


def _is_hidden_by_temp(path: Path) -> bool:
    """Return whether a temporary file that a command did not find exists outside of the sandbox."""
    return any(path.is_relative_to(folder) for folder in TEMP_FOLDERS) and os.path.lexists(path)


def _is_known(text: str, known: Sequence[str]) -> bool:
    # Refused connections are known by their hosts, which programs word in many ways.
    return text.startswith(CONNECTING) and any(other.startswith(CONNECTING) for other in known)


def _refusals(output: str, view: View, cwd: Path) -> Iterator[str]:
    paths = [match["path"] for pattern in _WRITES for match in pattern.finditer(output)]
    yield from (f"writing to {cwd / path}" for path in paths)
    if not paths and _READ_ONLY.search(output):
        yield "writing to a file"
    hidden, writable = _beginnings(view.hidden), _beginnings(view.writable)
    missing = dict.fromkeys((match["path"], match["denied"]) for match in _MISSING.finditer(output))
    for name, denied in islice(missing, _MAX_PATHS):
        path = cwd / name
        if f"{path}/".startswith(hidden):
            yield f"reading {path}"
        elif not denied and view.temp is not None and _is_hidden_by_temp(path):
            yield f"reading {path}, because commands have their own folder for temporary files"
        elif denied and not f"{path}/".startswith(writable):
            yield f"writing to {path}"
    if view.network:
        return
    hosts = [match["host"] for pattern in _HOSTS for match in pattern.finditer(output)]
    yield from (f"{CONNECTING}{host}" for host in hosts)
    if not hosts and _NETWORK.search(output):
        yield f"{CONNECTING}the network"
    if _CLOSED.search(output):
        # A mechanism without loopback causes another error.
        yield f"{CONNECTING}a service at localhost that no command of this session has started"
